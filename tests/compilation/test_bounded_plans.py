"""What a plan may cost: deadlines hold while it is made, and what takes longer to plan than to run is interpreted."""

import time

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.compilation import Compiled

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.ones((4, 4), np.float32)


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
    count = 4200
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
    engine = Compiled(chain(4200))
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
    began = time.monotonic()
    with pytest.raises(sabir.LimitError, match="the time is up"):
        Compiled(model, limits=Limits(seconds=1)).compile({"y0": X, "w": X})
    assert time.monotonic() - began < 8  # seconds, on a machine that is busy with other tests


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
