# ruff: file-ignore[banned-api]  the official cases are onnx's
"""The simplified models of the official suite pass the checker, and compute what they computed."""

import warnings

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_node_model_tests

import sabir
from sabir.base import SabirError
from sabir.ir import OptionalType, SequenceType, verify
from sabir.optimization import simplify_model
from support.cases import each_of


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_node_model_tests()
    return [pytest.param(case, id=case.name) for case in loaded]


def first_operator(case):
    return case.model.graph.node[-1].op_type


def feeds_of(model, case):
    ((inputs, _),) = case.data_sets
    return {v.name: value_of(x, v.type) for v, x in zip(model.graph.inputs, inputs, strict=False)}


def value_of(x, kind):
    if isinstance(kind, (SequenceType, OptionalType)):
        return x
    return numpy_helper.to_array(x) if hasattr(x, "SerializeToString") else np.asarray(x)


def is_random(model):
    return any(sabir.opsets.STANDARD.find(n.domain, n.op).random for n in model.graph.all_nodes())


def errors_of(model):
    return [str(f) for f in sabir.findings(model) if f.severity == "error"]


@pytest.mark.filterwarnings(r"ignore:(in|out)put .* is declared:sabir.SabirWarning")
@each_of("case", cases(), group=first_operator)
def test_simplified_models(case):
    model = sabir.loads(case.model.SerializeToString())
    before = sabir.dumps(model)
    found = simplify_model(model, verify=False)
    assert sabir.dumps(model) == before
    verify(found.model)
    assert found.after.nodes <= found.before.nodes
    assert [v.name for v in found.model.graph.inputs] == [v.name for v in model.graph.inputs]
    assert [v.name for v in found.model.graph.outputs] == [v.name for v in model.graph.outputs]
    if not errors_of(model):
        assert not errors_of(found.model)
    feeds = feeds_of(model, case)
    try:
        expected = sabir.evaluate(model, feeds)
    except SabirError:
        return
    got = sabir.evaluate(found.model, feeds)
    if is_random(model):
        return
    for name, value in expected.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "fV":
            assert got[name].dtype == value.dtype
            x, y = got[name].astype(np.float64), value.astype(np.float64)
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_equal(got[name], value)
