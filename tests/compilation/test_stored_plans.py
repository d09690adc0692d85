"""Plans on disk: read by the next session of the same model, and by no other."""

import gc
import os
import pickle  # ruff: ignore[suspicious-pickle-import]  a foreign entry of the cache may be one
import shutil

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.cache import structure as _structure
from sabir.compilation.cache.stored import KIND
from sabir.compilation.disk import Cache, cache
from sabir.compilation.native import _objects
from sabir.opsets import STANDARD
from support.rooms import OPERATORS, examples_of, model_of

pytestmark = pytest.mark.usefixtures("folder")
TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x) => (float[N,3] y, int64[1] n)
    <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, int64[1] one = {1}> {
    p = MatMul (x, w)
    y = Softmax <axis = 1> (p)
    s = Shape (x)
    zero = Constant <value = int64[1] {0}> ()
    n = Slice (s, zero, one)
}"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def ran(text=TEXT, rows=5, **options):
    """A new session of a model that has run, and its results."""
    session = Compiled(sabir.parse(text), **options)
    x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
    return session, session.run({"x": x})


def was_read(session):
    return [plan.prepared is None for plan in session._plans] == [True]


def test_the_next_session_reads_the_plan():
    first, expected = ran()
    second, found = ran()
    assert not was_read(first)
    assert was_read(second)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_a_stored_plan_serves_other_sizes():
    ran(rows=5)
    session, found = ran(rows=7)
    assert was_read(session)
    assert found["n"].tolist() == [7]
    np.testing.assert_allclose(found["y"].sum(axis=1), np.ones(7), rtol=1e-6)


def test_a_plan_is_found_by_all_that_it_depends_on():
    ran()
    for other in (
        TEXT.replace("{1,2,3", "{1,2,4"),
        TEXT.replace("axis = 1", "axis = 0"),
        TEXT.replace("Softmax", "LogSoftmax"),
        TEXT.replace("N,4] x", "5,4] x"),
    ):
        session, _ = ran(other)
        assert not was_read(session), other


def test_the_model_of_a_file_is_known_by_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("sabir.files._reading._SMALLEST_MAPPED", 1 << 16)
    monkeypatch.setattr("sabir.compilation.cache.identities._SETTLED", -1e9)
    structures = []
    structure = _structure.structure_of
    monkeypatch.setattr(
        _structure, "structure_of", lambda model: structures.append(model) or structure(model)
    )

    def ran_from(path, factor, **options):
        b = sabir.Builder(21)
        x = b.input("x", "float", ["N", 256])
        b.output(b.MatMul(x, factor * np.eye(256, dtype=np.float32)), "y")
        sabir.save(b.model(), path, **options)
        sessions = [sabir.Session(path) for _ in range(2)]
        for session in sessions:
            np.testing.assert_allclose(session.run({"x": x_of})["y"], factor * x_of, rtol=1e-6)
        return was_read(sessions[0]._engine), was_read(sessions[1]._engine)

    x_of = np.linspace(-1, 1, 512, dtype=np.float32).reshape(2, 256)
    assert ran_from(tmp_path / "m.onnx", 2) == (False, True)
    assert ran_from(tmp_path / "m.onnx", 3) == (False, True)  # another file of the same name
    assert not structures
    assert ran_from(tmp_path / "e.onnx", 4, external="e.data") == (False, True)
    assert structures  # the data of that one is in a second file


def test_limits_of_memory_plan_anew_and_limits_of_time_do_not():
    ran()
    session, _ = ran(limits=sabir.Limits(memory=1 << 30))
    assert not was_read(session)
    session, _ = ran(limits=sabir.Limits(seconds=1000))
    assert was_read(session)


def test_another_registry_plans_anew():
    ran()
    session, _ = ran(registry=STANDARD.with_operators())
    assert not was_read(session)


def test_a_plan_that_was_read_is_explained_listed_and_profiled_like_a_new_one():
    first, _ = ran()
    text, lines = (
        str(first.explain()),
        list(first.compile({"x": np.ones((5, 4), np.float32)}).listing("plan")),
    )
    second, _ = ran()
    assert was_read(second)
    assert str(second.explain()) == text
    third, _ = ran()
    plan = third.compile({"x": np.ones((5, 4), np.float32)})
    assert plan.compiled == 0
    assert list(plan.listing("plan")) == lines
    fourth, _ = ran()
    assert [t.kind for t in fourth.profile({"x": np.ones((5, 4), np.float32)}, runs=1).timings]


