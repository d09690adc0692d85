"""What the commands that edit a model share: the option for JSON, and the report about the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import FeedError, counted, quote
from sabir.cli._json import write_json
from sabir.cli._models import report_saved, report_screen, save_any
from sabir.cli._screen import plain

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.cli._screen import Screen
    from sabir.ir import Model, Value
    from sabir.optimization import Verification


def pair(word: str, form: str, example: str) -> tuple[str, str]:
    """Return the two parts of an argument of the form `A=B`; raises FeedError for another one."""
    first, separated, second = word.rpartition("=")
    if not separated or not first or not second:
        raise FeedError(f"{quote(word)}: write {form}, such as {example}")
    return first, second


def save_edited(model: Model, output: Path, before: Model, *, as_json: bool) -> None:
    """Save an edited model, and report its size and its inputs and outputs."""
    save_any(model, output)
    if as_json:
        write_json(edited_json(model, before))
        return
    screen = report_screen(output)
    show_edited(screen, model, before)
    report_saved(screen, output)


def show_edited(screen: Screen, model: Model, before: Model) -> None:
    """Print the number of nodes, and a line for each input and output."""
    screen.line(f"{counted(node_count(model), 'node')} of {node_count(before):,}")
    if before.training and not model.training:
        screen.line("the training information is left out")
    rows = [("input", *_shown(value)) for value in model.graph.inputs]
    rows += [("output", *_shown(value)) for value in model.graph.outputs if value is not None]
    screen.table(rows, "dim", "cyan")


def show_verification(screen: Screen, verification: Verification | None) -> None:
    """Print how far the results of two models differ."""
    if verification is None:
        screen.line("the results were not compared")
    elif not verification.runs:
        screen.line("the results were not compared: the model refuses random inputs")
    else:
        runs = counted(verification.runs, "list")
        screen.line(f"largest difference on {runs} of random inputs: {verification.difference:.3g}")


def verification_json(verification: Verification | None) -> dict[str, Any] | None:
    """Return how far the results of two models differ as JSON, None where they were not compared."""
    return verification and {"runs": verification.runs, "difference": verification.difference}


def edited_json(model: Model, before: Model) -> dict[str, Any]:
    """Return the report about an edited model as JSON."""
    return {
        "nodes": node_count(model),
        "nodes_before": node_count(before),
        "functions": [function.name for function in model.functions],
        "training": len(model.training),
        "inputs": _types(model.graph.inputs),
        "outputs": _types([value for value in model.graph.outputs if value is not None]),
    }


def node_count(model: Model) -> int:
    """Return the number of nodes of the main graph and of the graphs inside it."""
    return sum(1 for _ in model.graph.all_nodes())


def _shown(value: Value) -> tuple[str, str]:
    return plain(value.name), plain(str(value.type or "of unknown type"))


def _types(values: Any) -> dict[str, str]:
    return {value.name: str(value.type or "of unknown type") for value in values}
