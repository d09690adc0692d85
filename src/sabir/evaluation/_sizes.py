"""The cost of calls in numpy: how many numbers attributes have, and the sizes of outputs before a call.

The limits count what these functions say: another engine, which computes in another way, has its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import ACCIDENTS, InferenceError, SabirError, UnsupportedError, check_elements
from sabir.evaluation._costs import NARROW, WIDE, numbers_of, unseen_work
from sabir.evaluation._types import Kind, OperandTypes, kind_of
from sabir.ir import MAX_RANK, Tensor, TensorType
from sabir.opsets.families.shapes.ranks import type_of
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.schema import Call, Version

_ARRAY: Any = np.ndarray  # untyped: a cast would take time in every run
_MOST_REMEMBERED = 16


def numbers_in(attributes: Mapping[str, Any]) -> int:
    """Return how many numbers the values of a node's attributes have."""
    return sum(map(_attribute_numbers, attributes.values()))


def _attribute_numbers(value: Any) -> int:
    if isinstance(value, Tensor):
        try:
            return numbers_of(value.array())
        except SabirError:
            return 0  # the run reports it
    if isinstance(value, (str, bytes)):
        return len(value) // WIDE
    if isinstance(value, tuple):
        return sum(map(_attribute_numbers, cast("tuple[Any, ...]", value)))
    return 1


class _Checked(NamedTuple):
    """The operands of the last call that was in order: their types, the shapes of arrays among them.

    `most` is how many elements may need no check for all outputs to need none.
    """

    kinds: list[Kind]
    shapes: list[tuple[int, ...]]
    most: float


class OutputSizes(OperandTypes):
    """Checks, before a call, how large its outputs will be, and the types of its operands.

    Most outputs cannot have more elements than the product of the operands' counts, so that a look at the
    counts is enough. An operator whose output size follows from contents or attributes checks it itself.
    """

    __slots__ = ("_attributes", "_call", "_last", "_remembered")

    def __init__(self, version: Version, attributes: Mapping[str, Any], call: Call) -> None:
        """Take a version, the values of a node's attributes, and the facts of its call."""
        super().__init__(version)
        self._attributes, self._call = attributes, call
        self._remembered: dict[tuple[Any, ...], tuple[int, int, int, int]] = {}
        self._last = _Checked([], [], math.inf)

    def check(self, inputs: Sequence[Any], plain: float) -> None:
        """Raise LimitError for an output that would be too large; up to `plain` elements are not looked at.

        Raises EvaluationError for an input of a type that is not admitted.
        """
        kinds: list[Kind] = []
        shapes: list[tuple[int, ...]] = []
        for x in inputs:
            if type(x) is _ARRAY:
                kinds.append(x.dtype)
                shapes.append(x.shape)
            else:
                kinds.append(kind_of(x))
        last_kinds, last_shapes, most = self._last
        if most <= plain and shapes == last_shapes and kinds == last_kinds:
            return
        self.check_kinds(kinds)
        most = math.prod([d or 1 for shape in shapes for d in shape])
        if most > plain or sum(map(len, shapes)) > MAX_RANK:
            most = self._check(inputs)
        self._last = _Checked(kinds, shapes, most)

    def _check(self, inputs: Sequence[Any]) -> float:
        """Raise LimitError as `check`; return the elements of the largest output, if nothing else counts."""
        key = tuple([(x.shape, x.itemsize) if type(x) is _ARRAY else x is None for x in inputs])
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = self._counts(inputs)
        count, read, width, temporaries = found
        check_elements(count, read, width=width, beside=temporaries)
        return math.inf if temporaries else count

    def _counts(self, inputs: Sequence[Any]) -> tuple[int, int, int, int]:
        """Return the elements of the largest output and of all inputs, the bytes of one, and of temporaries.

        numpy computes narrow numbers as wider ones, so a narrow output has a temporary as well.
        """
        count, width = self._largest(inputs)
        arrays = [x for x in inputs if type(x) is _ARRAY]
        temporaries = sum(map(unseen_work, arrays)) + (NARROW * count if width < NARROW else 0)
        return count, sum(x.size for x in arrays), width, temporaries

    def _largest(self, inputs: Sequence[Any]) -> tuple[int, int]:
        """Return how many elements the largest output will have, and their width in bytes."""
        try:
            found = self._inferred(inputs)
        except (SabirError, *ACCIDENTS):
            return 0, 1  # the call itself reports it
        largest = 0, 1
        for kind in found:
            if not isinstance(kind, TensorType) or kind.shape is None:
                continue
            if len(kind.shape) > MAX_RANK:
                raise UnsupportedError(f"the output would have {len(kind.shape)} axes, more than {MAX_RANK}")
            if kind.is_static:
                count = math.prod(d for d in kind.shape if isinstance(d, int))
                largest = max(largest, (count, kind.element.dtype.itemsize))
        return largest

    def objection(self, inputs: Sequence[Any]) -> str | None:
        """Return why inference refuses the operands' types and small contents, or None."""
        try:
            self._inferred(inputs, known=True)
        except (InferenceError, UnsupportedError) as error:
            return str(error)
        except (SabirError, *ACCIDENTS):
            pass  # the reason is in the contents, or in too many of them
        return None

    def _inferred(self, inputs: Sequence[Any], *, known: bool = False) -> tuple[Any, ...]:
        if any(not isinstance(x, np.ndarray) and x is not None for x in inputs):
            return ()
        types = [None if x is None else type_of(x, known=known) for x in inputs]
        binding = self.version.binding("infer")
        return as_results(binding(types, binding.fill(self._attributes), self._call))
