"""Models that the compiled engine once computed wrongly, or not at all."""

import numpy as np
import pytest

import sabir
from sabir.elements import element
from support.differences import check

HEAD = '<ir_version: 11, opset_import: ["" : 24]>'
FOUND = {  # the model, and the shapes of its inputs
    "an output that is listed twice": ("(float[N] x) => (float[N] y, float[N] y) { y = Neg(x) }", [(3,)]),
    "a number that fills rows beside a fold": (
        "(float[M,N] x) => (float[M,N] y, float[M,1] s) <int64[1] a = {-1}> { y = Hardmax <axis=0> (x) s = ReduceSum(y, a) }",
        [(1, 15)],
    ),
    "a number that fills columns beside a fold": (
        "(float[M,N] x) => (float[M,N] y, float[1,N] s) <int64[1] a = {0}> { y = Hardmax <axis=1> (x) s = ReduceSum(y, a) }",
        [(33, 1)],
    ),
    "an empty value of which no rule gives the sizes": (
        "(bool[A,0] c, int64[B,0] a) => (int64[?,?] y) <int64 n = {0}> { s = Where(c, a, a) y = CumSum(s, n) }",
        [(3, 0), (3, 0)],
    ),
    "a shape of which only a kernel knows the sizes": (
        "(double[] x, bool[?,?] c) => (int64[2] y) <int64[4] p = {2, 0, 2, 2}> { w = Pad(x, p) v = Where(c, w, w) y = Shape(v) }",
        [(1, 2), (5, 4)],
    ),
    "a view of a copy of a copy": (
        "(float[M,N] x) => (float[?,?] y) <int64[2] r = {1, 3}> { t = Tile(x, r) y = Tile(t, r) }",
        [(7, 15)],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_once_went_wrong(name):
    text, shapes = FOUND[name]
    model = sabir.parse(f"{HEAD} g {text}")
    rng = np.random.default_rng(0)
    feeds = [
        {
            v.name: (rng.integers(0, 9, shape) - 4).astype(element(v.type.element).dtype)
            for v, shape in zip(model.graph.inputs, shapes, strict=True)
        }
        for _ in range(2)
    ]
    check(model, feeds, [1e-5] * len({v.name for v in model.graph.outputs}))
