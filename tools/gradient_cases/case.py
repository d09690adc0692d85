"""One case: nodes in the text syntax, the same function in PyTorch, and inputs drawn from the case's name."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEAD = '<ir_version: 14, opset_import: ["" : 28]>\n'
TYPES = {"float64": "double", "int64": "int64", "int32": "int32", "bool": "bool"}
DIGITS = 3  # of the numbers that are drawn: they make the file short


class Case(NamedTuple):
    """A model, and a function of PyTorch's tensors that returns its outputs, one or a tuple."""

    name: str
    model: str
    function: Callable[..., Any]
    inputs: Mapping[str, np.ndarray]
    outputs: tuple[str, ...]
    wrt: tuple[str, ...]


def case(
    name: str,
    nodes: str,
    function: Callable[..., Any],
    /,
    *,
    outputs: str = "y",
    fixed: str = "",
    **inputs: Any,
) -> Case:
    """Return a case of nodes that compute `outputs` from `inputs`, given in the order in which `function` takes them.

    An input is an array, a list, a number, or a tuple of sizes, for which normal numbers are drawn. `fixed` names
    floating-point inputs that PyTorch does not differentiate.
    """
    random = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = {
        key: random.standard_normal(value).round(DIGITS) if isinstance(value, tuple) else np.asarray(value)
        for key, value in inputs.items()
    }
    listed = ", ".join(f"{_type(array)} {key}" for key, array in arrays.items())
    names = tuple(outputs.split())
    model = f"{HEAD}g ({listed}) => ({', '.join(names)}) {{ {nodes} }}"
    wrt = [n for n, array in arrays.items() if array.dtype.kind == "f" and n not in fixed.split()]
    return Case(name, model, function, arrays, names, tuple(wrt))


def between(low: float, high: float, *shape: int) -> np.ndarray:
    """Return different numbers between two, in mixed order."""
    count = int(np.prod(shape))
    places = np.random.default_rng(count).permutation(count)
    return (low + (high - low) * (places + 0.5) / count).round(DIGITS).reshape(shape)


def _type(array: np.ndarray) -> str:
    sizes = ",".join(map(str, array.shape))
    return TYPES[array.dtype.name] + (f"[{sizes}]" if array.ndim else "")
