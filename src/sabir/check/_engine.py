"""Checking a model: every rule over all that it looks at, then types, in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import (
    CheckError,
    Finding,
    Limits,
    Location,
    SchemaError,
    TextError,
    legible,
    suggest,
    within,
    without_collector,
)
from sabir.check._held import is_plain
from sabir.check._rule import RULES, Rule
from sabir.check._survey import AttributeSite, Survey
from sabir.check._types import STATE, TYPES, type_findings
from sabir.ir import Model
from sabir.opsets import STANDARD
from sabir.serial import load

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from sabir.schema import Registry

    Source = Model | str | os.PathLike[str] | bytes

ARITY, UTF8 = "NODE002", "TEXT001"
# all that is looked at in the graph of a function's default, which stands in no node and sees no values
_CALLS = frozenset({"NODE001", "NODE002", "NODE003", "NODE005", "NODE007", "NODE008", "NODE009"})


def check(
    model: Source,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    strict: bool = False,
    types: bool = True,
    verify: bool = False,
    limits: Limits | None = None,
) -> None:
    """Return when a model breaks no rule; else raise CheckError with every finding that is an error.

    With `strict` warnings count as errors and pedantic rules hold too. The other arguments and errors are
    those of `findings`.
    """
    found = findings(
        model, select=select, ignore=ignore, strict=strict, types=types, verify=verify, limits=limits
    )
    broken = [f for f in found if strict or f.severity == "error"]
    if broken:
        raise CheckError(broken)


def findings(
    model: Source,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    strict: bool = False,
    types: bool = True,
    verify: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with a model, in reading order.

    Takes a model, a path or the bytes of a file. `select` and `ignore` are ids of rules, or beginnings of
    ids (`GRAPH`); a rule selected by its whole id holds even where it is pedantic, and `strict` turns all
    pedantic rules on. Without `types` nothing is inferred, which is the larger part of the time.
    With `verify` files of external data are read to see that their checksums are right, whatever their size.

    Raises FileError or WireError where there is no model, LimitError where checking would cost too much,
    and SchemaError for an id that no rule has.
    """
    rules = chosen(select, ignore, strict=strict)
    with within(limits):  # left before the first finding is given away
        found = _found(model, rules, registry, types=types, verify=verify)
    yield from sorted(found, key=lambda f: f.location.order)


def _found(
    model: Source, rules: list[Rule], registry: Registry, *, types: bool, verify: bool
) -> list[Finding]:
    if not isinstance(model, Model):
        try:
            model = load(model)
        except TextError as error:
            told = Finding(UTF8, str(error), Location(), "names and documentation must be UTF-8")
            return [told] if any(r.id == UTF8 for r in rules) else []
    with without_collector():
        survey = Survey(model, registry, verify)
        found = list(_broken(rules, survey))
    inferred = {r.id for r in rules if r.id in {TYPES, STATE} and r.holds_for(model.ir_version)}
    if types and inferred:
        # a node that is called with what it does not take has no types to be judged
        miscalled = {f.location for f in found if f.rule == ARITY}
        found += [f for f in type_findings(survey) if f.rule in inferred and f.location not in miscalled]
    return found


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = (), *, strict: bool = False) -> list[Rule]:
    """Return the rules that a choice of ids means; raises SchemaError for an id that no rule has."""
    wanted, unwanted = tuple(select), tuple(ignore)
    for given in (*wanted, *unwanted):
        if not given or not any(r.id.startswith(given) for r in RULES):
            raise SchemaError(f"there is no rule {given!r}{suggest(given, (r.id for r in RULES))}")
    return [
        r
        for r in RULES
        if (not wanted or r.id.startswith(wanted))
        and not (unwanted and r.id.startswith(unwanted))
        and (strict or not r.pedantic or r.id in wanted)
    ]


def _broken(rules: Iterable[Rule], survey: Survey) -> Iterator[Finding]:
    subjects = {
        "model": [survey],
        "root": survey.roots,
        "graph": survey.graphs,
        "tensor": [site for site in survey.tensors if not is_plain(site.tensor)],
        "sparse": survey.sparse,
        "type": survey.types,
        "function": survey.functions,
        "training": survey.trainings,
    }
    parts = [inner for default in survey.defaults for inner in default.within()]
    for rule in rules:
        if not rule.holds_for(survey.model.ir_version):
            continue
        broken = _alike(rule, survey) if rule.over == "attribute" else subjects[rule.over]
        if rule.id in _CALLS:
            broken = [*survey.graphs, *parts]
        for subject in broken:
            for message, where, hint in rule.check(subject):
                yield Finding(rule.id, legible(message), where, legible(hint), rule.severity)


def _alike(rule: Rule, survey: Survey) -> Iterator[AttributeSite]:
    """The attributes that break a rule: of those that are alike one is asked, the others only if it does."""
    for sites in survey.attributes:
        if any(True for _ in rule.check(sites[0])):
            yield from sites
