"""Quantized models: what their nodes become, how near they are, and what is refused."""

import inspect

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.ir import verify
from sabir.quantization import quantize_and_report
from support.cases import each_of

RNG = np.random.default_rng(0)
FORMS = {
    "int4": {"to": "int4"},
    "int4 with zero points": {"to": "int4", "symmetric": False},
    "int4 by channel": {"to": "int4", "block": 0},
    "int8 weights": {"weights_only": True},
    "int8 weights with zero points": {"weights_only": True, "symmetric": False},
    "int8 weights by channel with zero points": {"weights_only": True, "symmetric": False, "block": 0},
    "dynamic": {},
    "static": {"calibration": True},
    "static symmetric": {"calibration": True, "symmetric": True},
    "static percentile": {"calibration": True, "method": "percentile"},
    "static mse": {"calibration": True, "method": "mse"},
    "static entropy": {"calibration": True, "method": "entropy"},
}
NOISE = {"int4": 0.25, "int8": 0.12}  # of the results, relative to their root mean square


def dense(opset=21, **fields):
    """A MatMul, a Gemm with transposed weights, and a product of two activations."""
    b = sabir.Builder(opset, name="dense")
    x = b.input("x", "float", ["N", 40])
    w = b.initializer("w", RNG.standard_normal((40, 24)).astype(np.float32))
    v = b.initializer("v", RNG.standard_normal((16, 24)).astype(np.float32))
    bias = b.initializer("bias", RNG.standard_normal(16).astype(np.float32))
    h = b.Relu(b.MatMul(x, w, name="first"))
    g = b.Gemm(h, v, bias, transB=1, name="second")
    b.output(b.MatMul(g, b.Transpose(g), name="third"), "y")
    return b.model(**fields)


def residual(opset=17):
    """Convolutions with a residual addition, pools, groups, and a classifier."""
    b = sabir.Builder(opset, name="residual")
    x = b.input("x", "float", ["N", 3, 8, 8])

    def conv(x, channels, inputs, name, **options):
        w = b.initializer(f"{name}.w", RNG.standard_normal((channels, inputs, 3, 3)).astype(np.float32) / 5)
        bias = b.initializer(f"{name}.b", RNG.standard_normal(channels).astype(np.float32))
        return b.Conv(x, w, bias, pads=[1, 1, 1, 1], name=name, **options)

    h = b.MaxPool(b.Relu(conv(x, 16, 3, "stem")), kernel_shape=[2, 2], strides=[2, 2])
    h = b.Relu(b.Add(conv(b.Clip(conv(h, 16, 1, "deep", group=16), 0.0, 6.0), 16, 16, "wide"), h, name="sum"))
    h = b.Flatten(b.GlobalAveragePool(h, name="pool"))
    w = b.initializer("fc.w", RNG.standard_normal((16, 10)).astype(np.float32))
    b.output(b.MatMul(h, w, name="fc"), "y")
    return b.model()


MODELS = {"dense": (dense, (6, 40)), "residual": (residual, (4, 3, 8, 8))}


def cases():
    for name in MODELS:
        for form in FORMS:
            yield pytest.param(name, form, id=f"{name}-{form}")


def run(model, feeds):
    return sabir.Session(model, engine="reference").run(feeds)["y"]


def noise(got, wanted):
    return np.sqrt(np.square(got - wanted).mean() / np.square(wanted).mean())


@each_of("name, form", cases(), group=lambda name, _: name)
def test_results_are_near_and_equal_those_of_onnxruntime(name, form):
    make, shape = MODELS[name]
    model, options = make(), dict(FORMS[form])
    feeds = {"x": RNG.standard_normal(shape).astype(np.float32)}
    if options.get("calibration"):
        options["calibration"] = [{"x": RNG.standard_normal(shape).astype(np.float32)} for _ in range(8)]
    before = sabir.dumps(model)

    found = quantize_and_report(model, **options)

    assert sabir.dumps(model) == before
    verify(found.model)
    sabir.check(found.model)
    got = run(found.model, feeds)
    assert 0 < noise(got, run(model, feeds)) < NOISE[options.get("to", "int8")]
    assert any(node.is_quantized for node in found.nodes)
    options_of_peer = onnxruntime.SessionOptions()
    options_of_peer.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options_of_peer.log_severity_level = 3
    peer = onnxruntime.InferenceSession(sabir.dumps(found.model), options_of_peer)
    assert noise(got, peer.run(None, feeds)[0]) < 0.02  # a value between two levels may go either way
    assert noise(sabir.Session(found.model).run(feeds)["y"], got) < 0.02


