"""Loops whose states only grow: their items are stacked in native code."""

from __future__ import annotations

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.ir import verify
from sabir.opsets import STANDARD, with_internal
from sabir.rewriting import StackAccumulators
from support.lowered import same_bits

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.linspace(-1, 2, 8, dtype=np.float32).reshape(2, 4)


def model_of(text):
    return sabir.parse(HEAD + text)


def rewritten(model):
    """Return whether the pass changes a model, and the copy that it has changed."""
    copy = model.clone()
    changed = StackAccumulators(with_internal(STANDARD)).run(copy)
    verify(copy)
    return changed, copy


def agree(text, *runs, threads=1, stacks=True):
    """Compare both engines, later runs fast; return the engine. `stacks` is whether a state is replaced."""
    model = model_of(text)
    assert rewritten(model)[0] == stacks
    engine = Compiled(model, threads=threads)
    for feeds in runs:
        expected = sabir.evaluate(model, feeds)
        for found in (engine.run(feeds), engine.run_fast(feeds) or engine.run(feeds)):
            for name, value in expected.items():
                if isinstance(value, list):
                    assert [x.tolist() for x in found[name]] == [x.tolist() for x in value]
                else:
                    np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)
                    assert (found[name].shape, found[name].dtype) == (value.shape, value.dtype)
    return engine


def counts(*numbers, **more):
    return [{"n": np.array(n), "x": X, **more} for n in numbers]


@pytest.mark.parametrize("declared", [("float[N,4] s", "t"), ("s", "float[2,4] t"), ("float[2,N] s", "t")])
def test_a_state_whose_declared_size_does_not_grow_stays(declared):
    """A run reports the contradiction."""
    state, result = declared
    text = f"""g (int64 n, float[N,4] x) => (y) {{ y = Loop (n, "", x) <
        body = b (int64 i, bool c, {state}) => (c, {result}) {{ t = Concat <axis = 0> (s, x) }}> }}"""
    assert not rewritten(model_of(text))[0]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_tensor_that_grows_along_an_axis(axis, threads):
    text = f"""g (int64 n, float[2,4] x) => (y, last, all) {{
        y, last, all = Loop (n, "", x, x) <body = b (int64 i, bool c, float[p,q] s, float[2,4] z) => (c, t, w, v) {{
            f = Cast <to = 1> (i)  u = Add (x, f)  w = Tanh (z)  v = Mul (u, w)
            t = Concat <axis = {axis}> (s, u, v) }}> }}"""
    engine = agree(text, *counts(0, 1, 2, 5, 40), threads=threads)
    assert all(program.is_native for program in engine._plans)


def test_a_tensor_that_is_empty_at_first():
    text = """g (int64 n, float[2,4] x) => (y) {
        none = Constant <value = float[0,4] {}> ()
        y = Loop (n, "", none) <body = b (int64 i, bool c, float[p,4] s) => (c, t) {
            u = Exp (x)  t = Concat <axis = 0> (s, u) }> }"""
    agree(text, *counts(0, 1, 3))


def test_a_loop_that_stops_on_its_data():
    text = """g (int64 n, float[2,4] x) => (y, z) {
        yes = Constant <value = bool {1}> ()
        y, z = Loop (n, yes, x, x) <body = b (int64 i, bool c, float[p,4] s, float[2,4] z) => (again, t, w) {
            w = Add (z, z)  m = ReduceMax <keepdims = 0> (w)  top = Constant <value = float {30.0}> ()
            again = Less (m, top)  t = Concat <axis = 0> (s, w) }> }"""
    agree(text, *counts(0, 2, 9))


SEQUENCE = """g (int64 n, int64 k, float[2,4] x) => (y) {
    none = SequenceEmpty ()
    all = Loop (n, "", none) <body = b (int64 i, bool c, seq(float[2,4]) s) => (c, t) {
        f = Cast <to = 1> (i)  u = Add (x, f)  t = SequenceInsert (s, u) }>
    y = READ }"""


@pytest.mark.parametrize(
    "read",
    [
        *(f"ConcatFromSequence <axis = {axis}> (all)" for axis in (0, 1, -1)),
        *(f"ConcatFromSequence <axis = {axis}, new_axis = 1> (all)" for axis in (0, 1, 2, -1)),
        "SequenceAt (all, k)",
        "Identity (all)",
    ],
)
def test_a_sequence_that_is_filled(read):
    runs = [{"k": np.array(k)} | f for k, f in zip((0, -1, 4), counts(1, 2, 5), strict=True)]
    agree(SEQUENCE.replace("READ", read), *runs)


