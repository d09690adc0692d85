"""Decoders with buffers as caches: step by step what the decoder computes that joins its caches."""

import numpy as np
import pytest

import sabir
from sabir.base import SchemaError, UnsupportedError
from sabir.generation import with_cache_buffers
from sabir.ir import verify

CAPACITY = 12
PAIRS = {"present_key": "past_key", "present_value": "past_value"}
ALONG_ROWS = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[B,H,S,8] q, float[B,K,P,8] past_key, float[B,K,P,8] past_value, float[B,K,S,8] k, float[B,K,S,8] v)
  => (float[B,H,S,8] y, float[B,K,T,8] present_key, float[B,K,T,8] present_value, int64[N] length) {
  present_key = Concat <axis = -2> (past_key, k)
  present_value = Concat <axis = 2> (past_value, v)
  kt = Transpose <perm = [0, 1, 3, 2]> (present_key)
  s = MatMul (q, kt)
  p = Softmax (s)
  y = MatMul (p, present_value)
  length = Shape <start = 2, end = 3> (past_key)
}
"""
TURNED = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[B,H,S,8] q, float[B,P,K,8] past_key, float16[B,P,K,8] past_value, float[B,K,S,8] k, float[B,K,S,8] v)
  => (float[B,H,S,8] y, float[B,T,K,8] present_key, float16[B,T,K,8] present_value) {
  ahead = Transpose <perm = [0, 2, 1, 3]> (past_key)
  keys = Concat <axis = 2> (ahead, k)
  present_key = Transpose <perm = [0, 2, 1, 3]> (keys)
  wide = Cast <to = 1> (past_value)
  values_ahead = Transpose <perm = [0, 2, 1, 3]> (wide)
  values = Concat <axis = -2> (values_ahead, v)
  apart = Transpose <perm = [0, 2, 1, 3]> (values)
  present_value = Cast <to = 10> (apart)
  kt = Transpose <perm = [0, 1, 3, 2]> (keys)
  s = MatMul (q, kt)
  p = Softmax (s)
  y = MatMul (p, values)
}
"""
ATTENTION = """
<ir_version: 12, opset_import: ["" : VERSION]>
g (float[B,H,S,8] q, float[B,K,P,8] past_key, float[B,K,P,8] past_value, float[B,K,S,8] k, float[B,K,S,8] v)
  => (float[B,H,S,8] y, float[B,K,T,8] present_key, float[B,K,T,8] present_value) {
  none = Identity (q)
  y, present_key, present_value = Attention <is_causal = 1, softcap = 2.0> (q, k, v, , past_key, past_value)
}
"""
PACKED = """
<ir_version: 12, opset_import: ["" : 23]>
g (float[B,S,32] q, float[B,2,P,8] past_key, float[B,2,P,8] past_value, float[B,S,16] k, float[B,S,16] v)
  => (float[B,S,32] y, float[B,2,T,8] present_key, float[B,2,T,8] present_value) {
  y, present_key, present_value = Attention <is_causal = 1, q_num_heads = 4, kv_num_heads = 2> (q, k, v, , past_key, past_value)
}
"""


