"""Models whose types lie, and requests that grow without end: a typed error, or a result, within the limits."""

import functools
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.base import LimitError, NotFoundError, SabirError, SchemaError, UnsupportedError
from sabir.ir import TensorType, tensor_type
from support.cases import each_of

RECORD = json.loads(Path(__file__).with_name("torch.json").read_text(encoding="utf-8"))["cases"]
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
LIES = {
    "a lower rank": lambda v: tensor_type(v.element, v.shape[1:]),
    "a higher rank": lambda v: tensor_type(v.element, [*v.shape, 2]),
    "no rank": lambda v: TensorType(v.element),
    "another size": lambda v: tensor_type(v.element, [2 * d + 1 for d in v.shape]),
    "a huge size": lambda v: tensor_type(v.element, [1 << 40 for _ in v.shape]),
    "another element type": lambda v: tensor_type("float16", v.shape),
    "no number": lambda v: tensor_type("string", v.shape),
    "no type": lambda v: None,  # ruff: ignore[unused-lambda-argument]  as the others
}
CASES = [
    pytest.param(case, lie, id=f"{case['name']}, {lie}")
    for case, lie in zip(RECORD[::2], itertools.cycle(LIES), strict=False)
]


@each_of("case, lie", CASES)
def test_models_whose_types_lie(case, lie):
    model = sabir.parse(case["model"])
    for value in model.graph.inputs:
        if value.element.is_float:
            value.type = LIES[lie](value)
    output, recorded = next(iter(case["outputs"].items()))
    limits = sabir.Limits(seconds=20, memory=1 << 26, work=1 << 28)
    try:
        found = sabir.differentiate(model, output, list(recorded["gradients"]), limits=limits)
        sabir.evaluate(found, {n: np.array(x) for n, x in case["feeds"].items()}, limits=limits)
    except SabirError as error:
        assert str(error)


def test_a_type_that_is_not_known_is_reported_with_the_node_that_needs_it():
    text = """g (double[3,1,2] x, double[1,8,2] w, double[1,8,2] r) => (double v) {
        z = Custom.Op(x)  y = LSTM<hidden_size = 2>(z, w, r)  v = ReduceSum<keepdims = 0>(y) }"""
    message = "must pass <Node LSTM>, which computes 'y': the element type is unknown"
    with pytest.raises(UnsupportedError, match=message):
        sabir.differentiate(sabir.parse(HEAD + text), "v", ["w"])


def test_a_filter_of_a_size_that_no_machine_has():
    text = "g (double[1,1,N] x, double[1,1,1099511627776] w) => (double[1,1,M] y) { y = Conv(x, w) }"
    found = sabir.differentiate(sabir.parse(HEAD + text), "y", ["w"])
    assert len(found.graph) < 100


@pytest.mark.parametrize(("of", "wrt"), [("zz", "x"), ("y", "zz"), ("y", ""), ("", "x")])
def test_names_that_are_not_there(of, wrt):
    model = sabir.parse(HEAD + "g (double[2] x) => (double[2] y) { y = Tanh(x) }")
    with pytest.raises(NotFoundError, match="no value named"):
        sabir.differentiate(model, of, wrt)


def test_derivatives_without_end_reach_a_limit():
    """Each call differentiates the result of the last, which grows by a factor."""
    model = sabir.parse(HEAD + "g (double[2] x) => (double[2] y) { t = Tanh(x)  y = Mul(t, x) }")
    limits = sabir.Limits(nodes=1000, seconds=20)

    def derive(model, order):
        of = f"d{order - 1}" if order else "y"
        return sabir.differentiate(model, of, "x", names={"x": f"d{order}"}, limits=limits)

    with pytest.raises(LimitError, match="nodes"):
        functools.reduce(derive, range(20), model)


def test_a_cycle_through_a_subgraph_is_refused():
    model = sabir.parse(
        HEAD
        + """g (bool k, double[2] x) => (double[2] y) { a = Neg(x)  y = If(k) <
        then_branch = t () => (double[2] p) { p = Tanh(a) }, else_branch = e () => (double[2] q) { q = Exp(a) }> }"""
    )
    neg, branch = model.graph
    neg.inputs = [branch.output]
    with pytest.raises(SchemaError, match="cycle|order"):
        sabir.differentiate(model, "y", "x")
