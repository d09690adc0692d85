"""The decorator that adds rewrite rules to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from sabir.patterns import RewriteRule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Value
    from sabir.patterns import Match
    from sabir.rewriting import DetachedBuilder

    Build: TypeAlias = Callable[[DetachedBuilder, Match], Value | None]


class Declaring(Protocol):
    """The decorator of a table; the parameters are the fields of `RewriteRule`.

    >>> table = []
    >>> add: Declaring = declaring(table)
    """

    def __call__(
        self, name: str, says: str, pattern: str | Sequence[str], *, exact: bool = True, shared: bool = True,
        examples: Sequence[str], near_misses: Sequence[str] = (), since: int = 1, until: int | None = None,
    ) -> Callable[[Build], Build]:  # fmt: skip
        """Return a decorator of the function that builds the replacement."""
        ...


def declaring(table: list[RewriteRule]) -> Declaring:
    """Return a decorator that adds a rule to a table, whose replacement the decorated function builds."""

    def rewrite(
        name: str, says: str, pattern: str | Sequence[str], *, exact: bool = True, shared: bool = True,
        examples: Sequence[str], near_misses: Sequence[str] = (), since: int = 1, until: int | None = None,
    ) -> Callable[[Build], Build]:  # fmt: skip
        def add(build: Build) -> Build:
            rule = RewriteRule(
                name, pattern, build, says=says, exact=exact, shared=shared, examples=examples,
                near_misses=near_misses, since=since, until=until,
            )  # fmt: skip
            table.append(rule)
            return build

        return add

    return rewrite
