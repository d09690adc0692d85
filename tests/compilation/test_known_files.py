"""Sessions of files that the cache describes: the model is read when something needs it, and not before."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import sabir
from sabir.compilation.cache.descriptions import KIND
from sabir.compilation.disk import Cache, cache
from sabir.opsets import STANDARD

pytestmark = pytest.mark.usefixtures("folder", "settled")
HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
TEXT = f"""{HEAD} g (float[N,4] x, float[N,3] z) => (float[N,3] y)
    <float[4,3] w = {{1,2,3,4,5,6,7,8,9,10,11,12}}> {{ p = MatMul (x, w) y = Add (p, z) }}"""
WEIGHTS = np.arange(1, 13, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def settled(monkeypatch):
    """Files that were changed a moment ago are known, too."""
    monkeypatch.setattr("sabir.compilation.cache.identities._SETTLED", -1e9)


def saved(path, text=TEXT):
    sabir.save(sabir.parse(text), path)
    return path


def feeds_of(rows=5):
    x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
    return {"x": x, "z": np.float32(np.arange(rows * 3).reshape(rows, 3))}


def check(session, rows=5):
    feeds = feeds_of(rows)
    np.testing.assert_allclose(
        session.run(feeds)["y"], feeds["x"] @ WEIGHTS + feeds["z"], rtol=1e-6, atol=1e-6
    )


def was_read(session):
    """Whether the session has read its model."""
    return session._engine._subject._model is not None


def described():
    return [entry for entry in cache().entries() if entry.kind == KIND]


def test_the_next_session_of_a_file_is_the_same_and_does_not_read_the_model(tmp_path):
    path = saved(tmp_path / "m.onnx")
    first = sabir.Session(path)
    assert not described()
    check(first)
    second = sabir.Session(str(path))
    assert (second.inputs, second.outputs, repr(second)) == (first.inputs, first.outputs, repr(first))
    check(second)
    check(second, rows=7)
    with pytest.raises(sabir.FeedError, match="has no input 'v'"):
        second.run({"v": 1})
    assert was_read(first)
    assert not was_read(second)


def test_what_needs_the_model_reads_it(tmp_path):
    path = saved(tmp_path / "m.onnx")
    check(sabir.Session(path))
    feeds = feeds_of()
    needs = {
        "another value": lambda s: np.testing.assert_allclose(
            s.run(feeds, "p")["p"], feeds["x"] @ WEIGHTS, rtol=1e-6, atol=1e-6
        ),
        "another pattern of shapes": lambda s: check(s, rows=1),
        "an explanation": lambda s: s.explain({"x": [5, 4], "z": [5, 3]}),
        "limits": lambda s: sabir.base.run_with_limits(sabir.Limits(memory=1 << 28), check, s),
    }
    for name, need in needs.items():
        session = sabir.Session(path)
        assert not was_read(session), name
        need(session)
        assert was_read(session), name
        check(session)


def test_a_copy_has_the_same_plans_and_is_described_itself(tmp_path):
    check(sabir.Session(saved(tmp_path / "m.onnx")))
    copy = tmp_path / "copy.onnx"
    copy.write_bytes((tmp_path / "m.onnx").read_bytes())
    for expected in (True, False):
        session = sabir.Session(copy)
        check(session)
        assert was_read(session) == expected
        assert [plan.prepared for plan in session._engine._plans] == [None]
    saved(copy, TEXT.replace("{1,2,3", "{2,2,3"))
    session = sabir.Session(copy)
    assert was_read(session)
    assert session.run(feeds_of())["y"][0, 0] == np.float32(feeds_of()["x"][0] @ [2, 4, 7, 10])


@pytest.mark.parametrize("is_mapped", [False, True])
def test_large_constants_are_read_from_their_places(tmp_path, monkeypatch, is_mapped):
    if is_mapped:
        monkeypatch.setattr("sabir.files._reading._SMALLEST_MAPPED", 1)
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal((200, 200)).astype(np.float32) for _ in range(2))
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 200])
    b.output(b.Add(b.MatMul(x, first), b.MatMul(x, second)), "y")
    b.output(b.Gather(first, [3, 1]), "rows")
    sabir.save(b.model(), tmp_path / "m.onnx")
    fed = rng.standard_normal((3, 200)).astype(np.float32)
    for expected in (True, False):
        session = sabir.Session(tmp_path / "m.onnx")
        found = session.run({"x": fed})
        assert was_read(session) == expected
        np.testing.assert_allclose(found["y"], fed @ (first + second).astype(np.float64), atol=1e-4)
        np.testing.assert_array_equal(found["rows"], first[[3, 1]])


def test_a_file_that_was_changed_a_moment_ago_is_not_described(tmp_path, monkeypatch):
    monkeypatch.setattr("sabir.compilation.cache.identities._SETTLED", 1e9)
    for _ in range(2):
        session = sabir.Session(saved(tmp_path / "m.onnx"))
        check(session)
        assert was_read(session)
    assert not described()


def test_a_large_file_that_changes_is_not_read_as_what_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("sabir.files._reading._SMALLEST_MAPPED", 1)
    path = saved(tmp_path / "m.onnx")
    check(sabir.Session(path))
    session = sabir.Session(path)
    check(session)
    assert not was_read(session)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    check(session)  # nothing needs the model
    with pytest.raises(sabir.FileError, match="changed since its session was made"):
        session.run(feeds_of(), "p")
    assert was_read(sabir.Session(path))


def test_outputs_that_are_no_tensors_are_described(tmp_path):
    head = HEAD.replace("21]", '21, "ai.onnx.ml" : 3]')
    maps = f"""{head} g (float[N,2] x) => (seq(map(int64, float)) y, z) {{
        z = Exp (x)  y = ai.onnx.ml.ZipMap <classlabels_int64s = [3, 5]> (z) }}"""
    sequence = f"{HEAD} g (float[N,2] x) => (seq(float[N,2]) y) {{ y = SequenceConstruct (x) }}"
    feeds = {"x": np.zeros((1, 2), np.float32)}
    for name, text, expected in (("m", maps, {3: 1.0, 5: 1.0}), ("s", sequence, [[0.0, 0.0]])):
        path = saved(tmp_path / f"{name}.onnx", text)
        first = sabir.Session(path)
        first.run(feeds)
        second = sabir.Session(path)
        (item,) = second.run(feeds)["y"]
        assert (item if name == "m" else item.tolist()) == expected
        assert second.outputs == first.outputs
        assert not was_read(second)


def test_only_what_a_description_can_stand_for_is_described(tmp_path):
    optional = f"{HEAD} g (float[N] x) => (optional(float[N]) y) {{ y = Optional (x) }}"
    default = (
        f"{HEAD} g (float[2] x, float[2] b) => (float[2] y) <float[2] b = {{1, 2}}> {{ y = Add (x, b) }}"
    )
    unsorted = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Neg (t) t = Abs (x) }}"
    feeds = {"x": np.float32([1, 2])}
    for number, text in enumerate((optional, default, unsorted)):
        path = saved(tmp_path / f"{number}.onnx", text)
        for _ in range(2):
            if text is unsorted:
                with pytest.warns(sabir.SabirWarning, match="topological order"):
                    session = sabir.Session(path)
            else:
                session = sabir.Session(path)
            session.run(feeds)
            assert was_read(session), text
    b = sabir.Builder(21)
    b.output(b.MatMul(b.input("x", "float", [2]), np.ones((2, 300), np.float32)), "y")
    sabir.save(b.model(), tmp_path / "external.onnx", external="data")
    for _ in range(2):
        session = sabir.Session(tmp_path / "external.onnx")
        session.run(feeds)
        assert was_read(session)
    assert not described()


def test_other_options_read_the_model(tmp_path):
    path = saved(tmp_path / "m.onnx")
    check(sabir.Session(path))
    for options in (
        {"newer_opsets": True},
        {"registry": STANDARD.with_operators()},
        {"limits": sabir.Limits(memory=1 << 30)},
    ):
        session = sabir.Session(path, **options)
        assert was_read(session), options
        check(session)
    assert "Runner" in repr(sabir.Session(path, strict=True)._engine)
    assert not was_read(sabir.Session(path, threads=2))


def test_what_is_no_description_is_made_again(tmp_path, folder):
    path = saved(tmp_path / "m.onnx")
    check(sabir.Session(path))
    (entry,) = described()
    key = bytes.fromhex(entry.name.split(".")[0])
    good = json.loads(bytes(cache().get(KIND, key)))
    name, structure, numbers, (inputs, outputs), places = good

    def with_input(port):
        return [name, structure, numbers, [[port, *inputs[1:]], outputs], places]

    shapes = [
        [], {}, 7, good[:3], [name, structure, "many", [inputs, outputs], places], [name, structure, numbers, 1, places],
        with_input(["x"]), with_input(["x", 1, 9999, None]), with_input(["x", 1, 1, [{}]]), with_input(["x", 1, 1, ""]),
        [*good[:4], {"w": [1 << 40, "float", [4]]}], [*good[:4], {"w": [0, "float", [-4]]}], [*good[:4], ["w"]],
    ]  # fmt: skip
    bad = [b"", b"\xff", b"[" * 100_000, *(json.dumps(each).encode() for each in shapes)]
    for data in bad:
        assert Cache(folder).put(KIND, key, data)
        session = sabir.Session(path)
        assert was_read(session), data[:80]
    check(session)
    assert json.loads(bytes(cache().get(KIND, key))) == good
    assert not was_read(sabir.Session(path))
    for entry in described():
        (folder / KIND / entry.name).unlink()
    session = sabir.Session(path)
    check(session)  # its plan is there
    assert was_read(session)
    assert not was_read(sabir.Session(path))


def test_a_process_that_runs_a_known_file_imports_no_compiler_and_no_reader(tmp_path):
    path = saved(tmp_path / "m.onnx")
    code = f"""
import sys
import numpy as np
import sabir
from sabir.compilation.cache import identities as _identities
_identities._SETTLED = -1e9
session = sabir.Session({str(path)!r}, engine="compiled")
session.run({{"x": np.ones((5, 4), np.float32), "z": np.ones((5, 3), np.float32)}})
print("\\n".join(sys.modules))"""
    for _ in range(2):
        done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    found = set(done.stdout.split())
    assert "sabir.compilation.runtime.running" in found
    later = (
        "google",
        "llvmlite",
        "sabir.serial",
        "sabir.proto",
        "sabir.inference",
        "sabir.loops",
        "sabir.opsets.onnx",
    )
    assert not {m for m in found if m.startswith(later)}
    assert not found & {
        "sabir.compilation.native._compile",
        "sabir.scheduling._schedule",
        "sabir.evaluation._engine",
        "sabir.compilation.engine.planning",
    }
