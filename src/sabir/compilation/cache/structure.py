"""A digest of a model: its identity in keys of plans if no file identifies it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sabir.base import SabirError
from sabir.compilation.cache.identities import identity_of
from sabir.elements import STRING, to_field
from sabir.serial import ModelWriter

if TYPE_CHECKING:
    from sabir.ir import Model, Tensor

_SMALL = (
    1 << 16
)  # bytes of a constant that the digest includes; a larger one is included as the identity of its file
_MOST_HASHED = 1 << 24  # bytes of large constants in no file that are hashed, at most


def structure_of(model: Model) -> str:
    """Return a digest of a model.

    Raises SabirError for large constants without a cheap identity, and the errors of reading and writing.
    """
    rest = _MOST_HASHED

    def tensor(tensor: Tensor, proto: Any) -> None:
        nonlocal rest
        proto.dims.extend(tensor.shape)
        proto.data_type = tensor.element.number
        if tensor.element is STRING:
            proto.string_data.extend(to_field(tensor.element, tensor.array()))
            return
        size = tensor.nbytes
        if size > _SMALL:
            identity, is_durable = identity_of(tensor.array())
            if identity is not None and is_durable:
                proto.doc_string = identity
                return
            rest -= size
            if rest < 0:
                raise SabirError("the constants in memory are too large to be hashed")
        proto.raw_data = hashlib.sha256(tensor.raw()).digest() if size > _SMALL else bytes(tensor.raw())

    return hashlib.sha256(ModelWriter(tensor).model(model).SerializeToString(deterministic=True)).hexdigest()
