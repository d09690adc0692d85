"""How deep messages are nested, which the readers of protobuf's formats limit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from sabir.base import WireError
from sabir.ir import MapType, OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from sabir.ir import Graph, Model, OperatorSet, Type
    from sabir.serial._formats import Format

# levels of messages below the outermost; protobuf's reader of JSON counts that one too
_MAX_DEPTH: dict[Format, int] = {"protobuf": 100, "textproto": 100, "json": 99}
_OUTERMOST = 2  # levels above a root graph
_PLAIN = 8  # the most levels below a graph, without subgraphs and types in types
_SUBGRAPH, _TYPE = 3, 2  # levels from a graph to one in it, and from a type to one in it


def may_be_too_deep(model: Model | OperatorSet, chosen: Format) -> bool:
    """Return whether messages may be nested too deep for a format; False is certain."""
    most = _MAX_DEPTH.get(chosen)
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
        pending += [(inner, level + _SUBGRAPH) for node in graph for inner in node.graphs]
    return False


@contextmanager
def reporting_depth() -> Generator[None, None, None]:
    """Raise WireError in the place of a RecursionError."""
    try:
        yield
    except RecursionError:
        raise WireError(
            "graphs are nested too deep for this Python to save; call functions instead of nesting graphs"
        ) from None


def require_readable(message: Any, chosen: Format) -> None:
    """Raise WireError for messages that are nested too deep for the readers of the format."""
    depth, most = _depth(message), _MAX_DEPTH[chosen]
    if depth > most:
        raise WireError(
            f"graphs or types are nested too deep to be saved: there are {depth} levels of messages, and"
            f" readers of {chosen} accept {most}; call functions instead of nesting graphs"
        )


def _types(graph: Graph) -> Iterator[Type]:
    """Yield the types in a graph that may contain others."""
    for value in graph.defined():
        type_ = value.type
        if type_ is not None and type(type_) is not TensorType:
            yield type_
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type in {"type", "types"}:
                content: Any = attribute.value
                types = cast("tuple[Type | None, ...]", content if isinstance(content, tuple) else (content,))
                yield from (type_ for type_ in types if type_ is not None)


def _nested(type_: Type) -> int:
    levels, inner = 0, type_
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
