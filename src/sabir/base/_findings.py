"""Findings: what is wrong with a model, where, and what to do about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sabir.base._displayed import displayed
from sabir.base._errors import legible, quote

Severity = Literal["error", "warning"]

_READING_ORDER = (
    "operator_set", "operator", "opset_import", "metadata", "configuration", "graph", "initialization",
    "algorithm", "input", "initializer", "node", "attribute", "device", "output", "value_info",
    "quantization_annotation", "training_info", "function",
)  # fmt: skip
_RANKS = {kind: rank for rank, kind in enumerate(_READING_ORDER)}


class Step(NamedTuple):
    """One step of a location: the kind of an object, its index in a list, its name.

    >>> print(Step('node', 12, 'conv1'))
    node[12] 'conv1'
    """

    kind: str
    place: int | None = None
    name: str = ""

    def __str__(self) -> str:
        place = self.kind if self.place is None else f"{self.kind}[{self.place}]"
        return f"{place} {quote(self.name)}" if self.name else place


class Location(NamedTuple):
    """The path to an object of a model, outermost step first: `graph/node[12] 'conv1'/attribute 'pads'`.

    >>> print(Location().at('graph').at('node', index=12, name='conv1'))
    graph/node[12] 'conv1'
    """

    steps: tuple[Step, ...] = ()

    def at(self, step: str, *, index: int | None = None, name: str = "") -> Location:
        """Return the location of something inside this one: one step more."""
        return Location((*self.steps, Step(step, index, name)))

    @property
    def order(self) -> tuple[tuple[int, int, str], ...]:
        """The sort key that puts locations in the order in which a model is read."""
        return tuple(
            (_RANKS.get(kind, len(_RANKS)), -1 if index is None else index, name)
            for kind, index, name in self.steps
        )

    def __str__(self) -> str:
        return "/".join(map(str, self.steps)) or "model"


class Finding(NamedTuple):
    """One violation of a rule: where, and what to do about it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.graph[0].op = 'Reluu'
    >>> print(next(sabir.findings(model)))
    graph/node[0] 'Reluu': error NODE001: ai.onnx.Reluu is not an operator that Sabir knows; is it 'Relu'?
    """

    rule: str
    message: str
    location: Location
    hint: str = ""
    severity: Severity = "error"

    def _repr_html_(self) -> str | None:
        return displayed(self).get("text/html")

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return legible(f"{self.location}: {self.severity} {self.rule}: {self.message}{hint}")
