"""STFT of a real signal without the dimension of parts, and inputs of a wrong shape."""

from typing import Any

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.base import CheckError, EvaluationError
from sabir.ir import Builder

STEP, LENGTH, WINDOW = np.array(2), np.array(4), np.array([0.5, 1, 1, 0.5], np.float32)


def model(inputs, shapes=None, **attributes):
    b = Builder(17, check=False)
    values = [
        None if a is None else b.input(f"v{i}", a.dtype, (shapes or {}).get(i, a.shape))
        for i, a in enumerate(inputs)
    ]
    b.output(b.op("STFT", *values, **attributes), "y", "float", [None] * 4)
    return b.model()


def feeds(inputs):
    return {f"v{i}": a for i, a in enumerate(inputs) if a is not None}


def signal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_signal_of_rank_2_is_real(onesided, window):
    x = signal(3, 11)
    bare, whole = [x, STEP, window, LENGTH], [x[..., None], STEP, window, LENGTH]
    found = sabir.evaluate(model(bare, onesided=onesided), feeds(bare))["y"]
    np.testing.assert_array_equal(found, sabir.evaluate(model(whole, onesided=onesided), feeds(whole))["y"])
    session = onnxruntime.InferenceSession(
        sabir.dumps(model(bare, onesided=onesided)), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_allclose(found, np.asarray(session.run(None, feeds(bare))[0]), rtol=1e-4, atol=1e-5)


def test_the_checker_warns():
    bare = [signal(3, 11), STEP, WINDOW]
    found = [f for f in sabir.findings(model(bare)) if f.rule == "NODE017"]
    assert [(f.severity, f.message) for f in found] == [
        (
            "warning",
            "STFT:17: `signal` is float[3,11] and is taken as real; the standard requires rank 3: add a dimension of 1",
        )
    ]
    sabir.check(model(bare), ignore=["NAME", "META"])
    unknown = model([signal(3, 11, 1), STEP, WINDOW], {0: None})
    assert not [f for f in sabir.findings(unknown) if f.rule == "NODE017"]


def test_the_checker_warns_in_functions_and_branches():
    text = """<ir_version: 10, opset_import: ["": 17, "d": 1]>
    g (bool c, float[1,N] x, int64 s, float[4] w) => (float[1,M,3,2] y, float[1,M,3,2] z) {
        y = d.spectrum (x, s, w)
        z = If <
            then_branch = yes () => (float[1,M,3,2] a) { a = STFT (x, s, w) },
            else_branch = no () => (float[1,M,3,2] b) { u = Relu (x)  b = STFT (u, s, w) }
        > (c)
    }
    <domain: "d", opset_import: ["": 17]>
    spectrum (x, s, w) => (y) { u = Neg (x)  y = STFT (u, s, w) }"""
    found = [f for f in sabir.findings(sabir.parse(text)) if f.rule == "NODE017"]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([signal(11), STEP, WINDOW], r"`signal` must be of rank 3, not of shape \[11\]"),
        ([signal(1, 1, 11, 1), STEP, WINDOW], "`signal` must be of rank 3"),
        (
            [signal(1, 2, 5), STEP, WINDOW],
            "last dimension of `signal` must be 1 .real. or 2 .complex., and is 5",
        ),
        ([signal(1, 11), np.array([1, 2]), WINDOW], r"`frame_step` must be a scalar, not of shape \[2\]"),
        (
            [signal(1, 11), STEP, None, np.array([4, 4])],
            r"`frame_length` must be a scalar, not of shape \[2\]",
        ),
        ([signal(1, 11), STEP, WINDOW[None]], r"`window` must be 1-D, not of shape \[1, 4\]"),
    ],
)
def test_inputs_of_a_wrong_shape(inputs, told):
    with pytest.raises(CheckError, match=told):
        sabir.check(model(inputs), select=["TYPE"])
    unknown = {i: [None] * a.ndim for i, a in enumerate(inputs) if a is not None}
    with pytest.raises(EvaluationError, match=told):
        sabir.evaluate(model(inputs, unknown), feeds(inputs))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_a_clip_of_0_is_a_warning(op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    for clip, count in ((0.0, 1), (1.0, 0), (None, 0)):
        b = Builder(14)
        shapes = [2, 1, 3], [1, gates * 4, 3], [1, gates * 4, 4]
        values = [b.input(f"v{i}", "float", s) for i, s in enumerate(shapes)]
        attributes: dict[str, Any] = {} if clip is None else {"clip": clip}
        b.output(b.op(op, *values, **attributes), "y")
        assert [f.rule for f in sabir.findings(b.model())].count("NODE017") == count
