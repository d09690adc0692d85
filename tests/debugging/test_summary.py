"""`summary`: multiply-adds of each operator, layers, polynomials of dimensions."""

import numpy as np
import pytest

import sabir
from sabir.debugging import Costs
from support.cases import each_of


def model_of(body, declaration, opset=21, domains=""):
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : {opset}{domains}]> g {declaration} {{ {body} }}'
    )


MICROSOFT = ', "com.microsoft" : 1'
# a call, its inputs, and the products of the plain algorithm, counted by hand
CALLS = [
    ("y = MatMul (a, b)", "(float[7,2,3] a, float[7,3,5] b) => (float[7,2,5] y)", 7 * 2 * 3 * 5),
    ("y = MatMul (a, b)", "(float[3] a, float[3] b) => (float y)", 3),
    ("y = Gemm <transA = 1> (a, b)", "(float[3,2] a, float[3,5] b) => (float[2,5] y)", 2 * 3 * 5),
    ("y = Conv (a, b)", "(float[1,4,5,5] a, float[6,4,3,3] b) => (float[1,6,3,3] y)", 6 * 9 * 4 * 9),
    ("y = Conv <group = 4> (a, b)", "(float[1,4,5,5] a, float[4,1,3,3] b) => (float[1,4,3,3] y)", 4 * 9 * 9),
    ("y = ConvTranspose (a, b)", "(float[1,4,5,5] a, float[4,6,3,3] b) => (float[1,6,7,7] y)", 100 * 6 * 9),
    (
        'y = Einsum <equation = "bij,bjk->bik"> (a, b)',
        "(float[7,2,3] a, float[7,3,5] b) => (float[7,2,5] y)",
        210,
    ),
    ('y = Einsum <equation = "ij->ji"> (a)', "(float[2,3] a) => (float[3,2] y)", 0),
    (
        "y = LSTM <hidden_size = 5> (a, w, r)",
        "(float[7,2,3] a, float[1,20,3] w, float[1,20,5] r) => (float[7,1,2,5] y)",
        7 * 2 * 20 * (3 + 5),
    ),
    ("y = Add (a, b)", "(float[2,3] a, float[2,3] b) => (float[2,3] y)", 0),
    (
        "y = com.microsoft.FusedMatMul <transA = 1> (a, b)",
        "(float[3,2] a, float[3,5] b) => (float[2,5] y)",
        30,
    ),
    (
        "y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, k)",
        "(float[1,3,8] q, float[1,5,8] k) => (float[1,3,8] y)",
        2 * 3 * 5 * 8,
    ),
    (
        "y = com.microsoft.Attention <num_heads = 2> (x, w, b)",
        "(float[1,3,4] x, float[4,24] w, float[24] b) => (float[1,3,8] y)",
        3 * 4 * 24 + 2 * 3 * 3 * 8,
    ),
]


@each_of("case", CALLS)
def test_multiply_adds(case):
    body, declaration, expected = case
    assert sabir.summary(model_of(body, declaration, domains=MICROSOFT)).total.multiply_adds == expected


def test_attention_counts_keys_of_the_cache():
    inputs = "float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,7,4] past"
    model = model_of(
        "y, a, b = Attention (q, k, k, , past, past)",
        f"({inputs}) => (float[1,2,3,4] y, float[1,2,12,4] a, float[1,2,12,4] b)",
        opset=23,
    )
    assert sabir.summary(model).total.multiply_adds == 2 * (2 * 3 * 12 * 4)


def test_dimensions_stay_polynomials_or_are_set():
    model = model_of("y = MatMul (a, b)", "(float[N,K] a, float[K,M] b) => (float[N,M] y)")
    found = sabir.summary(model).total
    assert str(found.multiply_adds) == "K*M*N"
    assert found.intensity is None
    fixed = sabir.summary(model, {"N": 2, "K": 3, "M": 5}).total
    assert fixed == Costs(0, 30, 40, 4 * (6 + 15 + 10))
    assert fixed.intensity == pytest.approx(60 / 124)
    assert str(model.graph.inputs[0].type) == "float[N,K]"


def test_a_dimension_that_the_model_lacks_is_an_error():
    model = model_of("y = Relu (x)", "(float[batch] x) => (float[batch] y)")
    with pytest.raises(sabir.base.NotFoundError, match="is it 'batch'"):
        sabir.summary(model, {"bath": 1})


def test_a_shared_weight_is_counted_once():
    b = sabir.Builder(21)
    w = b.initializer("w", np.ones((3, 3), np.float32))
    x = b.MatMul(b.MatMul(b.input("x", "float", [2, 3]), w), w)
    b.output(x, "y")
    found = sabir.summary(b.model())
    assert found.total.parameters == 9
    assert [node.costs.parameters for node in found.nodes] == [9, 0]


def test_layers_come_from_names_of_nodes_and_of_weights():
    b = sabir.Builder(21)
    x = b.input("x", "float", [2, 3])
    x = b.MatMul(x, b.initializer("w", np.ones((3, 3), np.float32)), name="/block/linear/MatMul")
    x = b.Relu(x, name="/block/act/Relu")
    x = b.MatMul(x, b.initializer("head.out.weight", np.ones((3, 3), np.float32)), name="last")
    b.output(b.Neg(x), "y")
    found = sabir.summary(b.model())
    assert [(".".join(r.layer), r.nodes, r.costs.multiply_adds) for r in found.layers] == [
        ("block", 2, 18),
        ("block.linear", 1, 18),
        ("block.act", 1, 0),
        ("head", 1, 18),
        ("head.out", 1, 18),
    ]


def test_layers_come_from_the_metadata_of_pytorch():
    model = model_of("y = Relu (x)", "(float[2] x) => (float[2] y)")
    model.graph[0].metadata = {"pkg.torch.onnx.name_scopes": "['', 'layer1', 'layer1.0', 'relu']"}
    assert sabir.summary(model).nodes[0].layer == ("layer1", "0")
    model.graph[0].metadata = {"pkg.torch.onnx.name_scopes": "no list ["}
    assert sabir.summary(model).nodes[0].layer == ()


def test_calls_of_functions_are_counted_where_they_are():
    b = sabir.Builder(21)
    twice = b.function(lambda g, x: g.MatMul(x, x), name="square")
    b.output(twice(twice(b.input("x", "float", [3, 3]))), "y")
    assert sabir.summary(b.model()).total.multiply_adds == 2 * 27


def test_nodes_of_subgraphs_are_counted_once():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[3,3] x) => (float[3,3] y) {
  y = If (c) <then_branch = a () => (float[3,3] s) { s = MatMul (x, x) },
              else_branch = b () => (float[3,3] t) { t = Neg (x) }>
}""")
    found = sabir.summary(model)
    assert found.total.multiply_adds == 27
    assert [node.op for node in found.nodes] == ["If", "MatMul", "Neg"]


def test_unknown_sizes_and_operators_are_named():
    model = model_of(
        "[nz] n = NonZero (x) z = com.microsoft.QuickGelu (x) y = Cast <to = 1> (n)",
        "(float[4] x) => (float[1,?] y, float[4] z)",
        domains=MICROSOFT,
    )
    found = sabir.summary(model)
    assert found.uncounted == {"com.microsoft.QuickGelu": 1}
    assert found.nodes[0].costs.multiply_adds == 0
    text = model_of("[s] y = Identity (x)", "(string[4] x) => (string[4] y)")
    assert sabir.summary(text).unknown == ("s",)
