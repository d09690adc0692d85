"""Models are compared by structure and contents: names of inner values and the order of nodes do not matter."""

import random
import sys
import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sabir
from sabir.comparison import POLICY
from sabir.ir import (
    Annotation,
    ArrayTensor,
    DeviceConfiguration,
    Graph,
    Node,
    NodeDevice,
    SparseTensor,
    TrainingInfo,
    Value,
)
from support.externals import everywhere
from support.values import repeatable_cases

HEADER = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'


def kinds(old, new):
    return [c.kind for c in sabir.compare(old, new).changes]


def parsed(body, *functions, outputs="float[2] y"):
    return sabir.parse(f"{HEADER} g (float[2] x) => ({outputs}) {body} {' '.join(functions)}")


# no change


@cache
def official():
    cases = repeatable_cases()
    rich = [c for c in cases if any(w in c.name for w in ("_if", "loop", "scan", "_expanded", "sequence"))]
    return [*rich, *cases[::10]]


def disguise(model, seed):
    """Rename all inner values and shuffle the nodes of all graphs, in place."""
    draw = random.Random(seed)  # ruff: ignore[suspicious-non-cryptographic-random-usage]  the same again
    count = 0
    for root in model.graphs():
        for graph in list(root.scopes()):
            kept = {*graph.inputs, *graph.outputs} if graph is model.graph else set()
            for value in graph.defined():
                if value not in kept:
                    count += 1
                    value.name = f"renamed_{count}"
            nodes = list(graph)
            draw.shuffle(nodes)
            graph.arrange(nodes)
    return model


@settings(max_examples=60)
@given(st.data())
def test_names_and_order_do_not_matter(data):
    case = data.draw(st.sampled_from(official()), label="case")
    old = sabir.from_proto(case.model)
    new = disguise(old.clone(), data.draw(st.integers(0, 1 << 20), label="seed"))
    assert sabir.compare(old, new).changes == ()


@pytest.mark.parametrize("written", ["protobuf", "textproto", "json", "onnxtxt"])
def test_the_format_of_a_file_does_not_matter(written):
    old = sabir.loads(sabir.dumps(everywhere()))  # a save names what has no name
    assert sabir.compare(old, sabir.loads(sabir.dumps(old, format=written), format=written)).changes == ()


def test_external_data_is_compared_by_its_bits(tmp_path):
    old = sabir.loads(sabir.dumps(everywhere()))
    sabir.save(old, tmp_path / "model.onnx", external="weights.data")
    assert sabir.compare(old, sabir.load(tmp_path / "model.onnx")).changes == ()
    data = bytearray((tmp_path / "weights.data").read_bytes())
    data[1] ^= 1
    (tmp_path / "weights.data").write_bytes(data)
    assert kinds(old, sabir.load(tmp_path / "model.onnx")) == ["unused-weights-changed"]


def test_equal_constants_in_other_encodings_are_equal():
    body = "{{ c = Constant <value = {} {{1, 2}}> () y = Add (x, c) }}"
    old = parsed("<float[2] w = {1, 2}> { y = Add (x, w) }")
    raw = old.clone()
    raw.graph.initializers["w"] = np.float32([1, 2])
    assert kinds(old, raw) == []
    assert kinds(parsed(body.format("float[2]")), parsed(body.format("float[2]"))) == []
    assert kinds(parsed(body.format("float[2]")), parsed(body.format("float[1,2]"))) == ["weights-changed"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(0.0, -0.0, ["weights-changed"]), (np.nan, np.nan, []), (np.nan, -np.nan, ["weights-changed"])],
)
def test_weights_are_compared_by_bits(one, other, expected):
    models = [parsed("<float[2] w = {1, 2}> { y = Add (x, w) }") for _ in range(2)]
    for model, number in zip(models, (one, other), strict=True):
        model.graph.initializers["w"] = np.float32([number, 1])
    assert kinds(*models) == expected