@pytest.mark.parametrize("has_images", [True, False])
def test_a_plan_has_its_kernels_unless_llvm_links(folder, monkeypatch, has_images):
    monkeypatch.setattr(_objects, "can_place", lambda: has_images)
    session, expected = ran()
    del session
    gc.collect()  # the process drops the machine code
    shutil.rmtree(folder / "objects")
    session, found = ran()
    assert was_read(session) == has_images
    np.testing.assert_array_equal(found["y"], expected["y"])


def test_images_are_made_again_where_llvm_links(monkeypatch):
    _, expected = ran()
    gc.collect()
    monkeypatch.setattr(_objects, "can_place", lambda: False)
    session, found = ran()
    assert was_read(session)
    np.testing.assert_array_equal(found["y"], expected["y"])


class _Foreign:
    def __reduce__(self):
        return os.mkdir, ("made by a foreign plan",)


@pytest.mark.parametrize("data", [b"", b"no pickle", pickle.dumps((1, 2, 3)), pickle.dumps(_Foreign())])
def test_what_is_no_plan_is_replaced_and_never_executed(folder, monkeypatch, data, tmp_path):
    monkeypatch.chdir(tmp_path)
    _, expected = ran()
    (name,) = (entry.name for entry in cache().entries() if entry.kind == KIND)
    assert Cache(folder).put(KIND, bytes.fromhex(name.split(".")[0]), data)
    session, found = ran()
    assert not was_read(session)
    assert not (tmp_path / "made by a foreign plan").exists()
    np.testing.assert_array_equal(found["y"], expected["y"])
    session, _ = ran()
    assert was_read(session)


def test_evaluated_calls_and_large_constants_in_memory_are_planned_anew():
    text = TEXT.replace("int64[1] n)", "int64[2,M] n)").replace("n = Slice (s, zero, one)", "n = NonZero (x)")
    for _ in range(2):
        session, _ = ran(text)
        assert not was_read(session)
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 4])
    b.output(b.MatMul(x, np.ones((4, 1 << 21), np.float32)), "y")
    for _ in range(2):
        session = Compiled(b.model())
        session.run({"x": np.ones((1, 4), np.float32)})
        assert not was_read(session)


def test_a_cache_that_is_off_keeps_no_plan(monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", "off")
    for _ in range(2):
        session, _ = ran()
        assert not was_read(session)


def test_a_plan_of_every_operator_can_be_read():
    """Each class that plans refer to is one that a reader admits."""
    unread = []
    for operator in OPERATORS:
        example = next((e for e in examples_of(operator) if not operator.at(e.opset).removed), None)
        if example is None or operator.random:
            continue
        model, feeds = model_of(operator, example)
        sessions = [Compiled(model) for _ in range(2)]
        try:
            for session in sessions:
                session.run(feeds)
        except sabir.SabirError:
            continue  # an example of an error
        whole = sessions[0]._plans._kept  # a plan in stages is not stored: later ones are compiled in runs
        if any(plan.is_native for plan in whole) and not was_read(sessions[1]):
            unread.append(operator.name)
    assert not unread


# ---------------------------------------------------------------- evaluated calls, and stages


def stored_run(text, feeds, **options):
    """Return whether the plan of a new session came from the disk, the session, and its results."""
    session = Compiled(sabir.parse(text), **options)
    found = session.run(feeds)
    return all(plan.prepared is None for plan in session._plans), session, found


def same_twice(text, *runs):
    """Compare two sessions, the second of which reads the plans; return it."""
    session = None
    for feeds in runs:
        expected = sabir.evaluate(sabir.parse(text), feeds)
        for was_stored in (False, True):
            read, session, found = stored_run(text, feeds)
            assert read == was_stored
            for name, value in expected.items():
                if isinstance(value, np.ndarray) and value.dtype != object:
                    np.testing.assert_allclose(found[name], value, rtol=1e-5)
                    assert found[name].dtype == value.dtype
                elif isinstance(value, np.ndarray):
                    assert found[name].tolist() == value.tolist()
                else:
                    assert [[*x] for x in found[name]] == [[*x] for x in value]
                    assert [*found[name][0].values()] == pytest.approx([*value[0].values()])
    return session


LABELS = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 4]>
g (float[N,2] x) => (z, s) <float[2,2] w = {1, 2, 3, -4}> {
    p = MatMul (x, w)  q = Softmax (p)  k = ArgMax <axis = 1, keepdims = 0> (p)
    s = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["no", "yes"]> (k)
    z = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b"]> (q) }"""


def test_evaluated_calls_are_stored():
    x = np.float32([[1, 2], [-3, 4]])
    session = same_twice(LABELS, {"x": x})
    assert [call.node for call in session.explain().evaluated]


def test_tables_of_texts_are_stored():
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
    g (string[n] x) => (float[n,2] y, string[n] z) {
        y = ai.onnx.ml.OneHotEncoder <cats_strings = ["a", "b"], zeros = 1> (x)
        z = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_strings = ["A"], default_string = "?"> (x) }"""
    session = same_twice(text, {"x": np.array(["b", "a", "c"], object)})
    assert all(plan.prepared is None for plan in session._plans)
    for _ in range(2):
        found = session.run({"x": np.array(["a", "b"], object)})
        assert found["y"].tolist() == [[1, 0], [0, 1]]
        assert found["z"].tolist() == ["A", "?"]
    assert session.run_fast({"x": np.array(["b", "b"], object)})["y"].tolist() == [[0, 1], [0, 1]]


def test_a_branch_between_stages_is_stored():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n] x) => (y) <int64[1] flat = {-1}> {
        found = NonZero (x)  rows = Reshape (found, flat)  picked = Gather (x, rows)
        size = Size (picked)  zero = Constant <value = int64 {0}> ()  none = Equal (size, zero)
        y = If (none) <then_branch = a () => (p) { p = Neg (x) },
            else_branch = b () => (q) { o = Neg (picked)  m = NonZero (o)  r = Cast <to = 1> (m)
                q = Reshape (r, flat) }> }"""
    session = same_twice(text, {"x": np.float32([0, 3, 0, 2])})
    assert session.run({"x": np.float32([5, 3, 0, 2])})["y"].tolist() == [0, 1, 2]
    assert all(plan.prepared is None for plan in session._plans)


def test_calls_with_subgraphs_are_planned_anew():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[N] x) => (y) {
        y = If (c) <then_branch = a () => (s) { s = SequenceConstruct (x, x) },
                    else_branch = b () => (t) { t = SequenceConstruct (x) }> }"""
    for _ in range(2):
        read, _, found = stored_run(text, {"c": np.array(1, np.bool_), "x": np.ones(3, np.float32)})
        assert not read
        assert len(found["y"]) == 2


STAGES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n] x, int64 m) => (y, z) <int64[1] k = {0}, float[1] w = {2}> {
    found = NonZero (x)  rows = Squeeze (found, k)  picked = Gather (x, rows)  y = Mul (picked, w)
    z = Loop (m, "", y) <body = b (int64 i, bool c, float[p] s) => (c, t) { t = Concat <axis = 0> (s, x) }> }"""


