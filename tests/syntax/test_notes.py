# ruff: file-ignore[banned-api]  onnx is the oracle
"""Notes: what the standard syntax has no words for, in a form that others skip."""

import onnx.parser
import pytest

import sabir
from sabir.ir import Attribute, Graph, Node, Residue, TypeNote
from sabir.syntax import parse, parse_function, parse_graph, parse_node, text

SHOWN = """\
#: @{configuration: [{name: "two gpus", num_devices: 2, device: ["cuda:0", "cuda:1"]}]}
<
   ir_version: 12,
   opset_import: ["" : 21, "com.x" : 1]
>
#: @{doc_string: "What the graph does,"
#:    "in two lines.", metadata_props: ["k": "v"], quantization_annotation: [{tensor_name: "x", quant_parameter_tensor_names: [{key: "SCALE_TENSOR", value: "w"}]}]}
main (
   #: @{doc_string: "the input", denotation: "IMAGE"}
   float[@{denotation: "DATA_BATCH"} N,3] x,
   bool c) => (
   #: @{metadata_props: ["unit": "m"]}
   float[N,3] y)
   <#: @{doc_string: "weights", metadata_props: ["trained": "yes"]}
    float[2] w = {1.0,2.0},
    sparse_tensor(float[3]) sp = float[1] {1.0} int64[1] {2},
    float[2] nans = base64 "AQDAfwAAgD8=",
    #: @{doc_string: "told"}
    float[N,3] t>
{
   #: @{doc_string: "a node", metadata_props: ["namespace": "a/b"], device_configurations: [{configuration_id: "two gpus", pipeline_stage: 0, sharding_spec: [{tensor_name: "x", device: [0, 1], index_to_device_group_map: [{key: 0, value: [1, 2]}], sharded_dim: [{axis: 1, simple_sharding: [{dim: "N", num_shards: 2}, {dim: 3, num_shards: 1}]}]}]}]}
   [n] t = Relu (x)
   y = If (c) <
      #: @{doc_string: "the branch"}
      then_branch: graph = #: @{doc_string: "inside"}
      b () => (z) {
      z = Op <a: type_proto = @{denotation: "T"} seq(@{denotation: "I"} float[N]), b: undefined = ?, s: string = base64 "/w=="> (t)
   }>
}
@training {
   algorithm: step (x) => (w2) {
      w2 = Neg (w)
   },
   update_binding: ["w": "w2"]
}

#: @{metadata_props: ["k": "v"]}
<
   domain: "com.x",
   opset_import: ["" : 21],
   doc_string: "a function"
>
f <
   #: @{doc_string: "its default"}
   a: int = 1> (x) => (y) {
   y = Neg (x)
}
"""


def test_the_layout():
    assert text(parse(SHOWN)) == SHOWN


def test_each_note_is_about_what_follows_it():
    model = parse(SHOWN)
    graph = model.graph
    x = graph.inputs[0]
    relu, branches = graph
    assert model.devices[0].devices == ("cuda:0", "cuda:1")
    assert (graph.doc, graph.metadata) == ("What the graph does,\nin two lines.", {"k": "v"})
    (annotation,) = graph.annotations
    assert annotation.value is x
    assert [(key, value.name) for key, value in annotation.parameters] == [("SCALE_TENSOR", "w")]
    assert x.doc == "the input"
    assert x.type.note == TypeNote("IMAGE", ("DATA_BATCH", ""))
    assert graph.outputs[0].metadata == {"unit": "m"}
    weights, _, _ = graph.initializers.values()
    assert weights.proto.doc_string == "weights"
    assert relu.output.doc == "told"
    assert (relu.doc, relu.metadata) == ("a node", {"namespace": "a/b"})
    (sharding,) = relu.devices[0].shardings
    assert sharding.value is x
    assert branches.attributes["then_branch"].doc == "the branch"
    assert branches.graphs[0].doc == "inside"
    (training,) = model.training
    (((state, update)),) = training.update_binding
    assert state.constant is weights
    assert training.algorithm is not None
    assert update.node is next(iter(training.algorithm))
    (function,) = model.functions
    assert (function.doc, function.metadata) == ("a function", {"k": "v"})
    assert function.attributes["a"].doc == "its default"


