"""How the type of an input or output changed: its element type, its shape, its denotations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from sabir.base import check_depth, quote
from sabir.elements import COMPLEX64, COMPLEX128, DOUBLE, FLOAT
from sabir.ir import MapType, OpaqueType, OptionalType, SequenceType, SparseTensorType, TensorType

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Type

Facet: TypeAlias = Literal[
    "type-widened", "type-changed", "shape-widened", "shape-narrowed", "shape-changed",
    "meaning-changed", "meaning-declared",
]  # fmt: skip


class Axis(NamedTuple):
    """One dimension of both types, and where it is: `axis 0`, `item axis 1`."""

    place: str
    old: Dim
    new: Dim


@dataclass(eq=False)
class TypeDifference:
    """How two types differ; dimensions of equal rank are in `axes`, for a comparison across all ports."""

    facets: list[tuple[Facet, str]] = field(default_factory=list["tuple[Facet, str]"])
    axes: list[Axis] = field(default_factory=list[Axis])


def compare_types(old: Type | None, new: Type | None) -> TypeDifference:
    """Return how a type differs from the one before; raises LimitError for types nested too deep."""
    found = TypeDifference()
    _compare(old, new, "", found, 1)
    return found


def _compare(old: Type | None, new: Type | None, place: str, found: TypeDifference, depth: int) -> None:
    check_depth(depth)
    _compare_notes(old, new, place, found)
    match old, new:
        case (None, None):
            return
        case (None, _):
            found.facets.append(("shape-narrowed", f"the {place}type was not declared and is {new}"))
        case (_, None):
            found.facets.append(("shape-widened", f"the {place}type was {old} and is no longer declared"))
        case (TensorType(), TensorType()) | (SparseTensorType(), SparseTensorType()):
            _compare_elements(old.element, new.element, f"{place}elements were", "are", found)
            _compare_shapes(old.shape, new.shape, place, found)
        case (SequenceType(), SequenceType()) | (OptionalType(), OptionalType()):
            _compare(old.item, new.item, f"{place}item ", found, depth + 1)
        case (MapType(), MapType()):
            _compare_elements(old.key, new.key, f"{place}keys were", "are", found)
            _compare(old.value, new.value, f"{place}value ", found, depth + 1)
        case (_, OptionalType()):
            found.facets.append(("shape-widened", f"the {place}type was {old} and is {new}"))
            _compare(old, new.item, f"{place}item ", found, depth + 1)
        case (OptionalType(), _):
            found.facets.append(("shape-narrowed", f"the {place}type was {old} and is {new}"))
            _compare(old.item, new, f"{place}item ", found, depth + 1)
        case (OpaqueType(), OpaqueType()) if old == new:
            return
        case _:
            found.facets.append(("type-changed", f"the {place}type was {old} and is {new}"))


def _compare_elements(old: ElementType, new: ElementType, was: str, now: str, found: TypeDifference) -> None:
    if old != new:
        facet = "type-widened" if is_wider(new, old) else "type-changed"
        found.facets.append((facet, f"the {was} {old} and {now} {new}"))


def _compare_shapes(old: Shape | None, new: Shape | None, place: str, found: TypeDifference) -> None:
    if old is None and new is None:
        return
    if old is None or new is None:
        facet: Facet = "shape-narrowed" if old is None else "shape-widened"
        found.facets.append((facet, f"the {place}rank was {_rank(old)} and is {_rank(new)}"))
    elif len(old) != len(new):
        found.facets.append(("shape-changed", f"the {place}rank was {len(old)} and is {len(new)}"))
    else:
        pairs = zip(old, new, strict=True)
        found.axes += [Axis(f"{place}axis {index}", *dims) for index, dims in enumerate(pairs)]


def _rank(shape: Shape | None) -> str:
    return "open" if shape is None else str(len(shape))


def _compare_notes(old: Type | None, new: Type | None, place: str, found: TypeDifference) -> None:
    """Compare the denotations of the types and of their dimensions."""
    if old is None or new is None:
        return
    before, after = _denotations(old), _denotations(new)
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key, ""), after.get(key, "")
        if was != now:
            facet: Facet = "meaning-changed" if was and now else "meaning-declared"
            shown = [quote(text) if text else "not declared" for text in (was, now)]
            found.facets.append((
                facet,
                f"the denotation of the {place}{key} was {shown[0]} and is {shown[1]}",
            ))


def _denotations(type_: Type) -> dict[str, str]:
    note = type_.note
    if note is None:
        return {}
    dims = {f"axis {index}": text for index, text in enumerate(note.dims) if text}
    return {"type": note.denotation, **dims} if note.denotation else dims


@cache
def is_wider(wide: ElementType, narrow: ElementType) -> bool:
    """Return whether another element type of the same kind has every value of `narrow`."""
    if wide is narrow or wide.kind != narrow.kind:
        return False
    if narrow.is_integer:
        one, other = (ml_dtypes.iinfo(t.dtype) for t in (wide, narrow))
        return bool(one.min <= other.min and other.max <= one.max)
    if narrow.is_complex:
        return (wide, narrow) == (COMPLEX128, COMPLEX64)
    if not narrow.is_float or narrow in {DOUBLE, FLOAT}:
        return wide is DOUBLE and narrow is FLOAT
    return _has_values_of(wide, narrow)


def _has_values_of(wide: ElementType, narrow: ElementType) -> bool:
    """Return whether a float type has every value of one with at most 16 bits, NaN and infinities too."""
    count = 1 << narrow.bits
    codes = np.arange(count, dtype=np.uint8 if narrow.bits <= 8 else "<u2")  # ruff: ignore[magic-value-comparison]  a byte
    with np.errstate(all="ignore"):
        values = codes.view(narrow.dtype).astype(np.float64)
        again = values.astype(wide.dtype).astype(np.float64)
    equal = (values == again) & (np.signbit(values) == np.signbit(again))  # a type may lack -0.0
    return bool((equal | np.isnan(values) & np.isnan(again)).all())
