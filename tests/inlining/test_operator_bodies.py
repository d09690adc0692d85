# ruff: file-ignore[banned-api]  the official cases are onnx's
"""Operators expanded into their bodies compute what they computed."""

import warnings

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_node_model_tests

import sabir
from sabir.ir import OptionalType, SequenceType, verify
from sabir.opsets import STANDARD
from support.cases import each_of


def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = load_node_model_tests()
    for case in loaded:
        opsets = {o.domain: o.version for o in case.model.opset_import}
        (*_, node) = case.model.graph.node
        version = STANDARD.find_version(node.domain, node.op_type, opsets.get(node.domain))
        if version is not None and version.find("body") is not None and not version.operator.random:
            yield pytest.param(case, id=case.name)


def first_operator(case):
    return case.model.graph.node[-1].op_type


def feeds_of(model, case):
    ((inputs, _),) = case.data_sets
    return {v.name: value_of(x, v.type) for v, x in zip(model.graph.inputs, inputs, strict=False)}


def value_of(x, kind):
    if isinstance(kind, (SequenceType, OptionalType)):
        return x
    return numpy_helper.to_array(x) if hasattr(x, "SerializeToString") else np.asarray(x)


# the cases of SequenceMap declare items as float[N] of sizes that differ, against Spec/ir.txt
@pytest.mark.filterwarnings(r"ignore:(in|out)put .*, item \d is declared:sabir.SabirWarning")
@each_of("case", cases(), group=first_operator)
def test_expanded_operators(case):
    model = sabir.loads(case.model.SerializeToString())
    feeds = feeds_of(model, case)
    expected = sabir.evaluate(model, feeds)
    wanted = {n.op for n in model.graph}
    domains = {n.op: n.domain for n in model.graph}

    model = sabir.inline(model, operators=wanted)

    verify(model)
    left = wanted & {n.op for n in model.graph}
    assert not [n for n in left if STANDARD.find(domains[n], n).versions[-1].find("body")]
    got = sabir.evaluate(model, feeds)
    for name, value in expected.items():
        if isinstance(value, np.ndarray) and value.dtype.kind not in "OUSb":
            tolerance = 2e-2 if value.dtype.itemsize < 4 else 1e-4
            assert got[name].dtype == value.dtype
            np.testing.assert_allclose(
                got[name].astype(float), value.astype(float), rtol=tolerance, atol=tolerance
            )
        else:
            np.testing.assert_equal(got[name], value)
