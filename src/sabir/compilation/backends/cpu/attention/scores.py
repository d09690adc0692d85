"""The fusion of attention: two products, and the rows of scores that only they use, become one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.products.grouping import place_operands
from sabir.compilation.fusion.groups import Group
from sabir.compilation.fusion.inlining import is_inline, read_by
from sabir.compilation.fusion.views import Copy
from sabir.compilation.plan.decisions import NodesOf, Reason
from sabir.loops import Contract, Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.compilation.fusion.grouping import Grouping


# reasons against the fusion of two products
_SEVERAL = Reason("the rows between them need several products")
_VALUES_APART = Reason("the columns of the values are not side by side in memory")
_NO_MATRICES = Reason("they are not both products of matrices of one type of float")
_READ = Reason("another kernel reads the scores")
_RETURNED = Reason("the scores are an output")
_OTHER_BATCH = Reason("they have other batch axes")
_BETWEEN = Reason("a kernel between them needs the scores")


def claim_scores(grouping: Grouping, x: Contract) -> bool:
    """Fuse a product with the scores that only it reads, if possible; return whether it did."""
    place_operands(grouping, x)
    scores = scores_of(grouping, x) if x.is_float and grouping.operands[x][0] is x.a else None
    if isinstance(scores, Reason):
        grouping.decisions.add((x,), "attention", "two products", "one kernel", scores)
    if not isinstance(scores, Group):
        return False
    products, rows = scores.members[0], x.a
    chosen = Reason("one kernel with {} and {}", (NodesOf(products), NodesOf(rows)))
    grouping.decisions.add((x,), "attention", chosen)
    grouping.decisions.superseded.update(scores.members)
    add_scores(grouping, x, scores)
    return True


def scores_of(grouping: Grouping, x: Contract) -> Group | Reason | None:
    """Return the group of the first product and the scores that only `x` reads, if they can be fused with it.

    The scores are folded along the keys, as Softmax does, and the values have stride 1 along their columns.
    Return None if the first operand is no folded result of another product, else the reason against fusion.
    """
    rows = grouping.of.get(x.a)
    if rows is None or rows.kind != "nest" or rows.space != x.a.shape or x.b.rank != x.rank:
        return None
    if rows.reduced != (x.a.rank - 1,):
        return None
    values, of, heuristics = grouping.operands[x][1], grouping.of, grouping.heuristics
    operands = {r for m in rows.members for o in m.operands for r in read_by(o, heuristics) if r in of}
    read = [o for o in operands if of[o] is not rows]
    products = {of[o] for o in read if of[o].kind == "product" and o.shape == rows.space}
    if not products:
        return None
    if len(products) > 1:
        return _SEVERAL
    if grouping.views.locate(values).strides[-1] != 1:
        return _VALUES_APART
    (product,) = products
    apart = _why_apart(grouping, x, product, rows)
    if apart is not None:
        return apart
    return Group("nest", -1, rows.space, rows.reduced, [*product.members, *rows.members],
                 after=(product.after | rows.after) & ~(1 << product.number))  # fmt: skip


def _why_apart(grouping: Grouping, x: Contract, product: Group, rows: Group) -> Reason | None:
    """Return the reason against the fusion of `product`, the `rows` of its results, and `x`; else None."""
    if not all(map(_is_of_matrices, (x, product.members[0]))):
        return _NO_MATRICES
    inside = {*product.members, *rows.members}
    if any(user not in inside and user is not x for m in inside for user in _users(grouping, m)):
        return _READ
    if inside & set(grouping.outputs.values()):
        return _RETURNED
    if product.space[:-2] != x.shape[:-2]:
        return _OTHER_BATCH
    others = [g for g in grouping.groups if rows.after >> g.number & 1 and g is not product]
    if any(g.after >> product.number & 1 for g in others):
        return _BETWEEN
    return None


def _users(grouping: Grouping, x: Expression) -> Iterator[object]:
    """Yield the readers of an expression, also through inlined maps."""
    for user in grouping.users.get(x, ()):
        if isinstance(user, Expression) and user not in grouping.of and is_inline(user, grouping.heuristics):
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
    """Add the group of the scores and the product that reads them; their former groups are gone."""
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
    """Copy the first operand of a product unless its rows are contiguous; return the groups of the copy."""
    a, b = grouping.operands[product]
    if a.shape[-1] == 1 or grouping.views.locate(a).strides[-1] == 1:
        return []
    copy = Copy(a.element, a.shape, a)
    grouping.assign(copy)
    grouping.operands[product] = copy, b
    return grouping.need(copy)
