"""Edits of the official models: each result is whole, valid, and computes the same."""

import pytest

import sabir
from sabir.ir import verify
from support.cases import each_of
from support.official import cases, feeds_of, first_operator, is_random, require_same

pytestmark = pytest.mark.filterwarnings(
    "ignore::sabir.SabirWarning"
)  # of cases, whose models stay as they are


def errors(model):
    return {f.rule for f in sabir.findings(model) if f.severity == "error"}


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
        found = {**middle, **run(second, {**feeds, **middle})}
        require_same({name: found[name] for name in expected}, expected)


def run(model, values):
    return sabir.evaluate(model, {v.name: values[v.name] for v in model.graph.inputs if v.name in values})


@each_of("case", cases(share=3), group=first_operator)
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
    require_same(run(part, feeds), expected)

    more = sabir.add_outputs(model, "all")
    assert_valid(more, before | {"GRAPH002"})  # the rank of a value may depend on data
    assert len(more.graph.outputs) == sum(v is not None for n in model.graph for v in n.outputs)
    found = sabir.evaluate(more, feeds)
    require_same({name: found[name] for name in expected}, expected)

    if len(model.graph) > 1:
        check_split(model, feeds, expected, before)
    if model.ir_version >= 8 and len(model.graph):
        outlined = sabir.outline(model, list(model.graph), "Everything")
        assert_valid(outlined, before)
        require_same(sabir.evaluate(outlined, feeds), expected)
    assert sabir.dumps(model) == text
