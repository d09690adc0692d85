"""CumProd: cumulative products along an axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value, mul
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS
from sabir.opsets.families.reduction import cumulation
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Operator, Output

cum_prod = Operator(
    "CumProd", summary="Each element times all before it along `axis`: `y[i] = x[0] * ... * x[i]`."
)

T = Constraint("T", FLOATS, BFLOAT16, LARGE_INTEGERS)

v26 = cum_prod.first(
    26,
    inputs=cumulation.inputs(T),
    outputs=[Output("y", T, "The cumulative products, in the shape of `x`.", differentiable=True)],
    attributes=cumulation.attributes(1),
)

v26.infer(cumulation.inferred(mul, 1))
v26.evaluate(cumulation.evaluated(np.multiply, 1))
v26.lower(cumulation.expressed("prod"))
v26.downgrade(cumulation.scanned("Mul", 1))


@v26.gradient
def gradient(g: Gradient, x: Value, axis: Value, /, *, reverse: int, exclusive: int) -> tuple[Value, None]:
    """The gradient by a factor behind some zeros is a multiple of these, which have slopes.

    What stands behind the first zeros is the gradient with 1 in their places. Fourth derivatives miss what
    passes four zeros.
    """
    zero = g.Equal(x, 0)
    zeros = g.CumSum(g.CastLike(zero, x), axis, reverse=reverse)
    rest = g.Where(zero, 1, x)

    def after(products: Value) -> Value:
        return g.CumSum(g.Mul(g.dy, products), axis, exclusive=exclusive, reverse=1 - reverse)

    def without(count: int) -> Value:
        """The gradient where so many zeros are replaced by 1."""
        replaced = g.Where(g.And(zero, g.LessOrEqual(zeros, count)), 1, x)
        return after(g.CumProd(replaced, axis, exclusive=exclusive, reverse=reverse))

    def passed(number: int) -> Value:
        """The zero of this number, behind it: a factor of all that follows."""
        chosen = g.And(zero, g.Equal(zeros, number))
        return g.CumSum(g.Where(chosen, x, 0), axis, reverse=reverse)

    first = passed(1)
    both = g.Mul(first, passed(2))
    found = g.Where(g.And(zero, g.Equal(zeros, 3)), g.Mul(both, without(3)), 0)
    for count, of_zero, of_other in ((2, first, both), (1, 1, first)):
        factor = g.Where(zero, of_zero, of_other)
        found = g.Where(g.Equal(zeros, count), g.Mul(factor, g.Div(without(count), rest)), found)
    return g.Where(g.Equal(zeros, 0), g.Div(after(g.y()), rest), found), None


@cum_prod.examples
def examples() -> Iterator[Example]:
    x = [[1.0, 2, 3], [4, 5, 6]]
    by_hand = {
        (0, 0): [[1, 2, 6], [4, 20, 120]],
        (1, 0): [[6, 6, 3], [120, 30, 6]],
        (0, 1): [[1, 1, 2], [1, 4, 20]],
        (1, 1): [[6, 3, 1], [30, 6, 1]],
    }
    for (reverse, exclusive), rows in by_hand.items():
        expect = [np.array(rows, np.float32)]
        yield Example(26, x, -1, reverse=reverse, exclusive=exclusive, expect=expect)
    yield Example(26, x, np.array(0, np.int32), expect=[[[1, 2, 3], [4, 10, 18]]])
    special = np.array([0, np.inf, np.nan])
    yield Example(26, special, 0, expect=[[0, np.nan, np.nan]])
    yield Example(26, special, 0, exclusive=1, expect=[[1, 0, np.nan]])
    wrapped = np.array([2**16, 2**16 + 1, 3], np.int32)
    yield Example(26, wrapped, 0, expect=[[2**16, 2**16, 3 * 2**16]])
    yield Example(26, np.array([2**63 + 1, 2], np.uint64), [0], expect=[[2**63 + 1, 2]])
    empty = np.zeros((2, 0), np.float32)
    yield Example(26, empty, 1, exclusive=1, expect=[empty])
    for dtype in (np.float16, ml_dtypes.bfloat16):  # rounding at each step would add up
        powers = 0.9921875 ** np.arange(1, 301)
        yield Example(26, np.full(300, 0.9921875, dtype), 0, expect=[powers.astype(dtype)], tolerance=1e-3)
