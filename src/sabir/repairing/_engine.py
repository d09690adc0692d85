"""Repairing a model: every repair in turn, each for the rules whose breaks it repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, SchemaError, run_within
from sabir.checking import Survey, chosen
from sabir.opsets import STANDARD
from sabir.repairing._declaring import declared_repairs
from sabir.repairing._dims import clear_negatives, rename_dimensions
from sabir.repairing._doubles import drop_doubles
from sabir.repairing._facts import declare_inner_outputs, state_attribute_types, state_ir_version
from sabir.repairing._imports import import_default
from sabir.repairing._labels import rename_functions, rename_graphs, rename_nodes
from sabir.repairing._order import sort_nodes
from sabir.repairing._repair import Repair, Task
from sabir.repairing._unused import drop_unused_imports
from sabir.repairing._values import rename_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model
    from sabir.schema import Registry

REPAIRS = declared_repairs(safe=True)
"""The safe repairs, by the rule whose violations they repair: `fix` makes them all."""

UNSAFE_REPAIRS = declared_repairs(safe=False)
"""The repairs that change what others rely on, each made only where its rule is named as unsafe."""


def fix(
    model: Model,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    unsafe: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> list[Repair]:
    """Repair what breaks rules without a change to any value that the model computes; return the repairs.

    The model is changed in place. `select` and `ignore` choose rules as in `findings`, those of groups
    among them: only their breaks are repaired. `findings` reports what is left.

    A repair that changes what others rely on (names of inputs, outputs, weights, nodes and dimensions, the
    IR version) is made only for the rules in `unsafe`, each by its id; UNSAFE_REPAIRS lists them. A repair
    that renames an input or output of the model has `interface` set.

    Raises LimitError where looking would cost too much, and SchemaError for an id that no rule has, or
    that in `unsafe` has no such repair.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (t)  t = Neg (x) }''')
    >>> [repair.rule for repair in fix(model)], model.graph[0].op
    (['GRAPH006'], 'Neg')
    """
    asked = frozenset(unsafe)
    for name in sorted(asked - UNSAFE_REPAIRS.keys()):
        known = ", ".join(UNSAFE_REPAIRS)
        raise SchemaError(f"{name!r} is no rule with an unsafe repair; those are {known}")
    harmless = {r.id for r in chosen(select, ignore, strict=True)} - (UNSAFE_REPAIRS.keys() - REPAIRS.keys())
    repairs = run_within(limits, _repaired, model, registry, asked | harmless, asked)
    return sorted(repairs, key=lambda r: r.location.order)


def _repaired(
    model: Model, registry: Registry, wanted: frozenset[str], unsafe: frozenset[str]
) -> list[Repair]:
    task = Task(Survey(model, registry), wanted, unsafe)
    # what is visible where, and so most of the other repairs, follows from the order
    repairs = [*drop_doubles(task), *sort_nodes(task)]
    repairs += drop_unused_imports(Task(Survey(model, registry), wanted, unsafe))
    task = Task(Survey(model, registry), wanted, unsafe)
    for repair in (
        # an IR version that is stated only now implies an import, too
        import_default, clear_negatives, state_ir_version, import_default,
        state_attribute_types, declare_inner_outputs,
        rename_dimensions, rename_values, rename_nodes, rename_functions, rename_graphs,
    ):  # fmt: skip
        repairs += repair(task)
    return repairs
