"""Whether the operands of a call have types that its operator version admits.

Numpy computes with more types than the standard admits, and mixes them: it would add two texts, and drop the
imaginary part of a number. The check is cheap where the types are those of the last call.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import EvaluationError, UnsupportedError
from sabir.elements import element
from sabir.opsets.families.shapes.ranks import type_of
from sabir.schema import admits, operand_mismatch, port_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array
    from sabir.schema import Input, Version

Kind: TypeAlias = (
    "np.dtype[Any] | tuple[object, ...]"  # of a tensor; of another value, or () of an absent one
)

_ARRAY: Any = np.ndarray  # untyped: a cast would take time in every run
_UNKNOWN = "?"
_MOST_REMEMBERED = 4096


class OperandTypes:
    """Checks the types of one node's operands and results, where they differ from those of the last call."""

    __slots__ = ("kinds", "result_kinds", "version")

    def __init__(self, version: Version) -> None:
        self.version = version
        self.kinds: list[Kind] = []
        self.result_kinds: list[Kind] = []

    def check(self, inputs: Sequence[Any], plain: float) -> None:  # ruff: ignore[unused-method-argument]  as OutputSizes
        """Raise EvaluationError for an input of a type that is not admitted."""
        self.check_kinds([x.dtype if type(x) is _ARRAY else kind_of(x) for x in inputs])

    def objection(self, inputs: Sequence[Any]) -> str | None:  # ruff: ignore[unused-method-argument]  as OutputSizes
        """Return why the operands are refused, as far as their types show it."""
        return None

    def check_kinds(self, kinds: list[Kind]) -> None:
        """Raise EvaluationError for kinds that are not admitted."""
        if kinds != self.kinds:
            _admit(self.version, tuple(kinds))
            self.kinds = kinds

    def check_results(self, results: Sequence[Any]) -> None:
        """Raise EvaluationError for an output of a type that is not admitted; a subgraph can return any."""
        kinds = list(map(kind_of, results))
        if kinds != self.result_kinds:
            for place, kind in enumerate(kinds):
                port = port_at(self.version.outputs, place)
                signature = _signature(kind)
                if signature is not None and not admits(port, signature, unwrapped=True):
                    raise EvaluationError(
                        f"{self.version} does not admit {signature} for its output {port.name!r}"
                    )
            self.result_kinds = kinds


def kind_of(value: Any) -> Kind:
    """Return what identifies the type of a value; for a sequence, with that of its first item."""
    if type(value) is _ARRAY:
        return value.dtype
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return (list, kind_of(items[0])) if items else (list,)
    # not None, which numpy takes for float64
    return () if value is None else (type(cast("object", value)),)


def shown_type(value: Any) -> str:
    """Return the type of a value for a message: `float[2,3]`."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        try:
            return str(type_of(array))
        except UnsupportedError:
            return f"{array.dtype}{list(array.shape)}"
    return "nothing" if value is None else (_signature(kind_of(value)) or type(value).__name__)


@functools.lru_cache(_MOST_REMEMBERED)
def _admit(version: Version, kinds: tuple[Kind, ...]) -> None:
    """Raise EvaluationError for a type that a port does not admit, or ports of one constraint that differ."""
    for place, kind in enumerate(kinds[: len(kinds) if version.inputs else 0]):
        port = port_at(version.inputs, place)
        if isinstance(kind, tuple) and not kind and not _may_be_absent(port):
            raise EvaluationError(f"{version} requires the input {port.name!r}, but nothing is passed for it")
    message = operand_mismatch(version, list(map(_signature, kinds)), unwrapped=True)
    if message is not None:
        raise EvaluationError(message)


def _may_be_absent(port: Input) -> bool:
    """Whether a port admits the absence of a value: an input left out, or an empty optional."""
    return port.optional or any(a.startswith("optional(") for a in port.allowed)


def _signature(kind: Kind) -> str | None:
    """Return the type string of a value as far as its kind shows it; None where it shows nothing."""
    if isinstance(kind, np.dtype):
        try:
            return f"tensor({element(kind)})"
        except UnsupportedError:
            return None
    if kind[:1] == (dict,):
        return f"map({_UNKNOWN})"
    if kind[:1] != (list,):
        return None
    inner = _signature(cast("Kind", kind[1])) if len(kind) > 1 else None
    return f"seq({inner or _UNKNOWN})"
