"""What the sweep found, each kind once; what is not here stands with its subject in the other files."""

from typing import Any

import numpy as np
import pytest

import sabir
from sabir import Builder
from sabir.base import SabirError
from sabir.ir import tensor_type

pytestmark = pytest.mark.usefixtures("untrusted_files")

F = np.float32
MANY_AXES = (1,) * 64
OLD = [
    ("PRelu", 7),
    ("Div", 6),
    ("Equal", 1),
    ("Greater", 1),
    ("Gemm", 6),
    ("Xor", 1),
    ("Where", 9),
    ("StringConcat", 20),
]


def of_many_axes(op, opset):
    """A call whose first input has as many axes as numpy can hold, more than it can broadcast."""
    kind = {"Xor": np.bool_, "Where": np.bool_, "StringConcat": object, "Equal": np.int32}.get(op, F)
    count = {"Gemm": 3, "Where": 3}.get(op, 2)
    b = Builder(opset, check=False)
    first = np.full(MANY_AXES, "a" if kind is object else 1, kind)
    rest = [np.full(MANY_AXES, "b" if kind is object else 1, kind if op != "Where" else F)] * (count - 1)
    values = [b.initializer(f"x{k}", x) for k, x in enumerate([first, *rest])]
    b.output(b.op(op, *values))
    return sabir.Model(b.graph, b.opsets, 10)


@pytest.mark.parametrize(("op", "opset"), OLD, ids=str)
def test_more_axes_than_numpy_broadcasts_end_in_an_answer_or_an_error(op, opset):
    """Numpy raises a RuntimeError, of all errors."""
    model = of_many_axes(op, opset)
    list(sabir.findings(model))
    model = sabir.infer(model)
    try:
        (y,) = sabir.evaluate(model, {}).values()
    except SabirError as error:
        assert op in str(error)
    else:
        assert y.shape == MANY_AXES


LONG = "a" * 5000
VERBOSE = {
    "a mode": lambda b, x: b.DepthToSpace(x, blocksize=1, mode=LONG),
    "a padding": lambda b, x: b.MaxPool(x, kernel_shape=[1, 1], auto_pad=LONG),
    "axes": lambda b, x: b.ReduceMax(x, axes=[2] * 1000),
    "strides": lambda b, x: b.MaxPool(x, kernel_shape=[1, 1], strides=[2] * 1000),
    "parts": lambda b, x: b.Split(x, split=[1] * 1000, outputs=1),
    "a shape": lambda b, x: b.Reshape(x, b.initializer("shape", np.full(5000, 2))),
    "an element type": lambda b, x: b.Cast(x, to=2**62),
    "an equation": lambda b, x: b.Einsum(x, equation=LONG),
    "a name": lambda b, x: b.op(LONG, x),
    "a domain": lambda b, x: b.op("F", x, domain=LONG),
    "an attribute": lambda b, x: b.Relu(x, **{LONG: 1}),
}


@pytest.mark.parametrize("what", VERBOSE)
def test_a_message_does_not_repeat_all_of(what):
    b = Builder(12, check=False)
    x = b.graph.add_input("x", tensor_type(F, (1, 1, 2, 2)))
    b.output(VERBOSE[what](b, x))
    model = sabir.Model(b.graph, b.opsets, 7)
    with pytest.raises(SabirError) as caught:
        sabir.evaluate(model, {"x": np.ones((1, 1, 2, 2), F)}, strict=True)
    assert len(str(caught.value)) <= 2000
    assert all(len(str(f)) <= 3000 for f in sabir.findings(model))


@pytest.mark.parametrize("key", ["y", "xs", "zs"])
def test_an_attribute_that_names_values_may_be_a_tensor(key):
    """NODE018 iterated over it."""
    names: Any = {"y": "x", "xs": ["x"]} | {key: np.zeros(2, F)}
    b, domain = Builder(21, check=False), "ai.onnx.preview.training"
    x = b.input("x", "float", [2])
    b.output(b.op("Gradient", x, domain=domain, **names))
    rules = [f.rule for f in sabir.findings(sabir.Model(b.graph, {"": 21, domain: 1}, 10))]
    assert "NODE003" in rules or "NODE004" in rules
