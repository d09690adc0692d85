"""Attention: two products, and between them rows of scores that no other kernel needs, as one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.products.grouping import place_operands
from sabir.compilation.fusion.groups import Group
from sabir.compilation.fusion.inlining import is_inline, read_by
from sabir.compilation.fusion.views import Copy
from sabir.loops import Contract, Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.compilation.fusion.grouping import Grouping


def claim_scores(grouping: Grouping, x: Contract) -> bool:
    """Make one group of a product and the scores that only it reads; return whether it does so."""
    place_operands(grouping, x)
    scores = scores_of(grouping, x) if x.is_float and grouping.operands[x][0] is x.a else None
    if scores is None:
        return False
    add_scores(grouping, x, scores)
    return True


def scores_of(grouping: Grouping, x: Contract) -> Group | None:
    """Return the first product and the rows that feed only this product, where they become one kernel.

    The rows fold along the keys, as Softmax does, and the values lie row by row.
    """
    rows = grouping.of.get(x.a)
    if rows is None or rows.kind != "nest" or rows.space != x.a.shape or x.b.rank != x.rank:
        return None
    values = grouping.operands[x][1]
    if rows.reduced != (x.a.rank - 1,) or grouping.views.locate(values).strides[-1] != 1:
        return None
    of = grouping.of
    read = {r for m in rows.members for o in m.operands for r in read_by(o) if r in of and of[r] is not rows}
    products = {of[o] for o in read if of[o].kind == "product" and o.shape == rows.space}
    if len(products) != 1:
        return None
    (product,) = products
    if not all(map(_is_of_matrices, (x, product.members[0]))):
        return None
    inside = {*product.members, *rows.members}
    if any(user not in inside and user is not x for m in inside for user in _users(grouping, m)):
        return None
    if inside & set(grouping.outputs.values()) or product.space[:-2] != x.shape[:-2]:
        return None
    others = [g for g in grouping.groups if rows.after >> g.number & 1 and g is not product]
    if any(g.after >> product.number & 1 for g in others):
        return None
    return Group("nest", -1, rows.space, rows.reduced, [*product.members, *rows.members],
                 after=(product.after | rows.after) & ~(1 << product.number))  # fmt: skip


def _users(grouping: Grouping, x: Expression) -> Iterator[object]:
    """Yield what reads an expression, also after it was widened."""
    for user in grouping.users.get(x, ()):
        if isinstance(user, Expression) and user not in grouping.of and is_inline(user):
            yield from _users(grouping, user)
        else:
            yield user


def _is_of_matrices(x: object) -> bool:
    return (
        isinstance(x, Contract)
        and x.rows == x.depth == 1
        and x.a.element == x.b.element == x.element
        and not x.scale
    )


def add_scores(grouping: Grouping, x: Contract, scores: Group) -> None:
    """Make one group of the scores and of the product that reads them."""
    for member in scores.members:
        grouping.stored.pop(member, None)
        grouping.of[member].kind = "gone"
    needed = [*grouping.need(grouping.operands[x][1]), *_side_by_side(grouping, scores.members[0])]
    group = grouping.new_group("attention")
    group.space, group.scores = x.shape, scores
    group.members.append(x)
    group.after |= scores.after
    for member in scores.members:
        grouping.of[member] = group
    grouping.of[x] = group
    grouping.depend(group, needed)


def _side_by_side(grouping: Grouping, product: Expression) -> list[Group]:
    """Let the rows of the first product lie side by side, for attention; return what copies them."""
    a, b = grouping.operands[product]
    if a.shape[-1] == 1 or grouping.views.locate(a).strides[-1] == 1:
        return []
    copy = Copy(a.element, a.shape, a)
    grouping.assign(copy)
    grouping.operands[product] = copy, b
    return grouping.need(copy)
