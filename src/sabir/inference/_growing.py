"""Types of the values of a graph that is being built, inferred as they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError, SchemaError
from sabir.inference._engine import Inference
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Model, Node, Type, Value
    from sabir.schema import Registry


class GrowingTypes:
    """Infers what a value depends on, each node once; writes nothing into the model.

    Nodes may be in graphs that no node contains yet. Edits of a node after that are not seen.

    >>> b = sabir.Builder(21)
    >>> y = b.Flatten(b.input('x', 'float', ['N', 2, 3]))
    >>> print(GrowingTypes(b.model()).type_of(y))
    float[N,6]
    """

    def __init__(self, model: Model, registry: Registry = STANDARD) -> None:
        self._engine = Inference(model, registry=registry)
        self._visited: set[Node] = set()

    def type_of(self, value: Value) -> Type | None:
        """Return the type of a value or None; raises InferenceError for an invalid node before it."""
        pending = [value.node] if value.node is not None else []
        entered: set[Node] = set()
        while pending:
            node = pending[-1]
            before = [] if node in entered else [n for n in self._before(node) if n not in self._visited]
            entered.add(node)
            if before:
                pending += before
                continue
            pending.pop()
            if node not in self._visited:
                self._visit(node)
        return self._engine.types.get(value)

    def _before(self, node: Node) -> Iterator[Node]:
        for value in node.reads():
            if value.node is not None:
                yield value.node

    def _visit(self, node: Node) -> None:
        self._visited.add(node)
        types = self._engine.types
        for value in node.captures():  # the engine itself sees to the inputs of the node
            if value not in types and value.type is not None and value not in node.inputs:
                types[value] = value.type
        declared = [None if v is None else v.type for v in node.outputs]
        try:
            self._engine.visit(node)
        except SchemaError:  # an operator that the registry does not have
            return
        except InferenceError as error:
            raise error.located(repr(node)) from error
        finally:
            for value, type_ in zip(node.outputs, declared, strict=True):
                if value is not None:
                    value.type = type_
