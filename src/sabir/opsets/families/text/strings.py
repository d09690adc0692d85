"""Operators on each string of a tensor: their declaration and evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.shapes.rules import same_as_first
from sabir.schema import STRING, Attribute, Constraint, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.opsets.typing import Array
    from sabir.schema import Operator, Version

TEXT = Constraint("T", STRING)
NO_KERNELS = "kernels compute numbers, no texts"
NO_DERIVATIVES = "texts have no derivatives"


def without_kernels(version: Version) -> Version:
    """Declare that a version has no kernels and no gradient, and return it."""
    version.absent("lower", NO_KERNELS)
    version.absent("gradient", NO_DERIVATIVES)
    return version


def declare(operator: Operator, result: str, attributes: Sequence[Attribute] = ()) -> Version:
    """Declare an operator that changes each string of a tensor; `result` describes what it returns."""
    version = operator.first(
        1,
        inputs=[Input("input", TEXT, "Strings, of any shape.")],
        outputs=[Output("output", TEXT, result)],
        attributes=attributes,
    )
    version.infer(same_as_first)
    return without_kernels(version)


def mapped(x: Array, function: Callable[[str], str]) -> Array:
    """Return the results of a function of each string, in the shape of the tensor."""
    y: Array = np.empty(x.shape, object)
    y.reshape(-1)[:] = [function(as_str(word)) for word in x.ravel().tolist()]
    return y


def as_str(word: object) -> str:
    """Return an element of a tensor of strings as a text; raises ValueError for bytes that are no UTF-8."""
    return word.decode() if isinstance(word, bytes) else str(word)


def table_of(text: str) -> dict[str, str]:
    """Return the table in an attribute: lines of a key, a tabulator and a value."""
    pairs = (line.split("\t", 1) for line in text.split("\n") if line)
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}
