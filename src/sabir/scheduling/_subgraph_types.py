"""The types of a subgraph's outputs, inferred without a run.

A loop without iterations needs them: the standard says that a body may declare the types of its outputs, or
not. They follow from what the loop would pass, and from the outer values that the body reads.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import ACCIDENTS, LimitError, Location, SabirError
from sabir.inference import Inference
from sabir.ir import Model, SequenceType, TensorType, Value, clone_graph, drop_constants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Graph, Type
    from sabir.schema import Scope

    Types: TypeAlias = tuple[Type | None, ...]

_MOST_REMEMBERED = 16


class SubgraphTypes:
    """The types of one subgraph's outputs, remembered by the types that they follow from.

    It has a copy of the subgraph, so edits of the model do not reach it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> from sabir.schema import Scope
    >>> types = SubgraphTypes(model.graph, Scope.of(model, STANDARD), [])
    >>> print(types.infer((sabir.ir.tensor_type('float', [3]),), ())[0])
    float[3]
    """

    __slots__ = ("__weakref__", "_graph", "_outside", "_remembered", "_scope")

    def __init__(self, graph: Graph, scope: Scope, outside: Sequence[Value]) -> None:
        """Copy a subgraph. `scope` is that of its nodes, `outside` the outer values that a run captures."""
        copies: dict[Value, Value | None] = {v: Value(v.name, v.type) for v in graph.captures()}
        self._outside = [copies[v] for v in outside]
        self._graph, self._scope = clone_graph(graph, copies), scope
        weakref.finalize(self, drop_constants, self._graph).atexit = False  # they go with the session
        self._remembered: dict[tuple[Types, Types], Types] = {}

    def infer(self, inputs: Types, captured: Types) -> Types:
        """Return the types of the outputs for the types of the inputs and of the captured values.

        Both may have known contents. An output whose type does not follow keeps its declared type.
        """
        declared = tuple(None if v is None else v.type for v in self._graph.outputs)
        outside = {v: kind for v, kind in zip(self._outside, captured, strict=True) if v is not None}
        found = self._by_shape(tuple(map(_contentless, inputs)), outside) or declared
        if all(map(is_complete, found)):
            return found
        # a shape may follow from the contents of the first iteration, as far as they are known
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

    def _inferred(self, inputs: Types, outside: Mapping[Value, Type | None]) -> Types | None:
        engine = Inference(Model(), registry=self._scope.registry)
        for value, kind in outside.items():
            known = kind if _is_informative(kind) else value.type or kind
            if known is not None:
                engine.types[value] = known
        try:
            return engine.apply(self._graph, inputs, self._scope, Location())
        except LimitError:
            raise
        except (SabirError, *ACCIDENTS):
            return None  # nothing runs, so nothing can fail; the declared types remain


def is_complete(kind: Type | None) -> bool:
    """Whether a type determines the element type and every size of a tensor."""
    if not isinstance(kind, TensorType) or not kind.element.number or kind.shape is None:
        return False
    return all(isinstance(d, int) and d >= 0 for d in kind.shape)


def _is_informative(kind: Type | None) -> bool:
    """Whether the type of a value is that of all its items; an empty sequence does not show it."""
    return kind is not None and not (isinstance(kind, SequenceType) and kind.item is None)


def _contentless(kind: Type | None) -> Type | None:
    return kind.with_known(None) if isinstance(kind, TensorType) and kind.known is not None else kind
