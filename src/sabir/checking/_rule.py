"""Rules: each one a function with its law, its proof and its place in the documentation attached."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sabir.base import Location, Severity

Subject = Literal[
    "model", "root", "graph", "calls", "attribute", "tensor", "sparse", "type", "function", "training"
]
Source = Literal["ir.txt", "ir-with-training.txt", "versioning.txt", "onnx.proto", "functions", "practice"]
Group = Literal["", "style", "pedantic"]

GROUPS: dict[Group, str] = {
    "style": "names, documentation and leftover descriptions, which change nothing that a model computes",
    "pedantic": "what nearly every model of some exporter breaks, and hardly any reader minds",
}
"""The groups of rules that only `strict`, the rule's id or the group's name asks for."""


class Problem(NamedTuple):
    """What a rule found: the message, where, and what to do about it."""

    message: str
    where: Location
    hint: str = ""


class Textproto(str):  # ruff: ignore[subclass-builtin]  it adds nothing to a string
    """An example that the text syntax cannot write: a ModelProto in protobuf's text format."""

    __slots__ = ()


class Wire(bytes):
    """An example that no text format can write: the bytes of a ModelProto."""

    __slots__ = ()


Model = str | Textproto | Wire


@dataclass(frozen=True, slots=True)
class Rule:
    """One sentence of the standard that a model can break.

    `over` is what `check` looks at: once for the model, for each root graph (main, training, function body)
    with all that is inside it, for each graph, attribute, tensor and so on. The rule holds for IR versions
    `since` to `until`. A rule in a `group` is tried only with `strict`, or where its id or its group is
    selected. `note` says why a severity is not what the sentence's verb would make it.
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
        """What is looked at, in our words."""
        return " ".join((self.check.__doc__ or "").split())

    def holds_for(self, ir_version: int) -> bool:
        """Whether the rule is in force for models of this IR version; one that states none is held to all."""
        if not ir_version:
            return True
        return self.since <= max(ir_version, 0) and (self.until is None or ir_version <= self.until)


class Rules:
    """The rules by id; `home` is the package that declares them, imported when first one is asked for."""

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
        """Declare the decorated function to be the check of a rule."""

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
