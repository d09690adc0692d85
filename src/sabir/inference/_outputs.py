"""Types for the outputs of a model that declare none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.inference._contents import without_contents
from sabir.inference._engine import Inference
from sabir.ir import TensorType
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.schema import Registry


def type_outputs(model: Model, registry: Registry = STANDARD) -> None:
    """Declare the inferred type of each output of the main graph and its subgraphs that has none.

    The standard requires types for the outputs of a model. Mistakes in the model are left to the checker.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.graph.outputs[0].type = None
    >>> type_outputs(model)
    >>> print(model.graph.outputs[0].type)
    float[N]
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
