"""GRU and RNN in all their forms against onnxruntime."""

import itertools

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.ir import Builder

NAMES = ("X", "W", "R", "B", "lens", "h")
GATES = {"GRU": 3, "RNN": 1}
FORMS = list(itertools.product(("GRU", "RNN"), ("forward", "reverse", "bidirectional"), *[(False, True)] * 3))


def both(op, arrays, **attributes):
    """What Sabir and onnxruntime make of the same call."""
    b = Builder(14)
    inputs = [None if a is None else b.input(n, a.dtype, a.shape) for n, a in zip(NAMES, arrays, strict=True)]
    made = b.op(op, *inputs, outputs=2, **attributes)
    for value, name, rank in zip(made, ("Y", "Y_h"), (4, 3), strict=True):
        b.output(value, name, "float", [None] * rank)
    model = b.model()
    feeds = {n: a for n, a in zip(NAMES, arrays, strict=True) if a is not None}
    session = onnxruntime.InferenceSession(sabir.dumps(model), providers=["CPUExecutionProvider"])
    return list(sabir.evaluate(model, feeds).values()), session.run(None, feeds)


@pytest.mark.parametrize(("op", "direction", "lens", "state", "bias"), FORMS)
def test_forms(op, direction, lens, state, bias):
    rng = np.random.default_rng(FORMS.index((op, direction, lens, state, bias)))
    ways, rows = (2 if direction == "bidirectional" else 1), GATES[op]
    time, batch, width, hidden = (int(n) for n in rng.integers(1, 6, 4))

    def some(*shape):
        return rng.standard_normal(shape).astype(np.float32) * np.float32(0.7)

    given = [
        some(time, batch, width),
        some(ways, rows * hidden, width),
        some(ways, rows * hidden, hidden),
        some(ways, 2 * rows * hidden) if bias else None,
        rng.integers(1, time + 1, batch).astype(np.int32) if lens else None,
        some(ways, batch, hidden) if state else None,
    ]
    late = [{"linear_before_reset": 1}] if op == "GRU" else []
    for more in ({}, {"clip": 0.4}, *late):
        for got, expected in zip(
            *both(op, given, direction=direction, hidden_size=hidden, **more), strict=True
        ):
            np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-4, atol=1e-5)
