"""Graphs drawn at random, with feeds of several shapes and a bound on how far two engines may differ.

`Graphs(choose, runs)` draws with `choose(n)`, a number below n: hypothesis gives one, or `random.Random(seed)`. The
size of a dimension is a tuple, one number for each run of the model. Of each value it is known how large
its numbers are and how far rounding can move them; so a function that jumps is applied to exact values only.
The modules beside this one have the calls that are drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import sabir
from sabir.elements import element
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Model, Value

Dim = tuple[int, ...]  # the size in each run
Shape = tuple[Dim, ...]
SIZES = (3, 2, 1, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 0)
FLOATS = ("float", "double")
INTEGERS = ("int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
WIDE = ("int64", "int32", "uint64", "uint32")
KINDS = (
    "float",
    "float",
    "float",
    "double",
    "int64",
    "float",
    "int32",
    "bool",
    "uint8",
    "int8",
    "uint64",
    "int16",
)
MOST = 6000  # elements of a value in a run
EPSILON = {"float": 2.0**-23, "double": 2.0**-52}


class Made(NamedTuple):
    """A value of the graph: `high` bounds its magnitude, `error` what engines may differ by.

    All its numbers are multiples of `grain`; those of 0 are any.
    """

    value: Value
    kind: str
    shape: Shape
    high: float = 1.0
    error: float = 0.0
    grain: float = 1.0

    @property
    def is_float(self):
        return self.kind in FLOATS

    @property
    def exact(self):
        return self.error == 0 and (not self.is_float or self.grain > 0)

    @property
    def rank(self):
        return len(self.shape)


class Fed(NamedTuple):
    """An input of the model and the array that a run feeds to it, from random numbers."""

    name: str
    array: Callable[[int, np.random.Generator], np.ndarray]
    layout: int


class Drawn(NamedTuple):
    """A model, what feeds it, and by how much each output may differ: absolutely."""

    model: Model
    fed: list[Fed]
    tolerances: list[float]
    shared: bool  # inputs of one shape may be one array

    def feeds(self, run, rng):
        """The feeds of a run."""
        made = {f.name: np.asarray(f.array(run, rng)) for f in self.fed}
        alike: dict[object, np.ndarray] = {}
        for f in self.fed if self.shared else ():
            x = made[f.name]
            made[f.name] = alike.setdefault((x.dtype, x.shape, x.min(initial=0) < 0, x.max(initial=0) > 8), x)
        return {f.name: laid_out(made[f.name], f.layout) for f in self.fed}


def dtype_of(kind):
    return element(kind).dtype


def laid_out(x, layout):
    """The same array in another place: in another order, with gaps, not aligned, or the given one."""
    if layout == 1 and x.ndim:
        return np.asfortranarray(x)
    if layout == 2 and x.ndim:
        return np.repeat(x, 2, -1)[..., ::2]
    if layout == 3 and x.ndim:
        return x[::-1].copy()[::-1]
    if layout == 4:
        raw = np.zeros(x.nbytes + 1, np.uint8)
        moved = raw[1:].view(x.dtype).reshape(x.shape)
        moved[...] = x
        return moved
    if layout == 5:
        x.flags.writeable = False
    return x


def numbers(kind, shape, rng, high, grain):
    """Random numbers up to a magnitude."""
    if kind == "bool":
        return rng.random(shape) < 0.5
    dtype = dtype_of(kind)
    if kind in FLOATS:
        if not grain:
            return rng.uniform(-high, high, shape).astype(dtype)
        return np.asarray(rng.integers(-int(high / grain), int(high / grain) + 1, shape) * grain).astype(
            dtype
        )
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -int(high)), min(info.max, int(high)), shape, dtype, endpoint=True)


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two, None where there is none in some run."""
    if len(a) < len(b):
        a, b = b, a
    tail = []
    for m, n in zip(a[len(a) - len(b) :], b, strict=True):
        if any(i != j and 1 not in {i, j} for i, j in zip(m, n, strict=True)):
            return None
        tail.append(tuple(j if i == 1 else i for i, j in zip(m, n, strict=True)))
    return (*a[: len(a) - len(b)], *tail)


