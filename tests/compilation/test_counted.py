"""Results whose number a run decides, found by kernels: places, different elements, boxes that do not overlap."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.opsets import STANDARD, with_internal
from support.lowered import same_bits
from support.scalar import ScalarBackend

HEAD = '<ir_version: 10, opset_import: ["" : 21, "sabir.internal" : 1]>'
TYPES = {
    np.float32: "float", np.float64: "double", np.float16: "float16", np.int64: "int64", np.uint64: "uint64",
    np.int8: "int8", np.uint32: "uint32", np.bool_: "bool",
}  # fmt: skip


def model_of(text):
    return sabir.parse(HEAD.replace(', "sabir.internal" : 1', "") + text)


def agree(text, *runs, threads=1):
    """Compare both engines, each run twice, the second time fast; return the engine."""
    model = model_of(text)
    engine = Compiled(model, threads=threads)
    for feeds in runs:
        expected = sabir.evaluate(model, feeds)
        for found in (engine.run(feeds), engine.run_fast(feeds)):
            assert found is not None
            for name, value in expected.items():
                same_bits(found[name], value, (text, name))
    assert all(program.is_native for program in engine._plans)
    return engine


def marks(*shape, part=0.5, seed=3):
    return np.random.default_rng(seed).random(shape) < part


# ---------------------------------------------------------------- kernels against plain loops


def internal(text, feeds):
    """Compare the kernel of an internal operator with plain loops; return the result."""
    registry = with_internal(STANDARD)
    model = sabir.parse(HEAD + text)
    expected = Compiled(model, registry=registry, backend=ScalarBackend()).run(feeds)["y"]
    found = Compiled(model, registry=registry).run(feeds)["y"]
    assert found[0] == expected[0]
    return found, expected


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_places(count):
    for part in (0, 0.1, 0.9, 1):
        x = marks(count, part=part)
        found, expected = internal(
            "g (bool[n] x) => (int64[m] y) { y = sabir.internal.TruePlaces (x) }", {"x": x}
        )
        np.testing.assert_array_equal(found[: found[0] + 1], expected[: found[0] + 1])


@pytest.mark.parametrize("ascending", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_different_elements(dtype, ascending):
    text = f"""g ({TYPES[dtype]}[n] x) => (int64[m] y) {{
        y = sabir.internal.Distinct <sorted = {ascending}> (x) }}"""
    for count in (1, 2, 17):
        x = np.random.default_rng(count).integers(0, 5, count).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            x[::3] -= 2
            x[1::4] = np.nan
            x[x == 0] = [(-1.0) ** n * 0.0 for n in range(np.count_nonzero(x == 0))]
        elif np.issubdtype(dtype, np.integer):
            x[::3] = np.iinfo(dtype).max
            x[1::3] = np.iinfo(dtype).min
        found, expected = internal(text, {"x": x})
        rows, wanted = found[1:].reshape(3, count), expected[1:].reshape(3, count)
        np.testing.assert_array_equal(rows[1], wanted[1])
        np.testing.assert_array_equal(rows[[0, 2], : found[0]], wanted[[0, 2], : found[0]])


def boxes(batches, classes, count, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((batches, count, 4)).astype(np.float32)
    s = (rng.integers(0, 9, (batches, classes, count)) / 9).astype(np.float32)  # with ties
    s[rng.random(s.shape) < 0.1] = np.nan
    s[rng.random(s.shape) < 0.1] = -0.0
    x[rng.random(x.shape) < 0.01] = np.nan
    x[rng.random(x.shape) < 0.01] = np.inf
    return {"b": x, "s": s}


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 20), (1, 2, 33), (0, 1, 5)])
def test_boxes(sizes, centred):
    text = f"""g (float[i,n,4] b, float[i,c,n] s, int64[1] m, float[1] o) => (int64[k] y) {{
        y = sabir.internal.Suppress <center_point_box = {centred}> (b, s, m, o) }}"""
    for most, overlap in ((1, 0.5), (4, 0.0), (99, 0.2), (99, -1.0), (0, 0.5), (-3, 0.5)):
        feeds = boxes(*sizes) | {"m": np.array([most]), "o": np.float32([overlap])}
        with np.errstate(all="ignore"):
            found, expected = internal(text, feeds)
        np.testing.assert_array_equal(found[: 3 * found[0] + 1], expected[: 3 * found[0] + 1])


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("threads", [1, 2])
def test_the_indices_of_elements_that_are_not_zero(threads):
    for shape in ((70,), (1,), (5, 7), (3, 4, 2), (2, 1, 3, 5)):
        axes = ",".join("abcd"[: len(shape)])
        text = f"g (float[{axes}] x) => (y, z) {{ y = NonZero (x)  r = Mul (x, x)  z = NonZero (r) }}"
        cases = [np.where(marks(*shape, part=part), -1.5, -0.0).astype(np.float32) for part in (0.5, 0, 1)]
        agree(text, *({"x": x} for x in cases), threads=threads)


def test_selected_parts():
    text = """g (int16[n,m] x, bool[k] c) => (y, z) {
        y = Compress <axis = -1> (x, c)  d = Cast <to = 9> (c)  z = Compress (x, d) }"""
    x = np.arange(30, dtype=np.int16).reshape(5, 6)
    agree(text, *({"x": x, "c": marks(count, part=part)} for count in (1, 4, 6) for part in (0, 0.5, 1)))


def test_flags_past_the_end_are_errors_of_the_interpreter():
    text = "g (float[n,m] x, bool[k] c) => (y) { y = Compress <axis = 0> (x, c) }"
    feeds = {"x": np.ones((2, 3), np.float32), "c": np.array([True, False, True])}
    with pytest.raises(sabir.EvaluationError) as expected:
        sabir.evaluate(model_of(text), feeds)
    engine = agree(text, feeds | {"c": np.array([True, False, False])})
    assert engine.run_fast(feeds) is None
    with pytest.raises(sabir.EvaluationError) as found:
        engine.run(feeds)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("ascending", [0, 1])
def test_all_outputs_of_unique(ascending):
    text = f"g (float[n,m] x) => (y, i, v, c) {{ y, i, v, c = Unique <sorted = {ascending}> (x) }}"
    rng = np.random.default_rng(1)
    agree(text, *({"x": np.float32(rng.integers(0, most, (4, 9)))} for most in (1, 3, 100)))
    engine = agree(text.replace("y, i, v, c", "v"), {"x": np.float32([[np.nan, 0, -0.0, np.nan]])})
    assert len(list(engine._plans)) == 2


def test_elements_without_kernels_are_found_by_the_interpreter():
    words = np.array(["b", "", "b", "a"], object)
    text = """g (string[n] x, bool[n] c) => (a, b, d) {
        a = NonZero (x)  b = Compress <axis = 0> (x, c)  d = Unique (x) }"""
    model = model_of(text)
    feeds = {"x": words, "c": np.array([True, False, True, True])}
    expected = sabir.evaluate(model, feeds)
    for name, value in Compiled(model).run(feeds).items():
        assert value.tolist() == expected[name].tolist()


NMS = """g (float[i,n,4] b, float[i,c,n] s, float[t] least) => (y, z) <int64[1] most = {4}, float[1] o = {0.3}> {
    y = NonMaxSuppression (b, s, most, o, least)
    z = NonMaxSuppression <center_point_box = 1> (b, s, most, o) }"""


@pytest.mark.parametrize("threads", [1, 2])
def test_boxes_that_do_not_overlap_better_ones(threads):
    feeds = [boxes(2, 2, count, seed) for seed, count in enumerate((3, 4, 5, 40, 700))]
    agree(
        NMS.replace("float[t]", "float[1]"),
        *(f | {"least": np.float32([0.4])} for f in feeds),
        threads=threads,
    )


def test_a_limit_whose_presence_a_run_decides_is_evaluated():
    model = model_of(NMS)
    for least in (np.float32([0.4]), np.zeros(0, np.float32)):
        feeds = boxes(1, 2, 12) | {"least": least}
        found = Compiled(model).run(feeds)
        for name, value in sabir.evaluate(model, feeds).items():
            same_bits(found[name], value, name)


def test_boxes_that_match_no_scores_are_errors_of_the_interpreter():
    feeds = boxes(1, 2, 6) | {"least": np.float32([0.4])}
    feeds["s"] = np.asarray(feeds["s"])[:, :, :5]
    text = NMS.replace("float[i,n,4]", "float[i,p,4]")
    with pytest.raises(sabir.SabirError) as expected:
        sabir.evaluate(model_of(text), feeds)
    with pytest.raises(sabir.SabirError) as found:
        Compiled(model_of(text)).run(feeds)
    assert str(found.value) == str(expected.value)


def test_a_result_may_be_a_view_of_none_of_the_others():
    text = "g (int64[n] x) => (i, c) { y, i, v, c = Unique (x) }"
    engine = agree(text, {"x": np.array([3, 1, 3])})
    first, second = (engine.run_fast({"x": np.array([3, 1, 3])}) for _ in range(2))
    arrays = [*first.values(), *second.values()]
    assert not any(np.may_share_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n])


def test_many_numbers_of_results_have_runs_that_follow_the_sizes():
    text = """g (float[n] x) => (y) <int64[1] k = {0}> {
        found = NonZero (x)  rows = Squeeze (found, k)  picked = Gather (x, rows)  y = Tanh (picked) }"""
    engine = Compiled(model_of(text))
    x = np.linspace(1, 2, 40, dtype=np.float32)
    for turn in range(2):
        for count in (*range(2, 40), 1, 0):
            feeds = {"x": np.where(np.arange(40) < count, x, np.float32(0))}
            found = engine.run_fast(feeds) or engine.run(feeds)
            np.testing.assert_allclose(found["y"], np.tanh(x[:count]), rtol=1e-6)
            if turn and count > 1:
                assert engine.run_fast(feeds) is not None


def test_brain_floats():
    x = np.array([2, -1, 2, 0], ml_dtypes.bfloat16)
    text = "g (bfloat16[n] x) => (y, z) { y = Unique (x)  z = NonZero (x) }"
    model = sabir.parse(HEAD.replace('"" : 21, "sabir.internal" : 1', '"" : 28') + text)
    found = Compiled(model).run({"x": x})
    assert found["y"].tolist() == [-1, 0, 2]
    assert found["z"].tolist() == [[0, 1, 2]]
