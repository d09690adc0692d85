"""Decisions: what planning chose at a node, what it rejected, and why.

They are recorded as small values while a plan is made, and become text when somebody asks. A stored plan has
them as one text, so that reading the plan takes no time for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.loops import Expression


class NodesOf(NamedTuple):
    """The nodes that an expression comes from, as a value of a reason."""

    expression: Expression


class Reason(NamedTuple):
    """A text with the values that belong between its braces: numbers and sizes, or the nodes of expressions.

    >>> str(Reason('{} channels < {}', (16, 32)))
    '16 channels < 32'
    """

    form: str
    values: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.form.format(*map(_shown, self.values)) if self.values else self.form


def _shown(value: object) -> object:
    """Return the labels of nodes as one text, other values as they are."""
    if not isinstance(value, tuple):
        return value
    return ", ".join(map(str, cast("tuple[object, ...]", value))) or "no node"


class Decision(NamedTuple):
    """One choice of the compiler.

    `nodes` has the labels of the nodes that it concerns, and none where it concerns the whole plan. `subject`
    is what was to be decided, such as `algorithm` or `fusion`. `rejected` is empty where there was no other
    possibility, and `because` where the choice needs no reason.

    >>> print(Decision(('Conv_12',), 'algorithm', 'direct', 'winograd', '16 channels < 32'))
    Conv_12: direct, not winograd: 16 channels < 32
    """

    nodes: tuple[str, ...]
    subject: str
    chosen: str
    rejected: str = ""
    because: str = ""

    def __str__(self) -> str:
        return f"{', '.join(self.nodes) or 'the plan'}: {self.text}"

    @property
    def text(self) -> str:
        """The decision without the nodes."""
        found = f"{self.chosen}, not {self.rejected}" if self.rejected else self.chosen
        return f"{found}: {self.because}" if self.because else found


class Recorded(NamedTuple):
    """A decision as it is recorded: about expressions, or about nodes whose labels are known."""

    about: tuple[Expression, ...] | tuple[str, ...]
    subject: str
    chosen: Reason | str
    rejected: Reason | str
    because: Reason | str


PLAN = ("",)
"""What a decision about the whole plan is about."""


@dataclass(slots=True, eq=False)
class Decisions:
    """The decisions of a plan in the order in which they were made.

    Decisions on `superseded` expressions are left out: another kernel computes these now.
    `stored` is the text that a plan from the disk has instead of the records.
    """

    records: list[Recorded] = field(default_factory=list[Recorded])
    superseded: set[Expression] = field(default_factory=set["Expression"])
    stored: str = ""

    def add(
        self,
        about: Sequence[Expression] | Sequence[str],
        subject: str,
        chosen: Reason | str,
        rejected: Reason | str = "",
        because: Reason | str = "",
    ) -> None:
        """Record a decision about expressions, about nodes, or about `PLAN`.

        `settle` replaces expressions by the labels of their nodes.
        """
        self.records.append(Recorded(tuple(about), subject, chosen, rejected, because))  # pyright: ignore[reportArgumentType]  all are of one type

    def settle(self, labels: Callable[[Iterable[Expression]], tuple[str, ...]]) -> None:
        """Replace expressions by the labels of their nodes; leave out decisions about no node."""
        known: dict[tuple[Expression, ...], tuple[str, ...]] = {}

        def settled(about: tuple[Expression, ...]) -> tuple[str, ...]:
            found = known.get(about)
            if found is None:
                found = known[about] = labels(about)
            return found

        def named(reason: Reason | str) -> Reason | str:
            if isinstance(reason, str) or not any(isinstance(x, NodesOf) for x in reason.values):
                return reason
            values = (settled((x.expression,)) if isinstance(x, NodesOf) else x for x in reason.values)
            return Reason(reason.form, tuple(values))

        records, self.records = self.records, []
        for record in records:
            if not record.about or record.about[0] in self.superseded:
                continue
            if isinstance(record.about[0], str):
                self.records.append(record)
            elif nodes := settled(cast("tuple[Expression, ...]", record.about)):
                _, subject, *reasons = record
                self.records.append(Recorded(nodes, subject, *map(named, reasons)))
        self.superseded = set()

    def all(self) -> tuple[Decision, ...]:
        """Return the decisions, each once; what one node computes together is none."""
        if self.stored:
            return tuple(Decision(tuple(nodes), *texts) for nodes, *texts in json.loads(self.stored))
        found = dict.fromkeys(map(_decision, self.records))
        return tuple(each for each in found if each is not None)

    def as_text(self) -> Decisions:
        """Return the decisions in the form in which a plan is stored."""
        return Decisions(stored=self.stored or json.dumps(self.all(), separators=(",", ":")))


def _decision(record: Recorded) -> Decision | None:
    about, subject, chosen, rejected, because = record
    if isinstance(chosen, Reason) and chosen.values == (about,) and not rejected:
        return None
    nodes = () if about == PLAN else tuple(str(x) for x in about)
    return Decision(nodes, subject, str(chosen), str(rejected), str(because))


__all__ = ["PLAN", "Decision", "Decisions", "NodesOf", "Reason", "Recorded"]
