"""Sequences that are split from a tensor, or constructed of tensors: kernels read the tensors."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError
from sabir.compilation import Compiled

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
INTO_LOOP = """s = SplitToSequence <axis = AXIS> (x)  n = SequenceLength (s)  e = SequenceEmpty ()
    out = Loop (n, , e) < body = b (int64 i, bool c, seq(float[A, B, C]) t) => (c, seq(float[A, B, C]) u) {
        v = SequenceAt (s, i)  w = Mul (v, v)  u = SequenceInsert (t, w) } >"""
MAPPED = """s = SplitToSequence <axis = 0> (x)  r = SplitToSequence <axis = 0> (x)
    out = SequenceMap (s, r) < body = b (float[1, 3, 2] v, float[1, 3, 2] w) => (float[1, 3, 2] q) {
        q = Add (v, w) } >"""
MODELS = {
    "an item of each axis": [
        f"i = Constant <value = int64 {{{i}}}> ()  s = SplitToSequence <axis = {axis}, keepdims = {keeps}> (x)"
        " a = SequenceAt (s, i)  y = Add (a, a)"
        for axis, i, keeps in ((0, 3, 0), (1, -1, 1), (-1, 0, 0))
    ],
    "all items concatenated": [
        f"s = SplitToSequence <axis = {axis}, keepdims = {keeps}> (x)"
        f" a = ConcatFromSequence <axis = {to}, new_axis = {new}> (s)  y = Add (a, a)"
        for axis, keeps, to, new in ((1, 1, 0, 0), (2, 0, -1, 1), (0, 0, 0, 0))
    ],
    "one part of known sizes": [
        f"p = Constant <value = int64[2] {{1, 3}}> ()  i = Constant <value = int64 {{{i}}}> ()"
        " s = SplitToSequence <axis = 0> (x, p)  a = SequenceAt (s, i)  y = Add (a, a)"
        for i in (0, -1)
    ],
    "the length": ["s = SplitToSequence <axis = 1> (x)  n = SequenceLength (s)  f = Cast <to = 1> (n)  y = Mul (x, f)"],
    "tensors of which a sequence is constructed": [
        "a = Neg (x)  s = SequenceConstruct (x, a)  y = ConcatFromSequence <axis = -1> (s)",
        "a = Neg (x)  s = SequenceConstruct (x, a)  y = ConcatFromSequence <axis = 1, new_axis = 1> (s)",
        "a = Neg (x)  s = SequenceConstruct (x, a)  i = Constant <value = int64 {-1}> ()  y = SequenceAt (s, i)",
        "s = SequenceConstruct (x, x)  n = SequenceLength (s)  f = Cast <to = 1> (n)  y = Mul (x, f)",
    ],
    "a loop over items": [
        f"{INTO_LOOP.replace('AXIS', axis)}  y = ConcatFromSequence <axis = {to}> (out)"
        for axis, to in (("0", 0), ("2", 1))
    ],
    "a map over items": [f"{MAPPED}  y = ConcatFromSequence <axis = 0> (out)"],
    "a map over a map": [
        f"""{MAPPED}  again = SequenceMap (out) < body = d (float[1, 3, 2] v) => (float[1, 3, 2] q) {{ q = Neg (v) }} >
        y = ConcatFromSequence <axis = 1> (again)"""
    ],
}  # fmt: skip


def model(text):
    return sabir.parse(f"{HEAD} g (float[n,3,2] x) => (y) {{ {text} }}")


@pytest.mark.parametrize("name", MODELS)
def test_kernels_read_the_tensors(name):
    for text in MODELS[name]:
        engine = Compiled(model(text))
        expected = sabir.evaluate(model(text), {"x": X})["y"]
        np.testing.assert_allclose(engine.run({"x": X})["y"], expected, err_msg=text)
        assert not engine.explain({"x": X.shape}).evaluated, text
        found = engine.run_fast({"x": X + 1})
        assert found is not None, text
        np.testing.assert_allclose(
            found["y"], sabir.evaluate(model(text), {"x": X + 1})["y"], rtol=1e-6, err_msg=text
        )


def test_an_item_that_there_is_not_is_the_error_of_the_interpreter():
    text = "g (float[n,2] x, int64 i) => (y) { s = SplitToSequence (x)  a = SequenceAt (s, i)  y = Neg (a) }"
    engine, whole = Compiled(sabir.parse(HEAD + text)), sabir.parse(HEAD + text)
    x = np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(engine.run({"x": x, "i": np.array(2)})["y"], -x[:1])
    messages = set()
    for run in (engine.run, lambda feeds: sabir.evaluate(whole, feeds)):
        with pytest.raises(EvaluationError) as caught:
            run({"x": x, "i": np.array(3)})
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_sequences_that_are_outputs_stay():
    text = """g (float[n,2] x) => (s, y) { s = SplitToSequence (x)  i = Constant <value = int64 {0}> ()
        a = SequenceAt (s, i)  y = Neg (a) }"""
    x = np.ones((3, 2), np.float32)
    found = Compiled(sabir.parse(HEAD + text)).run({"x": x})
    assert [item.tolist() for item in found["s"]] == [[[1, 1]]] * 3
    np.testing.assert_array_equal(found["y"], -x[:1])
