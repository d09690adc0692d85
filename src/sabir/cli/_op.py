"""`sabir op`: what an operator is, in every version."""

from __future__ import annotations

from typing import Annotated

import typer

from sabir.base import SchemaError, suggest
from sabir.cli._screen import Screen
from sabir.reference import operators_of, page

EXAMPLES = (
    "sabir op",
    "sabir op Softmax",
    "sabir op Softmax --opset 11",
    "sabir op TreeEnsemble --domain ai.onnx.ml",
)


def op(
    name: Annotated[str | None, typer.Argument(help="The operator; without it all are listed.")] = None,
    *,
    opset: Annotated[int | None, typer.Option(help="As it was in this opset.", min=1)] = None,
    domain: Annotated[str | None, typer.Option(help="Where to look; in every domain by default.")] = None,
) -> None:
    """Show what an operator is, or list all of them.

    A page tells its signature, types, meaning and history.
    """
    domains = operators_of()
    if domain is not None:
        wanted = "" if domain == "ai.onnx" else domain
        domains = {d: found for d, found in domains.items() if d == wanted}
    screen = Screen()
    if name is None:
        rows = [
            (o.name, d or "ai.onnx", ", ".join(str(v.since) for v in o.versions), o.summary)
            for d, found in domains.items()
            for o in found
        ]
        screen.table(rows, "bold")
        return
    operator = next((o for found in domains.values() for o in found if o.name == name), None)
    if operator is None:
        known = [o.name for found in domains.values() for o in found]
        raise SchemaError(f"there is no operator {name!r}{suggest(name, known)}")
    screen.lines(page(operator, opset).splitlines())
