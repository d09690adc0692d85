import numpy as np
import pytest

import sabir
from sabir.base import FeedError, UnsupportedError
from sabir.compilation import Compiled

MIXED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,8] x, float[8,4] w) => (float[N,4] y, float[4,N] t, float[K,N] z) <int64[2] turned = {4, -1}> {
  h = MatMul (x, w)
  r = Relu (h)
  y = Softmax (r)
  s = Sigmoid (y)
  q = Reshape (s, turned)
  t = Tanh (q)
  found = Unique <axis = 1> (x)
  z = Transpose (found)
}"""


@pytest.fixture
def mixed():
    return Compiled(sabir.parse(MIXED))


def nodes(kernels):
    return [(k.kind, tuple(label.split(" ")[0] for label in k.nodes)) for k in kernels]


def test_each_node_has_its_kernel_or_a_reason(mixed):
    found = mixed.explain({"x": [5, 8]})
    computed = {node for kernel in found.kernels for node in kernel.nodes}
    evaluated = {call.node for call in found.evaluated}
    assert len(computed | evaluated | set(found.without_work)) == found.nodes == 8
    assert not computed & evaluated
    assert "Unique with output 'found'" in evaluated
    assert all(call.reason for call in found.evaluated)
    product = next(k for k in found.kernels if k.kind == "product")
    assert product.nodes == ("MatMul with output 'h'", "Relu with output 'r'")
    assert product.spec.startswith("if N <= 1\nproduct float tile ")
    text = str(found)
    for node in computed | evaluated | set(found.without_work):
        assert node in text


def test_kernels_are_listed_with_their_nodes_in_order():
    b = sabir.Builder(21)
    x = b.input("x", "float", [3, 4])
    rows = b.Softmax(b.Sqrt(x) * x, axis=1)
    b.output(b.Softmax(b.Transpose(rows, perm=[1, 0]), axis=1), "y")
    found = Compiled(b.model()).explain()
    assert nodes(found.kernels) == [("nest", ("Sqrt", "Mul", "Softmax")), ("nest", ("Softmax",))]
    assert [label.split(" ")[0] for label in found.without_work] == ["Transpose"]
    assert found.evaluated == ()


def test_packed_constants_ran_once():
    b = sabir.Builder(21)
    w = b.initializer("w", np.ones((8, 4), np.float32))
    b.output(b.MatMul(b.input("x", "float", [2, 8]), w), "y")
    found = Compiled(b.model()).explain()
    assert nodes(found.prepared) == [("pack", ("MatMul",))]
    assert nodes(found.kernels) == [("product", ("MatMul",))]


def test_constants_and_views_are_no_work():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[2,3] x) => (float[6] y) <int64[1] a = {2}, int64[1] b = {3}> {
      six = Mul (a, b)
      flat = Reshape (x, six)
      y = Relu (flat)
    }""")
    found = Compiled(model).explain()
    assert found.without_work == ("Mul with output 'six'", "Reshape with output 'flat'")
    assert nodes(found.kernels) == [("nest", ("Relu",))]


def test_a_session_explains_the_plan_of_its_last_run(mixed):
    session = sabir.Session(sabir.parse(MIXED), engine="compiled")
    with pytest.raises(FeedError, match=r"input 'x' is declared float\[N,8\], and its size is not known"):
        session.explain()
    session.run({"x": np.ones((3, 8), np.float32), "w": np.ones((8, 4), np.float32)})
    assert session.explain() == mixed.explain({"x": [7, 8]})  # another N, the same plan
    assert session.explain({"x": [1, 8]}) != session.explain({"x": [7, 8]})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"q": [1]}, "the model has no input 'q'; its inputs are 'x', 'w'"),
        ({"x": ["N", 8]}, "its size is not known"),
        ({"x": [-1, 8]}, r"the shape \[-1, 8\] of input 'x' is not valid"),
        ({"x": [2, 9]}, r"input 'x' is declared float\[N,8\]"),
    ],
)
def test_bad_shapes_are_told(mixed, shapes, message):
    with pytest.raises(FeedError, match=message):
        mixed.explain(shapes)


def test_an_engine_without_kernels_says_so():
    with pytest.raises(UnsupportedError, match="the engine 'reference' has no kernels; make"):
        sabir.Session(sabir.parse(MIXED), engine="reference").explain()


def test_shapes_cost_no_memory():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x) => (float[N] y) { y = Relu (x) }""")
    assert nodes(Compiled(model).explain({"x": [1 << 40]}).kernels) == [("nest", ("Relu",))]


def test_other_inputs_than_tensors_need_a_run():
    b = sabir.Builder(21)
    items = b.input("items", sabir.ir.SequenceType(sabir.ir.tensor_type("float", [2])))
    b.output(b.SequenceLength(items), "y")
    compiled = Compiled(b.model())
    with pytest.raises(FeedError, match="input 'items' is .*: run the session first"):
        compiled.explain()
    compiled.run({"items": [np.ones(2, np.float32)]})
    assert compiled.explain().evaluated[0].node == "SequenceLength with output 'y'"
