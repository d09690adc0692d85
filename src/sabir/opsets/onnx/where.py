"""Where: one of two values, chosen by a condition, elementwise."""

import math
from collections.abc import Iterator
from itertools import starmap

import ml_dtypes
import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.elements import INT32, INT64
from sabir.ir import Builder, Item, TensorType, Value, known_equal
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import broadcasting
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS
from sabir.opsets.families.numbers.results import computed
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import static_shape
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, BOOL, CLASSIC, Constraint, Example, Input, Operator, Output

where = Operator("Where", summary="The element of `X` where `condition` is true, else the element of `Y`.")

B = Constraint("B", BOOL)
T = Constraint("T", CLASSIC)

_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_MANY = 1 << 12  # elements

v9 = where.first(
    9,
    inputs=[
        Input("condition", B, "Chooses between `X` and `Y`.", differentiable=False),
        Input("X", T, "Taken where `condition` is true.", differentiable=True),
        Input("Y", T, "Taken where `condition` is false.", differentiable=True),
    ],
    outputs=[Output("output", T, "The shape that all three inputs broadcast to.", differentiable=True)],
)
v16 = v9.widen(16, T=BFLOAT16)


@v9.infer
def infer(condition: TensorType, x: TensorType, y: TensorType, /) -> TensorType:
    result = TensorType(broadcasting.merged(x, y).element, broadcasting.merged(condition, x, y).shape)
    if not isinstance(result.size, int) or result.size > contents.MOST:
        return result
    if result.size == 0:
        return result.with_known(())
    shape = [d for d in result.shape or () if isinstance(d, int)]
    known = [np.broadcast_to(_contents(t), shape) for t in (condition, x, y)]
    rows = list(starmap(_chosen, np.broadcast(*known)))
    return result if None in rows and all(r is None for r in rows) else result.with_known(rows)


def _contents(t: TensorType) -> Array:
    """Return the contents as objects; None, which broadcasts, where they are unknown."""
    known = contents.objects(t)
    return np.array(None, object) if known is None else known


def _chosen(condition: Item, x: Item, y: Item) -> Item:
    if condition is not None:
        return x if condition else y
    same = not isinstance(x, (str, float)) and not isinstance(y, (str, float)) and known_equal(x, y)
    return x if same else None


v9.lower(kernels.elementwise("where"))


@v9.evaluate
def evaluate(condition: Array, x: Array, y: Array, /) -> Array:
    """Choose among many elements by their bits: numpy branches at each, which a processor cannot foresee."""
    bits = _BITS.get(x.dtype.itemsize)
    if bits is None or x.dtype != y.dtype or x.dtype.hasobject or condition.size < _MANY:
        return np.where(condition, x, y)
    kept, other = x.view(bits), y.view(bits)
    mask = np.logical_not(condition).astype(bits)
    mask -= 1  # all bits where the condition is true
    if other.ndim or other:
        chosen = computed(np.bitwise_xor, kept, other)
        chosen = computed(np.bitwise_and, chosen, mask)
        return computed(np.bitwise_xor, chosen, other).view(x.dtype)
    return computed(np.bitwise_and, kept, mask).view(x.dtype)


@v16.gradient
def gradient(g: Gradient, condition: Value, x: Value, y: Value, /) -> tuple[None, Value, Value]:
    return None, g.fit(g.Where(condition, g.dy, 0), x), g.fit(g.Where(condition, 0, g.dy), y)


@v9.downgrade
def gather(b: Builder, condition: Value, x: Value, y: Value, /) -> Value:
    """Number all elements of `X` and then those of `Y`, and gather the number that is chosen.

    Products with the condition serve only integers: an infinity or NaN that is not chosen would spoil them.
    """
    kind = element_of(x)
    if kind is BOOLEAN:
        return b.Or(b.And(condition, x), b.And(b.Not(condition), y))
    if kind.is_integer:
        wide = kind if f"tensor({kind})" in LARGE_INTEGERS else INT32
        one, x, y = (b.Cast(v, to=wide.number) for v in (condition, x, y))
        chosen = b.Add(b.Mul(one, x), b.Mul(b.Sub(Numbers(b, wide)(1), one), y))
        return b.Cast(chosen, to=kind.number)
    first, second = starmap(static_shape, (("X", x), ("Y", y)))
    count = math.prod(first)
    numbers, others = (np.arange(math.prod(s), dtype=np.int64).reshape(s) for s in (first, second))
    flat = b.Concat(*(b.Reshape(v, as_input(b, "flat", [-1])) for v in (x, y)), axis=0)
    own, other = b.initializer("own", numbers), b.initializer("other", others + count)
    place = b.Add(other, b.Mul(b.Cast(condition, to=INT64.number), b.Sub(own, other)))
    return b.Gather(flat, place, axis=0)


@where.examples
def examples() -> Iterator[Example]:
    x, y = [[1.0, np.nan], [3.0, 4.0]], [-1.0, -2.0]
    for opset in (9, 16):
        condition = [[True], [False]]
        chosen = [[1.0, np.nan], [-1.0, -2.0]]
        yield Example(opset, condition, x, y, expect=[chosen])
        yield Example(opset, 0, np.int8(1), -1, expect=[-1])
        texts = ["a", "b"], "c"
        yield Example(opset, [True, False], *texts, expect=[["a", "c"]])
        yield Example(opset, np.ones((0, 1), bool), x[0], y, expect=[np.zeros((0, 2), np.float32)])
        # exporters compute shapes like this, where -1 keeps a size
        sizes = np.array([2, -1, 4])
        yield Example(opset, sizes == -1, np.ones(3, np.int64), sizes, expect=[[2, 1, 4]])
    halves, others = np.array([[1, 2], [-1, -2]], ml_dtypes.bfloat16)
    yield Example(16, [False, True], halves, others, expect=[[-1, 2]])
