"""Feeds: the arrays a caller gives, held against what the model declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import FeedError, SabirError, suggest
from sabir.elements import element
from sabir.ir import Expr, Graph, MapType, OptionalType, SequenceType, TensorType, Type, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Dim


class Ports(NamedTuple):
    """An input or output of a model: its name, its type, and for an input whether it may be left out."""

    name: str
    type: Type | None
    optional: bool = False

    @property
    def shape(self) -> tuple[Dim, ...] | None:
        """The declared shape of a tensor, None where there is none."""
        return self.type.shape if isinstance(self.type, TensorType) else None


def input_ports(graph: Graph) -> tuple[Ports, ...]:
    """Return a graph's inputs; one with an initializer may be left out."""
    return tuple(
        Ports(v.name, v.type, v in graph.initializers or isinstance(v.type, OptionalType))
        for v in graph.inputs
    )


def check_feeds(graph: Graph, feeds: Mapping[str, Any]) -> list[Any]:
    """Return the feeds in the order of the graph's inputs, None where a default serves.

    Raises FeedError naming the input, what it declares and what it got; each dimension variable must stand
    for one size throughout.
    """
    known = {v.name: v for v in graph.inputs}
    for name in feeds:
        if name not in known:
            hint = suggest(name, known) or f"; the inputs are {', '.join(map(repr, known)) or 'none'}"
            raise FeedError(f"the model has no input {name!r}{hint}")
    sizes: dict[str, tuple[int, str]] = {}
    return [_fed(value, graph, feeds, sizes) for value in graph.inputs]


def _fed(value: Value, graph: Graph, feeds: Mapping[str, Any], sizes: dict[str, tuple[int, str]]) -> Any:
    if value.name not in feeds:
        if value in graph.initializers or isinstance(value.type, OptionalType):
            return None
        raise FeedError(
            f"input {value.name!r} ({value.type or 'of undeclared type'}) is missing from the feeds"
        )
    return _as(feeds[value.name], value.type, f"input {value.name!r}", sizes)


def _as(given: Any, declared: Type | None, where: str, sizes: dict[str, tuple[int, str]]) -> Any:
    match declared:
        case TensorType():
            return _tensor(given, declared, where, sizes)
        case SequenceType():
            if not isinstance(given, (list, tuple)):
                raise FeedError(f"{where} declares {declared}, and got a {type(given).__name__}; give a list")
            items = cast("list[Any]", given)
            # the name of a dimension stands for a size of each item's own
            return [_as(x, declared.item, f"{where}, item {i}", {}) for i, x in enumerate(items)]
        case OptionalType():
            return None if given is None else _as(given, declared.item, where, sizes)
        case MapType():
            if not isinstance(given, dict):
                raise FeedError(f"{where} declares {declared}, and got a {type(given).__name__}; give a dict")
            return _map(cast("dict[Any, Any]", given), declared, where)
        case _:
            return np.asarray(given) if isinstance(given, (int, float, np.generic)) else given


def _map(given: dict[Any, Any], declared: MapType, where: str) -> dict[Any, Any]:
    """Return a map whose numbers have the declared type, which a tensor made of them will take."""
    value = declared.value
    if not isinstance(value, TensorType):
        return given
    return {key: _tensor(x, value, f"{where}, key {key!r}", {})[()] for key, x in given.items()}


def _tensor(given: Any, declared: TensorType, where: str, sizes: dict[str, tuple[int, str]]) -> Any:
    kind = declared.element
    if isinstance(given, (np.ndarray, np.generic)):
        array = np.asarray(cast("Any", given))
        try:
            found = element(array.dtype)
        except SabirError as unknown:
            raise FeedError(
                f"{where} declares {declared}, and got {array.dtype}{list(array.shape)}"
            ) from unknown
        if kind.number and found != kind:
            raise FeedError(
                f"{where} declares {declared}, and got {found}{list(array.shape)}; convert it to {kind.dtype}"
            )
        array = array.astype(found.dtype, copy=False)
    else:
        array = _converted(given, declared, where)
    _check_shape(array.shape, declared, where, sizes)
    return array


def _converted(given: Any, declared: TensorType, where: str) -> Any:
    """Make an array of plain Python numbers, strings and lists of them."""
    try:
        return np.asarray(given, dtype=declared.element.dtype if declared.element.number else None)
    except (ValueError, TypeError, OverflowError) as error:
        raise FeedError(f"{where} declares {declared}, and got a {type(given).__name__}: {error}") from error


def _check_shape(
    got: tuple[int, ...], declared: TensorType, where: str, sizes: dict[str, tuple[int, str]]
) -> None:
    if declared.shape is None:
        return
    if len(got) != len(declared.shape):
        raise FeedError(
            f"{where} declares {declared}, of rank {len(declared.shape)}, and got shape {list(got)}"
        )
    for size, dim in zip(got, declared.shape, strict=True):
        if isinstance(dim, int) and dim != size:
            raise FeedError(
                f"{where} declares {declared}, and got shape {list(got)}: {size} where {dim} must be"
            )
        if isinstance(dim, Expr) and sizes.setdefault(str(dim), (size, where))[0] != size:
            bound, first = sizes[str(dim)]
            told = f"{where} declares {declared}, and got shape {list(got)}"
            raise FeedError(f"{told}: {dim} is {bound} by {first}, and {size} here")
