"""The general kinds of tensor expressions: leaves, maps, folds, products, views, gather and scatter."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from sabir.ir import Known, product
from sabir.loops._expression import (
    NOT_READ,
    Expression,
    Size,
    Sizes,
    agree,
    are_axes,
    broadcasts,
    differ,
    exceeds,
    expression,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Array
    from sabir.loops._finite import Contents

_BYTES = {"int8", "uint8"}  # which products of integers multiply
_UNARY = """
    neg abs sign not bitwise_not isnan isinf_pos isinf_neg floor ceil round trunc exp exp2 expm1 log log2
    log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid
    softplus cast bits nearest order
"""
_BINARY = """
    add sub mul div min max mod fmod pow eq ne lt le gt ge and or xor bitwise_and bitwise_or bitwise_xor
    shl shr
"""
_MORE = {"where": 3, "fma": 3, "word": 4, "second_word": 4}
ARITY = dict.fromkeys(_UNARY.split(), 1) | dict.fromkeys(_BINARY.split(), 2) | _MORE
CONVERSIONS = frozenset({"cast", "bits", "nearest", "order"})  # whose result has another element type
PREDICATES = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf_pos", "isinf_neg"])


def _except(axis: int, shape: Sizes) -> Sizes:
    return (*shape[:axis], *shape[axis + 1 :])


# ---------------------------------------------------------------- leaves


@expression
class Stored(Expression):
    """A tensor in memory: the value in a slot of the program, or an `array` that a lowering created.

    `known` is its contents if they are known before a run; they may be symbolic. `origin` is an expression
    that computes a constant from smaller tensors: a kernel may read these instead. `contents` describes the
    numbers of a constant, for example whether all are finite.
    """

    slot: int = 0
    known: Known | None = field(default=None, repr=False)
    array: Array | None = field(default=None, repr=False)
    origin: Expression | None = field(default=None, repr=False, metadata=NOT_READ)
    contents: Contents | None = field(default=None, repr=False)

    def violations(self) -> Iterator[str]:
        """Yield violations of the array and the origin."""
        if self.array is not None and not agree(self.array.shape, self.shape):
            yield f"the array has the shape {self.array.shape}"
        if self.origin is not None and not agree(self.origin.shape, self.shape):
            yield f"the origin has the shape {self.origin.shape}"


@expression
class Number(Expression):
    """One number, of rank 0."""

    number: float = 0

    def violations(self) -> Iterator[str]:
        """Yield violations of the rank."""
        if self.shape:
            yield "a number has no axes"


@expression
class Extent(Expression):
    """A size as one number, of rank 0."""

    size: Size = 0

    def violations(self) -> Iterator[str]:
        """Yield violations of the rank."""
        if self.shape:
            yield "a size has no axes"


@expression
class Count(Expression):
    """The index along one axis (iota): element `[..., i, ...]` is `i`."""

    axis: int = 0

    def violations(self) -> Iterator[str]:
        """Yield violations of the axis."""
        if not are_axes([self.axis], self.rank):
            yield f"there is no axis {self.axis}"


# ---------------------------------------------------------------- computation


@expression
class Map(Expression):
    """A scalar function of each element; the operands broadcast to the shape as in numpy.

    `op` is a name of `sabir.loops.ARITY`. The operands have one element type. The exceptions are the first
    operand of `where`, which is bool, and the operand of a conversion.
    """

    op: str
    inputs: tuple[Expression, ...]

    def violations(self) -> Iterator[str]:
        """Yield violations of the number, the shapes and the element types of the operands."""
        if ARITY.get(self.op) != len(self.inputs):
            yield f"{self.op} of {len(self.inputs)} operands"
            return
        for x in self.inputs:
            if not broadcasts(x.shape, self.shape):
                yield f"an operand of shape {x.shape} does not broadcast"
        typed = self.inputs[1:] if self.op == "where" else self.inputs
        if len({x.element for x in typed}) != 1:
            yield f"operands of {sorted({x.element for x in typed})}"
        if self.op == "where" and self.inputs[0].element != "bool":
            yield "a condition is bool"
        wanted = "bool" if self.op in PREDICATES else typed[0].element
        if self.op not in CONVERSIONS and self.element != wanted:
            yield f"{self.op} of {typed[0].element} is {wanted}"


@expression
class Reduce(Expression):
    """All elements along some axes combined by `sum`, `prod`, `max` or `min`; the axes stay, with size 1.

    `argmax` and `argmin` return the index, in int64, of the first extreme along one axis; with `last`, of the
    last one.
    """

    op: str
    operand: Expression
    axes: tuple[int, ...]
    last: bool = False

    def violations(self) -> Iterator[str]:
        """Yield violations of the axes, the shape and the element type."""
        if not are_axes(self.axes, self.operand.rank):
            yield f"axes {self.axes} of rank {self.operand.rank}"
            return
        shape = tuple(1 if axis in self.axes else n for axis, n in enumerate(self.operand.shape))
        if not agree(shape, self.shape):
            yield f"the shape would be {shape}"
        if self.element != ("int64" if self.op in {"argmax", "argmin"} else self.operand.element):
            yield f"{self.op} of {self.operand.element} has another element type"


@expression
class Cumulate(Expression):
    """The running `sum` or `prod` along an axis, in the order of the index or in reverse.

    If it is `exclusive`, element `i` combines the elements before `i`: the first is the neutral element, 0
    or 1.
    """

    op: str
    operand: Expression
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def violations(self) -> Iterator[str]:
        """Yield violations of the axis, the shape and the element type."""
        if not are_axes([self.axis], self.rank):
            yield f"there is no axis {self.axis}"
        if not agree(self.shape, self.operand.shape) or self.element != self.operand.element:
            yield "the operand has another type"


@expression
class Best(Expression):
    """The indices along an axis, in int64, of the first elements in descending or ascending order.

    The size of the axis is the number of indices. Equal elements are in the order of their index; NaN is
    greater than any number.
    """

    operand: Expression
    axis: int
    largest: bool = True

    def violations(self) -> Iterator[str]:
        """Yield violations of the axis, the shape and the element type."""
        if not are_axes([self.axis], self.rank):
            yield f"there is no axis {self.axis}"
        elif not agree(_except(self.axis, self.shape), _except(self.axis, self.operand.shape)):
            yield "the operand has another shape"
        if self.element != "int64":
            yield "indices are int64"


@expression
class Couple(Expression):
    """Probabilities of classes `[N, C]` from probabilities of pairs of classes, after Wu, Lin and Weng.

    The operand is `[N, 2 * P]` for P pairs: P probabilities of the first class of each pair, then P
    probabilities of the second class.
    """

    operand: Expression
    iterations: int
    tolerance: float

    @property
    def axis(self) -> int:
        """The axis of pairs and of classes."""
        return 1

    def violations(self) -> Iterator[str]:
        """Yield violations of the shape."""
        if self.rank != 2 or self.operand.rank != 2:  # ruff: ignore[magic-value-comparison]  rows and columns
            yield "rows of classes are computed from rows of pairs"
        elif differ(self.shape[0], self.operand.shape[0]):
            yield "the operand has another number of rows"


@expression
class Contract(Expression):
    """Sums of products: `[..., rows..., depth...]` by `[..., depth..., N]`; the leading axes broadcast.

    A matrix product has one axis of rows and one of depth; a convolution has several of both. Without
    `scale`, the result is the sum over the depth of

    - `a * (b - b_zero)` for floats; `b` may be stored in fewer bytes, as halves or 8-bit integers;
    - `(a - a_zero) * (b - b_zero)` for integers of 8 bits, signed or not, in int32, which wraps around.

    With `scale`, of shape `[depth..., N]` whose last axis of the depth has size 1, the result is the sum of
    `a * ((b - b_zero) * scale)`; `b_zero` and `scale` may be stored in fewer bytes. Zero points broadcast to
    their operand, and are 0 where there are none; each row of `a` has one. If `packs` is above 1, a byte of
    `b` packs so many unsigned integers along the last axis of the depth, the lowest bits first.

    If `finite`, `b` has no infinities or NaN: otherwise the run fails before its results count.

    With `a_scale` and `a_sums`, of shape `[..., rows..., blocks, 1]`, `a` is of int8, and its blocks have
    scales too; `a_sums` are the sums over its blocks, by which kernels multiply zero points. Each eight
    elements of `a` are those of even and then of odd places, if `packs` is 2.
    """

    a: Expression
    b: Expression
    rows: int
    depth: int
    a_zero: Expression | None = None
    scale: Expression | None = None
    b_zero: Expression | None = None
    packs: int = 1
    a_scale: Expression | None = None
    a_sums: Expression | None = None
    finite: bool = False

    def violations(self) -> Iterator[str]:
        """Yield violations of the ranks, the sizes and the element types."""
        a, b, rows, depth = self.a, self.b, self.rows, self.depth
        if a.rank < rows + depth or b.rank < depth + 1:
            yield f"{rows} axes of rows and {depth} of depth in ranks {a.rank} and {b.rank}"
            return
        if self.packs != 1 and (self.scale is None or b.element != "uint8"):
            yield f"{self.packs} integers in an element of {b.element}, with scales or without"
        of_b = (*b.shape[b.rank - 1 - depth : -2], b.shape[-2] * self.packs)
        if not agree(a.shape[a.rank - depth :], of_b):
            yield f"the depths {a.shape[a.rank - depth :]} and {of_b} differ"
        inner = (*a.shape[a.rank - depth - rows : a.rank - depth], b.shape[-1])
        if not agree(inner, self.shape[len(self.shape) - len(inner) :]):
            yield f"rows and columns {inner} of {self.shape}"
        batch = self.shape[: len(self.shape) - len(inner)]
        for of in (a.shape[: a.rank - depth - rows], b.shape[: b.rank - depth - 1]):
            if not broadcasts(of, batch):
                yield f"a batch {of} does not broadcast to {batch}"
        integers = (*b.shape[:-2], b.shape[-2] * self.packs, b.shape[-1])
        for zero, shape in ((self.a_zero, a.shape), (self.b_zero, integers)):
            if zero is not None and not broadcasts(zero.shape, shape):
                yield f"a zero point {zero.shape} does not broadcast to {shape}"
        expected = _BYTES if self.element == "int32" else {self.element}
        if self.a_scale is not None:
            expected = {"int8"}
            if self.a_sums is None or self.scale is None:
                yield "an operand whose blocks have scales needs sums, and weights with scales"
        if a.element not in expected or (self.element == "int32" and b.element not in _BYTES):
            yield f"the operands are {a.element} and {b.element}"


@expression
class Windows(Expression):
    """The windows that slide along `axes`: the operand as `im2col` reads it, without a copy.

    In the shape, the size of each of `axes` is the number of windows along it. The taps of a window are
    further axes at the end, one for each of `axes`. All windows are inside the operand.
    """

    operand: Expression
    axes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def is_large(self) -> bool:
        """Whether a window has more taps than there are windows, as in the gradient of filters.

        That has as many where filters are as large as the images of their results. The channels of its
        operand `[batch, ..., channels]` are then the images, which are fewer than the channels of each.
        """
        counts = [n for axis in self.axes if isinstance(n := self.shape[axis], int)]
        sizes = [n for n in self.shape[self.operand.rank :] if isinstance(n, int)]
        if len(counts) < len(self.axes):
            return False
        if len(sizes) < len(self.axes) or math.prod(sizes) > math.prod(counts):
            return True
        batch, channels = self.operand.shape[0], self.operand.shape[-1]
        is_gradient = isinstance(batch, int) and (not isinstance(channels, int) or batch > channels)
        return math.prod(sizes) == math.prod(counts) > 1 and is_gradient

    def violations(self) -> Iterator[str]:
        """Yield violations of the axes, and windows that reach beyond the operand."""
        x = self.operand
        if not are_axes(self.axes, x.rank) or self.rank != x.rank + len(self.axes):
            yield f"axes {self.axes} of rank {x.rank} in rank {self.rank}"
            return
        kernel = self.shape[x.rank :]
        for axis, size, stride, dilation in zip(self.axes, kernel, self.strides, self.dilations, strict=True):
            reach = (self.shape[axis] - 1) * stride + (size - 1) * dilation + 1
            if self.shape[axis] != 0 and size != 0 and exceeds(reach, x.shape[axis]):
                yield f"windows reach {reach} of {x.shape[axis]} elements along axis {axis}"
        if self.element != x.element:
            yield "the operand has another element type"


@expression
class Slide(Expression):
    """A reduction over the taps of windows, the last `taps` axes of the operand: pooling, depthwise Conv.

    `op` is `sum`, `max` or `min`. Without `weights`, the result is the reduction of the operand. With
    `weights` `[C, taps...]`, which broadcast to the operand `[..., C, taps...]`, it is the sum of the
    products. Weights of floats may be stored in fewer bytes. For 8-bit integers the result is the int32 sum
    of `(operand - zero) * (weights - weights_zero)`. If `mixed` is above 1, the C
    channels are groups of `mixed` channels, the weights are `[C, mixed, taps...]`, and each result is also
    the sum over the channels of its group.
    """

    op: str
    operand: Expression
    weights: Expression | None
    taps: int
    zero: int = 0
    weights_zero: int = 0
    mixed: int = 1

    def violations(self) -> Iterator[str]:
        """Yield violations of the shapes of the result and of the weights."""
        x = self.operand
        if not 0 <= self.taps <= x.rank:
            yield f"{self.taps} taps of rank {x.rank}"
        elif not agree(self.shape, x.shape[: x.rank - self.taps]):
            yield f"the operand has the shape {x.shape}"
        if self.weights is None or not self.taps:
            return
        if not agree(self.weights.shape[self.weights.rank - self.taps :], x.shape[x.rank - self.taps :]):
            yield f"weights of shape {self.weights.shape} for windows {x.shape[x.rank - self.taps :]}"


# ---------------------------------------------------------------- views


@expression
class Permute(Expression):
    """The axes in another order: axis `i` of the result is axis `axes[i]` of the operand."""

    operand: Expression
    axes: tuple[int, ...]

    def violations(self) -> Iterator[str]:
        """Yield violations of the order."""
        x = self.operand
        if sorted(self.axes) != [*range(x.rank)]:
            yield f"{self.axes} is no order of {x.rank} axes"
        elif not agree(self.shape, tuple(x.shape[axis] for axis in self.axes)):
            yield f"the operand has the shape {x.shape}"
        if self.element != x.element:
            yield "the operand has another element type"


@expression
class Reshape(Expression):
    """The same elements, in row-major order, in another shape."""

    operand: Expression

    def violations(self) -> Iterator[str]:
        """Yield violations of the number of elements."""
        before, after = product(self.operand.shape), product(self.shape)
        if before is not None and after is not None and differ(before, after):
            yield f"{before} elements as {self.shape}"
        if self.element != self.operand.element:
            yield "the operand has another element type"


@expression
class Expand(Expression):
    """The operand broadcast to the shape."""

    operand: Expression

    def violations(self) -> Iterator[str]:
        """Yield violations of the shape."""
        if not broadcasts(self.operand.shape, self.shape):
            yield f"{self.operand.shape} does not broadcast"
        if self.element != self.operand.element:
            yield "the operand has another element type"


@expression
class Slice(Expression):
    """A range of each axis: from a first index in steps, which may be negative."""

    operand: Expression
    starts: Sizes
    steps: tuple[int, ...]

    def violations(self) -> Iterator[str]:
        """Yield violations of the ranks, and ranges that reach beyond an axis."""
        x = self.operand
        if not x.rank == self.rank == len(self.starts) == len(self.steps):
            yield f"rank {x.rank}, {len(self.starts)} starts and {len(self.steps)} steps"
            return
        for axis, (start, step, size) in enumerate(zip(self.starts, self.steps, self.shape, strict=True)):
            last = start + (size - 1) * step
            if size == 0 or not isinstance(last, int):
                continue
            if last < 0 or (isinstance(start, int) and start < 0) or exceeds(last + 1, x.shape[axis]):
                yield f"elements {start} to {last} of {x.shape[axis]} along axis {axis}"
        if self.element != x.element:
            yield "the operand has another element type"


# ---------------------------------------------------------------- moving by index, joining


@expression
class Take(Expression):
    """The operand at `indices` along an axis; negative indices count from the end.

    In the shape of the operand the axis is replaced by the shape of the indices. An index outside of the axis
    is an error of the run.
    """

    operand: Expression
    indices: Expression
    axis: int

    checks_indices: ClassVar[bool] = True

    def violations(self) -> Iterator[str]:
        """Yield violations of the axis and the shape."""
        x = self.operand
        if not are_axes([self.axis], x.rank):
            yield f"there is no axis {self.axis}"
            return
        shape = (*x.shape[: self.axis], *self.indices.shape, *x.shape[self.axis + 1 :])
        if not agree(shape, self.shape):
            yield f"the shape would be {shape}"
        if self.element != x.element:
            yield "the operand has another element type"


@expression
class Scatter(Expression):
    """The operand with one update for each index along an axis, in the order of the updates along that axis.

    Indices and updates have one shape, of the rank of the operand. `op` combines an element with its update;
    if it is empty, the update replaces the element. A negative index counts from the end. An index outside of
    the axis is an error of the run, and so is an axis of the updates that is longer than that of the operand,
    except the axis of the indices.
    """

    operand: Expression
    indices: Expression
    updates: Expression
    axis: int
    op: str = ""

    checks_indices: ClassVar[bool] = True

    def violations(self) -> Iterator[str]:
        """Yield violations of the axis and the shapes."""
        x = self.operand
        if not are_axes([self.axis], x.rank):
            yield f"there is no axis {self.axis}"
        if not agree(self.shape, x.shape) or self.element != x.element:
            yield "the operand has another type"
        if not agree(self.indices.shape, self.updates.shape) or self.updates.rank != x.rank:
            yield f"indices {self.indices.shape} and updates {self.updates.shape}"


@expression
class Join(Expression):
    """Tensors concatenated along an axis."""

    parts: tuple[Expression, ...]
    axis: int

    def violations(self) -> Iterator[str]:
        """Yield violations of the shapes of the parts."""
        total: Size = 0
        for part in self.parts:
            if part.rank != self.rank or not are_axes([self.axis], self.rank):
                yield f"a part of rank {part.rank} along axis {self.axis}"
                return
            total += part.shape[self.axis]
            if not agree(_except(self.axis, part.shape), _except(self.axis, self.shape)):
                yield f"a part has the shape {part.shape}"
            if part.element != self.element:
                yield f"a part is {part.element}"
        if differ(total, self.shape[self.axis]):
            yield f"the parts have {total} elements along axis {self.axis}"


@expression
class Pad(Expression):
    """The operand surrounded by a number; `before` counts the elements added before it on each axis."""

    operand: Expression
    before: Sizes
    number: float = 0

    def violations(self) -> Iterator[str]:
        """Yield violations of the ranks and the sizes."""
        x = self.operand
        if not x.rank == self.rank == len(self.before):
            yield f"rank {x.rank} and {len(self.before)} numbers of elements before"
            return
        for size, before, whole in zip(x.shape, self.before, self.shape, strict=True):
            if exceeds(before + size, whole):
                yield f"{before} elements before {size} exceed {whole}"
        if self.element != x.element:
            yield "the operand has another element type"
