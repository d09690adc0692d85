"""Digests of tensors, by which many are compared at once."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import STRING
from sabir.ir._contents import blocks_of

if TYPE_CHECKING:
    from sabir.ir._tensors import Tensor


def contents_digest(tensor: Tensor) -> bytes:
    """Return a digest of the elements; two tensors of one type have the same one where `same_contents` holds.

    The data is read block by block. Raises as `Tensor.raw` does for data that cannot be read.

    >>> tensors = [ArrayTensor(np.float32([0.0])), ArrayTensor(np.float32([-0.0]))]
    >>> len({contents_digest(t) for t in tensors})
    2
    """
    digest = hashlib.sha256()
    if tensor.element is STRING:
        for text in tensor.array().ravel().tolist():
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
        return digest.digest()
    for block in blocks_of(np.frombuffer(tensor.raw(), np.uint8), tensor):
        digest.update(block.data)
    return digest.digest()
