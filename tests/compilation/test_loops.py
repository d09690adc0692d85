"""Loops whose body is repeated by native code: the results of the interpreter, without Python between steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sabir
from sabir.base import run_with_limits
from sabir.compilation import Compiled
from sabir.compilation.runtime.program import CompiledProgram

TRUE, FALSE = np.ones((), np.bool_), np.zeros((), np.bool_)
TIMES = (0, 1, 15, 16, 17, 40)
HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


@pytest.fixture(name="repeated")
def _repeated(monkeypatch):
    """Whether each loop was repeated by native code."""
    found, original = [], CompiledProgram.repeat

    def repeat(*arguments, **keywords):
        results = original(*arguments, **keywords)
        found.append(results is not None)
        return results

    monkeypatch.setattr(CompiledProgram, "repeat", repeat)
    return found


def run(text, feeds, threads=1):
    return Compiled(sabir.parse(HEAD + text), threads=threads).run(feeds)


def count(number):
    return {"most": np.array(number, np.int64)}


def test_states_and_stacks_of_a_counted_loop():
    text = """g (int64 most, float[n] x, float[n] a) => (y, all, numbers) {
        y, all, numbers = Loop (most, "", x) <body = b (int64 i, bool c, float[n] s) => (bool d, float[n] t, float[n] u, int64 j) {
            d = Identity (c)  m = Mul (s, a)  f = Cast <to = 1> (i)  t = Add (m, f)  u = Neg (s)  j = Identity (i)
        }> }"""
    f = np.float32
    for width in (1, 3, 16, 17):
        x, a = f(np.arange(width)), np.linspace(-1, 1, width, dtype=f)
        for number in TIMES:
            states = [x]
            for i in range(number):
                states.append(states[-1] * a + f(i))
            y, stack, numbers = run(text, {"x": x, "a": a} | count(number)).values()
            np.testing.assert_array_equal(y, states[-1])
            np.testing.assert_array_equal(stack, -np.reshape(states[:-1], (number, width)).astype(f))
            np.testing.assert_array_equal(numbers, np.arange(number))


@pytest.mark.parametrize("most", [True, False])
def test_a_condition_of_the_body_ends_the_loop(repeated, most):
    limit = "most" if most else '""'
    text = f"""g (int64 most, bool go, int64 end) => (y, all) {{
        one = Constant <value = int64 {{1}}> ()
        y, all = Loop ({limit}, go, one) <body = b (int64 i, bool c, int64 s) => (bool d, int64 t, int64 t) {{
            t = Add (s, s)  d = Less (t, end)
        }}> }}"""
    for end, steps in ((2, 1), (1 << 5, 5), (1 << 40, 40)):
        y, stack = run(text, {"go": TRUE, "end": np.array(end)} | count(50)).values()
        assert y == end
        assert stack.tolist() == [2 << i for i in range(steps)]
    if most:
        y, stack = run(text, {"go": TRUE, "end": np.array(1 << 40)} | count(20)).values()
        assert (y, len(stack)) == (1 << 20, 20)
    assert repeated == [True] * (4 if most else 3)
    y, stack = run(text, {"go": FALSE, "end": np.array(9)} | count(50)).values()
    assert (y, len(stack)) == (1, 0)


def test_states_change_places_and_one_value_has_several():
    text = """g (int64 most, float[2] p, float[2] q) => (x, y, z, all) {
        x, y, z, all = Loop (most, "", p, q, q) <body = b (int64 i, bool c, float[2] s, float[2] t, float[2] u)
            => (bool d, float[2] t, float[2] v, float[2] v, float[2] v) { d = Identity (c)  v = Add (s, t) }> }"""
    p, q = np.float32([1, 0.5]), np.float32([0, 2])
    for number in (16, 23):
        s, t, stack = p, q, []
        for _ in range(number):
            s, t = t, s + t
            stack.append(t)
        x, y, z, found = run(text, {"p": p, "q": q} | count(number)).values()
        np.testing.assert_array_equal([x, y, z], [s, t, t])
        np.testing.assert_array_equal(found, stack)


def test_a_decoder_takes_the_best_token_in_each_step(repeated):
    text = """g (int64 most, float[1, 8] h) => (tokens) {
        go_on, state, tokens = Loop (most, go, h, first) <body = b (int64 i, bool c, float[1, 8] s, int64[1] token)
            => (bool d, float[1, 8] t, int64[1] best, int64[1] best) {
            e = Gather (table, token)  r = MatMul (s, mixing)  m = Add (r, e)  t = Tanh (m)
            scores = MatMul (t, heads)  best = ArgMax <axis = 1, keepdims = 0> (scores)
            is_end = Equal (best, end)  one = Squeeze (is_end, axes)  d = Not (one)
        }> }"""
    rng = np.random.default_rng(0)
    weights = {
        "table": rng.standard_normal((11, 8)), "mixing": rng.standard_normal((8, 8)) * 0.7,
        "heads": rng.standard_normal((8, 11)),
    }  # fmt: skip
    model = sabir.parse(HEAD + text.replace("tokens) {", "tokens) {\n" + "\n".join(_constants(weights)), 1))
    h = rng.standard_normal((1, 8)).astype(np.float32)
    state, token, expected = h.astype(np.float64), 3, []
    for _ in range(30):
        state = np.tanh(state @ weights["mixing"] + weights["table"][token])
        token = int(np.argmax(state @ weights["heads"]))
        expected.append([token])
    for threads in (1, 2):
        found = Compiled(model, threads=threads).run({"h": h} | count(30))["tokens"]
        np.testing.assert_array_equal(found, expected)
    assert repeated == [True, True]


def _constants(weights):
    """The weights and the numbers of the decoder as nodes."""
    for name, array in weights.items():
        numbers = ", ".join(map(repr, array.ravel().tolist()))
        shape = ", ".join(map(str, array.shape))
        yield f"{name} = Constant <value = float[{shape}] {{{numbers}}}> ()"
    yield "first = Constant <value = int64[1] {3}> ()  end = Constant <value = int64[1] {99}> ()"
    yield "axes = Constant <value = int64[1] {0}> ()  go = Constant <value = bool {1}> ()"


def test_a_state_that_grows_is_left_to_the_interpreter(repeated):
    text = """g (int64 most, float[n] x) => (y) {
        y = Loop (most, "", x) <body = b (int64 i, bool c, float[k] s) => (bool d, float[m] t) {
            d = Identity (c)  t = Concat <axis = 0> (s, x)
        }> }"""
    (y,) = run(text, {"x": np.float32([1, 2])} | count(20)).values()
    assert y.tolist() == [1, 2] * 21
    assert True not in repeated


def test_errors_are_those_of_the_interpreter():
    text = """g (int64 most, float[4] x) => (y) {
        y = Loop (most, "", x) <body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t) {
            d = Identity (c)  e = Gather (x, i)  t = Add (s, e)
        }> }"""
    with pytest.raises(sabir.EvaluationError, match="Gather"):
        run(text, {"x": np.zeros(4, np.float32)} | count(30))


def test_limits_end_a_loop():
    text = """g (float[2] x, bool go) => (y) {
        y = Loop ("", go, x) <body = b (int64 i, bool c, float[2] s) => (bool c, float[2] t) { t = Neg (s) }> }"""
    feeds = {"x": np.zeros(2, np.float32), "go": TRUE}
    session = sabir.Session(sabir.parse(HEAD + text), engine="compiled", threads=1)
    for limits in (sabir.Limits(iterations=5000), sabir.Limits(seconds=0.3, iterations=None)):
        with pytest.raises(sabir.LimitError):
            run_with_limits(limits, session.run, feeds)


def test_the_number_of_turns_follows_from_a_size_that_a_call_decides():
    """No kernel reads that number: it is computed in the part of the plan that knows the size."""
    text = """g (float[n] x) => (float[w] y) {
        found = NonZero (x)  count = Shape <start = 1> (found)  three = Constant <value_ints = [3]> ()
        most = Min (count, three)  turns = Squeeze (most)  go = Constant <value = bool {1}> ()
        first = Constant <value_floats = [0.0, 0.0]> ()
        y = Loop (turns, go, first) <body = b (int64 j, bool goes, float[k] a) => (bool further, more) {
            further = Identity (goes)  more = Concat <axis = 0> (a, a) }> }"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as that the interpreter runs it
        for nonzero, turns in ((0, 0), (2, 2), (5, 3)):
            y = run(text, {"x": np.float32(np.arange(6) < nonzero)})["y"]
            assert y.tolist() == [0.0] * 2 * 2**turns
