"""`sabir summary`: what a model costs, by node or by layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError, counted, quote
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import ModelPath, load_any, shown
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, cut, plain
from sabir.debugging import Costs
from sabir.debugging import summary as summarize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.debugging import Summary
    from sabir.ir import Dim

EXAMPLES = (
    "sabir summary model.onnx",
    "sabir summary model.onnx --dim batch=1 --dim seq=128 --by-layer",
    "sabir summary model.onnx --json",
)
_COLUMNS = ("parameters", "multiply-adds", "activations", "memory", "intensity")
_UNITS = ("", "K", "M", "G", "T", "P")
_STEP = 1000
_LONGEST = 60


def summary(
    model: ModelPath,
    *,
    dims: Annotated[
        list[str] | None,
        typer.Option(
            "--dim",
            "-d",
            metavar="NAME=SIZE",
            help="Size of a dimension variable; costs are polynomials of the others. May be repeated.",
        ),
    ] = None,
    by_layer: Annotated[
        bool, typer.Option("--by-layer", help="One row for each layer, and not for each node.")
    ] = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Show what a model costs, by node or by layer.

    Activations are the bytes of all results; memory is the bytes of operands and results, and intensity the
    operations, two for each multiply-add, for each of these bytes. Layers are those of the names of nodes or
    of their weights. Nothing is run.
    """
    found = summarize(
        load_any(model), dict(map(_pair, dims or ())), registry=registry_of(operators, documents)
    )
    if as_json:
        write_json(_as_json(found))
        return
    screen = Screen()
    screen.line(screen.paint(shown(Path(model.name)), bold=True))
    _show(screen, found, by_layer=by_layer)


def _pair(word: str) -> tuple[str, int]:
    name, _, size = word.rpartition("=")
    if not name or not (size.isascii() and size.isdigit()):
        raise FeedError(f"--dim {quote(word)}: write it as NAME=SIZE, such as batch=4")
    return name, int(size)


def _show(screen: Screen, found: Summary, *, by_layer: bool) -> None:
    if by_layer:
        heading = ("layer", "nodes", *_COLUMNS)
        rows = [
            ("  " * (len(r.layer) - 1) + plain(r.layer[-1]), str(r.nodes), *_cells(r.costs))
            for r in found.layers
        ]
        last = ("total", str(len(found.nodes)), *_cells(found.total))
    else:
        heading = ("node", "operator", "results", *_COLUMNS)
        rows = [
            (cut(n.name, _LONGEST), n.op, cut(", ".join(n.types), _LONGEST), *_cells(n.costs))
            for n in found.nodes
        ]
        last = ("total", counted(len(found.nodes), "node"), "", *_cells(found.total))
    screen.table(
        [heading, *rows, last],
        "cyan",
        *["right" if by_layer else ""] * (1 if by_layer else 2),
        *["right"] * 5,
    )
    _notes(screen, found)


def _notes(screen: Screen, found: Summary) -> None:
    if found.uncounted:
        listed = ", ".join(f"{op} ({counted(n, 'node')})" for op, n in found.uncounted.items())
        screen.line(screen.paint(plain(f"   note: the multiply-adds of {listed} are not counted"), dim=True))
    if found.unknown:
        nodes = counted(len(found.unknown), "node")
        text = (
            f"   note: unknown sizes of {nodes}, such as {quote(found.unknown[0])}, are left out of the sums"
        )
        screen.line(screen.paint(plain(text), dim=True))


def _cells(costs: Costs) -> Iterable[str]:
    numbers = (_count(costs.parameters), _count(costs.multiply_adds))
    bytes_ = (_count(costs.activations, "B"), _count(costs.memory, "B"))
    return (*numbers, *bytes_, "" if costs.intensity is None else f"{costs.intensity:.3g}")


def _count(number: Dim, unit: str = "") -> str:
    """Return a number as a person reads it, `4.09 G`; a polynomial as it is."""
    if number is None:
        return "?"
    if not isinstance(number, int):
        return f"{number}{f' {unit}' if unit else ''}"
    size, place = float(number), 0
    while size >= _STEP and place < len(_UNITS) - 1:
        size, place = size / _STEP, place + 1
    text = f"{size:.3g}" if place else str(number)
    return f"{text} {_UNITS[place]}{unit}".rstrip()


def _as_json(found: Summary) -> dict[str, Any]:
    return {
        "total": _costs_as_json(found.total),
        "layers": [
            {"layer": list(r.layer), "nodes": r.nodes, **_costs_as_json(r.costs)} for r in found.layers
        ],
        "nodes": [
            {
                "name": n.name,
                "operator": n.op,
                "layer": list(n.layer),
                "types": list(n.types),
                **_costs_as_json(n.costs),
            }
            for n in found.nodes
        ],
        "uncounted": found.uncounted,
        "unknown": list(found.unknown),
    }


def _costs_as_json(costs: Costs) -> dict[str, Any]:
    """Return costs by name; a polynomial is its text."""
    numbers = {n: v if v is None or isinstance(v, int) else str(v) for n, v in costs._asdict().items()}
    return {**numbers, "intensity": costs.intensity}
