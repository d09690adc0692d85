"""What a text becomes: linked values, dimensions, attributes, tensors."""

import math

import numpy as np
import pytest

from sabir.base import ExternalDataError
from sabir.elements import FLOAT, INT4, STRING
from sabir.ir import (
    ArrayTensor,
    Attribute,
    ExternalTensor,
    Graph,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    parse_dim,
    symbol,
    tensor_type,
    verify,
)
from sabir.syntax import parse, parse_function, parse_graph, parse_node


def value_of(literal):
    return parse_node(f"y = Op <a = {literal}> ()").attributes["a"]


def test_a_model_and_its_header():
    model = parse("""<ir_version: 9, opset_import: ["": 18, "com.x": 2], producer_name: "p",
        producer_version: "1", domain: "d", model_version: 7, doc_string: "says \\"hi\\"",
        metadata_props: ["k": "v", "l": ""]>
        g () => () {} <domain: "com.x", opset_import: ["": 17], overload: "o"> f (x) => (x) {}""")
    assert (model.ir_version, model.opsets, model.version) == (9, {"": 18, "com.x": 2}, 7)
    assert (model.producer_name, model.producer_version, model.domain) == ("p", "1", "d")
    assert (model.doc, model.metadata) == ('says "hi"', {"k": "v", "l": ""})
    assert [f.key for f in model.functions] == [("com.x", "f", "o")]
    assert parse("g () => () {}").opsets == {}


def test_names_become_values_linked_both_ways():
    graph = parse_graph("g (float[N] x) => (float[N] z) {y = Neg (x) z = Add (y, x)}")
    verify(graph)
    neg, add = graph
    assert add.inputs[0] is neg.output
    assert list(add.inputs)[1] is graph.inputs[0]
    assert graph.outputs[0] is add.output
    assert add.output.type == tensor_type("float", ["N"])
    assert [use.user for use in graph.inputs[0].uses] == [neg, add]


def test_what_nothing_defines_has_no_source_and_is_one_object():
    graph = parse_graph("g () => (lost) {y = Op (lost, lost, other)}")
    node = next(iter(graph))
    assert node.inputs[0] is node.inputs[1] is graph.outputs[0]
    assert node.inputs[0].source is None
    assert node.inputs[2] is not node.inputs[0]


def test_a_later_definition_adopts_earlier_reads():
    graph = parse_graph("g () => () {y = Op (z, z) z = Op ()}")
    first, second = graph
    assert first.inputs[0] is first.inputs[1] is second.output
    assert second.output.node is second


def test_reads_bind_to_the_latest_definition():
    graph = parse_graph("g () => (y) {y = A () a = Op (y) y = B () b = Op (y)}")
    one, reads_one, two, reads_two = graph
    assert one.output.name == two.output.name == "y"
    assert reads_one.inputs[0] is one.output
    assert reads_two.inputs[0] is two.output
    assert graph.outputs[0] is two.output


def test_names_of_a_subgraph_resolve_outward():
    graph = parse_graph("""g (c) => () {
        x = Op ()
        y = If (c) <then_branch = t () => (x) {}, else_branch = e () => (later) {late = Op (nothing, inner)
                                                                               inner = Op ()}>
        later = Op (nothing)
    }""")
    x, branch, later = graph
    then, other = branch.graphs
    assert then.outputs[0] is x.output
    assert other.outputs[0] is later.output
    reader, inner = other
    assert list(reader.inputs) == [later.inputs[0], inner.output]
    assert later.inputs[0].source is None
    assert then.parent is branch
    assert set(other.captures()) == {later.output}


def test_many_pending_names_meet_in_the_graph_around():
    names = ", ".join(f"n{i}" for i in range(3000))
    branch = f"b () => () {{y = Op ({names})}}"
    graph = parse_graph(f"g () => () {{z = Op ({names}) w = If () <p = {branch}, q = {branch}>}}")
    first, outer = graph
    assert all(list(node.inputs) == list(first.inputs) for inner in outer.graphs for node in inner)
    assert len(first.inputs[7].uses) == 3


def test_inputs_and_outputs_may_be_left_out():
    node = parse_node('y, "", , z = Op ("", x, , y,)')
    assert [v and v.name for v in node.outputs] == ["y", None, None, "z"]
    assert [v and v.name for v in node.inputs] == [None, "x", None, "y"]


def test_initializers_constants_and_types():
    graph = parse_graph("""g (float[N] x, float[2] w = {1, 2}) => (y)
        <int64 k = {3}, float[2] w = {5, 6}, float[M] y, float gone, float[2] y> {y = Op (x, k)}""")
    x, w = graph.inputs
    assert x.constant is None
    assert w.constant.array().tolist() == [1, 2]
    k = next(v for v in graph.initializers if v.name == "k")
    assert k.constant.array().shape == ()
    assert not k.is_input
    assert graph.outputs[0].type == tensor_type("float", ["M"])
    assert [(v.name, v.value_info_index) for v in graph.orphan_value_info] == [("gone", 1), ("y", 2)]


