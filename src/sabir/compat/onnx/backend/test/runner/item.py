"""A test of the runner, and the model that it ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class TestItem:
    """The function of a test, and a list with its model: None before it runs."""

    func: Callable[..., Any]
    proto: list[Any]
    # pytest collects no class that says so
    __test__: bool = False


__all__ = ["TestItem"]
