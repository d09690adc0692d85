"""How deep messages are nested in one another, which the readers of protobuf's formats bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sabir.base import WireError
from sabir.ir import MapType, OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Graph, Model, Type
    from sabir.serial._formats import Format

# levels of messages below the outermost; protobuf's reader of JSON counts that one too
_DEEPEST: dict[Format, int] = {"protobuf": 100, "textproto": 100, "json": 99}
_OUTERMOST = 2  # levels above a graph that stands in no other
_PLAIN = 8  # levels below a graph at most, of all that is neither a graph nor a type in a type
_SUBGRAPH, _TYPE = 3, 2  # levels from a graph to one in it, and from a type to one in it


def may_be_too_deep(model: Model, chosen: Format) -> bool:
    """Whether a model may have messages nested too deep for a format; what this denies is certain."""
    most = _DEEPEST.get(chosen)
    if most is None:
        return False
    pending = [(graph, _OUTERMOST) for graph in model.graphs()]
    for function in model.functions:
        for default in function.attributes.values():
            if default is not None:
                pending += [(inner, _OUTERMOST) for inner in default.graphs]
    while pending:
        graph, level = pending.pop()
        if level + _PLAIN + max(map(_nested, _types(graph)), default=0) > most:
            return True
        pending += [(inner, level + _SUBGRAPH) for node in graph if node.attributes for inner in node.graphs]
    return False


def require_readable(message: Any, chosen: Format) -> None:
    """Raise WireError for messages nested so deep that no reader of the format accepts them."""
    depth, most = _depth(message), _DEEPEST[chosen]
    if depth > most:
        raise WireError(
            f"graphs or types are nested too deep to be saved: the model has {depth} levels of messages, and"
            f" readers of {chosen} accept {most}; call functions instead of nesting graphs"
        )


def _types(graph: Graph) -> Iterator[Type]:
    """Yield the types in a graph that may hold others."""
    for value in graph.defined():
        if value.type is not None and type(value.type) is not TensorType:
            yield value.type
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type in {"type", "types"}:
                held: Any = attribute.value
                kinds = cast("tuple[Type | None, ...]", held if isinstance(held, tuple) else (held,))
                yield from (kind for kind in kinds if kind is not None)


def _nested(kind: Type) -> int:
    levels, inner = 0, kind
    while isinstance(inner, (SequenceType, OptionalType, MapType)):
        levels += _TYPE
        inner = inner.value if isinstance(inner, MapType) else inner.item
    return levels


def _depth(message: Any) -> int:
    """Return how many levels of messages are below this one."""
    depth, level = -1, [message]
    while level:
        depth += 1
        level = [
            inner
            for one in level
            for field, value in one.ListFields()
            if field.message_type is not None
            for inner in ([value] if hasattr(value, "DESCRIPTOR") else value)
        ]
    return depth
