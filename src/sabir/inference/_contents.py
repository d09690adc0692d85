"""Known contents: which tensors have them, and how they follow from constants and from evaluation.

Contents are kept in `TensorType.known`. Every place that adds or drops them is in this module.
"""

from __future__ import annotations

import dataclasses
from itertools import starmap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import ACCIDENTS, SabirError
from sabir.ir import SparseTensorType, Tensor, TensorType, Type
from sabir.opsets.families.shapes import contents
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Array, Constant, Model, Node, Value
    from sabir.schema import Call, Scope, Version

_FIRST_IR_OF_DEFAULTS = 4  # before it every initializer had to be an input, and meant a constant
_MOST_FLOATS = 16  # known contents of float tensors serve scales and limits, not data


class Constants:
    """Decides which initializers of a model have known contents.

    An initializer that a caller may override and a state variable of training have none: a key of any
    initialization or update binding changes between runs.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._state = model, model.state()

    def overridable(self, inputs: Collection[Value]) -> Collection[Value]:
        """Return those of the main graph's inputs that a run may override although they have a default."""
        return inputs if self._model.ir_version >= _FIRST_IR_OF_DEFAULTS else ()

    def type_of(self, value: Value, tensor: Constant, *, overridden: bool = False) -> Type:
        """Return the type of an initializer, with its contents where they are known, small and of use."""
        if not isinstance(tensor, Tensor):
            return TensorType(tensor.element, tensor.shape)
        kind = tensor.type
        if overridden or value in self._state or not _is_useful(kind.element, tensor.size):
            return kind
        return kind.with_known(contents.of_array(tensor.array()))


def tensor_type_of(tensor: Constant) -> Type:
    """Return the type of an initializer, without its contents."""
    return tensor.type if isinstance(tensor, Tensor) else SparseTensorType(tensor.element, tensor.shape)


def _is_useful(element: ElementType, size: int) -> bool:
    """Return whether shape arithmetic or a check may need the contents of a constant."""
    if element.kind in {"string", "complex"} or not element.number:
        return False
    return size <= (contents.MOST if element.is_integer or element.kind == "bool" else _MOST_FLOATS)


def without_contents(kind: Type) -> Type:
    """Return a type without contents, and without what the file says about one value beside its type.

    >>> from sabir.ir import tensor_type
    >>> without_contents(tensor_type('int64', [2]).with_known([1, 2])).known
    """
    if isinstance(kind, TensorType):
        return TensorType(kind.element, kind.shape)
    return kind if kind.note is None else dataclasses.replace(kind, note=None)


def folded(
    version: Version, node: Node, inputs: Sequence[Any], results: tuple[Type | None, ...],
    scope: Scope, call: Call,
) -> tuple[Type | None, ...]:  # fmt: skip
    """Evaluate an operator whose inputs are all known, and add the contents of its outputs if small."""
    arrays = [contents.array_of(t) if isinstance(t, TensorType) else None for t in inputs]
    constant = inputs and all(a is not None or t is None for a, t in zip(arrays, inputs, strict=True))
    if not constant or node.graphs or version.operator.random or version.find("evaluate") is None:
        return results
    if not all(map(_is_small, results)):  # last: sizes of symbols are products of polynomials
        return results
    binding = version.binding("evaluate")
    try:
        with np.errstate(all="ignore"):
            computed = binding(arrays, binding.arguments(scope.arguments(node.attributes)), call)
    except (SabirError, *ACCIDENTS):
        return results  # a run reports what is wrong with these values; the types remain
    return tuple(starmap(_with_contents, zip(results, as_results(computed), strict=False)))


def _is_small(kind: Type | None) -> bool:
    size = kind.size if isinstance(kind, TensorType) else None
    return isinstance(size, int) and size <= contents.MOST


def _with_contents(kind: Type | None, value: Any) -> Type | None:
    if not isinstance(kind, TensorType) or not isinstance(value, (np.ndarray, np.generic)):
        return kind
    array: Array = np.asarray(cast("Array", value))
    return kind.with_known(contents.of_array(array)) if array.shape == kind.shape else kind
