"""What a file says that no part of the model means, kept so that saving loses nothing."""

from __future__ import annotations

from typing import NamedTuple


class Residue(NamedTuple):
    """Leftovers of one protobuf message.

    `wire` is appended to the message when it is written again: unknown fields, and the second and later
    entries of what ought to be unique (an attribute name, a metadata key). `empty` names the fields that
    were present and empty, which protobuf tells from absent; `absent` names those that were absent where
    writing gives one: the value of an attribute, or `opset_import`, for the default domain that it imports.
    `repeated` names what came twice, for the checker. `entries` tells of the small messages in a list that
    the model turns into pairs (imports, metadata, bindings) where a pair cannot say all of one: the list's
    field, the place in it, and the entry. `places` tells where in such a list, or in one with repeated names,
    the entries in `wire` belong.
    """

    wire: bytes = b""
    empty: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    entries: tuple[tuple[str, int, bytes], ...] = ()
    absent: tuple[str, ...] = ()
    places: tuple[tuple[str, int], ...] = ()
