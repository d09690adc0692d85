"""Official models that are renamed, and joined with themselves, compute what they computed."""

import pytest

import sabir
from sabir.ir import verify
from support.cases import each_of
from support.official import cases, feeds_of, first_operator, is_random, require_same


# the cases of SequenceMap declare items as float[N] of sizes that differ, against Spec/ir.txt
@pytest.mark.filterwarnings(r"ignore:(in|out)put .*, item \d is declared:sabir.SabirWarning")
@each_of("case", cases(share=3), group=first_operator)
def test_renamed_and_joined_models(case):
    model = sabir.loads(case.model.SerializeToString())
    if is_random(model):
        return
    feeds = feeds_of(model, case)
    expected = sabir.evaluate(model, feeds)
    faults = {finding.rule for finding in sabir.findings(model) if finding.severity == "error"}

    ports = dict.fromkeys(v.name for v in (*model.graph.inputs, *model.graph.outputs))
    changed = sabir.rename(model, {f"value:{name}": f"new.{name}" for name in ports})
    _judge(changed, faults)
    got = sabir.evaluate(changed, {f"new.{name}": x for name, x in feeds.items()})
    require_same(got, {f"new.{name}": x for name, x in expected.items()})

    both = sabir.merge(changed, model, {})
    _judge(both, faults)
    twice = {**feeds, **{f"new.{name}": x for name, x in feeds.items()}}
    got = sabir.evaluate(both, twice)
    require_same(got, {f"{prefix}{n}": x for prefix in ("new.", "") for n, x in expected.items()})


def _judge(model, faults):
    verify(model)
    assert {f.rule for f in sabir.findings(model) if f.severity == "error"} <= faults