NOTED = """#: @{residue: {absent: ["opset_import"]}}
<ir_version: 10, opset_import: ["" : 21]>
#: @{doc_string: "a graph"}
g (
   #: @{doc_string: "its input"}
   float[N] x) => (float[N] y)
   <#: @{doc_string: "told"}
    float[N] z>
{
   #: @{metadata_props: ["k": "of"
   #:    "two lines"]}
   z = Relu <
      #: @{doc_string: "odd"}
      alpha: float = 1.0> (x)
   y = Neg (z)
}
"""


def test_a_note_in_lines_of_its_own_is_a_comment_to_others():
    theirs = onnx.parser.parse_model(NOTED)
    assert [n.op_type for n in theirs.graph.node] == ["Relu", "Neg"]
    assert [v.name for v in theirs.graph.value_info] == ["z"]
    assert next(iter(parse(NOTED).graph)).metadata == {"k": "of\ntwo lines"}
    onnx.parser.parse_model(text(parse(NOTED)))


def test_a_note_may_stand_in_the_line_too():
    (node,) = parse_graph('g () => () {@{doc_string: "one" "two"} y = Op ()}')
    assert node.doc == "one\ntwo"


def test_other_remarks_are_none_of_ours():
    graph = parse_graph("# @{doc_string: 1}\ng () => () { # : no\n #\n ## @{\n}#")
    assert not graph.doc


def test_what_needs_no_note_has_none():
    for node in (Node("Op"), parse_node("y = Op <a = 1, b = [1.5], c = float[1] t {1}> (x)")):
        assert "@" not in text(node)
    graph = Graph("g")
    graph.append(Node("Op", [graph.add_input("x")], 2))
    assert "@" not in text(graph)


@pytest.mark.parametrize(
    "doc", ["a", "\n", "a\n\nb\n", ' "quoted" \\ ', "#: @{}", "\r\n\t\x00\x1b[31m", "é\u2028x"]
)
def test_any_text_is_a_doc_string(doc):
    node = parse_node("y = Op (x)")
    node.doc, node.metadata = doc, {doc: doc}
    again = parse_node(text(node))
    assert (again.doc, again.metadata) == (doc, {doc: doc})


def test_functions_and_nodes_alone_keep_their_notes():
    node = parse_node('#: @{doc_string: "d"}\ny = Op (x)')
    assert text(node) == '#: @{doc_string: "d"}\ny = Op (x)\n'
    function = parse_function(
        '#: @{metadata_props: ["k": "v"]}\n<domain: "d", opset_import: []> f (x) => (y) {}'
    )
    assert parse_function(text(function)).metadata == {"k": "v"}


def test_what_all_nodes_have_is_said_once():
    nodes = "".join(f"y{i} = Op ()\n" for i in range(9))
    graph = parse_graph(f'@{{empty_in_nodes: ["domain"]}} g () => () {{{nodes}}}')
    assert all(node.residue == Residue(empty=("domain",)) for node in graph)
    assert text(graph).count("@{") == 1
    next(iter(graph)).residue = None
    assert text(graph).count("@{") == 8


def test_an_empty_name_of_a_node_needs_no_note():
    (node,) = parse_graph("g () => () {[] y = Op ()}")
    assert node.residue == Residue(empty=("name",))
    assert '   [""] y = Op ()\n' in text(node.graph)


def test_an_attribute_may_have_both_a_reference_and_a_value():
    node = Node("Op", [], 1, {"a": Attribute("a", "int", 3, ref="r"), "b": Attribute("b", "undefined", None)})
    again = parse_node(text(node)).attributes
    assert (again["a"].ref, again["a"].value) == ("r", 3)
    assert (again["b"].type, again["b"].value) == ("undefined", None)


def test_the_default_domain_is_spelled_out_unless_a_file_did_not():
    for told in ('domain: "" ', ""):
        proto = sabir.loads(
            f'ir_version: 10 opset_import {{ {told}version: 21 }} graph {{ name: "g" }}'.encode(),
            format="textproto",
        )
        assert ("absent" in text(proto)) == (not told)
        assert sabir.dumps(parse(text(proto))) == sabir.dumps(proto)
