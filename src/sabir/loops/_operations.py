"""Constructors of tensor expressions for the rooms: they check shapes and element types."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from sabir.base import SabirError
from sabir.ir import Expr, product
from sabir.loops._assumptions import at_least, equal
from sabir.loops._expression import ELEMENTS, FLOATS, HALVES, SMALL_FLOATS, SMALL_INTEGERS, Expression
from sabir.loops._expressions import (
    PREDICATES,
    Best,
    Contract,
    Count,
    Couple,
    Cumulate,
    Expand,
    Extent,
    Join,
    Map,
    Number,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Scatter,
    Slice,
    Slide,
    Stored,
    Take,
    Windows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Array
    from sabir.loops._expression import Size, Sizes

_NARROW = HALVES | SMALL_FLOATS | SMALL_INTEGERS | {"int8", "uint8", "int16", "uint16"}
_MOST_PARTS = 512  # of a join
_NEUTRAL = {"sum": 0, "prod": 1}


class NotLowered(SabirError):
    """No expression represents this call, for the reason in the message. The interpreter evaluates it."""


class Widened(NotLowered):
    """Kernels compute with the operands only as float: the call is lowered again with these cast to it."""


def number(element: str, value: float) -> Number:
    """Return one number of an element type."""
    return Number(element, (), value)


def tensor(array: Array) -> Stored:
    """Return a constant tensor; nothing may change the array later."""
    names = {"float32": "float", "float64": "double"}
    element = names.get(array.dtype.name, array.dtype.name)
    check_element(element)
    return Stored(element, array.shape, array=array)


def count(shape: Sequence[Size], axis: int) -> Expression:
    """Return the index along an axis, in int64; it is 0 along one of size 1, which broadcasts."""
    return expand(number("int64", 0), shape) if shape[axis] == 1 else Count("int64", tuple(shape), axis)


def apply(op: str, *operands: Expression | float) -> Expression:
    """Return a scalar function of each element; a Python number takes the element type of the others.

    Raises NotLowered for an element type that kernels do not compute with, and for symbolic sizes that may
    not broadcast.
    """
    typed = [x for x in operands if isinstance(x, Expression)]
    of = typed[-1].element  # the first operand of `where` is its condition
    expressions = [x if isinstance(x, Expression) else number(of, x) for x in operands]
    for x in expressions:
        (check_element if op == "where" else check_computed)(x.element)
    shape: Sizes = ()
    for x in expressions:
        shape = broadcast(shape, x.shape)
    return Map("bool" if op in PREDICATES else of, shape, op, tuple(expressions))


def check_element(element: str) -> None:
    """Raise NotLowered for an element type that kernels do not load."""
    if element not in ELEMENTS:
        raise NotLowered(f"kernels do not compute with {element} yet")


def check_computed(element: str) -> None:
    """Raise NotLowered for an element type without arithmetic; Widened if float replaces it."""
    check_element(element)
    if element in SMALL_INTEGERS:
        raise NotLowered(f"kernels do not compute with {element} yet")
    if element in HALVES | SMALL_FLOATS:
        raise Widened(f"kernels compute with {element} as float")


def cast(x: Expression, element: str) -> Expression:
    """Return the elements as another type, as the operator Cast converts them.

    Small floats are not saturated: beyond their range is infinity or NaN, where they have one.
    """
    check_element(element)
    return x if x.element == element else Map(element, x.shape, "cast", (x,))


def bits(x: Expression, element: str) -> Expression:
    """Return the bits of the elements as another type of the same width."""
    check_element(element)
    return x if x.element == element else Map(element, x.shape, "bits", (x,))


def order(x: Expression) -> Expression:
    """Return unsigned integers in the order of floats: -0 equals 0, and NaN is the largest of all."""
    check_element(x.element)
    return Map("uint32" if x.element == "float" else "uint64", x.shape, "order", (x,))


def nearest(x: Expression) -> Expression:
    """Return the nearest integers, ties to even, of floats whose magnitude is below 2**22, as int32."""
    return Map("int32", x.shape, "nearest", (x,))


def where(condition: Expression, a: Expression | float, b: Expression | float) -> Expression:
    """Return `a` where the condition is true, else `b`."""
    return apply("where", condition, a, b)


def random_words(
    start: tuple[Expression, Expression], key: tuple[Expression, Expression]
) -> tuple[Expression, Expression]:
    """Return the two random words of numbers of 64 bits, as `threefry`; all are of uint32."""
    return apply("word", *start, *key), apply("second_word", *start, *key)


def broadcast(a: Sizes, b: Sizes) -> Sizes:
    """Return the shape to which two shapes broadcast; raises NotLowered if that depends on symbols."""
    if len(a) < len(b):
        a, b = b, a
    head = len(a) - len(b)
    return (*a[:head], *starmap(_common, zip(a[head:], b, strict=True)))


def same_shape(a: Sizes, b: Sizes) -> bool:
    """Return whether two shapes are equal, for all feeds or for the current ones (which becomes a guard)."""
    return len(a) == len(b) and all(starmap(equal, zip(a, b, strict=True)))


def _common(m: Size, n: Size) -> Size:
    if n in {m, 1}:
        return m
    if m == 1:
        return n
    if equal(m, n):
        return n if isinstance(n, int) else m
    if isinstance(m, int) and isinstance(n, int):
        raise NotLowered(f"the sizes {m} and {n} do not broadcast")
    raise NotLowered(f"whether {m} and {n} broadcast is known at run time only")


def reduce(op: str, x: Expression, axes: Iterable[int], *, last: bool = False) -> Expression:
    """Return the reduction over some axes, which remain with size 1; `x` if all of them have size 1."""
    check_computed(x.element)
    found = tuple(sorted({axis % x.rank for axis in axes}))
    if all(x.shape[axis] == 1 for axis in found):
        return expand(number("int64", 0), x.shape) if op in {"argmax", "argmin"} else x
    shape = tuple(1 if i in found else d for i, d in enumerate(x.shape))
    element = "int64" if op in {"argmax", "argmin"} else x.element
    return Reduce(element, shape, op, x, found, last)


def cumulate(
    op: str, x: Expression, axis: int, *, exclusive: bool = False, reverse: bool = False
) -> Expression:
    """Return the running `sum` or `prod` along an axis."""
    check_computed(x.element)
    axis %= x.rank
    if x.shape[axis] == 1:
        return expand(number(x.element, _NEUTRAL[op]), x.shape) if exclusive else x
    return Cumulate(x.element, x.shape, op, x, axis, exclusive, reverse)


def best(x: Expression, axis: int, count: Size, *, largest: bool) -> Expression:
    """Return the indices of the `count` largest or smallest elements along an axis, in order.

    An axis with fewer elements is an error of the run.
    """
    check_computed(x.element)
    axis %= x.rank
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if x.shape[axis] == 1 and count in {0, 1}:
        return expand(number("int64", 0), shape)
    return Best("int64", shape, x, axis, largest)


def couple(x: Expression, classes: int, iterations: int, tolerance: float) -> Expression:
    """Return the probabilities of 2 classes or more that agree with those of pairs: see `Couple`."""
    return Couple(x.element, (x.shape[0], classes), x, iterations, tolerance)


def mean(x: Expression, axes: Iterable[int]) -> Expression:
    """Return the mean over some axes, which stay with size 1."""
    total = reduce("sum", x, axes)
    return apply("div", total, sized(x.element, product(x.shape[axis % x.rank] for axis in {*axes})))


def sized(element: str, size: Size | None) -> Expression:
    """Return a size as a number, also a symbolic one."""
    if size is None:
        raise NotLowered("a size is too large, or unknown")
    return number(element, size) if isinstance(size, int) else Extent(element, (), size)


# ---------------------------------------------------------------- views


def permute(x: Expression, axes: Sequence[int]) -> Expression:
    """Return the axes in another order."""
    order = tuple(axis % x.rank for axis in axes)
    if order == tuple(range(x.rank)):
        return x
    return Permute(x.element, tuple(x.shape[axis] for axis in order), x, order)


def reshape(x: Expression, shape: Sequence[Size]) -> Expression:
    """Return the same elements in another shape; raises NotLowered where their number may differ."""
    wanted = tuple(shape)
    if wanted == x.shape:
        return x
    counts = product(wanted), product(x.shape)
    if counts[0] is None or counts[1] is None or not equal(counts[0], counts[1]):
        raise NotLowered(
            f"whether {_shown(x.shape)} and {_shown(wanted)} have as many elements is known at run time only"
        )
    return Reshape(x.element, wanted, x)


def squeeze(x: Expression, axes: Iterable[int]) -> Expression:
    """Return the tensor without some axes of size 1."""
    gone = {axis % x.rank for axis in axes}
    return reshape(x, [d for i, d in enumerate(x.shape) if i not in gone])


def expand(x: Expression, shape: Sequence[Size]) -> Expression:
    """Return the tensor broadcast to a shape."""
    wanted = tuple(shape)
    if not same_shape(broadcast(wanted, x.shape), wanted):
        raise NotLowered(f"{_shown(x.shape)} does not broadcast to {_shown(wanted)}")
    return x if wanted == x.shape else Expand(x.element, wanted, x)


def cut(x: Expression, starts: Sequence[Size], sizes: Sequence[Size], steps: Sequence[int]) -> Expression:
    """Return a slice: `sizes` elements of each axis, from the index `starts`, in `steps`.

    The caller guarantees that the range is inside the axis.
    """
    if all(s == 0 for s in starts) and tuple(sizes) == x.shape and all(s == 1 for s in steps):
        return x
    return Slice(x.element, tuple(sizes), x, tuple(starts), tuple(steps))


def narrow(x: Expression, axis: int, start: Size, size: Size) -> Expression:
    """Return a slice of one axis: `size` elements from the index `start`."""
    axis %= x.rank
    starts = [start if i == axis else 0 for i in range(x.rank)]
    sizes = [size if i == axis else d for i, d in enumerate(x.shape)]
    return cut(x, starts, sizes, [1] * x.rank)


def take(x: Expression, indices: Expression, axis: int) -> Expression:
    """Return the tensor at indices along an axis (gather): a view if there is one index, a known number."""
    axis %= x.rank
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    place = _known_place(indices, x.shape[axis])
    if place is not None:
        return reshape(narrow(x, axis, place, 1), shape)
    if isinstance(x, Map) and _is_widened(x):  # take narrow elements, and widen those only
        first, *others = x.operands
        return Map(x.element, shape, x.op, (take(first, indices, axis), *others))
    return Take(x.element, shape, x, indices, axis)


def _known_place(indices: Expression, size: Size) -> int | None:
    """Return the only index along an axis, counted from the front, where it and the size are known."""
    known = known_sizes(indices)
    if known is None or len(known) != 1 or not isinstance(size, int):
        return None
    index = known[0]
    if not isinstance(index, int) or not -size <= index < size:
        return None
    return index % size


def _is_widened(x: Expression) -> bool:
    """Return whether an expression is `(cast(narrow) - number) * number`, or a part of that form."""
    if not isinstance(x, Map) or x.operands[0].shape != x.shape:
        return False
    if x.op == "cast":
        return x.operands[0].element in _NARROW
    return x.op in {"sub", "mul"} and x.operands[1].rank == 0 and _is_widened(x.operands[0])


def scatter(x: Expression, indices: Expression, updates: Expression, axis: int, op: str = "") -> Expression:
    """Return the tensor with one update for each index along an axis; `op` combines both, `add` for example.

    Raises NotLowered if the indices and the updates may have different shapes.
    """
    (check_computed if op else check_element)(x.element)
    axis %= x.rank
    if not same_shape(indices.shape, updates.shape) or len(updates.shape) != x.rank:
        raise NotLowered("whether there is one update for each index is known at run time only")
    if x.element == "bool":
        op = {"add": "or", "max": "or", "mul": "and", "min": "and"}.get(op, op)
    return Scatter(x.element, x.shape, x, indices, updates, axis, op)


def join(parts: Sequence[Expression], axis: int) -> Expression:
    """Return the concatenation of tensors along an axis.

    Each part is written by its own kernel or copy. So many parts are not lowered: one call of numpy is
    faster.
    """
    if len(parts) > _MOST_PARTS:
        raise NotLowered(f"it joins {len(parts)} tensors: more than {_MOST_PARTS} are one call of numpy")
    first = parts[0]
    axis %= first.rank
    total: Size = 0
    for part in parts:
        check_element(part.element)
        total += part.shape[axis]
        for i, (m, n) in enumerate(zip(part.shape, first.shape, strict=True)):
            if i != axis and not equal(m, n):
                raise NotLowered(f"whether the sizes {m} and {n} are equal is known at run time only")
    return Join(first.element, (*first.shape[:axis], total, *first.shape[axis + 1 :]), tuple(parts), axis)


def pad(x: Expression, before: Sequence[Size], after: Sequence[Size], value: float) -> Expression:
    """Return the tensor padded with a number; the counts of added elements are not negative."""
    for n in (*before, *after):
        if not at_least(n, 0):
            raise NotLowered("a negative padding cuts the tensor")
    shape: list[Size] = [b + d + a for b, d, a in zip(before, x.shape, after, strict=True)]
    return Pad(x.element, tuple(shape), x, tuple(before), value)


def known_sizes(x: Expression | None) -> tuple[Size, ...] | None:
    """Return the contents of a tensor of integers as sizes; None if any is unknown."""
    known = getattr(x, "known", None)
    if known is None or not all(isinstance(n, (int, Expr)) for n in known):
        return None
    return tuple(known)


def _shown(shape: Sizes) -> str:
    return f"[{','.join(map(str, shape))}]"


# ---------------------------------------------------------------- products and windows


def contract(a: Expression, b: Expression) -> Expression:
    """Return the matrix products of two tensors of rank 2 or more.

    Raises NotLowered for sizes that may differ.
    """
    rows = a.rank - 1 if b.rank == 2 and a.rank > 2 else 1  # ruff: ignore[magic-value-comparison]  matrices
    return convolve(a, b, rows, 1)


def convolve(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
    """Return `[..., rows..., depth...]` by `[..., depth..., N]`: sums of products over all axes of the depth.

    The leading axes broadcast. Raises NotLowered for sizes that may differ.
    """
    check_computed(a.element)
    if a.element != b.element or a.element == "bool":
        raise NotLowered(f"{a.element} and {b.element} are not multiplied")
    sizes = zip(a.shape[a.rank - depth :], b.shape[-1 - depth : -1], strict=True)
    for m, n in sizes:  # a kernel would read past the end
        if not equal(m, n):
            raise NotLowered(f"whether the sizes {m} and {n} are equal is known at run time only")
    if a.element not in FLOATS:
        return _sums(a, b, rows, depth)
    batch = broadcast(a.shape[: a.rank - depth - rows], b.shape[: b.rank - depth - 1])
    between = a.shape[a.rank - depth - rows : a.rank - depth]
    return Contract(a.element, (*batch, *between, b.shape[-1]), a, b, rows, depth)


def _sums(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
    """Return the product of integers, which wraps around, as a map and a reduction."""
    columns = reshape(a, (*a.shape, 1))
    head = b.rank - depth - 1
    spread = reshape(b, (*b.shape[:head], *(1,) * rows, *b.shape[head:]))
    terms = apply("mul", columns, spread)
    axes = [*range(terms.rank - 1 - depth, terms.rank - 1)]
    return squeeze(reduce("sum", terms, axes), axes)


def windows(
    x: Expression, axes: Sequence[int], kernel: Sequence[Size], counts: Sequence[Size],
    strides: Sequence[int], dilations: Sequence[int],
) -> Expression:  # fmt: skip
    """Return the windows of `x` along some axes; their taps are further axes at the end.

    `counts` is the number of windows along each of the axes; the caller pads `x` so that all are inside.
    """
    check_element(x.element)
    shape = list(x.shape)
    for axis, count in zip(axes, counts, strict=True):
        shape[axis] = count
    return Windows(x.element, (*shape, *kernel), x, tuple(axes), tuple(strides), tuple(dilations))


def slide(op: str, x: Expression, taps: int, weights: Expression | None = None) -> Expression:
    """Return the `sum`, `max` or `min` over the last `taps` axes of windows, or the sum of `x * weights`.

    The weights have the last axes of the windows. Raises NotLowered if their sizes may differ.
    """
    check_computed(x.element)
    if weights is not None:
        if x.element not in FLOATS or weights.element != x.element:
            raise NotLowered(f"sums of products of {x.element} have no kernel yet")
        if not all(map(equal, weights.shape, x.shape[x.rank - weights.rank :])):
            raise NotLowered("whether the weights fit the windows is known at run time only")
    return Slide(x.element, x.shape[: x.rank - taps], op, x, weights, taps)


def slide_mixed(x: Expression, taps: int, weights: Expression) -> Expression:
    """Return the sums of windows `[..., C, taps...]` times weights `[C, mixed, taps...]`: `[..., C]`.

    Each result is the sum over the taps and the `mixed` channels of its group. Raises NotLowered if sizes may
    differ.
    """
    channels, mixed, *kernel = weights.shape
    if not isinstance(mixed, int) or not all(map(equal, (channels, *kernel), x.shape[x.rank - taps - 1 :])):
        raise NotLowered("whether the weights fit the windows is known at run time only")
    return Slide(x.element, x.shape[: x.rank - taps], "sum", x, weights, taps, mixed=mixed)
