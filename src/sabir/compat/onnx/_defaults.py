"""Inputs with initializers, which onnx's inference and conversion take for constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Model


def with_constant_defaults(model: Model, change: Callable[[Model], Model]) -> Model:
    """Return what `change` returns for a model, with the initializers of inputs as constants meanwhile.

    `change` returns another model; those of the inputs that it still has are inputs of it, at their places.
    The given model loses them.
    """
    inputs = model.graph.inputs
    places = [(place, value.name) for place, value in enumerate(inputs) if value.constant is not None]
    for value in [value for value in inputs if value.constant is not None]:
        inputs.remove(value)
    result = change(model)
    initializers = {value.name: value for value in result.graph.initializers}
    for place, name in places:
        if name in initializers:
            result.graph.inputs.insert(min(place, len(result.graph.inputs)), initializers[name])
    return result
