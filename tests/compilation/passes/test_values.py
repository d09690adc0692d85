"""A pass keeps what expressions compute: graphs drawn at random, evaluated by plain loops before and after it."""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sabir import loops
from sabir.compilation.backends.cpu.passes import PIPELINE
from sabir.compilation.frontend.lowering import lower
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.frontend.prepare import prepare
from sabir.compilation.plan.entries import Mismatch
from sabir.loops import walk
from sabir.opsets import STANDARD
from support.drawing.calls import draw
from support.scalar import Computing

GRAPHS = int(os.environ.get("SABIR_GRAPHS", "0"))


@settings(
    max_examples=GRAPHS or 60,
    derandomize=not GRAPHS,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_passes_keep_values(data):
    def choose(count):
        return data.draw(st.integers(0, count - 1))

    graph = draw(choose, 1)
    feeds = graph.feeds(0, np.random.default_rng(choose(1000)))
    inputs = [feeds[v.name] for v in graph.model.graph.inputs]
    pattern, sizes = pattern_of([v.type for v in graph.model.graph.inputs], inputs)
    prepared = prepare(graph.model, pattern, sizes, STANDARD, newer_opsets=False)
    lowered = lower(prepared, sizes)
    known = dict(prepared.constants) | dict(zip(prepared.inputs, inputs, strict=True))
    roots = {s: x for s, x in lowered.expressions.items() if not reads_evaluated(x, known)}
    expected = computed(roots, sizes, known)
    for each in PIPELINE:
        with loops.assuming(lowered.assumptions):
            roots = each.run(roots)
        walk.verify(roots.values())
        found = computed(roots, sizes, known)
        for slot in expected.keys() & found.keys():
            wide = np.float64 if expected[slot].dtype.kind in "fV" else expected[slot].dtype
            np.testing.assert_allclose(
                found[slot].astype(wide), expected[slot].astype(wide), rtol=1e-6, atol=1e-6, err_msg=each.name
            )


def reads_evaluated(x, known):
    """Whether an expression reads the result of an evaluated call, which nothing computes here."""
    leaves = (e for e in walk.postorder([x]) if hasattr(e, "slot"))
    return any(e.array is None and e.slot not in known and e.known is None for e in leaves)


def computed(roots, sizes, known):
    """The values of expressions, by slot, as far as loops in Python reach."""
    computing, found = Computing(sizes, known), {}
    for slot, x in roots.items():
        try:
            found[slot] = computing(x)
        except Mismatch:
            break
    return found
