"""Further outputs of a model: values that its nodes compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sabir.base import UnsupportedError, quote, run_with_limits
from sabir.editing._assembling import complete_types
from sabir.editing._finding import Finder, cloned, described, home_of
from sabir.ir import check_is_model
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.base import Limits
    from sabir.ir import Model, Value, ValueOrName
    from sabir.schema import Registry

ALL = "all"


def add_outputs(
    model: Model,
    values: Iterable[ValueOrName] | ValueOrName | Literal["all"],
    *,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model that also returns `values`, after its own outputs; it shares the tensors.

    `values` are values of the main graph or their names, or `"all"` for everything that its nodes compute. A
    value that is an output already stays where it is. The new outputs have the types that the model declares
    or that inference finds.

    Raises NotFoundError, a KeyError, for a value that the model does not have; UnsupportedError for one of a
    subgraph, which may run never or many times; LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { t = Neg (x)  y = Relu (t) }''')
    >>> [f'{value.name}: {value.type}' for value in sabir.add_outputs(model, 't').graph.outputs]
    ['y: float[N]', 't: float[N]']
    """
    check_is_model(model)
    return run_with_limits(limits, lambda: _with_outputs(model, values, registry))


def _with_outputs(model: Model, values: Iterable[ValueOrName] | ValueOrName, registry: Registry) -> Model:
    wanted = _computed(model) if values == ALL else Finder(model).values(values)
    for value in wanted:
        if home_of(value) is not model.graph:
            raise UnsupportedError(
                f"{quote(value.name)} is in {described(home_of(value))}, which may run never or many times; "
                "only values of the main graph can be outputs"
            )
    copy, copies = cloned(model)
    present = set(model.graph.outputs)
    added = [value for value in wanted if value not in present]
    copy.graph.outputs.extend(copies[value] for value in added)
    complete_types(model, [(value, copies[value]) for value in added], registry)
    return copy


def _computed(model: Model) -> list[Value]:
    return [v for node in model.graph for v in node.outputs if v is not None]
