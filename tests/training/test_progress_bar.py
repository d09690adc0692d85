"""The progress bar of a training."""

import io
import sys

import numpy as np
import pytest

import sabir
from sabir.training import SGD, Progress, ProgressBar, prepare

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}> { y = MatMul (x, w) }"""
DATA = {"x": np.ones((20, 2), np.float32), "label": np.ones((20, 1), np.float32)}


@pytest.fixture
def session():
    return sabir.TrainingSession(prepare(sabir.parse(TEXT), "mse", optimizer=SGD(0.1)), engine="reference")


def test_each_epoch_has_a_bar_with_the_results(session):
    out = io.StringIO()
    found = session.fit(DATA, epochs=2, batch=5, progress=ProgressBar(file=out))
    shown = out.getvalue()
    for number, epoch in enumerate(found, 1):
        assert f"epoch {number}/2: 100%" in shown
        assert f"loss={epoch.results['loss']:.4g}" in shown
    assert shown.count("4/4") >= 2


def test_fit_makes_and_closes_a_bar(session, capsys):
    session.fit(DATA, batch=5, progress=True)
    assert "epoch 1/1: 100%" in capsys.readouterr().err
    session.fit(DATA, epochs=2, batch=5, progress="auto")
    session.fit(DATA, epochs=3, batch=5, progress=False)
    assert not capsys.readouterr().err


def test_an_unknown_number_of_batches_is_counted():
    out = io.StringIO()
    with ProgressBar(file=out) as bar:
        bar(Progress(1, 2, 3, 0, {}))
        bar(Progress(2, 2, 1, 0, {}))
    assert "epoch 1/2: 3batch" in out.getvalue()
    assert "epoch 2/2: 1batch" in out.getvalue()


def test_without_tqdm(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(sabir.UnsupportedError, match=r"sabir\[progress\]"):
        session.fit(DATA, progress=True)
    with pytest.raises(sabir.UnsupportedError, match=r"sabir\[progress\]"):
        ProgressBar()
    assert session.steps == 0
