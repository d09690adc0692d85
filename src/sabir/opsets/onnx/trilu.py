"""Trilu: the triangle of a matrix above or below a diagonal."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import BFLOAT16 as BRAIN
from sabir.elements import FLOAT, STRING
from sabir.ir import Builder, Value
from sabir.opsets.families.indexing import triangles
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.extents import indices, shape_of, sizes, unsqueezed
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output

trilu = Operator(
    "Trilu", summary="Each matrix of `input` with zeros below (or, with `upper` 0, above) its diagonal `k`."
)

T = Constraint("T", CLASSIC, BFLOAT16)

v14 = trilu.first(
    14,
    inputs=[
        Input("input", T, "Matrices along the last two dimensions.", differentiable=True),
        triangles.DIAGONAL,
    ],
    outputs=[
        Output("output", T, "The triangles, zeros (empty strings, False) outside.", differentiable=True)
    ],
    attributes=[triangles.UPPER],
)


v14.infer(triangles.infer)
v14.evaluate(triangles.evaluate)
v14.lower(triangles.lower)


@v14.downgrade
def select(b: Builder, x: Value, k: Value | None = None, /, *, upper: int) -> Value:
    """Replace the elements outside by zeros; bfloat16, which Where:9 does not admit, passes as float."""
    kind, rank = element_of(x), len(shape_of("input", x))
    rows, columns = (indices(b, sizes(b, x, [axis])) for axis in (rank - 2, rank - 1))
    diagonals = b.Sub(columns, unsqueezed(b, rows, [1]))
    bound = b.initializer("k", np.array(0, np.int64)) if k is None else k
    outside = b.Less(diagonals, bound) if upper else b.Greater(diagonals, bound)
    wide = FLOAT if kind is BRAIN else kind
    zero = b.initializer("zero", np.array("" if wide is STRING else 0, wide.dtype))
    y = b.Where(outside, zero, x if wide is kind else b.Cast(x, to=wide.number))
    return y if wide is kind else b.Cast(y, to=kind.number)


@v14.gradient
def gradient(g: Gradient, x: Value, k: Value | None = None, /, *, upper: int) -> tuple[Value, None]:
    return g.Trilu(g.dy, k, upper=upper), None


@trilu.examples
def examples() -> Iterator[Example]:
    nan = np.nan
    x = [[1, 2, 3], [4, 5, 6], [7, 8, nan]]
    results = {  # by `upper` and `k`
        (1, 1): [[0, 2, 3], [0, 0, 6], [0, 0, 0]],
        (1, -1): [[1, 2, 3], [4, 5, 6], [0, 8, nan]],
        (0, 0): [[1, 0, 0], [4, 5, 0], [7, 8, nan]],
        (0, 1): [[1, 2, 0], [4, 5, 6], [7, 8, nan]],
        (0, -2): [[0, 0, 0], [0, 0, 0], [7, 0, 0]],
        (1, 9): [[0, 0, 0]] * 3,
        (0, -(2**63)): [[0, 0, 0]] * 3,
    }
    for (upper, k), result in results.items():
        yield Example(14, x, k, upper=upper, expect=[result])
    yield Example(14, x, upper=1, expect=[[[1, 2, 3], [0, 5, 6], [0, 0, nan]]])
    wide = [[[1, 2, 3], [4, 5, 6]], [[-1, -2, -3], [-4, -5, -6]]]
    yield Example(14, wide, expect=[[[[1, 2, 3], [0, 5, 6]], [[-1, -2, -3], [0, -5, -6]]]])
    yield Example(14, wide[0], [1], upper=0, expect=[[[1, 2, 0], [4, 5, 6]]])
    brain = np.ones((2, 2), ml_dtypes.bfloat16)
    yield Example(14, brain, upper=0, expect=[[[1, 0], [1, 1]]])
    words = [["a", "b"], ["c", "d"]]
    yield Example(14, words, expect=[[["a", "b"], ["", "d"]]])
    yield Example(14, np.ones((0, 2, 0), bool), expect=[np.ones((0, 2, 0), bool)])
