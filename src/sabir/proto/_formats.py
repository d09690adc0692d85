"""Guesses what a file is that is not an ONNX model, for error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.proto._types import Buffer

_BEGINNINGS = (
    (b"PK\x03\x04", "a zip archive, such as a PyTorch checkpoint or a zipped model"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"BZh", "a bzip2 archive; unpack it first"),
    (b"\xfd7zXZ\x00", "an xz archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstandard archive; unpack it first"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as a Keras model"),
    (b"\x93NUMPY", "a NumPy array file"),
    (b"GGUF", "a GGUF model"),
    (b"version https://git-lfs", "a git-lfs pointer, not the file itself; run `git lfs pull`"),
)
_AT_FOUR = {b"TFL3": "a TensorFlow Lite model", b"ORTM": "an onnxruntime model in ORT format"}
_HEAD = 4096
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))


def guess_format(data: Buffer) -> str | None:
    """Return what the bytes look like, or None where no format is recognised.

    This is for bytes that are no model: a model may, by chance, resemble another format.
    """
    head = bytes(data[:_HEAD])
    for magic, name in _BEGINNINGS:
        if head.startswith(magic):
            return name
    if head[4:8] in _AT_FOUR:
        return _AT_FOUR[head[4:8]]
    if head.startswith(_PICKLES):
        return "a Python pickle, such as an old PyTorch checkpoint"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") + 8 <= len(data):
        return "a safetensors file"
    return _guess_text(head)


def _guess_text(head: bytes) -> str | None:
    # the head may end within a character
    text = head.decode("utf-8", errors="replace").rstrip("\ufffd").lstrip("\ufeff").strip()
    if not text or not all(c.isprintable() or c.isspace() for c in text) or "\ufffd" in text:
        return None
    if text[:9].lower() == "<!doctype" or text[:5].lower() == "<html":
        return "an HTML page, perhaps an error page saved instead of a download"
    if text.startswith("<?xml"):
        return "an XML file"
    if text.startswith(("<", "//")) or "=>" in text:
        return "ONNX text syntax, not the binary format"
    if text[0] in "{[":
        return "a JSON file"
    if text.startswith(("ir_version:", "graph {", "node {")):
        return "protobuf's text format, not the binary one"
    return "a text file"
