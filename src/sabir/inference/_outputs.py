"""Types for the outputs of a model that declare none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.inference._contents import without_contents
from sabir.inference._engine import Inference
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.ir import Model


def type_outputs(model: Model) -> None:
    """Declare the inferred type of each output of the main graph that has none, where inference finds one.

    The standard requires types for the outputs of a model. Mistakes in the model are left to the checker.
    """
    untyped = [v for v in model.graph.outputs if v is not None and v.type is None]
    if not untyped:
        return
    engine = Inference(model)
    engine.run()
    for value in untyped:
        kind = engine.types.get(value)
        if kind is not None and not (isinstance(kind, TensorType) and not kind.element.number):
            value.type = without_contents(kind)
