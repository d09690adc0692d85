"""The operators that draw random numbers: distributions, seeds, types; a fixed seed makes each test repeatable."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.base import InferenceError
from sabir.elements import element
from sabir.inference import Inference
from sabir.ir import Builder, tensor_type
from sabir.opsets import STANDARD
from sabir.schema import Example, Unconvertible
from support.rooms import run, written

SIZE = 200_000
KINDS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
DEVIATIONS = 5  # that a mean may be off: once in two million draws


def drawn(op, *inputs, opset=22, **attributes):
    b = Builder(opset)
    values = [b.input(f"x{i}", tensor_type(x.dtype, x.shape)) for i, x in enumerate(inputs)]
    b.output(b.op(op, *values, **attributes), "y")
    return sabir.evaluate(b.model(), {f"x{i}": x for i, x in enumerate(inputs)})["y"]


def number(kind):
    return element(np.dtype(kind)).number


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["RandomUniform", "RandomUniformLike"])
def test_uniform_numbers_fill_their_range(op, kind):
    x = () if op == "RandomUniform" else (np.zeros(SIZE, np.int8),)
    shape = {} if x else {"shape": [SIZE]}
    y = drawn(op, *x, **shape, dtype=number(kind), low=-1.0, high=3.0, seed=1.0)

    assert y.dtype == kind
    wide = y.astype(np.float64)
    assert wide.min() >= -1
    assert wide.max() < 3  # also of the halves, whose rounding might reach it
    counts = np.histogram(wide, 8, (-1, 3))[0]
    assert np.abs(counts - SIZE / 8).max() < DEVIATIONS * np.sqrt(SIZE / 8) + (
        SIZE / 100 if y.itemsize == 2 else 0
    )
    assert abs(np.corrcoef(wide[1:], wide[:-1])[0, 1]) < DEVIATIONS / np.sqrt(SIZE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["RandomNormal", "RandomNormalLike"])
def test_normal_numbers_have_their_moments(op, kind):
    x = () if op == "RandomNormal" else (np.zeros(SIZE, np.int8),)
    shape = {} if x else {"shape": [SIZE]}
    y = drawn(op, *x, **shape, dtype=number(kind), mean=2.0, scale=3.0, seed=1.0)

    assert y.dtype == kind
    z = (y.astype(np.float64) - 2) / 3
    assert abs(z.mean()) < DEVIATIONS / np.sqrt(SIZE)
    assert abs((z**2).mean() - 1) < DEVIATIONS * np.sqrt(2 / SIZE)
    assert abs((np.abs(z) < 1).mean() - 0.6826895) < DEVIATIONS * np.sqrt(0.22 / SIZE) + (
        0.01 if y.itemsize == 2 else 0
    )
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < DEVIATIONS / np.sqrt(SIZE)


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_and_ones_come_with_their_probabilities(kind):
    p = np.repeat(np.array([0, 0.125, 0.5, 1], kind), SIZE // 4)
    y = drawn("Bernoulli", p, seed=1.0)

    assert y.dtype == kind
    found = y.reshape(4, -1).astype(np.float64)
    assert set(np.unique(found)) == {0, 1}
    assert (found[0] == 0).all()
    assert (found[3] == 1).all()
    for row, expected in ((1, 0.125), (2, 0.5)):
        assert abs(found[row].mean() - expected) < DEVIATIONS * np.sqrt(
            expected * (1 - expected) / found[row].size
        )


def test_outcomes_come_with_their_probabilities():
    shares = np.array([[1, 0, 3, 4], [5, 5, 0, 0]]) / np.array([[8], [10]])
    with np.errstate(divide="ignore"):
        logs = (np.log(shares) + np.array([[100], [-3]])).astype(np.float32)  # only differences count
    y = drawn("Multinomial", logs, sample_size=SIZE, seed=1.0)

    assert y.dtype == np.int32
    for row, expected in zip(y, shares, strict=True):
        found = np.bincount(row, minlength=4) / SIZE
        assert (found[expected == 0] == 0).all()
        assert (np.abs(found - expected) < DEVIATIONS * np.sqrt(0.25 / SIZE)).all()
    assert abs(np.corrcoef(y[0], y[1])[0, 1]) < DEVIATIONS / np.sqrt(SIZE)


def test_many_outcomes():
    y = drawn("Multinomial", np.zeros((3, 1000)), sample_size=SIZE, dtype=7, seed=1.0)

    counts = np.bincount(y.ravel(), minlength=1000)
    assert y.dtype == np.int64
    assert np.abs(counts - y.size / 1000).max() < 6 * np.sqrt(y.size / 1000)


CALLS = [
    ("RandomUniform", (), {"shape": [100]}),
    ("RandomNormal", (), {"shape": [100]}),
    ("RandomUniformLike", (np.zeros(100, np.float32),), {}),
    ("RandomNormalLike", (np.zeros(100, np.float32),), {}),
    ("Bernoulli", (np.full(100, 0.5, np.float32),), {}),
    ("Multinomial", (np.zeros((10, 10), np.float32),), {"sample_size": 10}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), CALLS)
def test_the_seed_decides(op, inputs, attributes):
    first, again, other, minus = (drawn(op, *inputs, **attributes, seed=s) for s in (1.5, 1.5, 1.25, -1.5))
    free, more = (drawn(op, *inputs, **attributes) for _ in range(2))

    assert (first == again).all()
    for a, b in ((first, other), (first, minus), (free, more)):
        assert (a != b).any()


def test_a_range_wider_than_floats_go():
    most = float(np.finfo(np.float32).max)
    y = drawn("RandomUniform", shape=[1000], low=-most, high=most, seed=0.0)

    assert np.isfinite(y).all()
    assert y.min() < 0 < y.max()


def test_the_body_draws_the_same_way():
    version = STANDARD.find("", "Bernoulli").at(15)
    p = np.repeat(np.array([0, 0.25, 1]), SIZE)
    for kind, dtype in ((np.float16, None), (np.float64, 9)):
        example = Example(15, p.astype(kind), dtype=dtype, seed=2.0)
        (y,) = run(*written(version.find("body"), example, version, 15))
        assert y.dtype == (kind if dtype is None else np.bool_)
        found = y.reshape(3, -1).mean(axis=1, dtype=np.float64)
        assert found[0] == 0
        assert abs(found[1] - 0.25) < DEVIATIONS * np.sqrt(0.1875 / SIZE)
        assert found[2] == 1


def test_a_body_needs_the_type():
    version = STANDARD.find("", "Bernoulli").at(15)
    b = Builder(15, check=False)
    with pytest.raises(Unconvertible, match="unknown"):
        version.find("body")(b, b.op("Unknown"), dtype=None, seed=None)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("RandomUniform", (), {"shape": [2], "low": 2.0, "high": 1.0}, "lie evenly"),
        ("RandomUniform", (), {"shape": [2], "high": float("inf")}, "lie evenly"),
        ("RandomNormal", (), {"shape": [2], "scale": -1.0}, "0 or more"),
        ("Bernoulli", (np.array([1.5]),), {}, "outside"),
        ("Bernoulli", (np.array([np.nan]),), {}, "outside"),
        ("Multinomial", (np.full((1, 3), -np.inf),), {}, "no outcome"),
        ("Multinomial", (np.array([[0, np.nan]]),), {}, "no outcome"),
        ("Multinomial", (np.zeros((1, 0)),), {}, "no outcome"),
    ],
)
def test_what_cannot_be_drawn(op, inputs, attributes, message):
    with pytest.raises(sabir.SabirError, match=message):
        drawn(op, *inputs, **attributes)


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("RandomUniform", {"shape": [2, -1]}, "0 or more"),
        ("RandomNormal", {"shape": [2], "dtype": 7}, "7 .int64., and must be"),
        ("RandomNormal", {"shape": [2], "dtype": 16}, "16 .bfloat16., and must be"),
    ],
)
def test_types_that_cannot_be(op, attributes, message):
    b = Builder(13)
    b.output(b.op(op, **attributes), "y")
    with pytest.raises(InferenceError, match=message):
        Inference(b.model(), strict=True).run()
