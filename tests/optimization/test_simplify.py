"""`simplify`: what becomes of small models, and what stays."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, NotFoundError, SchemaError
from sabir.ir import verify
from sabir.opsets import STANDARD
from sabir.optimization import count, simplify_model, verify_equal


def model_of(nodes, ports="(float[N,4] x) => (y)", opset=21, more=""):
    return sabir.parse(f'<ir_version: 10, opset_import: ["" : {opset}]> g {ports} {more} {{ {nodes} }}')


def ops(model):
    return [n.op for n in model.graph]


CHAIN = """s = Shape (x)  z = Constant <value = int64 {0}> ()  n = Gather (s, z)  a = Constant <value = int64[1] {0}> ()
u = Unsqueeze (n, a)  r = Constant <value = int64[2] {2, 2}> ()  t = Concat <axis = 0> (u, r)"""


def test_a_chain_of_sizes_becomes_one_reshape():
    model = model_of(f"{CHAIN} y = Reshape (x, t)")
    found = sabir.simplify(model)
    assert ops(found) == ["Reshape"]
    assert found.graph[0].inputs[1].constant.array().tolist() == [0, 2, 2]
    assert ops(model) != ops(found)


def test_an_expansion_to_known_sizes():
    found = sabir.simplify(
        model_of(
            f"{CHAIN} q = Reshape (x, t)  o = Shape (q)  y = Expand (x1, o)",
            "(float[N,4] x, float[N,1,2] x1) => (y)",
        )
    )
    assert ops(found) == ["Expand"]
    assert found.graph[0].inputs[1].constant.array().tolist() == [1, 2, 2]


def test_sizes_that_are_needed_are_computed_once():
    nodes = "s = Shape (x) z = Constant <value = int64[1] {0}> () a = Gather (s, z) b = Shape <start = 0, end = 1> (x) y = Add (a, b)"
    assert ops(sabir.simplify(model_of(nodes))) in (["Shape", "Add"], ["Shape", "Gather", "Add"])


def test_a_branch_of_a_known_condition_and_a_short_loop_are_written_out():
    nodes = """c = Constant <value = bool {1}> ()  m = Constant <value = int64 {3}> ()
    b = If (c) <then_branch = t () => (p) { p = Neg (x) }, else_branch = e () => (q) { q = Abs (x) }>
    y = Loop (m, c, b) <body = l (int64 i, bool k, float[N,4] v) => (k2, w) { k2 = Identity (k)
    f = Cast <to = 1> (i)  h = Mul (v, f)  w = Sin (h) }>"""
    model = model_of(nodes)
    found = sabir.simplify(model)
    verify(found)
    assert ops(found) == ["Neg", "Mul", "Sin", "Sin", "Mul", "Sin"]  # the factors are 0, 1 and 2


@pytest.mark.parametrize(
    "nodes",
    [
        "m = Constant <value = int64 {300}> () {k2 = Identity (k) w = Sin (v)}",
        "m = Constant <value = int64 {3}> () {w = Sin (v) r = ReduceMax <keepdims = 0> (w) k2 = Greater (r, r)}",
    ],
)
def test_other_loops_stay(nodes):
    count_of, body = nodes[:-1].split("() {")
    loop = f"y = Loop (m, c, x) <body = l (int64 i, bool k, float[N,4] v) => (k2, w) {{ {body} }}>"
    model = model_of(f"{count_of} () c = Constant <value = bool {{1}}> () {loop}")
    assert "Loop" in ops(sabir.simplify(model))


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("count", [1, 3])
def test_a_short_loop_that_collects_results_is_written_out(opset, count):
    nodes = f"""m = Constant <value = int64 {{{count}}}> ()
    z, y = Loop (m, , x) <body = l (int64 i, bool k, float[2,4] v) => (bool k2, float[2,4] w, float[2,4] row)
    {{ k2 = Identity (k)  f = Cast <to = 1> (i)  w = Mul (v, f)  row = Sin (v) }}>"""
    model = model_of(nodes, "(float[2,4] x) => (z, y)", opset=opset)
    found = sabir.simplify(model, verify=True)
    verify(found)
    assert "Loop" not in ops(found)
    x = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}
    before, after = sabir.evaluate(model, x), sabir.evaluate(found, x)
    for name in ("z", "y"):
        np.testing.assert_array_equal(after[name], before[name])
    assert after["y"].shape == (count, 2, 4)


@pytest.mark.parametrize("condition", ['string c = {"abc"}', "float c = {nan}", "int64 c = {1}"])
def test_a_condition_that_is_no_truth_value_stays(condition):
    branches = "then_branch = t () => (a) { a = Neg (x) }, else_branch = e () => (b) { b = Abs (x) }"
    model = model_of(f"y = If (c) <{branches}>", more=f"<{condition}>")
    assert ops(sabir.simplify(model, verify=False)) == ["If"]


@pytest.mark.parametrize("count", ['string n = {"abc"}', "float n = {inf}", "bool n = {1}"])
def test_a_number_of_iterations_that_is_no_integer_stays(count):
    body = (
        "body = b (int64 i, bool k, float[N,4] z) => (bool l, float[N,4] a) { l = Identity (k)  a = Neg (z) }"
    )
    model = model_of(f"y = Loop (n, , x) <{body}>", more=f"<{count}>")
    assert ops(sabir.simplify(model, verify=False)) == ["Loop"]


def test_a_loop_whose_condition_copies_nothing_stays():
    body = (
        "body = b (int64 i, bool k, float[N,4] z) => (bool l, float[N,4] a) { l = Identity ()  a = Neg (z) }"
    )
    model = model_of(f"y = Loop (n, , x) <{body}>", more="<int64 n = {2}>")
    assert ops(sabir.simplify(model, verify=False)) == ["Loop"]


def test_biases_are_operands_of_the_standard_s_addition():
    weights = "<float[4,1] a = {1,2,3,4}, float[4,1] b = {4,3,2,1}, float[1] c = {1}, float[1] d = {2}>"
    model = model_of(
        "u = MatMul (x, a)  p = Add (u)  v = MatMul (x, b)  q = other.Add (c, d, v)",
        "(float[N,4] x) => (p, q)",
        more=weights,
    )
    assert ops(sabir.simplify(model, verify=False)) == ["MatMul", "Add", "MatMul", "Add"]


def test_unknown_operators_stay_and_their_models_are_not_compared():
    text = """<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>
    g (float[N] x) => (float[N] y) { a = Identity (x)  b = acme.Foo (a)  y = Relu (b) }"""
    found = simplify_model(sabir.parse(text))
    assert ops(found.model) == ["Foo", "Relu"]
    assert found.verification is None
    with pytest.raises(sabir.SchemaError, match="acme.Foo is not an operator"):
        sabir.simplify(sabir.parse(text), verify=True)


def test_a_large_constant_stays_a_node():
    nodes = "s = Constant <value = int64[2] {4, 100000}> () v = ConstantOfShape (s) y = MatMul (x, v)"
    assert ops(sabir.simplify(model_of(nodes))) == ["ConstantOfShape", "MatMul"]
    assert ops(sabir.simplify(model_of(nodes.replace("100000", "100")))) == ["MatMul"]


def test_products_of_one_value_are_joined():
    more = "<" + ", ".join(f"float[4,2] w{i} = {{1,2,3,4,5,6,7,{i}}}" for i in range(3)) + ">"
    nodes = "a = MatMul (x, w0) b = MatMul (x, w1) c = MatMul (x, w2) d = Add (a, b) y = Mul (d, c)"
    assert ops(sabir.simplify(model_of(nodes, more=more))) == ["MatMul", "Split", "Add", "Mul"]
    assert ops(sabir.simplify(model_of(nodes, more=more), fuse=False)) == ["MatMul"] * 3 + ["Add", "Mul"]


def test_names_of_inputs_outputs_and_kept_values_stay():
    model = model_of("a = Relu (x)  b = Relu (a)  c = Identity (b)  y = Identity (c)")
    found = sabir.simplify(model, keep=["b"])
    assert [v.name for v in found.graph.outputs] == ["y"]
    assert found.graph.value("b").node.op in {"Relu", "Identity"}
    with pytest.raises(NotFoundError, match="is it 'b'"):
        sabir.simplify(model, keep=["bb"])


def test_an_input_without_readers_and_a_default_stay():
    model = model_of("a = Mul (x, d)  y = Neg (a)", "(float[N,4] x, float d = {1}, float z) => (y)")
    found = sabir.simplify(model)
    assert [v.name for v in found.graph.inputs] == ["x", "d", "z"]
    assert ops(found) == ["Mul", "Neg"]


def test_unknown_operators_and_random_numbers_stay():
    nodes = "o = Constant <value = float {1}> () a = my.Thing (o) r = RandomUniformLike (x) q = RandomUniformLike (x) b = Add (r, q) y = Mul (a, b)"
    model = sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 21, "my" : 1]> g (float[N,4] x) => (y) {{ {nodes} }}'
    )
    found = sabir.simplify(model, verify=False)
    assert ops(found) == ["Thing", "RandomUniformLike", "RandomUniformLike", "Add", "Mul"]


def test_functions_are_inlined():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[N] x) => (y) { y = f.twice (x) }
    <domain: "f", opset_import: ["" : 21]> twice (p) => (r) { q = Relu (p)  r = Relu (q) }""")
    assert ops(sabir.simplify(model)) == ["Relu"]


