"""A training model with the present state in it, and the inference model of a training model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote
from sabir.ir import ArrayTensor, canonical_domain
from sabir.training._precision import drop_masters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Array, Model

STEP, SEED = "sabir.training.step", "sabir.training.seed"
IGNORED_LABEL = "sabir.training.ignored."  # and the name of a target: what its loss ignores
_PREFIX = "sabir.training."
_PREVIEW = "ai.onnx.preview.training"
_MOST = 1 << 63


def with_state(model: Model, values: Mapping[str, Array], metadata: Mapping[str, object]) -> Model:
    """Return a copy of a training model whose state variables are initialized with some values."""
    copy = model.clone()
    for key in copy.state():
        home = key.home
        if home is not None:
            home.set_initializer(key, ArrayTensor(values[key.name]))
    copy.metadata = {**(copy.metadata or {}), **{name: str(value) for name, value in metadata.items()}}
    return copy


def number_in(model: Model, name: str) -> int | None:
    """Return a number in the metadata of a model; raises SchemaError for one that is none, None if absent."""
    text = (model.metadata or {}).get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < len(str(_MOST))):
        raise SchemaError(f"the model's metadata says {name} = {quote(text)}, which is no number of steps")
    return int(text)


def ignored_label(model: Model, target: str) -> float | None:
    """Return the label or number that the loss of a target ignores, None for none; raises SchemaError."""
    name = f"{IGNORED_LABEL}{target}"
    text = (model.metadata or {}).get(name)
    if text is None:
        return None
    if text.isascii() and text.removeprefix("-").isdigit() and len(text) < len(str(_MOST)):
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise SchemaError(
            f"the model's metadata says {name} = {quote(text)}, which is no label and no number"
        ) from None


def strip_training(model: Model) -> Model:
    """Return a copy of a model without training information: the model for inference.

    State variables become constants with the values that the model initializes them with, in 16 bits where
    the model had them so before `prepare`. Those that only training read are removed, and so is what Sabir's
    training sessions note in the metadata.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float y) <float w = {1}, float m = {0}> { y = Neg (w) }
    ... @training {algorithm: a () => (float v) { v = Add (w, m) }, update_binding: ["m": "v"]}''')
    >>> found = sabir.strip_training(model)
    >>> found.training, [v.name for v in found.graph.initializers]
    ([], ['w'])
    """
    state = {key.name for key in model.state() if key.home is model.graph}
    copy = replace(model, training=[]).clone()
    for value in [v for v in copy.graph.initializers if v.name in state]:
        if not value.is_read and not value.is_input:
            copy.graph.set_initializer(value, None)
    drop_masters(copy.graph)
    if copy.metadata is not None:
        kept = {name: text for name, text in copy.metadata.items() if not name.startswith(_PREFIX)}
        copy.metadata = kept or None
    nodes = [n for g in copy.graphs() for n in g.all_nodes()]
    if not any(canonical_domain(n.domain) == _PREVIEW for n in nodes):
        copy.opsets.pop(_PREVIEW, None)
    return copy


__all__ = ["IGNORED_LABEL", "SEED", "STEP", "ignored_label", "number_in", "strip_training", "with_state"]
