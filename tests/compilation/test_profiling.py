import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.compilation import Compiled, Profile, Roofline, Timing

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
MODEL = """g (float[N,8] x, int64[K] rows) => (float[N,4] y, float[K,8] picked, float[N,M] z)
    <float[8,4] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> {
  h = MatMul (x, w)
  y = Relu (h)
  picked = Gather (x, rows)
  z = Unique <axis = 1> (x)
}"""


@pytest.fixture
def compiled():
    return Compiled(sabir.parse(HEADER + MODEL), threads=2)


def feeds(rows=(0, 2, 2)):
    return {"x": np.arange(40, dtype=np.float32).reshape(5, 8), "rows": np.array(rows, np.int64)}


def test_each_entry_is_timed_with_its_work(compiled):
    expected = compiled.run(feeds())
    profile = compiled.profile(feeds(), runs=3)
    assert profile.runs == 3
    assert profile.whole > 0
    assert all(t.seconds > 0 for t in profile.timings)
    assert profile.seconds == pytest.approx(sum(t.seconds for t in profile.timings))
    work = {t.nodes: (t.kind, t.flops, t.bytes) for t in profile.timings}
    packed = 8 * (compiled._backend.target.vector_bits // 8)  # 8 rows of a panel of one vector
    assert work == {
        ("MatMul with output 'h'", "Relu with output 'y'"): ("product", 2 * 5 * 4 * 8, 5 * 8 * 4 + packed + 5 * 4 * 4),
        ("Gather with output 'picked'",): ("nest", 0, 3 * 8 * 4 + 3 * 8 + 3 * 8 * 4),
        ("Unique with output 'z'",): ("evaluated", 0, 5 * 8 * 4),  # its operand is an input of the model
        ("a copy of 'z'",): ("nest", 0, 2 * 5 * 8 * 4),
    }  # fmt: skip
    assert [k.nodes for k in compiled.explain().kernels] == [
        t.nodes for t in profile.timings if t.kind != "evaluated"
    ]
    for name, value in compiled.run(feeds()).items():
        np.testing.assert_array_equal(value, expected[name])


def test_a_profile_of_other_sizes_uses_the_same_kernels(compiled):
    compiled.profile(feeds(), runs=1)
    profile = compiled.profile({"x": np.ones((9, 8), np.float32), "rows": np.array([1, 2])}, runs=1)
    assert max(t.flops for t in profile.timings) == 2 * 9 * 4 * 8
    assert len(list(compiled._plans)) == 1


def test_what_only_the_interpreter_runs_is_refused(compiled):
    with pytest.raises(UnsupportedError, match="only the interpreter can run these feeds, because an index"):
        compiled.profile(feeds(rows=(0, 99, 1)))


def test_nodes_have_the_time_of_their_kernels():
    timings = (
        Timing("pack", ("a",), 1.0, 0, 0),
        Timing("product", ("a", "b"), 2.0, 0, 0),
        Timing("evaluated", ("c",), 2.5, 0, 0),
    )
    nodes = Profile(timings, 5.0, 1).nodes
    assert [(n.node, n.seconds, n.others) for n in nodes] == [("a", 3.0, 1), ("c", 2.5, 0), ("b", 2.0, 1)]


def test_the_fraction_of_the_roofline():
    limits = Roofline(flops=100.0, bandwidth=10.0)
    assert Timing("product", ("a",), 4.0, 200, 10).fraction(limits) == pytest.approx(
        0.5
    )  # 2 s of operations, 1 s of bytes
    assert Timing("nest", ("a",), 4.0, 100, 30).fraction(limits) == pytest.approx(
        0.75
    )  # 1 s of operations, 3 s of bytes
    assert Timing("evaluated", ("a",), 4.0, 0, 30).fraction(limits) is None
    assert Timing("nest", ("a",), 0.0, 100, 30).fraction(limits) is None
