"""Operators that move, index or multiply become kernels: with the results of the interpreter, and none falls back."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.plan.entries import EvaluatedEntry
from sabir.elements import element
from sabir.evaluation import Runner
from sabir.loops import ELEMENTS
from sabir.opsets import STANDARD
from support.rooms import model_of

OPERATORS = [
    "Attention", "CenterCropPad", "Concat", "DepthToSpace", "Dropout", "Einsum", "Expand",
    "EyeLike", "Flatten", "Gather", "GatherElements", "GatherND", "Gemm", "MatMul", "OneHot", "Pad",
    "ReverseSequence", "RotaryEmbedding", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "Transpose", "Trilu", "Unsqueeze",
]  # fmt: skip
REFUSED = {  # what kernels do not express, by a part of the reason
    "ReverseSequence": ["sequences without elements"],
    "Split": ["sizes are floating-point numbers"],
}


def fallbacks(compiled):
    """Why calls of the plans that have run were evaluated."""
    plans = [program.plan for program in compiled._plans]
    return [entry.reason for plan in plans for entry in plan.entries if isinstance(entry, EvaluatedEntry)]


def is_computed(example):
    """Whether kernels know the element types of an example."""
    arrays = [np.asarray(x) for x in example.inputs if x is not None]
    return all(a.dtype.kind in "fiub" and element(a.dtype).name in ELEMENTS for a in arrays)


def with_constants(operator, example):
    """The example as a model whose operands, but the first, are constants."""
    model, feeds = model_of(operator, example)
    first, *rest = list(model.graph.inputs)
    for value in rest:
        model.graph.set_initializer(value, feeds[value.name])
        model.graph.inputs.remove(value)
    return model, {first.name: feeds[first.name]}


def declared(name, array):
    """The declaration of an output whose sizes are symbols of their own."""
    return f"{element(array.dtype).name}[{','.join(f'{name}{i}' for i in range(array.ndim))}] {name}"


def close(ours, theirs, tolerance=2e-5):
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def distinct(operator):
    """The examples that kernels can compute, without those that differ in the opset only."""
    every = [e for e in operator.all_examples() if is_computed(e) and operator.at(e.opset).find("lower")]
    return {f"{e.inputs} {e.attributes} {e.outputs}": e for e in every}.values()


@pytest.mark.parametrize("name", OPERATORS)
def test_examples_with_constants_are_kernels(name):
    operator = STANDARD.find("", name)
    assert distinct(operator)
    for example in distinct(operator):
        model, feeds = with_constants(operator, example)
        compiled = Compiled(model)
        for ours, theirs in zip(compiled.run(feeds).values(), Runner(model).run(feeds).values(), strict=True):
            close(np.asarray(ours), np.asarray(theirs))
        allowed = REFUSED.get(name, [])
        assert [r for r in fallbacks(compiled) if not any(part in r for part in allowed)] == []


# ---------------------------------------------------------------- sizes that are known at run time only

HEAD = '<ir_version: 11, opset_import: ["" : 24]> g'
X = np.arange(24, dtype=np.float32).reshape(4, 6)
SYMBOLIC = {  # constants, nodes that compute y from x, what they compute
    "the last three": ("int64[1] s = {-3}, int64[1] e = {9223372036854775807}, int64[1] a = {1}",
                       "y = Slice(x, s, e, a)", X[:, -3:]),
    "backwards": ("int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, int64[1] a = {1}, int64[1] t = {-1}",
                  "y = Slice(x, s, e, a, t)", X[:, ::-1]),
    "every other": ("int64[1] s = {1}, int64[1] e = {5}, int64[1] a = {1}, int64[1] t = {2}",
                    "y = Slice(x, s, e, a, t)", X[:, 1:5:2]),
    "after the end": ("int64[2] s = {9, 2}, int64[2] e = {2147483647, 2147483647}", "y = Slice(x, s, e)", X[9:, 2:]),
    "constant": ("int64[4] p = {0, 2, 1, 0}, float c = {9}", "y = Pad(x, p, c)",
                 np.pad(X, ((0, 1), (2, 0)), constant_values=9)),
    "reflect": ("int64[4] p = {2, 0, 3, 4}", 'y = Pad <mode="reflect"> (x, p)',
                np.pad(X, ((2, 3), (0, 4)), "reflect")),
    "far": ("int64[4] p = {0, 8, 0, 9}", 'y = Pad <mode="reflect"> (x, p)',
            np.pad(X, ((0, 0), (8, 9)), "reflect")),
    "edge": ("int64[4] p = {1, 2, 3, 4}", 'y = Pad <mode="edge"> (x, p)', np.pad(X, ((1, 3), (2, 4)), "edge")),
    "wrap": ("int64[4] p = {1, 7, 0, 2}", 'y = Pad <mode="wrap"> (x, p)', np.pad(X, ((1, 0), (7, 2)), "wrap")),
    "tile": ("int64[2] r = {2, 3}", "y = Tile(x, r)", np.tile(X, (2, 3))),
    "triangle": ("int64 k = {1}", "y = Trilu <upper=0> (x, k)", np.tril(X, 1)),
    "count": ("int64 z = {0}, int64 d = {2}", "n = Size(x) y = Range(z, n, d)", np.arange(0, 24, 2)),
    "filled": ("", "s = Shape(x) y = ConstantOfShape <value=float[1] {2.5}> (s)", np.full_like(X, 2.5)),
    "contraction": ("", 'y = Einsum <equation="ij,kj->ki"> (x, x)', X @ X.T),
    "gemm": ("float[1,1] c = {3}", "y = Gemm <transB=1, alpha=0.5, beta=2.0> (x, x, c)", X @ X.T / 2 + 6),
    "picked": ("int64[2,2] i = {3, -1, 0, 2}", "y = GatherND(x, i)", X[[3, 0], [-1, 2]]),
}  # fmt: skip


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes_become_kernels(name):
    constants, nodes, expected = SYMBOLIC[name]
    compiled = Compiled(
        sabir.parse(f"{HEAD} (float[N,K] x) => ({declared('y', expected)}) <{constants}> {{ {nodes} }}")
    )
    close(compiled.run({"x": X})["y"], expected)
    assert fallbacks(compiled) == []


def test_an_evaluated_call_reads_a_number_that_kernels_do_not_store():
    nodes = "s = Shape(x) f = ConstantOfShape <value=float[1] {2}> (s) y = CumSum(f, a)"
    compiled = Compiled(sabir.parse(f"{HEAD} (float[N] x) => (float[N] y) <int64 a = {{0}}> {{ {nodes} }}"))
    assert compiled.run({"x": X[0]})["y"].tolist() == [2, 4, 6, 8, 10, 12]


WRONG = {  # inputs, nodes, feeds
    "product": ("float[N,K] x, float[3,4] w", "y = MatMul(x, w)", {"x": X, "w": X[:3, :4]}),
    "elements": ("float[N,K] x, int64[N,M] i", "y = GatherElements <axis=1> (x, i)",
                 {"x": X, "i": np.array([[0], [1], [-7], [0]])}),
    "tuples": ("float[N,K] x, int64[M,2] i", "y = GatherND(x, i)", {"x": X, "i": np.array([[0, 6]])}),
    "sequences": ("float[N,K] x, int64[K] n", "y = ReverseSequence(x, n)",
                  {"x": X, "n": np.array([1, 2, 3, 4, 5, 1])}),
    "positions": ("float[B,2,S,4] q, float[4,2] x, int64[B,S] i", "y = RotaryEmbedding(q, x, x, i)",
                  {"q": X.reshape(1, 2, 3, 4), "x": X[:, :2], "i": np.array([[0, -1, 2]])}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_contents_that_evaluation_refuses_are_errors(name):
    inputs, nodes, feeds = WRONG[name]
    model = sabir.parse(f"{HEAD} ({inputs}) => (float y) {{ {nodes} }}")
    errors = []
    for engine in (Runner, Compiled):
        with pytest.raises(sabir.SabirError) as caught:
            engine(model).run(feeds)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


# ---------------------------------------------------------------- attention

ATTENTION = [  # heads of queries, of keys; queries, keys; causal
    (4, 4, 5, 5, 1), (6, 2, 5, 7, 0), (6, 2, 5, 7, 1), (6, 2, 1, 7, 0), (3, 1, 3, 2, 1), (2, 1, 1, 1, 0),
]  # fmt: skip


def attended(q, k, v, mask, causal):
    """The definition, in double: each query head reads the keys of its group, and 0 where it attends to none."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(float), group, axis=1) for x in (k, v))
    scores = q.astype(float) @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    seen = mask & (np.tri(*scores.shape[2:], dtype=bool) if causal else True)
    e = np.where(seen, np.exp(scores), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v


@pytest.mark.parametrize(("heads", "kv", "queries", "keys", "causal"), ATTENTION)
@pytest.mark.parametrize("packed", [False, True], ids=["apart", "packed"])
def test_attention_shares_heads_and_masks_keys(heads, kv, queries, keys, causal, packed):
    rng = np.random.default_rng(heads * keys)
    q, k, v = (
        rng.standard_normal((2, *s)).astype(np.float32)
        for s in ((heads, queries, 8), (kv, keys, 8), (kv, keys, 3))
    )
    mask = rng.random((2, 1, queries, keys)) < 0.6
    mask[0, 0, 0] = False
    expected = attended(q, k, v, mask, causal)
    shapes = [f"{h},{n},{d}" for h, n, d in ((heads, "S", 8), (kv, "T", 8), (kv, "T", 3))]
    counts = ""
    if packed:
        q, k, v, expected = (x.swapaxes(1, 2).reshape(2, x.shape[2], -1) for x in (q, k, v, expected))
        shapes = [f"{n},{x.shape[2]}" for n, x in zip("STT", (q, k, v), strict=True)]
        counts = f", q_num_heads={heads}, kv_num_heads={kv}"
    result = declared("y", np.float32(expected))
    inputs = ", ".join(f"float[B,{s}] {n}" for s, n in zip(shapes, "qkv", strict=True))
    compiled = Compiled(
        sabir.parse(
            f"{HEAD} ({inputs}, bool[B,1,S,T] m) => ({result}) {{"
            f" y = Attention <is_causal={causal}{counts}> (q, k, v, m) }}"
        )
    )
    got = compiled.run({"q": q, "k": k, "v": v, "m": mask})["y"]
    close(got.astype(float), expected)
    assert fallbacks(compiled) == []
