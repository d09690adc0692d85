"""The simplified models of the official suite pass the checker, and compute what they computed."""

import numpy as np
import pytest

import sabir
from sabir.base import SabirError
from sabir.ir import verify
from sabir.optimization import simplify_model
from support.cases import each_of
from support.official import cases, feeds_of, first_operator, is_random


def errors_of(model):
    return [str(f) for f in sabir.findings(model) if f.severity == "error"]


@pytest.mark.filterwarnings(r"ignore:(in|out)put .* is declared:sabir.SabirWarning")
@each_of("case", cases(share=2), group=first_operator)
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
