"""The checker finds everything at once, and says where."""

import time

import pytest

import sabir
from sabir.base import CheckError, WireError
from sabir.ir import Attribute, Builder, Function, Graph, Node, TensorType, Value, tensor_type


def found(model):
    return [(f.rule, str(f.location)) for f in sabir.findings(model)]


def good():
    b = Builder(21)
    b.output(b.Relu(b.input("x", "float", ["N"])), "y")
    return b.model()


def test_a_good_model_passes(tmp_path):
    assert sabir.check(good()) is None
    sabir.save(good(), tmp_path / "m.onnx")
    sabir.check(tmp_path / "m.onnx")
    sabir.check(sabir.dumps(good()))


def test_all_findings_come_at_once():
    b = Builder(21, check=False)
    x = b.input("x", "float", ["N"])
    b.output(b.Softmaxx(x), "a", "float", ["N"])
    b.output(b.op("Relu", x, x), "b", "float", ["N"])
    b.output(b.op("Softmax", x, ax=1), "c", "float", ["N"])
    b.output(b.Relu(Value("ghost")), "d", "float", ["N"])
    b.output(b.Reshape(b.input("i", "float", [2, 3]), b.initializer("s", [5])), "e", "float", [5])
    with pytest.raises(CheckError) as error:
        sabir.check(b.model())
    assert [(f.rule, str(f.location)) for f in error.value.findings] == [
        ("NODE001", "graph/node[0] 'Softmaxx'"),
        ("NODE002", "graph/node[1] 'Relu'"),
        ("NODE003", "graph/node[2] 'Softmax'"),
        ("GRAPH005", "graph/node[3] 'Relu'/input[0] 'ghost'"),
        ("TYPE001", "graph/node[4] 'Reshape'"),
    ]
    text = str(error.value)
    assert "5 problems" in text
    assert "is it 'Softmax'?" in text
    assert "6 elements cannot take the shape [5]" in text


def test_a_name_defined_twice():
    model = good()
    model.graph.append(Node("Relu", [model.graph.inputs[0]], [Value("y")]))
    assert found(model) == [("GRAPH004", "graph/node[1] 'Relu'/output[0] 'y'")]


def test_a_name_read_before_its_definition():
    model = good()
    model.graph.prepend(Node("Relu", [model.graph.outputs[0]], [Value("z")]))
    assert ("GRAPH006", "graph/node[0] 'Relu'/input[0] 'y'") in found(model)


def test_an_undefined_output():
    model = good()
    model.graph.outputs.append(Value("ghost"))
    assert ("GRAPH005", "graph/output[1] 'ghost'") in found(model)


def test_subgraphs_are_checked():
    b = Builder(21, check=False)
    cond = b.input("c", "bool", [])
    then = Graph("then")
    then.outputs.append(then.append(Node("Nothing", [Value("ghost")])).output)
    b.output(b.If(cond, then_branch=then, else_branch=Graph("else")), "y")
    rules = found(b.model())
    assert ("NODE001", "graph/node[0] 'If'/attribute 'then_branch'/node[0] 'Nothing'") in rules
    assert (
        "GRAPH005",
        "graph/node[0] 'If'/attribute 'then_branch'/node[0] 'Nothing'/input[0] 'ghost'",
    ) in rules


def test_functions_are_checked():
    b = Builder(21, opsets={"d": 1})
    a = Value("a")
    f = Function("F", "d", graph=Graph("F", [a]), attributes={"p": None}, opsets={"": 21})
    bad = f.graph.append(Node("Softmax", [a], attributes={"axis": Attribute("axis", "int", None, ref="q")}))
    f.graph.outputs.append(bad.output)
    b.output(b.op("F", b.input("x", "float", [1]), b.input("z", "float", [1]), domain="d"), "y", "float", [1])
    assert found(b.model(functions=[f])) == [
        ("NODE002", "graph/node[0] 'F'"),
        ("NODE006", "function[0] 'F'/node[0] 'Softmax'/attribute 'axis'"),
    ]


def test_references_outside_functions():
    model = good()
    node = next(iter(model.graph))
    node.op = "Softmax"
    node.attributes["axis"] = Attribute("axis", "int", None, ref="q")
    assert ("NODE006", "graph/node[0] 'Softmax'/attribute 'axis'") in found(model)


def test_the_header():
    model = good()
    model.ir_version, model.opsets = 0, {}
    assert [r for r, _ in found(model)] == ["MODEL001", "MODEL002", "NODE001"]
    assert ("MODEL003", "graph") in found(sabir.Model(opsets={"": 21}))


def test_declared_types_that_contradict_inference():
    model = good()
    model.graph.outputs[0].type = tensor_type("int64", ["N"])
    assert found(model) == [("TYPE001", "graph/node[0] 'Relu'/output[0] 'y'")]
    model.graph.outputs[0].type = TensorType(tensor_type("float").element, (1, 2))
    assert found(model) == [("TYPE001", "graph/node[0] 'Relu'/output[0] 'y'")]


def test_duplicates_are_reported():
    data = sabir.dumps(good())
    again = b"\x42\x04\x0a\x00\x10"  # another opset_import
    assert ("MODEL004", "opset_import 'ai.onnx'") in found(data + again + b"\x14")
    assert found(data + again + b"\x15") == found(data)  # the same version as before


