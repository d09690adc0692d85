"""Evaluated calls on disk: the version of the operator by its names, and attributes that are plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.elements import STRING, element
from sabir.ir import ArrayTensor, Tensor
from sabir.opsets import STANDARD, with_internal
from sabir.scheduling import OperatorCall

if TYPE_CHECKING:
    from sabir.ir import Array
    from sabir.scheduling import ScheduledCall

_PLAIN = (bool, int, float, str, bytes)


class StoredTensor(NamedTuple):
    """A tensor among the attributes, or a constant: its bytes, or its texts."""

    element: str
    shape: tuple[int, ...]
    data: bytes | tuple[str, ...]

    @classmethod
    def of(cls, array: Array) -> StoredTensor:
        """Return an array as a stored tensor."""
        kind = element(array.dtype)
        texts = cast("list[str]", array.ravel().tolist()) if kind is STRING else None
        data = np.ascontiguousarray(array).tobytes() if texts is None else tuple(texts)
        return cls(kind.name, tuple(array.shape), data)

    def array(self) -> Array:
        """Return the array."""
        dtype = element(self.element).dtype
        flat: Array = (
            np.frombuffer(self.data, dtype) if isinstance(self.data, bytes) else np.array(self.data, dtype)
        )
        return flat.reshape(self.shape)


Storable: TypeAlias = "bool | int | float | str | bytes | StoredTensor | tuple[Storable, ...]"


class StoredCall(NamedTuple):
    """A call of an operator of the standard, or of one that Sabir writes into models."""

    domain: str
    operator: str
    since: int
    attributes: dict[str, Storable]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    named: tuple[bool, ...]
    label: str

    def call(self) -> OperatorCall:
        """Return the call; raises LookupError for an operator that there is not any more."""
        version = with_internal(STANDARD).find_version(self.domain, self.operator, self.since)
        if version is None or version.since != self.since:
            raise LookupError(f"there is no {self.domain}.{self.operator}:{self.since}")
        attributes = {name: _restored(value) for name, value in self.attributes.items()}
        return OperatorCall(version, attributes, self.inputs, self.outputs, self.named, self.label)


def stored_call(call: ScheduledCall) -> StoredCall | None:
    """Return a call in a form that can be stored; None for one with subgraphs, and one of a function."""
    if not isinstance(call, OperatorCall) or call.problem or call.captures or call.cost > 1:
        return None
    try:
        attributes = {name: _storable(value) for name, value in call.attributes.items()}
    except TypeError:
        return None
    operator = call.version.operator
    return StoredCall(
        operator.domain, operator.name, call.version.since, attributes, call.inputs, call.outputs, call.named,
        call.label,
    )  # fmt: skip


def _storable(value: Any) -> Storable:
    """Return the value of an attribute in a form that can be stored; raises TypeError for a graph."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Tensor):
        return StoredTensor.of(value.array())
    if isinstance(value, tuple):
        return tuple(map(_storable, cast("tuple[Any, ...]", value)))
    raise TypeError(f"{type(value).__name__} is not stored")


def _restored(value: Storable) -> Any:
    if isinstance(value, StoredTensor):
        return ArrayTensor(value.array())
    if isinstance(value, tuple):
        return tuple(map(_restored, value))
    return value


__all__ = ["StoredCall", "StoredTensor", "stored_call"]
