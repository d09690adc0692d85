"""Writing a model without copying its tensors: the inverse of the reader."""

from __future__ import annotations

import os
from bisect import bisect_left
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError

from sabir.base import WireError
from sabir.files import Streamed
from sabir.proto._placeholders import PLACEHOLDER_SIZE, Placeholders, byte_view
from sabir.proto._reader import DEFAULT_THRESHOLD
from sabir.proto._routes import routes_to_bulk
from sabir.proto._walk import Edit, Plan, apply_edits, edited_size, plan_edits
from sabir.proto._wire import WireFaultError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.proto._types import Message, Payload


class BulkWriter:
    """Serialises a message whose large `raw_data` fields hold placeholders for buffers kept aside.

    Neither protobuf's two GiB nor its copies apply to those buffers. `size` is how many bytes the message
    last given to `chunks` has in all.
    """

    def __init__(self, *, threshold: int = DEFAULT_THRESHOLD) -> None:
        self.size = 0
        self._threshold = threshold
        self._placeholders: Placeholders[Payload] = Placeholders(os.urandom)

    def placeholder(self, data: Payload) -> bytes:
        """Return what to put in a `raw_data` field for `data`: a placeholder, or, if short, the data itself.

        Raises TypeError where the buffer is not contiguous.
        """
        if isinstance(data, Streamed):
            return b"".join(data) if len(data) < self._threshold else self._placeholders.add(data)
        view = byte_view(data)
        return bytes(view) if len(view) < self._threshold else self._placeholders.add(view)

    def chunks(self, message: Message) -> Iterator[Payload]:
        """Return the buffers that, one after another, are the serialised message; bulk as it was given.

        Raises WireError, at once, where protobuf cannot serialise the message, or where a placeholder
        stands anywhere but alone in a `raw_data` field.
        """
        skeleton = _serialise(message)
        edits = self._edits(message, skeleton)
        self.size = edited_size(skeleton, edits)
        return apply_edits(memoryview(skeleton), edits)

    def _edits(self, message: Message, skeleton: bytes) -> list[Edit]:
        hits = _positions(skeleton, self._placeholders.token) if len(self._placeholders) else []
        if not hits:
            return []

        def holds_one(body: int, stop: int) -> bool:
            first = bisect_left(hits, body)
            return first < len(hits) and hits[first] + PLACEHOLDER_SIZE <= stop

        filled = 0

        def fill(body: int, stop: int) -> Payload | None:
            nonlocal filled
            view = self._placeholders.get(skeleton[body:stop]) if holds_one(body, stop) else None
            filled += view is not None
            return view

        plan = Plan(PLACEHOLDER_SIZE, enter=holds_one, replace=fill)
        try:
            edits = plan_edits(skeleton, routes_to_bulk(message.DESCRIPTOR), plan)
        except WireFaultError as fault:
            raise WireError(f"the message cannot be written: {fault.reason}") from None
        if filled != len(hits):
            raise WireError("a placeholder for bulk data stands outside a raw_data field, or not alone in it")
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
