"""Patterns of the calls that an attention consists of."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.ir import known_equal
from sabir.simplification._declaring import declaring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array, Shape, TensorType, Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)
_RANK = 4  # (batch, heads, sequence, size)
_FLOATS = frozenset({"float", "float16", "bfloat16", "double"})


# ---------------------------------------------------------------- scores, softmax and sums


_PRODUCT = "products = MatMul (Mul? (q, $a), Mul? (kt, $b))"
_SCALED = ("scores = Mul? (products, $c)", "scores = Div (products, $c)")
_SUMS = (
    "y = MatMul (weights = Softmax (Add? (scores, mask)), v)",
    "weights = Softmax (Add? (scores, mask)) y = MatMul (guard = Where (IsNaN (weights), $zero, weights), v)",
)
_PORTS = "(float[2,3,5,4] q, float[2,3,6,4] k, float[2,3,6,2] v, float[1,1,5,6] m) => (float[2,3,5,2] y)"
_EXAMPLE = (
    '<ir_version: 10, opset_import: ["" : 23]> g {ports}'
    " <float h = {{0.5}}, float[1] i = {{0.25}}, float zero = {{0}}>"
    " {{ kt = Transpose <perm = [0, 1, 3, 2]> (k) {nodes} }}"
)
_BIASED = "p = MatMul (q, kt) s = Mul (p, h) b = Add (s, m) w = Softmax (b)"


def _example(nodes: str, ports: str = _PORTS) -> str:
    return _EXAMPLE.format(ports=ports, nodes=nodes)


@_rewrite(
    "attention", "softmax(q @ k.T * scale + mask) @ v = Attention(q, k, v, mask)",
    [f"{_PRODUCT} {scaled} {sums}" for scaled in _SCALED for sums in _SUMS],
    exact=False, shared=False, since=23,
    examples=[
        _example(f"{_BIASED} y = MatMul (w, v)"),
        _example("p = MatMul (q, kt) s = Div (p, h) w = Softmax <axis = 3> (s) y = MatMul (w, v)"),
        _example("a = Mul (q, i) b = Mul (i, kt) p = MatMul (a, b) w = Softmax (p) n = IsNaN (w)"
                 " g = Where (n, zero, w) y = MatMul (g, v)"),
    ],
    near_misses=[
        _example(f"{_BIASED} n = IsNaN (w) g = Where (n, zero, w) y = MatMul (g, v)"),  # rows of -inf are 0
        _example("p = MatMul (q, kt) w = Softmax <axis = 2> (p) y = MatMul (w, v)"),
        _example(f"{_BIASED} y = MatMul (w, v)", _PORTS.replace("[2,3,6,2]", "[6,2]")),
    ],
)  # fmt: skip
def _attention(b: DetachedBuilder, m: Match) -> Value | None:
    scale = _scale(m)
    scores, weights = m.result_type("products"), m.result_type("weights")
    if scale is None or scores is None or scores.element.name not in _FLOATS or not _are_heads(m):
        return None
    if weights is None or not _same_shape(weights.shape, scores.shape):
        return None  # the mask has more axes, or more rows
    if m.attributes("weights")["axis"] not in {-1, _RANK - 1}:
        return None
    mask = m["mask"] if m.has("mask") else None
    if "guard" in m.nodes and not _is_guard_needless(m):
        return None
    keys = b.Transpose(m["kt"], perm=[0, 1, 3, 2])
    return b.Attention(m["q"], keys, m["v"], mask, scale=scale)


def _scale(m: Match) -> float | None:
    """Return the factor of the scores, None where one of its parts is no number."""
    scale = 1.0
    for name in ("a", "b", "c"):
        if not m.has(name):
            continue
        part = m.constant(name)
        if part.size != 1 or part.ndim > _RANK:
            return None
        number = float(part.reshape(()))
        if name == "c" and m.nodes["scores"].op == "Div":
            number = 1 / number if number else 0.0
        scale *= number
    return scale if scale > 0 and np.isfinite(scale) else None


def _are_heads(m: Match) -> bool:
    """Return whether the operands have the same batches and heads, and sizes that agree."""
    kinds = [m.type(name) for name in ("q", "kt", "v")]
    shapes = [kind.shape for kind in kinds if kind is not None and kind.shape is not None]
    if len(shapes) < len(kinds) or any(len(shape) != _RANK for shape in shapes):
        return False
    query, keys, values = shapes
    pairs = [(query[i], other[i]) for other in (keys, values) for i in (0, 1)]
    return all(starmap(known_equal, [*pairs, (query[3], keys[2]), (keys[3], values[2])]))


def _is_guard_needless(m: Match) -> bool:
    """Return whether no row of the weights is NaN for finite operands: the mask leaves each a key."""
    zero = m.constant("zero")
    if zero.size != 1 or zero.any() or zero.ndim > _RANK:
        return False
    if not m.has("mask"):
        return True
    data = m.data("mask")
    return data is not None and bool(np.isfinite(data.array()).any(-1).all())


def _same_shape(a: Shape | None, b: Shape | None) -> bool:
    return a is not None and b is not None and len(a) == len(b) and all(map(known_equal, a, b))


_REPEATED = "Reshape ({0}_wide = Expand (Unsqueeze ({0}, $axis), {0}_sizes), {0}_shape)"
_GROUPED_PORTS = "(float[2,4,5,4] q, float[2,2,6,4] k, float[2,2,6,4] v) => (float[2,4,5,4] y)"


@_rewrite(
    "attention-of-groups", "Attention(q, repeated k, repeated v) = Attention(q, k, v) with fewer heads",
    f"k_all = {_REPEATED.format('k')} v_all = {_REPEATED.format('v')} y = Attention (q, k_all, v_all, mask?)",
    exact=False, shared=False, since=23,
    examples=[
        ('<ir_version: 10, opset_import: ["" : 23]> g ' + _GROUPED_PORTS + " <int64[1] i = {2},"
        " int64[5] e = {2,2,2,6,4}, int64[4] r = {0,-1,6,4}> { s = Unsqueeze (k, i) t = Expand (s, e)"
        " a = Reshape (t, r) u = Unsqueeze (v, i) w = Expand (u, e) b = Reshape (w, r)"
        " y = Attention <scale = 0.5> (q, a, b) }"),
    ],
    near_misses=[
        ('<ir_version: 10, opset_import: ["" : 23]> g ' + _GROUPED_PORTS + " <int64[1] i = {1},"
        " int64[5] e = {2,2,2,6,4}, int64[4] r = {0,-1,6,4}> { s = Unsqueeze (k, i) t = Expand (s, e)"
        " a = Reshape (t, r) u = Unsqueeze (v, i) w = Expand (u, e) b = Reshape (w, r)"
        " y = Attention <scale = 0.5> (q, a, b) }"),
    ],
)  # fmt: skip
def _grouped(b: DetachedBuilder, m: Match) -> Value | None:
    if m.constant("axis").ravel().tolist() != [2]:
        return None
    for name in ("k", "v"):
        old, wide, flat = m.type(name), m.result_type(f"{name}_wide"), m.result_type(f"{name}_all")
        if not _repeats_heads(old, wide, flat):
            return None
    given: dict[str, Any] = {name: value for name, value in m.attributes().items() if value is not None}
    mask = m["mask"] if m.has("mask") else None
    return b.op("Attention", m["q"], m["k"], m["v"], mask, outputs=1, **given)


def _repeats_heads(old: TensorType | None, wide: TensorType | None, flat: TensorType | None) -> bool:
    """Return whether (batch, heads, rows, size) became (batch, heads, times, rows, size), and flat again."""
    shapes = [kind.shape for kind in (old, wide, flat) if kind is not None and kind.shape is not None]
    if [len(shape) for shape in shapes] != [_RANK, _RANK + 1, _RANK]:
        return False
    first, repeated, last = shapes
    kept = all(known_equal(first[i], repeated[j]) for i, j in ((0, 0), (1, 1), (2, 3), (3, 4)))
    joined = all(known_equal(first[i], last[i]) for i in (0, 2, 3))
    return kept and joined and isinstance(first[1], int) and isinstance(last[1], int)


# ---------------------------------------------------------------- rotations


_SECOND, _FIRST = "second = Slice (x, $s, $f, $i, $t?)", "first = Slice (x, $r, $e, $j, $u?)"
_TURNED = f"turned = Concat <axis: int = @axis> (Neg ({_SECOND}), {_FIRST})"
_ROTATED_PORTS = "(float[2,3,2,4] x) => (float[2,3,2,4] y)"
_ROTATED_EXAMPLE = (
    f'<ir_version: 10, opset_import: ["" : 23]> g {_ROTATED_PORTS} <float[1,1,2,4] c = {{1,2,1,2,3,4,3,4}},'
    " float[2,4] s = {5,6,5,6,7,8,7,8}, int64[1] zero = {0}, int64[1] half = {2}, int64[1] end = {9},"
    " int64[1] axis = {3}> { a = Mul (x, c) p = Slice (x, zero, half, axis) q = Slice (x, half, end, axis)"
    " n = Neg (q) r = Concat <axis = -1> (n, p) b = Mul (r, s) y = Add (a, b) }"
)


@_rewrite(
    "rotary-embedding", "x * cos + concat(-x2, x1) * sin = RotaryEmbedding(x, cos, sin)",
    f"{_TURNED} y = Add (Mul (x, $cos), Mul (turned, $sin))", exact=False, shared=False, since=23,
    examples=[_ROTATED_EXAMPLE],
    near_misses=[
        _ROTATED_EXAMPLE.replace("{1,2,1,2,", "{1,2,1,3,"),
        _ROTATED_EXAMPLE.replace("axis = -1", "axis = 3").replace("half = {2}", "half = {1}"),
    ],
)  # fmt: skip
def _rotary_embedding(b: DetachedBuilder, m: Match) -> Value | None:
    kind = m.type("x")
    shape = None if kind is None or kind.element.name not in _FLOATS else kind.shape
    if shape is None or len(shape) != _RANK or m.attribute("axis") not in {-1, _RANK - 1}:
        return None
    batch, _, rows, size = shape
    if not isinstance(batch, int) or not isinstance(rows, int) or not isinstance(size, int):
        return None
    if not _are_halves(m, size):
        return None
    cosines, sines = (_cache(m.constant(name), rows, size) for name in ("cos", "sin"))
    if cosines is None or sines is None:
        return None
    positions = np.broadcast_to(np.arange(rows, dtype=np.int64), (batch, rows))
    return b.RotaryEmbedding(
        m["x"], b.initializer("cosines", cosines), b.initializer("sines", sines),
        b.initializer("positions", positions),
    )  # fmt: skip


_COMPUTED_PORTS = "(float[2,3,2,4] x, float[2,2,2] f) => (float[2,3,2,4] y)"
_COMPUTED_EXAMPLE = (
    f'<ir_version: 10, opset_import: ["" : 23]> g {_COMPUTED_PORTS} <float h = {{0.5}},'
    " int64[1] heads = {1}, int64[1] zero = {0}, int64[1] half = {2}, int64[1] end = {9},"
    " int64[1] axis = {3}> {"
    " g = Concat <axis = 2> (f, f) k = Cos (g) l = Sin (g) c = Unsqueeze (k, heads) s = Unsqueeze (l, heads)"
    " a = Mul (x, c) p = Slice (x, zero, half, axis) q = Slice (x, half, end, axis)"
    " n = Neg (q) r = Concat <axis = -1> (n, p) b = Mul (r, s) y = Add (a, b) }"
)
_ANGLES = "angles = Concat <axis: int = @doubled> (pairs, pairs)"


@_rewrite(
    "rotary-embedding-of-computed-angles",
    "x * cos(f, f) + concat(-x2, x1) * sin(f, f) = RotaryEmbedding(x, cos(f), sin(f))",
    f"{_TURNED} {_ANGLES} y = Add (Mul (x, Unsqueeze (Mul? (Cos (angles), $a), $k)),"
    " Mul (turned, Unsqueeze (Mul? (Sin (angles), $b), $l)))",
    exact=False, since=23,
    examples=[
        _COMPUTED_EXAMPLE,
        _COMPUTED_EXAMPLE.replace("Cos (g) l = Sin (g)", "Mul (t, h) u = Sin (g) l = Mul (h, u)").replace(
            "k = Mul", "t = Cos (g) k = Mul"
        ),
    ],
    near_misses=[
        _COMPUTED_EXAMPLE.replace("(f, f)", "(f, x0)").replace("g = Concat", "x0 = Neg (f) g = Concat"),
        _COMPUTED_EXAMPLE.replace("float[2,2,2] f", "float[1,2,2] f"),
        _COMPUTED_EXAMPLE.replace("heads = {1}", "heads = {2}").replace("[2,3,2,4]", "[2,2,3,4]"),
    ],
)  # fmt: skip
def _rotary_embedding_of_angles(b: DetachedBuilder, m: Match) -> Value | None:
    kind, angles = m.type("x"), m.type("pairs")
    shape = None if kind is None or kind.element.name not in _FLOATS else kind.shape
    if shape is None or angles is None or angles.shape is None or len(shape) != _RANK:
        return None
    batch, _, rows, size = shape
    if not isinstance(size, int) or not _same_shape(angles.shape, (batch, rows, size // 2)):
        return None
    if m.attribute("axis") not in {-1, _RANK - 1} or m.attribute("doubled") not in {-1, _RANK - 2}:
        return None
    if not _are_halves(m, size) or any(m.constant(n).ravel().tolist() not in ([1], [-3]) for n in ("k", "l")):
        return None
    if any(m.has(n) and m.constant(n).size != 1 for n in ("a", "b")):
        return None
    cosines, sines = b.Cos(m["pairs"]), b.Sin(m["pairs"])
    if m.has("a"):
        cosines = b.Mul(cosines, m.constant("a").reshape(()))
    if m.has("b"):
        sines = b.Mul(sines, m.constant("b").reshape(()))
    return b.RotaryEmbedding(m["x"], cosines, sines)


def _are_halves(m: Match, size: int) -> bool:
    """Return whether the two slices are the halves of the last axis."""
    if size % 2:
        return False
    for names, wanted in ((("r", "e", "j", "u"), (0, size // 2)), (("s", "f", "i", "t"), (size // 2, size))):
        parts = [m.constant(name).ravel().tolist() if m.has(name) else [1] for name in names]
        if any(len(part) != 1 for part in parts):
            return False
        (start,), (end,), (axis,), (step,) = parts
        bounds = slice(start, end).indices(size)[:2]
        if bounds != wanted or axis not in {-1, _RANK - 1} or step != 1:
            return False
    return True


def _cache(factors: Array, rows: int, size: int) -> Array | None:
    """Return factors of each row and pair, (rows, size / 2), None where heads or the halves have others."""
    if factors.shape[-2:] != (rows, size) or any(n != 1 for n in factors.shape[:-2]):
        return None
    table = factors.reshape(rows, size)
    first, second = table[:, : size // 2], table[:, size // 2 :]
    return first.copy() if np.array_equal(first, second) else None


ATTENTIONS: Sequence[RewriteRule] = tuple(_TABLE)
