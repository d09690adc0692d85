"""Rules: a function for each, with the sentence it enforces and examples attached."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.base import Location, Severity

Subject = Literal[
    "model",
    "root",
    "graph",
    "calls",
    "attribute",
    "tensor",
    "sparse",
    "type",
    "function",
    "training",
    "operator set",
    "operator sets",
]
Source = Literal["ir.txt", "ir-with-training.txt", "versioning.txt", "onnx.proto", "functions", "practice"]
Group = Literal["", "style", "pedantic"]

GROUPS: dict[Group, str] = {
    "style": "names, documentation and unused descriptions, which do not affect any result",
    "pedantic": "what nearly every model of some exporter violates, and hardly any reader minds",
}
"""The groups of rules that apply only with `strict`, or when the rule or the group is selected."""


class Problem(NamedTuple):
    """A violation of a rule: the message, the location, and what to do."""

    message: str
    where: Location
    hint: str = ""


class Textproto(str):  # ruff: ignore[subclass-builtin]  it adds nothing to a string
    """An example that the text syntax cannot represent: a ModelProto in protobuf's text format."""

    __slots__ = ()


class Wire(bytes):
    """An example that no text format can represent: the bytes of a ModelProto."""

    __slots__ = ()


class SetTexts(str):  # ruff: ignore[subclass-builtin]  as above
    """An example of operator sets: OperatorSetProtos in protobuf's text format, with `---` lines between."""

    __slots__ = ()


Model = str | Textproto | Wire | SetTexts


@dataclass(frozen=True, slots=True)
class Rule:
    """One sentence of the standard that a model can violate.

    `check` is called for each subject of the kind `over`: once for the model, for each root graph (main,
    training, function body) with its subgraphs, for each graph, attribute, tensor and so on; for each
    operator set, or once for all that are checked together (`operator sets`). The rule applies to IR
    versions `since` to `until`. A rule of a `group` applies only with `strict`, or when its id or group is
    selected. `note` says why the severity differs from the verb of the sentence.

    >>> rule = RULES.find('NODE001')
    >>> rule.severity, rule.source, rule.over
    ('error', 'ir.txt', 'calls')
    """

    id: str
    law: str
    source: Source
    over: Subject
    check: Callable[[Any], Iterable[Problem]] = field(repr=False)
    bad: tuple[Model, ...]
    good: tuple[Model, ...]
    severity: Severity
    since: int = 0
    until: int | None = None
    group: Group = ""
    note: str = ""

    @property
    def explanation(self) -> str:
        """What the rule requires, in our words."""
        return " ".join((self.check.__doc__ or "").split())

    def holds_for(self, ir_version: int) -> bool:
        """Whether the rule applies to models of this IR version; without a version all rules apply."""
        if not ir_version:
            return True
        return self.since <= max(ir_version, 0) and (self.until is None or ir_version <= self.until)


class Rules:
    """The rules by id; `home` is the package that declares them, imported on first use.

    >>> RULES.find('GRAPH006').id
    'GRAPH006'
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._by_id: dict[str, Rule] = {}

    def rule(  # ruff: ignore[too-many-arguments]  each is a column of the table
        self,
        id: str,  # ruff: ignore[builtin-argument-shadowing] - what a rule's id is called
        law: str,
        *,
        source: Source,
        over: Subject,
        bad: Model | tuple[Model, ...],
        good: Model | tuple[Model, ...],
        severity: Severity = "error",
        since: int = 0,
        until: int | None = None,
        group: Group = "",
        note: str = "",
    ) -> Callable[[Callable[[Any], Iterable[Problem]]], Callable[[Any], Iterable[Problem]]]:
        """Return a decorator that declares a rule with the function as its check."""

        def declare(check: Callable[[Any], Iterable[Problem]]) -> Callable[[Any], Iterable[Problem]]:
            if id in self._by_id:
                raise ValueError(f"the rule {id} is declared twice")
            self._by_id[id] = Rule(
                id,
                law,
                source,
                over,
                check,
                _tuple(bad),
                _tuple(good),
                severity,
                since,
                until,
                group,
                note,
            )
            return check

        return declare

    def __iter__(self) -> Iterator[Rule]:
        importlib.import_module(self._home)
        return iter(sorted(self._by_id.values(), key=lambda r: r.id))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, id: str) -> Rule | None:  # ruff: ignore[builtin-argument-shadowing] - what a rule's id is called
        """Return a rule, or None."""
        return next((r for r in self if r.id == id), None)


def _tuple(models: Model | tuple[Model, ...]) -> tuple[Model, ...]:
    return models if isinstance(models, tuple) else (models,)


RULES = Rules("sabir.checking.rules")
rule = RULES.rule
