"""What a plan may cost: deadlines hold while it is made, and what takes longer to plan than to run is interpreted."""

import itertools
import time

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.compilation import Compiled
from sabir.compilation.engine import plans as _plans
from sabir.compilation.engine import stages as _stages
from sabir.compilation.engine.expressions import rewritten
from sabir.compilation.engine.worth import Reserve

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.ones((4, 4), np.float32)


OPERATORS = ("Sin", "Cos", "Exp", "Tanh", "Abs", "Neg", "Relu", "Sigmoid")


def distinct(count):
    """A model of `count` kernels, none of which is equal to another one, and feeds for it."""
    chains = itertools.islice(itertools.product(OPERATORS, repeat=4), count)
    body = " ".join(
        f"a{i} = {a} (x{i})  b{i} = {b} (a{i})  c{i} = {c} (b{i})  y{i} = {d} (c{i})"
        for i, (a, b, c, d) in enumerate(chains)
    )
    inputs, outputs = (", ".join(f"float[n{i}] {v}{i}" for i in range(count)) for v in "xy")
    feeds = {f"x{i}": np.full(3 + i % 7, 0.5, np.float32) for i in range(count)}
    return sabir.parse(f"{HEAD} g ({inputs}) => ({outputs}) {{ {body} }}"), feeds


def chain(count):
    """A model of a kilobyte for each fifty products, none of which another kernel computes too."""
    body = " ".join(f"y{i} = MatMul (y{i - 1}, w)" for i in range(1, count))
    return sabir.parse(f"{HEAD} g (float[4,4] y0, float[4,4] w) => (y{count - 1}) {{ {body} }}")


def test_a_join_of_very_many_operands_is_one_call():
    x = np.arange(4, dtype=np.float32)
    model = sabir.parse(
        f"{HEAD} g (float[N] x) => (y) {{ y = Concat <axis = 0> ({', '.join(['x'] * 5000)}) }}"
    )
    engine = Compiled(model)
    np.testing.assert_array_equal(engine.run({"x": x})["y"], np.tile(x, 5000))
    (program,) = engine._plans
    assert len(program.plan.entries) <= 2
    assert "joins 5000 tensors" in str(engine.explain())


def test_a_chain_of_small_calls_is_interpreted_until_a_plan_pays():
    count = 8200
    engine = Compiled(chain(count))
    feeds = {"y0": X, "w": np.eye(4, dtype=np.float32)}
    (found,) = engine.run(feeds).values()
    np.testing.assert_array_equal(found, X)
    assert not list(engine._plans)
    assert engine._plans.refusal() is None
    engine._plans.interpreted(60)  # as if it had run for a minute
    (found,) = engine.run(feeds).values()
    np.testing.assert_array_equal(found, X)
    assert len(list(engine._plans)) == 1


def test_a_plan_that_somebody_asks_for_is_made_at_once():
    engine = Compiled(chain(8200))
    assert engine.explain()
    assert len(list(engine._plans)) == 1


def test_a_model_of_large_tensors_is_planned_at_once():
    body = " ".join(f"y{i} = {'Cos' if i % 2 else 'Sin'} (y{i - 1})" for i in range(1, 4200))
    model = sabir.parse(f"{HEAD} g (float[N] y0) => (y4199) {{ {body} }}")
    engine = Compiled(model)
    engine.run({"y0": np.ones(1 << 15, np.float32)})
    assert len(list(engine._plans)) == 1


def test_a_deadline_holds_while_a_plan_is_made():
    model = chain(30_000)
    began = time.process_time()
    with pytest.raises(sabir.LimitError, match="the time is up"):
        Compiled(model, limits=Limits(seconds=1)).compile({"y0": X, "w": X})
    assert time.process_time() - began < 8  # seconds


def test_a_plan_of_too_many_calls_is_refused_with_the_reason():
    engine = Compiled(chain(33_000))
    with pytest.warns(sabir.SabirWarning, match=r"32,999 calls, and a plan has at most 32,768"):
        engine.run({"y0": X, "w": np.eye(4, dtype=np.float32)})


