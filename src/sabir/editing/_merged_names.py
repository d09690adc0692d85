"""The names of two models that become those of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sabir.editing._naming import named_graphs, named_values, put_names
from sabir.ir import FreshNames, Node, Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sabir.ir import Model

Prefixes = tuple[str | None, str | None]
_Named = TypeVar("_Named", Value, Node)


class Renaming(NamedTuple):
    """What was renamed in one of the models (0 or 1): a `kind` of object, its old and its new name."""

    model: int
    kind: str
    old: str
    new: str


class MergedNames:
    """The names of two models in one: which values and nodes are called what."""

    def __init__(self, first: Model, second: Model, prefix: Prefixes, connected: Collection[Value]) -> None:
        """Collect the values and nodes before they are joined, without the inputs that are connected."""
        self._values = [
            [v for v in dict.fromkeys(named_values(model)) if v.name and v not in connected]
            for model in (first, second)
        ]
        self._nodes = [[n for g in named_graphs(model) for n in g if n.name] for model in (first, second)]
        self._prefix = [own or "" for own in prefix]

    def put(self, merged: Model) -> Iterator[Renaming]:
        """Make the names unique in the merged model, and yield those that changed."""
        ports = {*merged.graph.inputs, *(v for v in merged.graph.outputs if v is not None)}
        values = self._unique(self._values, ports)
        nodes = self._unique(self._nodes, ())
        for kind, found in (("value", values), ("node", nodes)):
            for index, one, new in found:
                yield Renaming(index, kind, one.name, new)
        put_names(merged, {value: new for _, value, new in values})
        for _, node, new in nodes:
            node.name = new

    def _unique(
        self, objects: list[list[_Named]], ports: Collection[object]
    ) -> list[tuple[int, _Named, str]]:
        """Return the objects whose names change, with the index of the model and the new name.

        Names that one model has twice, as in two branches, remain; those that both have do not.
        """
        wanted = [[f"{p}{one.name}" for one in own] for p, own in zip(self._prefix, objects, strict=True)]
        fresh = FreshNames(name for own in wanted for name in own)
        reserved = [
            {name for name, one in zip(names, own, strict=True) if one in ports}
            for names, own in zip(wanted, objects, strict=True)
        ]
        reserved[1] -= reserved[0]  # of two ports the first keeps the name
        taken: set[str] = set()  # by the first model
        found: list[tuple[int, _Named, str]] = []
        for index, (names, own) in enumerate(zip(wanted, objects, strict=True)):
            used: set[str] = set()
            for name, one in zip(names, own, strict=True):
                keeps = name in reserved[index] if one in ports else name not in reserved[1 - index] | taken
                new = name if keeps else fresh.numbered(name)
                used.add(new)
                if new != one.name:
                    found.append((index, one, new))
            taken = used
        return found
