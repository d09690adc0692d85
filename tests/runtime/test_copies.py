"""Sessions of files are pickled and copied as their paths and options; others say what to do."""

import copy
import pickle  # ruff: ignore[suspicious-pickle-import]  what is tested

import numpy as np
import pytest

import sabir

TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
X = {"x": np.float32([1, 2])}


def unpickled(session):
    return pickle.loads(pickle.dumps(session))  # ruff: ignore[suspicious-pickle-usage]  our own bytes


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, unpickled])
def test_a_session_of_a_file(tmp_path, again, engine):
    path = tmp_path / "m.onnx"
    sabir.save(sabir.parse(TEXT), path)
    session = sabir.Session(path, engine=engine, threads=1, limits=sabir.Limits(nodes=9))
    session.run(X)
    found = again(session)
    assert found is not session
    assert (found.engine, found.threads) == (session.engine, 1)
    assert found.run(X)["y"].tolist() == [-1, -2]


@pytest.mark.parametrize("again", [copy.deepcopy, pickle.dumps])
def test_a_session_of_a_model_in_memory(again):
    with pytest.raises(sabir.UnsupportedError, match="save the model and pickle the session of its file"):
        again(sabir.Session(sabir.parse(TEXT)))
