"""Whether the values that a node is given have types that its operator version admits.

Numpy computes with more types than the standard admits, and mixes them: two texts would be added, the
imaginary part of a number dropped. A look at the types is cheap where they are those of the last call.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import EvaluationError, UnsupportedError
from sabir.elements import element
from sabir.opsets.families.ranks import type_of
from sabir.schema import admits, operand_mismatch, port_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array
    from sabir.schema import Input, Version

Kind: TypeAlias = "np.dtype[Any] | tuple[object, ...]"  # of a tensor; of another value, () of none

_ARRAY: Any = np.ndarray  # of no type that a checker would have cast, which takes time in a run
_UNKNOWN = "?"
_MOST_REMEMBERED = 4096


class Types:
    """The types of one node's inputs, which it looks at anew only where they differ from the last call's."""

    __slots__ = ("given", "kinds", "version")

    def __init__(self, version: Version) -> None:
        self.version = version
        self.kinds: list[Kind] = []
        self.given: list[Kind] = []  # by the last call

    def check(self, inputs: Sequence[Any], plain: float) -> None:  # ruff: ignore[unused-method-argument]  as Sizes
        """Raise EvaluationError for an input of a type that is not admitted."""
        self.check_kinds([x.dtype if type(x) is _ARRAY else kind_of(x) for x in inputs])

    def objection(self, inputs: Sequence[Any]) -> str | None:  # ruff: ignore[unused-method-argument]  as Sizes
        """Return why the inputs cannot be computed with, as far as their types show it."""
        return None

    def check_kinds(self, kinds: list[Kind]) -> None:
        """Raise EvaluationError for kinds that are not admitted."""
        if kinds != self.kinds:
            _admit(self.version, tuple(kinds))
            self.kinds = kinds

    def check_results(self, results: Sequence[Any]) -> None:
        """Raise EvaluationError for an output of a type that is not admitted, as a subgraph may give any."""
        kinds = list(map(kind_of, results))
        if kinds != self.given:
            for place, kind in enumerate(kinds):
                port = port_at(self.version.outputs, place)
                told = _signature(kind)
                if told is not None and not admits(port, told, unwrapped=True):
                    raise EvaluationError(
                        f"{self.version} does not admit {told} for its output {port.name!r}"
                    )
            self.given = kinds


def kind_of(value: Any) -> Kind:
    """Return what tells the type of a value: of a sequence or a map that of its first item."""
    if type(value) is _ARRAY:
        return value.dtype
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return (list, kind_of(items[0])) if items else (list,)
    # not None, which numpy takes for float64
    return () if value is None else (type(cast("object", value)),)


def shown_type(value: Any) -> str:
    """Return the type of a value as a message shows it: `float[2,3]`."""
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
            raise EvaluationError(f"{version} needs its input {port.name!r}, and nothing is passed for it")
    message = operand_mismatch(version, list(map(_signature, kinds)), unwrapped=True)
    if message is not None:
        raise EvaluationError(message)


def _may_be_absent(port: Input) -> bool:
    """Whether a port takes nothing: an input that is left out, or an empty optional."""
    return port.optional or any(a.startswith("optional(") for a in port.allowed)


def _signature(kind: Kind) -> str | None:
    """Return the type string of a value as far as its kind tells it; None where it tells nothing."""
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
