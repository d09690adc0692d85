"""The repair of a model: all repairs in a fixed order, each for the rules that are selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, SchemaError, run_with_limits
from sabir.checking import Survey, chosen
from sabir.opsets import STANDARD
from sabir.repairing._attribute_types import repair_attributes
from sabir.repairing._declaring import declared_repairs
from sabir.repairing._default_import import import_default_domain
from sabir.repairing._dims import clear_negative_sizes, rename_dimensions
from sabir.repairing._duplicates import drop_duplicates
from sabir.repairing._ir_version import set_ir_version
from sabir.repairing._object_names import rename_functions, rename_graphs, rename_nodes
from sabir.repairing._order import sort_nodes
from sabir.repairing._output_types import declare_subgraph_outputs
from sabir.repairing._repair import Repair, Task
from sabir.repairing._subgraph_inputs import separate_subgraph_inputs
from sabir.repairing._unused_imports import drop_unused_imports
from sabir.repairing._value_names import rename_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model
    from sabir.schema import Registry

REPAIRS = declared_repairs(safe=True)
"""The safe repairs, by the rule whose violations they repair: `fix` does all of them."""

UNSAFE_REPAIRS = declared_repairs(safe=False)
"""The repairs that change what others rely on, by rule: `fix` does those whose rules `unsafe` names."""


def fix(
    model: Model,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    unsafe: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> list[Repair]:
    """Repair violations of rules in place, and return the repairs; no computed value changes.

    `select` and `ignore` choose the rules whose violations are repaired, as in `findings`; here the rules of
    groups apply by default. Afterwards `findings` reports the violations that remain.

    A repair that changes what others rely on (names of inputs, outputs, weights, nodes and dimensions, the
    IR version) is done only for the rules in `unsafe`, each by its id; UNSAFE_REPAIRS lists them. A repair
    that renames an input or output of the model has `interface` set.

    Raises LimitError if checking the model would exceed `limits`, and SchemaError for an unknown id, or one
    in `unsafe` that has no unsafe repair.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (t)  t = Neg (x) }''')
    >>> [repair.rule for repair in fix(model)], model.graph[0].op
    (['GRAPH006'], 'Neg')
    """
    named = frozenset(unsafe)
    for name in sorted(named - UNSAFE_REPAIRS.keys()):
        known = ", ".join(UNSAFE_REPAIRS)
        raise SchemaError(f"{name!r} is not a rule with an unsafe repair; those are {known}")
    safe = {r.id for r in chosen(select, ignore, strict=True)} - (UNSAFE_REPAIRS.keys() - REPAIRS.keys())
    repairs = run_with_limits(limits, _repaired, model, registry, named | safe, named)
    return sorted(repairs, key=lambda r: r.location.order)


def _repaired(
    model: Model, registry: Registry, selected: frozenset[str], unsafe: frozenset[str]
) -> list[Repair]:
    task = Task(Survey(model, registry), selected, unsafe)
    # first the order of the nodes: it decides which values are visible, on which other repairs depend
    repairs = [*drop_duplicates(task), *sort_nodes(task)]
    repairs += drop_unused_imports(Task(Survey(model, registry), selected, unsafe))
    task = Task(Survey(model, registry), selected, unsafe)
    for repair in (
        # the import is repeated, as a new IR version may imply one
        import_default_domain, clear_negative_sizes, set_ir_version, import_default_domain,
        separate_subgraph_inputs, repair_attributes, declare_subgraph_outputs,
        rename_dimensions, rename_values, rename_nodes, rename_functions, rename_graphs,
    ):  # fmt: skip
        repairs += repair(task)
    return repairs
