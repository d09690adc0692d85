"""The types of a model's outputs, where whoever built it stated none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.inference._engine import Inference
from sabir.inference._facts import without_contents
from sabir.ir import TensorType
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.schema import Registry


def type_outputs(model: Model, registry: Registry = STANDARD) -> None:
    """Set the inferred type of each output of the main graph and its subgraphs that has none.

    The standard wants the outputs of a graph typed. A model with mistakes keeps them for the checker.
    """
    untyped = [v for g in model.graph.scopes() for v in g.outputs if v is not None and v.type is None]
    if not untyped:
        return
    engine = Inference(model, registry=registry)
    engine.run()
    for value in untyped:
        kind = engine.types.get(value)
        if kind is not None and not (isinstance(kind, TensorType) and not kind.element.number):
            value.type = without_contents(kind)
