"""The decorator that declares a repair beside the function that does it, and the tables of all repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

_SAFE: dict[str, str] = {}
_UNSAFE: dict[str, str] = {}


def repair(rule: str, description: str, *, safe: bool = True) -> Callable[[F], F]:
    """Declare that the decorated function repairs violations of a rule.

    `description` tells the reader of the rule's page what the repair changes. A repair that is not `safe`
    changes what others rely on; it is done only if the caller names its rule. Raises ValueError if the rule
    already has a safe or an unsafe repair.
    """
    table = _SAFE if safe else _UNSAFE
    if rule in table:
        raise ValueError(f"the {'safe' if safe else 'unsafe'} repair of {rule} is declared twice")
    table[rule] = description

    def unchanged(function: F) -> F:
        return function

    return unchanged


def declared_repairs(*, safe: bool) -> Mapping[str, str]:
    """Return the descriptions of the safe or the unsafe repairs by rule, sorted by id."""
    return dict(sorted((_SAFE if safe else _UNSAFE).items()))
