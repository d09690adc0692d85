"""Nodes replaced by graphs: types, scopes, captures, outputs, and a model left as it was."""

from typing import Any

import numpy as np
import pytest

import sabir
from sabir.base import InferenceError, SchemaError
from sabir.ir import Annotation, Graph, Node, NodeDevice, Sharding, Value, tensor_type, verify
from sabir.opsets import STANDARD
from sabir.rewriting import DetachedBuilder, InsertionPoint, Rewriter, remove_unread, replace_outputs
from sabir.schema import Unconvertible

HEAD = '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\n'
IF = (
    "g (bool c, float[2,3] x) => (float[2,3] y) { t = Neg(x)  y = If(c)"
    " <then_branch = a () => (float[2,3] p) { p = Relu(t) }, else_branch = b () => (float[2,3] q) { q = Exp(x) }> }"
)
FUNCTION = (
    "g (float[2,3] x) => (float[2,3] y) { y = d.F <k = 0> (x) }\n"
    '<domain: "d", opset_import: ["" : 18]>\n'
    "F <k> (a) => (b) { n = Neg(a)  s = Softmax <axis : int = @k> (n)  b = Relu(s) }"
)


def parsed(text):
    return sabir.parse(HEAD + text)


def node_of(model, op):
    return next(n for root in model.graphs() for n in root.all_nodes() if n.op == op)


def text_of(model):
    return sabir.text(model)


def doubled(b, x):
    """`Relu(x)` as other operators; the type of `x` decides which."""
    assert str(x.type) == "float[2,3]"
    return b.Mul(b.Add(x, b.Abs(x)), b.initializer("half", np.float32(0.5)))


def test_a_node_is_replaced_inside_a_branch():
    model = parsed(IF)
    feeds = {"c": np.ones((), np.bool_), "x": np.array([[-1, 2, 3], [4, -5, 6]], np.float32)}
    expected = sabir.evaluate(model, feeds)["y"]
    rewriter, relu = Rewriter(model), node_of(model, "Relu")
    branch, (output,), operand = relu.graph, relu.outputs, relu.inputs[0]
    operand.type, output.doc, output.metadata = None, "the positive part", {"k": "v"}

    new = rewriter.replace(relu, lambda b: doubled(b, operand))

    verify(model)
    assert [n.op for n in branch] == [n.op for n in new] == ["Abs", "Add", "Mul"]
    assert all(n.graph is branch for n in new)
    assert new[-1].output is output is branch.outputs[0]
    assert (output.name, str(output.type), output.doc, output.metadata) == (
        "p",
        "float[2,3]",
        "the positive part",
        {"k": "v"},
    )
    assert [str(n.output.type) for n in new] == ["float[2,3]"] * 3
    assert operand.type is None  # what inference knows was lent
    assert [v.name for v in branch.initializers] == ["half"]
    np.testing.assert_array_equal(sabir.evaluate(model, feeds)["y"], expected)
    sabir.check(model)


def test_a_node_is_replaced_inside_a_function():
    model = parsed(FUNCTION)
    feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    expected = sabir.evaluate(model, feeds)["y"]
    rewriter, relu = Rewriter(model), node_of(model, "Relu")
    body = relu.graph

    new = rewriter.replace(relu, lambda b: doubled(b, relu.inputs[0]))

    verify(model)
    assert [n.op for n in body] == ["Neg", "Softmax", "Constant", "Abs", "Add", "Mul"]
    assert not body.initializers  # a function has none
    assert [str(rewriter.inference.type_of(n.output)) for n in new] == ["float[2,3]"] * 3
    np.testing.assert_allclose(sabir.evaluate(model, feeds)["y"], expected, rtol=1e-6)
    sabir.check(sabir.loads(sabir.dumps(model)))


