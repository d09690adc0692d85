"""Whether the outputs of a call have types that its version admits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.elements import find_element
from sabir.ir import MapType, OptionalType, SequenceType, SparseTensorType, TensorType
from sabir.schema._ports import port_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Type
    from sabir.schema._ports import Port
    from sabir.schema._version import Version


def is_settled(kind: Type | None) -> bool:
    """Whether a type is known down to its element types, and these are of the standard."""
    match kind:
        case TensorType() | SparseTensorType():
            return find_element(kind.element.number) is not None
        case SequenceType() | OptionalType():
            return is_settled(kind.item)
        case MapType():
            return find_element(kind.key.number) is not None and is_settled(kind.value)
        case _:
            return kind is not None


def check_results(version: Version, inputs: Sequence[Type | None], results: Sequence[Type | None]) -> None:
    """Raise InferenceError for an output of a type that its port does not admit.

    An output that shares a constraint with an input has the input's type. Unknown types are not checked.
    """
    bound = {
        port.type.name: (kind.signature, port.name)
        for port, kind in reversed([*_settled(version.inputs, inputs)])
        if not isinstance(port.type, str) and not port.heterogeneous
    }
    for port, kind in _settled(version.outputs, results):
        signature = kind.signature
        if signature not in port.allowed and signature not in port.tolerated:
            raise InferenceError(f"{version} does not admit {signature} for its output {port.name!r}")
        if isinstance(port.type, str) or port.heterogeneous:
            continue
        needed, source = bound.setdefault(port.type.name, (signature, port.name))
        if needed != signature:
            raise InferenceError(
                f"{version}: {port.name!r} has the type of {source!r}, {needed}; it would be {signature}"
            )


def _settled(ports: Sequence[Port], kinds: Sequence[Type | None]) -> Iterator[tuple[Port, Type]]:
    """Yield each known type with its port; a variadic port has all from its place on."""
    for place, kind in enumerate(kinds):
        if place >= len(ports) and not (ports and ports[-1].variadic):
            return
        if kind is not None and is_settled(kind):
            yield port_at(ports, place), kind
