"""Scaled dot-product attention as tensor expressions: softmax(q @ k^T * scale + bias) @ v."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.ir import sub
from sabir.loops import FLOATS, Expression, NotLowered
from sabir.opsets.families.attention import attentions
from sabir.opsets.families.lowering import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Size

_RANK = 4  # (batch, heads, length, size)


def with_heads(x: Expression, heads: int) -> Expression:
    """Return (batch, sequence, heads * size) as (batch, sequence, heads, size)."""
    size = loops.divided(x.shape[2], heads)
    if size is None:
        raise NotLowered(f"whether {x.shape[2]} elements divide into {heads} heads is known at run time only")
    return loops.reshape(x, (*x.shape[:2], heads, size))


def unpacked(x: Expression, heads: int) -> Expression:
    """Return (batch, sequence, heads * size) as (batch, heads, sequence, size)."""
    return loops.permute(with_heads(x, heads), (0, 2, 1, 3))


class ScoreStages(NamedTuple):
    """The options for computing probabilities from scores; `precision` is the type of the softmax."""

    scale: float
    softcap: float
    precision: str


class ScoreMasks(NamedTuple):
    """A bias to add to the scores, and which keys each query attends to; both broadcast to the scores.

    With `total` every query attends to at least one key.
    """

    bias: Expression | None = None
    allowed: Expression | None = None
    total: bool = True


class Heads:
    """The arrangement of heads for grouped-query attention, without copies of keys and values.

    Query heads that share keys are a separate axis: scores are (batch, kv heads, shared, queries, keys). For
    a single query they are the rows of a product: (batch, kv heads, shared, keys).
    """

    def __init__(self, q: Expression, k: Expression, v: Expression) -> None:
        """Create the arrangement of tensors of rank 4; raises NotLowered if their sizes may not match."""
        batch, self.count, self.length, size = q.shape
        self.kv, self.keys = k.shape[1:3]
        match = loops.same_shape((batch, size), (k.shape[0], k.shape[3]))
        if not match or not loops.same_shape((batch, *k.shape[1:3]), v.shape[:3]):
            raise NotLowered("whether the shapes of queries, keys and values match is known at run time only")
        shared = loops.divided(self.count, self.kv)
        if shared is None:
            raise NotLowered(f"whether {self.count} heads share {self.kv} of keys is known at run time only")
        self.q, self.k, self.v = _alike(q, k, v)
        self.batch, self.shared = batch, shared
        self.rank = _RANK if shared == 1 or self.length == 1 else _RANK + 1

    def of_queries(self, x: Expression) -> Expression:
        """Arrange a tensor of rank 4 whose axis 1 is query heads, or 1."""
        if self.shared == 1:
            return x
        if x.shape[1] != 1 and not loops.equal(x.shape[1], self.count):
            raise NotLowered(f"whether {x.shape[1]} heads are all heads is known at run time only")
        heads = (1, 1) if x.shape[1] == 1 else (self.kv, self.shared)
        rows = x.shape[2:] if self.rank > _RANK else x.shape[3:]
        return loops.reshape(x, (x.shape[0], *heads, *rows))

    def of_keys(self, x: Expression) -> Expression:
        """Arrange keys or values."""
        return loops.reshape(x, (*x.shape[:2], 1, *x.shape[2:])) if self.rank > _RANK else x

    def column(self, x: Expression) -> Expression:
        """Arrange one number for each item of the batch."""
        if not loops.same_shape(x.shape, (self.batch,)):
            raise NotLowered("whether there is a number for each item of the batch is known at run time only")
        return loops.reshape(x, (self.batch, *(1,) * (self.rank - 1)))

    def apart(self, x: Expression) -> Expression:
        """Return arranged scores or results as (batch, heads, queries, ...)."""
        return loops.reshape(x, (self.batch, self.count, self.length, x.shape[-1]))

    def packed(self, x: Expression) -> Expression:
        """Return arranged results as (batch, queries, heads * size)."""
        if self.shared == 1:
            x = loops.permute(x, (0, 2, 1, 3))
        elif self.rank > _RANK:
            x = loops.permute(x, (0, 3, 1, 2, 4))
        return loops.reshape(x, (self.batch, self.length, self.count * x.shape[-1]))

    def default_scale(self) -> float:
        """Return `1 / sqrt(size)`; raises NotLowered for a symbolic size."""
        size = loops.fixed(self.q.shape[3])
        if size is None:
            raise NotLowered(f"the scale depends on the size {self.q.shape[3]} of a run")
        return attentions.default_scale(size)

    # ------------------------------------------------------------ masks

    def visible(
        self, before: Expression | Size, window: tuple[int, int], filled: Expression | None
    ) -> ScoreMasks:
        """Return which keys each query attends to by its position and the end of the cache.

        `before` is the number of keys before the first query; a side of -1 is unlimited.
        """
        left, right = window
        place = loops.count((1, self.keys), 1)
        allowed: Expression | None = None
        if max(left, right) >= 0:
            first = self.column(before) if isinstance(before, Expression) else loops.sized("int64", before)
            at = loops.count((self.length, 1), 0)
            at = at if before == 0 else loops.apply("add", at, first)
            distance = loops.apply("sub", place, at)
            allowed = loops.apply("le", distance, right) if right >= 0 else None
            if left >= 0:
                allowed = _both(allowed, loops.apply("ge", distance, -left))
        if filled is not None:
            allowed = _both(allowed, loops.apply("lt", place, self.column(filled)))
        return ScoreMasks(None, allowed, total=left < 0 and filled is None)

    def masked(self, masks: ScoreMasks, mask: Expression, *, padded: bool) -> ScoreMasks:
        """Add the operand `attn_mask`, boolean or a bias; `padded` masks the keys after its end."""
        missing = sub(self.keys, mask.shape[-1]) if padded and mask.rank else 0
        mask = loops.reshape(mask, (*(1,) * (_RANK - mask.rank), *mask.shape))
        if missing != 0 and not loops.equal(self.keys, mask.shape[-1]):
            if missing is None or not loops.at_least(missing, 0):
                raise NotLowered("whether the mask ends before the keys is known at run time only")
            mask = mask if mask.element in {*FLOATS, "bool"} else loops.cast(mask, self.q.element)
            excluded = 0 if mask.element == "bool" else -math.inf
            mask = loops.pad(mask, (0,) * _RANK, (0, 0, 0, missing), excluded)
        mask = self.of_queries(mask)
        if mask.element == "bool":
            return ScoreMasks(None, _both(masks.allowed, mask), total=False)
        return ScoreMasks(loops.cast(mask, self.q.element), masks.allowed, total=False)

    # ------------------------------------------------------------ scores

    def scores(self, masks: ScoreMasks, stages: ScoreStages) -> Sequence[Expression]:
        """Return the scores of all stages: scaled products, capped, masked, and the probabilities."""
        transposed = [*range(self.rank - 2), self.rank - 1, self.rank - 2]
        products = loops.contract(self.of_queries(self.q), loops.permute(self.of_keys(self.k), transposed))
        raw = loops.apply("mul", products, stages.scale)
        capped = raw
        if stages.softcap:
            cap = stages.softcap
            capped = loops.apply("mul", loops.apply("tanh", loops.apply("div", raw, cap)), cap)
        biased = _restricted(capped, masks)
        if not loops.same_shape(biased.shape, raw.shape):
            raise NotLowered("whether the mask broadcasts to the scores is known at run time only")
        p = loops.cast(_softmax(biased, stages.precision), raw.element)
        dead = _dead(masks, raw.element)
        return raw, capped, biased, p if dead is None else loops.where(dead, loops.number(p.element, 0), p)

    def weighted(self, p: Expression) -> Expression:
        """Return the sums of values, weighted by the probabilities of each query, arranged."""
        return loops.contract(p, self.of_keys(self.v))


def _alike(*operands: Expression) -> Sequence[Expression]:
    """Return the operands in the widest of their types."""
    kinds = {x.element for x in operands}
    wide = kinds.pop() if len(kinds) == 1 else "double" if "double" in kinds else "float"
    return [loops.cast(x, wide) for x in operands]


def _softmax(x: Expression, precision: str) -> Expression:
    """Return the softmax of rows in a precision; for halves it is computed in float and rounded once."""
    x = loops.cast(x, precision)
    if precision in FLOATS:
        return kernels.softmax(x, -1)
    return loops.cast(kernels.softmax(loops.cast(x, "float"), -1), precision)


def _both(first: Expression | None, second: Expression) -> Expression:
    return second if first is None else loops.apply("and", first, second)


def _restricted(x: Expression, masks: ScoreMasks) -> Expression:
    x = x if masks.bias is None else loops.apply("add", x, masks.bias)
    return x if masks.allowed is None else loops.where(masks.allowed, x, -math.inf)


def _dead(masks: ScoreMasks, element: str) -> Expression | None:
    """Return the mask of queries that attend to no key, whose results are zeros; None if there are none."""
    if masks.total:
        return None
    zero = loops.number(element, 0)
    limit = _restricted(zero, masks)
    return loops.apply("eq", loops.reduce("max", limit, [-1]), -math.inf)
