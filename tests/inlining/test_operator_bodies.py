"""Operators expanded into their bodies compute what they computed."""

import numpy as np
import pytest

import sabir
from sabir.ir import verify
from sabir.opsets import STANDARD
from support.cases import each_of
from support.official import cases, feeds_of, first_operator


def has_body(case):
    opsets = {o.domain: o.version for o in case.model.opset_import}
    (*_, node) = case.model.graph.node
    version = STANDARD.find_version(node.domain, node.op_type, opsets.get(node.domain))
    return version is not None and version.find("body") is not None and not version.operator.random


# the cases of SequenceMap declare items as float[N] of sizes that differ, against Spec/ir.txt
@pytest.mark.filterwarnings(r"ignore:(in|out)put .*, item \d is declared:sabir.SabirWarning")
@each_of("case", cases(has_body), group=first_operator)
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
