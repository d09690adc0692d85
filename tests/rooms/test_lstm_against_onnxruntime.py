"""LSTM in all its forms against onnxruntime."""

import itertools

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.ir import Builder

NAMES = ("X", "W", "R", "B", "lens", "h", "c", "P")
FORMS = list(itertools.product(("forward", "reverse", "bidirectional"), *[(False, True)] * 3))
FUNCTIONS = ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus"]


def both(arrays, **attributes):
    """What Sabir and onnxruntime make of the same call."""
    b = Builder(14)
    inputs = [None if a is None else b.input(n, a.dtype, a.shape) for n, a in zip(NAMES, arrays, strict=True)]
    made = b.op("LSTM", *inputs, outputs=3, **attributes)
    for value, name in zip(made, ("Y", "Y_h", "Y_c"), strict=True):
        b.output(value, name, "float", [None] * (4 if name == "Y" else 3))
    model = b.model()
    feeds = {n: a for n, a in zip(NAMES, arrays, strict=True) if a is not None}
    session = onnxruntime.InferenceSession(sabir.dumps(model), providers=["CPUExecutionProvider"])
    return list(sabir.evaluate(model, feeds).values()), session.run(None, feeds)


def arrays(rng, ways=1, *, lens=False, states=False, rest=False):
    time, batch, width, hidden = (int(n) for n in rng.integers(1, 6, 4))

    def some(*shape):
        return rng.standard_normal(shape).astype(np.float32) * np.float32(0.7)

    return [
        some(time, batch, width),
        some(ways, 4 * hidden, width),
        some(ways, 4 * hidden, hidden),
        some(ways, 8 * hidden) if rest else None,
        rng.integers(1, time + 1, batch).astype(np.int32) if lens else None,
        some(ways, batch, hidden) if states else None,
        some(ways, batch, hidden) if states else None,
        some(ways, 3 * hidden) if rest else None,
    ]


@pytest.mark.parametrize(("direction", "lens", "states", "rest"), FORMS)
def test_forms(direction, lens, states, rest):
    rng = np.random.default_rng(FORMS.index((direction, lens, states, rest)))
    given = arrays(rng, 2 if direction == "bidirectional" else 1, lens=lens, states=states, rest=rest)
    for more in ({}, {"clip": 0.5}, {"input_forget": 1}):
        for got, expected in zip(
            *both(given, direction=direction, hidden_size=given[2].shape[2], **more), strict=True
        ):
            np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function):
    given = arrays(np.random.default_rng(7))
    names = ["HardSigmoid", function, function]
    for parameters in ({}, {"activation_alpha": [0.3, 0.6, 0.7], "activation_beta": [0.4, 0.5]}):
        pairs = both(given, hidden_size=given[2].shape[2], activations=names, **parameters)
        for got, expected in zip(*pairs, strict=True):
            np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-4, atol=1e-5)
