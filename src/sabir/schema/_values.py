"""The values that an attribute may have, as a room declares them beside its type.

Inference, the checker, the run and the documentation all read this one declaration. For a list every item
must be admitted.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sabir.base import quote, suggest
from sabir.elements import ELEMENTS, element, find_element

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.elements import ElementType

Choice: TypeAlias = str | int
_ELEMENT = re.compile(r"tensor\((\w+)\)")  # in the type strings of a constraint
_BY_NAME = {e.name.upper(): e for e in ELEMENTS}
_FEW = 8  # items: a longer list is reduced to its distinct items first
_MOST_LISTED = 12  # element types in a message; `sabir op` lists all of them


@dataclass(frozen=True, slots=True)
class OneOf:
    """A choice among strings or numbers.

    `aliases` pairs a value that some files have, although the standard does not name it, with the name that
    it means: it runs, and the checker warns. With `any_case` a name in another case is an alias too.
    """

    names: tuple[Choice, ...]
    aliases: tuple[tuple[Choice, Choice], ...] = ()
    any_case: bool = False

    def admits(self, value: object) -> bool:
        """Whether a value is one of the names or an alias."""
        return value in self.names or self.alias_of(value) is not None

    def alias_of(self, value: object) -> Choice | None:
        """Return the name that an alias means; None for a value that is no alias."""
        if value in self.names:
            return None
        for alias, name in self.aliases:
            if alias == value:
                return name
        if not self.any_case or not isinstance(value, str):
            return None
        return next((n for n in self.names if str(n).casefold() == value.casefold()), None)

    def fault(self, value: object) -> str:
        """Return the message about a value that is not admitted, with the nearest name."""
        nearest = suggest(value, map(str, self.names)) if isinstance(value, str) and value else ""
        return f"{_shown(value)}, and must be {_either([str(n) for n in self.names])}{nearest}"

    def listed(self) -> str:
        """Return the values as the documentation lists them."""
        return ", ".join(f"`{n}`" for n in self.names)


@dataclass(frozen=True, slots=True)
class Range:
    """A range of numbers; NaN is in no range."""

    at_least: float | None = None
    above: float | None = None

    def admits(self, value: Any) -> bool:
        """Whether a number is in the range."""
        return bool(
            (self.at_least is None or value >= self.at_least) and (self.above is None or value > self.above)
        )

    def alias_of(self, value: object) -> None:
        """Return None: a number has no aliases."""

    def fault(self, value: object) -> str:
        """Return the message about a number that is not admitted."""
        return f"{value}, and must be {self.listed()}"

    def listed(self) -> str:
        """Return the range as the documentation writes it."""
        return f"above {self.above:g}" if self.above is not None else f"{self.at_least:g} or more"


@dataclass(frozen=True, slots=True)
class ElementTypes:
    """The number of an element type, or its name where the attribute is a string.

    `of` has the admitted types as type strings, or names the constraint of the version that has them. `unset`
    is a number that means the same as no attribute.
    """

    of: str | frozenset[str]
    unset: int | None = None

    def admits(self, value: object) -> bool:
        """Whether a value names one of the element types."""
        found = self.element_of(value)
        return (
            found in _elements_in(self.of) if found is not None else value is not None and value == self.unset
        )

    @staticmethod
    def element_of(value: object) -> ElementType | None:
        """Return the element type that a value names, or None."""
        return _named(value)

    def alias_of(self, value: object) -> str | None:
        """Return the name of an element type that is written in another case than in TensorProto."""
        found = _named(value) if isinstance(value, str) else None
        name = "" if found is None else found.name.upper()
        return None if name in {"", value} else name

    def fault(self, value: object) -> str:
        """Return the message about a value that is not admitted; it lists few admitted ones."""
        found, admitted = _named(value), _elements_in(self.of)
        if found is None:
            return f"{_shown(value)}, which is not an element type of the standard"
        shown = _shown(value) if isinstance(value, str) else f"{value} ({found})"
        if len(admitted) > _MOST_LISTED:
            return f"{shown}, which this version does not admit"
        return f"{shown}, and must be {_either([f'{e.number} ({e})' for e in admitted])}"

    def listed(self) -> str:
        """Return the element types as the documentation lists them."""
        unset = () if self.unset is None else (f"`{self.unset}` (as if absent)",)
        return ", ".join([*unset, *(f"`{e.number}` ({e})" for e in _elements_in(self.of))])


Values: TypeAlias = OneOf | Range | ElementTypes


def one_of(*names: Choice, aliases: Mapping[Choice, Choice] | None = None, any_case: bool = False) -> OneOf:
    """Return a choice among names.

    >>> one_of('linear', 'nearest').listed()
    '`linear`, `nearest`'
    """
    return OneOf(names, tuple((aliases or {}).items()), any_case)


def at_least(number: float) -> Range:
    """Return the range of the numbers from `number` on.

    >>> at_least(1).listed()
    '1 or more'
    """
    return Range(at_least=number)


def above(number: float) -> Range:
    """Return the range of the numbers above `number`.

    >>> above(0).listed()
    'above 0'
    """
    return Range(above=number)


def element_types(of: str | frozenset[str], *, unset: int | None = None) -> ElementTypes:
    """Return the choice among the element types of a constraint, or of type strings.

    >>> Attribute('to', 'int', values=element_types('T2')).name
    'to'
    """
    return ElementTypes(of, unset)


def bound(values: Values, constraints: Mapping[str, frozenset[str]]) -> Values:
    """Return the values with the types of the constraint that they name, if they name one."""
    if isinstance(values, ElementTypes) and isinstance(values.of, str):
        return replace(values, of=constraints[values.of])
    return values


def is_admitted(values: Values, value: Any) -> bool:
    """Whether an attribute's value is admitted; for a list, every item."""
    if not isinstance(value, tuple):
        return values.admits(value)
    items = cast("Sequence[object]", value)
    return all(map(values.admits, items if len(items) <= _FEW else set(items)))


def fault_of(values: Values, value: Any) -> tuple[int | None, str] | None:
    """Return the message about an attribute's value, with the place in a list; None for an admitted one."""
    if is_admitted(values, value):
        return None
    if not isinstance(value, tuple):
        return None, values.fault(value)
    items = cast("Sequence[object]", value)
    wrong = next(i for i, item in enumerate(items) if not values.admits(item))
    return wrong, values.fault(items[wrong])


def alias_of(values: Values, value: Any) -> tuple[object, Choice] | None:
    """Return the first alias in an attribute's value, and the name that it means."""
    items = cast("Sequence[object]", value) if isinstance(value, tuple) else (value,)
    found = ((item, values.alias_of(item)) for item in dict.fromkeys(items))
    return next(((item, name) for item, name in found if name is not None), None)


@functools.cache  # there are as many as constraints
def _elements_in(types: str | frozenset[str]) -> tuple[ElementType, ...]:
    """Return the element types in type strings, by number; before `bound`, none for a constraint."""
    found = {m[1] for t in types if (m := _ELEMENT.search(t))} if isinstance(types, frozenset) else ()
    return tuple(sorted(map(element, found), key=lambda e: e.number))


def _named(value: object) -> ElementType | None:
    if isinstance(value, int):
        return find_element(value)
    return _BY_NAME.get(value.upper()) if isinstance(value, str) else None


def _shown(value: object) -> str:
    return quote(value) if isinstance(value, (str, bytes)) else str(value)


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
