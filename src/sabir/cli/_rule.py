"""`sabir rule`: the reference of a rule of the checker."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import suggest
from sabir.checking import GROUPS, RULES, Repairable, rule_page, severity_of
from sabir.cli._completion import rule_ids
from sabir.cli._json import JsonOption, write_json
from sabir.cli._screen import Screen
from sabir.cli._usage import refuse
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.checking import Rule

EXAMPLES = ("sabir rule", "sabir rule GRAPH004", "sabir rule NAME", "sabir rule style")


def rule(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Ids of rules, beginnings of ids (NODE), or groups (style, pedantic).",
            autocompletion=rule_ids,
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a rule of `sabir check`, or list the rules.

    The page of a rule shows the sentence of the standard that it enforces, what it inspects, and examples.
    The rules of the groups `style` and `pedantic` apply only with `check --strict` or `--select`.
    """
    screen, known = Screen(), {r.id: r for r in RULES}
    asked = ids or [""]
    for name in asked:
        if name not in known and not _listed(name):
            families = sorted({id_.rstrip(string.digits) for id_ in known})
            near = (
                suggest(name, (*known, *GROUPS))
                or suggest(name, families)
                or (
                    f"; an id begins with {', '.join(families[:-1])} or {families[-1]}, and the groups are "
                    f"{' and '.join(GROUPS)}; `sabir rule` lists all"
                )
            )
            refuse(f"there is no rule {name!r}{near}")
    if as_json:
        chosen = [r for name in asked for r in ([known[name]] if name in known else _listed(name))]
        write_json([_as_json(r) for r in chosen])
        return
    for name in asked:
        if name in known:
            screen.markdown(rule_page(known[name], Repairable(REPAIRS, UNSAFE_REPAIRS)))
        else:
            _list(screen, _listed(name))


def _listed(name: str) -> list[Rule]:
    """Return the rules of a group, or those whose ids begin with a name."""
    return [r for r in RULES if r.id.startswith(name) or (name and r.group == name)]


def _as_json(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id, "severity": rule.severity, "group": rule.group, "law": rule.law, "source": rule.source,
        "explanation": rule.explanation, "note": rule.note, "bad": [str(e) for e in rule.bad],
        "good": [str(e) for e in rule.good],
    }  # fmt: skip


def _list(screen: Screen, rules: Iterable[Rule]) -> None:
    screen.table([(r.id, severity_of(r), r.explanation) for r in rules], "bold")
