"""Inference of one graph or one node, at its location; and the causes that it reports."""

import pytest

import sabir
from sabir.base import Location
from sabir.inference import Cause, Inference
from sabir.ir import Builder, Node, Value, tensor_type

HEAD = '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\n'
WRONG = "t () => (float[3] p) <float[3] k = {1, 2}> { p = Identity(k) }"
BRANCHES = (
    "g (bool c) => (float[3] y) {{ y = If(c) <then_branch = {}, else_branch = e () => (float[3] q)"
    " {{ q = Constant <value = float[3] {{1, 2, 3}}> () }}> }}"
)
FUNCTION = (
    "g (float[2,3] x, float[2,3] z) => (y, w) { y = d.F <axes = [1, 0]> (x)  w = d.F <axes = [0, 1]> (z) }\n"
    '<domain: "d", opset_import: ["" : 18]>\n'
    "F <axes> (a) => (b) { n = Neg(a)  t = Transpose <perm : ints = @axes> (n)  b = Relu(t) }"
)


def inferred(text, **options):
    model = sabir.parse(HEAD + text)
    inference = Inference(model, **options)
    inference.run()
    return model, inference


def test_the_initializer_of_a_branch_is_reported_in_the_branch():
    model = sabir.parse(HEAD + BRANCHES.format(WRONG.replace("float[3] k = {1, 2}", "float[2] k = {1, 2}")))
    node = next(iter(model.graph))
    (value,) = node.attributes["then_branch"].value.initializers
    value.type = tensor_type("float", [3])
    inference = Inference(model)
    inference.run()
    (found, *_) = inference.diagnostics
    assert found.cause is Cause.TYPE
    assert str(found.location) == "graph/node[0] 'If'/attribute 'then_branch'/initializer 'k'"


def test_one_graph_is_inferred_at_its_location():
    _, inference = inferred("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    b = Builder(18, check=False)
    x = b.input("a", "float", ["N"])
    b.output(b.Relu(x))
    b.output(b.Concat(x, axis=2))
    where = Location().at("training_info", index=0).at("algorithm")
    types = inference.infer_graph(b.graph, where)
    assert [str(t) for t in types] == ["float[N]", "None"]
    (found,) = inference.diagnostics
    assert found.cause is Cause.TYPE
    assert str(found.location) == "training_info[0]/algorithm/node[1] 'Concat'"


def test_a_type_in_a_function_is_what_all_calls_agree_on():
    model, inference = inferred(FUNCTION)
    neg, transpose, relu = model.functions[0].graph
    assert str(inference.type_of(neg.output)) == "float[2,3]"
    assert str(inference.type_of(transpose.output)) == "float[?,?]"
    assert [str(t) for t in inference.types_of(relu)] == ["float[?,?]"]
    assert inference.types_of(Node("Clip", [None])) == [None]


def test_a_node_is_visited_in_the_scope_of_its_function():
    model, inference = inferred(FUNCTION)
    function = model.functions[0]
    neg, transpose, _ = function.graph
    scope = inference.scope.of_body(function)
    copy = Node("Shape", [neg.output])
    inference.visit(copy, scope=scope)
    assert str(copy.output.type) == "int64[2]"
    assert copy.output.type.known == (2, 3)
    # an attribute reference has no value outside a call, so nothing follows
    copy = Node("Transpose", [neg.output], 1, dict(transpose.attributes))
    inference.visit(copy, scope=scope)
    assert copy.output.type is None
    assert inference.type_of(copy.output) is None


def test_a_visited_node_sees_initializers_that_were_added():
    model, inference = inferred(
        "g (float[6] x) => (float[2,3] y) { y = Reshape(x, s) }".replace(
            "y = R", "s = Constant <value_ints = [2, 3]> ()  y = R"
        )
    )
    shape = model.graph.add_initializer("shape", [3, 2])
    node = model.graph.append(Node("Reshape", [model.graph.inputs[0], shape]))
    inference.visit(node)
    assert str(node.output.type) == "float[3,2]"


def test_a_visited_node_is_inferred_again_after_its_branch_was_edited():
    model, inference = inferred(BRANCHES.format("t () => (p) { p = Constant <value = float[2] {1, 2}> () }"))
    (node,) = model.graph
    assert str(inference.types[node.output]) == "float[3]"  # as declared
    branch = node.attributes["then_branch"].value
    (constant,) = branch
    node.output.type = None
    inference.visit(node)
    assert str(node.output.type) == "float[?]"
    node.output.type = None
    constant.attributes["value"] = next(iter(node.attributes["else_branch"].value)).attributes["value"]
    branch.outputs[0].type = None
    inference.visit(node)
    assert str(node.output.type) == "float[3]"


def test_a_visit_keeps_what_a_file_declares():
    model, inference = inferred("g (float[2] x) => (float[N] y) { y = Relu(x) }")
    (node,) = model.graph
    inference.visit(node)
    assert str(node.output.type) == "float[N]"


def test_an_overridable_default_has_no_known_contents_for_a_visited_node():
    model = sabir.parse(
        HEAD + "g (float[6] x, int64[2] s) => (float[M,K] y) <int64[2] s = {2, 3}> { y = Reshape(x, s) }"
    )
    inference = Inference(model)
    node = Node("Reshape", list(model.graph.inputs))
    inference.visit(node)
    assert str(node.output.type) == "float[?,?]"


@pytest.mark.parametrize(
    ("text", "cause", "severity"),
    [
        ("g (float[2] x) => (float[3] y) { y = Relu(x) }", Cause.TYPE, "error"),
        ("g (float[N] x) => (float[3] y) { y = Relu(x) }", Cause.DECLARED_SIZE, "warning"),
        ("g (float[N] x) => (float[N] y) { y = Nothing(x) }", Cause.OPERATOR, "error"),
        ("g (float[N] x) => (float[N] y) { y = e.Nothing(x) }", Cause.OPERATOR, "error"),
        ("g (float[N] x) => (float[N] y) { y = d.Nothing(x) }", Cause.DOMAIN, "warning"),
        ("g (float[N] x) => (float[N] y) { y = Relu(x, x) }", Cause.ARITY, "error"),
        ("g (float[N] x) => (float[N] y) { y = Relu <a = 1> (x) }", Cause.ATTRIBUTE, "error"),
        ('g (float[N] x) => (float[N] y) { y = Gelu <approximate = "x"> (x) }', Cause.ATTRIBUTE_VALUE, "error"),
        ("g (float[N] x) => (float[N] y) { y = Add(x, z)  z = Relu(y) }", Cause.CYCLE, "error"),
        ("g (float[N] x) => (float[N] y) { z = Relu(x) }", Cause.UNDEFINED_VALUE, "error"),
    ],
)  # fmt: skip
def test_causes(text, cause, severity):
    head = HEAD.replace("18", "20")
    inference = Inference(sabir.parse(head + text))
    inference.run()
    (found,) = inference.diagnostics
    assert (found.cause, found.severity) == (cause, severity)


def test_a_version_that_is_not_known_yet():
    inference = Inference(
        sabir.parse(HEAD.replace("18", "999") + "g (float[N] x) => (float[N] y) { y = Relu(x) }")
    )
    inference.run()
    assert [d.cause for d in inference.diagnostics] == [Cause.OPSET]


def test_values_of_no_source_have_their_declared_type():
    _, inference = inferred("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert str(inference.type_of(Value("v", tensor_type("int8", [4])))) == "int8[4]"
