"""Families of kernels, as fusion and planning see them: what a target declares of each.

A target has one family for each kind of group. Fusion asks the family of an expression to begin a group for
it, and the builder of plans asks the family of a group for its entries. So neither names a family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.loops import Expression


class Family(NamedTuple):
    """A family of kernels: the kind of its groups, what it computes, and how.

    - `expressions` are the kinds of expressions that only this family computes: `group` adds one to a group.
    - `claims` are kinds that another family computes: `claim` takes an expression where the family
      computes it better, and returns whether it did.
    - `plan` adds the entries of a group to a plan; it gets the builder of the target.
    - `schedule` gets all groups in their order and yields those that are left to other families.
    - No other expression joins a group that is `closed`. Maps behind one with an `epilogue` join it.
    - A `row_major` kernel writes its results in row-major order, whatever their readers prefer.
    - `kernels` has, by the name of the class of each specification, `module:function` of the LLVM text.
    """

    name: str
    plan: Callable[[Any, Group], None] | None = None
    expressions: tuple[type[Expression], ...] = ()
    group: Callable[[Grouping, Any], None] | None = None
    claims: tuple[type[Expression], ...] = ()
    claim: Callable[[Grouping, Any], bool] | None = None
    closed: bool = True
    epilogue: bool = False
    row_major: bool = False
    schedule: Callable[[Any, Sequence[Group]], Iterator[Group]] | None = None
    kernels: Mapping[str, str] = {}


class Families:
    """The families of a target, by name and by what they compute."""

    def __init__(self, families: Iterable[Family]) -> None:
        self.by_name = {f.name: f for f in families}
        self._owners = {kind: f for f in self.by_name.values() for kind in f.expressions}
        self._claimants = {
            kind: tuple(f for f in self.by_name.values() if kind in f.claims)
            for f in self.by_name.values()
            for kind in f.claims
        }
        self.writers = {name: text for f in self.by_name.values() for name, text in f.kernels.items()}
        self.row_major = tuple(kind for kind, f in self._owners.items() if f.row_major)

    def group(self, grouping: Grouping, x: Expression) -> bool:
        """Let the family of an expression add it to a group; return whether there is such a family."""
        for family in self._claimants.get(type(x), ()):
            if family.claim is not None and family.claim(grouping, x):
                return True
        owner = self._owners.get(type(x))
        if owner is None or owner.group is None:
            return False
        owner.group(grouping, x)
        return True

    def is_closed(self, group: Group) -> bool:
        """Return whether no expression may join a group."""
        family = self.by_name.get(group.kind)
        return family is None or family.closed

    def scheduled(self, builder: Any, groups: Sequence[Group]) -> Iterator[Group]:
        """Yield groups in their order, without those that a family plans together with others."""
        left = iter(groups)
        for family in self.by_name.values():
            if family.schedule is not None:
                left = family.schedule(builder, list(left))
        return left

    def plan(self, builder: Any, group: Group) -> None:
        """Add the entries of a group to a plan."""
        family = self.by_name[group.kind]
        if family.plan is None:
            raise TypeError(f"the family {family.name} plans no single groups")
        family.plan(builder, group)

    def has_epilogue(self, group: Group) -> bool:
        """Return whether maps of the shape of a group join it behind its result."""
        return group.kind in self.by_name and self.by_name[group.kind].epilogue
