"""What a file contains and the model objects do not represent, kept so that a save loses nothing."""

from __future__ import annotations

from typing import NamedTuple


class Residue(NamedTuple):
    """The residue of one protobuf message.

    `wire` is appended to the message when it is written again: unknown fields, and the second and later
    entries of what must be unique (an attribute name, a metadata key). `empty` names the fields that
    were present and empty, which protobuf distinguishes from absent; `absent` names those that were absent
    where a save would write one: the value of an attribute, or `opset_import`, for the default domain.
    `repeated` names the duplicates, for the checker. `entries` are small messages of a list that the model
    represents as pairs (imports, metadata, bindings) where a pair cannot represent all of one: the list's
    field, the position in it, and the entry. `places` are the positions of the entries of `wire` in such a
    list, or in one with repeated names.
    """

    wire: bytes = b""
    empty: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    entries: tuple[tuple[str, int, bytes], ...] = ()
    absent: tuple[str, ...] = ()
    places: tuple[tuple[str, int], ...] = ()
