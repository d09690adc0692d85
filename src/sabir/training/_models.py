"""The graphs of a training model as ordinary models, for any runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.differentiation import expand_in_graph
from sabir.opsets import STANDARD
from sabir.training._combining import initialization_part, pruned, step_part
from sabir.training._validating import require_valid

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.schema import Registry
    from sabir.training._combining import Part


def step_model(model: Model, algorithm: int = 0, *, registry: Registry = STANDARD) -> Model:
    """Return a step of a training model as an ordinary model, with derivatives written out.

    Its inputs are those of the main graph and of the algorithm and the state variables that they read; its
    outputs are those that no binding names, then the updates, in the order of the bindings. Raises
    SchemaError for training information that breaks a rule, UnsupportedError for an algorithm that the model
    has not, and what `differentiate` raises.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float y) <float w = {1}> { y = Neg (w) }
    ... @training {algorithm: a () => (float v) { v = Neg (y) }, update_binding: ["w": "v"]}''')
    >>> found = step_model(model)
    >>> [v.name for v in found.graph.inputs], [v.name for v in found.graph.outputs]
    (['w'], ['y', 'v'])
    """
    require_valid(model, registry, None)
    _check_index(model, algorithm)
    return _ordinary(step_part(model, algorithm), registry)


def initialization_model(model: Model, index: int = 0, *, registry: Registry = STANDARD) -> Model | None:
    """Return an initialization of a training model as an ordinary model, None where it is absent.

    Its inputs are the state variables that it reads, its outputs what the bindings assign. Raises as
    `step_model`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float y) <float w = {1}> { y = Neg (w) }
    ... @training {initialization: i () => (float v) { v = Neg (w) }, initialization_binding: ["w": "v"]}''')
    >>> found = initialization_model(model)
    >>> [v.name for v in found.graph.inputs], [v.name for v in found.graph.outputs]
    (['w'], ['v'])
    """
    require_valid(model, registry, None)
    _check_index(model, index)
    part = initialization_part(model, index)
    return part and _ordinary(part, registry)


def _check_index(model: Model, index: int) -> None:
    if not 0 <= index < len(model.training):
        raise UnsupportedError(
            f"there is no training information {index}; the model has {len(model.training)}"
        )


def _ordinary(part: Part, registry: Registry) -> Model:
    expanded = expand_in_graph(part.model, registry, strict=True)
    found = pruned(part._replace(model=expanded), part.outputs)
    kept = set(found.graph.outputs)
    for value in (v for node in found.graph.all_nodes() for v in node.outputs):
        if value is not None and value not in kept:
            value.type = None  # an inferred size such as 64*N is no name that the standard admits
    called = {node.domain for graph in found.graphs() for node in graph.all_nodes()}
    found.opsets = {domain: v for domain, v in found.opsets.items() if domain in called or not domain}
    return found


__all__ = ["initialization_model", "step_model"]
