"""The elements of a tensor as text, in chunks: the whole text of a large tensor is never in memory."""

from __future__ import annotations

import base64
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import STRING, to_field
from sabir.syntax._words import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.elements import ElementType
    from sabir.ir import Array, Buffer, Tensor

_CHUNK = 1 << 16  # elements; those of every type fill whole bytes
_BASE64_CHUNK = 3 << 16  # bytes; base64 pads what is no multiple of three
_FLOAT_FIELDS = frozenset({"float_data", "double_data"})


def elements_text(tensor: Tensor) -> tuple[str] | Iterator[str] | None:
    """Return the elements in braces, in chunks; None where there is a NaN that no number represents.

    Few elements are a tuple of one chunk.

    Raises WireError or UnsupportedError where the data cannot be decoded.
    """
    element, flat = tensor.element, tensor.array().reshape(-1)
    if flat.size <= _CHUNK:
        text = _strings_text(flat) if element is STRING else _few_numbers_text(element, flat)
        return None if text is None else (f"{{{text}}}",)
    if element.field in _FLOAT_FIELDS and not all(map(_has_usual_nans, _entries(element, flat))):
        return None
    return chain("{", _separated(_texts(element, flat)), "}")


def base64_text(data: Buffer) -> str:
    """Return bytes as a text contains them."""
    return "".join(base64_chunks(data))


def base64_chunks(data: Buffer) -> Iterator[str]:
    """Yield the chunks of bytes as a text contains them."""
    yield 'base64 "'
    view = memoryview(data)
    for start in range(0, len(view), _BASE64_CHUNK):
        yield base64.b64encode(view[start : start + _BASE64_CHUNK]).decode()
    yield '"'


def float_text(value: float) -> str:
    """Return the shortest text that reads as the same 32-bit float."""
    with np.errstate(over="ignore"):
        return _one_float(np.float32(value))


def floats_text(values: tuple[float, ...]) -> str:
    """Return the texts of many floats, as `float_text` does, separated by commas."""
    with np.errstate(over="ignore"):
        entries = np.array(values, np.float32)
    texts = map(_one_float, entries) if np.isnan(entries).any() else entries.astype("U").tolist()
    return ", ".join(texts)


def _separated(chunks: Iterable[str]) -> Iterator[str]:
    before = ""
    for chunk in chunks:
        yield before + chunk
        before = ","


def _texts(element: ElementType, flat: Array) -> Iterator[str]:
    """Yield the elements of each chunk, separated by commas."""
    if element is STRING:
        return map(_strings_text, _chunks(flat))
    return map(_numbers_text, _entries(element, flat))


def _strings_text(chunk: Array) -> str:
    to_field(STRING, chunk)  # raises WireError for a string that has no UTF-8 form
    return ",".join(map(quoted, chunk.tolist()))


def _chunks(flat: Array) -> Iterator[Array]:
    return (flat[start : start + _CHUNK] for start in range(0, flat.size, _CHUNK))


def _entries(element: ElementType, flat: Array) -> Iterator[Array]:
    """Yield the entries of the typed field for each chunk of numbers."""
    return (np.asarray(to_field(element, chunk)) for chunk in _chunks(flat))


def _few_numbers_text(element: ElementType, flat: Array) -> str | None:
    """Return one chunk of numbers; None where there is a NaN that no number represents."""
    entries = np.asarray(to_field(element, flat))
    is_float = entries.dtype.kind == "f"
    return None if is_float and not _has_usual_nans(entries) else _numbers_text(entries)


def _numbers_text(entries: Array) -> str:
    if entries.dtype.kind != "f":
        return _joined(entries)
    if np.isnan(entries).any():
        return ",".join(map(_one_float, entries))
    if entries.dtype == np.float32:
        return b",".join(entries.astype("S").tolist()).decode()
    return _joined(entries)


def _has_usual_nans(entries: Array) -> bool:
    """Return whether every NaN is the one that the word `nan` represents, of either sign."""
    missing = np.isnan(entries)
    if not missing.any():
        return True
    nans = entries[missing]
    word = np.dtype(f"u{nans.itemsize}")
    usual = np.array(np.nan, nans.dtype).view(word)
    sign = word.type(1 << 8 * nans.itemsize - 1)
    return bool(((nans.view(word) | sign) == usual | sign).all())


def _joined(entries: Array) -> str:
    """Return numbers as Python writes them, shortest for doubles, separated by commas."""
    return str(entries.tolist())[1:-1].replace(" ", "")


def _one_float(value: Any) -> str:
    text = str(value)
    return "-nan" if text == "nan" and np.signbit(value) else text