def test_merged_weights_are_no_change():
    old = parsed("<float[2] v = {1, 2}, float[2] w = {1, 2}> { t = Add (x, v) y = Mul (t, w) }")
    new = parsed("<float[2] v = {1, 2}> { t = Add (x, v) y = Mul (t, v) }")
    assert kinds(old, new) == []


def test_operands_left_out_at_the_end_need_not_be_listed():
    old = parsed("{ y = Clip (x) }")
    new = parsed("{ y = Clip (x, , ) }")
    assert len(new.graph[0].inputs) == 2
    assert kinds(old, new) == []


# one change is one entry of the report

CHAIN = (
    "<float[2] v = {1, 2}, float[2] w = {3, 4}> { a = Add (x, v) b = Relu (a) c = Mul (b, w) y = Neg (c) }"
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("v = {1, 2}", "v = {1, 5}", ["weights-changed"]),
        ("v = {1, 2}", "v = {9, 9}, float[2] unused = {0, 0}", ["weights-changed", "unused-weights-changed"]),
        ("b = Relu (a)", "t = Abs (a) b = Relu (t)", ["node-added"]),
        ("b = Relu (a) c = Mul (b, w)", "c = Mul (a, w)", ["node-removed"]),
        ("Relu (a)", "Sigmoid (a)", ["node-added", "node-removed"]),
        ("Relu (a)", "LeakyRelu <alpha = 0.5> (a)", ["node-added", "node-removed"]),
        ("Mul (b, w)", "Mul (w, b)", ["operands-changed", "operands-changed"]),
        ("c = Mul (b, w) y = Neg (c)", "t = Mul (b, w) c = Neg (t) y = Neg (c)", ["node-added"]),
    ],
)
def test_one_change(old, new, expected):
    assert kinds(parsed(CHAIN), parsed(CHAIN.replace(old, new))) == expected


def test_two_changes_far_apart_leave_what_is_between_unreported():
    blocks = " ".join(f"t{i + 1} = Add (t{i}, w{i}) s{i + 1} = Relu (t{i + 1})" for i in range(1, 20))
    weights = ", ".join(f"float[2] w{i} = {{{i}, {i}}}" for i in range(20))
    body = f"<{weights}> {{ t1 = Add (x, w0) {blocks} y = Neg (t20) }}"
    new = body.replace("t2 = Add (t1, w1)", "u1 = Abs (t1) t2 = Add (u1, w1)").replace(
        "y = Neg (t20)", "u2 = Abs (t20) y = Neg (u2)"
    )
    assert kinds(parsed(body), parsed(new)) == ["node-added", "node-added"]


def test_parallel_branches_with_new_weights_are_not_crossed():
    """The branches have one structure, and only the weights that did not change tell them apart."""
    layer = "{{ q = MatMul (x, a) k = MatMul (x, b) v = MatMul (x, c) s = Add (q, k) {} y = Mul (s, v) }}"
    weights = (
        "<float[2,2] a = {{1, 2, 3, {}}}, float[2,2] b = {{5, 6, 7, 8}}, float[2,2] c = {{9, 10, 11, 12}}> "
    )
    old = parsed(weights.format(4) + layer.format(""))
    new = parsed(weights.format(0) + layer.format(""))
    random.Random(1).shuffle(nodes := list(new.graph))  # ruff: ignore[suspicious-non-cryptographic-random-usage]  the same again
    new.graph.arrange(nodes)
    comparison = sabir.compare(old, new)
    assert [str(c) for c in comparison.changes] == [
        "graph/initializer 'a': the initializer 'a' has other contents (float[2,2])"
    ]


def test_an_operand_that_was_left_out():
    body = "<float low = {{0}}> {{ t = Clip ({}) y = Neg (t) }}"
    (change,) = sabir.compare(parsed(body.format("x")), parsed(body.format("x, low"))).reasons
    assert change.message == "operand 1 of Clip was left out and is 'low'"


