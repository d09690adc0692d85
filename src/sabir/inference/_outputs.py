"""The types of a model's outputs, where whoever built it stated none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.inference._engine import Inference
from sabir.inference._facts import without_contents
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.ir import Model


def type_outputs(model: Model) -> None:
    """Give each output of the main graph that has no type the one that inference finds, if it finds one.

    The standard wants the outputs of a model typed. A model with mistakes keeps them for the checker.
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