def test_types():
    graph = parse_graph("""g (float a, float[] b, float[2,N,?,"odd name","N+1",""] c,
        seq(map(int64, string)) d,
        optional(sparse_tensor(double[3])) e, opaque(a.b, c) f, opaque(c.d) g, opaque() h,
        seq(?) i) => () {}""")
    types = [v.type for v in graph.inputs]
    assert types[:2] == [TensorType(FLOAT, ()), TensorType(FLOAT)]
    assert types[2].shape == (2, symbol("N"), None, symbol("odd name"), parse_dim("N+1"), None)
    assert types[3] == SequenceType(MapType(tensor_type("int64").element, TensorType(STRING, ())))
    assert types[4] == OptionalType(SparseTensorType(tensor_type("double").element, (3,)))
    assert types[5:8] == [OpaqueType("a.b", "c"), OpaqueType("", "c.d"), OpaqueType()]
    assert types[8] == SequenceType(None)


@pytest.mark.parametrize("dim", ["2*N", "(H-1)//2+1", "N - M", "min(N, 3)", "-N", "2*(3+4)", "N%4*2"])
def test_dimension_expressions_need_no_quotes(dim):
    graph = parse_graph(f"g (float[1, {dim}, K] x) => () {{}}")
    assert graph.inputs[0].type.shape == (1, parse_dim(dim), symbol("K"))


@pytest.mark.parametrize(
    ("literal", "kind", "value"),
    [
        ("1", "int", 1),
        ("-0.5", "float", -0.5),
        ("0.1", "float", float(np.float32(0.1))),
        ("Infinity", "float", math.inf),
        ('"a\\\\b\\"c"', "string", 'a\\b"c'),
        ("[1, 2]", "ints", (1, 2)),
        ("[1.0, 2]", "floats", (1.0, 2.0)),
        ('["a"]', "strings", ("a",)),
        ("float[2]", "type", TensorType(FLOAT, (2,))),
        ("[float, seq(float)]", "types", (TensorType(FLOAT, ()), SequenceType(TensorType(FLOAT, ())))),
    ],
)
def test_attributes(literal, kind, value):
    attribute = value_of(literal)
    assert (attribute.type, attribute.value) == (kind, value)


def test_a_literal_is_rounded_once_to_a_float():
    # the nearest double lies midway between two floats, where a second rounding would go the wrong way
    pair = value_of("[1.00000005960464477540, 1.00000005960464477538, 1e-50]").value
    assert pair == (1 + 2**-23, 1.0, 0.0)
    tensor = value_of("float[2] {1.00000005960464477540, 1.00000005960464477538}").value
    assert tensor.array().tolist() == [1 + 2**-23, 1.0]
    assert math.copysign(1, value_of("-nan").value) == -1


def test_annotations_and_references():
    node = parse_node('y = Op <a: float = 1, b: ints = [], c = @x, d: tensor = @"y z"> ()')
    facts = {name: (a.type, a.value, a.ref) for name, a in node.attributes.items()}
    assert facts == {
        "a": ("float", 1.0, ""),
        "b": ("ints", (), ""),
        "c": ("undefined", None, "x"),
        "d": ("tensor", None, "y z"),
    }


def test_beyond_the_standard_syntax():
    node = parse_node("""y = "my-domain"."aten::op":"o v" <"odd name" = 1, g = "a graph" () => () {},
        t = [float {1}, int8[1] {2}], s = sparse_tensor(float[4]) float[1] {5} int64[1] {2}> ()""")
    assert (node.domain, node.op, node.overload) == ("my-domain", "aten::op", "o v")
    assert node.attributes.value("odd name") == 1
    assert isinstance(node.attributes.value("g"), Graph)
    assert [t.array().tolist() for t in node.attributes.value("t")] == [1.0, [2]]
    assert node.attributes.value("s").array().tolist() == [0, 0, 5, 0]


def test_narrow_integers_several_to_an_entry_or_one_by_one():
    packed, single = value_of("int4[4] {33, 67}").value, value_of("int4[4] {1, -2, 3, 4}").value
    assert packed.element is single.element is INT4
    assert packed.array().astype(int).tolist() == [1, 2, 3, 4]
    assert single.array().astype(int).tolist() == [1, -2, 3, 4]


def test_external_data_is_referred_to():
    graph = parse_graph('g () => () <float[2,3] w = ["location": "f", "offset": "16"]> {}')
    (tensor,) = graph.initializers.values()
    assert isinstance(tensor, ExternalTensor)
    assert (tensor.shape, tensor.entries) == ((2, 3), {"location": "f", "offset": "16"})
    with pytest.raises(ExternalDataError, match="'f'"):
        tensor.array()


def test_functions():
    function = parse_function("""<domain: "d", doc_string: "says", opset_import: ["": 18]>
        f <alpha, beta: float = 2> (float[N] x, y) => (z) <float t>
        {t = Op <a: float = @alpha> (x) z = Op (t, y)}""")
    assert (function.key, function.doc, function.opsets) == (("d", "f", ""), "says", {"": 18})
    assert function.attributes["alpha"] is None
    assert function.attributes["beta"] == Attribute("beta", "float", 2.0)
    assert [v.name for v in function.graph.inputs] == ["x", "y"]
    first, second = function.graph
    assert first.output.type == tensor_type("float", [])
    assert function.graph.outputs[0] is second.output
    verify(function.graph)


def test_large_literals_are_read_as_arrays():
    data = np.arange(100_000, dtype=np.float32) / 7
    text = ", ".join(map(str, data))
    (tensor,) = parse_graph(f"g () => () <float[100000] w = {{{text}}}> {{}}").initializers.values()
    assert isinstance(tensor, ArrayTensor)
    assert np.array_equal(tensor.array(), data)
