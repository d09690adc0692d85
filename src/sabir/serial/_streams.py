"""The bytes of tensors on their way into a file: read in pieces, so that no map fills the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import ExternalDataError
from sabir.files import MappedFile, Streamed
from sabir.ir import ExternalTensor, WireTensor
from sabir.serial._external import Folder

if TYPE_CHECKING:
    from sabir.ir import Buffer, Tensor


def stream_of(tensor: Tensor) -> Buffer | Streamed:
    """Return the bytes of a tensor as `raw_data` holds them, to be read as late as can be.

    Raises ExternalDataError where they lie in another file, and cannot be found there.
    """
    if isinstance(tensor, ExternalTensor) and tensor.view is None and isinstance(tensor.opener, Folder):
        try:
            return tensor.opener.stream(*tensor.place())
        except ExternalDataError as error:
            raise tensor.named(error) from error
    if isinstance(tensor, WireTensor) and tensor.view is not None:
        return _unmapped(tensor.view)
    return tensor.raw()


def _unmapped(data: Buffer) -> Buffer | Streamed:
    """Return some data as it is, or, where it lies in a mapped file, as what reads it from there."""
    held = data.obj if isinstance(data, memoryview) else None
    if not isinstance(held, MappedFile) or not len(data):
        return data
    start, size = _address(data) - _address(memoryview(held)), len(data)
    return Streamed(size, lambda: held.pieces(start, size))


def _address(data: Buffer) -> int:
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address
