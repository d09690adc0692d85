"""The safetensors format: a JSON header that locates each tensor, and then the data without gaps."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sabir.base import ExternalDataError, UnsupportedError, quote
from sabir.elements import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    DOUBLE,
    ELEMENTS,
    FLOAT,
    FLOAT4E2M1,
    FLOAT6E2M3,
    FLOAT6E3M2,
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    FLOAT16,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ElementType,
    element_count,
    packed_size,
)
from sabir.files import map_file, replace_file
from sabir.ir import MAX_RANK, WireTensor
from sabir.proto import TensorProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir import Tensor

_DTYPES = {
    "BOOL": BOOL, "F4": FLOAT4E2M1, "F6_E2M3": FLOAT6E2M3, "F6_E3M2": FLOAT6E3M2, "U8": UINT8, "I8": INT8,
    "F8_E5M2": FLOAT8E5M2, "F8_E4M3": FLOAT8E4M3FN, "F8_E8M0": FLOAT8E8M0, "F8_E4M3FNUZ": FLOAT8E4M3FNUZ,
    "F8_E5M2FNUZ": FLOAT8E5M2FNUZ, "I16": INT16, "U16": UINT16, "F16": FLOAT16, "BF16": BFLOAT16,
    "I32": INT32, "U32": UINT32, "F32": FLOAT, "C64": COMPLEX64, "F64": DOUBLE, "I64": INT64, "U64": UINT64,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _DTYPES.items()}
METADATA, _TYPES = "__metadata__", "onnx_types"
_TRUE_TYPE = re.compile(r"(\w+)(?:\[((?:[0-9]{1,18}(?:,[0-9]{1,18}){0,63})?)\])?", re.ASCII)
_TRUE_TYPES = {str(kind): kind for kind in ELEMENTS if kind is not STRING}
_PREFIX = 8  # bytes of the header's length
_MAX_HEADER = 100_000_000
_MAX_ITEMS = 4_000_000  # of the header's JSON, each of which takes some hundred bytes of memory
_BYTE = 8


@dataclass(eq=False, slots=True)
class PlacedTensor:
    """A tensor that goes to a data file, with its name there, its size in bytes and its offset."""

    tensor: Tensor
    name: str
    size: int
    offset: int = 0


def header_of(tensors: Iterable[PlacedTensor], align: int) -> bytes:
    """Return the header of a safetensors file, padded so that the data begins at a multiple of `align`.

    A tensor whose element type the format lacks, or whose bits do not fill whole bytes, is written as U8 of
    one dimension; `onnx_types` in the metadata has its type.
    """
    header: dict[str, Any] = {}
    types: dict[str, str] = {}
    at = 0
    for one in tensors:
        element, shape = one.tensor.element, list(one.tensor.shape)
        fills_bytes = element_count(shape) * element.bits % _BYTE == 0
        if element not in _NAMES or not fills_bytes:
            types[one.name] = str(one.tensor.type)
            element, shape = UINT8, [one.size]
        header[one.name] = {"dtype": _NAMES[element], "shape": shape, "data_offsets": [at, at + one.size]}
        at += one.size
    if types:
        header[METADATA] = {_TYPES: json.dumps(types, separators=(",", ":"))}
    text = json.dumps(header, separators=(",", ":")).encode()
    size = len(text) + -(_PREFIX + len(text)) % align
    if size > _MAX_HEADER:
        raise UnsupportedError(f"a safetensors header has at most {_MAX_HEADER} bytes, not {size}")
    return size.to_bytes(_PREFIX, "little") + text.ljust(size)


def load_safetensors(path: str | os.PathLike[str], *, mapped: bool = True) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file by name; their data is not copied.

    Raises FileError where the file cannot be read, ExternalDataError where it violates the format, and
    UnsupportedError for an element type that ONNX lacks; each message names the file.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> b = sabir.Builder(21)
    >>> w = b.initializer('w', np.zeros(1000, np.float32))
    >>> with TemporaryDirectory() as folder:
    ...     sabir.save(b.model(), Path(folder, 'm.onnx'), external='w.safetensors')
    ...     list(load_safetensors(Path(folder, 'w.safetensors'), mapped=False))
    ['w']
    """
    file = Path(os.fsdecode(path))
    data = map_file(file, mapped=mapped)
    try:
        return _tensors(data)
    except (ExternalDataError, UnsupportedError) as error:
        raise error.located(str(file)) from error


