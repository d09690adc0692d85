"""`sabir inline`: replace calls by the operators that they consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import counted, quote, suggest
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
from sabir.cli._usage import refuse
from sabir.inlining import Inlining, inline_domains
from sabir.inlining import inline as inline_model
from sabir.ir import Node, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.cli._screen import Screen
    from sabir.ir import Model

EXAMPLES = (
    "sabir inline model.onnx -o flat.onnx",
    "sabir inline optimized.onnx --domain com.microsoft -o standard.onnx",
    "sabir inline model.onnx --op LayerNormalization --op Gelu -o plain.onnx",
)


def inline(
    model: ModelPath,
    *,
    output: RequiredOutputPath,
    domains: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            metavar="NAME",
            help="Also replace the operators of a domain, such as com.microsoft, by operators of the "
            "standard. May be repeated.",
        ),
    ] = None,
    named: Annotated[
        list[str] | None,
        typer.Option(
            "--op",
            metavar="NAME",
            help="Also replace the operators of this name where they have a body. May be repeated.",
        ),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Replace calls of functions and operators by their bodies.

    Operators are replaced on request. With --domain the operators of a domain are written in operators of the
    standard, so that any runtime can execute the model; a model of an old opset is converted where the
    operators need it. If a call cannot be written so, all such calls are listed, nothing is written, and the
    exit code is 1.
    """
    refuse_two_reports(output, as_json=as_json)
    loaded, screen, registry = load_any(model), report_screen(output), registry_of(operators, documents)
    before = len(loaded.functions)
    _require_called(loaded, named or ())
    changed = inline_model(loaded, operators=named or False, registry=registry)
    found = inline_domains(changed, domains, registry=registry) if domains else Inlining(changed)
    save_any(found.model, output)
    if as_json:
        write_json({"functions": before, "replaced": found.replaced, "opset": found.opset})
        return
    screen.line(f"{counted(before, 'function')} inlined")
    show_inlining(screen, found)
    report_saved(screen, output)


def _require_called(model: Model, names: Sequence[str]) -> None:
    """Refuse names of operators that the model does not call."""
    called = {place.object.op for place in places(model, Node)}
    for name in names:
        if name not in called:
            refuse(f"the model calls no operator {quote(name)}{suggest(name, called)}")


def show_inlining(screen: Screen, found: Inlining) -> None:
    """Print which calls were replaced, and the opset that they needed."""
    if found.opset is not None:
        screen.line(f"converted to opset {found.opset}, which the bodies are written for")
    screen.table([(name, counted(count, "call")) for name, count in sorted(found.replaced.items())], "cyan")
