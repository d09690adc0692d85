"""Patterns of several calls that one operator means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import FLOAT
from sabir.simplification._declaring import declaring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)


_SQUARED, _HALF = 2, np.float32(0.5)
_LAST = "i = Constant <value = int64[1] {-1}> ()"
_NORMAL = "Div(d = Sub(x, mean = {mean}), Sqrt(Add(square = {square}, $e)))"
_NORMAL_EXAMPLE = (
    "k = Constant <value = float {{2}}> () e = Constant <value = float {{0.00001}}> ()"
    " w = Constant <value = float[2] {{3, 0.5}}> () c = Constant <value = float[2] {{1, 2}}> ()"
    " n = {mean} d = Sub (x, n) q = Pow (d, k) s = {square} t = Add (s, e) r = Sqrt (t) z = Div (d, r)"
    " l = Mul (z, w) y = Add (l, c)"
)


def _layer_normalization() -> Any:
    """Return a decorator that adds a rewrite for axes as an attribute, and one for axes as an operand."""

    def add(build: Any) -> Any:
        for form, axes, since, until in (("attribute", "", 17, 18), ("operand", ", $i", 18, None)):
            mean = f"ReduceMean(x{axes})"
            square = f"ReduceMean(Pow(Sub(x, {mean}), $two){axes})"
            attribute, operand = ("", ", i") if axes else ("<axes = [-1]> ", "")
            example = _NORMAL_EXAMPLE.format(
                mean=f"ReduceMean {attribute}(x{operand})", square=f"ReduceMean {attribute}(q{operand})"
            )
            _rewrite(
                f"layer-normalization-with-axes-as-{form}",
                "(x - mean) / sqrt(variance + e) * w + c = LayerNormalization(x, w, c)",
                f"Add(Mul({_NORMAL.format(mean=mean, square=square)}, $w), $c)",
                exact=False, since=since, until=until, examples=[(_LAST if axes else "") + example],
            )(build)  # fmt: skip
        return build

    return add


@_layer_normalization()
def _normalized_layer(b: DetachedBuilder, m: Match) -> Value | None:
    kind, scale, bias = m.type("x"), m.constant("w"), m.constant("c")
    if kind is None or kind.element is not FLOAT or kind.rank is None or m.constant("e").size != 1:
        return None
    if scale.shape != bias.shape or scale.ndim != 1 or (m.constant("two") != _SQUARED).any():
        return None
    for name in ("mean", "square"):
        attributes = m.attributes(name)
        axes = m.constant("i").tolist() if m.has("i") else attributes.get("axes")
        if axes is None or [a % kind.rank for a in axes] != [kind.rank - 1] or not attributes["keepdims"]:
            return None
    if not kind.shape or kind.shape[-1] != scale.shape[0]:
        return None
    return b.LayerNormalization(m["x"], m["w"], m["c"], axis=-1, epsilon=float(m.constant("e").reshape(())))


_HALVES = (
    ("Mul(Mul(x, Add(Erf(scaled = Div(x, $r)), $one)), $half)", "q = Mul (x, a) y = Mul (q, h)"),
    ("Mul(x, Mul(Add(Erf(scaled = Div(x, $r)), $one), $half))", "q = Mul (a, h) y = Mul (x, q)"),
    ("Mul(Mul(x, $half), Add(Erf(scaled = Div(x, $r)), $one))", "q = Mul (x, h) y = Mul (q, a)"),
)
_ERF = (
    "r = Constant <value = float {1.4142135}> () o = Constant <value = float {1}> ()"
    " h = Constant <value = float {0.5}> () d = Div (x, r) f = Erf (d) a = Add (f, o)"
)


def _gelu() -> Any:
    def add(build: Any) -> Any:
        for index, (pattern, end) in enumerate(_HALVES):
            _rewrite(
                f"gelu-{index}", "x * (1 + erf(x / sqrt 2)) / 2 = Gelu(x)", pattern,
                exact=False, since=20, examples=[f"{_ERF} {end}"],
            )(build)  # fmt: skip
            _rewrite(
                f"gelu-by-product-{index}", "x * (1 + erf(x * sqrt 0.5)) / 2 = Gelu(x)",
                pattern.replace("scaled = Div", "Mul"), exact=False, since=20,
                examples=[f"{_ERF.replace('Div', 'Mul').replace('1.4142135', '0.70710677')} {end}"],
            )(build)  # fmt: skip
        return build

    return add


@_gelu()
def _gelu_of(b: DetachedBuilder, m: Match) -> Value | None:
    factor, one, half = (m.constant(name) for name in ("r", "one", "half"))
    expected = math.sqrt(2) if "scaled" in m.nodes else math.sqrt(0.5)
    if not factor.size == one.size == half.size == 1 or max(factor.ndim, one.ndim, half.ndim) > (
        m.rank("x") or 0
    ):
        return None
    if not math.isclose(float(factor.reshape(())), expected, rel_tol=1e-5) or one != 1 or half != _HALF:
        return None
    return b.Gelu(m["x"])


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
