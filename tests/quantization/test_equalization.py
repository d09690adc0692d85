"""Equalization: channels between two layers are scaled, and the float model computes the same."""

import numpy as np
import pytest

import sabir
from sabir.ir import tensor_type, verify
from sabir.opsets import STANDARD
from sabir.quantization import quantize_and_report
from sabir.quantization._editing import Edit
from sabir.quantization._equalization import equalize
from sabir.quantization._exclusion import Exclusion

RNG = np.random.default_rng(0)


def uneven(*shape, axis):
    """Return weights whose channels differ by a factor of up to 256."""
    sizes = 2.0 ** RNG.uniform(-4, 4, shape[axis])
    return (
        RNG.standard_normal(shape) * np.expand_dims(sizes, [a for a in range(len(shape)) if a != axis])
    ).astype(np.float32)


def equalized(model, exclude=()):
    copy = model.clone()
    factors = equalize(Edit(copy, STANDARD), Exclusion(exclude))
    verify(copy)
    sabir.check(copy)
    return copy, {node.name: factor for node, factor in factors.items()}


def weights(model, name):
    return model.graph.node(name).inputs[1].constant.array()


def test_factors_are_powers_of_2_between_the_ranges():
    """Channels of 16 and 1 before 1 and 16: their factors are the roots of 16 and 1/16."""
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,1] x) => (float[N,1] y)
      <float[1,2] a = {16, -1}, float[2] bias = {8, 3}, float[1,2] b = {1, 16}> {
      [first] h = Gemm (x, a, bias)
      r = Relu (h)
      [second] y = Gemm <transB = 1> (r, b)
    }""")
    found, factors = equalized(model)
    assert weights(found, "first").tolist() == [[4, -4]]
    assert found.graph.node("first").inputs[2].constant.array().tolist() == [2, 12]
    assert weights(found, "second").tolist() == [[4, 4]]
    assert factors == {"first": 4, "second": 4}
    assert model.graph.initializers["a"].array().tolist() == [[16, -1]]


def chain(between):
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 6, 9, 9])
    h = b.Conv(
        x,
        b.initializer("one.w", uneven(8, 6, 3, 3, axis=0)),
        b.initializer("one.b", uneven(8, axis=0)),
        name="one",
    )
    h = b.Conv(between(b, h), b.initializer("two.w", uneven(8, 1, 3, 3, axis=0)), group=8, name="two")
    h = b.Conv(
        b.LeakyRelu(h, alpha=0.1), b.initializer("three.w", uneven(4, 4, 1, 1, axis=1)), group=2, name="three"
    )
    w, v = b.initializer("four.w", uneven(4, 16, axis=1)), b.initializer("five.w", uneven(3, 16, axis=1))
    h = b.MatMul(b.Transpose(h, perm=[0, 2, 3, 1]), w, name="four")
    h = b.Relu(b.Add(h, b.initializer("four.b", uneven(16, axis=0))))
    v = b.initializer("five.w", uneven(16, 3, axis=0))
    b.output(b.MatMul(h, v, name="five"), "y")
    return b.model()


BETWEEN = {
    "nothing": lambda _, h: h,
    "Relu": lambda b, h: b.Relu(h),
    "Clip to 0": lambda b, h: b.Clip(h, 0.0),
    "a pool": lambda b, h: b.MaxPool(b.Relu(h), kernel_shape=[2, 2]),
    "a mean": lambda b, h: b.AveragePool(h, kernel_shape=[2, 2], pads=[1, 1, 1, 1]),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_the_float_model_computes_the_same_to_the_last_bit(name):
    model = chain(BETWEEN[name])
    found, factors = equalized(model)
    assert set(factors) == {"one", "two", "three", "four", "five"}
    assert max(factors.values()) >= 4
    feeds = {"x": RNG.standard_normal((2, 6, 9, 9)).astype(np.float32)}
    wanted, got = (sabir.Session(m, engine="reference").run(feeds)["y"] for m in (model, found))
    assert np.array_equal(got, wanted)
    wide = [as_doubles(m) for m in (model, found)]
    wanted, got = (
        sabir.Session(m, engine="reference").run({"x": feeds["x"].astype(float)})["y"] for m in wide
    )
    assert np.array_equal(got, wanted)


def as_doubles(model):
    """Return a model of float as one of double, in which rounding hides little."""
    copy = model.clone()
    graph = copy.graph
    for value, data in list(graph.initializers.items()):
        if data.element.name == "float":
            graph.set_initializer(value, data.array().astype(float))
    for value in graph.defined():
        value.type = None if value.node or not value.is_input else tensor_type("double", value.shape)
    return copy


@pytest.mark.parametrize(
    "name",
    ["a limit of 6", "two readers", "an output", "a bias that is no constant", "shared weights", "Sigmoid"],
)
def test_layers_that_do_not_scale_stay(name):
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 8])
    w = b.initializer("w", uneven(8, 8, axis=1))
    bias = (
        b.input("given", "float", [8])
        if name == "a bias that is no constant"
        else b.initializer("b", uneven(8, axis=0))
    )
    h = b.Gemm(x, w, bias, name="first")
    if name == "an output":
        b.output(h, "h")
    r = {"a limit of 6": lambda: b.Clip(h, 0.0, 6.0), "Sigmoid": lambda: b.Sigmoid(h)}.get(
        name, lambda: b.Relu(h)
    )()
    if name == "two readers":
        b.output(b.Neg(r), "negative")
    v = w if name == "shared weights" else b.initializer("v", uneven(8, 8, axis=0))
    b.output(b.MatMul(r, v, name="second"), "y")
    model = b.model()
    found, factors = equalized(model)
    assert not factors
    assert sabir.dumps(found) == sabir.dumps(model)


def test_excluded_nodes_and_channels_without_weights_stay():
    model = chain(BETWEEN["Relu"])
    _, factors = equalized(model, exclude=["two"])
    assert set(factors) == {"four", "five"}
    dead = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,1] x) => (float[N,1] y) <float[1,2] a = {0, 64}, float[2,1] b = {1, 0}> {
      h = MatMul (x, a)  y = MatMul (h, b) }""")
    assert not equalized(dead)[1]