def test_several_readers_of_a_sequence():
    text = SEQUENCE.replace("=> (y)", "=> (y, z, all)").replace(
        "y = READ", "z = SequenceLength (all)  y = ConcatFromSequence <axis = 0> (all)"
    )
    agree(text, *counts(1, 3, k=np.array(0)))


def test_an_empty_sequence_is_the_error_of_the_interpreter():
    for read in ("ConcatFromSequence <axis = 0> (all)", "SequenceAt (all, k)"):
        model = model_of(SEQUENCE.replace("READ", read))
        feeds = counts(0, k=np.array(0))[0]
        with pytest.raises(sabir.EvaluationError) as expected:
            sabir.evaluate(model, feeds)
        engine = Compiled(model)
        engine.run(counts(3, k=np.array(0))[0])
        with pytest.raises(sabir.EvaluationError) as found:
            engine.run(feeds)
        assert str(found.value) == str(expected.value)
    agree(SEQUENCE.replace("READ", "SequenceLength (all)"), *counts(0, 2, k=np.array(0)))


def test_an_index_past_the_end_is_the_error_of_the_interpreter():
    model = model_of(SEQUENCE.replace("READ", "SequenceAt (all, k)"))
    engine = Compiled(model)
    engine.run(counts(3, k=np.array(1))[0])
    with pytest.raises(sabir.EvaluationError) as expected:
        sabir.evaluate(model, counts(3, k=np.array(3))[0])
    with pytest.raises(sabir.EvaluationError) as found:
        engine.run(counts(3, k=np.array(3))[0])
    assert str(found.value) == str(expected.value)


def test_a_loop_in_a_loop():
    text = """g (int64 n, float[2,4] x) => (y) {
        y = Loop (n, "", x) <body = b (int64 i, bool c, float[p,4] s) => (c, t) {
            none = SequenceEmpty ()  two = Constant <value = int64 {2}> ()
            all = Loop (two, "", none) <body = d (int64 j, bool e, seq(float[2,4]) q) => (e, r) {
                k = Add (i, j)  f = Cast <to = 1> (k)  u = Add (x, f)  r = SequenceInsert (q, u) }>
            v = ConcatFromSequence <axis = 0> (all)  t = Concat <axis = 0> (s, v) }> }"""
    agree(text, *counts(0, 1, 3))


GROWING_ITEMS = """a = Unsqueeze (i, z)  k = Add (a, f)  w = Concat <axis = 0> (k, f)  u = Expand (one, w)
    t = Concat <axis = 0> (s, u)"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("u = Exp (x)  t = Concat <axis = 0> (u, s)", "the items come first"),
        ("u = ReduceSum <keepdims = 1> (s)  v = Expand (u, d)  t = Concat <axis = 0> (s, v)", "the state is read"),
        ("u = Exp (x)  v = Concat <axis = 0> (s, u)  t = Neg (v)", "the result is another"),
        (GROWING_ITEMS, "the shape of the items changes"),
    ],
)  # fmt: skip
def test_other_states_stay(body, reason):
    text = f"""g (int64 n, float[2,4] x) => (y) <int64[2] d = {{2, 4}}, int64[1] z = {{0}}, int64[1] f = {{4}}, float one = {{1}}> {{
        y = Loop (n, "", x) <body = b (int64 i, bool c, float[p,4] s) => (c, t) {{ {body} }}> }}"""
    assert reason
    agree(text, *counts(0, 1, 3), stacks=False)


def test_the_values_of_a_rewritten_model_in_the_interpreter():
    """The interpreter runs the rewritten models too: the nodes mean the same in every engine."""
    for read in ("ConcatFromSequence <axis = 1> (all)", "SequenceAt (all, k)", "SequenceLength (all)"):
        model = model_of(SEQUENCE.replace("READ", read))
        changed, copy = rewritten(model)
        assert changed
        for feeds in counts(1, 4, k=np.array(0)):
            found = sabir.Session(copy, registry=with_internal(STANDARD), engine="reference").run(feeds)["y"]
            same_bits(np.asarray(found), sabir.evaluate(model, feeds)["y"], read)
