"""The types that a subgraph would give, found without running it.

A loop without iterations needs them. A body may declare the types of its outputs or not, so they are
inferred, from what the loop would pass in and what the body reads from outside. That happens only when a loop
does not run.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.base import ACCIDENTS, LimitError, Location, SabirError
from sabir.inference import Inference
from sabir.ir import Model, SequenceType, TensorType, Value, clone_graph, drop_constants
from sabir.opsets.families.iterations import type_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Graph, Type
    from sabir.schema import Scope

    Types: TypeAlias = tuple[Type | None, ...]

_MOST_REMEMBERED = 16


class Typing:
    """The types of one subgraph's outputs, remembered by the types that they followed from.

    It has a copy of the subgraph, which edits of the model do not reach.
    """

    __slots__ = ("__weakref__", "_graph", "_outside", "_remembered", "_scope")

    def __init__(self, graph: Graph, scope: Scope, outside: Sequence[Value]) -> None:
        """Take a subgraph, the scope of its nodes, and the outer values that it reads in a run."""
        copies: dict[Value, Value | None] = {v: Value(v.name, v.type) for v in graph.captures()}
        self._outside = [copies[v] for v in outside]
        self._graph, self._scope = clone_graph(graph, copies), scope
        weakref.finalize(self, drop_constants, self._graph).atexit = False  # they go with the session
        self._remembered: dict[tuple[Types, Types], Types] = {}

    def of(self, inputs: Sequence[Type | None], captured: Sequence[Any]) -> Types:
        """Return the types of the outputs for these inputs' types and values from outside."""
        declared = tuple(None if v is None else v.type for v in self._graph.outputs)
        pairs = zip(self._outside, captured, strict=True)
        outside = {value: type_of(array) for value, array in pairs if value is not None}
        found = self._by_shape(tuple(map(_contentless, inputs)), outside) or declared
        if all(map(is_whole, found)):
            return found
        # a shape may follow from contents: from those of the first iteration, as far as there is one
        return self._inferred(inputs, outside) or found

    def _by_shape(self, inputs: Types, outside: Mapping[Value, Type | None]) -> Types | None:
        shapes = {value: _contentless(kind) for value, kind in outside.items()}
        key = inputs, tuple(shapes.values())
        found = self._remembered.get(key)
        if found is None:
            found = self._inferred(inputs, shapes)
            if found is not None:
                if len(self._remembered) >= _MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = found
        return found

    def _inferred(self, inputs: Sequence[Type | None], outside: Mapping[Value, Type | None]) -> Types | None:
        engine = Inference(Model(), registry=self._scope.registry)
        for value, kind in outside.items():
            known = kind if _tells(kind) else value.type or kind
            if known is not None:
                engine.types[value] = known
        try:
            return engine.apply(self._graph, inputs, self._scope, Location())
        except LimitError:
            raise
        except (SabirError, *ACCIDENTS):
            return None  # nothing is run, so nothing is wrong; what is declared remains


def is_whole(kind: Type | None) -> bool:
    """Whether a type says all that a tensor needs to be made."""
    if not isinstance(kind, TensorType) or not kind.element.number or kind.shape is None:
        return False
    return all(isinstance(d, int) and d >= 0 for d in kind.shape)


def _tells(kind: Type | None) -> bool:
    """Whether the type of a value shows all that it can hold; that of an empty sequence does not."""
    return kind is not None and not (isinstance(kind, SequenceType) and kind.item is None)


def _contentless(kind: Type | None) -> Type | None:
    return kind.with_known(None) if isinstance(kind, TensorType) and kind.known is not None else kind
