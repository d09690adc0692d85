"""The data of tensors: valid values of the element type, in its encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import quote
from sabir.checking._examples import with_tensor
from sabir.checking._rule import Problem, rule
from sabir.elements import field_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._messages import Data
    from sabir.checking._survey import TensorSite

_CHUNK = 1 << 24
_LISTED = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@rule(
    "TENSOR007",
    "In raw_data a Boolean takes a byte, which is 1 for true and 0 for false.",
    source="onnx.proto",
    over="tensor",
    bad=(
        with_tensor(r'dims: 2 data_type: 9 raw_data: "\001\002"'),
        with_tensor("dims: 2 data_type: 9 int32_data: [1, -1]"),
    ),
    good=(
        with_tensor(r'dims: 2 data_type: 9 raw_data: "\001\000"'),
        with_tensor("dims: 1 data_type: 9 int32_data: 1"),
    ),
)
def booleans(site: TensorSite) -> Iterator[Problem]:
    """A Boolean is stored as 0 or 1."""
    data = site.data
    if data is None or data.element.kind != "bool":
        return
    odd = _odd_byte(data) if data.field == "raw_data" else _odd_entry(data.entries, 0, 1)
    if odd is not None:
        index, value = odd
        yield Problem(f"element {index}, a bool, is stored as {value}", site.where, "write 0 or 1")


def _odd_byte(data: Data) -> tuple[int, int] | None:
    """Return the first byte above 1 and its index; large data is read in blocks."""
    codes = np.frombuffer(data.raw, np.uint8)
    for start in range(0, codes.size, _CHUNK):
        piece = codes[start : start + _CHUNK]
        if piece.max() > 1:
            index = start + int((piece > 1).argmax())
            return index, int(codes[index])
    return None


def _odd_entry(entries: Any, low: int, high: int) -> tuple[int, int] | None:
    """Return the first entry outside a range and its index."""
    for start in range(0, len(entries), _LISTED):
        piece: list[int] = entries[start : start + _LISTED]
        if min(piece) < low or max(piece) > high:
            return next((start + i, e) for i, e in enumerate(piece) if not low <= e <= high)
    return None


@rule(
    "TENSOR008",
    "A narrow integer is stored in a wider field as its value, a narrow float as its bits.",
    source="onnx.proto",
    over="tensor",
    bad=(
        with_tensor("dims: 1 data_type: 3 int32_data: 70000"),
        with_tensor("dims: 1 data_type: 12 uint64_data: 4294967296"),
        with_tensor("dims: 1 data_type: 10 int32_data: -1"),
        with_tensor("dims: 1 data_type: 27 int32_data: 64", ir_version=14),
    ),
    good=(
        with_tensor("dims: 1 data_type: 3 int32_data: -128"),
        with_tensor("dims: 1 data_type: 12 uint64_data: 7"),
    ),
)
def entries_in_range(site: TensorSite) -> Iterator[Problem]:
    """Entries of int32_data and uint64_data are in the range of the element type."""
    data = site.data
    if data is None or data.field not in {"int32_data", "uint64_data"} or data.element.kind == "bool":
        return
    if data.element.bits == (32 if data.field == "int32_data" else 64):
        return  # every entry is in range
    low, high = field_bounds(data.element)
    odd = _odd_entry(data.entries, low, high)
    if odd is not None:
        index, value = odd
        message = (
            f"entry {index} of {data.field} is {value}, outside {low} to {high}, the range of {data.element}"
        )
        yield Problem(message, site.where)


def _has_stray_bits(data: Data) -> bool:
    """Whether padding bits after the last element are set, for elements narrower than a byte."""
    used = data.size * data.element.bits % 8
    if not used or data.length != data.needed:
        return False
    if data.field == "raw_data":
        return bool(memoryview(data.raw)[-1] >> used)
    return not _is_uneven(data) and bool(
        (data.entries[-1] & 0xFF) >> used
    )  # each uneven element has an entry


def _is_uneven(data: Data) -> bool:
    """Whether elements cross byte boundaries, as those of 6 bits do."""
    return data.element.is_packed and bool(8 % data.element.bits)


@rule(
    "TENSOR009",
    "The last group of 6-bit floats in raw_data is padded with zeros.",
    source="onnx.proto",
    over="tensor",
    since=14,
    bad=with_tensor(r'dims: 1 data_type: 27 raw_data: "\301"', ir_version=14),
    good=with_tensor(r'dims: 1 data_type: 27 raw_data: "\001"', ir_version=14),
)
def spare_bits_of_sixes(site: TensorSite) -> Iterator[Problem]:
    """The bits after the last FLOAT6 element are zero."""
    data = site.data
    if data is not None and _is_uneven(data) and _has_stray_bits(data):
        yield Problem(
            "the bits after the last element are not zero",
            site.where,
            "write the tensor again with zero padding",
        )


@rule(
    "TENSOR010",
    "All strings are encoded using UTF-8.",
    source="ir.txt",
    over="tensor",
    bad=with_tensor(r'dims: 1 data_type: 8 string_data: "\377"'),
    good=with_tensor(r'dims: 2 data_type: 8 string_data: "\303\251" string_data: ""'),
)
def text_is_utf8(site: TensorSite) -> Iterator[Problem]:
    """The elements of a string tensor, and the texts of a tensor's message, are UTF-8."""
    data = site.data
    for index, text in enumerate(data.entries if data is not None and data.field == "string_data" else ()):
        if not _is_utf8(text):
            message = f"string {index} is not UTF-8: {quote(bytes(text))}"
            yield Problem(message, site.where, "keep bytes in a tensor of uint8")
            return
    if site.message is not None and site.message.no_text is not None:
        yield Problem(f"a text of the tensor is not UTF-8: {quote(site.message.no_text)}", site.where)


