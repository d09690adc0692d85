"""How the calls of each operator cross the boundary below each of its versions: the rows of docs/conversions.md."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.conversion._boundaries import Boundary, boundary_of
from sabir.opsets import STANDARD
from sabir.schema import Unconvertible
from support.conversions import CONVERTED, converted, example_cases
from support.rooms import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.schema import Operator, Version
    from support.conversions import Case

AS_IT_IS, ADAPTER, BODY, OLDER, REFUSED = "as it is", "adapter", "function body", "older operators", "refused"
MOST_TYPES, MOST_REASONS = 4, 3  # that a row lists
OF_TYPE = re.compile(r"(\S+) does not admit ([^ ;]+)(?: for '\w+')?(?:;.*)?")
OF_VALUE = re.compile(r"(\S+): attribute ('\w+') is (.+?), and must be .*")
LACKS = re.compile(r"opset \d+ has no such operator, and it has no function body")


@dataclass
class Crossing:
    """How calls cross a boundary in one direction, and the reasons for which some of them, or all, do not."""

    how: str
    reasons: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shown, more = self.reasons[:MOST_REASONS], len(self.reasons) - MOST_REASONS
        reasons = f"{REFUSED}: {'; '.join(shown)}{f'; and {more} more' if more > 0 else ''}"
        if self.how == REFUSED:
            return reasons
        return f"{self.how}; {reasons}" if shown else self.how


@dataclass
class Row:
    """The boundary below one version; there is no way up to the first one."""

    version: Version
    up: Crossing | None
    down: Crossing

    @property
    def is_plain(self) -> bool:
        """Whether calls cross unchanged, and only those of new types do not cross."""
        return (
            self.up is not None
            and (self.up.how, self.down.how) == (AS_IT_IS, AS_IT_IS)
            and not self.up.reasons
            and all(" does not admit " in reason for reason in self.down.reasons)
        )

    @property
    def is_absent(self) -> bool:
        """Whether nothing older expresses the operator, for no other reason than that it came here."""
        return self.down.how == REFUSED and all(LACKS.fullmatch(reason) for reason in self.down.reasons)


def rows_of(operator: Operator) -> Iterator[Row]:
    """A row for each boundary of an operator, the oldest first; there is none below opset 1."""
    cases = list(example_cases(operator))
    for version in operator.versions:
        if version.since > 1:
            up = None if version.previous is None else boundary_of(operator, version.since, downward=False)
            down = boundary_of(operator, version.since, downward=True)
            yield Row(version, up and _crossing(up, cases), _crossing(down, cases))


def _crossing(boundary: Boundary, cases: Iterable[Case]) -> Crossing:
    if boundary.refusal:
        return Crossing(REFUSED, [boundary.refusal])
    source, target = boundary.source, boundary.target
    reasons = dict.fromkeys(r for case in cases for r in _refusals(boundary, case))
    if target is None:
        return Crossing(OLDER if source.find("downgrade") else BODY, _merged(reasons))
    if boundary.adapter is not None:
        return Crossing(ADAPTER, _merged(reasons))
    others = [r for r in reasons if not OF_TYPE.fullmatch(r)]
    lost = _lost(source, target) if target.since < source.since else []
    return Crossing(AS_IT_IS, [*_merged(f"{target} does not admit {t}" for t in lost), *_merged(others)])


def _refusals(boundary: Boundary, case: Case) -> Iterator[str]:
    """Yield the reasons why an example of the version on one side does not cross; what it becomes may not either."""
    source, target = boundary.source, boundary.target
    if source.operator.find(case.opset) is not source:
        return
    if boundary.adapter is None:
        (node,) = case.model.graph
        try:
            boundary.same_call(node.attributes, [None] * len(node.inputs), len(node.outputs))
        except Unconvertible as reason:
            yield str(reason)
        return
    got = converted(case.model, case.domain, source.since - 1 if target is None else target.since)
    for refusal in getattr(got, "refusals", ()):
        if refusal.operator == str(source):
            yield refusal.reason


def _lost(newer: Version, older: Version) -> list[str]:
    """Return the types that ports of a version admit and those of the one before do not."""
    pairs = [*zip(newer.inputs, older.inputs, strict=False), *zip(newer.outputs, older.outputs, strict=False)]
    return sorted({t for n, o in pairs for t in n.allowed - o.allowed})


def _merged(reasons: Iterable[str]) -> list[str]:
    """Make one reason of those that name types which the same version does not admit."""
    types: dict[str, list[str]] = defaultdict(list)
    found: dict[str, None] = {}
    for reason in reasons:
        match = OF_TYPE.fullmatch(reason)
        if match is None:
            found[OF_VALUE.sub(r"\1 has no \3 for \2", reason)] = None
        else:
            types[match[1]].append(match[2].removeprefix("tensor(").removesuffix(")"))
    return [*(f"{version} does not admit {_listed(names)}" for version, names in types.items()), *found]


def _listed(names: list[str]) -> str:
    names = sorted(set(names))
    if len(names) <= MOST_TYPES:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_TYPES])} and {len(names) - MOST_TYPES} more"


# the page

HEAD = """# Conversions

