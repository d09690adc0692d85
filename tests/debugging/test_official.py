"""Official models: their traces have what runs return, their costs are found, and their parts are valid."""

import pytest

import sabir
from sabir.debugging import difference
from sabir.ir import TensorType, verify
from support.cases import each_of
from support.official import cases, feeds_of

SEVERAL = 3  # nodes: an official model of as many is that of an operator written as others


def is_wanted(case):
    operators = {node.op_type for node in case.model.graph.node}
    return len(case.model.graph.node) >= SEVERAL and not any("Random" in op for op in operators)


def has_unknown_ranks(model):
    inference = sabir.inference.Inference(model)
    inference.run()
    types = map(inference.type_of, model.graph.defined())
    return any(not isinstance(t, TensorType) or t.shape is None for t in types)


# the cases of SequenceMap declare items as float[N] of sizes that differ, against Spec/ir.txt
@pytest.mark.filterwarnings(r"ignore:(in|out)put .*, item \d is declared:sabir.SabirWarning")
@each_of("case", cases(is_wanted, share=3), group=lambda case: case.name[:9])
def test_an_official_model(case):
    model = sabir.loads(case.model.SerializeToString())
    before = sabir.dumps(model)
    feeds = feeds_of(model, case)

    seen = {}
    found = sabir.trace(model, feeds, observe=lambda value, array: seen.setdefault(value.name, array))
    for name, value in sabir.evaluate(model, feeds).items():
        assert not difference(name, seen[name], value, 0, 0).problem
    assert len({value.name for value in found.values}) == len(found.values)

    costs = sabir.summary(model)
    assert len(costs.nodes) == len(list(model.graph.all_nodes()))

    op = model.graph[len(model.graph) // 2].op

    def failing(candidate):
        verify(candidate)
        return any(node.op == op for node in candidate.graph)

    small = sabir.reduce(model, failing)
    assert op in [node.op for node in small.graph]
    assert len(small.graph) == 1 or has_unknown_ranks(model)  # a value of unknown rank is no input
    assert not [f for f in sabir.findings(small) if f.severity == "error"]
    assert sabir.dumps(model) == before
