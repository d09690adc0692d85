"""How models are shown: the layout, unique names, exact numbers."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabir.elements import ELEMENTS
from sabir.ir import (
    UNDEFINED,
    ArrayTensor,
    Attribute,
    Builder,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    Value,
    parse_dim,
    read_dim,
    symbol,
    tensor_type,
    unknown_element,
)
from sabir.syntax import parse, parse_function, parse_graph, parse_node, text

SHOWN = """\
<
   ir_version: 9,
   opset_import: ["" : 18, "d" : 1],
   producer_name: "p",
   metadata_props: ["k": "v"]
>
main (float[N,"2*N"] x, float[2] w) => (float y)
   <float[2] w = {1.0,-2.5},
    string[1] s = {"a\\"b"},
    float[N] h>
{
   [first] h = d.Op:o <axis: int = 1, pads: ints = [0, 1], t: tensor = int64 {3}> (x, "", s)
   y = If (h) <then_branch: graph = t () => (float u) {
      u = Neg (h)
   }, else_branch: graph = e () => (float u) {
      u = Abs (w)
   }>
}
<
   domain: "d",
   overload: "o",
   opset_import: ["" : 18]
>
Op <axis, pads: ints = []> (x, i, s) => (y) {
   y = Sum <k: int = @axis> (x, s)
}
"""


def test_the_layout():
    assert text(parse(SHOWN)) == SHOWN


def names_of(graph):
    return [v.name for node in graph for v in node.outputs]


def test_missing_names_are_made_up():
    b = Builder()
    x = b.input("x", "float", [])
    y = b.Neg(x)
    z = b.Neg(y)
    y.name = z.name = ""
    b.output(z)
    again = parse_graph(text(b.graph))
    assert names_of(again) == ["value_1", "value_2"]
    assert again.outputs[0].node is list(again)[1]
    assert not y.name + z.name


def test_names_that_clash_in_a_file_stay_as_they_are():
    graph = parse_graph("g (y) => (y) {y = A (y) y_1 = B (y) y = C (y)}")
    again = parse_graph(text(graph))
    assert [v.name for v in (*again.inputs, *(n.output for n in again))] == ["y", "y", "y_1", "y"]
    first, second, third = again
    assert first.inputs[0] is again.inputs[0]
    assert second.inputs[0] is third.inputs[0] is first.output


def test_clashing_names_are_made_unique():
    graph = parse_graph("g (y) => (z) {a = A (y) y_1 = B (a) z = C (a)}")
    for value in graph.defined():
        value.name = "y" if value.name in "az" else value.name
    again = parse_graph(text(graph))
    names = [v.name for v in (*again.inputs, *(n.output for n in again))]
    assert len(set(names)) == 4
    first, second, third = again
    assert first.inputs[0] is again.inputs[0]
    assert second.inputs[0] is third.inputs[0] is first.output
    assert again.outputs[0] is third.output


def test_a_subgraph_does_not_hide_names_around_it_but_branches_may_share():
    def branch(captured):
        inner = Graph("b")
        node = inner.append(Node("Add", [captured, captured], [Value("x")]))
        inner.outputs.append(inner.append(Node("Neg", [node.output], [Value("r")])).output)
        return Attribute("b", "graph", inner)

    graph = Graph("g")
    x = graph.add_input("x")
    graph.append(Node("If", [x], [Value("r")], {"p": branch(x), "q": branch(x)}))
    (again,) = parse_graph(text(graph))
    for inner in again.graphs:
        add, neg = inner
        assert add.inputs[0].name == "x"
        assert add.inputs[0].source is again.graph
        assert add.output.name != "x"
        assert neg.inputs[0] is add.output
        assert neg.output.name == "r"


def test_an_undefined_value_does_not_become_another_of_its_name():
    graph = Graph("g")
    inner = Graph("b")
    inner.append(Node("Op", [Value("y")], 1))
    graph.append(Node("If", [], [Value("z")], {"b": Attribute("b", "graph", inner)}))
    graph.append(Node("Op", [], [Value("y")]))
    branch, _ = parse_graph(text(graph))
    (node,) = branch.graphs[0]
    assert node.inputs[0].source is None


def test_unnamed_and_oddly_named_graphs():
    for name in ("", "a b", "float", "nan", "seq"):
        node = Node("If", [], 1, {"body": Attribute("body", "graph", Graph(name))})
        assert parse_node(text(node)).graphs[0].name == name
        assert parse_graph(text(Graph(name))).name == name


def test_element_types_that_the_standard_does_not_define():
    graph = Graph("g")
    graph.add_input("x", TensorType(UNDEFINED, (2,)))
    graph.add_input("y", SequenceType(TensorType(UNDEFINED)))
    graph.add_input("z", MapType(UNDEFINED, None))
    graph.add_input("w", TensorType(unknown_element(-7), ()))
    assert text(graph).startswith("g (?0[2] x, seq(?0[]) y, map(?0, ?) z, ?-7 w) =>")
    assert [v.type for v in parse_graph(text(graph)).inputs] == [v.type for v in graph.inputs]


def test_sparse_constants():
    graph = Graph("g")
    sparse = SparseTensor(ArrayTensor(np.float32([1, 2])), ArrayTensor(np.int64([[0, 1], [2, 0]])), (3, 2))
    graph.add_initializer("w", sparse)
    graph.append(Node("Op", [], 1, {"a": Attribute("a", "sparse_tensors", (sparse, sparse))}))
    again = parse_graph(text(graph))
    (constant,) = again.initializers.values()
    assert constant.array().tolist() == sparse.array().tolist()
    (node,) = again
    assert [s.array().tolist() for s in node.attributes.value("a")] == [sparse.array().tolist()] * 2


def test_external_data_is_not_opened():
    shown = 'g () => ()\n   <float[2] w = ["location": "f", "offset": "8"]>\n{\n'
    shown += '   y = Op <a: tensor = float[2] = ["location": "g"]> ()\n}\n'
    assert text(parse_graph(shown)) == shown


def test_twenty_thousand_nodes_take_no_time():
    count = 20_000
    lines = (
        f"[n{i}] v{i + 1} = Conv <axis: int = 1, pads = [1, 1]> (v{i}, v{i // 2})\n" for i in range(count)
    )
    source = f"g (float[N] v0) => (float[N] v{count}) {{{''.join(lines)}}}"
    start = time.process_time()
    graph = parse_graph(source)
    middle = time.process_time()
    assert text(graph).count("\n") == count + 2
    assert middle - start < 5
    assert time.process_time() - middle < 5


# ---------------------------------------------------------------- made-up facts

WORDS = st.text(max_size=8).filter(lambda s: s.isascii() or s.encode("utf-8", "ignore").decode() == s)
NAMES = st.one_of(st.sampled_from(["x", "float", "inf", "seq", "a b", '"', "\\", "#", "é", "v0"]), WORDS)
IDENTIFIERS = st.from_regex(r"[A-Za-z_]\w{0,5}", fullmatch=True).filter(str.isascii)
DIMS = st.one_of(
    st.none(), st.integers(0, 2**63 - 1), IDENTIFIERS.map(symbol), st.just(parse_dim("(H-1)//2+1")),
    NAMES.filter(bool).map(read_dim),
)  # fmt: skip
SHAPES = st.one_of(st.none(), st.lists(DIMS, max_size=4).map(tuple))
KINDS = st.sampled_from(ELEMENTS)
TENSORS = st.builds(TensorType, KINDS, SHAPES)
TYPES = st.recursive(
    st.one_of(
        TENSORS,
        st.builds(SparseTensorType, KINDS, SHAPES),
        st.builds(OpaqueType, st.sampled_from(["", "a", "a.b", "é"]), st.sampled_from(["n", "x.y", "a b"])),
    ),
    lambda inner: st.one_of(
        st.builds(SequenceType, inner), st.builds(OptionalType, inner), st.builds(MapType, KINDS, inner)
    ),
    max_leaves=4,
)
FLOATS = st.floats(width=32)
INTS = st.integers(-(2**63), 2**63 - 1)
STRINGS = st.one_of(NAMES, st.just(b"\xff\xfe"))
ATTRIBUTES = st.one_of(
    st.tuples(st.just("int"), INTS),
    st.tuples(st.just("float"), FLOATS),
    st.tuples(st.just("string"), STRINGS),
    st.tuples(st.just("type"), TYPES),
    st.tuples(st.just("ints"), st.lists(INTS).map(tuple)),
    st.tuples(st.just("floats"), st.lists(FLOATS).map(tuple)),
    st.tuples(st.just("strings"), st.lists(STRINGS).map(tuple)),
    st.tuples(st.just("types"), st.lists(TYPES, max_size=3).map(tuple)),
)


@given(TYPES)
def test_types_come_back(kind):
    graph = Graph("g")
    graph.add_input("x", kind)
    assert parse_graph(text(graph)).inputs[0].type == kind


@given(NAMES, NAMES, ATTRIBUTES)
def test_attributes_come_back(op, name, fact):
    attribute = Attribute(name, *fact)
    node = parse_node(text(Node(op, [], 1, {name: attribute}, name=name, domain=op, overload=name)))
    assert (node.op, node.name, node.overload) == (op, name, name)
    assert node.domain == op
    again = node.attributes[name]
    assert again.type == attribute.type
    assert repr(again.value) == repr(attribute.value)  # NaN has one repr


@given(st.lists(NAMES, min_size=1, max_size=6), st.data())
@settings(max_examples=60)
def test_graphs_come_back(names, data):
    graph = Graph("g")
    values = [graph.add_input("in", tensor_type("float", ["N"]))]
    for name in names:
        reads = data.draw(st.lists(st.sampled_from(values), max_size=3))
        values.append(graph.append(Node("Op", reads, [Value(name)])).output)
    graph.outputs.append(data.draw(st.sampled_from(values)))
    again = parse_graph(text(graph))
    old = {v: i for i, v in enumerate(values)}
    new = {v: i for i, v in enumerate([*again.inputs, *(n.output for n in again)])}
    assert len({v.name for v in new}) == len(values)
    assert [[new[v] for v in n.inputs] for n in again] == [[old[v] for v in n.inputs] for n in graph]
    assert new[again.outputs[0]] == old[graph.outputs[0]]


@given(st.lists(st.floats(width=32)), st.lists(st.floats()))
def test_floats_come_back_exactly(singles, doubles):
    for data in (np.array(singles, np.float32), np.array(doubles)):
        graph = Graph("g")
        graph.add_initializer("w", ArrayTensor(data))
        (tensor,) = parse_graph(text(graph)).initializers.values()
        again = tensor.array()
        assert np.array_equal(again, data, equal_nan=True)
        assert np.array_equal(np.signbit(again), np.signbit(data))


def test_headers_come_back():
    function = Function("f f", "dom", "ov", opsets={"": 3})
    function.graph.doc = 'a "doc"\nof two lines'
    function.attributes.update(a=None, b=Attribute("b", "ints", (1,)))
    model = Model(Graph("g"), {"": 18}, 8, [function], "p", "1", "d", 3, "doc", {"k": 'v"'})
    again = parse(text(model))
    for name in (
        "opsets",
        "ir_version",
        "producer_name",
        "producer_version",
        "domain",
        "version",
        "doc",
        "metadata",
    ):
        assert getattr(again, name) == getattr(model, name)
    (other,) = again.functions
    assert (other.key, other.doc, other.attributes) == (function.key, function.doc, function.attributes)
    assert parse_function(text(function)).key == function.key


@pytest.mark.parametrize("value", [0.1, 1.0, 16777217.0, 1e-45, 3.4028235e38, math.inf, -math.inf, 1e300])
def test_floats_are_shown_short(value):
    shown = text(Node("Op", [], 0, {"a": Attribute("a", "float", value)}))
    with np.errstate(over="ignore"):
        assert f"= {np.float32(value)!s}>" in shown
