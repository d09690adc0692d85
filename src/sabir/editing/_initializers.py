"""Initializers that become inputs, and inputs that become initializers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sabir.base import (
    FeedError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
    listed_names,
    quote,
    run_with_limits,
    suggest,
)
from sabir.editing._finding import cloned
from sabir.inference import set_dims
from sabir.ir import (
    CONSTANTS,
    Expr,
    Tensor,
    TensorType,
    Value,
    check_is_model,
    converted,
    known_equal,
    literal,
    symbol,
)
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.base import Limits
    from sabir.ir import Model, ValueOrName
    from sabir.schema import Registry

ALL = "all"


def initializers_to_inputs(
    model: Model, values: Iterable[ValueOrName] | ValueOrName | Literal["all"], *, keep_defaults: bool = False
) -> Model:
    """Return a copy of a model in which initializers are inputs, after those that it has.

    `values` are initializers of the main graph or their names, or `"all"`. Their data is dropped, so that
    each run must feed them; with `keep_defaults` it stays as the default of the input.

    Raises NotFoundError, a KeyError, for an initializer that the model does not have, UnsupportedError for a
    state variable of its training information.

    >>> b = sabir.Builder(21)
    >>> y = b.output(b.Add(b.input('x', 'float', ['N', 2]), b.initializer('w', np.ones(2, np.float32))), 'y')
    >>> changed = sabir.initializers_to_inputs(b.model(), 'w')
    >>> print(changed.graph.inputs[1].name, changed.graph.inputs[1].type, len(changed.graph.initializers))
    w float[2] 0
    """
    check_is_model(model)
    copy, copies = cloned(model)
    state = model.state()
    for value in _initializers(model, values):
        if value in state:
            raise UnsupportedError(f"{quote(value.name)} is a state variable of training, which is no input")
        _make_input(copies[value], keep_default=keep_defaults)
    return copy


def _initializers(model: Model, values: Iterable[ValueOrName] | ValueOrName) -> list[Value]:
    initializers = model.graph.initializers
    if values == ALL:
        return list(initializers)
    return list(map(initializers.value, [values] if isinstance(values, (str, Value)) else values))


def _make_input(value: Value, *, keep_default: bool) -> None:
    graph, data = value.home, value.constant
    if graph is None or data is None:
        return
    if not isinstance(value.type, TensorType):  # a sparse constant: nodes read it as a dense tensor
        value.type = TensorType(data.element, data.shape)
    if not value.is_input:
        graph.inputs.append(value)
    if not keep_default:
        graph.set_initializer(value, None)


def inputs_to_initializers(
    model: Model,
    data: Mapping[str, object],
    *,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model in which inputs are constants.

    `data` has a tensor, or anything that numpy converts to an array, by the name of an input. The data is
    converted to the element type of the input, if that changes no value. A dimension variable of the input
    gets the size of the data in the whole model, as by `set_dims`.

    Raises NotFoundError, a KeyError, for an input that the model does not have; FeedError where the data does
    not fit its type; UnsupportedError for an input that is no tensor; LimitError beyond `limits`. A
    constant that contradicts the new sizes is a SabirWarning.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x, float[N] w) => (float[N] y) { y = Add (x, w) }''')
    >>> changed = sabir.inputs_to_initializers(model, {'w': [1, 2, 3]})
    >>> print(changed.graph.inputs[0].type, changed.graph.initializers['w'])
    float[3] ArrayTensor(float[3], 12 bytes)
    """
    check_is_model(model)
    return run_with_limits(limits, lambda: _with_initializers(model, data, registry))


def _with_initializers(model: Model, data: Mapping[str, object], registry: Registry) -> Model:
    inputs = {value.name: value for value in model.graph.inputs}
    tensors: dict[str, Tensor] = {}
    sizes: dict[str, int] = {}
    for name, given in data.items():
        value = inputs.get(name)
        if value is None:
            near = suggest(name, inputs) or f"; its inputs are {listed_names(inputs)}"
            raise NotFoundError(f"the model has no input {quote(name)}{near}")
        tensors[name] = _tensor(value, given)
        _bind(value, tensors[name], sizes)
    copy = set_dims(model, sizes, registry=registry) if sizes else model.clone()
    for value in list(copy.graph.inputs):
        if value.name in tensors:
            _make_constant(copy, value, tensors[value.name])
    return copy


def _tensor(value: Value, given: object) -> Tensor:
    """Return data as a tensor of the element type of an input."""
    declared = value.type
    if not isinstance(declared, TensorType):
        raise UnsupportedError(
            f"the input {quote(value.name)} is {declared or 'of unknown type'}; only a tensor can be constant"
        )
    if not isinstance(given, Tensor):
        owner = f"the data of {quote(value.name)}"
        try:
            given = converted(literal(given, owner), declared.element, owner)
        except SchemaError as error:
            raise FeedError(str(error)) from error
    if given.element != declared.element:
        raise FeedError(f"the data of {quote(value.name)} is {given.element}, the input {declared.element}")
    return given


def _bind(value: Value, tensor: Tensor, sizes: dict[str, int]) -> None:
    """Note the sizes of an input's dimension variables; raises FeedError where the shape does not fit."""
    shape = value.shape
    if shape is None:
        return
    misfit = (
        f"the data of {quote(value.name)} has the shape {list(tensor.shape)}, and the input is {value.type}"
    )
    if len(shape) != len(tensor.shape):
        raise FeedError(misfit)
    for dim, size in zip(shape, tensor.shape, strict=True):
        if isinstance(dim, Expr) and dim == symbol(str(dim)):
            sizes.setdefault(str(dim), size)
    for dim, size in zip(shape, tensor.shape, strict=True):
        expected = dim.substitute(sizes) if isinstance(dim, Expr) else dim
        if known_equal(expected, size) is False:
            raise FeedError(misfit + (f", where {dim} is {expected}" if expected is not dim else ""))


def _make_constant(model: Model, value: Value, tensor: Tensor) -> None:
    graph = model.graph
    if model.ir_version >= CONSTANTS.since:  # before, each initializer had to be an input
        graph.inputs = [other for other in graph.inputs if other is not value]
    value.type = tensor.type
    graph.set_initializer(value, tensor)
