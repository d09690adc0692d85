"""Edits read and copy no tensor."""

import tracemalloc

import numpy as np
import pytest

import sabir
from sabir.ir import ExternalTensor

SIZE = 512


@pytest.fixture
def chain():
    """A model of eight products with weights of 1 MiB each."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", SIZE])
    for i in range(8):
        x = b.Relu(
            b.MatMul(x, b.initializer(f"w{i}", np.full((SIZE, SIZE), i / SIZE, np.float32)), name=f"m{i}")
        )
        x.name = f"h{i}"
    b.output(x, "y")
    return b.model()


def edits(model):
    yield sabir.extract(model, inputs="h1", outputs="h5")
    yield from sabir.split(model, at="h3")
    yield sabir.add_outputs(model, "all")
    yield sabir.initializers_to_inputs(model, ["w2"], keep_defaults=True)
    yield sabir.outline(model, ["m2", "h2"], "Block")
    yield sabir.set_dims(model, {"N": 4})


def test_external_data_is_not_read(chain, tmp_path):
    sabir.save(chain, tmp_path / "model.onnx", external="weights.data")
    (tmp_path / "weights.data").rename(tmp_path / "away.data")
    for edited in edits(sabir.load(tmp_path / "model.onnx")):
        assert all(isinstance(tensor, ExternalTensor) for tensor in edited.graph.initializers.values())


def test_tensors_are_not_copied(chain, tmp_path):
    sabir.save(chain, tmp_path / "model.onnx")
    model = sabir.load(tmp_path / "model.onnx")
    list(edits(model))  # imports what the edits need
    tracemalloc.start()
    made = list(edits(model))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(made) == 7
    assert peak < SIZE * SIZE * 4  # one weight


@pytest.mark.parametrize("external", [None, "weights.data"])
def test_a_part_is_saved_with_its_own_data(chain, tmp_path, external):
    sabir.save(chain, tmp_path / "model.onnx", external=external)
    (tmp_path / "other").mkdir()
    part = sabir.extract(sabir.load(tmp_path / "model.onnx"), inputs="h1", outputs="h2")
    for path in (tmp_path / "part.onnx", tmp_path / "other" / "part.onnx"):
        sabir.save(part, path)
        x = np.ones((1, SIZE), np.float32)
        expected = np.full((1, SIZE), 2, np.float32)
        np.testing.assert_array_equal(sabir.evaluate(sabir.load(path), {"h1": x})["h2"], expected)
