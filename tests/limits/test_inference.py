"""Inference stays in proportion to the model: symbols, known contents, loops in loops, constants."""

import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import LimitError, SabirError
from sabir.inference import Inference
from sabir.ir import ArrayTensor, SparseTensor
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
NODES = 4000


def chain(step, *, of_numbers):
    """A long chain of steps: on a tensor, or on the size of one."""
    b = Builder(21)
    x = b.input("x", "float", ["N"])
    x = b.Shape(x) if of_numbers else x
    for _ in range(NODES):
        x = step(b, x)
    b.output(b.ConstantOfShape(x) if of_numbers else x)
    return sabir.Model(b.graph, b.opsets, 10)


STEPS = {
    "a dimension that doubles": lambda b, x: b.Concat(x, x, axis=0),
    "a sum of many symbols": lambda b, x: b.Concat(x, b.Relu(b.input("y", "float", [f"s{len(b.graph)}"])), axis=0),
    "a number that doubles": lambda b, x: b.Add(x, x),
    "a number that is squared": lambda b, x: b.Mul(x, x),
    "a number times another": lambda b, x: b.Mul(x, b.Add(x, x)),
    "a number divided again and again": lambda b, x: b.Div(b.Add(x, b.Constant(value=np.array([7]))), b.Constant(value=np.array([3]))),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_symbolic_sizes_stay_small(name):
    model = chain(STEPS[name], of_numbers="number" in name)
    with bounded(memory=1 << 29):
        inference = Inference(model)
        inference.run()
    for kind in inference.types.values():
        assert len(str(kind)) < 5000


def test_a_size_past_int64_is_no_size():
    b = Builder(21, check=False)
    indices, values = b.input("i", "int64", [2]), b.input("v", "float", [2])
    b.output(b.OneHot(indices, b.initializer("depth", np.array(1e30)), values))
    model = sabir.infer(sabir.Model(b.graph, b.opsets, 10))
    assert model.graph.outputs[0].type is None
    sabir.dumps(model)
    with pytest.raises(SabirError, match="OneHot.*a dimension of 1000000000000000019884624838656"):
        sabir.infer(model, strict=True)


def settling(depth):
    """Loops in loops, each of which carries values that change their shape one after another."""
    body = "t = Concat <axis = 0> (r, r)  u = Concat <axis = 0> (s, r)"
    for level in range(depth):
        body = f"""m{level} = Constant <value = int64 {{3}}> ()
            t, u = Loop (m{level}, c0, s, r) <body = b{level} (int64 i, bool c0, float[n] s, float[k] r)
                => (bool c1, float[p] t, float[q] u) {{ c1 = Identity (c0)  {body} }}>"""
    return sabir.parse(f"{HEAD} g (bool c0, float[2] s, float[3] r) => (float[p] t, float[q] u) {{ {body} }}")


def test_loops_in_loops_are_inferred_once_for_each_type():
    model = settling(25)
    with bounded(memory=1 << 29):
        sabir.infer(model, strict=True)
    assert str(model.graph.outputs[0].type) == "float[p]"


def test_what_is_inferred_anew_in_functions_and_subgraphs_is_counted():
    with pytest.raises(LimitError, match=r"nodes=\d+"):
        sabir.infer(settling(20), limits=Limits(nodes=500))


def test_a_sparse_constant_is_not_made_dense_by_a_few_bytes():
    b = Builder(21)
    sparse = SparseTensor(ArrayTensor(np.ones(1, np.float32)), ArrayTensor(np.array([5])), (2**20, 2**20))
    x = b.initializer("x", sparse)
    b.output(b.Relu(x), "y", "float", ["N", "M"])
    model = sabir.loads(sabir.dumps(b.model()))
    with bounded(memory=1 << 27):
        model = sabir.infer(model)
        list(sabir.findings(model))
        with pytest.raises(LimitError, match=r"'x'.*4,398,046,511,104 bytes.*constant_bytes=4398046511104"):
            sabir.evaluate(model, {})
    small = SparseTensor(ArrayTensor(np.ones(1, np.float32)), ArrayTensor(np.array([5])), (4, 4))
    assert small.array().sum() == 1


def test_time_is_looked_at_between_nodes():
    b = Builder(21)
    x = b.input("x", "float", ["N"])
    for k in range(200):
        x = b.Concat(x, x, axis=0, name=str(k))
    b.output(x)
    model = sabir.Model(b.graph, b.opsets, 10)
    with pytest.raises(LimitError, match=r"the time is up.*seconds=\.\.\."):
        model = sabir.infer(model, limits=Limits(seconds=0))


def test_a_reduction_of_known_contents_is_no_bomb():
    """Small contents, small result, and everything between them huge."""
    b = Builder(21)
    row = b.Constant(value=np.ones(1000, np.float32))
    b.output(b.Einsum(*[row] * 8, equation="a,b,c,d,e,f,g,h->"))
    with bounded(seconds=3, memory=1 << 27):
        sabir.infer(sabir.Model(b.graph, b.opsets, 10))
