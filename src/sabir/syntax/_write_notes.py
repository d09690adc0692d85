"""Notes as text, `@{doc_string: "..."}`: what the standard syntax cannot express."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sabir.syntax._detail import WHOLE, CutText
from sabir.syntax._words import cut_text, quoted
from sabir.syntax._write_elements import base64_text

if TYPE_CHECKING:
    from sabir.ir import Dim, NodeDevice, Residue, Sharding, Type, Value
    from sabir.syntax._detail import Detail
    from sabir.syntax._spelled_names import SpelledNames


class NoteFields:
    """An object of a note: its values by key. Empty values are left out, except numbers and names."""

    __slots__ = ("entries",)

    def __init__(self, **entries: Any) -> None:
        self.entries: dict[str, Any] = entries

    def __bool__(self) -> bool:
        return bool(self.entries)


def note_text(fields: NoteFields) -> str:
    """Return a note, its strings cut into lines; empty where all values are."""
    content = _fields_text(fields) if fields.entries else ""
    return f"@{{{content}}}" if content else ""


def _fields_text(fields: NoteFields) -> str:
    written = {key: value for key, value in fields.entries.items() if _is_written(key, value)}
    return ", ".join(f"{key}: {_value_text(value)}" for key, value in written.items())


def _is_written(key: str, value: Any) -> bool:
    return bool(value) or (value is not None and (key == "name" or isinstance(value, int)))


def _pairs_text(pairs: dict[str, str]) -> str:
    return f"[{', '.join(f'{_value_text(key)}: {_value_text(value)}' for key, value in pairs.items())}]"


def _value_text(value: Any) -> str:
    match value:
        case str():
            return "\n".join(map(quoted, value.split("\n")))
        case CutText():
            return cut_text(value.beginning, value.characters)
        case bytes():
            return base64_text(value)
        case NoteFields():
            return f"{{{_fields_text(value)}}}"
        case dict():
            return _pairs_text(cast("dict[str, str]", value))
        case int():
            return str(int(value))
        case _:
            return f"[{', '.join(map(_value_text, value))}]"


def above(note: str, indent: str) -> str:
    """Return a note for the lines above its subject, each line a comment to other readers."""
    return f"#: {note.replace(chr(10), f'{chr(10)}{indent}#:    ')}\n{indent}" if note else ""


def beside(note: str) -> str:
    """Return a note for the same line, before its subject."""
    return f"{note.replace(chr(10), ' ')} " if note else ""


def residue_fields(residue: Residue | None) -> NoteFields:
    """Return what a file contains and the model objects do not represent."""
    if residue is None or not any(residue):
        return NoteFields()
    entries = [NoteFields(field=field, place=place, wire=wire) for field, place, wire in residue.entries]
    places = [NoteFields(field=field, place=place) for field, place in residue.places]
    return NoteFields(**{**residue._asdict(), "entries": entries, "places": places})


def type_fields(type_: Type | None) -> NoteFields:
    """Return what the note of a type contains, except the denotations of its dimensions."""
    if type_ is None or type_.note is None:
        return NoteFields()
    return NoteFields(denotation=type_.note.denotation, type=type_.note.wire)


def value_note(value: Value, detail: Detail = WHOLE, *, unnamed: bool = False) -> str:
    """Return the note of a value; `unnamed` says that its name is in the text alone."""
    metadata = detail.entries(value.metadata)
    if not (value.doc or metadata or value.residue or unnamed or (value.type and value.type.note)):
        return ""
    fields = NoteFields(
        doc_string=detail.text(value.doc), metadata_props=metadata, **type_fields(value.type).entries
    )
    if unnamed:
        fields.entries["name"] = ""
    fields.entries["residue"] = residue_fields(value.residue)
    return note_text(fields)


def device_fields(device: NodeDevice, names: SpelledNames) -> NoteFields:
    """Return the layout of a node over devices."""
    return NoteFields(
        configuration_id=device.configuration,
        pipeline_stage=device.pipeline_stage,
        sharding_spec=[_sharding_fields(sharding, names) for sharding in device.shardings],
        wire=device.wire,
    )


def _sharding_fields(sharding: Sharding, names: SpelledNames) -> NoteFields:
    axes = [
        NoteFields(axis=a.axis, simple_sharding=[_piece_fields(p) for p in a.pieces]) for a in sharding.axes
    ]
    return NoteFields(
        tensor_name=sharding.name if sharding.value is None else names.label(sharding.value),
        device=sharding.devices,
        index_to_device_group_map=[NoteFields(key=key, value=group) for key, group in sharding.groups],
        sharded_dim=axes,
    )


def _piece_fields(piece: tuple[Dim, int]) -> NoteFields:
    length, shards = piece
    dim = length if length is None or isinstance(length, int) else str(length)
    return NoteFields(dim=dim, num_shards=shards)
