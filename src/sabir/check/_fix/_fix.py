"""Repairing a model: every repair in turn, each for the rules whose breaks it puts right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, run_within
from sabir.check._engine import chosen
from sabir.check._fix._dims import rename_dimensions
from sabir.check._fix._doubles import drop_doubles
from sabir.check._fix._facts import declare_inner_outputs, state_attribute_types, state_ir_version
from sabir.check._fix._labels import rename_functions, rename_graphs, rename_nodes
from sabir.check._fix._repair import Repair, Task
from sabir.check._fix._values import rename_values
from sabir.check._survey import Survey
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model
    from sabir.schema import Registry

REPAIRS = {
    "ATTR002": "The type is set to that of the value, or of the attribute that is referred to; not where"
    " there are two values, as nothing says which of them counts.",
    "ATTR003": "The values that are not of the type which the attribute states are dropped.",
    "FUNC001": "One of two functions that are the same is dropped; two that differ stay, as nothing says"
    " which is meant.",
    "FUNC004": "An attribute that is listed twice is listed once; an output that is listed twice stays.",
    "FUNC005": "The declaration without a default is dropped.",
    "GRAPH001": "The graph is named after what holds it.",
    "GRAPH004": "All but one are renamed: an output keeps the name, else what is read by it.",
    "GRAPH007": "The inner value is renamed.",
    "GRAPH008": "The inner value is renamed.",
    "GRAPH010": "The second entry is dropped.",
    "GRAPH011": "The entry is dropped.",
    "GRAPH012": "`ir_version` is raised.",
    "GRAPH015": "The type that inference finds is declared, where it finds one.",
    "META001": "The second entry is dropped.",
    "META002": "The second entry is dropped.",
    "MODEL001": "`ir_version` is set to the lowest that has all that the model uses.",
    "MODEL004": "The second import is dropped.",
    "MODEL007": "`ir_version` is raised.",
    "MODEL008": "`ir_version` is raised.",
    "MODEL011": "`ir_version` is raised.",
    "NAME001": "Odd characters become `_`, and a number is added where that is taken. An input or output"
    " of the model is renamed too, and whoever runs the model must know.",
    "NAME002": "Odd characters become `_`, and a number is added where that is taken; a function is renamed"
    " in its calls too.",
    "NAME003": "All but the first are numbered.",
    "NAME004": "Odd characters become `_`, and a number is added where that is taken, wherever the name"
    " stands.",
    "NAME005": "All but the first are numbered.",
    "NODE004": "The second attribute of the name is dropped.",
    "QUANT003": "An annotation that is the same as another is dropped.",
    "TENSOR011": "The initializer is named; nothing can read it.",
    "TYPE007": "`ir_version` is raised.",
}


def fix(
    model: Model,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> list[Repair]:
    """Put right what can be without a change to any value that the model computes, and return what was done.

    The model is changed in place. `select` and `ignore` are ids of rules, or beginnings of ids: only their
    breaks are repaired. What is left is for `findings` to tell. Inputs and outputs of the model may get other
    names: those repairs have `interface` set.

    Raises LimitError where looking would cost too much, and SchemaError for an id that no rule has.
    """
    wanted = frozenset(r.id for r in chosen(select, ignore, strict=True))
    repairs = run_within(limits, _repaired, model, registry, wanted)
    return sorted(repairs, key=lambda r: r.location.order)


def _repaired(model: Model, registry: Registry, wanted: frozenset[str]) -> list[Repair]:
    repairs = list(drop_doubles(Task(Survey(model, registry), wanted)))
    task = Task(Survey(model, registry), wanted)
    for repair in (
        state_ir_version, state_attribute_types, declare_inner_outputs, rename_dimensions, rename_values,
        rename_nodes, rename_functions, rename_graphs,
    ):  # fmt: skip
        repairs += repair(task)
    return repairs