def test_blocks_have_their_own_scales_and_the_last_may_be_shorter():
    found = quantize_and_report(dense(), "int4", block=16)
    node = found.model.graph.node("first").inputs[1].node
    integers, scale = node.inputs
    assert node.op == "DequantizeLinear"
    assert (node.attributes["axis"].value, node.attributes["block_size"].value) == (0, 16)
    assert str(integers.type) == "int4[40,24]"
    assert str(scale.type) == "float[3,24]"
    assert integers.name == "w_quantized"
    assert "w" not in {value.name for value in found.model.graph.initializers}
    transposed = found.model.graph.node("second").inputs[1].node
    assert transposed.attributes["axis"].value == 1


def test_weights_of_halves_keep_their_type():
    for dtype in (np.float16, ml_dtypes.bfloat16):
        b = sabir.Builder(21)
        x = b.input("x", dtype, ["N", 32])
        b.output(b.MatMul(x, b.initializer("w", RNG.standard_normal((32, 4)).astype(dtype))), "y")
        model = sabir.quantize(b.model(), "int8", weights_only=True)
        verify(model)
        sabir.check(model)
        assert model.graph.initializers["w_scale"].element.dtype == dtype


def test_shared_weights_are_stored_once():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 16])
    w = b.initializer("w", RNG.standard_normal((16, 16)).astype(np.float32))
    b.output(b.MatMul(b.MatMul(x, w), w), "y")
    for options in ({"to": "int4"}, {}, {"calibration": [{"x": np.ones((2, 16), np.float32)}]}):
        model = sabir.quantize(b.model(), **options)
        stored = [v.name for v in model.graph.initializers if v.type.shape == (16, 16)]
        assert stored == ["w_quantized"]


def test_nodes_that_read_one_activation_share_its_integers():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 16])
    for name in "abc":
        b.output(
            b.MatMul(x, b.initializer(name, RNG.standard_normal((16, 4)).astype(np.float32))), f"y{name}"
        )
    model = sabir.quantize(b.model())
    assert [n.op for n in model.graph].count("DynamicQuantizeLinear") == 1


def test_excluded_nodes_stay_and_unknown_names_are_refused():
    for options in ({"to": "int4"}, {}, {"calibration": [{"x": np.ones((2, 40), np.float32)}]}):
        found = quantize_and_report(dense(), exclude=["second"], **options)
        reports = {node.name: node for node in found.nodes}
        assert reports["second"].reason == "it is excluded"
        assert reports["first"].is_quantized
        assert found.model.graph.node("second").inputs[1].name == "v"
        with pytest.raises(sabir.base.NotFoundError, match="is it 'second'"):
            sabir.quantize(dense(), exclude=["secnd"], **options)


def test_nodes_that_cannot_be_quantized_are_reported_with_a_reason():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[2,2] x, float[2,2] overridden, bool c) => (float[2] y)
      <float[2,2] w = {1, 2, 3, 4}, float[2,2] overridden = {1, 2, 3, 4}, float[2,2] broken = {1, nan, 1, 1}> {
      a = MatMul (x, overridden)
      b = MatMul (a, broken)
      t = Gemm <transA = 1> (b, w)
      u = f.apply (t)
      y = If (c) <then_branch = then () => (float[2] p) { p = MatMul (u, w) },
                  else_branch = other () => (float[2] q) { q = Identity (u) }>
    }
    <domain: "f", opset_import: ["" : 21]> apply (x) => (y) { k = Constant <value_floats = [1.0, 2.0]> ()  y = MatMul (x, k) }""")
    found = quantize_and_report(model)
    reasons = [node.reason for node in found.nodes]
    assert reasons == [
        "input 1 is no constant",
        "some of its weights are infinite or no number",
        "it transposes its activation",
        "",
        "it is in a function; `sabir inline` replaces its calls",
    ]
    verify(found.model)

    healthy = sabir.parse(sabir.text(model).replace("nan", "1"))
    feeds = {"x": np.ones((2, 2), np.float32), "c": np.bool_(1)}
    static = quantize_and_report(healthy, calibration=[feeds])
    assert "calibration does not see the values of subgraphs" in [node.reason for node in static.nodes]
    verify(static.model)


@pytest.mark.parametrize("call", ["Concat <axis = 0> ()", "MaxPool <kernel_shape = [1, 1]> ()", "Add ()"])
def test_an_invalid_call_is_refused_with_its_name(call):
    model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
    g (float[1,1,4,4] x) => (y, z) <float[1,1,1,1] w = {{1}}> {{ c = Conv (x, w)  y = {call}  z = Relu (c) }}""")
    with pytest.raises(sabir.SchemaError, match=f"^{call.split()[0]} with output 'y': "):
        sabir.quantize(model, calibration=[{"x": np.zeros((1, 1, 4, 4), np.float32)}])


def test_an_old_model_is_converted_and_a_new_one_is_not():
    assert quantize_and_report(dense(13), "int4").opset == 21
    assert quantize_and_report(dense(13)).opset is None
    assert quantize_and_report(dense(9)).opset == 13


