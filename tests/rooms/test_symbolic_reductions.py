"""Shape arithmetic through reductions, running sums, remainders and comparisons."""

import numpy as np
import pytest

from sabir.inference import Inference
from sabir.ir import Builder, parse_dim
from sabir.opsets import STANDARD
from sabir.schema import Unconvertible

N, M = parse_dim("N"), parse_dim("M")


def known(build, opset=26):
    """What is known of the value that `build` makes of the shape [N, 3, M]."""
    b = Builder(opset)
    x = b.input("x", "float", ["N", 3, "M"])
    b.output(build(b, b.Shape(x)))
    engine = Inference(b.model(), strict=True)
    engine.run()
    return engine.types[b.graph.outputs[0]].known


def ints(b, *values):
    return b.initializer("c", np.array(values, np.int64))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ReduceSum", N + M + 3),
        ("ReduceProd", N * M * 3),
        ("ReduceMax", parse_dim("max(N, 3, M)")),
        ("ReduceMin", parse_dim("min(N, 3, M)")),
    ],
)
def test_reductions(op, expected):
    assert known(lambda b, s: b.op(op, s, keepdims=0)) == (expected,)
    assert known(lambda b, s: b.op(op, s, ints(b, 0))) == (expected,)
    assert known(lambda b, s: b.op(op, s, noop_with_empty_axes=1)) == (N, 3, M)
    assert known(lambda b, s: b.op(op, s, keepdims=0), opset=12) == (expected,)
    # of [[N, 3, M]]: nothing is joined along the first axis
    assert known(lambda b, s: b.op(op, b.Unsqueeze(s, ints(b, 0)), ints(b, 0), keepdims=0)) == (N, 3, M)


def test_a_product_of_sizes_as_floats():
    product = known(lambda b, s: b.Cast(b.ReduceProd(b.Cast(s, to=1), keepdims=0), to=7))

    assert product == (N * M * 3,)


def test_what_would_wrap_is_not_known():
    def build(b, s):
        table = b.Concat(b.Cast(s, to=6), b.initializer("far", np.array([2**31 - 1, 1, 1], np.int32)), axis=0)
        return b.ReduceSum(b.Reshape(table, ints(b, 2, 3)), ints(b, 1), keepdims=0)

    assert known(build) == (N + M + 3, None)


def test_running_products():
    assert known(lambda b, s: b.CumProd(s, b.initializer("axis", np.int64(0)))) == (N, N * 3, N * M * 3)
    exclusive = known(lambda b, s: b.CumProd(s, b.initializer("axis", np.int64(0)), reverse=1, exclusive=1))
    assert exclusive == (M * 3, M, 1)


@pytest.mark.parametrize(
    ("op", "other", "expected"),
    [
        ("Min", (0, 5, 7), (0, 3, parse_dim("min(M, 7)"))),
        ("Mod", (2, 2, 1), (parse_dim("N % 2"), 1, 0)),
        ("Mod", (0, 2, -2), (None, 1, parse_dim("M % -2"))),
        ("Greater", (-1, 3, 7), (True, False, None)),
        ("Less", (0, 4, 7), (False, True, None)),
    ],
)
def test_binary_operators(op, other, expected):
    assert known(lambda b, s: b.op(op, s, ints(b, *other))) == expected


def test_a_remainder_with_the_sign_of_the_dividend():
    assert known(lambda b, s: b.Mod(s, ints(b, 2, 2, -2), fmod=1)) == (parse_dim("N % 2"), 1, None)


def test_conversions_to_a_type():
    def like(kind):
        return lambda b, s: b.CastLike(s, b.input("like", kind))

    assert known(like("float")) == (N, 3, M)
    assert known(like("float16")) == (None, None, None)
    # numbers are converted although nothing is known of the tensor whose type counts
    assert known(lambda b, _: b.CastLike(ints(b, 200, -1), b.input("like", "int8"))) == (-56, -1)


@pytest.mark.parametrize("name", ["CastLike", "NegativeLogLikelihoodLoss", "MeanVarianceNormalization"])
def test_bodies_that_need_a_type(name):
    version = STANDARD.find("", name).at(18)
    b = Builder(18, check=False)
    inputs = [b.op("Unknown") for _ in range(min(2, len(version.inputs)))]
    attributes = {a.name: a.default for a in version.attributes}
    with pytest.raises(Unconvertible, match="unknown"):
        version.find("body")(b, *inputs, **attributes)
