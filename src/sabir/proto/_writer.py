"""Writing a model without copying its tensors: the inverse of the reader."""

from __future__ import annotations

import os
from bisect import bisect_left
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError

from sabir.base import WireError
from sabir.files import LazyBytes
from sabir.proto._placeholders import PLACEHOLDER_SIZE, Placeholders, byte_view
from sabir.proto._reader import DEFAULT_THRESHOLD
from sabir.proto._routes import routes_to_bulk
from sabir.proto._walk import Edit, WalkOptions, apply_edits, collect_edits, edited_size
from sabir.proto._wire import WireFaultError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.proto._types import Message, Payload


class BulkWriter:
    """Serialises a message whose large `raw_data` fields are placeholders for buffers.

    These buffers are not copied, and do not count towards protobuf's limit of two GiB. `size` is the number
    of bytes of the message that was last passed to `chunks`.
    """

    def __init__(self, *, threshold: int = DEFAULT_THRESHOLD) -> None:
        self.size = 0
        self._threshold = threshold
        self._placeholders: Placeholders[Payload] = Placeholders(os.urandom)

    def placeholder(self, data: Payload) -> bytes:
        """Return the content of a `raw_data` field for `data`: a placeholder, or short data itself.

        Raises TypeError where the buffer is not contiguous.
        """
        if isinstance(data, LazyBytes):
            return b"".join(data) if len(data) < self._threshold else self._placeholders.add(data)
        view = byte_view(data)
        return bytes(view) if len(view) < self._threshold else self._placeholders.add(view)

    def chunks(self, message: Message) -> Iterator[Payload]:
        """Return the chunks of the serialised message; bulk data is not copied.

        Raises WireError, at once, where protobuf cannot serialise the message, or where a placeholder is
        anywhere but alone in a `raw_data` field.
        """
        skeleton = _serialise(message)
        edits = self._edits(message, skeleton)
        self.size = edited_size(skeleton, edits)
        return apply_edits(memoryview(skeleton), edits)

    def _edits(self, message: Message, skeleton: bytes) -> list[Edit]:
        hits = _positions(skeleton, self._placeholders.token) if len(self._placeholders) else []
        if not hits:
            return []

        def contains_one(body: int, stop: int) -> bool:
            first = bisect_left(hits, body)
            return first < len(hits) and hits[first] + PLACEHOLDER_SIZE <= stop

        filled = 0

        def fill(body: int, stop: int) -> Payload | None:
            nonlocal filled
            view = self._placeholders.get(skeleton[body:stop]) if contains_one(body, stop) else None
            filled += view is not None
            return view

        options = WalkOptions(PLACEHOLDER_SIZE, enter=contains_one, replace=fill)
        try:
            edits = collect_edits(skeleton, routes_to_bulk(message.DESCRIPTOR), options)
        except WireFaultError as fault:
            raise WireError(f"the message cannot be written: {fault.reason}") from None
        if filled != len(hits):
            raise WireError("a placeholder for bulk data is outside a raw_data field, or not alone in it")
        return edits


def _serialise(message: Message) -> bytes:
    try:
        return message.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise WireError(f"protobuf cannot serialise the message: {error}") from error


def _positions(data: bytes, token: bytes) -> list[int]:
    found: list[int] = []
    at = data.find(token)
    while at >= 0:
        found.append(at)
        at = data.find(token, at + len(token))
    return found
