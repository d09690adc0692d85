"""Checking a model: which rules are tried, and what comes of it in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import CheckError, Finding, Limits, SchemaError, run_within, suggest
from sabir.check._rule import RULES, Rule
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from sabir.ir import Model
    from sabir.schema import Registry

    Source = Model | str | os.PathLike[str] | bytes


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
    from sabir.check._judging import judged  # ruff: ignore[import-outside-top-level]  10 ms of `import sabir`

    rules = chosen(select, ignore, strict=strict)
    found = run_within(limits, judged, model, rules, registry, types=types, verify=verify)
    yield from sorted(found, key=lambda f: f.location.order)


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
