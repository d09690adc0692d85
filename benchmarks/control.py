"""Models with control flow, and models whose run decides sizes.

    python benchmarks/control.py

`BENCH_THREADS` is the number of threads of each session.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
from zoo import difference

import sabir

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
RANDOM = np.random.default_rng(0)
YES = np.ones((), np.bool_)


def main() -> None:
    print(f"{h.THREADS} thread(s) on both sides.\n")
    h.table(("model", "Sabir", "onnxruntime", "ratio", "difference"), list(starmap(_row, _models())))


def _row(name: str, text: str, feeds: dict[str, np.ndarray]) -> tuple[str, ...]:
    h.progress(name)
    data = sabir.dumps(sabir.parse(HEAD + text))
    peer, session = h.onnxruntime_session(data), sabir.Session(data, threads=h.THREADS)
    worst = max(map(difference, session.run(feeds).values(), peer.run(None, feeds)))
    ours, theirs = h.short_blocks([
        h.Case("Sabir", lambda _: session.run(feeds)),
        h.Case("onnxruntime", lambda _: peer.run(None, feeds)),
    ]).values()
    return name, h.time_text(ours), h.time_text(theirs), h.ratio_text(theirs, ours), f"{worst:.1e}"


def _floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _models() -> Iterator[tuple[str, str, dict[str, Any]]]:
    eight = {"x": _floats(8)}
    yield "If of two small branches", SMALL_IF, {**eight, "c": YES}
    yield "If whose branches have different ranks, then a network", RANKS, {"x": _floats(64), "c": YES}
    yield "Loop of ten turns", TURNS, {**eight, "n": np.array(10)}
    yield "Loop that stops on its data", STOPS, eight
    yield "Loop of ten turns, whose results are stacked", STACKS, {**eight, "n": np.array(10)}
    yield "Loop with an If in its body", NESTED, {**eight, "n": np.array(10)}
    yield "Loop whose state grows", GROWS, {"x": _floats(1, 8), "n": np.array(10)}
    yield "Loop that fills a sequence", SEQUENCE, {"x": _floats(1, 8), "n": np.array(10)}
    yield "voice detector: Ifs in an If, two recurrences", DETECTOR, {
        "audio": _floats(1, 512), "state": _floats(2, 1, 64), "rate": np.array(16000),
    }  # fmt: skip
    items = {"x": _floats(16, 32)}
    yield "an item of a sequence that is split from a tensor", ITEM, items
    yield "Loop over the items of a sequence", OVER_ITEMS, items
    yield "SequenceMap over a sequence that is split", MAPPED, items
    yield "NonZero, then a network on the rows found", ROWS, {"x": _floats(64, 64)}
    yield "NonMaxSuppression of 200 boxes, and the rows of the kept ones", BOXES, _boxes(200)


SMALL_IF = """
main (float[8] x, bool c) => (float[8] y) {
  y = If (c) <
    then_branch = yes () => (float[8] a) { t = Mul (x, x)  a = Tanh (t) },
    else_branch = no () => (float[8] b) { u = Add (x, x)  b = Relu (u) }
  >
}"""
RANKS = """
main (float[64] x, bool c) => (y) {
  r = If (c) <
    then_branch = yes () => (a) { first = Constant <value = int64[1] {0}> ()  a = Unsqueeze (x, first) },
    else_branch = no () => (b) { b = Identity (x) }
  >
  s = Mul (r, r)  t = Tanh (s)  u = Add (t, r)  v = Softmax <axis = -1> (u)  w = Mul (v, v)  y = Sqrt (w)
}"""
TURNS = """
main (float[8] x, int64 n) => (float[8] y) {
  y = Loop (n, , x) <
    body = turn (int64 i, bool going, float[8] s) => (bool again, float[8] t) {
      again = Identity (going)  half = Constant <value = float {0.5}> ()  u = Mul (s, half)  t = Tanh (u)
    }
  >
}"""
STOPS = """
main (float[8] x) => (float[8] y) <bool yes = {1}> {
  start = Abs (x)
  y = Loop (, yes, start) <
    body = turn (int64 i, bool going, float[8] s) => (bool again, float[8] t) {
      factor = Constant <value = float {1.5}> ()  bound = Constant <value = float {100.0}> ()
      t = Mul (s, factor)  most = ReduceMax <keepdims = 0> (t)  again = Less (most, bound)
    }
  >
}"""
STACKS = """
main (float[8] x, int64 n) => (float[8] y, float[M, 8] all) {
  y, all = Loop (n, , x) <
    body = turn (int64 i, bool going, float[8] s) => (bool again, float[8] t, float[8] item) {
      again = Identity (going)  half = Constant <value = float {0.5}> ()  u = Mul (s, half)
      t = Tanh (u)  item = Add (t, s)
    }
  >
}"""
NESTED = """
main (float[8] x, int64 n) => (float[8] y) {
  y = Loop (n, , x) <
    body = turn (int64 i, bool going, float[8] s) => (bool again, float[8] t) {
      again = Identity (going)  two = Constant <value = int64 {2}> ()  zero = Constant <value = int64 {0}> ()
      rest = Mod (i, two)  even = Equal (rest, zero)
      t = If (even) <
        then_branch = yes () => (float[8] a) { p = Mul (s, s)  a = Tanh (p) },
        else_branch = no () => (float[8] b) { q = Add (s, s)  b = Relu (q) }
      >
    }
  >
}"""
GROWS = """
main (float[1, 8] x, int64 n) => (float[M, 8] y) {
  y = Loop (n, , x) <
    body = turn (int64 i, bool going, float[R, 8] s) => (bool again, float[Q, 8] t) {
      again = Identity (going)  u = Tanh (x)  t = Concat <axis = 0> (s, u)
    }
  >
}"""
SEQUENCE = """
main (float[1, 8] x, int64 n) => (float[M, 8] y) {
  none = SequenceEmpty ()
  all = Loop (n, , none) <
    body = turn (int64 i, bool going, seq(float[1, 8]) s) => (bool again, seq(float[1, 8]) t) {
      again = Identity (going)  f = Cast <to = 1> (i)  u = Mul (x, f)  v = Tanh (u)  t = SequenceInsert (s, v)
    }
  >
  y = ConcatFromSequence <axis = 0> (all)
}"""


ITEM = """
main (float[16, 32] x) => (float[M, 32] y) {
  s = SplitToSequence <axis = 0> (x)  i = Constant <value = int64 {3}> ()  j = Constant <value = int64 {5}> ()
  a = SequenceAt (s, i)  b = SequenceAt (s, j)  c = Tanh (a)  d = Mul (b, c)  y = Relu (d)
}"""
OVER_ITEMS = """
main (float[16, 32] x) => (float[M, 32] y) {
  s = SplitToSequence <axis = 0> (x)  n = SequenceLength (s)  none = SequenceEmpty ()
  all = Loop (n, , none) <
    body = turn (int64 i, bool going, seq(float[1, 32]) t) => (bool again, seq(float[1, 32]) u) {
      again = Identity (going)  v = SequenceAt (s, i)  w = Tanh (v)  q = Mul (w, v)  u = SequenceInsert (t, q)
    }
  >
  y = ConcatFromSequence <axis = 0> (all)
}"""
MAPPED = """
main (float[16, 32] x) => (float[M, 32] y) {
  s = SplitToSequence <axis = 0> (x)
  all = SequenceMap (s) <
    body = each (float[1, 32] v) => (float[1, 32] q) { w = Tanh (v)  q = Mul (w, v) }
  >
  y = ConcatFromSequence <axis = 0> (all)
}"""


def _detector(width: int) -> str:
    """Return one branch of the detector: features of a signal of one or two axes, and a recurrence."""
    filters = ", ".join(f"{v:.4f}" for v in _floats(64 * width).tolist())
    rows = ", ".join(f"{v:.4f}" for v in (_floats(256 * 64) / 8).tolist())
    return f"""
      kernel = Constant <value = float[64, 1, {width}] {{{filters}}}> ()
      weights = Constant <value = float[1, 256, 64] {{{rows}}}> ()
      axis = Constant <value = int64[1] {{1}}> ()  two = Constant <value = int64 {{2}}> ()
      shape = Shape (audio)  rank = Size (shape)  flat = Equal (rank, two)
      signal = If (flat) <
        then_branch = matrix () => (m) {{ m = Unsqueeze (audio, axis) }},
        else_branch = cube () => (k) {{ k = Identity (audio) }}
      >
      spectrum = Conv <strides = [{width // 2}]> (signal, kernel)
      power = Mul (spectrum, spectrum)  log = Sqrt (power)
      steps = Transpose <perm = [2, 0, 1]> (log)
      parts = Constant <value = int64[2] {{1, 1}}> ()
      h0, c0 = Split <axis = 0> (state, parts)
      all, h1, c1 = LSTM <hidden_size = 64> (steps, weights, weights, , , h0, c0)
      newer = Concat <axis = 0> (h1, c1)
      squared = Mul (h1, h1)  mean = ReduceMean <keepdims = 0> (squared)  probability = Sigmoid (mean)
"""


DETECTOR = f"""
main (float[1, 512] audio, float[2, 1, 64] state, int64 rate) => (float p, float[2, 1, 64] next) {{
  high = Constant <value = int64 {{16000}}> ()
  is_high = Equal (rate, high)
  p, next = If (is_high) <
    then_branch = sixteen () => (float probability, float[2, 1, 64] newer) {{{_detector(128)}}},
    else_branch = eight () => (float probability, float[2, 1, 64] newer) {{{_detector(64)}}}
  >
}}"""
ROWS = """
main (float[64, 64] x) => (float[M, 64] y) {
  axis = Constant <value = int64[1] {1}> ()  zero = Constant <value = float {0.0}> ()
  sums = ReduceSum <keepdims = 0> (x, axis)  large = Greater (sums, zero)
  found = NonZero (large)  first = Squeeze (found)
  rows = Gather <axis = 0> (x, first)
  a = MatMul (rows, x)  b = Tanh (a)  c = MatMul (b, x)  d = Softmax <axis = -1> (c)  y = Mul (d, d)
}"""
BOXES = """
main (float[1, N, 4] boxes, float[1, 1, N] scores, float[N, 64] features) => (float[M, 64] y) {
  most = Constant <value = int64[1] {50}> ()  overlap = Constant <value = float[1] {0.5}> ()
  kept = NonMaxSuppression (boxes, scores, most, overlap)
  two = Constant <value = int64[1] {2}> ()  three = Constant <value = int64[1] {3}> ()
  one = Constant <value = int64[1] {1}> ()
  column = Slice (kept, two, three, one)  which = Squeeze (column, one)
  rows = Gather <axis = 0> (features, which)
  a = Tanh (rows)  b = Softmax <axis = -1> (a)  y = Mul (b, b)
}"""


def _boxes(count: int) -> dict[str, np.ndarray]:
    corners = RANDOM.uniform(0, 1, (1, count, 2)).astype(np.float32)
    sides = RANDOM.uniform(0.05, 0.3, (1, count, 2)).astype(np.float32)
    return {
        "boxes": np.concatenate([corners, corners + sides], axis=2),
        "scores": RANDOM.uniform(0, 1, (1, 1, count)).astype(np.float32),
        "features": _floats(count, 64),
    }


if __name__ == "__main__":
    main()
