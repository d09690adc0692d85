"""Inference as one call, which writes the types into the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, run_with_limits, without_collector
from sabir.inference._engine import Inference
from sabir.ir import check_is_model
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.schema import Registry


def infer(
    model: Model,
    *,
    strict: bool = False,
    fresh: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model whose values have the types and shapes that inference finds.

    The model itself is not changed, and the copy shares its tensors; `infer_in_place` changes it.

    Declared types stay, and inference adds to them. So a declared number stays even where an input has become
    dynamic since and the size follows from it; `sabir.findings` reports TYPE009. With `fresh` the declared
    types of computed values are replaced by what follows from the inputs, the initializers and the inputs of
    subgraphs; a value about which nothing follows keeps its type.

    A contradiction leaves the declared type, or with `strict` raises InferenceError at the first place.
    `registry` has the operators, by default those of the standard. `limits` bounds the job, by default
    `Limits()`; raises LimitError beyond.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (y) { t = Concat <axis = 0> (x, x)  y = Relu (t) }''')
    >>> print(sabir.infer(model).graph.outputs[0].type)
    float[2*N]
    """
    check_is_model(model)
    copy = model.clone()
    infer_in_place(copy, strict=strict, fresh=fresh, registry=registry, limits=limits)
    return copy


def infer_in_place(
    model: Model,
    *,
    strict: bool = False,
    fresh: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> None:
    """Write the types and shapes that inference finds into the values of a model; otherwise as `infer`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (y) { y = Relu (x) }''')
    >>> infer_in_place(model)
    >>> print(model.graph.outputs[0].type)
    float[N]
    """
    run_with_limits(limits, _annotate, model, registry, strict=strict, fresh=fresh)


def _annotate(model: Model, registry: Registry, *, strict: bool, fresh: bool) -> None:
    with without_collector():  # tables of all values, which stay alive to the end
        engine = Inference(model, registry=registry, strict=strict, fresh=fresh)
        engine.run()
        engine.annotate()
