"""`--operators MODULE:NAME` and `--opset-document FILE`: further operators for one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from sabir.base import SchemaError
from sabir.cli._modules import imported
from sabir.ir import OperatorSet
from sabir.opsets import STANDARD
from sabir.schema import Operator, Registry

if TYPE_CHECKING:
    from collections.abc import Iterable

OperatorsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--operators",
        metavar="MODULE:NAME",
        help="Add your own operators: a Registry, an Operator or a list of them in a Python module.",
    ),
]
OpsetDocumentsOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--opset-document",
        metavar="FILE",
        help="Add the operators of an operator set document; may be repeated.",
    ),
]
NewerOpsetsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--newer-opsets",
        help="For an operator set or an IR version that is newer than all known ones, use the newest.",
    ),
]


def registry_of(option: str | None, documents: Iterable[Path] | None = None) -> Registry:
    """Return the registry that the options name, or that of the standard.

    The module is imported, from the working folder too. Raises SchemaError if there is no such module or
    name, if it does not refer to operators, or if documents contradict one another; FileError and WireError
    for a document that cannot be read.
    """
    registry = _registry(option)
    return registry.with_operator_sets(*map(OperatorSet.load, documents)) if documents else registry


def _registry(option: str | None) -> Registry:
    if option is None:
        return STANDARD
    found = imported(option, "--operators")
    if isinstance(found, Registry):
        return found
    if isinstance(found, Operator):
        return STANDARD.with_operators(found)
    several = _operators_in(found)
    if several:
        return STANDARD.with_operators(*several)
    shown = type(found).__name__
    raise SchemaError(
        f"--operators {option!r} is a {shown}; it must be a Registry, an Operator or a list of them"
    )


def _operators_in(found: Any) -> list[Operator]:
    """Return the operators of a list or tuple; an empty list for anything else."""
    if not isinstance(found, (list, tuple)):
        return []
    items = cast("list[object]", found)
    operators = [item for item in items if isinstance(item, Operator)]
    return operators if len(operators) == len(items) else []