def product(dims, runs):
    """The size of merged dimensions."""
    return tuple(math.prod(d[run] for d in dims) for run in range(runs))


def count(x: Made, axes):
    """The most elements along some axes."""
    return max([1, *(product([x.shape[a] for a in axes], len(x.shape[0])) if axes else ())])


def replaced(shape, axis, *dims):
    return (*shape[:axis], *dims, *shape[axis + 1 :])


def worst(parts):
    """The bounds that hold for all of some values."""
    grain = 0.0 if any(p.grain == 0 for p in parts) else min(p.grain for p in parts)
    return {"high": max(p.high for p in parts), "error": max(p.error for p in parts), "grain": grain}


class Graphs:  # ruff: ignore[too-many-public-methods]  one for each kind of choice
    """Draws one graph: its inputs and constants, and the values that calls add to `pool`."""

    def __init__(self, choose: Callable[[int], int], runs: int) -> None:
        self.choose, self.runs = choose, runs
        self.top = self.b = sabir.Builder(opset=24)
        self.pool: list[Made] = []
        self.fed: list[Fed] = []
        self.named: dict[Dim, str] = {}
        self.nested = False
        self.symbols = self.pick([0, 1, 2, 3])  # how sizes are declared: by number, symbol, not, or each anew
        self.static = [self.dim(many=False) for _ in range(2)]
        self.dims = [*self.static, *(self.dim(many=True) for _ in range(3))]

    # ------------------------------------------------------------ choices

    def pick(self, options):
        return options[self.choose(len(options))]

    def chance(self, one_in):
        """Whether something rare happens."""
        return self.choose(one_in) == one_in - 1

    def dim(self, *, many):
        if not many:
            return (self.pick(SIZES),) * self.runs
        return tuple(self.pick(SIZES) for _ in range(self.runs))

    def shape(self, least=0, most=4):
        rank = self.pick([r for r in (2, 3, 1, 4, 0) if least <= r <= most])
        return tuple(self.pick([*self.dims, self.one]) for _ in range(rank))

    @property
    def one(self):
        return (1,) * self.runs

    def axis(self, x: Made):
        """An axis of a value, and the same as a call may name it."""
        axis = self.choose(x.rank)
        return axis, self.pick([axis, axis - x.rank])

    def some(self, *, kinds=None, rank=0, exact=False) -> Made:
        """A value of the pool, or a new one, that a call can take."""
        fit = [x for x in self.pool if self.fits(x, kinds, rank, exact)]
        if fit and not self.chance(6):
            return fit[-1 - min(self.choose(len(fit)), self.choose(len(fit)))]  # newer ones more often
        kind = self.pick([k for k in KINDS if kinds is None or k in kinds])
        return self.new(kind, self.shape(rank), exact=exact)

    def fits(self, x, kinds, rank, exact):
        return (kinds is None or x.kind in kinds) and x.rank >= rank and (x.exact or not exact)

    # ------------------------------------------------------------ inputs and constants

    def is_static(self, shape: Shape):
        return all(len(set(d)) == 1 for d in shape)

    def new(self, kind, shape, *, exact=True, high=None) -> Made:
        """A new input, or a constant."""
        if self.is_static(shape) and self.chance(2):
            return self.constant(kind, shape, exact=exact, high=high)
        high, grain = self.magnitude(kind, exact, high)
        return self.input(kind, shape, high, grain, lambda sizes, rng: numbers(kind, sizes, rng, high, grain))

    def magnitude(self, kind, exact, high):
        if kind not in FLOATS:
            return high or self.pick([5, 5, 100, 2**70]), 1.0
        return high or self.pick([4.0, 4.0, 1.0]), 0.5 if exact or not self.chance(3) else 0.0

    def constant(self, kind, shape, *, exact=True, high=None) -> Made:
        high, grain = self.magnitude(kind, exact, high)
        rng = np.random.default_rng(self.choose(1000))
        array = numbers(kind, tuple(d[0] for d in shape), rng, high, grain)
        value = self.b.initializer(f"c{len(self.b.graph.initializers)}", array)
        return self.bounded(Made(value, kind, shape, high, 0.0, grain))

    def input(self, kind, shape, high, grain, array) -> Made:
        """A new input of the model; `array` makes what is fed, from sizes and random numbers."""
        name = f"x{len(self.fed)}"
        declared = None if self.chance(12) else [self.declared(d, f"{name}_{i}") for i, d in enumerate(shape)]
        self.top.input(name, element(kind) if declared is None else kind, declared)
        value = self.top.graph.inputs[-1]
        if declared is None:
            value.type = TensorType(element(kind))
        self.fed.append(Fed(name, lambda run, rng: array(tuple(d[run] for d in shape), rng), self.choose(6)))
        made = self.bounded(Made(value, kind, shape, high, 0.0, grain))
        self.pool.append(made)
        return made

    def declared(self, dim, own):
        same = len(set(dim)) == 1
        if self.symbols == 0 and same:
            return dim[0]
        if self.symbols == 2:
            return None
        if self.symbols == 3:
            return dim[0] if same and self.chance(2) else own
        return self.named.setdefault(dim, f"N{len(self.named)}")

    @staticmethod
    def bounded(x: Made) -> Made:
        """The value, with the magnitude that its element type allows."""
        if x.is_float:
            return x
        return x._replace(
            high=1 if x.kind == "bool" else min(x.high, float(np.iinfo(dtype_of(x.kind)).max)), grain=1.0
        )

    # ------------------------------------------------------------ results

    def result(self, value, kind, shape, high=1.0, error=0.0, grain=0.0) -> Made | None:
        """What a call computes; None where its numbers could be too large, or too far off."""
        if not self.is_small(shape):
            return None
        if kind not in FLOATS:
            return self.bounded(Made(value, kind, shape, high if high < 2**31 else 2.0**70))
        if high > 1e6 or (not grain and error > 1e-3 * max(high, 1)):
            return None
        if not grain or high / grain > 2**20:
            grain, error = 0.0, error + 6 * EPSILON[kind] * high
        return Made(value, kind, shape, high, error, grain)

    def same(self, x: Made, value, **changed) -> Made | None:
        """What a call computes that only moves the numbers of `x`."""
        made = x._replace(value=value, **changed)
        return self.bounded(made) if self.is_small(made.shape) else None

    def is_small(self, shape: Shape):
        return all(math.prod(d[run] for d in shape) <= MOST for run in range(self.runs))

    def sizes(self, shape: Shape):
        """A tensor with a shape: a constant, or computed from the shapes of values; None where none has it."""
        if self.is_static(shape):
            return np.array([d[0] for d in shape], np.int64)
        parts = []
        for dim in shape:
            if len(set(dim)) == 1:
                parts.append(np.array([dim[0]], np.int64))
                continue
            found = [(x, axis) for x in self.pool for axis, d in enumerate(x.shape) if d == dim]
            if not found:
                return None
            x, axis = self.pick(found)
            parts.append(self.b.Gather(self.b.Shape(x.value), np.array([axis], np.int64)))
        return self.b.Concat(*parts, axis=0)

    # ------------------------------------------------------------ the whole

    def add(self, made):
        for x in made if isinstance(made, list) else [made]:
            if x is not None and x not in self.pool:
                self.pool.append(x)

    def finish(self) -> Drawn:
        """The model with some values as outputs."""
        computed = [x for x in self.pool if x.value.node is not None] or self.pool
        unread = [x for x in computed if not x.value.uses]
        outputs = unread[-4:] or computed[-1:]
        for _ in range(self.pick([0, 1, 2])):
            x = self.pick(self.pool)
            if all(x.value is not y.value for y in outputs):
                outputs.append(x)
        for x in outputs:
            self.top.output(x.value)
        return Drawn(self.top.model(), self.fed, [x.error for x in outputs], self.chance(3))