def test_a_graph_output_that_is_constant_is_the_result_of_a_node():
    found = sabir.simplify(
        model_of("o = Constant <value = float {1}> ()  y = Add (o, o)", "(float[N,4] x) => (float y)")
    )
    assert ops(found) == ["Constant"]
    sabir.check(found)


def test_state_of_training_is_no_constant():
    b = sabir.Builder(21)
    w = b.initializer("w", np.float32([1]))
    b.output(b.Mul(b.input("x", "float", [1]), b.Add(w, w)), "y")
    model = b.model()
    step = sabir.ir.Graph("step")
    model.training.append(sabir.ir.TrainingInfo(algorithm=step, update_binding=[(w, model.graph.outputs[0])]))
    assert ops(sabir.simplify(model, verify=False)) == ["Add", "Mul"]


def test_constants_of_an_old_model_are_no_inputs_any_more():
    model = sabir.parse("""<ir_version: 3, opset_import: ["" : 8]>
    g (float[2] x, float[2] c = {1, 2}, float[2] d = {3, 4}) => (float[2] y) { s = Add (c, d)  y = Mul (x, s) }""")
    found = sabir.simplify(model)
    assert (ops(found), found.ir_version) == (["Mul"], 4)
    assert [v.name for v in found.graph.inputs] == ["x"]
    sabir.check(found)


