"""Tensors as text: every element, in a form that gives the same bits when it is read.

The one thing that the syntax cannot say is which NaN: payloads are lost, signs are kept. Types without
a decimal form stand as the typed fields of a `TensorProto` hold them, which `onnx.parser` reads too: bit
patterns, several to an entry for 4 and 2 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import STRING, to_field
from sabir.ir import ExternalTensor, SparseTensor
from sabir.text._words import quoted
from sabir.text._write_types import dims_text

if TYPE_CHECKING:
    from sabir.ir import Array, Constant, Tensor


def head_text(constant: Constant) -> str:
    """Return the type of a constant."""
    dense = f"{constant.element}{dims_text(constant.shape)}"
    return f"sparse_tensor({dense})" if isinstance(constant, SparseTensor) else dense


def data_text(constant: Constant) -> str:
    """Return what follows the type: elements in braces, or the place of a file.

    Raises WireError where the data does not fit the type and shape.
    """
    if isinstance(constant, SparseTensor):
        parts = (f"{head_text(part)} {data_text(part)}" for part in (constant.values, constant.indices))
        return " ".join(parts)
    if isinstance(constant, ExternalTensor):
        return pairs_text(constant.entries)
    return f"{{{_elements(constant)}}}"


def pairs_text(entries: dict[str, str]) -> str:
    """Return `["key": "value", ...]`."""
    return f"[{', '.join(f'{quoted(k)}: {quoted(v)}' for k, v in entries.items())}]"


def float_text(value: float) -> str:
    """Return the shortest text that reads as the same 32-bit float."""
    with np.errstate(over="ignore"):
        return _one_float(np.float32(value))


def _elements(tensor: Tensor) -> str:
    kind, array = tensor.element, tensor.array()
    entries = to_field(kind, array)
    if kind is STRING:
        return ",".join(quoted(text) for text in array.reshape(-1).tolist())
    if not isinstance(entries, np.ndarray):
        raise TypeError(f"{kind} is no string, yet its typed field is a list")
    if entries.dtype.kind != "f":
        return _joined(entries)
    nans = np.isnan(entries)
    if bool((nans & np.signbit(entries)).any()):
        return ",".join(map(_one_float, entries))
    if entries.dtype == np.float32:
        return b",".join(entries.astype("S").tolist()).decode()
    return _joined(entries)


def _joined(entries: Array) -> str:
    """Return numbers as Python writes them, shortest for doubles, separated by commas."""
    return str(entries.tolist())[1:-1].replace(" ", "")


def _one_float(value: Any) -> str:
    return _signed_nan(str(value), negative=bool(np.signbit(value)))


def _signed_nan(text: str, *, negative: bool) -> str:
    return "-nan" if text == "nan" and negative else text
