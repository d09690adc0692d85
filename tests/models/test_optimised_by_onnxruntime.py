"""Files that onnxruntime writes after its optimisations run on both engines, at every level."""

import numpy as np
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplemented_

import sabir
from sabir import Builder
from sabir.base import SabirError
from sabir.checking import findings
from sabir.evaluation import expanded
from sabir.ir import Attribute
from sabir.opsets import STANDARD
from sabir.opsets.families.windows.blocked_channels import SETTING
from support.small_networks import NETWORKS

LEVELS = {
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_LAYOUT,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
BLOCKED = "com.microsoft.nchwc"


# what onnxruntime adds at each level; with blocks where it has kernels for them on the processor
ADDED = {
    ("cnn", "basic"): set(),
    ("cnn", "extended"): {"FusedConv", "FusedGemm"},
    ("transformer", "basic"): set(),
    ("transformer", "extended"): {"FusedMatMul", "QuickGelu"},
    ("transformer", "layout"): {"FusedMatMul", "QuickGelu"},
    ("transformer", "all"): {"FusedMatMul", "QuickGelu"},
}
WITH_BLOCKS = {
    "AveragePool", "Conv", "GlobalAveragePool", "MaxPool", "ReorderOutput", "Upsample", "FusedGemm",
}  # fmt: skip


@pytest.fixture(scope="module")
def blocks():
    """The channels of a block of onnxruntime on this processor; 0 where it has no blocks."""
    b = Builder(18, opsets={BLOCKED: 1})
    x = b.input("x", "float", [1, 4, 1, 1])
    b.output(b.op("ReorderInput", x, domain=BLOCKED), "y")
    try:
        session = onnxruntime.InferenceSession(sabir.dumps(b.model()))
    except NotImplemented_:
        return 0
    (y,) = session.run(None, {"x": np.ones((1, 4, 1, 1), np.float32)})
    return y.shape[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What a network computes and the files of its levels, each made once."""
    folder, made = tmp_path_factory.mktemp("optimised"), {}

    def file(network, level):
        if (network, level) not in made:
            model, shapes = NETWORKS[network]()
            path = folder / f"{network}.{level}.onnx"
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = LEVELS[level]
            options.optimized_model_filepath = str(path)
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(
                sabir.dumps(model), options, providers=["CPUExecutionProvider"]
            )
            rng = np.random.default_rng(5)
            feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
            made[network, level] = path, feeds, session.run(None, feeds)
        return made[network, level]

    return file


def added(model):
    return {n.op for n in model.graph.all_nodes() if n.domain not in {"", "ai.onnx"}}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("network", NETWORKS)
def test_engines_compute_what_onnxruntime_does(network, level, engine, files, blocks, monkeypatch):
    monkeypatch.setenv(SETTING, str(blocks or ""))
    path, feeds, expected = files(network, level)
    model = sabir.load(path)
    wanted = ADDED.get((network, level))
    if wanted is None:
        wanted = WITH_BLOCKS if blocks else ADDED[network, "extended"]

    assert added(model) == wanted
    assert not [f for f in findings(model) if f.severity == "error"]
    for value, theirs in zip(sabir.Session(model, engine=engine).run(feeds).values(), expected, strict=True):
        np.testing.assert_allclose(value, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_bodies_are_of_the_standard(network, files, blocks, monkeypatch):
    monkeypatch.setenv(SETTING, str(blocks or ""))
    path, feeds, expected = files(network, "all")

    model = sabir.inline(sabir.load(path), operators=True)

    assert not added(model)
    for value, theirs in zip(sabir.evaluate(model, feeds).values(), expected, strict=True):
        np.testing.assert_allclose(value, theirs, rtol=1e-4, atol=1e-5)


def test_blocks_cancel_between_operators(files, blocks, monkeypatch):
    if not blocks:
        pytest.skip("onnxruntime has no kernels for blocks of channels on this processor")
    monkeypatch.setenv(SETTING, str(blocks))
    path, _, _ = files("cnn", "all")
    model = expanded(sabir.load(path), STANDARD, None)

    moved = [n for n in model.graph if n.op == "Transpose" and not of_constant(n)]
    assert not moved


def of_constant(node):
    """Whether a node computes a constant, as the order of filters."""
    return all(v is None or v.constant is not None or (v.node and of_constant(v.node)) for v in node.inputs)


def test_a_size_of_blocks_that_nothing_determines_is_asked_for(monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    model = reordering(32)
    with pytest.raises(SabirError, match=f"8 or 16 of them: set the environment variable {SETTING} to 16"):
        sabir.evaluate(model, {"x": np.ones((1, 32, 2, 2), np.float32)})


def test_a_setting_of_another_size_is_refused(monkeypatch):
    monkeypatch.setenv(SETTING, "12")
    with pytest.raises(SabirError, match=f"{SETTING} is '12', and must be 8 or 16"):
        sabir.evaluate(reordering(32), {"x": np.ones((1, 32, 2, 2), np.float32)})


def test_a_setting_that_contradicts_the_channels_is_refused(monkeypatch):
    monkeypatch.setenv(SETTING, "16")
    with pytest.raises(SabirError, match=r"\[24\] channels cannot be stored in blocks of 16"):
        sabir.evaluate(reordering(24), {"x": np.ones((1, 24, 2, 2), np.float32)})


@pytest.mark.parametrize("size", [8, 16])
def test_the_setting_decides(size, engine, monkeypatch):
    monkeypatch.setenv(SETTING, str(size))
    x = np.arange(128, dtype=np.float32).reshape(1, 32, 2, 2)

    y = sabir.Session(reordering(32), engine=engine).run({"x": x})["y"]

    stored = x.reshape(32 // size, 2, 2, size)  # onnxruntime's documentation of NCHWc
    np.testing.assert_array_equal(y[0], stored.transpose(0, 3, 1, 2).reshape(32, 2, 2))


def reordering(channels):
    """A model that stores an image in blocks of channels without blocks."""
    b = Builder(18, opsets={BLOCKED: 1})
    x = b.input("x", "float", [1, channels, 2, 2])
    b.output(b.op("ReorderOutput", x, domain=BLOCKED, channels=Attribute("channels", "int", channels)), "y")
    return b.model()