def test_no_difference_is_silent():
    """An output that nothing reads belongs to no other kind of change."""
    old = parsed("{ t, mask = Dropout (x) y = Neg (t) }")
    assert kinds(old, parsed("{ t = Dropout (x) y = Neg (t) }")) == ["graph-changed"]


def test_an_attribute():
    (change,) = sabir.compare(
        parsed("{ t = Softmax <axis = 0> (x) y = Neg (t) }"),
        parsed("{ t = Softmax <axis = -1> (x) y = Neg (t) }"),
    ).changes
    assert (change.kind, change.bump) == ("attribute-changed", "patch")
    assert (
        str(change) == "graph/node[0] 'Softmax'/attribute 'axis': attribute 'axis' of Softmax was 0 and is -1"
    )
    assert change.reason == POLICY["attribute-changed"].reason


def test_nan_in_an_attribute_equals_itself():
    old = parsed("{ y = LeakyRelu <alpha = 1.0> (x) }")
    old.graph[0].set(alpha=float("nan"))
    assert kinds(old, sabir.loads(sabir.dumps(old))) == []
    new = old.clone()
    new.graph[0].set(alpha=0.0)
    old.graph[0].set(alpha=-0.0)
    assert kinds(old, new) == ["attribute-changed"]


def test_another_number_of_equal_nodes_is_a_change():
    old = parsed("{ a = Relu (x) b = Relu (x) y = Add (a, b) }")
    new = parsed("{ a = Relu (x) y = Add (a, a) }")
    assert kinds(old, new) == ["node-removed"]


def test_an_output_that_is_another_value():
    old = parsed(
        "{ a = Relu (x) b = Neg (a) y = Identity (b) }", outputs="float[2] y, float[2] a, float[2] b"
    )
    new = old.clone()
    a, b = new.graph.value("a"), new.graph.value("b")
    a.name, b.name = "b", "a"
    new.graph.outputs[1:] = [b, a]
    assert kinds(old, new) == ["output-recomputed", "output-recomputed"]


def test_new_operator_versions_are_reported_once_for_an_operator():
    old = parsed("{ a = Relu (x) b = Relu (a) c = Neg (b) y = Identity (c) }")
    new = old.clone()
    old.opsets[""], new.opsets[""] = 13, 14
    comparison = sabir.compare(old, new)
    assert [(c.kind, c.message, c.bump) for c in comparison.changes] == [
        ("operator-version-changed", "Relu:13 became Relu:14, and 1 more node", "patch"),
        ("operator-version-changed", "Identity:13 became Identity:14", "patch"),
        ("import-changed", "the operator set was 13 and is 14", None),
    ]


def test_an_import_that_changes_no_operator_requires_nothing():
    old = parsed("{ y = Sigmoid (x) }")
    new = old.clone()
    old.opsets[""], new.opsets[""] = 21, 22
    comparison = sabir.compare(old, new)
    assert [c.kind for c in comparison.changes] == ["import-changed"]
    assert comparison.required is None


# subgraphs, functions, training

IF = """<bool c = {{1}}, float[2] w = {{1, {}}}> {{
    t = Abs (x)
    s = If (c) <then_branch = a () => (float[2] p) {{ p = Add (t, w) }},
                else_branch = b () => (float[2] q) {{ q = {} (t) }}>
    y = Relu (s) }}"""


def test_subgraphs():
    old = parsed(IF.format(2, "Neg"))
    assert kinds(old, disguise(old.clone(), 1)) == []
    assert [str(c) for c in sabir.compare(old, parsed(IF.format(3, "Neg"))).changes] == [
        "graph/initializer 'w': the initializer 'w' has other contents (float[2])"
    ]
    inside = "graph/node[1] 'If'/attribute 'else_branch'/node[0]"
    assert [str(c) for c in sabir.compare(old, parsed(IF.format(2, "Exp"))).changes] == [
        f"{inside} 'Exp': Exp is new", f"{inside} 'Neg': Neg is gone",
    ]  # fmt: skip


