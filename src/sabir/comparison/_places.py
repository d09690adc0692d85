"""The locations of the objects of one model, found when the first change needs one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sabir.base import Location
from sabir.ir import Graph, Node, Value, places

if TYPE_CHECKING:
    from sabir.ir import Model, Place


class Places:
    """Finds the locations of the graphs, nodes and values of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _places(self) -> dict[Graph | Node | Value, Place]:
        return {place.object: place for place in places(self._model, Graph, Node, Value)}

    def of(self, item: Graph | Node | Value) -> Location:
        """Return the location of an object; that of the model for a value that nothing defines."""
        place = self._places.get(item)
        return Location() if place is None else place.inside if isinstance(item, Graph) else place.location
