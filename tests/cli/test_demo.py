import re

import numpy as np
import pytest

import sabir
from sabir.demo import digits


@pytest.fixture(scope="module")
def data():
    return digits()


@pytest.fixture(scope="module")
def answers(data):
    return sabir.Session(data.model).run({"image": data.images[:, None].astype(np.float32)})["probabilities"]


def test_the_data_is_small_and_whole(data):
    assert len(data.model) < 300_000
    assert data.images.shape == (360, 8, 8)
    assert data.images.dtype == data.labels.dtype == np.uint8
    assert data.images.max() == 16
    assert set(data.labels.tolist()) == set(range(10))


def test_no_held_back_image_was_for_training(data):
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    real = {
        image.astype(np.uint8).tobytes(): label
        for image, label in zip(*load_digits(return_X_y=True), strict=True)
    }
    images = {image.tobytes(): label for image, label in zip(data.images, data.labels.tolist(), strict=True)}
    assert len(images) == 360
    assert all(real[image] == label for image, label in images.items())


def test_most_digits_are_read_rightly(data, answers):
    assert (answers.argmax(1) == data.labels).mean() >= 0.97
    np.testing.assert_allclose(answers.sum(1), 1, atol=1e-5)


def test_onnxruntime_gives_the_same_answers(data, answers):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(data.model, providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"image": data.images[:, None].astype(np.float32)})
    np.testing.assert_array_equal(theirs.argmax(1), answers.argmax(1))
    np.testing.assert_allclose(theirs, answers, atol=1e-5)


def test_onnx_finds_the_model_sound(data):
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(onnx.load_from_string(data.model), full_check=True)


def test_the_demo(cli):
    code, out, err = cli("demo")
    assert (code, err) == (0, "")
    assert "checked   no problems found\n" in out
    assert "inferred  image float[N,1,8,8], probabilities float[N,10]\n" in out
    assert out.count("answer ") == 4
    assert float(re.search(r"([\d.]+)% right  \d+ of 360 digits that it was not trained on", out)[1]) >= 97
    assert " a picture one at a time, " in out
    assert all(line == line.rstrip() and len(line) <= 100 for line in out.splitlines())


def test_the_demo_in_ascii(cli, monkeypatch):
    monkeypatch.setattr("sabir.cli._screen.Screen.can_show", lambda *_: False)
    assert cli("demo").out.isascii()
