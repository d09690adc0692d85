# ruff: file-ignore[banned-api]  what is compared with
"""Parts as onnx cuts them, computed by onnxruntime."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import compose
from onnx.utils import Extractor

import sabir


@pytest.fixture(scope="module")
def model():
    """Two layers with a residual connection, whose values have inferred types."""
    random = np.random.default_rng(0)
    b = sabir.Builder(opset=17)
    x = b.input("x", "float", ["N", 8])
    for i in range(2):
        w = b.initializer(f"w{i}", random.standard_normal((8, 8)).astype(np.float32))
        product = b.MatMul(x, w)
        product.name = f"product{i}"
        x = b.Add(x, b.Tanh(product))
        x.name = f"layer{i}"
    b.output(b.Softmax(x), "y")
    return sabir.infer(b.model())


def run(data, feeds):
    return ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["layer0"], ["y"]),
        (["x"], ["layer0", "product0"]),
        (["product1", "layer0"], ["layer1"]),
    ],
)
def test_a_part_is_that_of_onnx(model, inputs, outputs):
    part = sabir.extract(model, inputs=inputs, outputs=outputs)
    reference = Extractor(sabir.to_proto(model, onnx.ModelProto)).extract_model(inputs, outputs)
    onnx.checker.check_model(sabir.to_proto(part, onnx.ModelProto), full_check=True)
    assert [list(node.output) for node in reference.graph.node] == [[node.output.name] for node in part.graph]
    random = np.random.default_rng(1)
    feeds = {name: random.standard_normal((3, 8)).astype(np.float32) for name in inputs}
    for got, expected in zip(
        run(sabir.dumps(part), feeds), run(reference.SerializeToString(), feeds), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


def test_the_halves_of_a_split_merge_to_the_model(model):
    halves = [sabir.to_proto(half, onnx.ModelProto) for half in sabir.split(model, at="layer0")]
    merged = compose.merge_models(*halves, io_map=[("layer0", "layer0")], prefix1="a_")
    merged.ir_version = halves[0].ir_version
    x = np.random.default_rng(2).standard_normal((3, 8)).astype(np.float32)
    (got,), (expected,) = run(merged.SerializeToString(), {"a_x": x}), run(sabir.dumps(model), {"x": x})
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-6)


def test_an_outlined_function_runs_in_onnxruntime(model):
    layer = [node for node in model.graph if node.op != "Softmax"][3:]
    outlined = sabir.outline(model, layer, "Layer")
    onnx.checker.check_model(sabir.to_proto(outlined, onnx.ModelProto), full_check=True)
    x = np.random.default_rng(3).standard_normal((3, 8)).astype(np.float32)
    (got,), (expected,) = run(sabir.dumps(outlined), {"x": x}), run(sabir.dumps(model), {"x": x})
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-6)
