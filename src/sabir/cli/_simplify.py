"""`sabir simplify`: fewer nodes that compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.cli._edited import show_verification, verification_json
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    ModelPath,
    RequiredOutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    report_screen,
    save_any,
)
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import plain
from sabir.optimization import simplify_model

if TYPE_CHECKING:
    from sabir.cli._screen import Screen
    from sabir.optimization import Counts, Simplification

EXAMPLES = (
    "sabir simplify model.onnx -o simple.onnx",
    "sabir simplify model.onnx -o simple.onnx --report",
    "sabir simplify model.onnx -o simple.onnx --no-fuse --keep hidden",
)


def simplify(
    model: ModelPath,
    *,
    output: RequiredOutputPath,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A value of the main graph that must stay. May be repeated."),
    ] = None,
    fuse: Annotated[
        bool,
        typer.Option(
            "--fuse/--no-fuse",
            help="Whether operators may take in what follows them, which changes how results are rounded.",
        ),
    ] = True,
    verify: Annotated[
        bool | None,
        typer.Option(
            "--verify/--no-verify",
            help="Run both models on random inputs and compare them; by default up to 256 MiB.",
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="List the nodes of each operator.")] = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Fold constants, and remove and merge nodes.

    The new model computes the same up to rounding. The inputs and outputs keep their names. If a verification
    finds that the results differ, nothing is written, and the exit code is 1.
    """
    refuse_two_reports(output, as_json=as_json)
    loaded, screen = load_any(model), report_screen(output)
    registry = registry_of(operators, documents)
    found = simplify_model(loaded, keep or (), fuse, verify, registry=registry)
    save_any(found.model, output)
    if as_json:
        write_json(_as_json(found))
        return
    _show(screen, found, with_operators=report)
    report_saved(screen, output)


def _show(screen: Screen, found: Simplification, *, with_operators: bool) -> None:
    before, after = found.before, found.after
    rows = [
        ("nodes", str(before.nodes), "→", str(after.nodes)),
        ("parameters", str(before.parameters), "→", str(after.parameters)),
        ("bytes", str(before.bytes), "→", str(after.bytes)),
        ("multiply-adds", _shown(before), "→", _shown(after)),
    ]
    if with_operators:
        for name in sorted({*before.operators, *after.operators}):
            old, new = before.operators.get(name, 0), after.operators.get(name, 0)
            rows.append((plain(name), str(old), "→", str(new)))
    screen.table(rows, "cyan")
    show_verification(screen, found.verification)


def _shown(counts: Counts) -> str:
    return "unknown" if counts.multiply_adds is None else plain(str(counts.multiply_adds))


def _as_json(found: Simplification) -> dict[str, Any]:
    return {
        "before": _counts(found.before),
        "after": _counts(found.after),
        "applied": dict(found.applied),
        "verification": verification_json(found.verification),
    }


def _counts(counts: Counts) -> dict[str, Any]:
    work = counts.multiply_adds
    return {
        "nodes": counts.nodes,
        "operators": dict(counts.operators),
        "parameters": counts.parameters,
        "bytes": counts.bytes,
        "multiply_adds": work if isinstance(work, int) or work is None else str(work),
    }
