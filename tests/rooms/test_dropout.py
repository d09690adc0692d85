"""Dropout while training, and its adapters, which the generic suites leave out for a random operator."""

import numpy as np
import pytest

import sabir
from sabir.ir import Builder, tensor_type
from sabir.opsets import STANDARD
from sabir.schema import Call, Unconvertible

SIZE = 100_000


def trained(ratio, seed, dtype=np.float32, opset=13):
    b = Builder(opset)
    x = b.input("x", tensor_type(np.dtype(dtype), [SIZE]))
    inputs = [b.initializer("ratio", np.float32(ratio)), b.initializer("training", np.array(1, bool))]
    output, mask = b.op("Dropout", x, *inputs, outputs=2, seed=seed)
    b.output(output, "y")
    b.output(mask, "mask")
    return tuple(sabir.evaluate(b.model(), {"x": np.full(SIZE, 3, dtype)}).values())


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_drops_the_ratio_and_scales_the_rest(ratio, dtype):
    y, mask = trained(ratio, 1, dtype)

    deviation = np.sqrt(ratio * (1 - ratio) / SIZE)
    assert abs(mask.mean() - (1 - ratio)) < 5 * deviation
    assert y.dtype == dtype
    assert not y[~mask].any()
    np.testing.assert_allclose(y[mask].astype(float), 3 / (1 - ratio), rtol=1e-3)
    # neighbours are dropped independently of one another
    assert abs((mask[1:] & mask[:-1]).mean() - (1 - ratio) ** 2) < 5 * deviation


def test_the_seed_decides():
    first, again, other, free, more = (trained(0.5, seed)[1] for seed in (1, 1, 2, None, None))

    assert (first == again).all()
    assert (first != other).any()
    assert (free != more).any()


def test_a_ratio_outside_its_range():
    with pytest.raises(sabir.EvaluationError, match="below 1"):
        trained(1.0, 0)


def test_the_first_version_trains_unless_told_otherwise():
    b = Builder(6)
    b.output(b.Dropout(b.input("x", "float", [SIZE]), ratio=0.25), "y")

    (y,) = sabir.evaluate(b.model(), {"x": np.ones(SIZE, np.float32)}).values()

    assert abs((y == 0).mean() - 0.25) < 0.01
    np.testing.assert_allclose(y[y != 0], 4 / 3, rtol=1e-6)


def converted(since, direction, opset, *inputs, outputs=1, **attributes):
    b = Builder(opset)
    values = [b.input("x", "float", [3]), *(b.initializer("i", x) for x in inputs)]
    for value in values[1:]:
        value.type = b.graph.initializers[value].type.with_known(
            b.graph.initializers[value].array().ravel().tolist()
        )
    adapter = STANDARD.find("", "Dropout").at(since).behaviours[direction]
    made = adapter(b, *values, call=Call((True,) * outputs), **attributes)
    for value in made if isinstance(made, tuple) else (made,):
        b.output(value)
    return list(sabir.evaluate(b.model(), {"x": np.ones(3, np.float32)}).values())


@pytest.mark.parametrize(
    ("since", "direction", "opset", "inputs", "attributes", "mask"),
    [
        (7, "upgrade", 7, (), {"ratio": 0.5, "is_test": 1}, np.float32),
        (7, "upgrade", 7, (), {"ratio": 0.0, "is_test": 0}, np.float32),
        (7, "downgrade", 6, (), {"ratio": 0.5}, np.float32),
        (10, "upgrade", 10, (), {"ratio": 0.5}, np.float32),
        (10, "downgrade", 7, (), {"ratio": 0.5}, np.bool_),
        (12, "upgrade", 12, (), {"ratio": 0.5}, np.bool_),
        (12, "downgrade", 10, (), {}, np.bool_),
        (12, "downgrade", 10, (np.float32(0.25), np.array(0, bool)), {}, np.bool_),
    ],
)
def test_adapters_keep_the_copy_and_the_kind_of_mask(since, direction, opset, inputs, attributes, mask):
    for outputs in (1, 2):
        y, *rest = converted(since, direction, opset, *inputs, outputs=outputs, **attributes)
        assert (y == 1).all()
        assert [r.dtype for r in rest] == [mask] * (outputs - 1)
        assert all(r.all() for r in rest)


def test_training_has_no_older_form():
    with pytest.raises(Unconvertible, match="does not train"):
        converted(12, "downgrade", 10, np.float32(0.5), np.array(1, bool))
    with pytest.raises(Unconvertible, match="does not drop"):
        converted(7, "upgrade", 7, ratio=0.5, is_test=0)
