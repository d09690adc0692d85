"""Arguments that name values of a model: a name or the value itself, one or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import SchemaError, quote
from sabir.ir._value import Value

if TYPE_CHECKING:
    from sabir.ir._model import Model

ValueOrName: TypeAlias = str | Value


def names_of(model: Model, argument: str, values: ValueOrName | Iterable[ValueOrName]) -> tuple[str, ...]:
    """Return the names of values of the main graph that an argument of a function states.

    Raises SchemaError for what is neither a name nor a value, for a value without a name, and for one of
    another graph.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> names_of(model, 'wrt', model.graph.inputs[0]), names_of(model, 'wrt', ['x', model.graph.outputs[0]])
    (('x',), ('x', 'y'))
    """
    if isinstance(values, (str, Value)):
        values = (values,)
    elif not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise _refused(argument, values)
    return tuple(_name_of(model, argument, value) for value in values)


def name_of(model: Model, argument: str, value: ValueOrName | Iterable[ValueOrName]) -> str:
    """Return the name of the one value that an argument states; raises as `names_of`, and for several.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> name_of(model, 'of', model.graph.outputs[0])
    'y'
    """
    names = names_of(model, argument, value)
    if len(names) != 1:
        listed = ", ".join(map(quote, names)) or "none"
        raise SchemaError(f"`{argument}` is one value, and names {len(names)}: {listed}; pass one at a time")
    return names[0]


def _name_of(model: Model, argument: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, Value):
        raise _refused(argument, value)
    if value.home is not model.graph:
        raise SchemaError(f"`{argument}` has {value!r}, which is no value of the main graph of this model")
    if not value.name:
        raise SchemaError(f"`{argument}` has {value!r}, a value without a name; set its `name` first")
    return value.name


def _refused(argument: str, value: object) -> SchemaError:
    return SchemaError(f"`{argument}` takes names and values of the model, and not {value!r}")


__all__ = ["ValueOrName", "name_of", "names_of"]
