"""The options that name versions of operator sets and of the format, and the report of a conversion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from sabir.base import counted
from sabir.cli._usage import refuse
from sabir.ir import canonical_domain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.cli._screen import Screen
    from sabir.conversion import Conversion
    from sabir.ir import Model

OpsetsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--opset",
        metavar="[DOMAIN=]N",
        help="Convert to this version of an operator set: 21, or ai.onnx.ml=5. May be repeated.",
    ),
]
IrOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--ir-version", metavar="N", min=1, help="Set the IR version. By default it rises as far as needed."
    ),
]

_NUMBER = re.compile(r"[0-9]{1,18}")


def opsets_of(options: Iterable[str] | None) -> dict[str, int]:
    """Return the versions that `--opset` options name, by canonical domain; leaves the program on others."""
    found: dict[str, int] = {}
    for option in options or ():
        name, _, number = option.rpartition("=")
        if not _NUMBER.fullmatch(number):
            refuse(f"--opset {option!r}: write it as 17, or ai.onnx.ml=3")
        domain = canonical_domain(name)
        if found.setdefault(domain, int(number)) != int(number):
            refuse(f"--opset names two versions of {domain or 'ai.onnx'}: {found[domain]} and {number}")
    return found


def imports_text(model: Model) -> str:
    """Return the versions of a model in one line: `IR 8, ai.onnx 17`."""
    imports = [f"{domain or 'ai.onnx'} {version}" for domain, version in model.opsets.items()]
    return ", ".join([f"IR {model.ir_version}", *imports])


def show_conversion(screen: Screen, model: Model, conversion: Conversion) -> None:
    """Write what a conversion changed."""
    screen.line(f"{imports_text(model)} → {imports_text(conversion.model)}")
    before, after = _node_count(model), _node_count(conversion.model)
    screen.line(f"{counted(before, 'node')} → {counted(after, 'node')}")
    rows = [(f"{count:,}", old, "→", new) for (old, new), count in sorted(conversion.steps.items())]
    screen.table(rows, "right", "cyan")
    for function in conversion.inlined:
        screen.line(f"   calls of {function} are inlined: each determines what its body becomes")


def conversion_json(model: Model, conversion: Conversion) -> dict[str, Any]:
    """Return what a conversion changed, as `--json` shows it."""
    return {
        "before": _versions_json(model),
        "after": _versions_json(conversion.model),
        "rewritten": [
            {"from": old, "to": new, "calls": count} for (old, new), count in sorted(conversion.steps.items())
        ],
        "inlined": list(conversion.inlined),
    }


def _versions_json(model: Model) -> dict[str, Any]:
    opsets = {domain or "ai.onnx": version for domain, version in model.opsets.items()}
    return {"ir_version": model.ir_version, "opsets": opsets, "nodes": _node_count(model)}


def _node_count(model: Model) -> int:
    return sum(1 for graph in model.graphs() for _ in graph.all_nodes())
