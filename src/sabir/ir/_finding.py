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


def named(name: str, among: Iterable[_Object], what: str, where: str) -> _Object:
    """Return the one object of a name; `what` and `where` describe them in a message.

    Raises NotFoundError where no object has the name, and where several have it; TypeError for another key.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"a name is text, not the {type(name).__name__} {name!r}")
    objects = list(among)
    found = [one for one in objects if one.name == name]
    if len(found) == 1:
        return found[0]
    if not found:
        nearest = suggest(name, [one.name for one in objects if one.name])
        raise NotFoundError(f"{where} has no {what} named {quote(name)}{nearest}")
    listed = ", ".join(map(repr, found[:_MOST_LISTED])) + (", ..." if len(found) > _MOST_LISTED else "")
    raise NotFoundError(f"{where} has {len(found)} {what}s named {quote(name)}: {listed}")
