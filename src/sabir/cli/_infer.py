"""`sabir infer`: types and shapes, worked out and written into a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sabir.checking import finding_of

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption
from sabir.cli._models import ModelPath, OutputPath, load_any, save_any
from sabir.cli._operators import OperatorsOption, registry_of
from sabir.cli._reports import finding_lines
from sabir.cli._screen import Screen, counted, plain
from sabir.inference import Inference

if TYPE_CHECKING:
    from sabir.ir import Model

EXAMPLES = (
    "sabir infer model.onnx",
    "sabir infer model.onnx -o typed.onnx",
    "sabir infer model.onnx --strict",
    "sabir infer model.onnx --fresh -o typed.onnx",
)


def infer(
    model: ModelPath,
    *,
    output: OutputPath = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail at the first contradiction.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Replace what is declared of computed values, outputs too.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="A line for each finding, however many there are of a rule.")
    ] = False,
    operators: OperatorsOption = None,
    _: LimitOption = None,
) -> None:
    """Infer the type and shape of every value.

    Shows the types of the outputs. A contradiction is reported, and the model's own declaration stays; so is
    a declared number where the size depends on an input. Once an input was made dynamic, use `--fresh`. A
    node that cannot be judged, such as one of an unknown domain, is a warning, as in a check.
    """
    loaded, screen = load_any(model), Screen()
    engine = Inference(loaded, registry=registry_of(operators), strict=strict, fresh=fresh)
    engine.run()
    engine.annotate()
    screen.lines(finding_lines([finding_of(d) for d in engine.diagnostics], screen, verbose=verbose))
    known, values = _coverage(loaded)
    screen.line(f"{plain(model)}: the types of {known:,} of {counted(values, 'value')} are known")
    outputs = [v for v in loaded.graph.outputs if v is not None]
    screen.table([(plain(v.name), plain(v.type or "of unknown type")) for v in outputs], "cyan")
    if output is not None:
        save_any(loaded, output)
        screen.line(f"saved {plain(output)}")


def _coverage(model: Model) -> tuple[int, int]:
    """Return how many values of the nodes have types, and how many there are."""
    values = [v for node in model.graph.all_nodes() for v in node.outputs if v is not None]
    return sum(v.type is not None for v in values), len(values)
