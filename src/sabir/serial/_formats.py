"""The formats of model files, and how the format of a file is determined."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from sabir.base import ACCIDENTS, ParseError, UnsupportedError, WireError, quote, suggest
from sabir.files import LazyBytes
from sabir.proto import ModelProto, OperatorSetProto, has_unknown
from sabir.serial._foreign import FOREIGN

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.ir import Buffer

Format: TypeAlias = Literal["protobuf", "textproto", "json", "onnxtxt"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".onnx": "protobuf", ".pb": "protobuf",
    ".textproto": "textproto", ".txtpb": "textproto", ".prototxt": "textproto", ".pbtxt": "textproto",
    ".json": "json", ".onnxjson": "json",
    ".onnxtxt": "onnxtxt", ".onnxtext": "onnxtxt", ".txt": "onnxtxt",
}  # fmt: skip
_HEAD = 4096
_LARGEST_MESSAGE = 2**31 - 1
_TOO_LARGE = "as a text a model has at most 2 GiB; save it as protobuf, or with external data"
_FIRST_WORD = re.compile(r"([a-z_]+)\s*[:{<]")
_FIRST_FIELDS = frozenset(f.name for c in (ModelProto, OperatorSetProto) for f in c.DESCRIPTOR.fields)


def format_named(name: str) -> Format:
    """Return the format of a name; raises UnsupportedError for an unknown one.

    >>> format_named('json')
    'json'
    """
    if name in FORMATS:
        return name
    near = suggest(name, FORMATS) or f"; the formats are {', '.join(FORMATS)}"
    raise UnsupportedError(f"there is no format {quote(name)}{near}")


def format_of(path: Path) -> Format | None:
    """Return the format that the extension of a path names, None for an unknown one.

    >>> from pathlib import Path
    >>> print(format_of(Path('model.unknown')))
    None
    """
    return SUFFIXES.get(path.suffix.lower())


def format_by_name(path: Path) -> Format | None:
    """Return the format that the extension of a path names, None for a path without an extension.

    Raises UnsupportedError for an unknown extension.

    >>> from pathlib import Path
    >>> format_by_name(Path('model.textproto'))
    'textproto'
    """
    found = format_of(path)
    if found is None and path.suffix:
        raise UnsupportedError(f"{path}: {_unknown_extension(path.suffix)}")
    return found


def _unknown_extension(suffix: str) -> str:
    why = FOREIGN.get(suffix.lower())
    if why is not None:
        known = ", ".join(SUFFIXES)
        return f"a file with the extension {quote(suffix)} is {why}. The extensions of models are {known}"
    return (
        f"the extension {quote(suffix)} names no format of a model{suggest(suffix, SUFFIXES) or '.'} "
        f"The known ones are {', '.join(SUFFIXES)}. To use another one, state the format with `format=`, or "
        f"with --from and --to of `sabir convert`: it is one of {', '.join(FORMATS)}"
    )


def guess_text(data: Buffer) -> Format | None:
    """Return the format of bytes that look like one of the text formats, else None."""
    head = bytes(data[:_HEAD])
    # the head may end within a character
    text = head.decode("utf-8", errors="replace").rstrip("\ufffd").lstrip("\ufeff")
    if "\ufffd" in text or not all(c.isprintable() or c.isspace() for c in text):
        return None
    text = re.sub(r"^(?:\s|#[^\n]*)+", "", text)
    if text.startswith("{"):
        return "json"
    word = _FIRST_WORD.match(text)
    if word and word[1] in _FIRST_FIELDS:
        return "textproto"
    return "onnxtxt" if text.startswith("<") or "=>" in text else None


def read_text(data: Buffer) -> str:
    """Return the bytes of the text syntax as a string, in which bytes that are not UTF-8 are surrogates."""
    return bytes(data).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def read_message_text(data: Buffer, chosen: Format, cls: Any = ModelProto) -> Any:
    """Return the message of a class in one of protobuf's text formats; raises ParseError."""
    message = cls()
    raw = bytes(data).removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"the text is not UTF-8: byte {error.start} is {raw[error.start]:#04x}") from error
    if not text.strip():
        raise ParseError("the file is empty")
    # each takes milliseconds to import, and few models need one
    if chosen == "json":
        from sabir.serial._json import read_json  # ruff: ignore[import-outside-top-level]  see above

        read_json(raw, message)
    else:
        from sabir.serial._textproto import read_textproto  # ruff: ignore[import-outside-top-level]  see above

        read_textproto(text, message)
    return message


def write_message_text(message: Any, chosen: Format) -> bytes:
    """Return a message in one of protobuf's text formats; raises WireError for what it cannot contain."""
    if message.ByteSize() > _LARGEST_MESSAGE:
        raise WireError(_TOO_LARGE)
    what = "model" if message.DESCRIPTOR is ModelProto.DESCRIPTOR else "operator set"
    if has_unknown(message):
        raise WireError(
            f"the {what} has fields that Sabir does not know, and {chosen} cannot contain them; use protobuf"
        )
    _require_text(message, chosen)
    try:
        return _text_of(message, chosen).encode()
    except ACCIDENTS as error:
        raise WireError(f"the {what} cannot be written as {chosen}: {error}; save it as protobuf") from error


def _text_of(message: Any, chosen: Format) -> str:
    if chosen == "json":
        from sabir.serial._json_writer import write_json  # ruff: ignore[import-outside-top-level]  as in reading

        return write_json(message)
    from sabir.serial._textproto import write_textproto  # ruff: ignore[import-outside-top-level]  as in reading

    return write_textproto(message)


def _require_text(message: Any, chosen: Format) -> None:
    """Raise WireError for a string that is not UTF-8, which protobuf keeps as bytes."""
    pending = [message]
    while pending:
        one = pending.pop()
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending.extend([value] if hasattr(value, "DESCRIPTOR") else value)
            elif field.type == field.TYPE_STRING:
                odd = [v for v in ([value] if isinstance(value, (str, bytes)) else value) if type(v) is bytes]
                if odd:
                    where = f"{one.DESCRIPTOR.name}.{field.name}"
                    raise WireError(
                        f"{where} is not UTF-8: {quote(odd[0])}; {chosen} cannot contain it; use protobuf"
                    )


class InlineData:
    """Replaces a `BulkWriter` where a message must contain all of its data."""

    def __init__(self) -> None:
        self._size = 0

    def placeholder(self, data: Buffer | LazyBytes) -> bytes:
        """Return the data; raises WireError, before it is read, where all is too much for a text."""
        self._size += len(data)
        if self._size > _LARGEST_MESSAGE:
            raise WireError(_TOO_LARGE)
        return b"".join(data) if isinstance(data, LazyBytes) else bytes(data)