def _is_utf8(text: bytes) -> bool:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


@rule(
    "TENSOR013",
    "The last byte of 2-bit and 4-bit elements is padded.",
    source="practice",
    over="tensor",
    severity="warning",
    note="the text requires padding without saying its value; every writer uses zeros",
    bad=(
        with_tensor(r'dims: 1 data_type: 22 raw_data: "\021"', ir_version=10),
        with_tensor("dims: 3 data_type: 25 int32_data: 192", ir_version=13),
    ),
    good=(
        with_tensor(r'dims: 1 data_type: 22 raw_data: "\001"', ir_version=10),
        with_tensor("dims: 3 data_type: 25 int32_data: 63", ir_version=13),
    ),
)
def spare_bits(site: TensorSite) -> Iterator[Problem]:
    """The bits after the last 2-bit or 4-bit element are zero."""
    data = site.data
    if data is not None and data.element.is_packed and not _is_uneven(data) and _has_stray_bits(data):
        yield Problem(
            "the bits after the last element are not zero",
            site.where,
            "write the tensor again with zero padding",
        )


@rule(
    "TENSOR014",
    "A string of a tensor does not begin with a byte order mark and does not end with a null byte.",
    source="onnx.proto",
    over="tensor",
    severity="warning",
    note="every reader keeps both as part of the text",
    bad=(
        with_tensor(r'dims: 1 data_type: 8 string_data: "a\000"'),
        with_tensor(r'dims: 1 data_type: 8 string_data: "\357\273\277a"'),
    ),
    good=with_tensor('dims: 1 data_type: 8 string_data: "a"'),
)
def plain_text(site: TensorSite) -> Iterator[Problem]:
    """The elements of a string tensor have no null terminator and no byte order mark."""
    data = site.data
    for index, text in enumerate(data.entries if data is not None and data.field == "string_data" else ()):
        if text.endswith(b"\0") or text.startswith(_BYTE_ORDER_MARK):
            message = (
                f"string {index} ends with a null byte or begins with a byte order mark: {quote(bytes(text))}"
            )
            yield Problem(message, site.where, "remove it")
            return
