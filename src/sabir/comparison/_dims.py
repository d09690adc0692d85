"""How the dimensions of inputs and outputs changed, with the equalities that dimension variables declare.

A consumer of the old model feeds the shapes that the old inputs declare. So a new input is compared by what
these shapes are under its own declaration, and a new output by the shape that it has for these inputs: where
[1,3] becomes [N,3] in an input and [1] becomes [N] in an output, the output still has the shape [1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from sabir.ir import Expr, symbol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.comparison._types import Axis
    from sabir.ir import Dim

Effect: TypeAlias = Literal["same", "renamed", "widened", "narrowed", "changed", "follows"]
_Known: TypeAlias = int | Expr


class Dimensions:
    """Compares axes in order: first those of all inputs, then those of the outputs."""

    def __init__(self, inputs: Iterable[Axis]) -> None:
        self._to_old: dict[str, _Known] = {}  # the old dimension that each new variable has in an old call
        self._to_new: dict[str, _Known] = {}
        self._open: dict[str, tuple[str, _Known]] = {}  # what the open variables of old outputs became
        self._unknown = 0
        self._old_of_inputs: set[str] = set()
        self._effects: list[Effect] = [self._of_input(axis) for axis in inputs]

    def of_inputs(self) -> list[Effect]:
        """Return the effects of the axes of the inputs, in order."""
        return self._effects

    def _of_input(self, axis: Axis) -> Effect:
        old, new = self._named(axis.old), self._named(axis.new)
        _bind(self._to_old, new, old)
        _bind(self._to_new, old, new)
        if isinstance(old, Expr):
            self._old_of_inputs |= old.symbols
        takes_old, takes_only_old = _put(new, self._to_old) == old, _put(old, self._to_new) == new
        if takes_old and takes_only_old:
            return "same" if axis.old == axis.new else "renamed"
        return "widened" if takes_old else "narrowed" if takes_only_old else "changed"

    def of_output(self, axis: Axis) -> Effect:
        """Return the effect of an axis of an output, for the shapes of the old inputs."""
        old, new = self._named(axis.old), self._named(axis.new)
        was_open = _is_variable(old) and not _symbols(old) <= self._old_of_inputs
        if _is_variable(new) and not _symbols(new) <= self._to_old.keys():
            if not was_open or not self._is_one(old, "new", new):
                return "widened"
            _bind(self._to_old, new, old)
        actual = _put(new, self._to_old)
        if actual == old:
            if axis.old == axis.new:
                return "same"
            return "follows" if isinstance(old, int) else "renamed"
        if was_open and actual is not None and self._is_one(old, "old", actual):
            return "narrowed"
        return "changed" if isinstance(actual, int) else "widened"

    def _is_one(self, variable: _Known, model: str, dim: _Known) -> bool:
        """Return whether an open variable of old outputs is the same dimension wherever it occurs."""
        return self._open.setdefault(next(iter(_symbols(variable))), (model, dim)) == (model, dim)

    def _named(self, dim: Dim) -> _Known:
        """Return a dimension; one that is not known is a variable of its own."""
        if dim is not None:
            return dim
        self._unknown += 1
        return symbol(f"\0{self._unknown}")  # a name in a file does not begin with it


def _is_variable(dim: _Known) -> bool:
    """Return whether a dimension is a variable alone, and not an expression."""
    return isinstance(dim, Expr) and len(dim.symbols) == 1 and dim == symbol(next(iter(dim.symbols)))


def _symbols(dim: _Known) -> frozenset[str]:
    return dim.symbols if isinstance(dim, Expr) else frozenset()


def _bind(values: dict[str, _Known], dim: _Known, value: _Known) -> None:
    """Record the value of a variable where it first occurs alone."""
    if _is_variable(dim):
        values.setdefault(next(iter(_symbols(dim))), value)


def _put(dim: _Known, values: dict[str, _Known]) -> _Known | None:
    """Return a dimension with its variables replaced, None where that exceeds what an expression can be."""
    try:
        return dim.substitute(values) if isinstance(dim, Expr) else dim
    except (OverflowError, ZeroDivisionError):
        return None
