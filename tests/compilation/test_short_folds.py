"""Folds over few elements, many of them at a time, and products with few columns: the same bits in every batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from support.thresholds import texts_on

ROWS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 33)


def rows_of(count, width, seed=0):
    """Rows with equal elements, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (count, width)).astype(np.float32) + rng.integers(0, 2, (count, width)) / 4
    special = rng.choice(
        np.float32([1, np.nan, np.inf, -np.inf, -0.0]), x.shape, p=[0.92, 0.02, 0.02, 0.02, 0.02]
    )
    return np.where(special == 1, x, special).astype(np.float32)


def compiled(build, width, dtype="float"):
    """A model of rows, compiled so that nothing is left to the interpreter."""
    b = sabir.Builder(21)
    b.output(build(b, b.input("x", dtype, ["n", width])), "y")
    return Compiled(b.model(), threads=2)


def check(engine, x, expected):
    """Compare the results of several batches, and each row alone."""
    (whole,) = engine.run({"x": x}).values()
    assert engine.explain().evaluated == ()
    np.testing.assert_array_equal(whole, expected)
    for first, last in itertools.pairwise(ROWS):
        (part,) = engine.run({"x": x[first:last]}).values()
        assert part.tobytes() == whole[first:last].tobytes()


@pytest.mark.parametrize("width", [1, 2, 3, 5, 16, 17])
def test_places_of_extremes(width):
    x = rows_of(ROWS[-1], width)
    for op, last in itertools.product(("ArgMax", "ArgMin"), (0, 1)):
        engine = compiled(
            lambda b, v, op=op, last=last: b.op(op, v, axis=1, keepdims=0, select_last_index=last), width
        )
        find = np.argmax if op == "ArgMax" else np.argmin
        expected = width - 1 - find(x[:, ::-1], 1) if last else find(x, 1)
        check(engine, x, expected)


@pytest.mark.parametrize("width", [2, 3, 4, 7, 16])
def test_extremes_and_sums(width):
    x = rows_of(ROWS[-1], width, 1)
    check(compiled(lambda b, v: b.ReduceMax(v, [1]), width), x, np.max(x, 1, keepdims=True))
    whole = np.random.default_rng(2).integers(-9, 9, x.shape).astype(np.float32)  # whose sums are exact
    check(compiled(lambda b, v: b.ReduceSum(v, [1]), width), whole, np.sum(whole, 1, keepdims=True))
    wide = whole.astype(np.int64)
    check(compiled(lambda b, v: b.ReduceMin(v, [1]), width, "int64"), wide, np.min(wide, 1, keepdims=True))


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_softmax_of_few_classes(width):
    x = np.random.default_rng(3).standard_normal((ROWS[-1], width)).astype(np.float32) * 20
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    engine = compiled(lambda b, v: b.Softmax(v, axis=1), width)
    (whole,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(whole, powers / powers.sum(1, keepdims=True), 2e-6, 1e-7)
    check(engine, x, whole)
    (empty,) = engine.run({"x": np.float32([[0] * width, [np.nan] * width])}).values()
    np.testing.assert_array_equal(empty, np.float32([[1 / width] * width, [np.nan] * width]))


@pytest.mark.parametrize(("depth", "columns"), [(0, 3), (1, 1), (5, 2), (20, 3), (33, 17), (64, 31), (7, 32)])
def test_products_with_few_columns(depth, columns):
    rng = np.random.default_rng(4)
    w = rng.integers(-8, 9, (depth, columns)).astype(np.float32)
    x = rng.integers(-8, 9, (ROWS[-1], depth)).astype(np.float32)  # whose sums are exact
    check(compiled(lambda b, v: b.MatMul(v, w), depth), x, x @ w)
    noise = rng.standard_normal(x.shape).astype(np.float32)
    engine = compiled(lambda b, v: b.MatMul(v, w), depth)
    (whole,) = engine.run({"x": noise}).values()
    np.testing.assert_allclose(whole, noise.astype(np.float64) @ w, 1e-5, 1e-4)
    check(engine, noise, whole)


def test_decisions_on_vectors():
    def sums(b, x):
        return b.ReduceSum(x, np.array([1]))

    def model(build, width):
        b = sabir.Builder(21)
        b.output(build(b, b.input("x", "float", ["n", width])), "y")
        return b.model()

    shapes = {"x": [7, 17]}
    across = "vectors across the folds, not along them: "
    assert texts_on(model(sums, 16), "vectors", shapes={"x": [7, 16]}) == [across + "16 elements <= 16"]
    assert texts_on(model(sums, 17), "vectors", shapes=shapes) == [
        "vectors along the folds: 17 elements > 16"
    ]
    assert texts_on(model(sums, 17), "vectors", shapes=shapes, short_fold=17) == [
        across + "17 elements <= 17"
    ]
    softmax = model(lambda b, x: b.Softmax(x), 5)
    assert texts_on(softmax, "vectors", shapes={"x": [7, 5]}) == ["vectors along the folds: 5 elements > 4"]
    assert texts_on(softmax, "vectors", shapes={"x": [7, 5]}, short_folds=5) == [across + "5 elements <= 5"]
    columns = model(lambda b, x: b.ReduceSum(x, np.array([0])), 40)
    assert texts_on(columns, "vectors", shapes={"x": [7, 40]}) == [
        "vectors across the folds: more of what they read is side by side"
    ]
    turned = model(lambda b, x: b.Transpose(x), 40)
    assert texts_on(turned, "vectors", shapes={"x": [7, 40]}) == ["tiles transposed in registers"]


def test_folds_side_by_side_are_computed_together():
    """Vectors of columns, some of which are past the end, in a batch or alone; a lone vector is as it was."""
    for columns, batch, together in ((260, "", True), (256, "B,", True), (255, "", False)):
        model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[{batch}N,{columns}] x) => (y, z) {{
          axes = Constant <value_ints = [-2]> ()
          y = ReduceSum (x, axes)  s = Mul (x, x)  z = ReduceMax (s, axes) }}""")
        shape = (3, 50, columns) if batch else (50, columns)
        x = np.random.default_rng(6).integers(-9, 10, shape).astype(np.float32)
        session = Compiled(model)
        found = session.run({"x": x})
        np.testing.assert_array_equal(found["y"], x.sum(-2, keepdims=True))
        np.testing.assert_array_equal(found["z"], (x * x).max(-2, keepdims=True))
        specs = [kernel.spec for kernel in session.explain().kernels]
        assert all(("together" in spec) == together for spec in specs)
