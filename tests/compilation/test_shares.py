"""The shares of entries: threads claim several of one that is much work, and the bits do not depend on it."""

import numpy as np
import pytest

from sabir.compilation import Compiled
from sabir.compilation.native import FINE
from sabir.compilation.plan.layout import RunSizes
from sabir.syntax import parse

MATRICES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 512] x, float[512, 512] w) => (float[N, 512] y) { m = MatMul (x, w)  y = Relu (m) }"""
VECTOR = """<ir_version: 10, opset_import: ["" : 21]>
g (float[1, 4096] x, float[4096, 4096] w) => (float[1, 4096] y) { y = MatMul (x, w) }"""


def ran(text, threads, **feeds):
    """The results of a plan, and the last number of each of its rows."""
    compiled = Compiled(parse(text), threads=threads)
    (y,) = compiled.run(feeds).values()
    (program,) = compiled._plans
    sizes = {"N": feeds["x"].shape[0]}
    return y, program.layout(0, RunSizes(sizes)).rows[:, 2].tolist()


def feeds_of(rows, depth, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (rows, depth), (depth, depth)
    return dict(zip("xw", (rng.standard_normal(s).astype(np.float32) for s in shapes), strict=True))


@pytest.mark.parametrize(
    ("rows", "threads", "fine"), [(256, 2, True), (4, 2, False), (64, 2, True), (64, 32, False)]
)
def test_an_entry_is_fine_where_each_thread_has_much_to_do(rows, threads, fine):
    feeds = feeds_of(rows, 512)
    y, marks = ran(MATRICES, threads, **feeds)
    assert any(marks) == fine
    assert set(marks) <= {0, FINE}
    alone, _ = ran(MATRICES, 1, **feeds)
    np.testing.assert_array_equal(y, alone)


def test_a_streamed_matrix_is_read_in_long_pieces():
    y, marks = ran(VECTOR, 2, **feeds_of(1, 4096))
    assert not any(marks)
    np.testing.assert_array_equal(y, ran(VECTOR, 1, **feeds_of(1, 4096))[0])