def test_values_that_attributes_name_stay():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 12, "ai.onnx.preview.training" : 1]>
    g (float[2] x) => (float[2] d) { a = Mul (x, x)  b = Mul (x, x)  y = Add (a, b)
    d = ai.onnx.preview.training.Gradient <xs = ["b"], y = "y"> (b) }""")
    found = sabir.simplify(model, verify=False)
    assert found.graph.value("b").node is not None
    assert found.graph.value("y").node is not None


def test_nodes_that_read_each_other_are_an_error():
    model = model_of("a = Add (x, b)  b = Neg (a)  y = Neg (b)")
    with pytest.raises(SchemaError):
        sabir.simplify(model)


def test_the_counts():
    model = model_of(
        "p = MatMul (x, w)  y = Add (p, c)", more="<float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] c = {1,2}>"
    )
    found = simplify_model(model)
    assert found.before.operators == {"MatMul": 1, "Add": 1}
    assert found.after.operators == {"Gemm": 1}
    assert (found.before.parameters, found.before.bytes) == (10, 40)
    assert str(found.before.multiply_adds) == str(found.after.multiply_adds) == "8*N"
    assert found.applied == {"matmul-and-bias": 1}
    assert found.verification.runs == 3
    image = model_of("y = Conv (x, w)", "(float[N,3,8,8] x, float[2,3,3,3] w) => (y)")
    assert str(count(image).multiply_adds) == "1944*N"


def test_a_difference_is_found(monkeypatch):
    old, new = model_of("y = Neg (x)"), model_of("y = Abs (x)")
    found = verify_equal(old, new, registry=STANDARD)
    assert not found.equal
    assert found.where == "y"
    monkeypatch.setattr("sabir.optimization._verifying.verify_equal", lambda *_, **__: found)
    with pytest.raises(EvaluationError, match="'y' differs"):
        sabir.simplify(old)
