"""`sabir op`: what an operator is, in every version, and which operators an opset has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sabir.cli._screen import Screen
from sabir.reference import domains_of, find_version, inventory, marked, page_of

if TYPE_CHECKING:
    from sabir.schema import Version

EXAMPLES = (
    "sabir op",
    "sabir op Softmax",
    "sabir op Softmax --opset 11",
    "sabir op ai.onnx.ml.TreeEnsemble:5",
    "sabir op --opset 13",
)


def op(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The operator: Relu, ai.onnx.Relu or, in one version, ai.onnx.Relu:6. "
            "Without it all operators are listed.",
        ),
    ] = None,
    *,
    opset: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Show the operator as it is in this opset of its domain. Without NAME, list the operators "
            "of this opset with the version in force, in every domain that has an opset of this number.",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="DOMAIN", help="Look only in this domain; ai.onnx is the default domain."),
    ] = None,
) -> None:
    """Show what an operator is, or list all operators.

    A page shows the signature, types, attributes and history of the operator. The lists mark deprecated
    versions.
    """
    screen = Screen()
    if name is not None:
        screen.lines(page_of(find_version(name, opset=opset, domain=domain)).splitlines())
    else:
        screen.table(_all(domain) if opset is None else _inventory(opset, domain), "bold")


def _all(domain: str | None) -> list[tuple[str, ...]]:
    """Return a row for each operator, with all of its versions."""
    return [
        (o.name, d or "ai.onnx", ", ".join(map(_since, o.versions)), o.summary)
        for d, operators in domains_of(domain).items()
        for o in operators
    ]


def _inventory(opset: int, domain: str | None) -> list[tuple[str, ...]]:
    """Return a row for each operator of an opset, with its version in force."""
    return [
        (v.operator.name, d or "ai.onnx", _since(v), v.operator.summary)
        for d, versions in inventory(opset, domain=domain).items()
        for v in versions
    ]


def _since(version: Version) -> str:
    return f"{version.since}{' (deprecated)' if version.deprecated else ''}{marked(version)}"
