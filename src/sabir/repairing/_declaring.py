"""The declaration of repairs: each beside the function that makes it, with the rule and what is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

_SAFE: dict[str, str] = {}
_UNSAFE: dict[str, str] = {}


def repair(rule: str, description: str, *, safe: bool = True) -> Callable[[F], F]:
    """Declare that the decorated function repairs violations of a rule.

    `description` says for the rule's page what is done. A repair that is not `safe` changes what others rely
    on, and is made only where its rule is named. Raises ValueError for a rule that has such a repair already.
    """
    table = _SAFE if safe else _UNSAFE
    if rule in table:
        raise ValueError(f"the {'safe' if safe else 'unsafe'} repair of {rule} is declared twice")
    table[rule] = description

    def declared(function: F) -> F:
        return function

    return declared


def declared_repairs(*, safe: bool) -> Mapping[str, str]:
    """Return the descriptions of the safe or the unsafe repairs, by rule, in order of the ids."""
    return dict(sorted((_SAFE if safe else _UNSAFE).items()))
