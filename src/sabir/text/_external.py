"""Tensors whose data lies in another file, as a text names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import ExternalDataError, quote
from sabir.ir import ExternalTensor
from sabir.proto import TensorProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.elements import ElementType
    from sabir.ir import Buffer

_EXTERNAL = 1


def external_tensor(
    kind: ElementType, shape: tuple[int, ...], entries: Iterable[tuple[str, str]]
) -> ExternalTensor:
    """Return a tensor that refers to a file; reading it raises ExternalDataError."""
    proto: Any = TensorProto(data_type=kind.number, dims=shape, data_location=_EXTERNAL)
    for key, value in entries:
        proto.external_data.add(key=key, value=value)
    return ExternalTensor(proto, _refuse)


def _refuse(entries: Mapping[str, str], _size: int) -> Buffer:
    """Say that a text lies in no folder, so there is none in which to look for the file."""
    place = quote(entries.get("location", ""))
    raise ExternalDataError(
        f"the data lies in {place}, but a model read from text has no folder; "
        "save it beside that file and load it"
    )
