"""The bytes of tensors for a file: read in pieces, so that a mapped file does not fill the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import ExternalDataError
from sabir.files import LazyBytes, MappedFile
from sabir.ir import ExternalTensor, WireTensor
from sabir.serial._external import Folder

if TYPE_CHECKING:
    from sabir.ir import Buffer, Tensor


def stream_of(tensor: Tensor) -> Buffer | LazyBytes:
    """Return the bytes of a tensor as in `raw_data`, which where possible are read only as they are written.

    Raises ExternalDataError where they are in another file and not found.
    """
    if isinstance(tensor, ExternalTensor) and tensor.view is None and isinstance(tensor.opener, Folder):
        try:
            return tensor.opener.stream(*tensor.place())
        except ExternalDataError as error:
            raise tensor.named(error) from error
    if isinstance(tensor, WireTensor) and tensor.view is not None:
        return _unmapped(tensor.view)
    return tensor.raw()


def _unmapped(data: Buffer) -> Buffer | LazyBytes:
    """Return `data`, or where it is in a mapped file an object that reads it from there."""
    owner = data.obj if isinstance(data, memoryview) else None
    if not isinstance(owner, MappedFile) or not len(data):
        return data
    start, size = _address(data) - _address(memoryview(owner)), len(data)
    return LazyBytes(size, lambda: owner.pieces(start, size))


def _address(data: Buffer) -> int:
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address
