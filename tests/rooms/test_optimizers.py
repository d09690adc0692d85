"""Adagrad, Adam, Momentum: the shapes of a step, inferred and computed."""

import itertools

import numpy as np
import pytest

import sabir
from sabir.base import CheckError, EvaluationError
from sabir.inference import Inference
from sabir.ir import Builder

PARTS = {"Adagrad": 3, "Adam": 4, "Momentum": 3}
NEEDED = {"Momentum": {"norm_coefficient": 0.5, "beta": 0.25, "mode": "nesterov", "alpha": 0.75}}
SHAPES = [(), (1,), (3,), (2, 1), (2, 3)]
EVERY = pytest.mark.parametrize("op", PARTS)


def model(op, arrays, *, known=True):
    b = Builder(18, opsets={"ai.onnx.preview.training": 1}, check=False)
    inputs = [b.input(f"v{i}", a.dtype, a.shape if known else [None] * a.ndim) for i, a in enumerate(arrays)]
    count = (len(arrays) - 2) // PARTS[op] * (PARTS[op] - 1)
    made = b.op(op, *inputs, outputs=count, domain="ai.onnx.preview.training", **NEEDED.get(op, {}))
    for value in made:
        b.output(value)
    return b.model()


def arrays(*shapes, r=(), t=()):
    rng = np.random.default_rng(0)
    parts = [rng.random(shape).astype(np.float32) + np.float32(0.5) for shape in shapes]
    return [np.full(r, 0.1, np.float32), np.full(t, 2, np.int64), *parts]


def run(op, given, *, known=True):
    feeds = {f"v{i}": array for i, array in enumerate(given)}
    return list(sabir.evaluate(model(op, given, known=known), feeds).values())


@EVERY
def test_inferred_and_computed_shapes_agree(op):
    for shapes in itertools.product(SHAPES, repeat=PARTS[op]):
        given = arrays(*shapes)
        engine = Inference(model(op, given), strict=True)
        engine.run()
        inferred = [engine.types[v].shape for v in engine.model.graph.outputs]
        assert inferred == [y.shape for y in run(op, given)], shapes


def test_broadcasting_as_the_pseudo_code_has_it():
    rate, count, x, g, v, h = arrays((1,), (2, 1), (3,), ())
    new, mean, squares = run("Adam", [rate, count, x, g, v, h])
    a, b = np.float32(0.9), np.float32(0.999)
    np.testing.assert_allclose(mean, a * v + (1 - a) * g, rtol=1e-5)
    np.testing.assert_allclose(squares, b * h + (1 - b) * g * g, rtol=1e-5)
    assert (new.shape, mean.shape, squares.shape) == ((2, 3), (2, 3), (2, 1))


@EVERY
def test_a_group_that_does_not_broadcast(op):
    given = arrays(*[(2,)] * (PARTS[op] - 1), (3,))
    with pytest.raises(CheckError, match="2 and 3 do not broadcast"):
        sabir.check(model(op, given), select=["TYPE"])
    with pytest.raises(EvaluationError, match=op):
        run(op, given, known=False)


@EVERY
@pytest.mark.parametrize("scalar", ["R", "T"])
def test_rate_and_count_are_scalars(op, scalar):
    shapes = [(2,)] * PARTS[op]
    given, one = arrays(*shapes, **{scalar.lower(): (2,)}), arrays(*shapes, **{scalar.lower(): (1,)})
    told = rf"{scalar} must be a scalar, not of shape \[2\]"
    with pytest.raises(CheckError, match=told):
        sabir.check(model(op, given), select=["TYPE"])
    with pytest.raises(EvaluationError, match=told):
        run(op, given, known=False)
    assert run(op, one)[0].shape == (2,)
