# ruff: file-ignore[banned-api]  the official cases are onnx's
"""Edits of the official models: each result is whole, valid, and computes the same."""

import warnings

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_node_model_tests

import sabir
from sabir.ir import OptionalType, SequenceType, verify
from sabir.opsets import STANDARD
from support.cases import each_of

pytestmark = pytest.mark.filterwarnings(
    "ignore::sabir.SabirWarning"
)  # of cases, whose models stay as they are


def is_random(model):
    versions = [STANDARD.find_version(n.domain, n.op, model.opset(n.domain)) for n in model.graph.all_nodes()]
    return any(version is not None and version.operator.random for version in versions)


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_node_model_tests()
    for case in loaded:
        yield pytest.param(case, id=case.name)


def letter(case):
    return case.name.removeprefix("test_")[0]


def value_of(x, kind):
    if isinstance(kind, (SequenceType, OptionalType)):
        return x
    return numpy_helper.to_array(x) if hasattr(x, "SerializeToString") else np.asarray(x)


def feeds_of(model, case):
    ((inputs, _),) = case.data_sets
    return {v.name: value_of(x, v.type) for v, x in zip(model.graph.inputs, inputs, strict=False)}


def errors(model):
    return {f.rule for f in sabir.findings(model) if f.severity == "error"}


def assert_same(expected, got):
    for name, value in expected.items():
        if isinstance(value, np.ndarray) and value.dtype != object:
            assert (got[name].dtype, got[name].shape) == (value.dtype, value.shape)
            assert got[name].tobytes() == value.tobytes()
        else:
            np.testing.assert_equal(got[name], value)


def assert_valid(model, allowed):
    verify(model)
    assert errors(model) <= allowed


def check_split(model, feeds, expected, allowed):
    """Split a model at a quarter, half and three quarters of its nodes, if these values separate it."""
    nodes = list(model.graph)
    for node in {nodes[len(nodes) * quarter // 4]: None for quarter in (1, 2, 3)}:
        read = [v for v in node.outputs if v is not None and v.is_read]
        try:
            first, second = sabir.split(model, at=read)
        except sabir.UnsupportedError as error:
            assert str(error).startswith(("the second model needs", "the first model would", "`at` lists no"))
            continue
        # a condition that was a constant is unknown in the second model, which so has both branches
        assert_valid(first, allowed)
        assert_valid(second, allowed | {"TYPE001"})
        middle = run(first, feeds)
        assert_same(expected, {**middle, **run(second, {**feeds, **middle})})


def run(model, values):
    return sabir.evaluate(model, {v.name: values[v.name] for v in model.graph.inputs if v.name in values})


@each_of("case", cases(), group=letter)
def test_edits_keep_what_a_model_computes(case):
    model = sabir.loads(case.model.SerializeToString())
    if is_random(model):
        return
    feeds, before, text = feeds_of(model, case), errors(model), sabir.dumps(model)
    expected = sabir.evaluate(model, feeds)

    part = sabir.extract(model)
    assert_valid(part, before)
    if len(part.graph.inputs) == len(model.graph.inputs):
        assert sabir.compare(part, model).required in {None, "patch"}  # a node that nothing reads is left out
    assert_same(expected, run(part, feeds))

    more = sabir.add_outputs(model, "all")
    assert_valid(more, before | {"GRAPH002"})  # the rank of a value may depend on data
    assert len(more.graph.outputs) == sum(v is not None for n in model.graph for v in n.outputs)
    assert_same(expected, sabir.evaluate(more, feeds))

    if len(model.graph) > 1:
        check_split(model, feeds, expected, before)
    if model.ir_version >= 8 and len(model.graph):
        outlined = sabir.outline(model, list(model.graph), "Everything")
        assert_valid(outlined, before)
        assert_same(expected, sabir.evaluate(outlined, feeds))
    assert sabir.dumps(model) == text
