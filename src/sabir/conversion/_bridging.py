"""Casts around a call whose element types the older version does not admit: the same call in a wider type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.elements import element
from sabir.ir import TensorType
from sabir.schema import Constraint, Unconvertible, as_results, port_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Node, Type
    from sabir.rewriting import DetachedBuilder
    from sabir.schema import Port, Version

    Pair = tuple[ElementType, ElementType]

# types that hold every value of another one, the narrowest first
_WIDER: dict[str, tuple[str, ...]] = {
    "float16": ("float", "double"),
    "bfloat16": ("float", "double"),
    "float": ("double",),
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("int16", "uint16", "int32", "uint32", "int64", "uint64"),
    "uint16": ("int32", "uint32", "int64", "uint64"),
    "uint32": ("int64", "uint64"),
    "bool": ("uint8", "int32", "int64"),
}


def bridge(
    b: DetachedBuilder, node: Node, source: Version, target: Version, types: Sequence[Type | None]
) -> Any:
    """Build the call of a node in wider types that `target` admits too, between casts; return its outputs.

    `source` is the version that it calls, `types` are those of its operands. Raises Unconvertible where no
    wider type serves.
    """
    casts = dict(_casts(source, target, types))
    if not casts:
        raise Unconvertible("no operand has a type that a cast could replace")
    pairs = [_pair(port_at(source.inputs, i), casts) for i in range(len(node.inputs))]
    operands = [
        v if v is None or pair is None else b.Cast(v, to=pair[1].number)
        for v, pair in zip(node.inputs, pairs, strict=True)
    ]
    call: Any = b.op
    results = call(node.op, *operands, outputs=len(node.outputs), domain=node.domain, **dict(node.attributes))
    back = [(r, _pair(port_at(source.outputs, i), casts)) for i, r in enumerate(as_results(results))]
    return tuple(r if pair is None else b.Cast(r, to=pair[0].number) for r, pair in back)


def _casts(source: Version, target: Version, types: Sequence[Type | None]) -> Iterator[tuple[str, Pair]]:
    """Yield each type constraint of which the target does not admit the type, with it and the wider one."""
    admitted = _admitted(target)
    for place, kind in enumerate(types):
        port = port_at(source.inputs, place)
        if not isinstance(kind, TensorType) or not isinstance(port.type, Constraint):
            continue
        older = admitted.get(port.name, frozenset())
        if kind.signature in older:
            continue
        for name in _WIDER.get(kind.element.name, ()):
            if f"tensor({name})" in older and f"tensor({name})" in port.type.allowed:
                yield port.type.name, (kind.element, element(name))
                break
        else:
            raise Unconvertible(
                f"{target} does not admit {kind.signature} for {port.name!r}, nor a wider type"
            )


def _admitted(version: Version) -> Mapping[str, frozenset[str]]:
    return {port.name: port.allowed for port in version.inputs}


def _pair(port: Port, casts: Mapping[str, Pair]) -> Pair | None:
    """Return the type of a port's values and the wider one, None where they are not cast."""
    return casts.get(port.type.name) if isinstance(port.type, Constraint) else None
