"""Groups of an optimizer: what a step computes of a parameter, its gradient and its state is one nest.

An optimizer reads a gradient several times, and tensors of the same shape that are fed. Its maps come to be
in one group by three rules: they are no epilogue of the product that computes the gradient, a map joins
another one that reads the same result, and what maps compute of inputs alone goes where it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops import Expression, Map, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group


def is_update(grouping: Grouping, group: Group) -> bool:
    """Return whether the maps behind a product read two fed tensors of its shape, and give two outputs.

    Tiles of a product are short pieces of lines that lie far apart. Tensors that are read and written beside
    its own result come faster line by line.
    """
    if group.kind != "product":
        return False
    found = grouping.updates.get(group)
    if found is None:
        found = grouping.updates[group] = _has_state_behind(grouping, group.members[0])
    return found


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
    read |= {o for y in read if isinstance(y, Map) for o in y.operands}  # such as the decay of a mean
    constants = grouping.lowered.prepared.constants
    fed = [o for o in read if isinstance(o, Stored) and o.shape == x.shape and o.slot not in constants]
    return len(fed) >= least


def absorb(grouping: Grouping, group: Group, others: Sequence[Group], most: int) -> None:
    """Let a nest compute the members of other nests over its space that are loose."""
    for other in dict.fromkeys(others):
        fits = group.kind == "nest" and other is not group and other.space == group.space
        if not fits or len(group.members) + len(other.members) > most or not _is_loose(grouping, other):
            continue
        group.members[:0] = other.members
        for x in other.members:
            grouping.of[x] = group
        other.kind, other.members = "gone", []


def _is_loose(grouping: Grouping, group: Group) -> bool:
    """Return whether a group has maps alone that wait for no group, and no group waits for it."""
    if group.kind != "nest" or group.reduced is not None or group.after:
        return False
    return not grouping.waited >> group.number & 1 and all(isinstance(x, Map) for x in group.members)


def candidates(grouping: Grouping, x: Expression, direct: Sequence[Expression]) -> list[Group]:
    """Return the groups that an expression may join, the best first.

    These are the groups of its operands, the last first, and the nests whose first map reads a result that a
    map reads too. Loose ones come last: they can be absorbed by the others.
    """
    near = dict.fromkeys(grouping.of[o] for o in direct if o in grouping.of)
    loose = [g for g in near if len(near) > 1 and _is_loose(grouping, g)]
    found = sorted((g for g in near if g not in loose), key=lambda g: g.number, reverse=True)
    return list(dict.fromkeys((*found, *_beside(grouping, x), *loose)))


def _beside(grouping: Grouping, x: Expression) -> list[Group]:
    if not isinstance(x, Map):
        return []
    found = [grouping.readers[o] for o in x.operands if o in grouping.readers]
    return [g for g in found if g.kind == "nest" and g.space == x.shape]


def note_reader(grouping: Grouping, x: Expression, group: Group) -> None:
    """Note which results the first map of a nest reads in its own shape."""
    if isinstance(x, Map):
        for o in x.operands:
            if o.rank and o.shape == x.shape and not isinstance(o, Stored):
                grouping.readers[o] = group


__all__ = ["absorb", "candidates", "is_update", "note_reader"]