def test_a_convolution_with_wrong_groups_is_refused_with_its_name():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[1,2,4,4] x) => (y) <float[3,1,1,1] w = {1, 2, 3}, float[1,3,1,1] v = {1, 2, 3}> {
      c = Conv <group = 2> (x, w)  y = Conv (c, v) }""")
    feeds = [{"x": np.zeros((1, 2, 4, 4), np.float32)}]
    with pytest.raises(sabir.EvaluationError, match="^Conv with output 'c': "):
        sabir.quantize(model, calibration=feeds, equalize=True)


def test_quantization_of_uneven_channels_is_nearer():
    """Behind Relu, activations have one scale: channels of 1 beside one of 256 lose most of their bits."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 32])
    w, v = (RNG.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    w[:, 0] *= 256
    v[0] /= 256
    b.output(
        b.MatMul(b.Relu(b.MatMul(x, b.initializer("w", w), name="one")), b.initializer("v", v), name="two"),
        "y",
    )
    model = b.model()
    feeds = [{"x": RNG.standard_normal((64, 32)).astype(np.float32)} for _ in range(4)]
    wanted = sabir.Session(model, engine="reference").run(feeds[0])["y"]
    errors = {}
    for is_equalized in (False, True):
        found = quantize_and_report(model, calibration=feeds[1:], equalize=is_equalized)
        got = sabir.Session(found.model, engine="reference").run(feeds[0])["y"]
        errors[is_equalized] = np.sqrt(np.square(got - wanted).mean() / np.square(wanted).mean())
        assert [node.equalized for node in found.nodes] == ([256.0] * 2 if is_equalized else [None] * 2)
    assert errors[True] < errors[False] / 5
