"""`reduce`: the smallest model that still fails."""

import numpy as np
import pytest

import sabir
from sabir.debugging import Reduction
from sabir.debugging._shrinking import shrink
from sabir.ir import verify


def ops(model):
    return [node.op for node in model.graph]


def has(*wanted):
    """A failure of each model that calls these operators; each model that is tried must be valid."""

    def failing(model):
        verify(model)
        sabir.check(model)
        return set(wanted) <= set(ops(model))

    return failing


def network():
    """Convolutions and products with weights, two outputs, documentation."""
    b = sabir.Builder(21, name="network")
    x = b.input("x", "float", ["N", 3, 32, 32])
    w = b.initializer("w", np.ones((8, 3, 3, 3), np.float32))
    x = b.Relu(b.Conv(x, w, pads=[1, 1, 1, 1], name="conv"), name="clamp")
    side = b.Sigmoid(x, name="side")
    x = b.GlobalAveragePool(x)
    x = b.Flatten(x)
    x = b.MatMul(x, b.initializer("v", np.ones((8, 16), np.float32)), name="product")
    x = b.Softmax(b.Tanh(b.Neg(x)), axis=1)
    b.output(x, "y")
    b.output(side, "z")
    return b.model(doc="a network", metadata={"key": "value"})


@pytest.mark.parametrize("op", ["Conv", "Relu", "MatMul", "Softmax", "Sigmoid", "Flatten"])
def test_one_node_is_left(op):
    model = network()
    before = sabir.dumps(model)
    small = sabir.reduce(model, has(op))
    assert ops(small) == [op]
    assert len(small.graph.outputs) == 1
    assert not small.graph.initializers
    assert (small.doc, small.metadata) == ("", None)
    assert sabir.dumps(model) == before


def test_nodes_between_others_go():
    small = sabir.reduce(network(), has("Relu", "Softmax"))
    assert sorted(ops(small)) == ["Relu", "Softmax"]
    connected = sabir.reduce(
        sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[4] y) { a = Exp (x)  b = Neg (a)  c = Tanh (b)  d = Sin (c)  y = Relu (d) }"""),
        lambda m: any(n.op == "Relu" and n.inputs[0].node is not None and reaches(n, "Exp") for n in m.graph),
    )
    assert ops(connected) == ["Exp", "Relu"]


def reaches(node, op):
    makers = [v.node for v in node.inputs if v is not None and v.node is not None]
    return any(maker.op == op or reaches(maker, op) for maker in makers)


def test_weights_that_matter_stay():
    def failing(model):
        weights = [d for d in model.graph.initializers.values() if d.shape and d.shape[-1] == 16]
        return bool(weights) and "MatMul" in ops(model)

    small = sabir.reduce(network(), failing)
    assert ops(small) == ["MatMul"]
    assert [d.shape for d in small.graph.initializers.values()] == [(1, 16)]
    sabir.check(small)


def test_sizes_of_shapes_follow():
    b = sabir.Builder(21)
    x = b.input("x", "float", [12, 64])
    b.output(b.Relu(b.Reshape(x, b.initializer("to", np.array([12, 64])))), "y")
    small = sabir.reduce(b.model(), lambda m: "Reshape" in ops(m) and m.graph.initializers["to"].size == 2)
    assert ops(small) == ["Reshape"]
    assert str(small.graph.inputs[0].type) == "float[1,1]"
    assert small.graph.initializers["to"].array().tolist() == [1, 1]


def test_sizes_that_matter_stay():
    b = sabir.Builder(21)
    b.output(b.Relu(b.input("x", "float", [100, 70])), "y")
    small = sabir.reduce(b.model(), lambda m: int(str(m.graph.inputs[0].shape[0])) >= 10)
    assert str(small.graph.inputs[0].type) == "float[12,1]"


def test_attributes_that_do_not_matter_go():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,8,8] y) {
  y = Conv <group = 1, pads = [1, 1, 1, 1], strides = [1, 1]> (x, w) }""")
    small = sabir.reduce(model, lambda m: any("group" in n.attributes for n in m.graph))
    assert set(small.graph[0].attributes) == {"group"}


def test_functions_are_inlined_if_that_helps():
    b = sabir.Builder(21)
    block = b.function(lambda g, x: g.Neg(g.Exp(g.Relu(x))), name="block")
    b.output(block(block(b.input("x", "float", ["N"]))), "y")
    small = sabir.reduce(b.model(), lambda m: any(n.op == "Exp" for g in m.graphs() for n in g.all_nodes()))
    assert (ops(small), small.functions) == (["Exp"], [])


def test_captured_values_become_inputs():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[3] x) => (float[3] y) {
  a = Neg (x)
  b = Exp (a)
  r = If (c) <then_branch = t () => (float[3] s) { s = Sqrt (b) },
              else_branch = e () => (float[3] u) { u = Neg (a) }>
  y = Relu (r)
}""")
    small = sabir.reduce(model, has("If"))
    assert ops(small) == ["If"]
    assert sorted(v.name for v in small.graph.inputs) == ["a", "b", "c"]
    sabir.evaluate(small, {"a": [1.0], "b": [4.0], "c": True})


def test_a_part_that_two_nodes_read():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[2] y, float[2] z) {
  a, b = Split <num_outputs = 2> (x)
  y = Neg (a)
  z = Exp (b)
}""")
    small = sabir.reduce(model, has("Split"))
    assert ops(small) == ["Split"]
    assert len(small.graph.outputs) == 1


def test_the_models_tried_are_deterministic():
    def tried():
        seen = []

        def failing(model):
            seen.append(sabir.text(model))
            return "Softmax" in ops(model)

        sabir.reduce(network(), failing)
        return seen

    first = tried()
    assert first == tried()
    assert len(first) == len(set(first))


def test_an_invalid_model_may_stay_as_invalid_as_it_is():
    model = network()
    model.graph.node("side").op = "Sigmoidd"
    small = sabir.reduce(model, lambda m: "Sigmoidd" in ops(m))
    assert ops(small) == ["Sigmoidd"]
    assert {f.rule for f in sabir.findings(small) if f.severity == "error"} == {"NODE001"}


def test_a_model_that_does_not_fail_is_an_error():
    with pytest.raises(sabir.UnsupportedError, match="does not fail"):
        sabir.reduce(network(), has("LSTM"))


def test_an_interrupted_reduction_has_the_smallest_model_so_far():
    steps = []

    def failing(model):
        if len(model.graph) <= 3:
            raise KeyboardInterrupt
        return "Softmax" in ops(model)

    reduction = Reduction(network(), failing, progress=steps.append)
    with pytest.raises(KeyboardInterrupt):
        reduction.run()
    assert "Softmax" in ops(reduction.model)
    assert 3 < len(reduction.model.graph) < len(network().graph)
    assert steps[-1].nodes == len(reduction.model.graph)
    assert reduction.trials == steps[-1].trials + (steps[-1].trials != reduction.trials)


def test_the_part_of_a_list_is_minimal():
    needed = {3, 50, 51, 99}
    calls = []

    def fails(part):
        calls.append(len(part))
        return needed <= set(part)

    assert shrink(range(100), fails) == sorted(needed)
    assert len(calls) < 100
    assert shrink([], fails) == []
