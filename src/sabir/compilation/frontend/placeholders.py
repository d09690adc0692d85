"""Placeholder feeds: arrays with a shape and an element type that take no memory."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import FeedError, quote
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.evaluation import ModelPort
    from sabir.ir import Array

_ADVICE = "run the session first, or pass its shape, such as shapes={{{}: [1, 3]}}"


def placeholder_feeds(ports: Sequence[ModelPort], shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    """Return a feed for each input in `shapes` or without default; raises FeedError for an unknown shape."""
    names = [port.name for port in ports]
    for name in shapes:
        if name not in names:
            listed = ", ".join(map(quote, names)) or "none"
            raise FeedError(f"the model has no input {quote(name)}; its inputs are {listed}")
    wanted = [port for port in ports if port.name in shapes or not port.optional]
    return {port.name: _placeholder(port, shapes.get(port.name)) for port in wanted}


def _placeholder(port: ModelPort, shape: Sequence[int] | None) -> Array:
    kind, name = port.type, quote(port.name)
    if not isinstance(kind, TensorType):
        raise FeedError(f"input {name} is {kind or 'of no declared type'}: run the session first")
    chosen = kind.shape if shape is None else shape
    if chosen is None or not all(isinstance(d, (int, np.integer)) for d in chosen):
        raise FeedError(f"input {name} is declared {kind}, and its size is not known: {_ADVICE.format(name)}")
    item: Array = np.array("" if kind.element.name == "string" else 0, kind.element.dtype)
    try:
        return np.broadcast_to(item, tuple(map(index, chosen)))  # pyright: ignore[reportArgumentType]  they are numbers
    except (ValueError, TypeError) as error:
        raise FeedError(f"the shape {list(chosen)} of input {name} is not valid: {error}") from None