def save_safetensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a safetensors file by name, which is replaced in one step.

    Element types that the format lacks are written as bytes, and `load_safetensors` restores them. Raises
    UnsupportedError for strings, and FileError.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'w.safetensors'
    >>> save_safetensors(path, {'w': sabir.ir.ArrayTensor(np.ones(3, np.float32))})
    >>> load_safetensors(path)['w'].array()
    array([1., 1., 1.], dtype=float32)
    """
    text = next((name for name, tensor in tensors.items() if tensor.element is STRING), None)
    if text is not None:
        raise UnsupportedError(f"the tensor {quote(text)} has strings, which safetensors has no type for")
    placed = [PlacedTensor(tensor, name, tensor.nbytes) for name, tensor in tensors.items()]
    ordered = sorted(placed, key=lambda one: (-one.tensor.element.bits, one.name))  # so that all are aligned
    replace_file(Path(os.fsdecode(path)), [header_of(ordered, _BYTE), *(one.tensor.raw() for one in ordered)])


def _tensors(data: memoryview) -> dict[str, Tensor]:
    header, start = _header(data)
    types = _true_types(header.pop(METADATA, {}))
    ranges: list[tuple[int, int, str]] = []
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        element, shape, (begin, end) = _entry(name, entry)
        if name in types:
            element, shape = _true_type(name, types[name], element, shape)
        elif element_count(shape) * element.bits % _BYTE:
            raise ExternalDataError(f"tensor {quote(name)}: {element}{shape} does not fill whole bytes")
        if end - begin != packed_size(element, element_count(shape)):
            raise ExternalDataError(
                f"tensor {quote(name)}: its data, {begin} to {end}, does not fit {element}{shape}"
            )
        ranges.append((begin, end, name))
        proto: Any = TensorProto(name=name, data_type=element.number, dims=shape)
        proto.raw_data = b""
        tensors[name] = WireTensor(proto, data[start + begin : start + end])
    _require_no_gaps(ranges, len(data) - start)
    return tensors


def _header(data: memoryview) -> tuple[dict[str, Any], int]:
    """Return the header, and the offset of the data."""
    if len(data) < _PREFIX:
        raise ExternalDataError(f"not safetensors: {len(data)} bytes are too few")
    size = int.from_bytes(data[:_PREFIX], "little")
    if size > _MAX_HEADER or size > len(data) - _PREFIX:
        raise ExternalDataError(f"not safetensors: a header of {size} bytes, in a file of {len(data)}")
    raw = bytes(data[_PREFIX : _PREFIX + size])
    if not raw.startswith(b"{"):
        raise ExternalDataError("not safetensors: the header does not begin with `{`")
    if sum(map(raw.count, (b"[", b"{", b","))) > _MAX_ITEMS:
        raise ExternalDataError(f"the header has more than {_MAX_ITEMS} items")
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ExternalDataError(f"not safetensors: the header is not JSON: {reason}") from error
    return found, _PREFIX + size


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        again = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ExternalDataError(f"the header has {quote(again)} twice")
    return found


def _no_number(text: str) -> None:
    raise ExternalDataError(f"the header contains {text}, which is not JSON")


def _entry(name: str, entry: Any) -> tuple[ElementType, list[int], tuple[int, int]]:
    shown = f"tensor {quote(name)}"
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    if not {"dtype", "shape", "data_offsets"} <= set(fields):
        raise ExternalDataError(f"{shown} must have `dtype`, `shape` and `data_offsets`")
    dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:  # ruff: ignore[magic-value-comparison] - a begin and an end
        raise ExternalDataError(f"{shown}: `shape` must be sizes, and `data_offsets` a begin and an end")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise UnsupportedError(f"{shown}: ONNX has no element type {quote(dtype)}")
    if not _is_text(name):
        raise ExternalDataError(f"{shown}: the name is not Unicode")
    if len(shape) > MAX_RANK:
        raise UnsupportedError(f"{shown}: rank {len(shape)} is above {MAX_RANK}")
    return _DTYPES[dtype], shape, (offsets[0], offsets[1])


def _are_sizes(value: Any) -> bool:
    """Return whether a value is a list of sizes that fit in 64 bits."""
    return isinstance(value, list) and all(
        type(v) is int and 0 <= v < 1 << 63 for v in cast("list[Any]", value)
    )


def _is_text(name: str) -> bool:
    """Return whether a name has a UTF-8 form, as half of a surrogate pair has not."""
    return name.isascii() or not any("\ud800" <= c <= "\udfff" for c in name)


def _true_types(metadata: Any) -> dict[str, str]:
    texts = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {"": None}
    if not all(isinstance(value, str) for value in texts.values()):
        raise ExternalDataError(f"`{METADATA}` must contain strings")
    try:
        found = json.loads(str(texts.get(_TYPES, "{}")), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(v, str) for v in cast("dict[str, Any]", found).values()
    ):
        raise ExternalDataError(f"`{_TYPES}` must be a JSON object of strings")
    return cast("dict[str, str]", found)


def _true_type(name: str, text: str, element: ElementType, shape: list[int]) -> tuple[ElementType, list[int]]:
    """Read `int4[2,3]`, the type of a tensor that is written as U8 of one dimension."""
    match = _TRUE_TYPE.fullmatch(text)
    true = _TRUE_TYPES.get(match[1]) if match else None
    if match is None or true is None or element is not UINT8 or len(shape) != 1:
        raise ExternalDataError(f"tensor {quote(name)}: its type {quote(text)} in `{_TYPES}` is invalid")
    return true, [int(d) for d in re.findall(r"[0-9]+", match[2] or "")]


def _require_no_gaps(ranges: list[tuple[int, int, str]], size: int) -> None:
    at = 0
    for begin, end, name in sorted(ranges):
        if begin != at:
            problem = "overlaps the one before" if begin < at else "leaves a gap before it"
            raise ExternalDataError(f"tensor {quote(name)}: its data, from {begin} to {end}, {problem}")
        at = end
    if at != size:
        raise ExternalDataError(f"the tensors take {at} bytes, and the file has {size} after its header")
