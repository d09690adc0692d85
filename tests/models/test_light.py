# ruff: file-ignore[banned-api]  the models and their answers come with onnx
"""The light models of the onnx wheel give the answers stored beside them."""

import pathlib

import numpy as np
import onnx
import pytest

import sabir
from sabir.serial import load_tensor

FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(FOLDER.glob("*.onnx"))
# all weights of a layer are equal, and so are all logits, near 9e9, where neighbouring floats are 1024 apart
EQUAL_LOGITS = FOLDER / "light_squeezenet.onnx"


def official_input(session):
    """The input as the official runner makes it: a ramp from 0 to 1."""
    (port,) = [p for p in session.inputs if not p.optional]
    size = int(np.prod(port.shape))
    return {port.name: (np.arange(size).astype(np.float32) / size).reshape(port.shape)}


@pytest.mark.parametrize("path", [p for p in MODELS if p != EQUAL_LOGITS], ids=lambda p: p.stem)
def test_answers(path, engine):
    session = sabir.Session(path, engine=engine)
    expected = load_tensor(path.with_name(f"{path.stem}_output_0.pb")).array()

    (got,) = session.run(official_input(session)).values()

    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-7)  # the official tolerances


def test_equal_logits_stay_equal(engine):
    """A BLAS may add in another order for some channels: Softmax of the logits would show it."""
    model = sabir.load(EQUAL_LOGITS)
    last = list(model.graph)[-1]
    assert last.op == "Softmax"
    expected = load_tensor(EQUAL_LOGITS.with_name("light_squeezenet_output_0.pb")).array()
    model.graph.outputs[:] = [last.inputs[0]]
    session = sabir.Session(model, engine=engine)

    (logits,) = session.run(official_input(session)).values()

    assert logits.shape == expected.shape
    assert np.unique(expected).size == 1
    np.testing.assert_allclose(logits, logits.max(), rtol=1e-6)
    assert logits.max() > 1e9


@pytest.mark.parametrize("path", MODELS, ids=[p.stem for p in MODELS])
def test_they_are_valid_and_every_shape_follows(path):
    model = sabir.load(path)
    sabir.check(model)
    for node in model.graph:
        for value in node.outputs:
            if value is not None:
                value.type = None

    model = sabir.infer(model, strict=True)

    unknown = [
        v for n in model.graph for v in n.outputs if v is not None and not (v.type and v.type.is_static)
    ]
    assert not unknown


def test_all_nine_are_here():
    assert len(MODELS) == 9
