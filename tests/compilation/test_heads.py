"""Heads that share keys and values are computed without copies of these."""

import numpy as np

import sabir
from sabir.compilation import Compiled
from support.thresholds import compiled_by, texts_on

RNG = np.random.default_rng(0)
GROUPED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,6,S,8] q, float[B,2,P,8] past, float[B,2,S,8] k, float[B,1,S,T] mask)
    => (float[B,S,48] y, float[B,2,T,8] keys) {
  keys = Concat <axis = 2> (past, k)
  one = Constant <value_ints = [2]> ()
  apart = Unsqueeze (keys, one)
  count = Constant <value_ints = [1, 1, 3, 1, 1]> ()
  wide = Expand (apart, count)
  shape = Constant <value_ints = [0, 6, -1, 8]> ()
  repeated = Reshape (wide, shape)
  turned = Transpose <perm = [0, 1, 3, 2]> (repeated)
  scores = MatMul (q, turned)
  masked = Add (scores, mask)
  p = Softmax <axis = -1> (masked)
  heads = MatMul (p, repeated)
  rows = Transpose <perm = [0, 2, 1, 3]> (heads)
  flat = Constant <value_ints = [0, 0, 48]> ()
  y = Reshape (rows, flat)
}"""


def expected(q, past, k, mask):
    q, past, k, mask = (x.astype(np.float64) for x in (q, past, k, mask))
    keys = np.repeat(np.concatenate([past, k], 2), 3, 1)
    scores = np.exp(q @ keys.swapaxes(2, 3) + mask)
    heads = scores / scores.sum(-1, keepdims=True) @ keys
    return heads.swapaxes(1, 2).reshape(*heads.shape[::2], 48)


def feeds_of(batch, length, past):
    shapes = (
        (batch, 6, length, 8),
        (batch, 2, past, 8),
        (batch, 2, length, 8),
        (batch, 1, length, length + past),
    )
    return {
        n: RNG.standard_normal(s).astype(np.float32)
        for n, s in zip(("q", "past", "k", "mask"), shapes, strict=True)
    }


def test_shared_keys_are_not_repeated():
    session = Compiled(sabir.parse(GROUPED))
    for batch, length, past in ((1, 1, 5), (2, 1, 40), (1, 7, 3), (3, 4, 9)):
        feeds = feeds_of(batch, length, past)
        y, keys = session.run(feeds).values()
        np.testing.assert_allclose(y, expected(**feeds), rtol=2e-5, atol=2e-6)
        np.testing.assert_array_equal(keys, np.concatenate([feeds["past"], feeds["k"]], 2))
        nodes = [
            node for kernel in session.explain().kernels if kernel.kind == "nest" for node in kernel.nodes
        ]
        assert not any("Expand" in node for node in nodes), (batch, length)
        assert any(kernel.kind == "attention" for kernel in session.explain().kernels)


def test_a_row_of_a_batch_has_the_bits_of_it_alone():
    session = Compiled(sabir.parse(GROUPED))
    for length in (1, 5):
        feeds = feeds_of(2, length, 30)
        whole = session.run(feeds)["y"]
        alone = session.run({name: x[1:] for name, x in feeds.items()})["y"]
        np.testing.assert_array_equal(whole[1:], alone)


def test_one_product_for_all_heads_and_for_a_broadcast_operand():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[1,Q,3,8] q, float[1,2,5,8] k) => (float[1,4,3,5] y) {
      one = Constant <value_ints = [2]> ()
      apart = Unsqueeze (k, one)
      count = Constant <value_ints = [1, 2, 2, 5, 8]> ()
      wide = Expand (apart, count)
      shape = Constant <value_ints = [1, 4, 5, 8]> ()
      repeated = Reshape (wide, shape)
      turned = Transpose <perm = [0, 1, 3, 2]> (repeated)
      scores = MatMul (q, turned)
      y = Relu (scores)
    }"""
    session = Compiled(sabir.parse(text))
    for heads in (4, 1):
        q, k = (RNG.standard_normal(s).astype(np.float32) for s in ((1, heads, 3, 8), (1, 2, 5, 8)))
        repeated = np.repeat(k.astype(np.float64), 2, 1)
        y = session.run({"q": q, "k": k})["y"]
        np.testing.assert_allclose(y, np.maximum(q @ repeated.swapaxes(2, 3), 0), rtol=1e-5, atol=1e-5)


def attended(rows, heads=1):
    return sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
    g (float[1,{heads},{rows},8] q, float[1,{heads},8,T] k, float[1,{heads},T,8] v)
        => (float[1,{heads},{rows},8] y) {{ s = MatMul (q, k)  p = Softmax (s)  y = MatMul (p, v) }}""")


def test_threads_divide_the_rows_of_few_heads():
    def found(rows, heads=1, **thresholds):  # plans that are read for another processor are for 4 cores
        shapes = {"k": [1, heads, 8, 900], "v": [1, heads, 900, 8]}
        return texts_on(attended(rows, heads), "rows", shapes=shapes, **thresholds)

    divided = "rows of a head divided among threads, not by one: {} heads < 4 cores"
    assert found(8) == found(24) == [divided.format(1)]
    assert found(8, 2) == [divided.format(2)]
    assert not found(8, 3)  # two cores have no second head to help with
    assert not found(8, 4)
    assert not found(7)
    assert not found(25)  # jobs have fewer rows anyway
    assert not found(8, attention_least_rows=5)


def test_bits_of_one_head_do_not_depend_on_its_division():
    for rows in (8, 11, 16, 24):
        model = attended(rows)
        shapes = {"q": (1, 1, rows, 8), "k": (1, 1, 8, 900), "v": (1, 1, 900, 8)}
        feeds = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        one, *others = (
            compiled_by(model, cores=cores, threads=threads).run(feeds)["y"]
            for cores, threads in ((1, 1), (2, 1), (2, 2), (4, 2))
        )
        assert all(np.array_equal(one, y) for y in others)