def test_an_empty_name_omits_an_operand():
    expected = {
        'y = Max(x, "", x)': ["NODE002"],  # inference is not asked about such a call as well
        '"", y = TopK(x, k)': ["NODE002"],
        'y, "" = TopK(x, k)': ["NODE002"],
        'y = Clip(x, "", "")': [],
        'y, "" = Dropout(x)': [],
        '"", y = Split(x)': [],
    }
    for node, rules in expected.items():
        model = sabir.parse(f"""<ir_version: 8, opset_import: ["" : 17]>
            g (float[4] x, int64[1] k) => (y) {{ {node} }}""")
        assert [f.rule for f in sabir.findings(model, ignore=["GRAPH002"])] == rules, node


def test_what_is_computed_and_has_no_name_yet_gets_one_when_it_is_saved():
    b = Builder(21)
    x = b.input("x", "float", ["N"])
    then, other = Graph("then"), Graph("other")
    for graph, op in ((then, "Relu"), (other, "Neg")):
        graph.outputs.append(graph.append(Node(op, [x])).output)
    b.output(b.If(b.input("c", "bool", []), then_branch=then, else_branch=other), "y", "float", ["N"])
    assert {r for r, _ in found(b.model())} <= {"GRAPH015"}


def test_the_graph_in_a_default_is_checked():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 17, "d" : 1]>
        g (bool c, float[1] x) => (float[1] y) { y = d.f(c, x) }
        <domain: "d", opset_import: ["" : 17]>
        f <k: graph = b () => (t) { t = Nope() }> (c, x) => (y) { y = Identity(x) }""")
    assert ("NODE001", "function[0] 'f'/attribute 'k'/node[0] 'Nope'") in found(model)


# training

TRAINED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x, bool c) => (float[N] y) <float[3] w = {{1, 2, 3}}> {{ y = Relu(x) }}
@training {{ {} }}"""


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (
            "initialization: i () => (float[3] s) { n = Constant<value_int = 1>()  s = Add(n, w) }",
            [("TYPE001", "training_info[0]/initialization/node[1] 'Add'")],
        ),
        (
            'algorithm: a () => (int64[3] s) { s = Cast<to = 7>(w) }, update_binding: ["w": "s"]',
            [("TRAIN007", "training_info[0]/update_binding[0] 'w'")],
        ),
        (
            'algorithm: a () => (s) { s = Concat<axis = 0>(w, w) }, update_binding: ["w": "s"]',
            [("TRAIN007", "training_info[0]/update_binding[0] 'w'")],
        ),
        ('algorithm: a (float[M] l) => (s) { s = Identity(l) }, update_binding: ["w": "s"]', []),
        (
            """algorithm: a () => (s) { s = If (c) <then_branch = t () => (float[3] y) { y = Neg(w) },
            else_branch = e () => (float[3] q) { q = Abs(w) }> }""",
            [
                (
                    "GRAPH007",
                    "training_info[0]/algorithm/node[0] 'If'/attribute 'then_branch'/node[0] 'Neg'/output[0] 'y'",
                )
            ],
        ),
    ],
)
def test_training_graphs_have_types(training, expected):
    assert found(sabir.parse(TRAINED.format(training))) == expected


def test_an_initializer_of_training_that_does_not_fit_its_input():
    model = sabir.parse(TRAINED.format("algorithm: a (float[3] v = {1, 2, 3}) => (s) { s = Identity(w) }"))
    algorithm = model.training[0].algorithm
    assert algorithm is not None
    algorithm.inputs[0].type = tensor_type("float", [2])
    assert found(model) == [("TYPE001", "training_info[0]/algorithm/initializer 'v'")]


# names in scopes


def nested(branches):
    """An If whose branches are `branches`, and the nodes before and after it."""
    return sabir.parse(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float[N] x) => (float[N] y) {{ {branches} }}""")


def test_shadows_are_reported_only_for_visible_names():
    branch = "{0} () => (float[N] {1}) {{ {1} = Relu(x) }}"
    free = (
        "a = If (c) <then_branch = "
        + branch.format("p", "t")
        + ", else_branch = "
        + branch.format("q", "t")
        + ">"
        "  t = Neg(a)  y = Neg(t)"
    )
    assert not found(nested(free))
    seen = (
        "t = Neg(x)  y = If (c) <then_branch = "
        + branch.format("p", "t")
        + ", else_branch = "
        + branch.format("q", "t")
        + ">"
    )
    assert [r for r, _ in found(nested(seen))] == ["GRAPH007", "GRAPH007"]


def test_shadows_are_found_in_time():
    """With a copy of the names for each branch it takes the square of the time."""
    nodes, last = [], "x"
    for i in range(2000):
        nodes.append(
            f"v{i} = If (c) <then_branch = a{i} () => (float[N] t{i}) {{ t{i} = Relu({last}) }},"
            f" else_branch = b{i} () => (float[N] e{i}) {{ e{i} = Neg({last}) }}>"
        )
        last = f"v{i}"
    model = nested(" ".join(nodes) + f" y = Neg({last})")
    started = time.process_time()
    assert not list(sabir.findings(model, select=["GRAPH007", "GRAPH008"]))
    assert time.process_time() - started < 2


def test_no_model_to_check():
    with pytest.raises(WireError):
        sabir.check(b"nonsense")


def test_a_long_list_is_cut_in_the_message_only():
    b = Builder(21, check=False)
    for i in range(50):
        b.output(b.Nothing(b.input("x", "float", [1])), f"y{i}", "float", [1])
    with pytest.raises(CheckError, match="and 30 more") as error:
        sabir.check(b.model())
    assert len(error.value.findings) == 50
