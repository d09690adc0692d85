"""The decorator that adds rewrites to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from sabir.simplification._declaration import Rewrite
from sabir.simplification._pattern import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Value
    from sabir.rewriting import DetachedBuilder
    from sabir.simplification._declaration import Match

Build: TypeAlias = "Callable[[DetachedBuilder, Match], Value | None]"


class Declaring(Protocol):
    """The decorator of a table; the parameters are the fields of `Rewrite`.

    >>> table = []
    >>> add: Declaring = declaring(table)
    """

    def __call__(
        self, name: str, says: str, pattern: str, *, exact: bool = True, shared: bool = True,
        examples: Sequence[str], others: Sequence[str] = (), since: int = 1, until: int | None = None,
    ) -> Callable[[Build], Build]:  # fmt: skip
        """Return a decorator of the function that builds the replacement."""
        ...


def declaring(table: list[Rewrite]) -> Declaring:
    """Return a decorator that adds a rewrite to a table, whose replacement the decorated function builds."""

    def rewrite(
        name: str, says: str, pattern: str, *, exact: bool = True, shared: bool = True,
        examples: Sequence[str], others: Sequence[str] = (), since: int = 1, until: int | None = None,
    ) -> Callable[[Build], Build]:  # fmt: skip
        def add(build: Build) -> Build:
            parsed = Pattern.parse(pattern)
            table.append(Rewrite(name, says, parsed, build, exact, shared, examples, others, since, until))
            return build

        return add

    return rewrite
