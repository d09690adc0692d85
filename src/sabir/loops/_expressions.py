"""Tensor expressions: immutable, compared by identity, each with its element type and its shape.

They say what is computed, and not in which order, in which memory, or by how many kernels: the compiler
decides that for the expressions of a whole graph at once. A shape has no unknown sizes: each is a number or
symbolic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sabir.ir import Expr, Known

if TYPE_CHECKING:
    from sabir.ir import Array

Size: TypeAlias = int | Expr
Sizes: TypeAlias = tuple[Size, ...]

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = frozenset({"float", "double"})
HALVES = frozenset({"float16", "bfloat16"})  # kernels move them, and compute with them as float
SMALL_INTEGERS = frozenset({"int4", "uint4", "int2", "uint2"})  # in memory each has a byte, and so has
SMALL_FLOATS = frozenset({  # one of these; kernels move and convert both
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
    "float6e2m3", "float6e3m2", "float4e2m1",
})  # fmt: skip
ELEMENTS = FLOATS | HALVES | INTEGERS | SMALL_INTEGERS | SMALL_FLOATS | {"bool"}  # what kernels know


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A tensor that is computed when it is needed.

    `element` is the name of an element type, one of `ELEMENTS`.
    """

    element: str
    shape: Sizes

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.element in FLOATS or self.element in HALVES


@dataclass(frozen=True, slots=True, eq=False)
class Stored(Expression):
    """A tensor in memory: an operand of a node, by the slot of its value, or an `array` that a lowering made.

    `known` has its contents where they are known before a run, symbolic ones too. `origin` is what a constant
    was computed from, where that is smaller.
    """

    slot: int = 0
    known: Known | None = field(default=None, repr=False)
    array: Array | None = field(default=None, repr=False)
    origin: Expression | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Number(Expression):
    """One number, of rank 0."""

    number: float = 0


@dataclass(frozen=True, slots=True, eq=False)
class Extent(Expression):
    """A size as one number, of rank 0."""

    size: Size = 0


@dataclass(frozen=True, slots=True, eq=False)
class Count(Expression):
    """The index along one axis: element `[..., i, ...]` is `i`."""

    axis: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Map(Expression):
    """A scalar function of each element; the operands broadcast to the shape as in numpy.

    `op` is a name of `sabir.loops.ARITY`. The operands have one element type, but those of `where` (its first
    is bool) and of `cast`.
    """

    op: str = ""
    operands: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Expression):
    """All elements along some axes combined by `sum`, `prod`, `max` or `min`; the axes stay, with size 1.

    `argmax` and `argmin` give the index, in int64, of the first extreme along one axis; `last` of the last.
    """

    op: str = ""
    operand: Expression = field(default_factory=lambda: Number("float", ()))
    axes: tuple[int, ...] = ()
    last: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Cumulate(Expression):
    """The running `sum` or `prod` along an axis, in the order of the index, or of its reverse.

    An exclusive one leaves out the element itself; it begins with 0, or 1.
    """

    op: str = ""
    operand: Expression = field(default_factory=lambda: Number("float", ()))
    axis: int = 0
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Best(Expression):
    """The indices along an axis, in int64, of the first elements in descending or ascending order.

    The size of the axis is how many there are. Equal elements are in the order of their index; NaN is greater
    than any number.
    """

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    axis: int = 0
    largest: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Couple(Expression):
    """The probabilities of classes that agree most with those of pairs, after Wu, Lin and Weng: `[N, C]`.

    `[N, 2 * P]` has for each pair that of its first class, then for each that of its second one.
    """

    operand: Expression = field(default_factory=lambda: Number("double", ()))
    iterations: int = 0
    tolerance: float = 0

    @property
    def axis(self) -> int:
        """The axis of pairs and of classes."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Contract(Expression):
    """Sums of products: `[..., rows..., depth...]` by `[..., depth..., N]`; the leading axes broadcast.

    Matrix products have one axis of `rows` and one of `depth`; convolutions have several of both. A product
    of floats may have a narrower `b`, of halves or 8-bit integers. One of integers has int32 elements, which
    wrap around: `a` is of uint8, and `zero`, one number, is subtracted from its elements; `b` is of 8-bit
    integers. In both, uint8 in `b` means the number less 128. With `scale`, `[depth..., N]` whose last axis
    of the depth has size 1, the elements of `b`, less `less` of the same shape, are multiplied by it; both
    may be narrower, too.
    """

    a: Expression = field(default_factory=lambda: Number("float", ()))
    b: Expression = field(default_factory=lambda: Number("float", ()))
    rows: int = 1
    depth: int = 1
    zero: Expression | None = None
    scale: Expression | None = None
    less: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Windows(Expression):
    """The windows that slide along some axes, each of which counts windows in the shape.

    The elements of a window are further axes at the end, one for each of `axes`. All windows lie inside.
    """

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    axes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()

    @property
    def is_large(self) -> bool:
        """Whether windows have more elements than there are windows, as in the gradient of filters."""
        counts = [n for axis in self.axes if isinstance(n := self.shape[axis], int)]
        sizes = [n for n in self.shape[self.operand.rank :] if isinstance(n, int)]
        if len(counts) < len(self.axes):
            return False
        return len(sizes) < len(self.axes) or math.prod(sizes) > math.prod(counts)


@dataclass(frozen=True, slots=True, eq=False)
class Slide(Expression):
    """The elements of windows combined: the last axes of the operand, so many as there are `taps`.

    `op` is `sum`, `max` or `min`. With `weights`, whose axes are the last ones of the operand, it is the sum
    of products; weights of floats may be stored in fewer bytes. Those of integers of 8 bits are summed as
    int32, the operand less `zero`, the weights, of which uint8 counts as 128 less, less `less`. With `mixed`,
    the axis before the windows has groups of so many elements, and each result sums up all of its group: the
    weights have an axis for these before those of the windows.
    """

    op: str = ""
    operand: Expression = field(default_factory=lambda: Number("float", ()))
    weights: Expression | None = None
    taps: int = 0
    zero: int = 0
    less: int = 0
    mixed: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Permute(Expression):
    """The axes in another order: axis `i` of the result is axis `axes[i]` of the operand."""

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Reshape(Expression):
    """The same elements, row by row, in another shape."""

    operand: Expression = field(default_factory=lambda: Number("float", ()))


@dataclass(frozen=True, slots=True, eq=False)
class Expand(Expression):
    """The operand broadcast to the shape."""

    operand: Expression = field(default_factory=lambda: Number("float", ()))


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Expression):
    """Each axis from a first index in steps, which may be negative."""

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    starts: Sizes = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Take(Expression):
    """The operand at `indices` along an axis; negative indices count from the end.

    The shape is that of the operand with the axis replaced by the shape of the indices. An index outside of
    the axis is an error of the run.
    """

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    indices: Expression = field(default_factory=lambda: Number("int64", ()))
    axis: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Scatter(Expression):
    """The operand with one update for each index along an axis, in the order of the updates along that axis.

    Indices and updates have one shape, of the rank of the operand. `op` combines an element with its update,
    and is empty where the update replaces it. A negative index counts from the end. An index outside of the
    axis is an error of the run, and so is a size of the updates that is larger than that of the operand, but
    along the axis.
    """

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    indices: Expression = field(default_factory=lambda: Number("int64", ()))
    updates: Expression = field(default_factory=lambda: Number("float", ()))
    axis: int = 0
    op: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Join(Expression):
    """Tensors side by side along an axis."""

    parts: tuple[Expression, ...] = ()
    axis: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Pad(Expression):
    """The operand with a number around it; `before` is how many precede it along each axis."""

    operand: Expression = field(default_factory=lambda: Number("float", ()))
    before: Sizes = ()
    number: float = 0


@dataclass(frozen=True, slots=True, eq=False)
class State(Expression):
    """What the steps of a recurrence carry on: along its first axis lies the state before each step."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound(Expression):
    """An operand of a recurrence, by its number, within the expressions of a step.

    A matrix that only products read may lie in memory as another element type.
    """

    number: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StepBody:
    """What each step of a recurrence computes of states and operands: new states, and outputs.

    The first axis of all its expressions counts the steps. Backwards, the first step fills the last index of
    the outputs; operands are in the order of the steps.
    """

    states: tuple[State, ...]
    after: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    backwards: bool = False

    @property
    def steps(self) -> Size:
        """The number of steps."""
        return self.states[0].shape[0]

    def __str__(self) -> str:
        order = "backwards" if self.backwards else "forwards"
        return f"{self.steps} steps {order}, {len(self.states)} states"


