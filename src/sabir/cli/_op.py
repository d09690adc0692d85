"""`sabir op`: the reference of an operator in every version, and the list of an opset's operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import SchemaError
from sabir.cli._completion import operator_names
from sabir.cli._json import JsonOption, write_json
from sabir.cli._screen import Screen
from sabir.cli._usage import refuse
from sabir.reference import domains_of, facts_of, find_version, inventory, marked, page_of

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
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Names of operators: Relu, ai.onnx.Relu, or ai.onnx.Relu:6 for one version. "
            "Without a name all operators are listed.",
            autocompletion=operator_names,
        ),
    ] = None,
    *,
    opset: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Show the version that applies in this opset. Without NAME, list the operators "
            "of this opset with these versions, in every domain that has an opset of this number.",
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="DOMAIN", help="Look only in this domain; ai.onnx is the default domain."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the reference of an operator, or list all operators.

    A page shows the signature, types, attributes and history of the operator. The lists mark deprecated
    versions.
    """
    screen = Screen()
    try:
        versions = [find_version(name, opset=opset, domain=domain) for name in names or ()]
        rows = [] if names else _all(domain) if opset is None else _inventory(opset, domain)
    except SchemaError as error:
        refuse(str(error))
    if as_json:
        write_json([facts_of(v) for v in versions] if names else [_row_json(row) for row in rows])
        return
    for version in versions:
        screen.markdown(page_of(version))
    screen.table(rows, "bold")


def _row_json(row: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(("name", "domain", "versions", "summary"), row, strict=True))


def _all(domain: str | None) -> list[tuple[str, ...]]:
    """Return a row for each operator, with all of its versions."""
    return [
        (o.name, d or "ai.onnx", ", ".join(map(_since, o.versions)), o.summary)
        for d, operators in domains_of(domain).items()
        for o in operators
    ]


def _inventory(opset: int, domain: str | None) -> list[tuple[str, ...]]:
    """Return a row for each operator of an opset, with the version that applies."""
    return [
        (v.operator.name, d or "ai.onnx", _since(v), v.operator.summary)
        for d, versions in inventory(opset, domain=domain).items()
        for v in versions
    ]


def _since(version: Version) -> str:
    return f"{version.since}{' (deprecated)' if version.deprecated else ''}{marked(version)}"
