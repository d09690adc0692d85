"""Patterns of several calls that one activation or normalization means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT
from sabir.simplification._declaring import declaring

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)

_HALF = np.float32(0.5)
_LAST = "i = Constant <value = int64[1] {-1}> ()"
_WEIGHT = "w = Constant <value = float[2] {3, 0.5}> ()"
_BIAS = "c = Constant <value = float[2] {1, 2}> ()"
_POSITIVE = "two = Constant <value_float = 2.0> () e = Constant <value_float = 0.00001> ()"
_ONE, _TWO = "Constant <value_float = 1.0> ()", "Constant <value_float = 2.0> ()"


# ---------------------------------------------------------------- normalizations


def _squares(value: str) -> tuple[str, str]:
    """Return the patterns of the square of a value."""
    return f"Pow ({value}, {_TWO})", f"Mul ({value}, {value})"


def _quotients(value: str, square: str) -> tuple[str, ...]:
    """Return the patterns of a value divided by the root of the mean of a square."""
    root = f"Sqrt (Add (square = ReduceMean ({square}, $i?), $e))"
    one = "Constant <value_float = 1.0> ()"
    return (
        f"Div ({value}, {root})",
        f"Mul ({value}, Reciprocal ({root}))",
        f"Mul ({value}, Div ({one}, {root}))",
    )


_CENTRED = "d = Sub (x, mean = ReduceMean (x, $i?))"
_NORMAL = [q for square in _squares("d") for q in _quotients("d", square)]
_LAYERS = [f"{_CENTRED} y = Add (Mul ({normal}, $w), $c)" for normal in _NORMAL]
_LAYER_SAYS = "(x - mean) / sqrt(variance + e) * w + c = LayerNormalization(x, w, c)"
_AFFINE = f"{_POSITIVE} {_WEIGHT} {_BIAS}"
_LAYER_END = "t = Add (s, e) r = Sqrt (t) z = Div (d, r) l = Mul (z, w) y = Add (l, c)"
_LAYER_EXAMPLE = (
    f"{_LAST} {_AFFINE} m = ReduceMean (x, i) d = Sub (x, m) q = Pow (d, two) s = ReduceMean (q, i)"
)


@_rewrite(
    "layer-normalization-with-axes-as-attribute", _LAYER_SAYS, _LAYERS, exact=False, since=17, until=18,
    examples=[
        (f"{_AFFINE} m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) q = Pow (d, two)"
        f" s = ReduceMean <axes = [1]> (q) {_LAYER_END}"),
    ],
)  # fmt: skip
@_rewrite(
    "layer-normalization", _LAYER_SAYS, _LAYERS, exact=False, since=18,
    examples=[
        f"{_LAYER_EXAMPLE} {_LAYER_END}",
        (f"{_LAST} {_AFFINE} m = ReduceMean (x, i) d = Sub (x, m) q = Mul (d, d) s = ReduceMean (q, i)"
        " t = Add (e, s) r = Sqrt (t) p = Reciprocal (r) z = Mul (p, d) l = Mul (w, z) y = Add (c, l)"),
    ],
    near_misses=[
        f"{_LAYER_EXAMPLE} {_LAYER_END}".replace("(d, two)", "(d, e)"),
        f"j = Constant <value = int64[1] {{0}}> () {_LAYER_EXAMPLE} {_LAYER_END}".replace("(q, i)", "(q, j)"),
    ],
)  # fmt: skip
def _layer_normalization(b: DetachedBuilder, m: Match) -> Value | None:
    if not _normalizes_rows(m, ("mean", "square")):
        return None
    if m.constant("c").shape != m.constant("w").shape:
        return None
    return b.LayerNormalization(m["x"], m["w"], m["c"], axis=-1, epsilon=_epsilon(m))


_ROOTS = [q for square in _squares("x") for q in _quotients("x", square)]
_ROOT_EXAMPLE = (
    f"{_LAST} {_POSITIVE} {_WEIGHT} q = Pow (x, two) s = ReduceMean (q, i) t = Add (s, e) r = Sqrt (t)"
)


@_rewrite(
    "root-mean-square-normalization", "x / sqrt(mean(x ** 2) + e) * w = RMSNormalization(x, w)",
    [f"y = Mul ({root}, $w)" for root in _ROOTS], exact=False, since=23,
    examples=[
        f"{_ROOT_EXAMPLE} z = Div (x, r) y = Mul (w, z)",
        f"{_ROOT_EXAMPLE} p = Reciprocal (r) z = Mul (x, p) y = Mul (z, w)",
        f"o = Constant <value_float = 1.0> () {_ROOT_EXAMPLE} p = Div (o, r) z = Mul (x, p) y = Mul (z, w)",
    ],
    near_misses=[
        f"{_ROOT_EXAMPLE} z = Div (x, r) l = Mul (w, z) y = Add (l, z)".replace("(x, two)", "(x, e)"),
        f"{_ROOT_EXAMPLE} z = Div (x, r) y = Mul (w, z)".replace("(q, i)", "<keepdims = 1> (q)"),
    ],
)  # fmt: skip
def _root_mean_square(b: DetachedBuilder, m: Match) -> Value | None:
    if not _normalizes_rows(m, ("square",)):
        return None
    return b.RMSNormalization(m["x"], m["w"], axis=-1, epsilon=_epsilon(m))


def _normalizes_rows(m: Match, reductions: Iterable[str]) -> bool:
    """Return whether reductions of a match are over the last axis of float numbers, scaled by a row."""
    kind, scale = m.type("x"), m.constant("w")
    if kind is None or kind.element is not FLOAT or not kind.shape or m.constant("e").size != 1:
        return False
    for name in reductions:
        attributes = m.attributes(name)
        axes = m.constant("i").tolist() if m.has("i") else attributes.get("axes")
        if not axes or [a % len(kind.shape) for a in axes] != [len(kind.shape) - 1]:
            return False
        if not attributes["keepdims"]:
            return False
    return scale.shape == (kind.shape[-1],)


def _epsilon(m: Match) -> float:
    return float(m.constant("e").reshape(()))


# ---------------------------------------------------------------- activations


def _halved(value: str) -> tuple[str, ...]:
    """Return the patterns of `x * value / 2`."""
    half = "Constant <value_float = 0.5> ()"
    return (
        f"y = Mul (Mul (x, {value}), {half})",
        f"y = Mul (x, Mul ({value}, {half}))",
        f"y = Mul (Mul (x, {half}), {value})",
    )


_ERF = f"Add (Erf ({{}}), {_ONE})"
_ERF_EXAMPLE = (
    "r = Constant <value = float {1.4142135}> () o = Constant <value = float {1}> ()"
    " h = Constant <value = float {0.5}> () d = Div (x, r) f = Erf (d) a = Add (f, o)"
)
_ENDS = ("q = Mul (x, a) y = Mul (q, h)", "q = Mul (a, h) y = Mul (x, q)", "q = Mul (h, x) y = Mul (q, a)")


@_rewrite(
    "gelu", "x * (1 + erf(x / sqrt 2)) / 2 = Gelu(x)",
    [pattern for form in ("scaled = Div (x, $r)", "Mul (x, $r)") for pattern in _halved(_ERF.format(form))],
    exact=False, since=20,
    examples=[
        *(f"{_ERF_EXAMPLE} {end}" for end in _ENDS),
        *(f"{_ERF_EXAMPLE.replace('Div', 'Mul').replace('1.4142135', '0.70710677')} {end}" for end in _ENDS),
    ],
    near_misses=[f"{_ERF_EXAMPLE.replace('1.4142135', '1.5')} {_ENDS[0]}"],
)  # fmt: skip
def _gelu(b: DetachedBuilder, m: Match) -> Value | None:
    factor, expected = m.constant("r"), math.sqrt(2) if "scaled" in m.nodes else math.sqrt(0.5)
    if factor.size != 1 or not math.isclose(float(factor.reshape(())), expected, rel_tol=1e-5):
        return None
    return b.Gelu(m["x"])


_CUBIC = "Add (x, Mul (Pow (x, Constant <value_float = 3.0> ()), $k))"
_TANH = f"Add (Tanh (Mul ({_CUBIC}, $r)), {_ONE})"
_TANH_EXAMPLE = (
    "t = Constant <value_float = 3.0> () k = Constant <value_float = 0.044715> ()"
    " r = Constant <value_float = 0.7978845608> () o = Constant <value_float = 1.0> ()"
    " h = Constant <value_float = 0.5> () p = Pow (x, t) u = Mul (k, p) v = Add (x, u) s = Mul (v, r)"
    " f = Tanh (s) a = Add (o, f)"
)


@_rewrite(
    "gelu-by-tanh", "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2 = Gelu(x, approximate=tanh)",
    _halved(_TANH), exact=False, since=20,
    examples=[f"{_TANH_EXAMPLE} {end}" for end in _ENDS],
    near_misses=[f"{_TANH_EXAMPLE.replace('0.044715', '0.05')} {_ENDS[0]}"],
)  # fmt: skip
def _gelu_by_tanh(b: DetachedBuilder, m: Match) -> Value | None:
    for name, expected in (("k", 0.044715), ("r", math.sqrt(2 / math.pi))):
        found = m.constant(name)
        if found.size != 1 or not math.isclose(float(found.reshape(())), expected, rel_tol=1e-5):
            return None
    return b.Gelu(m["x"], approximate="tanh")


@_rewrite(
    "hard-swish", "x * HardSigmoid(x) = HardSwish(x)", "Mul(x, inner = HardSigmoid(x))",
    exact=False, since=14,
    examples=["s = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, s)"],
    near_misses=["s = HardSigmoid (x) y = Mul (x, s)"],
)  # fmt: skip
def _hard_swish(b: DetachedBuilder, m: Match) -> Value | None:
    attributes = m.attributes("inner")
    if not math.isclose(attributes["alpha"], 1 / 6, rel_tol=1e-6) or not math.isclose(
        attributes["beta"], _HALF
    ):
        return None
    return b.HardSwish(m["x"])


@_rewrite(
    "mish", "x * tanh(Softplus(x)) = Mish(x)", "Mul(x, Tanh(Softplus(x)))", exact=False, since=18,
    examples=["s = Softplus (x) t = Tanh (s) y = Mul (x, t)"],
)  # fmt: skip
def _mish(b: DetachedBuilder, m: Match) -> Value | None:
    return b.Mish(m["x"])


@_rewrite(
    "swish", "x * Sigmoid(x) = Swish(x)", "Mul(x, Sigmoid(x))", exact=False, since=24,
    examples=["s = Sigmoid (x) y = Mul (x, s)"],
)  # fmt: skip
def _swish(b: DetachedBuilder, m: Match) -> Value | None:
    return b.Swish(m["x"])


FUSIONS: Sequence[RewriteRule] = tuple(_TABLE)
