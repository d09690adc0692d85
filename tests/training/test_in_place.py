"""State that a step writes where it lies: all of it or nothing, and only where no other value is read."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError
from sabir.compilation import Compiled
from sabir.compilation.native import host
from sabir.compilation.runtime import fast as _fast
from sabir.training import SGD, Adam, prepare

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


def listed(array):
    """Numbers as the text syntax writes them."""
    return ", ".join(map(str, array.ravel().tolist()))


def embedding(**options):
    """A model whose steps fail for an index that is out of range."""
    model = sabir.parse(f"""{HEAD}
    g (int64[N] i) => (float[N,4] y) <float[6,4] table = {{{listed(np.linspace(-1, 1, 24))}}}, float[4] b = {{1, 2, 3, 4}}> {{
      rows = Gather (table, i)
      y = Mul (rows, b)
    }}""")
    return sabir.TrainingSession(prepare(model, "mse", optimizer=Adam(0.1)), engine="compiled", **options)


def feeds(*indices):
    return {"i": np.array(indices), "label": np.ones((len(indices), 4), np.float32)}


def bits(session):
    return {name: value.tobytes() for name, value in session.state.items()}


def in_place(session, outputs=("loss",)):
    """The state variables that steps with these outputs write where they lie."""
    return set(session._algorithms[0]._sessions[outputs].session.in_place.values())


def test_all_large_state_of_an_optimizer_is_written_where_it_lies():
    for threads in (1, 2):
        session, twin = embedding(threads=threads), embedding(threads=threads)
        before = {name: id(value) for name, value in session._store.values.items()}
        for _ in range(5):  # the first step, too, writes over the values that the session begins with
            kept = dict(twin._store.values)  # so every step of the twin needs other memory
            for each in (session, twin):
                each.step(feeds(0, 3, 5, 3), 0, outputs="loss")
            assert bits(session) == bits(twin)
            identities = {name: id(value) for name, value in session._store.values.items()}
            same = {name for name, found in identities.items() if found == before[name]}
            assert same == in_place(session) == identities.keys() - {"learning_rate", "training_step"}
            before = identities
            assert not any(kept[name] is value for name, value in twin._store.values.items())


def test_a_step_that_fails_leaves_the_state():
    session = embedding()
    for _ in range(3):
        session.step(feeds(0, 3), 0, outputs="loss")
    before = bits(session)
    for _ in range(2):
        with pytest.raises(EvaluationError, match="is outside"):
            session.step(feeds(0, 9), 0, outputs="loss")
        assert (bits(session), session.steps) == (before, 3)
    session.step(feeds(0, 3), 0, outputs="loss")
    twin = embedding()
    for _ in range(4):
        twin.step(feeds(0, 3), 0, outputs="loss")
    assert bits(session) == bits(twin)


def test_an_interrupt_comes_before_or_after_the_whole_step(monkeypatch):
    session, twin = embedding(), embedding()
    for each in (session, twin):
        for _ in range(3):
            each.step(feeds(1, 2), 0, outputs="loss")
    before, finish = bits(session), _fast.finish(host())

    def interrupted(*, first):
        def run(frame, word):
            if not first:
                finish(frame, word)
            raise KeyboardInterrupt

        return lambda _: run

    twin.step(feeds(1, 2), 0, outputs="loss")
    for first, state, steps in ((True, before, 3), (False, bits(twin), 4)):
        monkeypatch.setattr(_fast, "finish", interrupted(first=first))
        with pytest.raises(KeyboardInterrupt):
            session.step(feeds(1, 2), 0, outputs="loss")
        assert (bits(session), session.steps, session.position) == (state, steps, (0, 0))
    monkeypatch.undo()
    for each in (session, twin):
        each.step(feeds(1, 2), 0, outputs="loss")
    assert bits(session) == bits(twin)


def test_what_follows_in_one_step_may_fail():
    model = sabir.parse(f"""{HEAD}
    g (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}, float[2] m = {{0, 0}}, float[2] v = {{0, 0}}> {{
      y = Mul (x, w)
    }}
    @training {{
      algorithm: first () => (float[2] w1, float[2] m1) {{ m1 = Add (m, y)  w1 = Sub (w, m1) }},
      update_binding: ["w": "w1", "m": "m1"]
    }}
    @training {{
      algorithm: second (int64 i) => (float[2] v1) {{ e = Gather (w, i)  v1 = Add (v, e) }},
      update_binding: ["v": "v1"]
    }}""")
    ours, other = (sabir.TrainingSession(model, engine=engine) for engine in ("compiled", "reference"))
    good = {"x": np.array([1, 2], np.float32), "i": np.array(1)}
    for _ in range(4):
        for session in (ours, other):
            session.step(good)
        assert bits(ours) == bits(other)
        with pytest.raises(EvaluationError, match="is outside"):
            ours.step({**good, "i": np.array(7)})
        assert (bits(ours), ours.steps) == (bits(other), other.steps)
        ours.step({"x": good["x"]}, 0)
        other.step({"x": good["x"]}, 0)
    assert bits(ours) == bits(other)


def test_an_update_of_another_shape_leaves_the_state():
    model = sabir.parse(f"""{HEAD}
    g (float[N] x) => (float y) <float[3] w = {{1, 2, 3}}, float[2] v = {{1, 2}}> {{
      y = ReduceSum <keepdims = 0> (x)
    }}
    @training {{
      algorithm: a () => (float[3] w1, float[N] v1) {{ w1 = Add (w, y)  v1 = Neg (x) }},
      update_binding: ["w": "w1", "v": "v1"]
    }}""")
    session = sabir.TrainingSession(model, engine="compiled")
    good, bad = np.array([1, 2], np.float32), np.array([1, 2, 3], np.float32)
    for _ in range(3):
        session.step({"x": good}, outputs="y")
    assert "w" in in_place(session, ("y",))
    for _ in range(3):
        with pytest.raises(EvaluationError, match="assigns float32\\[3\\]"):
            session.step({"x": bad})
        assert session.state["w"].tolist() == [10, 11, 12]
        assert session.state["v"].tolist() == [-1, -2]


def test_only_values_that_nothing_else_reads_are_written_where_they_lie():
    cases = {  # the body of an algorithm, and what may be written in place
        "w1 = Add (w, y)  v1 = Mul (v, y)": {"w", "v"},
        "w1 = Sub (v, y)  v1 = Mul (w, y)": None,
        "t = Transpose (w)  w1 = Add (t, y)  v1 = Sub (v, t)": set(),
        "w1 = Identity (v)  v1 = Identity (w)": None,
        "w1 = Mul (w, v)  s = ReduceSum (v)  v1 = Add (s, w)": None,
        "s = ReduceSum <keepdims = 0> (w)  w1 = Sub (w, s)  v1 = Mul (v, s)": {"w", "v"},
        "w1 = MatMul (w, y)  v1 = MatMul (v, w)": set(),
        "a, b = Split <axis = 0, num_outputs = 2> (w)  w1 = Concat <axis = 0> (b, a)  v1 = Add (v, w1)": None,
        "w1 = CumSum (w, zero)  v1 = Add (v, w)": None,
        "w1 = Softmax (w)  v1 = Add (v, w1)": None,
    }
    rng = np.random.default_rng(0)
    w, v, x = (rng.standard_normal((4, 4)).astype(np.float32) / 4 for _ in range(3))
    for body, expected in cases.items():
        model = sabir.parse(f"""{HEAD}
        g (float[4,4] x) => (float[4,4] y)
          <float[4,4] w = {{{listed(w)}}}, float[4,4] v = {{{listed(v)}}}, int64 zero = {{0}}> {{ y = Mul (x, x) }}
        @training {{
          algorithm: a () => (float[4,4] w1, float[4,4] v1) {{ {body} }},
          update_binding: ["w": "w1", "v": "v1"]
        }}""")
        ours, other = (sabir.TrainingSession(model, engine=engine) for engine in ("compiled", "reference"))
        for _ in range(4):
            for session in (ours, other):
                session.step({"x": x}, outputs="y")
            for name in ("w", "v"):
                np.testing.assert_allclose(
                    ours.state[name], other.state[name], rtol=1e-5, atol=1e-6, err_msg=f"{body}: {name}"
                )
        if expected is not None:
            assert in_place(ours, ("y",)) == expected, body


def test_a_mark_stays_what_it_is():
    session = embedding()
    session.step(feeds(1, 2), 0)
    mark, expected = session.state.mark(), bits(session)
    for _ in range(2):
        session.state.return_to(mark)
        assert bits(session) == expected
        for _ in range(3):
            session.step(feeds(1, 2), 0)
        assert bits(session) != expected
    read_only = session.state.mark()
    for value in read_only.values.values():
        value.flags.writeable = False
    session._commit(read_only)  # as arrays that another process computed
    kept = {name: value.tobytes() for name, value in read_only.values.items()}
    addresses = {name: value.ctypes.data for name, value in read_only.values.items()}
    del read_only
    session.step(feeds(1, 2), 0)
    assert bits(session) != kept
    assert all(session._store.values[name].ctypes.data != at for name, at in addresses.items())


def test_plain_steps_of_sgd_are_those_of_the_interpreter():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 24])
    w = b.initializer("w", np.linspace(-1, 1, 24 * 8, dtype=np.float32).reshape(24, 8))
    b.output(b.MatMul(x, w), "scores")
    rng = np.random.default_rng(3)
    given = {"x": rng.standard_normal((16, 24)).astype(np.float32), "label": rng.integers(0, 8, 16)}
    model = prepare(b.model(), optimizer=SGD(0.1), clip=0.5, accumulate=2)
    ours, other = (sabir.TrainingSession(model, engine=engine) for engine in ("compiled", "reference"))
    for _ in range(5):
        for session in (ours, other):
            session.step(given, 0, outputs="loss")
        for name, value in other.state.items():
            np.testing.assert_allclose(ours.state[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_step_with_dropout_is_native_and_writes_its_state_where_it_lies():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 24])
    w = b.initializer("w", np.linspace(-1, 1, 24 * 8, dtype=np.float32).reshape(24, 8))
    b.output(b.MatMul(b.Dropout(x, np.float32(0.25)), w), "scores")
    rng = np.random.default_rng(3)
    given = {"x": rng.standard_normal((16, 24)).astype(np.float32), "label": rng.integers(0, 8, 16)}
    model = prepare(b.model(), optimizer=Adam(0.1))
    ours, other = (
        sabir.TrainingSession(model, engine=engine, seed=4) for engine in ("compiled", "reference")
    )
    for _ in range(5):
        one, two = (session.step(given, 0, outputs="loss") for session in (ours, other))
        np.testing.assert_allclose(one["loss"], two["loss"], rtol=1e-5)
    assert in_place(ours) == ours.state.keys() - {"learning_rate", "training_step"}
    for name, value in other.state.items():
        np.testing.assert_allclose(ours.state[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_decisions_on_results_over_inputs():
    own = "result in new memory, not written over its input: "
    for body, expected in (
        ("a = Add (w, y)  b = Mul (v, y)", ["written over its input"] * 2),
        (
            "t = Transpose (w)  a = Add (t, y)  b = Sub (v, y)",
            [own + "its kernel is not plain loops over elements that cannot fail", "written over its input"],
        ),
        ("a = Sub (v, y)  b = Sub (w, y)", [own + "another of these kernels reads the old values"] * 2),
        ("a = Sub (w, y)  b = MatMul (a, y)", [own + "another kernel reads the result"]),
        ("a = MatMul (w, y)  b = Sub (v, y)", [own + "its kernel is not plain loops over elements that cannot fail", "written over its input"]),
    ):  # fmt: skip
        model = sabir.parse(f"""{HEAD} g (float[4,4] w, float[4,4] v, float[4,4] y) => (float[4,4] a, float[4,4] b) {{
            {body} }}""")
        found = Compiled(model, updates={"a": "w", "b": "v"}).explain().decisions
        texts = [d.text for d in found if d.subject == "in place"]
        assert texts == expected, body
    calls = sabir.parse(
        f"{HEAD} g (float[4] w) => (float[4] a, int64[1,N] b) {{ a = Neg (w) b = NonZero (w) }}"
    )
    (decision,) = [
        d for d in Compiled(calls, updates={"a": "w"}).explain().decisions if d.subject == "in place"
    ]
    assert str(decision) == (
        "the plan: results in new memory, not written over inputs: the plan has evaluated calls, which may fail"
    )