def test_parts_whose_sizes_calls_decide_are_bounded():
    count = 1200
    body = " ".join(f"y{i} = Unique (y{i - 1})" for i in range(1, count))
    model = sabir.parse(f"{HEAD} g (float[N] x) => (y{count - 1}) {{ y0 = Abs (x)  {body} }}")
    with pytest.warns(sabir.SabirWarning, match=r"calls decide sizes 1,\d+ times, at most 1,024"):
        (found,) = Compiled(model).run({"x": np.float32([2, -1, 2])}).values()
    assert found.tolist() == [1, 2]


def test_very_many_different_kernels_are_interpreted():
    model, feeds = distinct(400)
    engine = Compiled(model)
    began = time.process_time()
    found = engine.run(feeds)
    assert time.process_time() - began < 5  # compiled, they took 7 seconds on an idle machine
    assert not list(engine._plans)
    for name, expected in sabir.evaluate(model, feeds).items():
        np.testing.assert_array_equal(found[name], expected)


def test_each_plan_that_costs_much_waits_for_its_own_time(monkeypatch):
    monkeypatch.setattr(_plans, "allowed_for", lambda *_: 0.0)
    engine = Compiled(sabir.parse(f"{HEAD} g (float[N] x) => (y) {{ a = Sin (x)  y = Softmax (a) }}"))
    plans = []
    for size in (4, 4, 4, 1, 1, 1):
        engine.run({"x": np.ones(size, np.float32)})
        plans.append(len(list(engine._plans)))
        engine._plans.interpreted(engine._plans._worth)
    assert plans == [0, 1, 1, 1, 2, 2]


def test_functions_that_make_few_nodes_into_many_are_refused_before_they_are_inlined():
    callees = ["Neg", *(f"d.F{i}" for i in range(17))]
    functions = " ".join(
        f'<domain: "d", opset_import: ["" : 21, "d" : 1]> F{i} (x) => (y) {{ a = {f} (x)  y = {f} (a) }}'
        for i, f in enumerate(callees)
    )
    model = sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[N] x) => (y) {{ y = d.F17 (x) }} {functions}'
    )
    began = time.process_time()
    with pytest.warns(
        sabir.SabirWarning, match=r"inlined, the model has 262,144 nodes, and a plan has at most"
    ):
        (found,) = Compiled(model).run({"x": X[0]}).values()
    assert time.process_time() - began < 8  # the interpreter takes one second of it; planning took 17
    np.testing.assert_array_equal(found, X[0])


def test_the_plans_of_all_subgraphs_share_a_reserve(monkeypatch):
    """Each of many bodies costs little, and all of them much."""
    reserve, planned = Reserve(0.0), []
    monkeypatch.setattr(_stages, "Reserve", lambda *_: reserve)
    monkeypatch.setattr(_stages, "rewritten", lambda *parts: planned.append(parts) or rewritten(*parts))
    model = sabir.parse(
        f"{HEAD} g (bool c, float[N] x) => (y) {{ y = If (c) <then_branch = t () => (float[M] p) {{"
        " s = Sin (x)  p = Concat <axis = 0> (s, x) }, else_branch = e () => (float[N] q) { q = Cos (x) }> }"
    )
    engine = Compiled(model)
    x = np.linspace(-1, 1, 1 << 15, dtype=np.float32)
    counts = []
    for condition, seconds in ((True, 0.0), (True, 60.0), (True, 0.0), (False, 0.0), (False, 60.0)):
        reserve.left = seconds
        (found,) = engine.run({"c": np.bool_(condition), "x": x}).values()
        expected = np.concatenate([np.sin(x), x]) if condition else np.cos(x)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        counts.append(len(planned))
    assert counts == [0, 1, 1, 1, 2]
    assert reserve.left < 60
