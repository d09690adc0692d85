"""The part of a model between values."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError
from sabir.ir import Annotation, ArrayTensor, Node, NodeDevice, Sharding, SparseTensor, Value, verify

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
CHAIN = """g (float[N,2] x, float[N,2] z) => (float[N,2] y) <float[2] w = {1, 2}> {
    t = Add (x, w)  u = Relu (t)  dead = Neg (u)  v = Mul (u, w)  y = Add (v, z)
}"""
LOOP = """g (float[2] x, int64 n) => (float[2] y) <bool yes = {1}, float[2] w = {1, 2}> {
    h = Neg (x)
    two = Constant <value_float = 2.0> ()
    y = Loop (n, yes, x) <body = b (int64 i, bool go, float[2] s) => (bool more, float[2] next) {
        more = Identity (go)  p = Mul (s, h)  q = Add (p, w)  r = Mul (q, two)  next = Relu (r)
    }>
}"""


def parsed(text):
    return sabir.parse(HEADER + text)


def names(values):
    return [value.name for value in values]


def part_of(model, inputs=None, outputs=None):
    before = sabir.dumps(model)
    part = sabir.extract(model, inputs=inputs, outputs=outputs)
    assert sabir.dumps(model) == before
    verify(model)
    verify(part)
    sabir.check(part)
    return part


def test_a_part_has_the_nodes_and_constants_between_its_ports():
    model = parsed(CHAIN)
    part = part_of(model, "t", ["u", "v"])
    assert [node.op for node in part.graph] == ["Relu", "Mul"]
    assert (names(part.graph.inputs), names(part.graph.outputs)) == (["t"], ["u", "v"])
    assert [str(v.type) for v in (*part.graph.inputs, *part.graph.outputs)] == ["float[N,2]"] * 3
    assert part.graph.initializers["w"] is model.graph.initializers["w"]
    got = sabir.evaluate(part, {"t": np.float32([[-1, 3]])})
    assert (got["u"].tolist(), got["v"].tolist()) == ([[0, 3]], [[0, 6]])


def test_inputs_are_by_default_those_that_the_outputs_need():
    part = part_of(parsed(CHAIN), None, "v")
    assert (names(part.graph.inputs), names(part.graph.outputs)) == (["x"], ["v"])
    assert [node.op for node in part.graph] == ["Add", "Relu", "Mul"]
    assert names(part_of(parsed(CHAIN)).graph.inputs) == ["x", "z"]


def test_outputs_are_by_default_those_of_the_graph():
    part = part_of(parsed(CHAIN), ["z", "v"])
    assert (names(part.graph.inputs), names(part.graph.outputs)) == (["z", "v"], ["y"])


def test_values_of_the_model_are_accepted():
    model = parsed(CHAIN)
    part = part_of(model, model.graph.value("t"), model.graph.value("v"))
    assert names(part.graph.inputs) == ["t"]


def test_a_path_around_the_cut_is_named():
    model = parsed(CHAIN)
    with pytest.raises(sabir.UnsupportedError) as caught:
        sabir.extract(model, inputs="z", outputs="y")
    assert str(caught.value) == (
        "the outputs depend on the input 'x', which is not listed: y <- v <- u <- t <- x; "
        "list it as an input too, or cut at a value of this path"
    )
    with pytest.raises(sabir.UnsupportedError, match=r"'z' \(and on 'x'\), which is not listed: y <- z;"):
        sabir.extract(model, inputs="w", outputs=["u", "y"])


def test_a_long_path_is_shortened():
    b = sabir.Builder(21)
    x = b.input("x", "float", [1])
    for i in range(20):
        x = b.Neg(x)
        x.name = f"v{i}"
    b.output(x, "y")
    with pytest.raises(
        sabir.UnsupportedError, match=r"y <- v18 <- v17 <- v16 <- \(13 more\) <- v2 <- v1 <- v0 <- x;"
    ):
        sabir.extract(b.model(), inputs=[], outputs="y")


def test_a_value_in_a_function_is_answered_with_the_function():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float x) => (float y) { y = my.f (x) }
        <domain: "my", opset_import: ["" : 21]>
        f (a) => (b) { inner = Exp (a)  b = Neg (inner) }""")
    with pytest.raises(NotFoundError, match=r"no value 'inner' outside of .* <Function my\.f>: inline"):
        sabir.extract(model, outputs="inner")
    flat = sabir.inline(model)
    assert len(sabir.extract(flat, outputs=flat.graph[0].output.name).graph) == 1


