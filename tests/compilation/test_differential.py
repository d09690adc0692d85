"""Graphs drawn at random, on the compiled engine and on the interpreter.

`SABIR_GRAPHS=5000` draws so many, others in each run of the tests.
"""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sabir.compilation.engine import bodies as _bodies
from support.differences import check
from support.drawing.calls import draw

GRAPHS = int(os.environ.get("SABIR_GRAPHS", "0"))


@settings(
    max_examples=GRAPHS or 120,
    derandomize=not GRAPHS,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_graphs_drawn_at_random(data):
    def choose(count):
        return data.draw(st.integers(0, count - 1))

    check_one(choose)


def check_one(choose):
    """Draw a graph, and compare runs of several shapes, each twice: the second one is fast."""
    runs = 1 + choose(3)
    graph = draw(choose, runs)
    rng = np.random.default_rng(choose(1000))
    feeds = [graph.feeds(run, rng) for run in (*sorted([*range(runs)] * 2), 0)]
    few, _bodies._ENOUGH = _bodies._ENOUGH, choose(2) << 14  # a small body is compiled too, or not
    try:
        check(graph.model, feeds, graph.tolerances, 1 + choose(3))
    finally:
        _bodies._ENOUGH = few
