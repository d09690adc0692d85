# ruff: file-ignore[banned-api]  the official cases are onnx's
"""Official models that are renamed, and joined with themselves, compute what they computed."""

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
        nodes = case.model.graph.node
        versions = [STANDARD.find_version(n.domain, n.op_type, opsets.get(n.domain)) for n in nodes]
        if not any(version is not None and version.operator.random for version in versions):
            yield pytest.param(case, id=case.name)


def first_operator(case):
    return case.model.graph.node[-1].op_type


def value_of(x, kind):
    if isinstance(kind, (SequenceType, OptionalType)):
        return x
    return numpy_helper.to_array(x) if hasattr(x, "SerializeToString") else np.asarray(x)


# the cases of SequenceMap declare items as float[N] of sizes that differ, against Spec/ir.txt
@pytest.mark.filterwarnings(r"ignore:(in|out)put .*, item \d is declared:sabir.SabirWarning")
@each_of("case", cases(), group=first_operator)
def test_renamed_and_joined_models(case):
    model = sabir.loads(case.model.SerializeToString())
    ((inputs, _),) = case.data_sets
    feeds = {v.name: value_of(x, v.type) for v, x in zip(model.graph.inputs, inputs, strict=False)}
    expected = sabir.evaluate(model, feeds)
    faults = {finding.rule for finding in sabir.findings(model) if finding.severity == "error"}

    ports = dict.fromkeys(v.name for v in (*model.graph.inputs, *model.graph.outputs))
    changed = sabir.rename(model, {f"value:{name}": f"new.{name}" for name in ports})
    _judge(changed, faults)
    got = sabir.evaluate(changed, {f"new.{name}": x for name, x in feeds.items()})
    _require_same(got, {f"new.{name}": x for name, x in expected.items()})

    both = sabir.merge(changed, model, {})
    _judge(both, faults)
    twice = {**feeds, **{f"new.{name}": x for name, x in feeds.items()}}
    got = sabir.evaluate(both, twice)
    _require_same(got, {f"{prefix}{n}": x for prefix in ("new.", "") for n, x in expected.items()})


def _judge(model, faults):
    verify(model)
    assert {f.rule for f in sabir.findings(model) if f.severity == "error"} <= faults


def _require_same(got, expected):
    assert got.keys() == expected.keys()
    for name, x in expected.items():
        if isinstance(x, np.ndarray) and not x.dtype.hasobject:  # numpy finds no NaN of small floats
            assert (got[name].dtype, got[name].tobytes()) == (x.dtype, x.tobytes())
        else:
            np.testing.assert_equal(got[name], x)
