"""Calls that change nothing when a model is used, whatever its opset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import element
from sabir.simplification._declaring import declaring
from sabir.simplification._targets import is_same_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)


@_rewrite(
    "dropout", "Dropout(x) = x in inference", "Dropout(x)",
    examples=["a = Dropout (x) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "dropout-of-ratio", "Dropout(x, ratio) = x in inference", "Dropout(x, ratio)",
    examples=["r = Constant <value = float {0.3}> () a = Dropout (x, r) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "dropout-not-in-training", "Dropout(x, ratio, false) = x", "Dropout(x, ratio, $training)",
    examples=[
        ("r = Constant <value = float {0.3}> () t = Constant <value = bool {0}> () a = Dropout "
        "(x, r, t) y = Relu (a)")
    ],
    near_misses=[
        ("r = Constant <value = float {0.0}> () t = Constant <value = bool {1}> () a = Dropout "
        "(x, r, t) y = Relu (a)")
    ],
)  # fmt: skip
def _dropout(_b: DetachedBuilder, m: Match) -> Value | None:
    in_training = m.has("training") and m.constant("training").any()
    return None if in_training or not m.attributes().get("is_test", 1) else m["x"]


@_rewrite(
    "expand-to-own-shape", "Expand(x, s) = x where the shape stays", "Expand(x, s)",
    examples=["s = Constant <value = int64[2] {1, 2}> () a = Expand (x, s) y = Relu (a)"],
    near_misses=["s = Constant <value = int64[3] {2, 1, 1}> () a = Expand (x, s) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "flatten-to-own-shape", "Flatten(x) = x where the shape stays", "Flatten(x)",
    examples=["a = Flatten (x) y = Relu (a)"],
    near_misses=["a = Flatten <axis = 0> (x) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "tile-of-one", "Tile(x, r) = x where the shape stays", "Tile(x, r)",
    examples=["r = Constant <value = int64[2] {1, 1}> () a = Tile (x, r) y = Relu (a)"],
    near_misses=["r = Constant <value = int64[2] {1, 2}> () a = Tile (x, r) y = Relu (a)"],
)  # fmt: skip
def _kept(_b: DetachedBuilder, m: Match) -> Value | None:
    return m["x"] if is_same_shape(m) else None


@_rewrite(
    "slice-of-all", "Slice(x, s, e, a) = x where the shape stays", "Slice(x, s, e, a)",
    examples=[
        (
            "s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {9}> () a = Slice "
            "(x, s, e, s) y = Relu (a)"
        ),
    ],
    near_misses=[
        (
            "s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {1}> () a = Slice "
            "(x, s, e, s) y = Relu (a)"
        ),
    ],
)  # fmt: skip
@_rewrite(
    "slice-of-all-by-steps", "Slice(x, s, e, a, 1) = x where the shape stays", "Slice(x, s, e, a, $steps)",
    examples=[
        ("s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {9}> ()"
        " p = Constant <value = int64[1] {1}> () a = Slice (x, s, e, s, p) y = Relu (a)")
    ],
    near_misses=[
        ("s = Constant <value = int64[1] {-1}> () e = Constant <value = int64[1] {-9}> ()"
        " i = Constant <value = int64[1] {0}> () a = Slice (x, s, e, i, s) y = Relu (a)")
    ],
)  # fmt: skip
def _sliced(_b: DetachedBuilder, m: Match) -> Value | None:
    if m.has("steps") and not (m.constant("steps") == 1).all():
        return None
    return m["x"] if is_same_shape(m) else None


@_rewrite(
    "zero-added", "x + 0 = x", "Add(x, $c)", exact=False,
    examples=["c = Constant <value = float {0}> () a = Add (c, x) y = Neg (a)"],
    near_misses=["c = Constant <value = float[3,1,1] {0,0,0}> () a = Add (x, c) y = Neg (a)"],
)  # fmt: skip
def _plus_zero(_b: DetachedBuilder, m: Match) -> Value | None:
    constant = m.constant("c")  # exact but for -0 + 0
    return m["x"] if constant.dtype.kind in "fiu" and not constant.any() and is_same_shape(m) else None


@_rewrite(
    "cast-of-wider", "Cast(Cast(x, to=wider), to) = Cast(x, to)", "Cast(inner = Cast(x))",
    examples=["a = Cast <to = 11> (x) b = Cast <to = 6> (a) y = Cast <to = 1> (b)"],
    near_misses=["a = Cast <to = 6> (x) y = Cast <to = 1> (a)"],
)  # fmt: skip
def _cast_of_wider(b: DetachedBuilder, m: Match) -> Value | None:
    kind = m.type("x")
    if kind is None or not kind.element.number:
        return None
    old, new = kind.element.dtype, element(m.attributes("inner")["to"]).dtype
    both = {old.kind, new.kind}
    if not both <= set("iuf") or (old.kind != new.kind and "f" in both) or not np.can_cast(old, new, "safe"):
        return None
    target = m.attributes()["to"]
    return m["x"] if target == kind.element.number else b.Cast(m["x"], to=target)


EFFECTS: Sequence[RewriteRule] = tuple(_TABLE)
