"""Functions of one element at a time: blocks, symbolic contents, and graphs of them."""

import math

import numpy as np
import pytest

from sabir.inference import Inference
from sabir.ir import Builder, Value, parse_dim, tensor_type
from sabir.opsets.families.numbers.error_function import erf
from sabir.opsets.families.numbers.pointwise import pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.onnx import prelu
from sabir.schema import Unconvertible
from support.rooms import run

N, M = parse_dim("N"), parse_dim("M")


def known(build):
    """What is known of the value that `build` makes of the contents [N, 3, M - 5]."""
    b = Builder(21)
    x = b.input("x", "float", ["N", 3, "M"])
    b.output(build(b, b.Sub(b.Shape(x), b.initializer("less", np.array([0, 0, 5])))))
    engine = Inference(b.model(), strict=True)
    engine.run()
    return engine.types[b.graph.outputs[0]].known


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Neg", (-N, -3, 5 - M)),
        ("Abs", (N, 3, parse_dim("max(M - 5, 5 - M)"))),
        ("Sign", (parse_dim("min(N, 1)"), 1, parse_dim("max(-1, min(M - 5, 1))"))),
    ],
)
def test_signs_of_symbols(op, expected):
    assert known(lambda b, s: b.op(op, s)) == expected


@pytest.mark.parametrize(("op", "rounded"), [("Floor", 1.0), ("Ceil", 2.0), ("Round", 2.0)])
def test_whole_numbers_stay_when_rounded(op, rounded):
    def build(b, s):
        return b.op(op, b.Concat(b.Cast(s, to=1), b.initializer("half", np.array([1.5], np.float32)), axis=0))

    assert known(build) == (N, 3, M - 5, rounded)


def test_blocks_make_the_whole():
    @pointwise
    def doubled(x, *, more):
        assert x.size <= 1 << 15
        assert x.dtype == np.float32
        return x * 2 + more

    x = (np.arange(200_000) % 1000).astype(np.float16).reshape(400, 500)

    got = doubled(x.T, more=1)

    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, x.T * 2 + 1)


def test_the_error_function_in_single_precision():
    """Four units in the last place, near 0 and in both tails; more numbers than a block has."""
    sizes = np.concatenate([np.geomspace(1e-38, 0.1, 8_000), np.linspace(0.1, 4.5, 12_000)])
    x = np.concatenate([sizes, -sizes, [0, 30, 1e30, np.inf, -np.inf]]).astype(np.float32).reshape(5, -1)
    with np.errstate(over="ignore"):  # as in a run
        found = erf(x)
    expected = np.array([math.erf(v) for v in x.ravel().tolist()]).reshape(x.shape)
    assert found.dtype == np.float32
    assert np.all(np.abs(found - expected) <= 4 * np.spacing(np.abs(expected).astype(np.float32)))
    assert np.isnan(erf(np.float32([np.nan]))[0])


def test_numbers_need_a_type():
    with pytest.raises(Unconvertible, match="unknown"):
        Numbers.like(Builder(21), Value("x"))


@pytest.mark.parametrize(
    ("slope", "expected"),
    [
        ((3,), "one for each channel"),
        ((2, 1), None),
        ((1, 2, 1), None),
        ((1, 1), None),
        ((2, 3), "one for each"),
    ],
)
def test_slopes_that_the_old_prelu_takes(slope, expected):
    b = Builder(6)
    x, slopes = b.input("x", tensor_type("float", ["N", 2, 3])), b.input("slope", tensor_type("float", slope))
    downgrade = prelu.v7.behaviours["downgrade"]
    if expected:
        with pytest.raises(Unconvertible, match=expected):
            downgrade(b, x, slopes)
    else:
        b.output(downgrade(b, x, slopes))
        values = np.linspace(-3, 3, 12, dtype=np.float32).reshape(2, 2, 3), np.full(slope, 2, np.float32)
        (got,) = run(b.model(), {"x": values[0], "slope": values[1]})
        np.testing.assert_array_equal(got, np.where(values[0] < 0, 2 * values[0], values[0]))