def rows(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def caches(model, count, axis):
    """Zeros for each cache of a model, of some rows."""
    found = {}
    for past in PAIRS.values():
        kind = model.graph.value(past).type
        shape = [2, 2, 2, 8]
        shape[axis] = count
        found[past] = np.zeros(shape, kind.element.dtype)
    return found


def compare(text, engine, axis=2, *, packed=False, heads=2, tolerance=1e-5):
    """Run a decoder, and that with buffers, over several steps."""
    model = sabir.parse(text)
    buffered = with_cache_buffers(model, PAIRS)
    verify(buffered)
    sabir.check(buffered)
    plain = sabir.Session(model, engine="reference")
    session = sabir.Session(buffered, engine=engine, caches=PAIRS, sizes=["past_length"])
    joined, buffers = caches(model, 0, axis), caches(buffered, CAPACITY, axis)
    rng, length = np.random.default_rng(1), 0
    for count in (3, 1, 1, 1, 1, 2, 1):
        q, kv = (
            (2, count, 32) if packed else (2, heads, count, 8),
            (2, count, 16) if packed else (2, 2, count, 8),
        )
        feeds = {"q": rows(rng, q), "k": rows(rng, kv), "v": rows(rng, kv)}
        expected = plain.run({**feeds, **joined})
        out = {present: buffers[past] for present, past in PAIRS.items()}
        found = session.run({**feeds, **buffers, "past_length": np.int64([length])}, out=out)
        length += count
        for present, past in PAIRS.items():
            joined[past] = expected.pop(present)
            assert found.pop(present) is buffers[past]
            filled = np.take(buffers[past], range(length), axis)
            np.testing.assert_allclose(filled, joined[past], rtol=tolerance, atol=tolerance)
            assert not np.take(buffers[past], range(length, CAPACITY), axis).any()
        assert found.keys() == expected.keys()
        for name, y in expected.items():
            np.testing.assert_allclose(found[name], y, rtol=tolerance, atol=tolerance)
    return session, buffers, length


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_concat_along_the_rows(engine):
    compare(ALONG_ROWS, engine)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_concat_between_transpositions_and_casts(engine):
    """The decoder reads the new values as rounded to the halves of the cache."""
    compare(TURNED, engine, axis=1, tolerance=2e-3)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("version", [23, 24, 25])
def test_attention_of_the_standard(version, engine):
    compare(ATTENTION.replace("VERSION", str(version)), engine, heads=4)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_attention_with_all_heads_on_one_axis(engine):
    compare(PACKED, engine, packed=True)


def test_a_step_is_native_and_copies_no_cache():
    session, buffers, length = compare(ALONG_ROWS, "compiled")
    feeds = {name: np.ones((2, n, 1, 8), np.float32) for name, n in (("q", 2), ("k", 2), ("v", 2))}
    feeds |= {**buffers, "past_length": np.int64([length])}
    found = session._engine.run_fast(feeds, {present: buffers[past] for present, past in PAIRS.items()})
    assert found["present_key"] is buffers["past_key"]
    plan = session._engine.compile(feeds)
    assert "\n".join(plan.listing("schedule")).count("unless the same") == len(PAIRS)
    assert "evaluated" not in str(plan.explain()).replace("nothing evaluated", "")


def test_rows_past_the_capacity_are_an_error():
    session, buffers, _ = compare(ALONG_ROWS, "compiled")
    feeds = {name: np.ones((2, n, 1, 8), np.float32) for name, n in (("q", 2), ("k", 2), ("v", 2))}
    with pytest.raises(sabir.EvaluationError):
        session.run({**feeds, **buffers, "past_length": np.int64([CAPACITY])})


GROUPED = """
<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[B,S,32] q, float[B,2,P,4] past_key, float[B,2,P,4] past_value, int32[B] last, int64[B,T] mask)
  => (float[B,S,16] y, float[B,2,T,4] present_key, float[B,2,T,4] present_value) {
  shape = Shape <start = 1> (mask)
  zero = Constant <value = int64 {0}> ()
  count = Gather (shape, zero)
  total = Cast <to = 6> (count)
  y, present_key, present_value = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2> (
    q, , , past_key, past_value, last, total)
}
"""


def test_group_query_attention_has_buffers_already():
    model = sabir.parse(GROUPED)
    buffered = with_cache_buffers(model, PAIRS)
    assert [v.name for v in buffered.graph.inputs] == [v.name for v in model.graph.inputs]
    assert {str(v.type) for v in buffered.graph.inputs[1:3]} == {"float[B,2,cache_capacity,4]"}
    assert {str(v.type) for v in buffered.graph.outputs[1:]} == {"float[B,2,max(T,cache_capacity),4]"}
    session = sabir.Session(buffered, caches=PAIRS)
    buffers = {past: np.zeros((1, 2, CAPACITY, 4), np.float32) for past in PAIRS.values()}
    joined = {past: np.zeros((1, 2, 0, 4), np.float32) for past in PAIRS.values()}
    rng, length = np.random.default_rng(3), 0
    for count in (2, 1, 1, 1):
        length += count
        feeds = {
            "q": rows(rng, (1, count, 32)), "last": np.int32([length - 1]), "mask": np.ones((1, length), np.int64)
        }  # fmt: skip
        expected = sabir.evaluate(model, {**feeds, **joined})
        found = session.run(
            {**feeds, **buffers}, out={present: buffers[past] for present, past in PAIRS.items()}
        )
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-5)
        for present, past in PAIRS.items():
            joined[past] = expected[present]
            np.testing.assert_allclose(buffers[past][:, :, :length], joined[past], rtol=1e-6)


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ({"present": "past_key"}, SchemaError, "no output 'present'"),
        ({"present_key": "past"}, SchemaError, "no input 'past'"),
        ({"y": "past_key"}, UnsupportedError, "is not joined with new rows by a Concat"),
        ({"present_key": "past_value"}, UnsupportedError, "is not joined with new rows"),
    ],
)
def test_pairs_that_are_no_cache(pairs, error, message):
    with pytest.raises(error, match=message):
        with_cache_buffers(sabir.parse(ALONG_ROWS), pairs)


def test_an_output_in_another_order_is_refused():
    text = TURNED.replace(
        "present_key = Transpose <perm = [0, 2, 1, 3]> (keys)", "present_key = Identity (keys)"
    )
    with pytest.raises(UnsupportedError, match="another order of axes"):
        with_cache_buffers(
            sabir.parse(text.replace("float[B,T,K,8] present_key", "float[B,K,T,8] present_key")), PAIRS
        )


def test_one_cache_of_attention_alone_is_refused():
    with pytest.raises(UnsupportedError, match="only one tensor is among the pairs"):
        with_cache_buffers(sabir.parse(PACKED), {"present_key": "past_key"})