@dataclass(frozen=True, slots=True, eq=False)
class Recur(Expression):
    """A state after the last step of a recurrence; with a `number` from that of the states on, an output.

    The operands are the states before the first step, then those that the body names. The results of one
    recurrence share its body.
    """

    body: StepBody = field(default_factory=lambda: StepBody((), (), ()))
    operands: tuple[Expression, ...] = ()
    number: int = 0

    @property
    def initial(self) -> tuple[Expression, ...]:
        """The states before the first step."""
        return self.operands[: len(self.body.states)]

    @property
    def bound(self) -> tuple[Expression, ...]:
        """The operands that the body names."""
        return self.operands[len(self.body.states) :]


@dataclass(frozen=True, slots=True, eq=False)
class Descend(Expression):
    """What the leaves of decision trees give each row `[N, F]`, combined in the order of the trees: `[N, T]`.

    `op` is `sum`, `min` or `max`, of doubles. The features are unsigned integers of the type of `nodes`. A
    row that stands at place `p` goes to `next` or, where its feature is greater than the threshold, to the
    place after it: `nodes[p]` is the threshold and `next << bits | 8 * feature`. A place where it stays is a
    leaf: its `next` is itself and its threshold the largest integer, which that of other places is not.
    `roots` (2, a multiple of 8) has for each of the `trees` the place where it begins, and how many steps
    rows take in it before it is worth to look whether they are at leaves.

    Without `targets`, place `p` gives `weights[p]`. Else it gives `weights[v]` to `targets[v]` for each `v`
    from `first[p]` to before `first[p + 1]`. `widest` is the largest feature that a node reads, `steps` how
    many nodes a row meets at most.
    """

    operand: Expression = field(default_factory=lambda: Number("uint32", ()))
    op: str = ""
    nodes: Expression = field(default_factory=lambda: Number("uint32", ()))
    roots: Expression = field(default_factory=lambda: Number("int32", ()))
    weights: Expression = field(default_factory=lambda: Number("float", ()))
    first: Expression | None = None
    targets: Expression | None = None
    trees: int = 0
    bits: int = 0
    widest: int = 0
    steps: int = 0
