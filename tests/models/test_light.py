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


def official_input(session):
    """The input as the official runner makes it: a ramp from 0 to 1."""
    (port,) = [p for p in session.inputs if not p.optional]
    size = int(np.prod(port.shape))
    return {port.name: (np.arange(size).astype(np.float32) / size).reshape(port.shape)}


@pytest.mark.parametrize("path", MODELS, ids=[p.stem for p in MODELS])
def test_answers(path, engine):
    session = sabir.Session(path, engine=engine)
    expected = load_tensor(path.with_name(f"{path.stem}_output_0.pb")).array()

    (got,) = session.run(official_input(session)).values()

    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-7)  # the official tolerances


@pytest.mark.parametrize("path", MODELS, ids=[p.stem for p in MODELS])
def test_they_are_valid_and_every_shape_follows(path):
    model = sabir.load(path)
    sabir.check(model)
    for node in model.graph:
        for value in node.outputs:
            if value is not None:
                value.type = None

    sabir.infer(model, strict=True)

    unknown = [
        v for n in model.graph for v in n.outputs if v is not None and not (v.type and v.type.is_static)
    ]
    assert not unknown


def test_all_nine_are_here():
    assert len(MODELS) == 9
