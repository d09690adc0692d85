"""Files that onnxruntime's quantizers write run on both engines, and as operators of the standard in onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from onnxruntime import quantization
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

import sabir
from sabir.inlining import inline_domains
from support.small_networks import NETWORKS

onnx = pytest.importorskip("onnx")


class Reader(quantization.CalibrationDataReader):
    """The feeds that ranges come from."""

    def __init__(self, feeds):
        self.feeds = iter([feeds])

    def get_next(self):
        return next(self.feeds, None)


def dynamic(path, target, _):
    quantization.quantize_dynamic(path, target)


def static(form):
    def made(path, target, feeds):
        quantization.quantize_static(path, target, Reader(feeds), quant_format=form)

    return made


def four_bits(path, target, _):
    made = MatMulNBitsQuantizer(onnx.load(path), block_size=16, is_symmetric=False)
    made.process()
    made.model.save_model_to_file(str(target))


TOOLS = {
    "dynamic": dynamic,
    "operators": static(quantization.QuantFormat.QOperator),
    "pairs": static(quantization.QuantFormat.QDQ),
    "4 bits": four_bits,
}
# some of what onnxruntime adds, after its extended optimisations
ADDED = {
    ("cnn", "dynamic"): {"DynamicQuantizeMatMul"},
    ("cnn", "operators"): {
        "QGemm",
        "QLinearAdd",
        "QLinearConcat",
        "QLinearGlobalAveragePool",
        "QLinearSigmoid",
    },
    ("cnn", "pairs"): {"QGemm", "QLinearConcat", "QLinearLeakyRelu"},
    ("cnn", "4 bits"): {"FusedConv", "FusedGemm"},
    ("transformer", "dynamic"): {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "FusedMatMul"},
    ("transformer", "operators"): {"QLinearMul", "QLinearSigmoid", "QLinearSoftmax"},
    ("transformer", "pairs"): {"QLinearSigmoid", "QLinearSoftmax"},
    ("transformer", "4 bits"): {"MatMulNBits", "FusedMatMul"},
}


def session(model, target=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 3
    if target is not None:
        options.optimized_model_filepath = str(target)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module", params=[(n, t) for n in NETWORKS for t in TOOLS], ids=" by ".join)
def quantised(request, tmp_path_factory):
    """A file, quantized and optimized, with feeds and the results of onnxruntime."""
    network, tool = request.param
    folder = tmp_path_factory.mktemp("quantised")
    model, shapes = NETWORKS[network]()
    sabir.save(model, folder / "model.onnx")
    rng = np.random.default_rng(5)
    feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    TOOLS[tool](folder / "model.onnx", folder / "quantised.onnx", feeds)
    path = folder / "optimised.onnx"
    expected = session(str(folder / "quantised.onnx"), path).run(None, feeds)
    return (network, tool), path, feeds, expected


def added(model):
    return {node.op for node in model.graph.all_nodes() if node.domain not in {"", "ai.onnx"}}


def close(got, expected):
    """Of the range, 2%: a scale in another order of roundings moves a few integers by one."""
    for ours, theirs in zip(got, expected, strict=True):
        assert np.abs(ours - theirs).max() <= 0.02 * np.ptp(theirs)


def test_engines_compute_what_onnxruntime_does(quantised, engine):
    case, path, feeds, expected = quantised
    model = sabir.load(path)
    assert added(model) >= ADDED[case]
    close(sabir.Session(model, engine=engine).run(feeds).values(), expected)


def test_operators_of_the_standard_compute_the_same_in_onnxruntime(quantised):
    _, path, feeds, expected = quantised
    model = inline_domains(sabir.load(path), ["com.microsoft"]).model
    assert not added(model)
    close(session(sabir.dumps(model)).run(None, feeds), expected)
