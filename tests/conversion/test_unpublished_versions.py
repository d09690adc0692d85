"""Operators of the default domain that files call in opsets in which the standard does not have them."""

import numpy as np
import pytest

import sabir
from sabir.inlining import inline_domains
from sabir.runtime import Session

X = np.array([[1, 3, -2, 6], [0, 0, 4, 4]], np.float32)
VECTORS = {"s": np.array([1, 2, 3, 4], np.float32), "b": np.array([0, 1, 0, -1], np.float32)}


def model_of(opset, body, inputs="float[N,4] x, float[4] s, float[4] b"):
    return sabir.parse(
        f'<ir_version: 7, opset_import: ["" : {opset}]> g ({inputs}) => (float[N,4] y) {{ {body} }}'
    )


def run(model, engine="reference", **feeds):
    return Session(model, engine=engine).run(feeds or {"x": X, **VECTORS})["y"]


@pytest.mark.parametrize("opset", [9, 13, 16])
def test_a_layer_normalization_becomes_the_released_call(opset, engine):
    model = model_of(opset, "y = LayerNormalization <epsilon = 0.5> (x, s, b)")
    assert not [f for f in sabir.findings(model) if f.severity == "error"]

    newer = sabir.convert(model, 17)

    assert [node.op for node in newer.graph] == ["LayerNormalization"]
    assert not list(sabir.findings(newer))
    np.testing.assert_allclose(run(newer, engine), run(model, engine), rtol=1e-6)


def test_only_standard_operators_are_left_and_released_calls_stay(engine):
    body = (
        "t = LayerNormalization (x, s, b)  u = com.microsoft.Gelu (t)  v = SimplifiedLayerNormalization (u, s)"
        "  y = Elu (v)"
    )
    model = model_of(13, body)
    model.opsets["com.microsoft"] = 1

    found = inline_domains(model)

    assert found.replaced == {"com.microsoft.Gelu:1": 1, "SimplifiedLayerNormalization:1": 1}
    assert found.opset == 18
    assert not list(sabir.findings(found.model))
    operators = [node.op for node in found.model.graph]
    assert operators[0] == "LayerNormalization"
    assert {"Gelu", "SimplifiedLayerNormalization"}.isdisjoint(operators)
    np.testing.assert_allclose(run(found.model, engine), run(model, engine), rtol=1e-5, atol=1e-6)


def test_types_that_the_released_version_does_not_mix_are_cast():
    types = "float16[N,4] x, float[4] s, float[4] b"
    model = model_of(13, "y = LayerNormalization (x, s, b)", types)
    newer = sabir.convert(model, 17)
    assert [node.op for node in newer.graph] == ["Cast", "LayerNormalization"]
    feeds = {"x": X.astype(np.float16), **VECTORS}
    np.testing.assert_allclose(run(newer, **feeds), run(model, **feeds), rtol=1e-6)


def test_statistics_in_double_have_no_released_call():
    model = model_of(13, "y = LayerNormalization <stash_type = 11> (x, s, b)")
    with pytest.raises(sabir.ConversionError, match="LayerNormalization:17 has no statistics in double"):
        sabir.convert(model, 17)


@pytest.mark.parametrize(
    ("opset", "older", "body"),
    [
        (17, 13, "y = LayerNormalization (x, s, b)"),
        (10, 9, "y = ThresholdedRelu (x)"),
        (9, 8, "y = MeanVarianceNormalization <axes = [1]> (x)"),
    ],
)
def test_a_released_call_is_written_out_for_an_opset_without_it(opset, older, body):
    model = model_of(opset, body)
    name = model.graph[0].op

    written = sabir.convert(model, older)

    assert name not in [node.op for node in written.graph]
    assert not list(sabir.findings(written))
    np.testing.assert_allclose(run(written), run(model), rtol=1e-6, atol=1e-6)


def test_a_simplified_layer_normalization_is_one_call_in_each_opset(engine):
    model = model_of(13, "y = SimplifiedLayerNormalization (x, s)", "float[N,4] x, float[4] s")
    feeds = {"x": X, "s": VECTORS["s"]}
    expected = X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-5) * VECTORS["s"]
    for opset in (13, 18, 23):
        converted = sabir.convert(model, opset)
        assert [node.op for node in converted.graph] == ["SimplifiedLayerNormalization"]
        np.testing.assert_allclose(run(converted, engine, **feeds), expected, rtol=1e-6)


def test_removed_operators_run_before_their_removal_and_are_written_out_after(engine):
    body = (
        "t = Affine <alpha = 2.0, beta = 1.0> (x)  u = ParametricSoftplus <alpha = 1.0, beta = 2.0> (t)"
        "  v = ScaledTanh <alpha = 3.0, beta = 0.5> (u)  y = Scale <scale = 0.5> (v)"
    )
    model = model_of(9, body, "float[N,4] x")
    expected = 1.5 * np.tanh(0.5 * np.log1p(np.exp(2 * (2 * X + 1))))
    np.testing.assert_allclose(run(model, engine, x=X), expected, rtol=1e-5)

    newer = sabir.convert(model, 10)

    assert {node.op for node in newer.graph} == {"Mul", "Add", "Softplus", "Tanh"}
    assert not list(sabir.findings(newer))
    np.testing.assert_allclose(run(newer, engine, x=X), expected, rtol=1e-5)


def test_removed_operators_are_no_operators_of_later_opsets():
    with pytest.raises(sabir.SchemaError, match="Affine was removed from ai.onnx with opset 10"):
        run(model_of(10, "y = Affine (x)", "float[N,4] x"), x=X)


@pytest.mark.parametrize("domain", ["", "org.pytorch.aten."])
def test_a_call_of_pytorch_is_named(domain):
    model = model_of(13, f'y = {domain}ATen <operator = "relu"> (x)', "float[N,4] x")
    if domain:
        model.opsets["org.pytorch.aten"] = 1
    with pytest.raises(sabir.SchemaError, match="it calls a function of PyTorch by its name"):
        run(model, x=X)