FUNCTION = '<domain: "d", opset_import: ["" : 21]> {} (a) => (b) {{ t = {} (a) b = Neg (t) }}'


def test_functions():
    calls = "{ t = d.f (x) y = d.f (t) }"
    old = parsed(calls, FUNCTION.format("f", "Relu"))
    assert kinds(old, disguise(old.clone(), 1)) == []
    comparison = sabir.compare(old, parsed(calls, FUNCTION.format("f", "Exp")))
    assert [str(c) for c in comparison.changes] == [
        "function[0] 'f'/node[0] 'Exp': Exp is new", "function[0] 'f'/node[0] 'Relu': Relu is gone",
    ]  # fmt: skip
    more = parsed(calls, FUNCTION.format("f", "Relu"), FUNCTION.format("h", "Relu"))
    assert kinds(old, more) == ["function-added"]
    assert kinds(more, old) == ["function-removed"]
    newer = parsed(calls, FUNCTION.format("f", "Relu"))
    newer.functions[0].opsets[""] = 13
    assert kinds(old, newer) == ["operator-version-changed"]
    attributed = parsed(calls, FUNCTION.format("f", "Relu").replace("f (a)", "f <k: int = 1> (a)"))
    assert kinds(old, attributed) == ["function-changed"]


def trained(weight=1.0, step="Sub", bound="w"):
    b = sabir.Builder(21)
    x = b.input("x", "float", [2])
    w = b.initializer("w", np.float32([weight, weight]))
    other = b.initializer("v", np.float32([1, 1]))
    b.output(b.Add(b.Mul(x, w), other), "y")
    model = b.model()
    algorithm = Graph("algorithm")
    rate = algorithm.add_input("rate", sabir.ir.tensor_type("float", [2]))
    node = Node(step, [w, rate])
    algorithm.append(node)
    node.output.name = "next"
    algorithm.outputs.append(node.output)
    target = {"w": w, "v": other}[bound]
    model.training.append(TrainingInfo(None, algorithm, [], [(target, node.output)]))
    return model


def test_training():
    old = trained()
    assert kinds(old, disguise_names(trained())) == []
    assert kinds(old, trained(weight=2.0)) == ["weights-changed"]
    assert kinds(old, trained(step="Add")) == ["node-added", "node-removed", "training-changed"]
    assert kinds(old, trained(bound="v")) == ["training-changed"]
    without = trained()
    without.training.clear()
    assert [(c.kind, c.bump) for c in sabir.compare(old, without).changes] == [("training-removed", "major")]
    assert [(c.kind, c.bump) for c in sabir.compare(without, old).changes] == [("training-added", "minor")]
    started = trained()
    started.training[0].initialization = Graph("start")
    assert kinds(old, started) == ["training-changed"]
    fed = trained()
    fed.training[0].algorithm.add_input("momentum", sabir.ir.tensor_type("float"))
    (change,) = sabir.compare(old, fed).changes
    assert str(change).startswith("training_info[0]/algorithm/input[1] 'momentum': ")
    assert change.bump == "major"


def disguise_names(model):
    for node in model.graph:
        if node.output not in model.graph.outputs:
            node.output.name = "renamed"
    return model


# everything else of a model


def test_what_no_consumer_sees():
    old = parsed("{ a = Abs (x) y = Relu (a) }")
    new = old.clone()
    new.ir_version, new.producer_name, new.producer_version, new.domain, new.doc = (
        11,
        "p",
        "2",
        "org.acme",
        "doc",
    )
    new.graph.name, new.graph.doc, new.metadata, new.graph.metadata = "other", "doc", {"k": "v"}, {"k": "v"}
    new.graph.inputs[0].doc, new.graph.outputs[0].metadata = "an input", {"k": "v"}
    for node in new.graph:
        node.doc, node.metadata, node.name = "doc", {"k": "v"}, f"{node.op}_1"
    comparison = sabir.compare(old, new)
    assert comparison.required is None
    assert comparison.is_enough
    assert sorted({c.kind for c in comparison.changes}) == [
        "documentation-changed", "ir-version-changed", "metadata-changed", "name-changed", "producer-changed",
    ]  # fmt: skip
    assert [c.message for c in comparison.changes if "node" in c.message] == [
        "other doc strings of nodes, and 1 more node", "other metadata of nodes, and 1 more node",
    ]  # fmt: skip