def test_constants_that_nothing_reads_are_not_added():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[N] x) => (float[N] y) { t = Neg (x)  y = d.f (t) }
    <domain: "d", opset_import: ["" : 21]>
    f (a) => (b) { b = Abs (a) }""")
    rewriter = Rewriter(model)

    def build(b, x):
        b.initializer("unread", np.zeros(2, np.float32))
        return b.Add(x, b.initializer("read", np.float32(1)))

    for graph in (model.graph, model.functions[0].graph):
        node = graph[0]
        rewriter.replace(node, lambda b, node=node: build(b, node.inputs[0]))

    assert [v.name for v in model.graph.initializers] == ["read"]
    assert [n.op for n in model.functions[0].graph] == ["Constant", "Add"]


def test_a_body_is_applied_in_the_scope_of_its_function():
    model = parsed(FUNCTION.replace('opset_import: ["" : 18]', 'opset_import: ["" : 17]'))
    rewriter, relu = Rewriter(model), node_of(model, "Relu")
    version = STANDARD.find_version("", "Relu", 17)
    assert rewriter.scope_of(relu.graph).opset("") == 17
    assert rewriter.scope_of(model.graph).opset("") == 18
    assert [n.op for n in rewriter.expand(relu, version, "body")] == ["Max"]
    verify(model)


def test_an_attribute_that_the_call_decides_is_unconvertible():
    model = parsed(FUNCTION)
    before, softmax = text_of(model), node_of(model, "Softmax")
    with pytest.raises(Unconvertible, match="takes an attribute from the call of its function"):
        Rewriter(model).expand(softmax, STANDARD.find_version("", "Softmax", 18), "body")
    assert text_of(model) == before


@pytest.mark.parametrize(
    ("error", "message"),
    [(Unconvertible("no"), "no"), (KeyboardInterrupt("stop"), "stop"), (InferenceError("wrong"), "wrong")],
)
def test_a_replacement_that_fails_leaves_the_model_as_it_was(error, message):
    model = parsed(IF)
    before = text_of(model)
    conditional = node_of(model, "If")
    uses = {v: v.uses for g in model.graph.scopes() for v in g.defined()}

    def build(b):
        # takes over the branches, adds nodes and constants, and gives up
        moved = b.If(conditional.inputs[0], **dict(conditional.attributes))
        b.Add(moved, b.initializer("one", np.float32(1)))
        raise error

    with pytest.raises(type(error), match=message):
        Rewriter(model).replace(conditional, build)
    verify(model)
    assert text_of(model) == before
    assert {v: v.uses for g in model.graph.scopes() for v in g.defined()} == uses
    assert all(g.parent is conditional for g in conditional.graphs)


def test_a_missing_result_is_an_error_that_changes_nothing():
    model = parsed(
        "g (float[2] x) => (float[1] v, int64[1] i) { k = Constant <value_ints = [1]> ()  v, i = TopK(x, k) }"
    )
    before, node = text_of(model), node_of(model, "TopK")
    with pytest.raises(SchemaError, match="computes nothing for its output number 1"):
        Rewriter(model).replace(node, lambda b: b.Neg(node.inputs[0]))
    with pytest.raises(SchemaError, match="computes nothing for its output number 0"):
        replace_outputs(node, (None, None))
    assert text_of(model) == before


def test_a_node_of_no_graph_has_no_place():
    with pytest.raises(SchemaError, match="is in no graph"):
        InsertionPoint.before(Node("Relu"))


def test_subgraphs_move_to_the_replacement_with_what_they_capture():
    model = parsed(IF)
    conditional, t = node_of(model, "If"), node_of(model, "Neg").output
    attributes: dict[str, Any] = dict(conditional.attributes)
    (new,) = Rewriter(model).replace(conditional, lambda b: b.op("If", conditional.inputs[0], **attributes))
    verify(model)
    assert new is not conditional
    assert all(g.parent is new for g in new.graphs)
    assert [use.user.op for use in t.uses] == ["Relu"]


def test_subgraphs_that_are_dropped_let_go_of_what_they_captured():
    model = parsed(IF)
    conditional, t = node_of(model, "If"), node_of(model, "Neg").output
    Rewriter(model).replace(conditional, lambda b: b.Exp(model.graph.inputs[1]))
    verify(model)
    assert t.uses == ()


@pytest.mark.parametrize("result", ["operand", "twice", "outer", "older"])
def test_results_that_are_not_new_values(result):
    model = parsed(
        "g (float[2] x, bool c) => (float[2] y, float[2] z, float[2] w) {"
        " o = Exp(x)  y, z = d.Two(x)  w = Add(y, z) }\n"
        '<domain: "d", opset_import: ["" : 18]> Two (a) => (p, q) { p = Neg(a)  q = Neg(a) }'
    )
    node, exp, x = node_of(model, "Two"), node_of(model, "Exp"), model.graph.inputs[0]
    add = node_of(model, "Add")
    names = [v.name for v in model.graph.outputs]

    def build(b):
        new = b.Abs(x)
        return {"operand": (new, x), "twice": (new, new), "outer": (x, new), "older": (exp.output, new)}[
            result
        ]

    Rewriter(model).replace(node, build)
    verify(model)
    model.functions.clear()
    assert [v.name for v in model.graph.outputs] == names
    assert add.inputs[0] is not None
    feeds = {"x": np.array([-1, 2], np.float32), "c": np.ones((), np.bool_)}
    y, z = {
        "operand": ([1, 2], [-1, 2]), "twice": ([1, 2], [1, 2]), "outer": ([-1, 2], [1, 2]),
        "older": (np.exp(np.float32([-1, 2])), [1, 2]),
    }[result]  # fmt: skip
    found = sabir.evaluate(model, feeds)
    np.testing.assert_allclose(found["y"], y, rtol=1e-6)
    np.testing.assert_allclose(found["z"], z, rtol=1e-6)
    np.testing.assert_allclose(found["w"], np.add(y, z), rtol=1e-6)


def test_an_annotated_output_stays_and_layouts_follow():
    model = parsed("g (float[2] x) => (float[2] y) { n = Identity(x)  m = Identity(x)  y = Add(n, m) }")
    graph = model.graph
    x, (first, second, add) = graph.inputs[0], graph
    scale = graph.add_initializer("scale", np.float32(1))
    graph.annotations = (Annotation(first.output, (("SCALE_TENSOR", scale),)),)
    add.devices = (NodeDevice("c", (Sharding(second.output, "m"),)),)
    annotated, rewriter = first.output, Rewriter(model)
    rewriter.replace(first, lambda _: x)
    rewriter.replace(second, lambda _: x)
    verify(model)
    assert [n.op for n in graph] == ["Identity", "Add"]
    assert add.inputs[:] == [annotated, x]
    assert add.devices[0].shardings[0].value is x


class Gradient(DetachedBuilder):
    """A builder that knows the call it belongs to, as that of a gradient will."""

    def __init__(self, rewriter, node, dy, **options):
        super().__init__(**options)
        self.rewriter, self.node, self.dy = rewriter, node, dy

    def y(self, index):
        return self.rewriter.name_output(self.node, index)


@pytest.mark.parametrize("text", [IF, FUNCTION])
def test_nodes_are_appended_by_a_builder_that_knows_a_call(text):
    model = parsed(text.replace("Relu", "Relu"))
    rewriter, relu = Rewriter(model), node_of(model, "Relu")
    graph = relu.graph
    dy = Value("dy", tensor_type("float", [2, 3]))
    b = rewriter.builder(graph, lambda **options: Gradient(rewriter, relu, dy, **options))
    zero = b.initializer("zero", np.float32(0))
    gradient = b.Where(b.Greater(b.y(0), zero), b.Neg(relu.inputs[0]), zero)
    assert str(gradient.type) == "float[2,3]"
    new = rewriter.place(b, InsertionPoint.end(graph))
    assert [n.op for n in new] == ["Greater", "Neg", "Where"]
    assert tuple(graph)[-3:] == tuple(new)
    verify(model)


def test_an_output_that_is_left_out_is_named():
    model = parsed(
        "g (float[1,1,4] x) => (float[1,1,2] y) { y = MaxPool <kernel_shape = [2], strides = [2]> (x) }"
    )
    (node,) = model.graph
    rewriter = Rewriter(model)
    indices = rewriter.name_output(node, 1)
    assert rewriter.name_output(node, 1) is indices is node.outputs[1]
    assert rewriter.name_output(node, 0) is model.graph.outputs[0]
    assert (indices.name, str(indices.type)) == ("maxpool_out", "int64[1,1,2]")
    with pytest.raises(SchemaError, match="takes 2 outputs"):
        rewriter.name_output(node, 2)
    assert len(node.outputs) == 2
    verify(model)


def test_several_outputs_are_named_at_once():
    model = parsed(
        "g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[1,1,2] y) { , y = LSTM <hidden_size = 2> (x, w, r) }"
    )
    (node,) = model.graph
    first, last, named = Rewriter(model).name_outputs(node, (0, 2, 1))
    assert node.outputs == (first, named, last)
    assert named is model.graph.outputs[0]
    assert [str(v.type) for v in (first, last)] == ["float[3,1,1,2]", "float[1,1,2]"]
    verify(model)


def test_what_nothing_reads_is_removed_from_a_graph_under_construction():
    model = parsed(IF)
    rewriter = Rewriter(model)
    b = rewriter.builder(model.graph)
    x = model.graph.inputs[1]
    one = b.initializer("one", np.float32(1))
    kept, unread = b.Add(x, one), b.initializer("two", np.float32(2))
    b.Neg(b.Mul(kept, unread))
    b.graph.outputs.append(kept)
    before = x.uses
    remove_unread(b.graph)
    assert [n.op for n in b.graph] == ["Add"]
    assert list(b.graph.initializers) == [one]
    assert x.uses == before


def test_a_clone_has_fresh_names_and_the_same_types():
    model = parsed(IF)
    rewriter, conditional = Rewriter(model), node_of(model, "If")
    branch = conditional.attributes["then_branch"].value
    t = node_of(model, "Neg").output
    other = Value("other", tensor_type("float", [2, 3]))
    copies = {t: other}
    copy = rewriter.clone(branch, copies)
    (node,) = copy
    assert [v.name for v in copy.outputs] == ["p_1"]
    assert node.inputs[0] is other
    assert copies[branch.outputs[0]] is copy.outputs[0]
    assert str(rewriter.inference.type_of(copy.outputs[0])) == "float[2,3]"


def test_types_follow_another_operator_set_than_the_models():
    model = parsed("g (float[2,3] x) => (float[2] y) { y = ReduceMax <axes = [1], keepdims = 0> (x) }")
    rewriter, (node,) = Rewriter(model), model.graph
    scope = rewriter.scope_of(model.graph, {"": 17})
    assert scope is rewriter.scope_of(model.graph, {"ai.onnx": 17}) or scope.opset("") == 17

    def build(b):
        assert b.opset == 17
        return b.ReduceMax(node.inputs[0], axes=[1], keepdims=0)

    (new,) = rewriter.replace(node, build, opsets={"": 17})
    assert str(rewriter.inference.type_of(new.output)) == "float[2]"


def test_types_are_inferred_again_after_an_edit_from_outside():
    model = parsed("g (float[2,3] x) => (y) { y = Relu(x) }")
    rewriter, (node,) = Rewriter(model), model.graph
    assert str(rewriter.inference.type_of(node.output)) == "float[2,3]"
    model.graph.inputs[0].type = tensor_type("float", [7])
    rewriter.forget_types()
    assert str(rewriter.inference.type_of(node.output)) == "float[7]"


def test_insertion_points_keep_the_order():
    graph = Graph("g")
    a, z = graph.append(Node("A")), graph.append(Node("Z"))
    before = InsertionPoint.before(z)
    for op in "BC":
        before.insert(Node(op))
    InsertionPoint.start(graph).insert(Node("0"))
    InsertionPoint.after(a).insert(Node("a"))
    end = InsertionPoint.end(graph)
    for op in "12":
        end.insert(Node(op))
    assert "".join(n.op for n in graph) == "0AaBCZ12"
    assert [n.op for n in InsertionPoint.end(Graph()).graph] == []


def test_a_replacement_that_fails_leaves_nothing_for_the_next_one():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x) => (float[N] y) { a = Relu (x)  y = Exp (a) }""")
    relu, exp = model.graph
    rewriter = Rewriter(model)

    def fails(b):
        b.Add(b.Neg(relu.inputs[0]), b.initializer("left", np.float32(1)))
        raise Unconvertible("no")

    with pytest.raises(Unconvertible):
        rewriter.replace(relu, fails)
    rewriter.replace(exp, lambda b: b.Mul(exp.inputs[0], b.initializer("two", np.float32(2))))
    assert [node.op for node in model.graph] == ["Relu", "Mul"]
    assert [value.name for value in model.graph.initializers] == ["two"]
