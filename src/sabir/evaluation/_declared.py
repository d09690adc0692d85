"""Declared types compared with the values of a run: element types, sizes, dimension variables.

Spec/ir.txt, "Static tensor shapes": all tensors of a graph that mention a dimension variable have the same
size there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import ml_dtypes
import numpy as np

from sabir.ir import Expr, MapType, OptionalType, SequenceType, SparseTensorType, TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.elements import ElementType
    from sabir.evaluation._run import Run

_ARRAY: Any = np.ndarray  # untyped: a cast would take time in every run


class Dimensions:
    """The sizes of dimension variables in one run, each with the place that fixed it.

    A subgraph sees the sizes of the outer graph; a size that it fixes is valid for one call of it.
    """

    __slots__ = ("_outer", "_sizes")

    def __init__(self, outer: Dimensions | None = None) -> None:
        self._outer = outer
        self._sizes: dict[str, tuple[int, str]] = {}

    def fix(self, name: str, size: int, where: str) -> tuple[int, str]:
        """Return the size of a variable and the place that fixed it: `where`, if it is the first."""
        scope: Dimensions | None = self
        while scope is not None:
            known = scope._sizes.get(name)  # ruff: ignore[private-member-access]  the same class
            if known is not None:
                return known
            scope = scope._outer  # ruff: ignore[private-member-access]  the same class
        self._sizes[name] = size, where
        return size, where


class Declaration(Protocol):
    """A declared type as a run compares it with values."""

    @property
    def has_variables(self) -> bool:
        """Whether a dimension is a variable."""
        ...

    def conflict(self, value: Any, where: str, dims: Dimensions, *, strict: bool = False) -> str:
        """Return the message about a value that contradicts the declared type, else "".

        Dimension variables are fixed in `dims`. With `strict` they have one size in all items of a sequence;
        else those that nothing has fixed before may have another in each item, as in the official tests.
        """
        ...


def declaration(kind: Type | None) -> Declaration | None:
    """Return a declared type in the form that is compared with values, None if no value contradicts it."""
    match kind:
        case TensorType() if kind.element.number or kind.shape is not None:
            return TensorDeclaration(kind)
        case SparseTensorType():
            return TensorDeclaration(TensorType(kind.element, kind.shape), kind)
        case MapType():
            return _MapDeclaration(kind)
        case SequenceType():
            return _SequenceDeclaration(declaration(kind.item))
        case OptionalType() if (item := declaration(kind.item)) is not None:
            return _OptionalDeclaration(item)
        case _:
            return None


class TensorDeclaration:
    """A declared tensor type. A dimension below 0 is unknown, as in onnx and onnxruntime.

    A sparse tensor is compared in its dense form, and messages show it as it was `declared`.
    """

    __slots__ = ("_element", "_fixed", "_kind", "_rank", "_variables", "has_variables")

    def __init__(self, kind: TensorType, declared: Type | None = None) -> None:
        self._kind = declared or kind
        self._element = kind.element.dtype if kind.element.number else None
        self._rank = kind.rank
        shape = kind.shape or ()
        self._fixed = tuple((axis, d) for axis, d in enumerate(shape) if isinstance(d, int) and d >= 0)
        self._variables = tuple((axis, str(d)) for axis, d in enumerate(shape) if isinstance(d, Expr))
        self.has_variables = bool(self._variables)

    def conflict(self, value: Any, where: str, dims: Dimensions, *, strict: bool = False) -> str:  # ruff: ignore[unused-method-argument]  a tensor has no items
        """Return the message about a value that contradicts the type, else ""."""
        if type(value) is not _ARRAY:
            return "" if value is None else self._sentence(where, f"is a {type(value).__name__}")
        dtype = value.dtype
        if self._element is not None and dtype is not self._element and dtype != self._element:
            return self._sentence(where, f"has elements of {dtype}")
        return self.shape_conflict(value.shape, where, dims)

    def shape_conflict(self, shape: tuple[int, ...], where: str, dims: Dimensions) -> str:
        """Return the message about a shape that contradicts the type, else ""."""
        if self._rank is None:
            return ""
        if len(shape) != self._rank:
            return self._sentence(
                where, f"has the shape {list(shape)}, of rank {len(shape)} and not {self._rank}"
            )
        if not shape:
            return ""
        for axis, size in self._fixed:
            if shape[axis] != size:
                return self._sentence(
                    where, f"has the shape {list(shape)}: axis {axis} is {shape[axis]}, and must be {size}"
                )
        for axis, name in self._variables:
            size, first = dims.fix(name, shape[axis], where)
            if size != shape[axis]:
                shown = f"has the shape {list(shape)}: {name} is {size} in {first}, and {shape[axis]} here"
                return self._sentence(where, shown)
        return ""

    def _sentence(self, where: str, problem: str) -> str:
        return f"{where} is declared {self._kind}, and {problem}"


class _SequenceDeclaration:
    __slots__ = ("_item", "has_variables")

    def __init__(self, item: Declaration | None) -> None:
        self._item = item
        self.has_variables = item is not None and item.has_variables

    def conflict(self, value: Any, where: str, dims: Dimensions, *, strict: bool = False) -> str:
        if not isinstance(value, list):
            return "" if value is None else f"{where} is declared a sequence, and is a {type(value).__name__}"
        if self._item is None:
            return ""
        for index, item in enumerate(cast("list[Any]", value)):
            inner = dims if strict else Dimensions(dims)
            problem = self._item.conflict(item, f"{where}, item {index}", inner, strict=strict)
            if problem:
                return problem
        return ""


class _MapDeclaration:
    __slots__ = ("_key", "_kind", "_scalar", "_value", "has_variables")

    def __init__(self, kind: MapType) -> None:
        self._kind, self._key = kind, kind.key
        self._value = declaration(kind.value)
        self.has_variables = self._value is not None and self._value.has_variables
        # scalars of the declared type, which most maps have, are told by their class alone
        self._scalar = _class_of_scalars(kind.value)

    def conflict(self, value: Any, where: str, dims: Dimensions, *, strict: bool = False) -> str:
        if not isinstance(value, dict):
            return (
                "" if value is None else f"{where} is declared {self._kind}, and is a {type(value).__name__}"
            )
        entries = cast("dict[Any, Any]", value)
        return self._of_keys(entries, where) or self._of_values(entries, where, dims, strict=strict)

    def _of_keys(self, entries: Mapping[Any, Any], where: str) -> str:
        if not self._kind.has_valid_keys:
            return f"{where} is declared {self._kind}, and a map cannot have keys of type {self._key}"
        if not self._key.number:
            return ""
        is_text = self._key.kind == "string"
        kinds: set[type[Any]] = {type(key) for key in entries}
        for kind in kinds:
            if not issubclass(kind, (str, np.str_) if is_text else (int, np.integer)) or kind is bool:
                shown = next(key for key in entries if type(key) is kind)
                return f"{where} is declared {self._kind}, and has the key {shown!r}: pass {self._key} keys"
        if is_text or not entries or not self._key.is_integer:
            return ""
        lowest, highest = whole_range(self._key)
        for key in (min(entries), max(entries)):
            if not lowest <= int(key) <= highest:
                return f"{where} is declared {self._kind}, and the key {key} is not in {lowest} to {highest}"
        return ""

    def _of_values(self, entries: Mapping[Any, Any], where: str, dims: Dimensions, *, strict: bool) -> str:
        if self._value is None or all(type(item) is self._scalar for item in entries.values()):
            return ""
        for key, item in entries.items():
            problem = self._value.conflict(_as_array(item), f"{where}, key {key!r}", dims, strict=strict)
            if problem:
                return problem
        return ""


def _class_of_scalars(kind: Type | None) -> type[Any] | None:
    """Return the numpy class of a scalar of the type, None where an array is meant, or the type is open."""
    if not isinstance(kind, TensorType) or not kind.element.number or kind.rank:
        return None
    return kind.element.dtype.type


def _as_array(item: Any) -> Any:
    """Return a scalar in a map as the array that it means."""
    if isinstance(item, (str, bytes)):
        return np.asarray(item, object)
    return np.asarray(item) if isinstance(item, (np.generic, int, float)) else item


def whole_range(kind: ElementType) -> tuple[int, int]:
    """Return the least and the greatest number of an element type of whole numbers.

    >>> from sabir.elements import element
    >>> whole_range(element('int8'))
    (-128, 127)
    """
    limits = ml_dtypes.iinfo(kind.dtype)
    return int(limits.min), int(limits.max)


class _OptionalDeclaration:
    __slots__ = ("_item", "has_variables")

    def __init__(self, item: Declaration) -> None:
        self._item, self.has_variables = item, item.has_variables

    def conflict(self, value: Any, where: str, dims: Dimensions, *, strict: bool = False) -> str:
        return "" if value is None else self._item.conflict(value, where, dims, strict=strict)


class DeclaredValue(NamedTuple):
    """An input or output of a graph as a run compares it: its place in messages, and its declaration."""

    where: str
    declared: Declaration | None


def compare(declared: Iterable[DeclaredValue], values: Iterable[Any], run: Run) -> None:
    """Report each value that contradicts its declared type."""
    for port, value in zip(declared, values, strict=False):
        if port.declared is not None:
            problem = port.declared.conflict(value, port.where, run.dims, strict=run.strict)
            problem = problem or differing_items(port.declared, value, port.where, run)
            if problem:
                run.mismatch(port.where, problem)


def differing_items(declared: Declaration, value: Any, where: str, run: Run) -> str:
    """Return the message about items of a value in which a variable has several sizes, else "".

    A run that is not strict reports them, and goes on; a strict one has refused them.
    """
    if run.strict or not has_sized_items(declared):
        return ""
    return declared.conflict(value, where, Dimensions(run.dims), strict=True)


def has_sized_items(declared: Declaration | None) -> bool:
    """Return whether values of a declared type have items whose dimensions are variables."""
    return declared is not None and declared.has_variables and not isinstance(declared, TensorDeclaration)
