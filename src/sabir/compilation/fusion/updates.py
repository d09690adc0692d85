"""Fusion of optimizers: the update of a parameter, from its gradient and its state, becomes one nest.

An optimizer reads a gradient several times, and fed tensors of the same shape. Three rules bring its maps
into one group: they do not become the epilogue of the product that computes the gradient; a map may join a
nest that reads the same result; maps of inputs alone move to the nest that reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import Copy
from sabir.loops import Expression, Map, Permute, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group


def is_update(grouping: Grouping, group: Group) -> bool:
    """Return whether the maps after a product read two fed tensors of its shape, and compute two outputs.

    A tile of a product is short pieces of rows that are far apart in memory. An epilogue that also reads and
    writes other tensors is slower than a nest, which goes row by row. So is a copy in another order of axes.
    """
    if group.kind != "product" and not _is_transposition(group):
        return False
    found = grouping.updates.get(group)
    if found is None:
        found = grouping.updates[group] = _has_state_behind(grouping, group.members[0])
    return found


def _is_transposition(group: Group) -> bool:
    first = group.members[0]
    return isinstance(first, Copy) and first.into is None and isinstance(first.operand, Permute)


def _has_state_behind(grouping: Grouping, x: Expression) -> bool:
    least = grouping.heuristics.update_tensors
    if sum(y.shape == x.shape for y in grouping.outputs.values()) < least:
        return False
    behind, pending = {x}, [x]
    while pending:
        for user in grouping.users.get(pending.pop(), ()):
            if isinstance(user, Map) and user.shape == x.shape and user not in behind:
                behind.add(user)
                pending.append(user)
    if sum(y in behind for y in grouping.outputs.values()) < least:
        return False
    read = {o for y in behind if isinstance(y, Map) for o in y.operands} - behind
    # through one more map, as the decay of a mean
    read |= {o for y in read if isinstance(y, Map) for o in y.operands}
    constants = grouping.lowered.prepared.constants
    fed = [o for o in read if isinstance(o, Stored) and o.shape == x.shape and o.slot not in constants]
    return len(fed) >= least


def absorb(grouping: Grouping, group: Group, others: Sequence[Group], most: int) -> None:
    """Move the members of loose nests over the same space into a nest."""
    for other in dict.fromkeys(others):
        fits = group.kind == "nest" and other is not group and other.space == group.space
        if not fits or len(group.members) + len(other.members) > most or not _is_loose(grouping, other):
            continue
        group.members[:0] = other.members
        for x in other.members:
            grouping.of[x] = group
        other.kind, other.members = "gone", []


def _is_loose(grouping: Grouping, group: Group) -> bool:
    """Return whether a group has only maps, depends on no group, and no group depends on it."""
    if group.kind != "nest" or group.reduced is not None or group.after:
        return False
    return not grouping.waited >> group.number & 1 and all(isinstance(x, Map) for x in group.members)


def candidates(grouping: Grouping, x: Expression, direct: Sequence[Expression]) -> list[Group]:
    """Return the groups that an expression may join, the best first.

    These are the groups of its operands, the newest first; then, for a map, nests whose first map reads one
    of its operands; then loose groups, which the others can absorb.
    """
    near = dict.fromkeys(grouping.of[o] for o in direct if o in grouping.of)
    loose = [g for g in near if len(near) > 1 and _is_loose(grouping, g)]
    found = sorted((g for g in near if g not in loose), key=lambda g: g.number, reverse=True)
    return list(dict.fromkeys((*found, *_co_readers(grouping, x), *loose)))


def _co_readers(grouping: Grouping, x: Expression) -> list[Group]:
    if not isinstance(x, Map):
        return []
    found = [grouping.readers[o] for o in x.operands if o in grouping.readers]
    return [g for g in found if g.kind == "nest" and g.space == x.shape]


def note_reader(grouping: Grouping, x: Expression, group: Group) -> None:
    """Record the nest as a reader of the results that its first map reads in its own shape."""
    if isinstance(x, Map):
        for o in x.operands:
            if o.rank and o.shape == x.shape and not isinstance(o, Stored):
                grouping.readers[o] = group


__all__ = ["absorb", "candidates", "is_update", "note_reader"]
