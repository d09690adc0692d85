"""Operator sets as the subjects of rules: each with its location, and as a model of its functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sabir.base import Location, SchemaError
from sabir.checking._set_changes import SetChanges, set_changes
from sabir.ir import Model, OperatorSet, canonical_domain
from sabir.serial import load_operator_set

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from sabir.schema import Registry

SetSource: TypeAlias = "OperatorSet | str | os.PathLike[str] | bytes"
# a function of the default domain has no domain and the name of an operator
_OF_MODELS = frozenset({"FUNC002", "FUNC007"})


@dataclass(frozen=True, slots=True)
class SetSite:
    """One operator set with its location.

    >>> site = SetSite(sabir.OperatorSet('com.acme', 3), 0)
    >>> str(site.where)
    "operator_set[0] 'com.acme:3'"
    """

    operator_set: OperatorSet
    place: int | None

    @property
    def where(self) -> Location:
        """The location; it has an index if several operator sets are checked together."""
        return Location().at("operator_set", index=self.place, name=self.operator_set.label)

    def at_operator(self, index: int) -> Location:
        """Return the location of an entry."""
        return self.where.at("operator", index=index, name=self.operator_set.operators[index].name)

    def at_function(self, index: int) -> Location:
        """Return the location of a function."""
        return self.where.at("function", index=index, name=self.operator_set.functions[index].name)

    @property
    def unsuitable(self) -> frozenset[str]:
        """The rules about the functions of models that do not apply to those of this operator set."""
        return frozenset() if canonical_domain(self.operator_set.domain) else _OF_MODELS

    def model(self) -> Model:
        """Return a model with the functions of the operator set, and nothing else."""
        own = self.operator_set
        opsets = {own.domain: own.version}
        return Model(opsets=opsets, ir_version=own.ir_version, functions=own.functions)


class Succession(NamedTuple):
    """An operator set, the next one of its domain, and the differences between them."""

    older: SetSite
    newer: SetSite
    changes: SetChanges


@dataclass(frozen=True)
class SetSurvey:
    """The operator sets that are checked together.

    >>> survey = SetSurvey([SetSite(sabir.OperatorSet('com.acme', version), version) for version in (1, 2)])
    >>> [(older.place, newer.place) for older, newer, _ in survey.histories]
    [(1, 2)]
    """

    sites: list[SetSite]

    @cached_property
    def histories(self) -> list[Succession]:
        """The operator sets of each domain by their versions, in pairs."""
        domains: dict[str, list[SetSite]] = {}
        for site in self.sites:
            domains.setdefault(canonical_domain(site.operator_set.domain), []).append(site)
        return [
            Succession(older, newer, set_changes(older.operator_set, newer.operator_set))
            for same in domains.values()
            for older, newer in pairwise(sorted(same, key=lambda site: site.operator_set.version))
        ]


def set_sites(source: OperatorSet | Sequence[SetSource]) -> list[SetSite]:
    """Return the operator sets to check; raises the errors of reading them."""
    if isinstance(source, OperatorSet):
        return [SetSite(source, None)]
    sets = [one if isinstance(one, OperatorSet) else load_operator_set(one) for one in source]
    return [SetSite(one, place) for place, one in enumerate(sets)]


def with_sets(registry: Registry, sets: Iterable[OperatorSet]) -> Registry:
    """Return a registry that knows the operators of operator sets, as far as these are sound.

    Of one with recursive functions it knows the entries only; of two of one version it knows the first.
    Rules report both.
    """
    for one in sets:
        try:
            registry = registry.with_operator_sets(one)
        except SchemaError:
            try:
                registry = registry.with_operator_sets(replace(one, functions=[]))
            except SchemaError:
                continue
    return registry
