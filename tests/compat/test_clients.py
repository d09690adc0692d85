# ruff: file-ignore[banned-api]  the name onnx is Sabir's in this environment
# pyright: reportMissingImports=false, reportGeneralTypeIssues=false
# the clients are in no other environment, and annotations of onnxscript have sizes
"""Packages that import onnx work unchanged on Sabir, and onnxruntime computes the same with what they write.

`make clients` runs these tests in an environment where Sabir's wheel is the distribution onnx.
"""

import importlib.metadata
import io
import unittest
import urllib.request

import numpy as np
import pytest

if not importlib.metadata.version("onnx").endswith("+sabir"):
    pytest.skip(
        "this environment has the package onnx; `make clients` runs the tests", allow_module_level=True
    )

import netron
import onnx
import onnx_ir
import onnxmltools
import onnxruntime
import onnxscript.optimizer
import onnxscript.rewriter
import onnxslim
import skl2onnx
from lightgbm import LGBMClassifier
from onnx import helper as h
from onnx.backend.test import BackendTest, runner
from onnx.backend.test.case.node import collect_testcases
from onnx.numpy_helper import from_array
from onnxconverter_common import float16
from onnxmltools.convert.common.data_types import FloatTensorType
from onnxruntime.backend.backend import OnnxRuntimeBackend
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxscript import FLOAT, opset18, script
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# what other packages warn of is not ours
pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
ROWS = RNG.random((60, 5), np.float32)
CLASSES = (ROWS[:, 0] + ROWS[:, 1] > 1).astype(int)
IMAGE = RNG.random((1, 3, 16, 16), np.float32)


def run(model, *arrays):
    """The outputs that onnxruntime computes."""
    data = str(model) if not hasattr(model, "SerializeToString") else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return session.run(
        None, {port.name: array for port, array in zip(session.get_inputs(), arrays, strict=True)}
    )


def network():
    """A convolution, its normalization and a product, with nodes that do nothing between."""
    sizes = {"w": (8, 3, 3, 3), "scale": 8, "bias": 8, "mean": 8, "variance": 8, "v": (8 * 14 * 14, 10)}
    weights = [from_array(RNG.random(size, np.float32), name) for name, size in sizes.items()]
    nodes = [
        h.make_node("Conv", ["x", "w"], ["c"]),
        h.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["n"]),
        h.make_node("Relu", ["n"], ["r"]),
        h.make_node("Identity", ["r"], ["i"]),
        h.make_node("Flatten", ["i"], ["f"]),
        h.make_node("MatMul", ["f", "v"], ["y"]),
    ]
    ports = [h.make_tensor_value_info(n, 1, s) for n, s in (("x", IMAGE.shape), ("y", (1, 10)))]
    graph = h.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


@pytest.fixture(scope="module")
def model():
    return network()


@pytest.fixture(scope="module")
def expected(model):
    return run(model, IMAGE)[0]


@pytest.fixture
def path(model, tmp_path):
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def near(got, wanted, relative):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=relative * abs(wanted).max())


def test_the_name_onnx_is_sabirs():
    assert onnx.ModelProto.DESCRIPTOR.file.pool is not None
    assert onnx.__spec__.name == "sabir.compat.onnx"


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(3, random_state=0), make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["forest", "pipeline"],
)
def test_skl2onnx(estimator):
    made = skl2onnx.to_onnx(estimator.fit(ROWS, CLASSES), ROWS[:1], options={"zipmap": False})

    onnx.checker.check_model(made, full_check=True)
    labels, chances = run(made, ROWS)
    assert (labels == estimator.predict(ROWS)).all()
    near(chances, estimator.predict_proba(ROWS), 1e-5)


def test_onnxmltools():
    trees = LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(ROWS, CLASSES)

    types = [("x", FloatTensorType([None, 5]))]
    made = onnxmltools.convert_lightgbm(trees, initial_types=types, zipmap=False)

    labels, chances = run(made, ROWS)
    assert (labels == trees.predict(ROWS)).all()
    near(chances, trees.predict_proba(ROWS), 1e-5)


