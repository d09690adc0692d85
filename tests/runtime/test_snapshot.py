"""A session is a snapshot: what is done to the model afterwards does not reach it, nor do its constants outlive it."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import sabir
from sabir.base import SchemaError
from sabir.ir import ArrayTensor
from sabir.runtime import _engines
from sabir.runtime._threads import ThreadLimit, _libraries

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.float32([-1, 2])
YES, NO = np.array([True, False])


def model_of():
    return sabir.parse(
        HEAD
        + """g (float[N] x, bool c) => (y, z) {
            two = Constant <value = float[1] {2.0}> ()
            y = Relu (x)
            t = Mul (y, two)
            z = If (c) <then_branch = a () => (float[P] v) { v = Neg (t) },
                        else_branch = b () => (float[P] v) { v = Identity (t) }>
        }"""
    )


def edit(model):
    """Change everything that a run could look at."""
    graph = model.graph
    for inner in list(graph.scopes()):
        for node in inner:
            if node.op in {"Relu", "Neg"}:
                node.op = "Exp"
            if node.op == "Constant":
                node.set(value=ArrayTensor(np.float32([100])))
    graph.inputs[0].name, graph.outputs[0].name = "renamed", "other"
    graph.inputs[0].type = sabir.ir.tensor_type("double", [7])
    graph.outputs[1] = graph.inputs[0]
    model.opsets[""] = 6


def test_edits_reach_no_run_of_a_session():
    model = model_of()
    session, untouched = sabir.Session(model), sabir.Session(model)
    feeds = {"x": X, "c": YES}
    before = {name: value.tolist() for name, value in untouched.run(feeds).items()}
    edit(model)
    for wanted in (None, ["y"], ["z"], ["t"], ["t", "x"]):
        for name, value in session.run(feeds, wanted).items():
            expected = {**before, "t": [0, 4], "x": [-1, 2]}[name]
            assert value.tolist() == expected
    assert [p.name for p in session.inputs] == ["x", "c"]
    assert str(session.inputs[0].type) == "float[N]"
    assert [p.name for p in session.outputs] == ["y", "z"]


def test_a_node_that_no_run_needs_may_be_wrong():
    model = model_of()
    wrong = model.graph.append(sabir.ir.Node("Nonsense", [model.graph.inputs[0]]))
    wrong.output.name = "w"
    session = sabir.Session(model)
    assert session.run({"x": X, "c": NO}, ["y"])["y"].tolist() == [0, 2]
    with pytest.raises(SchemaError, match="Nonsense.*is not an operator"):
        session.run({"x": X, "c": NO}, ["w"])


def test_two_outputs_of_one_name_are_refused():
    model = model_of()
    other = model.graph.outputs[1]
    other.name = "y"
    with pytest.raises(SchemaError, match="two outputs are named 'y'"):
        sabir.Session(model)
    other.name = "z"
    model.graph.outputs[1] = model.graph.outputs[0]  # one value, given twice, is one result
    assert list(sabir.evaluate(model, {"x": X, "c": YES})) == ["y"]


def large(elements=1 << 16):
    b = sabir.Builder(21)
    w = b.initializer("w", np.ones(elements, np.float32))
    x = b.input("x", "float", [1])
    b.output(b.Mul(x, w), "y")
    b.output(b.Add(x, w), "z")
    b.output(b.Sub(x, b.Constant(value=np.ones(elements, np.float32))), "u")
    return b.model()


def test_a_dropped_session_frees_its_constants_at_once():
    data = sabir.dumps(large())
    before = sys.getrefcount(data)
    gc.collect()
    gc.disable()
    try:
        session = sabir.Session(data)
        session.run({"x": np.float32([1])})
        assert sys.getrefcount(data) > before
        del session
        assert sys.getrefcount(data) == before
    finally:
        gc.enable()


def test_the_constants_of_an_untyped_branch_are_freed_too():
    text = """g (bool c, float[N] x) => (z) { z = If (c) <
        then_branch = t () => (v) { v = Neg (x) }, else_branch = e () => (v) { v = Neg (x) }> }"""
    model = sabir.parse(HEAD + text)
    branch = next(iter(model.graph)).graphs[0]
    node = next(iter(branch))
    node.op = "Add"
    node.inputs.append(branch.add_initializer("w", np.ones(1 << 16, np.float32)))
    data = sabir.dumps(model)
    before = sys.getrefcount(data)
    gc.collect()
    gc.disable()
    try:
        session = sabir.Session(data)
        session.run({"c": YES, "x": np.float32([1])})
        del session
        assert sys.getrefcount(data) == before
    finally:
        gc.enable()
    sabir.Session(model)  # a model of the caller's keeps them
    assert sabir.evaluate(model, {"c": YES, "x": np.float32([1])})["z"].sum() == 2 << 16


def test_a_model_of_the_callers_keeps_its_constants():
    model = large()
    sabir.Session(model)
    assert sabir.evaluate(model, {"x": np.float32([1])})["y"].sum() == 1 << 16


def test_lists_of_outputs_share_the_constants():
    session = sabir.Session(sabir.dumps(large()), engine="reference")
    for wanted in (["y"], ["z"], ["y", "z"], ["u"]):
        session.run({"x": np.float32([1])}, wanted)
    constants = [
        [id(x) for x in plan._constants if x is not None] for plan in session._engine._plans.values()
    ]
    assert len(constants) == 5
    assert all(ids == constants[0] for ids in constants)


def threads():
    return [library.num_threads for library in _libraries()]


def test_overlapping_runs_leave_the_threads_as_they_were():
    before = threads()
    first = ThreadLimit(1)
    assert set(threads()) == {1}
    second = ThreadLimit(2)
    assert set(threads()) == {1}
    first.release()
    assert set(threads()) == {2}
    third = ThreadLimit(1)
    second.release()
    assert set(threads()) == {1}
    third.release()
    assert threads() == before


def test_the_threads_of_numpy_are_bounded_only_where_it_computes(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_engines, "ThreadLimit", lambda n: asked.append(n) or ThreadLimit(n))
    head = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => '
    for body, counts in (
        ("(float[N] y) { y = Relu (x) }", [1, 0]),  # a new plan folds constants, a stored one does not
        ("(int64[1,K] y) { y = NonZero (x) }", [2, 1]),  # fast runs look at what a kernel has found
        ("(float[K] y) { y = Unique <axis = 0> (x) }", [3, 2]),
    ):
        for count in counts:
            asked.clear()
            session = sabir.Session(sabir.parse(head + body), engine="compiled", threads=3)
            for _ in range(2):
                session.run({"x": np.float32([1, 2])})
            assert asked == [3] * count


def test_a_limit_that_an_interrupt_leaves_behind_ends_with_its_object():
    before = threads()
    limit = ThreadLimit(1)
    gone = weakref.ref(limit)
    del limit
    assert gone() is None
    assert threads() == before


def test_sessions_of_different_thread_counts_run_side_by_side():
    before = threads()
    sessions = [sabir.Session(large(64), threads=n) for n in (1, 2, 1, 3)]
    errors = []

    def work(session):
        try:
            for _ in range(50):
                session.run({"x": np.float32([1])})
        except Exception as error:  # ruff: ignore[blind-except]  a thread's error is the test's
            errors.append(error)

    running = [threading.Thread(target=work, args=(s,)) for s in sessions]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not errors
    assert threads() == before
