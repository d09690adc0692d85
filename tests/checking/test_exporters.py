# ruff: file-ignore[banned-api]  the models come from the tools that write them
"""What real exporters write is clean: no error, no warning, and nothing to repair that would change a name.

The models are rebuilt by their writers; those of PyTorch, which the tests do without, are in `models/`.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import onnxslim
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from skl2onnx import to_onnx
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sabir
from sabir.checking import findings
from sabir.repairing import fix_in_place

TORCH = sorted(Path(__file__).with_name("models").glob("*.onnx"))
X = np.random.RandomState(0).rand(40, 4).astype(np.float32)
CLASSES, NUMBERS = (X[:, 0] * 3).astype(int), X.sum(1)


def messages(source, **options):
    return [str(f) for f in findings(source, **options)]


# PyTorch


@pytest.mark.parametrize("path", TORCH, ids=lambda p: p.stem)
def test_models_of_pytorch(path):
    assert messages(path) == []
    assert {f.rule for f in findings(path, strict=True)} >= {"NAME001"}, "its names are a matter of style"


@pytest.mark.parametrize("path", TORCH, ids=lambda p: p.stem)
def test_the_names_of_pytorch_stay_in_a_repair(path):
    model = sabir.load(path)
    names = [v.name for v in model.graph.defined()]
    nodes = [n.name for n in model.graph]
    version = model.ir_version
    fix_in_place(model)
    assert [v.name for v in model.graph.defined()] == names
    assert [n.name for n in model.graph] == nodes
    assert model.ir_version == version


# scikit-learn's converter

ESTIMATORS = {
    "logistic": (LogisticRegression(), CLASSES, {}),
    "logistic without zipmap": (LogisticRegression(), CLASSES, {"zipmap": False}),
    "linear": (LinearRegression(), NUMBERS, {}),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), CLASSES, {}),
    "forest": (RandomForestClassifier(3, random_state=0), CLASSES, {}),
    "forest of regression": (RandomForestRegressor(3, random_state=0), NUMBERS, {}),
    "boosting": (GradientBoostingClassifier(n_estimators=3, random_state=0), CLASSES, {}),
    "boosting of regression": (GradientBoostingRegressor(n_estimators=3, random_state=0), NUMBERS, {}),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_models_of_scikit_learn(name):
    estimator, target, options = ESTIMATORS[name]
    made = to_onnx(estimator.fit(X, target), X[:1], options={id(estimator): options} if options else None)
    assert messages(made.SerializeToString()) == []
    read = sabir.parse(onnx.printer.to_text(made))
    assert messages(read) == []
    assert [n.op for n in read.graph] == [n.op_type for n in made.graph.node]


# models to slim, to quantise and to optimise


def initializer(name, *shape):
    return numpy_helper.from_array(np.random.RandomState(1).rand(*shape).astype(np.float32), name)


def network():
    """A convolution with a batch normalization, and a linear layer, with names as PyTorch gives them."""
    nodes = [
        helper.make_node(
            "Conv", ["x.1", "conv.weight", "conv.bias"], ["/conv/out"], "/conv/Conv", pads=[1] * 4
        ),
        helper.make_node(
            "BatchNormalization", ["/conv/out", *(f"bn.{p}" for p in ("w", "b", "mean", "var"))], ["/bn/out"]
        ),
        helper.make_node("Relu", ["/bn/out"], ["/relu/out"], "/relu/Relu"),
        helper.make_node("GlobalAveragePool", ["/relu/out"], ["/pool/out"], "/pool"),
        helper.make_node("Flatten", ["/pool/out"], ["/flat/out"], "/flat"),
        helper.make_node("Identity", ["/flat/out"], ["/drop/out"], "/drop"),
        helper.make_node("MatMul", ["/drop/out", "fc.weight"], ["/fc/matmul"], "/fc/MatMul"),
        helper.make_node("Add", ["/fc/matmul", "fc.bias"], ["/fc/out"], "/fc/Add"),
        helper.make_node("Softmax", ["/fc/out"], ["y.1"], "/softmax", axis=1),
    ]
    weights = [
        initializer("conv.weight", 4, 3, 3, 3),
        initializer("conv.bias", 4),
        initializer("fc.weight", 4, 5),
    ]
    weights += [initializer("fc.bias", 5), *(initializer(f"bn.{p}", 4) for p in ("w", "b", "mean", "var"))]
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info("x.1", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y.1", TensorProto.FLOAT, [1, 5])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "network.onnx"
    onnx.save(network(), path)
    return path


def test_models_that_onnxslim_wrote():
    slimmed = onnxslim.slim(network())
    described = [info.name for info in slimmed.graph.value_info]
    assert len(described) > len(set(described)), "onnxslim describes values twice; is it still so?"
    assert messages(slimmed.SerializeToString()) == []
    read = sabir.parse(onnx.printer.to_text(slimmed))
    assert messages(read) == []
    assert [v.name for v in read.graph.orphan_value_info] == [
        v.name for v in sabir.loads(slimmed.SerializeToString()).graph.orphan_value_info
    ]


class Readings(CalibrationDataReader):
    def __init__(self):
        self.left = iter([
            {"x.1": np.random.RandomState(i).rand(1, 3, 8, 8).astype(np.float32)} for i in range(3)
        ])

    def get_next(self):
        return next(self.left, None)


QUANTIZERS = {
    "dynamic int8": lambda a, b: quantize_dynamic(a, b, weight_type=QuantType.QInt8),
    "dynamic uint8": lambda a, b: quantize_dynamic(a, b, weight_type=QuantType.QUInt8),
    "QDQ": lambda a, b: quantize_static(a, b, Readings(), quant_format=QuantFormat.QDQ),
    "QDQ by channel": lambda a, b: quantize_static(
        a, b, Readings(), quant_format=QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8
    ),
    "QDQ of 16 bits": lambda a, b: quantize_static(
        a,
        b,
        Readings(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt16,
        weight_type=QuantType.QInt16,
    ),
}


@pytest.mark.parametrize("how", QUANTIZERS)
def test_models_that_onnxruntime_quantised(how, source, tmp_path):
    QUANTIZERS[how](source, tmp_path / "quantised.onnx")
    assert messages(tmp_path / "quantised.onnx") == []


def test_quantised_operators_of_another_domain_are_one_warning(source, tmp_path):
    quantize_static(source, tmp_path / "q.onnx", Readings(), quant_format=QuantFormat.QOperator)
    model = sabir.load(tmp_path / "q.onnx")
    assert_one_warning(model)


def assert_one_warning(model):
    """One finding counts the calls of all operators that onnxruntime adds to the standard."""
    foreign = Counter(f"{n.domain}.{n.op}" for n in model.graph if n.domain.startswith("com.microsoft"))
    assert foreign
    (found,) = findings(model)
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(foreign.items()))
    assert (found.rule, found.severity) == ("NODE019", "warning")
    assert found.message.endswith(f": {listed}")


@pytest.fixture
def optimised(source, tmp_path):
    """What onnxruntime saves of the network at a level of its optimiser."""

    def run(level):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.log_severity_level = 3
        options.optimized_model_filepath = str(tmp_path / f"{level}.onnx")
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        return tmp_path / f"{level}.onnx"

    return run


def test_models_that_onnxruntime_optimised(optimised):
    assert messages(optimised("ORT_ENABLE_BASIC")) == []


@pytest.mark.parametrize("level", ["ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
def test_fused_operators_are_one_warning_and_nothing_else(optimised, level):
    assert_one_warning(sabir.load(optimised(level)))


def test_an_import_that_the_optimiser_adds_is_dropped_rather_than_the_version_raised(optimised):
    """Raised to the IR version of ai.onnx.preview, the model would not load in onnxruntime any more."""
    model = sabir.load(optimised("ORT_ENABLE_BASIC"))
    version = model.ir_version
    assert "MODEL007" in {f.rule for f in findings(model, strict=True)}
    fix_in_place(model)
    assert model.ir_version == version
    assert "MODEL007" not in {f.rule for f in findings(model, strict=True)}
    onnxruntime.InferenceSession(sabir.dumps(model), providers=["CPUExecutionProvider"])