def test_onnxslim(model, expected):
    slim = onnxslim.slim(onnx.ModelProto.FromString(model.SerializeToString()))

    assert len(slim.graph.node) < len(model.graph.node)
    near(run(slim, IMAGE)[0], expected, 1e-5)


def test_onnxconverter_common(model, expected):
    half = float16.convert_float_to_float16(model, keep_io_types=True)

    assert onnx.TensorProto.FLOAT16 in {tensor.data_type for tensor in half.graph.initializer}
    near(run(half, IMAGE)[0], expected, 1e-2)


@script()
def branches(x: FLOAT[None, 3]) -> FLOAT[None, 3]:
    if opset18.ReduceSum(x, keepdims=0) > 1.0:  # ruff: ignore[if-else-block-instead-of-if-exp]  it becomes an If
        y = x + 1.0
    else:
        y = x - 1.0
    for _ in range(3):
        y = opset18.Mul(y, 2.0)
    return y


def test_onnxscript_functions():
    made = branches.to_model_proto()

    onnx.checker.check_model(made, full_check=True)
    for x in (np.float32([[1, 2, 3]]), np.float32([[-1, -2, -3]])):
        wanted = (x + np.sign(x.sum())) * 8
        assert (run(made, x)[0] == wanted).all()
        assert (branches(x) == wanted).all()


def test_onnxscript_optimizer_and_onnx_ir(model, expected, tmp_path):
    optimized = onnxscript.rewriter.rewrite(onnxscript.optimizer.optimize(model))
    assert len(optimized.graph.node) < len(model.graph.node)
    near(run(optimized, IMAGE)[0], expected, 1e-5)

    onnx_ir.save(onnx_ir.from_proto(model), tmp_path / "external.onnx", external_data="external.data")
    read = onnx.load(tmp_path / "external.onnx")
    assert [onnx.numpy_helper.to_array(t).tobytes() for t in read.graph.initializer] == [
        onnx.numpy_helper.to_array(t).tobytes() for t in model.graph.initializer
    ]
    near(run(tmp_path / "external.onnx", IMAGE)[0], expected, 1e-5)


class Images(CalibrationDataReader):
    """One image."""

    def __init__(self):
        self.feeds = iter([{"x": IMAGE}])

    def get_next(self):
        return next(self.feeds, None)


def test_quantization_of_onnxruntime(path, expected):
    small, prepared, static = (
        path.with_name(name) for name in ("small.onnx", "prepared.onnx", "static.onnx")
    )
    quantize_dynamic(path, small, weight_type=QuantType.QUInt8)
    near(run(small, IMAGE)[0], expected, 0.05)

    quant_pre_process(path, prepared)
    quantize_static(prepared, static, Images())
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(static).graph.node}
    near(run(static, IMAGE)[0], expected, 0.05)


class OnOnnxruntime(OnnxRuntimeBackend):
    """onnxruntime on the CPU."""

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def test_backend_of_onnxruntime(model, expected, monkeypatch):
    near(OnOnnxruntime.run_model(model, [IMAGE])[0], expected, 1e-5)

    cases = [case for name in ("Abs", "Conv", "Gather", "Relu", "Where") for case in collect_testcases(name)]
    monkeypatch.setattr(runner, "load_model_tests", lambda kind: [c for c in cases if c.kind == kind])
    tests = BackendTest(OnOnnxruntime).exclude("_cuda")
    done = unittest.TextTestRunner(stream=io.StringIO()).run(tests.test_suite)
    ran = done.testsRun - len(done.skipped)
    assert not done.failures
    # it refuses some types and old versions
    assert all("onnxruntime_pybind11_state" in text for _, text in done.errors)
    assert len(done.errors) < ran / 4


def test_netron(path):
    address = netron.serve(str(path), path.read_bytes(), browse=False)
    try:
        page = f"http://{address[0]}:{address[1]}/"
        with urllib.request.urlopen(page) as answer:
            assert b"model.onnx" in answer.read()
        with urllib.request.urlopen(f"{page}data/model.onnx") as answer:  # ruff: ignore[suspicious-url-open-usage]  a server of this process
            assert answer.read() == path.read_bytes()
    finally:
        netron.stop(address)
