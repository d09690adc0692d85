"""Linear attention as tensor expressions: a recurrent state instead of scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir import loops
from sabir.loops import Expression, MatrixSteps, NotLowered
from sabir.opsets.families.lowering import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Size


def attended(
    operands: Sequence[Expression], first: Expression | None, decay: Expression | None,
    rate: Expression | None, heads: tuple[int, int], scale: float,
) -> tuple[Expression, Expression]:  # fmt: skip
    """Return the products of queries and the state after each step, and the last state.

    The operands are queries, keys and values (batch, steps, heads * size); `heads` are those of queries and
    of keys. Raises NotLowered if the sizes may not match.
    """
    for x in (*operands, first, decay, rate):
        if x is not None:
            loops.check_computed(x.element)
    found = _steps(operands, first, decay, rate, heads)
    batch, own, steps, group, size = found.queries.shape
    width, reads = found.shape[-1], steps * group
    read = loops.reshape(loops.narrow(found, 2, 0, reads), (batch, own, steps, group, width))
    read = _scaled(loops.permute(read, (0, 2, 1, 3, 4)), scale, size)
    return loops.reshape(read, (batch, steps, width * heads[0])), loops.narrow(found, 2, reads, size)


def _steps(
    operands: Sequence[Expression], first: Expression | None, decay: Expression | None,
    rate: Expression | None, heads: tuple[int, int],
) -> MatrixSteps:  # fmt: skip
    q, k, v = operands
    queries = _over_heads(q, heads[1], [heads[0] // heads[1], _each(q, heads[0])])
    keys, values = (_over_heads(x, heads[1], [_each(x, heads[1])]) for x in (k, v))
    batch, own, steps, group, size = queries.shape
    shape = (batch, own, size, values.shape[-1])
    state = kernels.filled(q.element, 0, shape) if first is None else first
    if not loops.equal(keys.shape[-1], size) or not loops.same_shape(state.shape, shape):
        raise NotLowered("whether queries, keys and the state have the same sizes is known at run time only")
    lines = (batch, own, steps * group + size, values.shape[-1])
    factors = _gates(decay, heads[1], keys), _rates(rate, keys)
    return MatrixSteps(q.element, lines, queries, keys, values, state, *factors)


def _scaled(x: Expression, scale: float, size: Size) -> Expression:
    if scale:
        return loops.apply("mul", x, scale)
    if isinstance(size, int):
        return loops.apply("mul", x, 1 / math.sqrt(size))
    return loops.apply("div", x, loops.apply("sqrt", loops.sized(x.element, size)))


def _each(x: Expression, heads: int) -> Size:
    """Return the size of a head."""
    found = loops.divided(x.shape[2], heads)
    if found is None:
        raise NotLowered(f"whether {x.shape[2]} elements divide into {heads} heads is known at run time only")
    return found


def _over_heads(x: Expression, heads: int, sizes: Sequence[Size]) -> Expression:
    """Return (batch, steps, heads * sizes) as (batch, heads, steps, sizes...)."""
    split = loops.reshape(x, (*x.shape[:2], heads, *sizes))
    return loops.permute(split, (0, 2, 1, *range(3, split.rank)))


def _gates(decay: Expression | None, heads: int, keys: Expression) -> Expression | None:
    """Return the factors of the rows of a state, one for each element of a key."""
    if decay is None:
        return None
    found = _over_heads(loops.apply("exp", decay), heads, [_each(decay, heads)])
    return loops.expand(found, keys.shape)


def _rates(rate: Expression | None, keys: Expression) -> Expression | None:
    return rate and loops.expand(loops.permute(rate, (0, 2, 1)), keys.shape[:-1])