How `sabir.convert` takes the calls of each operator across each boundary between versions. A conversion from opset 9 to 18 crosses,
call by call, every boundary in between.

- *as it is*: the call is valid on both sides and means the same;
- *adapter*: the call is rewritten for the other version, by an `upgrade` or `downgrade` of the operator's module;
- *function body*, *older operators*: below its first version, the operator is written out by other operators;
- *refused*: no call crosses, or those do not that have the reason. Beside an adapter these are the reasons that the examples of the operator
  meet, with their operands as inputs and as constants; other calls may meet others. With `cast=True` a call of a type that the older
  version does not admit is made in a wider one, where there is one.

An arrow without an older version is the boundary below the first version. No boundary is below opset 1; {bare} operators have that version
alone.
`tools/conversions.py` converts every example and every official case to every opset and compares the values. `tools/write_conversions.py`
writes this page, and `tests/conversion/test_table.py` checks that it is current.

{counts}
"""
PLAIN = "These boundaries are crossed *as it is* both ways, down by the calls of the types that the older version admits:"
ABSENT = "Below these first versions nothing expresses the operator: it has no function body, and no older operators are known to compute it:"
TABLE = ("| operator | versions | up | down |", "|---|---|---|---|")
WIDTH = 140


def page() -> str:
    """Write the document."""
    rows = {o: list(rows_of(o)) for o in OPERATORS if o.domain in CONVERTED}
    every = [row for found in rows.values() for row in found]
    bare = sum(len(o.versions) == 1 and o.versions[0].since == 1 for o in OPERATORS)
    lines = [HEAD.format(bare=bare, counts=_counts(every))]
    for domain in CONVERTED:
        lines += _section(domain, [row for o, found in rows.items() if o.domain == domain for row in found])
    others = ", ".join(d for d in STANDARD.domains if d not in CONVERTED)
    return "\n".join([*lines, f"The operators of {others} have one version each.", ""])


def _counts(rows: list[Row]) -> str:
    ups = [row.up for row in rows if row.up is not None]
    both = [f"up: {_numbers(ups)}", f"down: {_numbers([row.down for row in rows])}"]
    return f"{len(rows)} boundaries; {'; '.join(both)}."


def _numbers(crossings: list[Crossing]) -> str:
    hows = [c.how for c in crossings]
    return ", ".join(
        f"{hows.count(how)} {how}" for how in (AS_IT_IS, ADAPTER, BODY, OLDER, REFUSED) if how in hows
    )


def _section(domain: str, rows: list[Row]) -> Iterator[str]:
    yield from (f"## {domain or 'ai.onnx'}", "")
    yield from TABLE
    for row in rows:
        if not row.is_plain and not row.is_absent:
            older = "" if row.version.previous is None else f"{row.version.previous.since} "
            up = "-" if row.up is None else row.up
            cells = row.version.operator.name, f"{older}→ {row.version.since}", up, row.down
            yield f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"
    yield from _list(PLAIN, [row.version for row in rows if row.is_plain])
    yield from _list(ABSENT, [row.version for row in rows if row.is_absent])
    yield ""


def _list(intro: str, versions: list[Version]) -> Iterator[str]:
    if versions:
        numbers: dict[str, list[str]] = defaultdict(list)
        for version in versions:
            numbers[version.operator.name].append(str(version.since))
        listed = "; ".join(f"{name} {', '.join(found)}" for name, found in numbers.items())
        yield from ("", intro, "", textwrap.fill(f"{listed}.", WIDTH, break_on_hyphens=False))


def boundaries_in(text: str) -> list[tuple[str, str, int]]:
    """Read the document back: the domain, operator and version of each boundary that it lists."""
    found: list[tuple[str, str, int]] = []
    for section in text.split("\n## ")[1:]:
        title, _, content = section.partition("\n")
        domain = "" if title == "ai.onnx" else title
        rows = re.findall(r"^\| (\w+) \| (?:\d+ )?→ (\d+) \|", content, re.MULTILINE)
        found += [(domain, name, int(since)) for name, since in rows]
        for intro in (PLAIN, ABSENT):
            listed = content.partition(f"{intro}\n\n")[2].partition("\n\n")[0]
            for item in filter(None, " ".join(listed.split()).rstrip(".").split("; ")):
                name, _, numbers = item.partition(" ")
                found += [(domain, name, int(since)) for since in numbers.split(", ")]
    return found
