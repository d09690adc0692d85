# ruff: file-ignore[banned-api]  it reads what onnxruntime writes
"""Recomputation: which values are not kept, that results are equal, and that optimizers keep it."""

import numpy as np
import onnx
import onnxruntime
import pytest

import sabir
from sabir.base import NotFoundError, SchemaError
from sabir.ir import verify

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
BLOCKS = 4


def stack_of_blocks():
    """Blocks of a product and two functions, each with named nodes."""
    lines = [
        f"[block{i}_product] m{i} = MatMul(h{i}, w{i})  [block{i}_tanh] t{i} = Tanh(m{i})  [block{i}_exp] e{i} = Exp(t{i})"
        f"  [block{i}_add] h{i + 1} = Mul(e{i}, t{i})"
        for i in range(BLOCKS)
    ]
    weights = ", ".join(f"double[3,3] w{i}" for i in range(BLOCKS))
    text = f"g (double[N,3] h0, {weights}) => (double loss) {{ {'  '.join(lines)}  loss = ReduceSum<keepdims = 0>(h{BLOCKS}) }}"
    return sabir.parse(HEAD + text)


def feeds():
    random = np.random.default_rng(5)
    return {
        "h0": random.standard_normal((2, 3)),
        **{f"w{i}": random.standard_normal((3, 3)) for i in range(BLOCKS)},
    }


WRT = ["h0", *(f"w{i}" for i in range(BLOCKS))]


def kept(model):
    """The names of the results of the forward part that the backward part reads."""
    forward = {n.name: n for n in model.graph if n.name}
    first = next(i for i, n in enumerate(model.graph) if n.op == "ReduceSum")
    backward = [n for n in list(model.graph)[first:] if n not in forward.values() and not n.name]
    return {v.name for n in backward for v in n.inputs if v is not None and v.node in forward.values()}


@pytest.mark.parametrize("pattern", [r"(block\d+)_.*", r"block\d+_.*", r"(block\d+)_(?:tanh|exp|add)"])
def test_results_are_equal_and_values_are_not_kept(pattern):
    model, given = stack_of_blocks(), feeds()
    plain = sabir.differentiate(model, "loss", WRT)
    found = sabir.differentiate(model, "loss", WRT, recompute=[pattern])
    verify(found)
    sabir.check(found)
    for engine in ("reference", "compiled"):
        expected = sabir.Session(plain, engine=engine).run(given)
        for name, value in sabir.Session(found, engine=engine).run(given).items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-13)
    assert {"t1", "e1"} <= {v.name for n in plain.graph for v in n.inputs}


def test_a_segment_is_computed_again_after_the_gradient_that_it_is_for():
    found = sabir.differentiate(stack_of_blocks(), "loss", WRT, recompute=[r"(block\d+)_.*"])
    nodes = list(found.graph)
    tanhs = [i for i, n in enumerate(nodes) if n.op == "Tanh"]
    assert len(tanhs) == 2 * BLOCKS
    delays = [n for n in nodes if n.op == "Sub" and n.inputs[0].name.startswith("h")]
    assert [n.inputs[0].name for n in delays] == [f"h{i}" for i in reversed(range(BLOCKS))]
    readers = {u.user for v in found.graph.value("t1").uses for u in [v] if u.user is not None}
    assert {n.op for n in readers} == {"Exp", "Mul"}
    assert all(n in nodes[: tanhs[BLOCKS]] for n in readers)  # of the forward part


def test_an_optimizer_keeps_the_copies(tmp_path):
    found = sabir.differentiate(stack_of_blocks(), "loss", WRT, recompute=[r"(block\d+)_.*"])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    session = onnxruntime.InferenceSession(sabir.dumps(found), options, providers=["CPUExecutionProvider"])
    ops = [n.op_type for n in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert ops.count("Tanh") == 2 * BLOCKS
    names = [o.name for o in session.get_outputs()]
    expected = sabir.evaluate(found, feeds())
    for name, value in zip(names, session.run(names, feeds()), strict=True):
        np.testing.assert_allclose(np.asarray(value), expected[name], rtol=1e-10)


def test_random_numbers_are_kept():
    text = """g (double[8] x) => (double[8] y) { [b_noise] r = RandomNormalLike(x)  [b_exp] e = Exp(r)
        [b_mul] m = Mul(e, x)  [b_tanh] t = Tanh(m)  [b_out] y = Mul(t, x) }"""
    found = sabir.differentiate(sabir.parse(HEAD + text), "y", "x", recompute=["b_.*"])
    assert [n.op for n in found.graph].count("RandomNormalLike") == 1
    assert [n.op for n in found.graph].count("Tanh") == 2


def test_a_value_that_the_model_returns_is_kept():
    text = "g (double[2] x) => (double[2] y, double[2] t) { [b_a] t = Tanh(x)  [b_b] y = Exp(t) }"
    found = sabir.differentiate(sabir.parse(HEAD + text), "y", "x", recompute=["b_.*"])
    assert [n.op for n in found.graph].count("Tanh") == 1


def test_nodes_with_subgraphs():
    text = """g (bool k, double[2] x) => (double[2] y) { [b_a] t = Tanh(x)  [b_if] u = If(k) <
          then_branch = p () => (double[2] a) { a = Exp(t) }, else_branch = q () => (double[2] b) { b = Mul(t, x) }>
        [b_c] v = Exp(u)  [c] y = Mul(v, u) }"""
    model = sabir.parse(HEAD + text)
    plain, found = (sabir.differentiate(model, "y", "x", recompute=r) for r in ((), ["b_.*"]))
    verify(found)
    sabir.check(found)
    assert [n.op for n in found.graph].count("Tanh") == 2
    for k in (True, False):
        given = {"k": k, "x": np.array([0.3, -0.7])}
        expected = sabir.evaluate(plain, given)["grad_x"]
        np.testing.assert_allclose(sabir.evaluate(found, given)["grad_x"], expected, rtol=1e-13)


def test_bad_patterns():
    model = stack_of_blocks()
    with pytest.raises(NotFoundError, match="no node has a name that matches 'blok'"):
        sabir.differentiate(model, "loss", WRT, recompute=["blok"])
    with pytest.raises(SchemaError, match=r"`recompute` has the pattern '\(': "):
        sabir.differentiate(model, "loss", WRT, recompute=["("])