def test_both_functions_have_the_same_parameters():
    plain, reported = (inspect.signature(function) for function in (sabir.quantize, quantize_and_report))
    assert plain.parameters == reported.parameters
    assert (plain.return_annotation, reported.return_annotation) == ("Model", "Quantization")
    with pytest.raises(TypeError, match="blok"):
        sabir.quantize(dense(), "int4", blok=8)  # pyright: ignore[reportCallIssue]  the mistake is the test


def test_names_documentation_and_metadata_stay():
    model = dense(doc="about", metadata={"k": "v"}, producer_name="someone")
    model.graph.node("first").doc = "the first"
    for options in ({"to": "int4"}, {}, {"calibration": [{"x": np.ones((2, 40), np.float32)}]}):
        found = sabir.quantize(model, **options)
        assert (found.doc, found.metadata, found.producer_name) == ("about", {"k": "v"}, "someone")
        assert [v.name for v in found.graph.outputs] == ["y"]
        if options:
            assert found.graph.node("first").doc == "the first"


def test_options_that_contradict_each_other_are_refused():
    model, feeds = dense(), [{"x": np.ones((2, 40), np.float32)}]
    for options, message in (
        ({"to": "int5"}, "is it 'int"),
        ({"method": "mean"}, "method='mean' is not known"),
        ({"to": "int4", "calibration": feeds}, "need no calibration"),
        ({"to": "int4", "block": -1}, "a block has 1 weight or more"),
        ({"calibration": feeds, "percentile": 30}, "above 50"),
        ({"symmetric": True}, "is not symmetric"),
    ):
        with pytest.raises(sabir.UnsupportedError, match=message):
            sabir.quantize(model, **options)


def test_residual_networks_are_integers_from_end_to_end():
    feeds = [{"x": RNG.standard_normal((4, 3, 8, 8)).astype(np.float32)}]
    found = quantize_and_report(residual(), calibration=feeds)
    reports = {node.name or node.op: node.to for node in found.nodes}
    expected = ("stem", "deep", "wide", "sum", "pool", "fc", "MaxPool", "Flatten")
    assert reports == dict.fromkeys(expected, "int8")
    for node in found.model.graph:
        if node.op in {"Conv", "Add", "GlobalAveragePool", "MaxPool", "Flatten"}:
            assert node.inputs[0].node.op == "DequantizeLinear"
    stem = found.model.graph.node("stem")
    assert str(stem.inputs[2].node.inputs[0].type) == "int32[16]"


def rectified(rectify, *, read=False):
    """Return a model with a rectifier between two products, and feeds of which some are beyond its limits."""
    b = sabir.Builder(17)
    x = b.input("x", "float", [64, 16])
    h = rectify(b, b.MatMul(x, b.initializer("w", RNG.standard_normal((16, 16)).astype(np.float32))))
    b.output(b.MatMul(h, b.initializer("v", RNG.standard_normal((16, 16)).astype(np.float32))), "y")
    if read:
        b.output(b.Neg(h), "z")
    return b.model(), {"x": RNG.standard_normal((64, 16)).astype(np.float32)}


RECTIFIERS = {
    "Relu": (lambda b, h: b.Relu(h), {}, False),
    "between 0 and 6": (lambda b, h: b.Clip(h, 0.0, 6.0), {}, False),
    "above 0": (lambda b, h: b.Clip(h, 0.0), {}, False),
    "a limit beyond all values": (lambda b, h: b.Clip(h, -1000.0, 1000.0), {}, False),
    "both signs": (lambda b, h: b.Clip(h, -1.0, 3.0), {}, False),
    "above 0.5": (lambda b, h: b.Clip(h, 0.5, 6.0), {}, True),  # 0 is always represented
    "int8 around 0": (lambda b, h: b.Relu(h), {"symmetric": True}, True),
    "a range without outer values": (
        lambda b, h: b.Clip(h, 0.0, 6.0),
        {"method": "percentile", "percentile": 90},
        False,
    ),
}


@pytest.mark.parametrize("name", RECTIFIERS)
def test_a_rectifier_that_rounding_implies_is_left_out(name):
    rectify, options, stays = RECTIFIERS[name]
    model, feeds = rectified(rectify)
    options = {"calibration": [feeds], "correct_bias": False, **options}
    found = sabir.quantize(model, **options)
    assert any(node.op in {"Relu", "Clip"} for node in found.graph) == stays

    with_reader, _ = rectified(rectify, read=True)
    for weights in ("w", "v"):
        data = model.graph.value(weights).constant
        with_reader.graph.set_initializer(with_reader.graph.value(weights), data)
    kept = sabir.quantize(with_reader, **options)  # a node that reads floats needs the rectifier
    assert any(node.op in {"Relu", "Clip"} for node in kept.graph)
    beyond = {"x": feeds["x"] * 3}
    assert np.array_equal(run(found, beyond), run(kept, beyond))
