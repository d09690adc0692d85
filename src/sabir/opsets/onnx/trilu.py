"""Trilu: the triangle of a matrix above or below a diagonal."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import BFLOAT16 as BRAIN
from sabir.elements import FLOAT, STRING
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.extents import indices, shape_of, sizes, unsqueezed
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output

trilu = Operator(
    "Trilu", summary="Each matrix of `input` with zeros below (or, with `upper` 0, above) its diagonal `k`."
)

T = Constraint("T", CLASSIC, BFLOAT16)
_MATRIX = 2

v14 = trilu.first(
    14,
    inputs=[
        Input("input", T, "Matrices along the last two dimensions.", differentiable=True),
        Input(
            "k",
            "tensor(int64)",
            "The diagonal that bounds the triangle and belongs to it: 0 the main one, above it if positive.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        Output("output", T, "The triangles, zeros (empty strings, False) outside.", differentiable=True)
    ],
    attributes=[
        Attribute("upper", "int", "1: keep what is on and above the diagonal; 0: on and below.", default=1)
    ],
)


@v14.infer
def infer(x: TensorType, k: TensorType | None = None, /, *, upper: int) -> TensorType:
    if x.shape is not None and len(x.shape) < _MATRIX:
        raise InferenceError(f"`input` of rank {len(x.shape)} contains no matrices")
    check_one("k", k)
    y = TensorType(x.element, x.shape)
    if not x.element.is_integer:
        return y
    diagonal = 0 if k is None else k.known[0] if k.known else None
    if not isinstance(diagonal, int):
        return y
    return contents.moved(y, lambda known: _triangle(known, diagonal, upper, 0), x)


@v14.evaluate
def evaluate(x: Array, k: Array | None = None, /, *, upper: int) -> Array:
    zero = "" if x.dtype == object else x.dtype.type(0)
    return _triangle(x, 0 if k is None else int(as_number("k", k)), upper, zero)


@v14.lower
def lower(x: Expression, k: Expression | None = None, /, *, upper: int) -> Expression:
    rows, columns = x.shape[-2:]
    above = loops.apply("sub", loops.count((1, columns), 1), loops.count((rows, 1), 0))
    bound = loops.number("int64", 0) if k is None else loops.reshape(k, ())
    return loops.where(loops.apply("ge" if upper else "le", above, bound), x, 0)


def _triangle(x: Array, k: int, upper: int, zero: object) -> Array:
    rows, columns = x.shape[-2:]
    k = min(max(k, -rows), columns)  # diagonals further away contain no elements
    above: Array = np.arange(columns, dtype=np.int64) - np.arange(rows, dtype=np.int64)[:, None]
    return np.where(above >= k if upper else above <= k, x, np.array(zero, x.dtype))


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
