"""Notes as text: `@{doc_string: "...", metadata_props: ["k": "v"]}`, for what the standard cannot say."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, cast

from sabir.syntax._words import quoted

if TYPE_CHECKING:
    from sabir.ir import Dim, NodeDevice, Residue, Sharding, Type, Value
    from sabir.syntax._names import Names


class Fields:
    """An object of a note: its values by key. What is empty is not shown, but for numbers and names."""

    __slots__ = ("entries",)

    def __init__(self, **entries: Any) -> None:
        self.entries: dict[str, Any] = entries

    def __bool__(self) -> bool:
        return bool(self.entries)


def note_text(fields: Fields) -> str:
    """Return a note, its strings cut into lines; empty where there is nothing to say."""
    shown = _fields_text(fields) if fields.entries else ""
    return f"@{{{shown}}}" if shown else ""


def _fields_text(fields: Fields) -> str:
    shown = {key: value for key, value in fields.entries.items() if _is_said(key, value)}
    return ", ".join(f"{key}: {_value_text(value)}" for key, value in shown.items())


def _is_said(key: str, value: Any) -> bool:
    return bool(value) or (value is not None and (key == "name" or isinstance(value, int)))


def _pairs_text(pairs: dict[str, str]) -> str:
    return f"[{', '.join(f'{_value_text(key)}: {_value_text(value)}' for key, value in pairs.items())}]"


def _value_text(value: Any) -> str:
    match value:
        case str():
            return "\n".join(map(quoted, value.split("\n")))
        case bytes():
            return base64_text(value)
        case Fields():
            return f"{{{_fields_text(value)}}}"
        case dict():
            return _pairs_text(cast("dict[str, str]", value))
        case int():
            return str(int(value))
        case _:
            return f"[{', '.join(map(_value_text, value))}]"


def above(note: str, indent: str) -> str:
    """Return a note as it stands at an indent in the lines above what it is about: a comment to others."""
    return f"#: {note.replace(chr(10), f'{chr(10)}{indent}#:    ')}\n{indent}" if note else ""


def beside(note: str) -> str:
    """Return a note as it stands before what it is about in the same line."""
    return f"{note.replace(chr(10), ' ')} " if note else ""


def base64_text(data: bytes | memoryview) -> str:
    """Return bytes as they stand in a text."""
    return f'base64 "{base64.b64encode(data).decode()}"'


def residue_fields(residue: Residue | None) -> Fields:
    """Return what a file says that no part of the model means."""
    if residue is None or not any(residue):
        return Fields()
    entries = [Fields(field=field, place=place, wire=wire) for field, place, wire in residue.entries]
    places = [Fields(field=field, place=place) for field, place in residue.places]
    return Fields(**{**residue._asdict(), "entries": entries, "places": places})


def type_fields(kind: Type | None) -> Fields:
    """Return what a type says beside its meaning, but for the denotations of its dimensions."""
    if kind is None or kind.note is None:
        return Fields()
    return Fields(denotation=kind.note.denotation, type=kind.note.wire)


def value_note(value: Value, *, unnamed: bool = False) -> str:
    """Return what is told of a value beside its name and type; `unnamed` where the name is the text's own."""
    if not (value.doc or value.metadata or value.residue or unnamed or (value.type and value.type.note)):
        return ""
    fields = Fields(doc_string=value.doc, metadata_props=value.metadata, **type_fields(value.type).entries)
    if unnamed:
        fields.entries["name"] = ""
    fields.entries["residue"] = residue_fields(value.residue)
    return note_text(fields)


def device_fields(device: NodeDevice, names: Names) -> Fields:
    """Return the layout of a node over devices."""
    return Fields(
        configuration_id=device.configuration,
        pipeline_stage=device.pipeline_stage,
        sharding_spec=[_sharding_fields(sharding, names) for sharding in device.shardings],
        wire=device.wire,
    )


def _sharding_fields(sharding: Sharding, names: Names) -> Fields:
    axes = [Fields(axis=a.axis, simple_sharding=[_piece_fields(p) for p in a.pieces]) for a in sharding.axes]
    return Fields(
        tensor_name=sharding.name if sharding.value is None else names.label(sharding.value),
        device=sharding.devices,
        index_to_device_group_map=[Fields(key=key, value=group) for key, group in sharding.groups],
        sharded_dim=axes,
    )


def _piece_fields(piece: tuple[Dim, int]) -> Fields:
    length, shards = piece
    dim = length if length is None or isinstance(length, int) else str(length)
    return Fields(dim=dim, num_shards=shards)