def staged(count, turns=2):
    return {"x": np.float32([1] * count + [0] * (6 - count)), "m": np.array(turns)}


def test_stages_are_stored():
    session = same_twice(STAGES, staged(3))
    for count in (4, 5, 2, 3):  # the same pattern: nothing is planned
        found = session.run(staged(count))
        assert found["y"].tolist() == [2] * count
        assert all(plan.prepared is None for plan in session._plans)


def test_a_stage_that_is_not_stored_is_planned():
    stored_run(STAGES, staged(3))
    read, session, found = stored_run(STAGES, staged(1))  # one row has another pattern
    assert not read
    assert found["y"].tolist() == [2]
    for count, turns in ((3, 2), (0, 1), (6, 0)):
        expected = sabir.evaluate(sabir.parse(STAGES), staged(count, turns))
        for found in (session.run(staged(count, turns)), session.run_fast(staged(count, turns))):
            for name, value in expected.items():
                np.testing.assert_array_equal(found[name], value)
    assert stored_run(STAGES, staged(1))[0]  # and stored


def test_stages_from_the_disk_are_explained():
    first = stored_run(STAGES, staged(3))[1]
    read, second, _ = stored_run(STAGES, staged(3))
    assert read
    assert str(second.explain()) == str(first.explain())


def test_branches_of_different_ranks_are_stored():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (bool c, float[n] x) => (y) <int64[1] zero = {0}> {
        r = If (c) <then_branch = a () => (p) { p = Unsqueeze (x, zero) },
                    else_branch = b () => (q) { q = Relu (x) }>
        y = Softmax <axis = -1> (r) }"""
    x = np.linspace(-1, 2, 5, dtype=np.float32)
    same_twice(text, *({"c": np.array(c, np.bool_), "x": x} for c in (1, 0)))


def test_an_absent_optional_is_fed_to_a_stored_plan():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (optional(float[N]) x, float[2] v) => (y, z) { y = OptionalHasElement (x)  z = Exp (v) }"""
    for value in (np.ones(3, np.float32), None):
        for _ in range(2):
            _, _, found = stored_run(text, {"x": value, "v": np.zeros(2, np.float32)})
            assert found["y"].item() == (value is not None)


def test_constants_of_texts_are_stored():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (string[n] x, float[n] v) => (y, w) <string[1] word = {"a"}> { y = Equal (x, word)  w = Exp (v) }"""
    same_twice(text, {"x": np.array(["a", "b"], object), "v": np.float32([1, 2])})
