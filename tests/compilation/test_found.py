"""Models that the compiled engine once computed wrongly, or not at all."""

import numpy as np
import pytest

import sabir
from sabir.compilation.engine import bodies as _bodies
from sabir.elements import element
from support.differences import check

HEAD = '<ir_version: 11, opset_import: ["" : 24]>'
FOUND = {  # inputs, outputs and constants; nodes; the shapes of the inputs
    "an output that is listed twice": (
        "(float[N] x) => (float[N] y, float[N] y)",
        "y = Neg(x)",
        [(3,)],
    ),
    "a number that fills rows beside a fold": (
        "(float[M,N] x) => (float[M,N] y, float[M,1] s) <int64[1] a = {-1}>",
        "y = Hardmax <axis=0> (x) s = ReduceSum(y, a)",
        [(1, 15)],
    ),
    "a number that fills columns beside a fold": (
        "(float[M,N] x) => (float[M,N] y, float[1,N] s) <int64[1] a = {0}>",
        "y = Hardmax <axis=1> (x) s = ReduceSum(y, a)",
        [(33, 1)],
    ),
    "an empty value of which no rule gives the sizes": (
        "(bool[A,0] c, int64[B,0] a) => (int64[?,?] y) <int64 n = {0}>",
        "s = Where(c, a, a) y = CumSum(s, n)",
        [(3, 0), (3, 0)],
    ),
    "a shape of which only a kernel knows the sizes": (
        "(double[] x, bool[?,?] c) => (int64[2] y) <int64[4] p = {2, 0, 2, 2}>",
        "w = Pad(x, p) v = Where(c, w, w) y = Shape(v)",
        [(1, 2), (5, 4)],
    ),
    "a constant beside an index of the same number": (
        "(float[L,M,N] x, float[1,K] z) => (int64[L,M] y, int64[K] w)",
        "y = ArgMax <axis=2, keepdims=0> (x) w = ArgMin <axis=0, keepdims=0> (z)",
        [(2, 15, 15), (1, 9)],
    ),
    "0 beside -0": (
        "(float[N] x) => (float[N] y, float[N] z)",
        "a = LeakyRelu <alpha=0.0> (x) y = Reciprocal(a) b = LeakyRelu <alpha=-0.0> (x) z = Reciprocal(b)",
        [(9,)],
    ),
    "an element of a number": (
        "(float[N,1] x, int32[K] i) => (int64[K] y)",
        "a = ArgMin <axis=-1, keepdims=0> (x) y = GatherElements(a, i)",
        [(9, 1), (4,)],
    ),
    "products of numbers": (
        "(float[M,N] x) => (float[?,?] y, float[?,?] z)",
        "s = Shape(x) f = ConstantOfShape <value=float[1] {2}> (s) t = Transpose(x) y = MatMul(f, t) z = MatMul(t, f)",
        [(4, 3)],
    ),
    "attention to numbers": (
        "(float[M,N] x) => (float[?,?] y)",
        "s = Shape(x) f = ConstantOfShape <value=float[1] {2}> (s) t = Transpose(f) a = MatMul(x, t) b = Softmax(a) y = MatMul(b, f)",
        [(4, 3)],
    ),
    "an empty part of a tensor that is evaluated": (
        "(float[1,N] x, bool[K] c) => (float[?,?] y) <int64[1] b = {1}, int64[1] e = {2}, int64[1] a = {0}>",
        "s = Slice(x, b, e, a) y = Compress <axis=0> (s, c)",
        [(1, 7), (0,)],
    ),
    "a view of a copy of a copy": (
        "(float[M,N] x) => (float[?,?] y) <int64[2] r = {1, 3}>",
        "t = Tile(x, r) y = Tile(t, r)",
        [(7, 15)],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_once_went_wrong(name):
    compare(*FOUND[name])


def test_an_empty_value_of_which_no_rule_gives_the_sizes_in_a_subgraph(monkeypatch):
    monkeypatch.setattr(_bodies, "_ENOUGH", 0)  # small ones are interpreted
    branches = "then_branch = t () => (z) { s = Where(c, a, a) z = CumSum(s, n) }, else_branch = e () => (z) { z = Neg(a) }"
    inputs = "bool p, bool[A,0] c, int64[B,0] a"
    compare(
        f"({inputs}) => (int64[?,?] y) <int64 n = {{0}}>", f"y = If <{branches}> (p)", [(), (3, 0), (3, 0)]
    )


def compare(signature, nodes, shapes):
    model = sabir.parse(f"{HEAD} g {signature} {{ {nodes} }}")
    rng = np.random.default_rng(0)
    feeds = [
        {
            v.name: (rng.integers(0, 9, shape) - 4).astype(element(v.type.element).dtype)
            for v, shape in zip(model.graph.inputs, shapes, strict=True)
        }
        for _ in range(2)
    ]
    check(model, feeds, [1e-5] * len({v.name for v in model.graph.outputs}))
