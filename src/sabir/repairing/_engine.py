"""The repair of a model: all repairs in a fixed order, each for the rules that are selected."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import Limits, SchemaError, run_with_limits
from sabir.checking import Survey, chosen
from sabir.ir import check_is_model
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


class Repaired(NamedTuple):
    """A repaired model, and the repairs.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (t)  t = Neg (x) }''')
    >>> [repair.rule for repair in fix_and_report(model).repairs]
    ['GRAPH006']
    """

    model: Model
    repairs: list[Repair]


def fix(
    model: Model,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    unsafe: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model in which violations of rules are repaired; no computed value changes.

    The model itself is not changed, and the copy shares its tensors. `fix_and_report` returns the repairs
    too, and `fix_in_place` changes the model.

    `select` and `ignore` choose the rules whose violations are repaired, as in `findings`; here the rules of
    groups apply by default. Afterwards `findings` reports the violations that remain.

    A repair that changes what others rely on (names of inputs, outputs, weights, nodes and dimensions, the
    IR version) is done only for the rules in `unsafe`, each by its id; UNSAFE_REPAIRS lists them. A repair
    that renames an input or output of the model has `interface` set.

    Raises LimitError if checking the model would exceed `limits`, and SchemaError for an unknown id, or one
    in `unsafe` that has no unsafe repair.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (t)  t = Neg (x) }''')
    >>> [node.op for node in sabir.fix(model).graph], [node.op for node in model.graph]
    (['Neg', 'Relu'], ['Relu', 'Neg'])
    """
    return fix_and_report(
        model, select=select, ignore=ignore, unsafe=unsafe, registry=registry, limits=limits
    ).model


def fix_and_report(
    model: Model,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    unsafe: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Repaired:
    """Repair a copy of a model as `fix` does, and report the repairs.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (t)  t = Neg (x) }''')
    >>> for repair in fix_and_report(model).repairs:
    ...     print(repair)
    graph: GRAPH006: sorted the nodes; 2 of 2 have another position
    """
    check_is_model(model)
    copy = model.clone()
    repairs = fix_in_place(
        copy, select=select, ignore=ignore, unsafe=unsafe, registry=registry, limits=limits
    )
    return Repaired(copy, repairs)


def fix_in_place(
    model: Model,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    unsafe: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> list[Repair]:
    """Repair the model itself, and return the repairs; otherwise as `fix`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (t)  t = Neg (x) }''')
    >>> [repair.rule for repair in fix_in_place(model)], model.graph[0].op
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
