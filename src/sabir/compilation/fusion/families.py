"""Kernel families: the declarations by which fusion and planning find the family of an expression.

A backend has one family for each kind of group. Fusion calls the family of an expression to begin a group,
and the builder of plans calls the family of a group to add its entries. Neither names a family.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.loops import Expression


class Later:
    """A function, named as `module:function`, whose module is imported by the first call.

    A plan loads the modules of the families that it needs, and few plans need many.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self.function(*arguments)

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        module, _, function = self.name.partition(":")
        return getattr(importlib.import_module(module), function)


class Family(NamedTuple):
    """A family of kernels; `name` is the kind of its groups.

    - `expressions` are the kinds of expressions that this family computes: `group` adds one to a group.
    - `claims` are kinds of another family that this one can compute faster in some cases: `claim` adds an
      expression to a group, and returns whether it did.
    - `plan` adds the entries of a group to a plan; its first argument is the builder of the backend.
    - `schedule` takes all groups in order, plans some of them together, and yields the rest. It has nothing
      to do where no group is of a kind in `scheduled`.
    - No further expression joins a `closed` group. In a family with an `epilogue`, maps that read the result
      join the group.
    - A `row_major` kernel writes only row-major results.
    - `kernels` maps the class name of each specification to the `module:function` that emits its LLVM IR.
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
    scheduled: frozenset[str] = frozenset()
    kernels: Mapping[str, str] = {}


class Families:
    """The families of a backend, by name and by the kinds of expressions that they compute."""

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
        """Add an expression to a group by its family; return whether it has one."""
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
        """Yield the groups in order, except those that a family has planned together."""
        left, kinds = iter(groups), {group.kind for group in groups}
        for family in self.by_name.values():
            if family.schedule is not None and not kinds.isdisjoint(family.scheduled):
                left = family.schedule(builder, list(left))
        return left

    def plan(self, builder: Any, group: Group) -> None:
        """Add the entries of a group to a plan."""
        family = self.by_name[group.kind]
        if family.plan is None:
            raise TypeError(f"the family {family.name} plans no single groups")
        family.plan(builder, group)

    def has_epilogue(self, group: Group) -> bool:
        """Return whether maps that read the result of a group, and have its shape, become its epilogue."""
        return group.kind in self.by_name and self.by_name[group.kind].epilogue
