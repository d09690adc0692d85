"""Known contents: small integer tensors that shape arithmetic computes with, which may be symbolic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.ir import Expr, Item, Known, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.opsets.typing import Array

MOST = 1024  # elements; larger tensors are data, not shapes


def ints(known: Known | None) -> list[int] | None:
    """Return known contents as numbers, or None when one of them is not a number."""
    if known is None or not all(isinstance(k, int) for k in known):
        return None
    return [int(k) for k in known if isinstance(k, int)]


def is_numeric(known: Known | None) -> bool:
    """Whether every element is known, and none of them is symbolic."""
    return known is not None and not any(k is None or isinstance(k, Expr) for k in known)


def objects(t: TensorType) -> Array | None:
    """Return known contents as an array of objects in the tensor's shape, for numpy to index and reshape."""
    if t.known is None or t.shape is None or not t.is_static:
        return None
    array = np.empty(len(t.known), dtype=object)
    array[:] = list(t.known)
    try:
        return array.reshape([d for d in t.shape if isinstance(d, int)])
    except ValueError:  # numpy has no shape [0, 2^63 - 1], and none of 65 axes
        return None


def array_of(t: TensorType) -> Array | None:
    """Return fully numeric known contents as an array of the tensor's element type."""
    known = objects(t) if is_numeric(t.known) else None
    return None if known is None else known.astype(t.element.dtype)


def moved(t: TensorType, how: Callable[[Array], Array], *inputs: TensorType) -> TensorType:
    """Return `t` with the contents that `how` computes from the inputs' contents, where all are known.

    `how` takes one object array per input and only moves elements: it indexes, concatenates, reshapes.
    """
    known = [k for i in inputs if (k := objects(i)) is not None]
    if len(known) < len(inputs) or not _small(t):
        return t
    return t.with_known(np.asarray(how(*known), dtype=object).ravel().tolist())


def computed(t: TensorType, how: Callable[..., Item], *inputs: TensorType) -> TensorType:
    """Return `t` with contents computed element by element, the inputs broadcast against one another."""
    arrays = [h for i in inputs if (h := objects(i)) is not None]
    if len(arrays) < len(inputs) or not _small(t):
        return t
    rows = np.broadcast(*arrays) if len(arrays) > 1 else ((x,) for x in arrays[0].ravel())
    return t.with_known([None if any(x is None for x in row) else how(*row) for row in rows])


def of_array(array: Array, shape: Sequence[Any] | None = None) -> Known | None:
    """Return an array's elements as known contents, or None when it is too large or not of a plain type."""
    size = array.size if shape is None else math.prod(shape)
    if size > MOST or array.dtype.kind not in "iubfO":
        return None
    return tuple(array.ravel().tolist())


def _small(t: TensorType) -> bool:
    return isinstance(t.size, int) and t.size <= MOST
