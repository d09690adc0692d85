"""The gradient of attention, with the scores and probabilities computed again.

It reads (batch, heads, sequence, size), in one element type; the heads of keys may be shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention.attentions import BIASED, CAPPED, PROBABILITIES, RAW
from sabir.opsets.families.numbers.scalars import element_of

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


class Scores(NamedTuple):
    """What the scores of a call were computed from, and how."""

    q: Value
    k: Value
    v: Value
    masks: graphs.ScoreMaskValues
    scale: float | None
    softcap: float
    precision: int | None

    def gradients(
        self, g: Gradient, dy: Value | None, of_stage: tuple[int, Value | None]
    ) -> tuple[Value | None, ...]:
        """Return the gradients of queries, keys, values and bias, where there are any.

        `dy` is the gradient of the weighted values, `of_stage` that of the scores at one of their stages.
        """
        kind, (stage, of_scores) = element_of(self.q), of_stage
        stages = {stage: of_scores}
        q = graphs.scaled(g, self.q, self.scale, kind)
        capped = graphs.capped(g, graphs.scores(g, q, self.k), self.softcap, kind)
        _, p = graphs.probabilities(g, capped, self.masks, self.precision, kind)
        d = total(g, None if dy is None else graphs.scores(g, dy, self.v), stages.get(PROBABILITIES))
        if d is not None:
            d = g.Mul(p, g.Sub(d, g.ReduceSum(g.Mul(d, p), [-1])))
        biased = stages.get(BIASED)
        if biased is not None and self.masks.allowed is not None:
            biased = g.Where(self.masks.allowed, biased, 0)
        d = d_bias = total(g, d, biased)
        d = total(g, d, stages.get(CAPPED))
        if d is not None and self.softcap:
            ratio = g.Div(capped, self.softcap)
            d = g.Mul(d, g.Sub(1, g.Mul(ratio, ratio)))
        d = total(g, d, stages.get(RAW))
        dv = None if dy is None else _shared(g, p, dy, self.v)
        if d is None:
            return None, None, dv, d_bias
        dq = graphs.scaled(g, graphs.weighted(g, d, self.k, self.q), self.scale, kind)
        return dq, _shared(g, d, q, self.k), dv, d_bias


def _shared(g: Gradient, x: Value, y: Value, k: Value) -> Value:
    """Return the product of the transposed `x` with `y`, summed over the queries that share a head of `k`."""
    rows = graphs.grouped(g, x, k)
    return g.MatMul(g.Transpose(rows, perm=[0, 1, 3, 2]), graphs.grouped(g, y, k))


def total(g: Gradient, first: Value | None, second: Value | None) -> Value | None:
    """Add two gradients; None is zero."""
    if first is None or second is None:
        return first if second is None else second
    return g.Add(first, second)
