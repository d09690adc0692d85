"""Writing tensors into messages: their data goes into the file, or stays or goes beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.elements import to_field
from sabir.ir import ExternalTensor, Tensor, WireTensor
from sabir.proto import BulkWriter, TensorProto
from sabir.serial._external import CopyCount
from sabir.serial._streams import stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.serial._formats import InlineData

_EXTERNAL: int = TensorProto.EXTERNAL
_DATA_FIELDS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")
_PLACE_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})

_TEXT_SHARE = 2  # how often a byte may be copied into a message that is built in memory

Entries = list[tuple[str, str]]


class TensorWriter:
    """Writes tensors, large data to `bulk`.

    `keeps_external` says whether the data of an external tensor stays where it is. `placed` returns the
    `external_data` of a tensor whose data goes to another file, and None for one whose data goes into the
    message.
    """

    def __init__(
        self,
        bulk: BulkWriter | InlineData,
        *,
        keeps_external: Callable[[ExternalTensor], bool],
        placed: Callable[[Tensor], Entries | None] | None = None,
    ) -> None:
        self._bulk, self._keeps_external, self._placed = bulk, keeps_external, placed
        self._copied = CopyCount() if isinstance(bulk, BulkWriter) else CopyCount(_TEXT_SHARE)

    def __call__(self, tensor: Tensor, proto: Any) -> None:
        """Write a tensor into an empty `TensorProto`.

        Raises ExternalDataError for data that is not found, and LimitError where copies of external data
        would make the message far larger than the files.
        """
        entries = None if self._placed is None else self._placed(tensor)
        if entries is not None:
            _write_place(tensor, entries, proto)
        elif isinstance(tensor, ExternalTensor) and not self._keeps_external(tensor):
            self._copied.add(tensor)
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
        """Write a tensor of any class that was not read from a file."""
        proto.dims.extend(tensor.shape)
        proto.data_type = tensor.element.number
        if tensor.element.kind == "string":
            proto.string_data.extend(to_field(tensor.element, tensor.array()))
        else:
            proto.raw_data = self._bulk.placeholder(tensor.raw())


def _write_place(tensor: Tensor, entries: Entries, proto: Any) -> None:
    """Write a tensor whose data goes to another file; all else that a file had of it is kept."""
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