def test_what_is_not_there_is_answered_with_the_nearest_name():
    with pytest.raises(NotFoundError, match="no value 'hiden'; is it 'hidden'?"):
        sabir.extract(
            parsed("g (float x) => (float y) { hidden = Neg (x)  y = Neg (hidden) }"), inputs="hiden"
        )
    with pytest.raises(NotFoundError, match="is not in the main graph"):
        sabir.extract(parsed(CHAIN), outputs=parsed(CHAIN).graph.value("t"))
    with pytest.raises(sabir.UnsupportedError, match="`outputs` lists no value"):
        sabir.extract(parsed(CHAIN), outputs=[])


def test_an_initializer_may_be_an_input_or_an_output():
    part = part_of(parsed(CHAIN), ["u", "w"], "v")
    assert (names(part.graph.inputs), len(part.graph.initializers)) == (["u", "w"], 0)
    assert str(part.graph.inputs[1].type) == "float[2]"
    assert sabir.evaluate(part_of(parsed(CHAIN), None, ["w"]), {})["w"].tolist() == [1, 2]


def test_one_output_of_a_node_is_an_input_and_the_other_is_computed():
    model = parsed("g (float[4] x) => (float[2] y) { a, b = Split <num_outputs = 2> (x)  y = Add (a, b) }")
    part = part_of(model, ["a", "x"], "y")
    got = sabir.evaluate(part, {"a": np.float32([10, 20]), "x": np.float32([1, 2, 3, 4])})
    assert got["y"].tolist() == [13, 24]
    assert sabir.loads(sabir.dumps(part)).graph.inputs[0].name == "a"


def test_the_body_of_a_loop_becomes_the_main_graph():
    part = part_of(parsed(LOOP), ["s"], "next")
    assert (names(part.graph.inputs), names(part.graph.outputs)) == (["s", "h"], ["next"])
    assert [node.op for node in part.graph] == ["Constant", "Mul", "Add", "Mul", "Relu"]
    assert [str(value.type) for value in part.graph.inputs] == ["float[2]", "float[2]"]
    got = sabir.evaluate(part, {"s": np.float32([1, 2]), "h": np.float32([3, 4])})
    assert got["next"].tolist() == [8, 20]
    whole = part_of(parsed(LOOP), ["i", "go", "s"])
    assert names(whole.graph.outputs) == ["more", "next"]
    with pytest.raises(sabir.UnsupportedError, match="'s', which is not listed: next <- r <- q <- p <- s"):
        sabir.extract(parsed(LOOP), inputs="i", outputs="next")


def test_values_of_different_graphs_are_refused():
    with pytest.raises(sabir.UnsupportedError, match="the input 'p' is in the graph 'b' of <Node Loop>"):
        sabir.extract(parsed(LOOP), inputs="p", outputs="y")
    both = "g (bool c, float x) => (float y) { y = If (c) <then_branch = a () => (p) { p = Neg (x) }, else_branch = b () => (q) { q = Abs (x) }> }"
    with pytest.raises(sabir.UnsupportedError, match="a part is cut out of one graph"):
        sabir.extract(parsed(both), outputs=["p", "q"])


def test_a_subgraph_follows_with_what_it_captures():
    part = part_of(parsed(LOOP), ["h", "x", "n"], "y")
    assert names(part.graph.inputs) == ["h", "x", "n"]
    got = sabir.evaluate(part, {"h": np.float32([1, 1]), "x": np.float32([1, 2]), "n": np.int64(1)})
    assert got["y"].tolist() == [4, 8]


def test_functions_and_imports_follow_that_are_called():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21, "a" : 1, "b" : 1, "ai.onnx.ml" : 5]>'
        """
g (float[N] x) => (float[N] y) { t = a.Twice (x)  u = ai.onnx.ml.Scaler (t)  y = b.Other (u) }
<domain: "a", opset_import: ["" : 21, "b" : 1]> Twice (i) => (o) { k = b.Inner (i)  o = Add (k, i) }
<domain: "b", opset_import: ["" : 21]> Inner (i) => (o) { o = Neg (i) }
<domain: "b", opset_import: ["" : 21]> Other (i) => (o) { o = Abs (i) }
"""
    )
    part = part_of(model, None, "t")
    assert [function.name for function in part.functions] == ["Twice", "Inner"]
    assert part.opsets == {"": 21, "a": 1, "b": 1}
    other = part_of(model, "u", "y")
    assert [function.name for function in other.functions] == ["Other"]


