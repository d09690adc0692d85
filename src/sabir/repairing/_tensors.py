"""Tensors of a model, replaced where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.ir import Attribute, ExternalTensor, SparseTensor, Value, WireTensor

if TYPE_CHECKING:
    from sabir.ir import Place, Tensor


def replace_tensor(place: Place, tensor: Tensor | SparseTensor) -> None:
    """Put another tensor in a place of a model: an initializer, an attribute, a part of a sparse tensor."""
    outer = place.outer
    owner: Any = None if outer is None else outer.object
    if outer is None or outer.outer is None:
        return
    if isinstance(owner, SparseTensor):
        changed = replace(owner, **{place.step: tensor})
        replace_tensor(outer, changed)
        outer.object = changed  # the other part may be replaced too
    elif isinstance(owner, Value) and owner.home is not None:
        declared = owner.type
        owner.home.set_initializer(owner, tensor)
        owner.type = declared
    elif isinstance(owner, Attribute):
        value: Any = tensor
        if place.index is not None:
            value = tuple(tensor if i == place.index else item for i, item in enumerate(owner.value))
        outer.object = replace(owner, value=value)
        outer.outer.object.attributes[owner.name] = outer.object  # a list may have several tensors to replace


def with_message(tensor: WireTensor, proto: Any) -> WireTensor:
    """Return a tensor with the same data and another message, which says the same about the data."""
    if not isinstance(tensor, ExternalTensor):
        return WireTensor(proto, tensor.view)
    found = ExternalTensor(proto, tensor.opener)
    found.view = tensor.view
    return found
