"""Whole models in other opsets: the light models of the onnx wheel, there and back.

`tools/conversions.py` converts all nine to all opsets.
"""

import pytest

import sabir
from support.conversions import Proof, assert_no_more_errors, assert_same_values, light_case, light_models

SMALL = ("light_shufflenet", "light_squeezenet", "light_inception_v1")
PATHS = {p.stem: p for p in light_models()}


@pytest.fixture(scope="module", params=SMALL)
def proof(request):
    return Proof(light_case(PATHS[request.param]))


@pytest.mark.parametrize("opset", [10, 13, 18, 28])
def test_newer_opsets(proof, opset):
    got = proof.to(opset)
    assert isinstance(got, sabir.Model), got
    assert got.opsets == {"": opset}


@pytest.mark.parametrize("opset", [13, 18])
def test_there_and_back(proof, opset):
    case = proof.case
    there = proof.to(opset)
    back = sabir.convert(there, case.opset)
    assert_no_more_errors(back, frozenset())
    assert_same_values(back, case.feeds, proof.expected, case.tolerance)
    assert operators(back) == operators(case.model)
    assert back.graph.initializers.keys() == {back.graph.value(v.name) for v in case.model.graph.initializers}


def operators(model):
    """The operators of the nodes, but for the casts of masks, which are numbers before Dropout:10."""
    return [n.op for n in model.graph if n.op != "Cast"]


def test_every_model_is_known():
    assert len(PATHS) == 9
    assert PATHS.keys() >= set(SMALL)
