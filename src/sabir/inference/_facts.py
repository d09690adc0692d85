"""What the engine asks of types: those of constants and of unknown inputs, and those that a port admits."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import UNDEFINED, SparseTensorType, Tensor, TensorType, Type
from sabir.opsets.families import contents
from sabir.schema import check_results, is_settled, port_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array, Constant, Value
    from sabir.schema import Version

_LARGEST = 2**63 - 1
_MOST_SHOWN = 6  # types in a message; an operator may admit 70
_MOST_FLOATS = 16  # known contents of float tensors serve scales and limits, not data


def without_contents(kind: Type) -> Type:
    """Return a type without contents, and without what a file says of one value beside its type."""
    if isinstance(kind, TensorType):
        return TensorType(kind.element, kind.shape)
    return kind if kind.note is None else dataclasses.replace(kind, note=None)


def tensor_type_of(tensor: Constant) -> Type:
    """Return the type of an initializer, without its contents."""
    return tensor.type if isinstance(tensor, Tensor) else SparseTensorType(tensor.element, tensor.shape)


def constant_type(tensor: Constant, *, known: bool) -> Type:
    """Return the type of an initializer, its contents with it where they are small and of use."""
    if not isinstance(tensor, Tensor):
        return TensorType(tensor.element, tensor.shape)
    kind = tensor.type
    most = contents.MOST if kind.element.is_integer or kind.element.kind == "bool" else _MOST_FLOATS
    if (
        not known
        or kind.element.kind in {"string", "complex"}
        or not kind.element.number
        or tensor.size > most
    ):
        return kind
    return kind.with_known(contents.of_array(tensor.array()))


def with_contents(kind: Type | None, value: Any) -> Type | None:
    if not isinstance(kind, TensorType) or not isinstance(value, (np.ndarray, np.generic)):
        return kind
    array: Array = np.asarray(cast("Array", value))
    return kind.with_known(contents.of_array(array)) if array.shape == kind.shape else kind


def stand_ins(
    version: Version, inputs: Sequence[Value | None], types: Sequence[Type | None]
) -> list[Type | None] | None:
    """Return the input types, an unknown one as a tensor of unknown shape; None where it may be no tensor."""
    found: list[Type | None] = []
    for place, (value, kind) in enumerate(zip(inputs, types, strict=True)):
        if kind is None and value is not None:
            kind = _unknown(port_at(version.inputs, place).allowed)  # ruff: ignore[redefined-loop-name] - refined
            if kind is None:
                return None
        found.append(kind)
    return found


def _unknown(allowed: frozenset[str]) -> TensorType | None:
    """Return the type of an input of which only its port is known."""
    if not all(t.startswith("tensor(") for t in allowed):
        return None
    if len(allowed) > 1:
        return TensorType(UNDEFINED)
    return TensorType(element(next(iter(allowed)).removeprefix("tensor(").removesuffix(")")))


def check_sizes(results: Sequence[Type | None]) -> None:
    """Raise InferenceError for a dimension that no tensor can have: below 0, or past int64."""
    for kind in results:
        if not isinstance(kind, TensorType):
            continue
        for dim in kind.shape or ():
            if isinstance(dim, int) and not 0 <= dim <= _LARGEST:
                raise InferenceError(f"an output would have a dimension of {dim}")


def check_types(version: Version, inputs: Sequence[Type | None]) -> None:
    """Raise InferenceError for a type that a port does not admit, or ports of one constraint that differ."""
    bound: dict[str, tuple[str, str]] = {}
    for place, kind in enumerate(inputs):
        port = port_at(version.inputs, place)
        if kind is None or (isinstance(kind, TensorType) and not kind.element.number):
            continue
        signature = kind.signature
        if signature not in port.allowed and "?" not in signature:
            admitted = _shown(port.allowed, signature, version)
            raise InferenceError(
                f"{version} does not admit {signature} for {port.name!r}; it admits {admitted}"
            )
        if isinstance(port.type, str) or port.heterogeneous:
            continue
        first = bound.setdefault(port.type.name, (signature, port.name))
        if first[0] != signature:
            ports = f"{first[1]!r} and {port.name!r}"
            raise InferenceError(f"{version} takes one type for {ports}; it gets {first[0]} and {signature}")


def misdeclared(
    version: Version,
    inputs: Sequence[Type | None],
    results: Sequence[Type | None],
    declared: Sequence[Type | None],
) -> InferenceError | None:
    """Return what is wrong with the declared types of those outputs of which inference knows no type."""
    unknown = [None if is_settled(r) else d for r, d in zip(results, declared, strict=False)]
    try:
        check_results(version, inputs, unknown)
    except InferenceError as error:
        return error
    return None


def _shown(allowed: frozenset[str], wrong: str, version: Version) -> str:
    """Return some of the admitted types, those of the same kind as the wrong one first."""
    kind = wrong.split("(", 1)[0]
    listed = sorted(allowed, key=lambda t: (t.split("(", 1)[0] != kind, not t.startswith("tensor("), t))
    if len(listed) <= _MOST_SHOWN + 1:
        return ", ".join(listed)
    domain = f"{version.operator.domain}." if version.operator.domain else ""
    page = f"sabir op {domain}{version.operator.name} --opset {version.since}"
    return f"{', '.join(listed[:_MOST_SHOWN])} and {len(listed) - _MOST_SHOWN} more; see `{page}`"
