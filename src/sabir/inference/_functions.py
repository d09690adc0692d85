"""The types of values inside functions, as far as all calls agree on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.inference._subgraphs import values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Function, Type, Value


class FunctionTypes:
    """The join of each value's types over all calls; a value on which calls disagree has none."""

    def __init__(self) -> None:
        self._types: dict[Value, Type | None] = {}

    def get(self, value: Value) -> Type | None:
        """Return the type that a value has in all calls so far, or None."""
        return self._types.get(value)

    def known(self) -> Iterator[tuple[Value, Type]]:
        """Yield every value that has a type in all calls."""
        yield from ((value, kind) for value, kind in self._types.items() if kind is not None)

    def take(self, function: Function, types: dict[Value, Type]) -> None:
        """Move the types of the values in a function's body out of `types`, after the inference of a call."""
        for value in values_of(function.graph):
            kind = types.pop(value, None)
            if kind is not None:
                self._join(value, kind)

    def _join(self, value: Value, kind: Type) -> None:
        known = self._types.setdefault(value, kind)
        if known is None or known is kind:
            return
        try:
            self._types[value] = known.join(kind)
        except TypeError:
            self._types[value] = None
