"""Origins: the calls of the program whose lowering created an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.compilation.fusion.views import Copy
from sabir.loops import Expression, Stored
from sabir.loops.walk import postorder
from sabir.scheduling import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.compilation.frontend.lowering import Lowered


class Origins:
    """For each expression of a plan, the index of the call whose lowering created it."""

    def __init__(self, lowered: Lowered) -> None:
        self._calls = lowered.prepared.program.calls
        self._names = {v.slot: v.name for v in lowered.prepared.program.values}
        self._places: dict[Expression, int] = {}
        self._created: dict[int, list[Expression]] = {}
        self._seen: set[Expression] = set()
        for place in lowered.lowered:
            results = [lowered.expressions[slot] for slot in self._calls[place].outputs if slot != ABSENT]
            self._created[place] = self._new(results)
            self._places.update(dict.fromkeys(self._created[place], place))

    def made(self, place: int) -> list[Expression]:
        """Return the expressions that the lowering of a call created, in postorder."""
        return self._created.get(place, [])

    def _new(self, results: Iterable[Expression]) -> list[Expression]:
        found = postorder(results, self._seen)
        return [x for x in found if not isinstance(x, Stored)]

    def labels(self, expressions: Iterable[Expression]) -> tuple[str, ...]:
        """Return the labels of the calls that created some expressions, each once, in program order.

        A copy that the compiler adds has the label of the expression that it fills or reads, or of the value.
        """
        sources = dict.fromkeys(map(_source, expressions))
        places = sorted({self._places[x] for x in sources if x in self._places})
        stored = [x.slot for x in sources if isinstance(x, Stored) and x.slot in self._names]
        copied = [f"a copy of {quote(self._names[slot])}" for slot in stored]
        return tuple(dict.fromkeys(self._calls[place].label for place in places)) or tuple(copied)


def _source(x: Expression) -> Expression:
    while isinstance(x, Copy):
        x = x.operand if x.into is None else x.into
    return x
