"""Tensors on their way into a message: where their data goes, in the file or beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.elements import to_field
from sabir.ir import ExternalTensor, Tensor, WireTensor
from sabir.proto import BulkWriter, TensorProto
from sabir.serial._external import Taken
from sabir.serial._streams import stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.serial._formats import Inline

_EXTERNAL: int = TensorProto.EXTERNAL
_DATA_FIELDS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")
_PLACE_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})

_IN_TEXTS = 2  # how often a byte may be copied into a message that is put together in memory

Entries = list[tuple[str, str]]


class TensorWriter:
    """Writes tensors, large data to `bulk`.

    `keeps_external` says whose data stays in the file where it is. `placed` returns the `external_data` of a
    tensor whose data goes to another file, and None for others, whose data goes into the message.
    """

    def __init__(
        self,
        bulk: BulkWriter | Inline,
        *,
        keeps_external: Callable[[ExternalTensor], bool],
        placed: Callable[[Tensor], Entries | None] | None = None,
    ) -> None:
        self._bulk, self._keeps_external, self._placed = bulk, keeps_external, placed
        self._taken = Taken() if isinstance(bulk, BulkWriter) else Taken(_IN_TEXTS)

    def __call__(self, tensor: Tensor, proto: Any) -> None:
        """Write a tensor into an empty `TensorProto`.

        Raises ExternalDataError for data that is not found, and LimitError for external data that would grow
        beyond all measure in the message.
        """
        entries = None if self._placed is None else self._placed(tensor)
        if entries is not None:
            _write_place(tensor, entries, proto)
        elif isinstance(tensor, ExternalTensor) and not self._keeps_external(tensor):
            self._taken.add(tensor)
            proto.CopyFrom(tensor.proto)
            proto.ClearField("external_data")
            proto.ClearField("data_location")
            proto.raw_data = self._bulk.placeholder(stream_of(tensor))
        elif isinstance(tensor, WireTensor):
            proto.CopyFrom(tensor.proto)
            if tensor.view is not None and not isinstance(tensor, ExternalTensor):
                proto.raw_data = self._bulk.placeholder(stream_of(tensor))
        else:
            self._write_plain(tensor, proto)

    def _write_plain(self, tensor: Tensor, proto: Any) -> None:
        """Write a tensor that no file gave; of whatever kind, it has a shape, an element type and data."""
        proto.dims.extend(tensor.shape)
        proto.data_type = tensor.element.number
        if tensor.element.kind == "string":
            proto.string_data.extend(to_field(tensor.element, tensor.array()))
        else:
            proto.raw_data = self._bulk.placeholder(tensor.raw())


def _write_place(tensor: Tensor, entries: Entries, proto: Any) -> None:
    """Write a tensor whose data lies outside: all that a file said of it, but where its data was."""
    if isinstance(tensor, WireTensor):
        proto.CopyFrom(tensor.proto)
        for name in _DATA_FIELDS:
            proto.ClearField(name)
    else:
        proto.dims.extend(tensor.shape)
        proto.data_type = tensor.element.number
    others = [(e.key, e.value) for e in proto.external_data if e.key not in _PLACE_KEYS]
    proto.ClearField("external_data")
    proto.data_location = _EXTERNAL
    for key, value in (*entries, *others):
        proto.external_data.add(key=key, value=value)