def test_devices_and_quantization():
    old = parsed("<float s = {1}> { a = Abs (x) y = Relu (a) }")
    new = old.clone()
    new.devices.append(DeviceConfiguration("two", 2))
    new.graph[0].devices = (NodeDevice("two", (), 1),)
    assert kinds(old, new) == ["devices-changed", "devices-changed"]
    new = old.clone()
    new.graph.annotations = (
        Annotation(new.graph.value("a"), (("SCALE_TENSOR", new.graph.value("s")),)),
    )  # fmt: skip
    assert kinds(old, new) == ["quantization-changed"]
    assert kinds(new, disguise(new.clone(), 3)) == []


def test_sparse_weights():
    old = parsed("<float[2] w = {1, 2}> { y = Add (x, w) }")
    models = []
    for number in (1, 1, 2):
        models.append(old.clone())
        sparse = SparseTensor(ArrayTensor(np.float32([number])), ArrayTensor(np.int64([1])), (2,))
        models[-1].graph.initializers["w"] = sparse
    assert kinds(models[0], models[1]) == []
    assert kinds(models[0], models[2]) == ["weights-changed"]
    assert sabir.compare(old, models[0]).changes[0].message == "the initializer 'w' is sparse now"


def test_before_ir_4_an_input_with_an_initializer_is_a_weight():
    text = "g (float[2] x{}) => (float[2] y) <float[2] w = {{1, 2}}> {{ y = Add (x, w) }}"
    first = sabir.parse('<ir_version: 3, opset_import: ["" : 8]>' + text.format(""))
    first.graph.inputs.append(first.graph.value("w"))
    second = sabir.parse('<ir_version: 4, opset_import: ["" : 8]>' + text.format(""))
    assert kinds(first, second) == ["ir-version-changed"]
    second.graph.inputs.append(second.graph.value("w"))
    assert kinds(first, second) == ["optional-input-added", "ir-version-changed"]


# cost


def counted_calls(function, *arguments):
    """Return the number of Python calls that a call makes: a measure of its cost that no machine changes."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(profile)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def long(blocks, *, changed):
    b = sabir.Builder(21, check=False)
    x = b.input("x", "float", [4])
    for i in range(blocks):
        extra = i in {1, blocks - 2} and changed
        x = b.Relu(
            b.Add(b.Neg(x) if extra else x, b.initializer(f"w{i}", np.full(4, i * (1 + changed), np.float32)))
        )
    b.output(x, "y", "float", [4])
    return b.model()


def test_the_cost_is_proportional_to_the_number_of_nodes():
    """All weights change, and nodes are added at both ends, so that no node is equal to one of the other model."""
    sabir.compare(long(5, changed=False), long(5, changed=True))  # imports what it needs
    costs = []
    for blocks in (100, 400):
        old, new = long(blocks, changed=False), long(blocks, changed=True)
        costs.append(counted_calls(sabir.compare, old, new))
    assert costs[1] < 5 * costs[0]


def test_a_large_tensor_is_not_copied():
    data = np.zeros(1 << 25, np.uint8)
    old = parsed("{ y = Relu (x) }")
    old.graph.set_initializer(Value("w"), data)
    new = old.clone()
    new.graph.set_initializer(new.graph.value("w"), data.copy())
    tracemalloc.start()
    try:
        assert sabir.compare(old, new).changes == ()
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
