"""Operators in the opset of a graph under construction, and in the one before."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sabir.ir import TensorType
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Generator

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value


@contextmanager
def previous_opset(b: Builder) -> Generator[None]:
    """Let calls be those of the opset before: of an operator that is removed from this one on.

    A node of a removed operator crosses the boundary below as the same call.
    """
    b.opsets[""] -= 1
    try:
        yield
    finally:
        b.opsets[""] += 1


def typed(b: Builder, x: Value, kind: ElementType) -> Value:
    """Return a tensor in another element type; itself where it is known to have it."""
    known = isinstance(x.type, TensorType) and x.type.element is kind
    return x if known else b.Cast(x, to=kind.number)


def results_of(made: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the results of a call as a tuple, also where there is one."""
    return made if isinstance(made, tuple) else (made,)


def has_attribute(b: Builder, name: str, attribute: str) -> bool:
    """Return whether an operator of the default domain has an attribute in the opset of the builder."""
    operator = STANDARD.find("", name)
    return operator is not None and any(a.name == attribute for a in operator.at(b.opset).attributes)
