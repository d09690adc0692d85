"""Objects by their names, which are labels: none may have a name, and several may have the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from sabir.base import NotFoundError, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_LISTED = 5


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Object = TypeVar("_Object", bound=_Named)


def named(name: str | _Object, among: Iterable[_Object], what: str, where: str) -> _Object:
    """Return the one object of a name, or an object that is among them; `what` and `where` are for messages.

    Raises NotFoundError where no object has the name, where several have it, and for an object that is not
    among them; TypeError for another key.
    """
    objects = list(among)
    if not isinstance(name, str):
        return _member(name, objects, what, where)
    found = [one for one in objects if one.name == name]
    if len(found) == 1:
        return found[0]
    if not found:
        nearest = suggest(name, [one.name for one in objects if one.name])
        raise NotFoundError(f"{where} has no {what} named {quote(name)}{nearest}")
    listed = ", ".join(map(repr, found[:_MOST_LISTED])) + (", ..." if len(found) > _MOST_LISTED else "")
    raise NotFoundError(f"{where} has {len(found)} {what}s named {quote(name)}: {listed}")


def _member(one: _Object, objects: list[_Object], what: str, where: str) -> _Object:
    if any(one is other for other in objects):
        return one
    if isinstance(getattr(one, "name", None), str):
        raise NotFoundError(f"{one!r} is no {what} of {where}")
    raise TypeError(f"a {what} is found by its name, not by the {type(one).__name__} {one!r}")
