"""Gradients of operators that do not take double precision, against differences of their bodies in it."""

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.opsets import STANDARD
from sabir.schema import Example
from support.cases import each_of
from support.gradients import (
    SEED,
    SINGLE,
    depends,
    differences_in_double,
    differentiable_operators,
    gradient_model,
    in_type,
)
from support.rooms import by_operator, examples_of, model_of

MOST = 8  # examples of an operator
BY_BODY = sorted(SINGLE - {"DequantizeLinear", "QuantizeLinear"})
CONSTANT = {"RotaryEmbedding": {"i1", "i2"}}  # inputs to which no gradients pass


def float_calls(name):
    """The examples of an operator with finite single-precision inputs, each once."""
    found = {}
    operator = STANDARD.find("", name)
    for example in examples_of(operator):
        inputs = [in_type(x, np.float32) for x in example.inputs]
        if all(x is None or np.asarray(x).size <= 64 for x in inputs):
            made = Example(example.opset, *inputs, outputs=example.outputs, **example.attributes)
            found.setdefault(repr((inputs, example.attributes, example.outputs)), made)
    examples = list(found.values())
    return [(operator, e) for e in examples[:: -(-len(examples) // MOST)]]


CALLS = [
    pytest.param(*call, id=f"{name}-{i}") for name in BY_BODY for i, call in enumerate(float_calls(name))
]


@each_of("operator, example", CALLS, group=by_operator)
def test_gradients_equal_central_differences(operator, example):
    model, feeds = model_of(operator, example)
    random = np.random.default_rng(1)
    feeds = {
        n: random.uniform(0.2, 1, x.shape).astype(x.dtype) if x.dtype == np.float32 else x
        for n, x in feeds.items()
    }
    floats = {n for n, x in feeds.items() if x.dtype == np.float32} - CONSTANT.get(operator.name, set())
    for output in model.graph.outputs:
        of = output.name
        wrt = [n for n in sorted(floats) if depends(model, of, n)]
        found = gradient_model(model, of, wrt)
        used = differentiable_operators(found)
        assert used <= {n.name for n in STANDARD if n.versions[-1].find("gradient")}
        seed = random.standard_normal(sabir.evaluate(model, feeds)[of].shape).astype(np.float32)
        results = sabir.evaluate(found, {**feeds, SEED: seed})
        for name in wrt:
            gradient = results[f"d_{of}_d_{name}"]
            assert gradient.dtype == np.float32
            assert gradient.shape == feeds[name].shape
            for _ in range(3):
                direction = random.standard_normal(feeds[name].shape)
                expected = (seed * differences_in_double(model, feeds, of, name, direction)).sum()
                assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_the_tables_of_rotations_are_constants():
    model = sabir.parse(
        """<ir_version: 10, opset_import: ["" : 23]>
        g (float[1,1,2,2] x, float[1,2,1] c, float[1,2,1] s) => (float[1,1,2,2] y) { y = RotaryEmbedding(x, c, s) }"""
    )
    with pytest.raises(UnsupportedError, match="no gradients to its caches"):
        gradient_model(model, "y", ["c"])


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "summed"),
    [(0.5, 2, 1, (0, 1)), ([0.5, 2.0], [1, 2], 0, (1,)), ([0.5, 2.0, 4.0], [1, 2, 3], -1, (0,))],
)
def test_the_gradient_of_a_scale_is_the_sum_of_what_it_multiplied(scale, zero, axis, summed):
    scale, zero = np.float32(scale), np.int8(zero)
    shape = f"[{scale.size}]" if scale.ndim else ""
    model = sabir.parse(
        f"""<ir_version: 10, opset_import: ["" : 21]>
        g (int8[2,3] x, float{shape} s, int8{shape} z) => (float[2,3] y) {{
            y = DequantizeLinear<axis = {axis}>(x, s, z) }}"""
    )
    x, seed = np.int8([[1, -2, 3], [4, 5, -6]]), np.float32([[1, 2, 3], [4, 5, 6]])
    found = gradient_model(model, "y", ["s"])
    result = sabir.evaluate(found, {"x": x, "s": scale, "z": zero, SEED: seed})["d_y_d_s"]
    offset = np.asarray(zero)[:, None] if axis == 0 else zero
    np.testing.assert_array_equal(result, (seed * (np.float32(x) - offset)).sum(axis=summed))


def test_small_floats_are_straight_through():
    model = sabir.parse(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x, float s) => (float[4] y) {
            z = Constant<value = float8e4m3fn {0}>()
            q = QuantizeLinear(x, s, z)
            y = DequantizeLinear(q, s) }"""
    )
    found = gradient_model(model, "y", ["x", "s"])
    x, s, seed = np.float32([1, 2.3, -4, 1000]), np.float32(0.5), np.float32([1, 2, 4, 8])
    results = sabir.evaluate(found, {"x": x, "s": s, SEED: seed})
    np.testing.assert_array_equal(results["d_y_d_x"], [1, 2, 4, 0])  # 1000 is beyond 448 * 0.5
    slopes = (results["y"] - np.where(x < 448 * s, x, 0)) / s
    np.testing.assert_allclose(results["d_y_d_s"], (seed * slopes).sum(), rtol=1e-6)
