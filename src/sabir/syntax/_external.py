"""Tensors whose data lies in another file, as a text names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sabir.base import ExternalDataError, quote
from sabir.ir import ExternalTensor
from sabir.proto import TensorProto

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from sabir.ir import Buffer

    Opener: TypeAlias = Callable[[Mapping[str, str], int], Buffer]

EXTERNAL: int = TensorProto.EXTERNAL


def external_tensor(proto: Any, opener: Opener | None) -> ExternalTensor:
    """Return a tensor that refers to a file; without an opener, reading it raises ExternalDataError."""
    return ExternalTensor(proto, opener or _refuse)


def _refuse(entries: Mapping[str, str], _size: int) -> Buffer:
    """Say that a text lies in no folder, so there is none in which to look for the file."""
    place = quote(entries.get("location", ""))
    raise ExternalDataError(
        f"the data lies in {place}, but `parse` knows no folder; "
        'load the text from a file, or with `loads(data, format="onnxtxt", folder=...)`'
    )
