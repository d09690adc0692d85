"""Chains of calls that change or compute shapes, as one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import known_equal, product
from sabir.simplification._declaring import declaring
from sabir.simplification._targets import is_same_shape, reshape_target, target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)


_JOINED = 3  # the rank with joined axes
_AXIS = "i = Constant <value = int64[1] {1}> () u = Unsqueeze (x, i)"
_TO = "t = Constant <value = int64[2] {3, -1}> ()"


@_rewrite(
    "reshape-of-unsqueeze", "Reshape(Unsqueeze(x), t) = Reshape(x, t)", "Reshape(Unsqueeze(x, a), t)",
    examples=[f"{_AXIS} {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "reshape-of-squeeze", "Reshape(Squeeze(x), t) = Reshape(x, t)", "Reshape(Squeeze(x, a), t)",
    examples=[
        (f"q = Constant <value = int64[3] {{6,1,2}}> () r = Reshape (x, q) n = Neg (r)"
        f" i = Constant <value = int64[1] {{1}}> () u = Squeeze (n, i) {_TO} y = Reshape (u, t)")
    ],
)  # fmt: skip
@_rewrite(
    "reshape-of-flatten", "Reshape(Flatten(x), t) = Reshape(x, t)", "Reshape(Flatten(x), t)",
    examples=[f"u = Flatten <axis = 0> (x) {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "reshape-of-any-reshape", "Reshape(Reshape(x, s), t) = Reshape(x, t)", "Reshape(Reshape(x, s), t)",
    examples=[f"i = Constant <value = int64[1] {{12}}> () u = Reshape (x, i) {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "unsqueeze-of-reshape", "Unsqueeze(Reshape(x, s), a) = Reshape(x, t)", "Unsqueeze(Reshape(x, s), a)",
    examples=[
        ("s = Constant <value = int64[2] {4, 3}> () r = Reshape (x, s)"
        " i = Constant <value = int64[1] {1}> () z = Unsqueeze (r, i) n = Neg (z) y = Flatten (n)")
    ],
)  # fmt: skip
@_rewrite(
    "squeeze-of-reshape", "Squeeze(Reshape(x, s), a) = Reshape(x, t)", "Squeeze(Reshape(x, s), a)",
    examples=[
        ("s = Constant <value = int64[3] {4, 1, 3}> () r = Reshape (x, s)"
        " i = Constant <value = int64[1] {1}> () y = Squeeze (r, i)")
    ],
)  # fmt: skip
@_rewrite(
    "flatten-of-reshape", "Flatten(Reshape(x, s)) = Reshape(x, t)", "Flatten(Reshape(x, s))",
    examples=["s = Constant <value = int64[3] {3, 2, 2}> () r = Reshape (x, s) y = Flatten (r)"],
)  # fmt: skip
@_rewrite(
    "flatten-of-flatten", "Flatten(Flatten(x)) = Reshape(x, t)", "Flatten(Flatten(x))",
    examples=["r = Flatten <axis = 0> (x) y = Flatten <axis = 0> (r)"],
)  # fmt: skip
@_rewrite(
    "flatten-of-unsqueeze", "Flatten(Unsqueeze(x, a)) = Reshape(x, t)", "Flatten(Unsqueeze(x, a))",
    examples=[f"{_AXIS} y = Flatten (u)"],
)  # fmt: skip
@_rewrite(
    "unsqueeze-of-unsqueeze", "Unsqueeze(Unsqueeze(x, a), b) = Reshape(x, t)",
    "Unsqueeze(Unsqueeze(x, a), c)",
    examples=[f"{_AXIS} z = Unsqueeze (u, i) n = Neg (z) y = Flatten (n)"],
)  # fmt: skip
@_rewrite(
    "squeeze-of-unsqueeze", "Squeeze(Unsqueeze(x, a), b) = Reshape(x, t)",
    "Squeeze(Unsqueeze(x, a), c)",
    examples=[f"{_AXIS} v = Squeeze (u, i) y = Relu (v)"],
)  # fmt: skip
@_rewrite(
    "unsqueeze-of-squeeze", "Unsqueeze(Squeeze(x, a), b) = Reshape(x, t)",
    "Unsqueeze(Squeeze(x, a), c)",
    examples=[
        ("s = Constant <value = int64[3] {6, 1, 2}> () r = Reshape (x, s) n = Neg (r)"
        " i = Constant <value = int64[1] {1}> () q = Squeeze (n, i) z = Unsqueeze (q, i) m = Neg "
        "(z) y = Flatten (m)")
    ],
)  # fmt: skip
def _reshaped_twice(b: DetachedBuilder, m: Match) -> Value | None:
    before, after = m.type("x"), m.result_type()
    if before is None or after is None or not known_equal(before.size, after.size):
        return None  # the first may be an invalid call, which the run reports
    if is_same_shape(m):
        return m["x"]
    target = target_of(m)
    return None if target is None else b.Reshape(m["x"], b.initializer("shape", target))


@_rewrite(
    "reshape-of-transpose", "Reshape(Transpose(x), t) = Reshape(x, t) where only sizes of 1 move",
    "Reshape(turned = Transpose(x), t)",
    examples=[
        ("s = Constant <value = int64[3] {6, 1, 2}> () r = Reshape (x, s) n = Neg (r)"
        f" u = Transpose <perm = [1, 0, 2]> (n) {_TO} y = Reshape (u, t)")
    ],
    near_misses=[f"u = Transpose (x) {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "transpose-of-reshape", "Transpose(Reshape(x, s)) = Reshape(x, t) where only sizes of 1 move",
    "turned = Transpose(Reshape(x, s))",
    examples=[
        ("s = Constant <value = int64[3] {6, 1, 2}> () r = Reshape (x, s)"
        " u = Transpose <perm = [1, 0, 2]> (r) n = Neg (u) z = Constant <value = int64[2] {6, "
        "2}> () y = Reshape (n, z)")
    ],
    near_misses=["s = Constant <value = int64[2] {3, 4}> () r = Reshape (x, s) y = Transpose (r)"],
)  # fmt: skip
def _moved_ones(b: DetachedBuilder, m: Match) -> Value | None:
    turned, perm = m.result_type("turned"), m.attributes("turned")["perm"]
    if turned is None or turned.shape is None:
        return None
    perm = list(range(len(turned.shape)))[::-1] if perm is None else perm
    if len(perm) != len(turned.shape):
        return None  # an invalid call, which the run reports
    order = [axis for axis, size in zip(perm, turned.shape, strict=True) if size != 1]
    return _reshaped_twice(b, m) if order == sorted(order) else None


@_rewrite(
    "transpose-of-joined-axes", "Reshape(Transpose(Reshape(x, s)), t) = Transpose(Reshape(x, u)), axes apart",
    "Reshape (turned = Transpose (joined = Reshape (x, s)), t)",
    examples=[
        ("a = Constant <value = int64[4] {1, 3, 2, 2}> () r = Reshape (x, a) n = Neg (r)"
        " s = Constant <value = int64[3] {3, 2, 2}> () j = Reshape (n, s)"
        " u = Transpose <perm = [0, 2, 1]> (j) t = Constant <value = int64[4] {1, 3, 2, 2}> ()"
        " w = Reshape (u, t) v = Neg (w) z = Constant <value = int64[2] {6, 2}> () y = Reshape (v, z)"),
    ],
    near_misses=[
        ("s = Constant <value = int64[3] {3, 2, 2}> () j = Reshape (x, s)"
        " u = Transpose <perm = [1, 0, 2]> (j) t = Constant <value = int64[2] {6, 2}> () y = Reshape (u, t)"),
    ],
)  # fmt: skip
def _joined_axes(b: DetachedBuilder, m: Match) -> Value | None:
    joined, turned, after = m.result_type("joined"), m.result_type("turned"), m.result_type()
    shapes = [kind.shape for kind in (joined, turned, after) if kind is not None and kind.shape is not None]
    if [len(shape) for shape in shapes] != [_JOINED, _JOINED, _JOINED + 1]:
        return None
    (outer, rows, columns), _, result = shapes
    if list(m.attributes("turned")["perm"] or ()) != [0, 2, 1] or not known_equal(result[2], columns):
        return None
    if not known_equal(result[3], rows) or not known_equal(product(result[:2]), outer):
        return None
    before = m.type("x")
    target = reshape_target(before and before.shape, (*result[:2], rows, columns))
    if target is None:
        return None
    return b.Transpose(b.Reshape(m["x"], b.initializer("shape", target)), perm=[0, 1, 3, 2])


@_rewrite(
    "one-size-of-a-shape", "Unsqueeze(Gather(Shape(x), i), 0) = Shape(x, start=i, end=i+1)",
    "Unsqueeze(gather = Gather(shape = Shape(x), $i), $a)", since=15,
    examples=[
        ("i = Constant <value = int64 {1}> () a = Constant <value = int64[1] {0}> () s = Shape "
        "(x) g = Gather (s, i)"
        " u = Unsqueeze (g, a) c = Cast <to = 1> (u) y = Add (x, c)")
    ],
)  # fmt: skip
def _one_size(b: DetachedBuilder, m: Match) -> Value | None:
    shape, index, rank = m.attributes("shape"), m.constant("i"), m.rank("x")
    if (
        index.ndim
        or rank is None
        or shape["start"]
        or shape["end"] is not None
        or m.attributes("gather")["axis"]
    ):
        return None
    place = int(index) % rank if -rank <= index < rank else None
    return None if place is None else b.Shape(m["x"], start=place, end=place + 1)


@_rewrite(
    "part-of-a-shape", "Slice(Shape(x), s, e) = Shape(x, start=s, end=e)",
    "Slice(shape = Shape(x), $s, $e, $a)", since=15,
    examples=[
        ("s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {9}> () a = "
        "Constant <value = int64[1] {0}> ()"
        " h = Shape (x) u = Slice (h, s, e, a) c = Cast <to = 1> (u) y = Add (x, c)")
    ],
)  # fmt: skip
def _part_of_shape(b: DetachedBuilder, m: Match) -> Value | None:
    shape, rank = m.attributes("shape"), m.rank("x")
    bounds = [m.constant(name).ravel().tolist() for name in ("s", "e")]
    if rank is None or shape["start"] or shape["end"] is not None or not all(len(v) == 1 for v in bounds):
        return None
    (start,), (end,) = bounds
    return b.Shape(m["x"], start=max(start, -rank), end=max(-rank, min(end, rank)))


@_rewrite(
    "slice-of-slice", "Slice(Slice(x, s, e, a), t, f, b) = Slice(x, s+t, e+f, a+b), where no axis is in both",
    "Slice(Slice(x, $s, $e, $a), $t, $f, $b)", shared=False,
    examples=[
        ("s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {5}> () a = "
        "Constant <value = int64[1] {0}> ()"
        " p = Slice (x, s, e, a) y = Slice (p, a, s, s)")
    ],
    near_misses=[
        ("s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {5}> () a = "
        "Constant <value = int64[1] {0}> ()"
        " p = Slice (x, s, e, a) y = Slice (p, s, e, a)")
    ],
)  # fmt: skip
def _slices(b: DetachedBuilder, m: Match) -> Value | None:
    rank = m.rank("x")
    names = ("s", "e", "a", "t", "f", "b")
    s, e, a, t, f, other = (m.constant(name) for name in names)
    if rank is None or len({x.dtype for x in (s, e, a, t, f, other)}) > 1:
        return None
    axes = [int(i) + rank * (i < 0) for i in (*a, *other)]
    if len(set(axes)) < len(axes) or s.shape != e.shape or s.shape != a.shape or t.shape != other.shape:
        return None
    starts = b.initializer("starts", np.concatenate((s, t)))
    ends = b.initializer("ends", np.concatenate((e, f)))
    return b.Slice(m["x"], starts, ends, b.initializer("axes", np.asarray(axes, a.dtype)))


RESHAPES: Sequence[RewriteRule] = tuple(_TABLE)
