"""Decisions: how they are recorded, shown, and kept with plans; those of each family are tested beside it."""

from __future__ import annotations

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled, Decision
from sabir.compilation.plan.decisions import PLAN, Decisions, NodesOf, Reason
from sabir.ir import symbol
from sabir.loops import Stored
from support.thresholds import backend_by, compiled_by, decisions_on

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


def weights(*shape: int) -> np.ndarray:
    """Random numbers, the same for each shape."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- records


def test_a_reason_becomes_a_text_when_somebody_asks():
    assert str(Reason("{} channels < {}", (16, 32))) == "16 channels < 32"
    assert str(Reason("{} rows", (symbol("N") * 2,))) == "2*N rows"
    assert str(Reason("as it {is}")) == "as it {is}"


def test_a_decision_as_a_line():
    found = Decision(("Conv_12",), "algorithm", "direct", "winograd", "16 channels < 32")
    assert str(found) == "Conv_12: direct, not winograd: 16 channels < 32"
    assert str(Decision(("a", "b"), "tiles", "tiles of 6 rows")) == "a, b: tiles of 6 rows"
    assert str(Decision((), "threads", "one thread")) == "the plan: one thread"


def test_expressions_become_the_labels_of_their_nodes():
    x, y, z, lost = (Stored("float", (2,), slot) for slot in range(4))
    labels = {x: "X", y: "Y", z: "Z"}
    found = Decisions()
    found.add((x,), "fusion", Reason("fused with {}", (NodesOf(y),)))
    found.add((x,), "fusion", Reason("fused with {}", (NodesOf(x),)))  # says nothing
    found.add((lost,), "fusion", "a separate kernel")
    found.add((x, y), "tiles", "6 rows")
    found.add((x, y), "tiles", "6 rows")
    found.add(("Z",), "tiles", "5 rows", "6", Reason("{} rows < {}", (5, 6)))
    found.add((), "tiles", "of no node")
    found.add(PLAN, "threads", "one")
    found.add((z,), "fusion", "a separate kernel")
    found.superseded.add(z)
    found.settle(lambda xs: tuple(labels[x] for x in xs if x in labels))
    expected = (
        Decision(("X",), "fusion", "fused with Y"),
        Decision(("X", "Y"), "tiles", "6 rows"),
        Decision(("Z",), "tiles", "5 rows", "6", "5 rows < 6"),
        Decision((), "threads", "one"),
    )
    assert found.all() == expected
    stored = found.as_text()
    assert (stored.records, stored.all()) == ([], expected)
    assert stored.as_text().all() == expected
    assert Decisions().as_text().all() == ()


def test_no_expression_stays_in_memory_with_a_plan():
    """They would keep the constants of the model, folded ones too."""
    compiled = compiled_by(
        sabir.parse(f"{HEAD} g (float[3] x) => (float[3] y) {{ e = Exp (x) y = Relu (e) }}")
    )
    compiled.run({"x": np.zeros(3, np.float32)})
    (program,) = compiled._plans
    for record in program.plan.decisions.records:
        assert all(isinstance(node, str) for node in record.about)


# ---------------------------------------------------------------- fusion


def test_what_is_fused_and_what_is_not():
    b = sabir.Builder(21)
    h = b.MatMul(b.input("x", "float", [6, 8]), weights(8, 5))
    s = b.Softmax(b.Relu(h))
    b.output(b.Reshape(b.Neg(b.Reshape(s, np.array([5, 6]))), np.array([30])), "y")
    relu, softmax, neg = decisions_on(b.model(), "fusion")
    assert str(relu) == "Relu with output 'relu_out': fused with MatMul with output 'matmul_out'"
    assert softmax.nodes == ("Softmax with output 'softmax_out'",)
    own = "a separate kernel, not fused with"
    assert (
        softmax.text
        == f"{own} MatMul with output 'matmul_out': a kernel of the kind product computes no folds"
    )
    assert neg.text == f"{own} Softmax with output 'softmax_out': it reads a view of the result"


def test_a_kernel_of_many_expressions_takes_no_more():
    b = sabir.Builder(21)
    x = y = b.input("x", "float", [6, 8])
    for _ in range(5):
        y = b.Exp(b.Neg(y))
    b.output(b.Add(x, y), "y")
    rejected = [d for d in decisions_on(b.model(), "fusion", most_members=4) if d.rejected]
    assert [d.because for d in rejected] == ["4 expressions >= 4", "4 expressions >= 4"]
    assert not [d for d in decisions_on(b.model(), "fusion") if d.rejected]
    found = compiled_by(b.model(), most_members=4)
    assert len(found.explain().kernels) == 3
    x = weights(6, 8)
    np.testing.assert_array_equal(found.run({"x": x})["y"], Compiled(b.model()).run({"x": x})["y"])


def test_kernels_that_would_wait_for_each_other_and_other_shapes():
    b = sabir.Builder(21)
    x = b.input("x", "float", [4, 4])
    e = b.Exp(x)
    b.output(b.Add(e, b.MatMul(e, x)), "y")
    b.output(b.Add(b.ReduceSum(e, np.array([1]), keepdims=1), b.ReduceMax(e, np.array([0]), keepdims=1)), "z")
    reasons = {d.because for d in decisions_on(b.model(), "fusion") if d.rejected}
    assert "that kernel folds other axes" in reasons


def test_readers_compute_narrow_tensors_and_scalars():
    b = sabir.Builder(21)
    q, s = b.input("q", "uint8", [4, 6]), b.input("s", "float", [])
    b.output(b.Mul(b.DequantizeLinear(q, np.float32(0.5), np.uint8(3)), b.Neg(s)), "y")
    found = decisions_on(b.model(), "storage")
    reasons = {(d.nodes[0].split()[0], d.because) for d in found}
    assert reasons >= {
        ("DequantizeLinear", "a narrow tensor takes less memory than its floats"),
        ("Neg", "it is one number"),
    }
    assert all(node != "Mul" for node, _ in reasons), "it is an output"
    assert all(d.chosen == "computed by each reader" and not d.rejected for d in found)
    model = b.model()
    counts = [
        len(compiled_by(model, **more).explain().kernels)
        for more in ({}, {"inlined_bytes": 0, "inlined_steps": 0})
    ]
    assert counts == [1, 3]
    assert decisions_on(model, "storage", inlined_bytes=0, inlined_steps=0) == []


# ---------------------------------------------------------------- where they are seen


def image() -> sabir.Model:
    """A convolution of few channels, and maps behind it."""
    b = sabir.Builder(21)
    y = b.Conv(b.input("x", "float", [1, 16, 20, 20]), weights(40, 16, 3, 3), pads=[1] * 4)
    b.output(b.ReduceMax(b.Relu(y), np.array([1]), keepdims=0), "y")
    return b.model()


def test_an_explanation_has_all_and_shows_what_was_rejected_at_the_kernel():
    found = Compiled(image(), threads=1).explain()
    node = "Conv with output 'conv_out'"
    assert Decision(
        (node, "Relu with output 'relu_out'"), "algorithm", "direct", "winograd", "16 channels < 32"
    ) in (found.decisions)
    lines = str(found).split("\n")
    place = lines.index(next(line for line in lines if " product " in line))
    assert lines[place + 1] == "      direct, not winograd: 16 channels < 32"
    assert any("a separate kernel, not fused with Conv" in line for line in lines)
    assert not any("tiles of" in line for line in lines), "nothing was rejected"
    subjects = {d.subject for d in found.decisions}
    assert {"algorithm", "fusion", "second operand", "tiles", "vectors"} <= subjects


def test_threads_are_decided_for_the_sizes_of_a_run():
    model = sabir.parse(f"{HEAD} g (float[N] x) => (float[N] y) {{ y = Relu (x) }}")
    few, many = (Compiled(model, threads=3).explain({"x": [size]}).decisions[-1] for size in (100, 1_000_000))
    assert few == Decision((), "threads", "one thread", "3 threads", "900 operations and bytes < 524288")
    assert many == Decision((), "threads", "3 threads", because="9000000 operations and bytes >= 524288")
    alone = Compiled(model, threads=1).explain({"x": [100]}).decisions
    assert all(d.subject != "threads" for d in alone)
    other = compiled_by(model, threads=3, single_work=0).explain({"x": [100]}).decisions[-1]
    assert other.chosen == "3 threads"


def test_a_profile_has_the_decisions_of_each_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    feeds = {"x": weights(1, 16, 20, 20)}
    new, read = (Compiled(image()) for _ in range(2))
    new.run(feeds)
    read.run(feeds)
    assert [plan.prepared is None for each in (new, read) for plan in each._plans] == [False, True]
    profiles = [each.profile(feeds, runs=1) for each in (new, read)]
    (product,) = [t for t in profiles[0].timings if t.kind == "product"]
    assert "direct, not winograd: 16 channels < 32" in [d.text for d in product.decisions]
    assert [t.decisions for t in profiles[0].timings] == [t.decisions for t in profiles[1].timings]
    assert read.explain().decisions == new.explain().decisions


def test_plans_by_other_thresholds_are_other_plans(tmp_path, monkeypatch):
    """Of the same model on the same processor: a stored one is read by the thresholds that it was made with."""
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    feeds = {"x": weights(1, 16, 20, 20)}
    kinds: list[set[str]] = []
    for least in (32, 16, 32, 16):
        compiled = Compiled(image(), backend=backend_by(winograd_channels=least))
        compiled.run(feeds)
        kinds.append({k.kind for k in compiled.explain().kernels} & {"product", "winograd"})
    assert kinds == [{"product"}, {"winograd"}] * 2


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_decisions_for_another_processor(target):
    plan = Compiled(image()).compile({"x": weights(1, 16, 20, 20)}, target=target)
    assert "direct, not winograd: 16 channels < 32" in [d.text for d in plan.explain().decisions]
    assert plan.explain().decisions[-1].chosen == "4 threads"
