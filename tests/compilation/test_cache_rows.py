"""Rows of caches in place: what a run writes, and where a cache is copied."""

import numpy as np
import pytest

import sabir

ROWS = """
<ir_version: 10, opset_import: ["" : 24]>
g (float[B,C,4] buffer, int64[B] at, float[B,S,4] new) => (float[B,C,4] present, float[B,C,4] y) {
  present = TensorScatter <axis = 1> (buffer, new, at)
  y = Neg (present)
}
"""


def runs(text=ROWS, engine="compiled", **more):
    """Sessions with and without a declared cache."""
    model = sabir.parse(text)
    return sabir.Session(model, engine=engine, caches={"present": "buffer"}, **more), sabir.Session(model)


def feeds_of(capacity=12, batch=2, new=2):
    rng = np.random.default_rng(capacity)
    return {
        "buffer": rng.standard_normal((batch, capacity, 4)).astype(np.float32),
        "at": np.arange(1, batch + 1),
        "new": rng.standard_normal((batch, new, 4)).astype(np.float32),
    }


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_rows_are_written_into_the_feed(engine):
    session, other = runs(engine=engine)
    for step in range(4):
        feeds = feeds_of()
        expected, buffer = other.run({**feeds, "buffer": feeds["buffer"].copy()}), feeds["buffer"]
        found = session.run(feeds, out={"present": buffer})
        assert found["present"] is buffer, step
        np.testing.assert_array_equal(buffer, expected["present"])
        np.testing.assert_array_equal(found["y"], expected["y"])


def test_nothing_else_of_the_buffer_is_touched():
    """The kernel that copies does nothing: it would write rows that something has changed meanwhile."""
    session, _ = runs()
    feeds = feeds_of()
    session.run(feeds)
    found = session._engine.run_fast(feeds, {"present": feeds["buffer"]})
    assert found is not None
    assert found["present"] is feeds["buffer"]
    plan = session._engine.compile(feeds)
    assert "unless the same" in "\n".join(plan.listing("schedule"))


def test_without_the_feed_as_its_array_the_cache_is_copied():
    session, other = runs()
    for _ in range(3):
        feeds = feeds_of()
        kept = feeds["buffer"].copy()
        found = session.run(feeds)
        np.testing.assert_array_equal(feeds["buffer"], kept)
        np.testing.assert_array_equal(found["present"], other.run(feeds)["present"])
        apart = np.empty_like(kept)
        assert session.run(feeds, out={"present": apart})["present"] is apart
        np.testing.assert_array_equal(apart, found["present"])


def test_an_array_that_only_overlaps_the_feed_is_not_used():
    session, other = runs()
    whole = np.zeros((2, 13, 4), np.float32)
    for _ in range(3):
        feeds = {**feeds_of(), "buffer": np.zeros((2, 12, 4), np.float32)}
        expected = other.run(feeds)["present"]
        found = session.run(feeds, out={"present": whole[:, 1:].copy()})
        np.testing.assert_array_equal(found["present"], expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ROWS.replace("y = Neg (present)", "k = Add (buffer, present) y = Neg (k)"), "reads the input after"),
        (ROWS.replace("present = Tensor", "other = Tensor").replace("y = Neg (present)", "present = Neg (other) y = Neg (present)"), "not written into a copy"),
        (ROWS.replace("float[B,C,4] present", "double[B,C,4] present").replace("present = Tensor", "other = Tensor").replace(
            "y = Neg (present)", "present = Cast <to = 11> (other) y = Neg (other)"), "another type"),
    ],
)  # fmt: skip
def test_caches_that_must_be_copied(text, reason):
    session, other = runs(text)
    for _ in range(3):
        feeds = feeds_of()
        expected = other.run({**feeds, "buffer": feeds["buffer"].copy()})
        found = (
            session.run(feeds) if "double" in text else session.run(feeds, out={"present": feeds["buffer"]})
        )
        for name, y in expected.items():
            np.testing.assert_array_equal(found[name], y)
    assert reason in str(session.explain())


def test_rows_that_do_not_fit_are_the_error_of_the_interpreter():
    session, _ = runs()
    feeds = feeds_of()
    session.run(feeds, out={"present": feeds["buffer"]})
    session.run(feeds, out={"present": feeds["buffer"]})
    with pytest.raises(sabir.EvaluationError, match="TensorScatter"):
        session.run({**feeds, "at": np.array([1, 11])}, out={"present": feeds["buffer"]})


def test_a_stored_plan_writes_in_place_too(tmp_path):
    path = tmp_path / "cache.onnx"
    sabir.save(sabir.parse(ROWS), path)
    for _ in range(2):
        session = sabir.Session(path, caches={"present": "buffer"})
        for _ in range(2):
            feeds = feeds_of()
            session.run(feeds, out={"present": feeds["buffer"]})
        found = session._engine.run_fast(feeds, {"present": feeds["buffer"]})
        assert found["present"] is feeds["buffer"]