def test_names_metadata_and_documentation_stay():
    model = parsed(CHAIN)
    model.metadata, model.doc, model.version = {"k": "v"}, "text", 7
    model.graph.metadata, model.graph.doc = {"g": "h"}, "graph"
    node, value = model.graph.value("u").node, model.graph.value("u")
    node.name, node.metadata, node.doc, value.metadata, value.doc = (
        "act",
        {"n": "m"},
        "node",
        {"p": "q"},
        "value",
    )
    node.devices = (NodeDevice("cpu", (Sharding(value, value.name),)),)
    part = part_of(model, "t", "v")
    assert (part.metadata, part.doc, part.version, part.graph.metadata, part.graph.doc) == (
        {"k": "v"}, "text", 7, {"g": "h"}, "graph",
    )  # fmt: skip
    copy = part.graph.node("act")
    assert (copy.metadata, copy.doc, copy.output.metadata, copy.output.doc) == (
        {"n": "m"},
        "node",
        {"p": "q"},
        "value",
    )
    assert copy.devices[0].shardings[0].value is copy.output
    part.metadata["k"] = copy.metadata["n"] = "changed"
    assert (model.metadata, node.metadata) == ({"k": "v"}, {"n": "m"})


def test_a_quantization_annotation_stays_with_its_scale():
    model = parsed(CHAIN)
    scale = model.graph.add_initializer("scale", np.float32(0.5))
    model.graph.annotations = (
        Annotation(model.graph.value("v"), (("SCALE_TENSOR", scale),)),
        Annotation(model.graph.value("y"), (("SCALE_TENSOR", scale),)),
    )
    (annotation,) = part_of(model, "t", "v").graph.annotations
    assert (annotation.value.name, annotation.parameters[0][1].constant.array()) == ("v", np.float32(0.5))


def test_a_sparse_initializer_follows():
    model = parsed("g (float[3] x) => (float[3] y) { y = Neg (x) }")
    sparse = SparseTensor(ArrayTensor(np.float32([5])), ArrayTensor(np.int64([1])), (3,))
    w = Value("w")
    model.graph.set_initializer(w, sparse)
    (neg,) = model.graph
    total = model.graph.append(Node("Add", [neg.output, w], [Value("sum")]))
    model.graph.outputs.append(total.output)
    part = part_of(model, "y", "sum")
    assert sabir.evaluate(part, {"y": np.float32([1, 2, 3])})["sum"].tolist() == [1, 7, 3]
    opened = sabir.extract(model, inputs=["y", "w"], outputs="sum")
    assert str(opened.graph.inputs[1].type) == "float[3]"


def test_a_default_of_an_input():
    text = "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { t = Neg (x)  y = Add (t, w) }"
    needed = part_of(parsed(text), None, "y")
    assert (names(needed.graph.inputs), len(needed.graph.initializers)) == (["x", "w"], 1)
    cut = part_of(parsed(text), "t", "y")
    assert (names(cut.graph.inputs), names(cut.graph.initializers)) == (["t"], ["w"])
    listed = part_of(parsed(text), ["t", "w"], "y")
    assert (names(listed.graph.inputs), names(listed.graph.initializers)) == (["t", "w"], ["w"])


def test_an_initializer_of_ir_3_stays_an_input():
    model = sabir.parse(
        '<ir_version: 3, opset_import: ["" : 8]>\n'
        "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { t = Neg (x)  y = Add (t, w) }"
    )
    part = part_of(model, "t", "y")
    assert (names(part.graph.inputs), names(part.graph.initializers)) == (["t", "w"], ["w"])


def test_a_value_that_nothing_defines_is_refused():
    model = parsed("g (float x) => (float y) { y = Add (x, nothing) }")
    with pytest.raises(sabir.SchemaError, match="reads 'nothing', which nothing defines"):
        sabir.extract(model)


def test_unsorted_nodes_are_sorted():
    part = sabir.extract(parsed("g (float x) => (float y) { y = Neg (t)  t = Abs (x) }"))
    verify(part)
    assert [node.op for node in part.graph] == ["Abs", "Neg"]


def test_an_unread_input_stays():
    assert names(part_of(parsed(CHAIN), ["t", "z"], "u").graph.inputs) == ["t", "z"]


def test_an_input_may_be_an_output():
    part = part_of(parsed(CHAIN), "t", ["t", "u"])
    assert names(part.graph.outputs) == ["t", "u"]


def test_what_the_model_declares_of_its_ports_stays():
    part = part_of(parsed("g (float[2] x) => (float[?] y) { t = Neg (x)  y = Abs (t) }"), "t")
    assert [str(v.type) for v in (*part.graph.inputs, *part.graph.outputs)] == ["float[2]", "float[?]"]
