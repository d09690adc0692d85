"""Columns of a table as the inputs of a training: one a name, several numbered ones, or all that are left."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import FeedError, listed_names, quote, suggest
from sabir.ir import TensorType
from sabir.training._step_inputs import converted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.evaluation import ModelPort
    from sabir.ir import Array
    from sabir.training._step_inputs import StepInputs


def columns_of(columns: Mapping[str, Array], inputs: StepInputs, what: str) -> dict[str, Array]:
    """Return arrays for the inputs; columns that are for none of them are left out.

    An input takes the column of its name, or the columns of its name with numbers, such as `x_0` and `x_1`.
    Where one input has neither, it takes all other columns, in their order. Raises FeedError where several
    have neither, and for columns that do not fit.

    >>> ports = [('x', ['N', 2]), ('label', ['N'])]
    >>> ports = [sabir.evaluation.ModelPort(n, sabir.ir.tensor_type('float', s)) for n, s in ports]
    >>> table = {'width': np.array([1, 2]), 'height': np.array([3, 4]), 'label': np.array([0, 1])}
    >>> columns_of(table, StepInputs(ports), 'a.csv')['x'].tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    chosen = {name: _named(name, columns) for name in inputs.ports}
    missing = [name for name in inputs.required if not chosen[name]]
    used = {column for names in chosen.values() for column in names}
    others = [name for name in columns if name not in used]
    if len(missing) > 1 or (missing and not others):
        near = suggest(missing[0], others) or f"; its columns are {listed_names(columns)}"
        raise FeedError(f"{what} has no column {quote(missing[0])}, which the steps read{near}")
    if missing:
        chosen[missing[0]] = others
    return {
        name: _joined([columns[n] for n in names], inputs.ports[name], f"{what}: {listed_names(names, 3)}")
        for name, names in chosen.items()
        if names
    }


def _named(name: str, columns: Mapping[str, Array]) -> list[str]:
    """Return the column of a name, or those of the name with numbers, in the order of the numbers."""
    if name in columns:
        return [name]
    pattern = re.compile(rf"{re.escape(name)}[_.]?\[?([0-9]{{1,9}})\]?")
    numbers = {column: int(m[1]) for column in columns if (m := pattern.fullmatch(column))}
    return sorted(numbers, key=lambda column: numbers[column])


def _joined(columns: list[Array], port: ModelPort, what: str) -> Array:
    """Return columns as one array for an input, in its element type and shape; raises FeedError."""
    array = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    kind = port.type
    if not isinstance(kind, TensorType):
        return array
    found = converted(array, kind)
    if found.dtype != kind.element.dtype:
        raise FeedError(f"{what} is {array.dtype}, and the input {quote(port.name)} is {kind}")
    if kind.shape is None or len(kind.shape) == found.ndim:
        return found
    sizes = [dim for dim in kind.shape[1:] if isinstance(dim, int)]
    if len(sizes) != len(kind.shape) - 1 or found[0].size != np.prod(sizes, dtype=np.int64):
        raise FeedError(
            f"{what} has {found[0].size} numbers a row, which do not fit the input {quote(port.name)}, {kind}"
        )
    return found.reshape(len(found), *sizes)


__all__ = ["columns_of"]
