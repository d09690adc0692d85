"""How many plans a session keeps in memory, and for which shapes it makes them."""

import itertools

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.engine.kept import MOST_PATTERNS

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[A,B,C] x, float[D,E,F] z) => (y, w) { y = Relu (x)  w = Neg (z) }"""


def feeds(*sizes):
    return {"x": np.ones(sizes[:3], np.float32), "z": np.ones(sizes[3:], np.float32)}


def test_plans_are_bounded_and_results_are_right():
    engine = Compiled(sabir.parse(TEXT))
    for sizes in itertools.islice(itertools.product((2, 1, 0), repeat=6), 2 * MOST_PATTERNS + 10):
        given = feeds(*sizes)
        engine._plans.interpreted(60)  # as if it had run for a minute: plans wait for no more
        for _ in range(2):
            found = engine.run(given)
            np.testing.assert_array_equal(found["y"], given["x"])
            np.testing.assert_array_equal(found["w"], -given["z"])
        assert len(list(engine._plans)) <= MOST_PATTERNS
    assert len(list(engine._plans)) == MOST_PATTERNS


@pytest.fixture
def full():
    """An engine that has as many plans as it keeps."""
    engine = Compiled(sabir.parse(TEXT))
    for sizes in itertools.islice(itertools.product((2, 1, 0), repeat=6), MOST_PATTERNS):
        engine.run(feeds(*sizes))
    return engine


def test_shapes_that_come_once_remove_no_plan(full):
    before = set(full._plans)
    full._plans.interpreted(60)
    full.run(feeds(0, 0, 0, 0, 0, 1))
    assert set(full._plans) == before
    full.run(feeds(0, 0, 0, 0, 0, 1))
    assert len(set(full._plans) - before) == 1


def test_the_plan_that_was_used_longest_ago_leaves(full):
    oldest, second, *_ = full._plans
    full._plans.interpreted(60)
    full.run(feeds(2, 2, 2, 2, 2, 2))  # as the first of them
    for _ in range(2):
        full.run(feeds(0, 0, 0, 0, 0, 1))
    assert oldest in set(full._plans)
    assert second not in set(full._plans)


def test_a_plan_that_somebody_asks_to_see_is_made_at_once(full):
    shapes = {"x": [0, 0, 0], "z": [0, 0, 1]}
    assert full.explain(shapes)
    assert len(list(full._plans)) == MOST_PATTERNS


def test_shapes_that_come_in_turn_make_few_plans(full):
    """They would remove each other's plans: a plan is made when runs without it took as long as it takes."""
    before = set(full._plans)
    for _ in range(3):
        for sizes in itertools.islice(itertools.product((0, 1, 2), repeat=6), MOST_PATTERNS):
            full.run(feeds(*sizes))
    assert len(set(full._plans) - before) < MOST_PATTERNS // 4
