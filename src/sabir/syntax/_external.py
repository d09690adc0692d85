"""Tensors whose data is in another file, as a text refers to them."""

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
    """Raise ExternalDataError: a text alone is in no folder in which the file could be found."""
    place = quote(entries.get("location", ""))
    raise ExternalDataError(
        f"the data is in {place}, and `parse` has no folder for it; "
        'load the text from a file, or with `loads(data, format="onnxtxt", folder=...)`'
    )
