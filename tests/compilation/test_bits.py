"""Results do not depend on threads, on the run, or on what else is in a batch; and special values are those of the interpreter."""

import numpy as np
import pytest

import sabir

HEAD = '<ir_version: 11, opset_import: ["" : 24]> g'
ROWS = (1, 2, 3, 5, 8, 50)
BATCHED = {  # from x, whose first axis is the batch: a row depends on its own row only
    "product": ("float[N,67] x, float[67,130] w", "y = MatMul(x, w)"),
    "product and epilogue": (
        "float[N,67] x, float[67,33] w, float[33] b",
        "p = Gemm(x, w, b) y = Gelu(p)",
    ),
    "product with columns": ("float[N,67] x, float[45,67] w", "y = Gemm <transB=1> (x, w)"),
    "product of batches": ("float[N,3,20] x, float[20,40] w", "y = MatMul(x, w)"),
    "product of doubles": ("double[N,67] x, double[67,19] w", "y = MatMul(x, w)"),
    "softmax": ("float[N,77] x", "y = Softmax(x)"),
    "softmax over another axis": ("float[N,19,33] x", "y = Softmax <axis=1> (x)"),
    "log softmax": ("float[N,77] x", "y = LogSoftmax(x)"),
    "layer normalisation": ("float[N,77] x, float[77] s, float[77] b", "y = LayerNormalization(x, s, b)"),
    "rms normalisation": ("float[N,77] x, float[77] s", "y = RMSNormalization(x, s)"),
    "sum": ("float[N,1001] x", "y = ReduceSum <keepdims=0> (x, last)"),
    "sum of each column": ("float[N,77,40] x", "y = ReduceSum <keepdims=0> (x, one)"),
    "mean of images": ("float[N,3,9,11] x", "y = ReduceMean <keepdims=1> (x, two)"),
    "norm": ("float[N,77] x", "y = ReduceL2(x, last)"),
    "log of sums": ("float[N,77] x", "y = ReduceLogSumExp(x, last)"),
    "product of numbers": ("float[N,77] x", "y = ReduceProd(x, last)"),
    "attention": (
        "float[N,4,21,8] x, float[1,4,8,35] k, float[1,4,35,16] v",
        "p = MatMul(x, k) s = Softmax(p) y = MatMul(s, v)",
    ),
    "attention of one sequence": (
        "float[N,5,32] x",
        "y = Attention <q_num_heads=4, kv_num_heads=4> (x, x, x)",
    ),
    "functions": (
        "float[N,77] x",
        "a = Erf(x) b = Tanh(a) c = Sigmoid(x) d = Exp(b) e = Mul(c, d) y = Sin(e)",
    ),
}
CONSTANTS = "int64[1] last = {-1}, int64[1] one = {1}, int64[2] two = {2, 3}"


def model_of(name):
    inputs, nodes = BATCHED[name]
    kind = inputs.partition("[")[0]
    return sabir.parse(
        f"{HEAD} ({inputs}) => ({kind} y) <{CONSTANTS}> {{ {nodes} }}".replace(
            "(float y)", "(float[] y)"
        ).replace("(double y)", "(double[] y)")
    )


def feeds_of(model, rng):
    """Numbers of all magnitudes that sums can have, for a batch of 50."""
    found = {}
    for value in model.graph.inputs:
        shape = [50 if str(d) == "N" else int(d) for d in value.type.shape]
        found[value.name] = (rng.standard_normal(shape) * 10 ** rng.uniform(-2, 0.5, shape)).astype(
            value.type.element.dtype
        )
    return found


@pytest.mark.parametrize("name", BATCHED)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(name):
    model = model_of(name)
    session = sabir.Session(model, engine="compiled", threads=2)
    feeds = feeds_of(model, np.random.default_rng(0))
    y = session.run(feeds)["y"]
    for count in ROWS:
        part = session.run(feeds | {"x": feeds["x"][:count]})["y"]
        assert part.tobytes() == y[:count].tobytes(), (count, np.abs(part - y[:count]).max())


@pytest.mark.parametrize("name", BATCHED)
def test_threads_and_runs_give_the_same_bits(name):
    model = model_of(name)
    feeds = feeds_of(model, np.random.default_rng(1))
    found = set()
    for threads in (1, 2, 3):
        session = sabir.Session(model, engine="compiled", threads=threads)
        found |= {session.run(feeds)["y"].tobytes() for _ in range(3)}
    assert len(found) == 1
