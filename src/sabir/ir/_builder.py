"""Grow a graph one call at a time: `y = b.Softmax(x, axis=1)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sabir._version import __version__
from sabir.ir._attributes import Attribute
from sabir.ir._features import least_ir
from sabir.ir._fresh import FreshNames
from sabir.ir._graph import Graph
from sabir.ir._imports import bound_opsets
from sabir.ir._model import Model
from sabir.ir._node import Node
from sabir.ir._types import Type, tensor_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir._dims import Dim
    from sabir.ir._tensors import Constant
    from sabir.ir._types import ElementKey
    from sabir.ir._value import Value


class Builder:
    """Appends nodes to a graph; any operator is a method.

    Inputs are positional (`None` leaves an optional one out), attributes are keywords, and the call
    returns the node's output, or a tuple where `outputs` asks for several; `domain` names another domain.

    `complete`, which `sabir` sets, gives the outputs of a finished model the types that follow.
    """

    complete: ClassVar[Callable[[Model], object] | None] = None

    def __init__(
        self,
        opset: int = 21,
        *,
        name: str = "main",
        graph: Graph | None = None,
        opsets: dict[str, int] | None = None,
        after: Callable[[Node], None] | None = None,
        names: FreshNames | None = None,
    ) -> None:
        """Start a graph at `opset`, or continue `graph`; `after` is called on each new node.

        `names` names new values, by default unlike all others of the graph.

        `opsets` are more imports; a version of the default domain in it, under either name, replaces `opset`.
        """
        self.graph = Graph(name) if graph is None else graph
        self.opsets = bound_opsets(opsets or {}, opset)
        self._after = after
        if names is None:
            names = FreshNames(v.name for inner in self.graph.scopes() for v in inner.defined())
        self._fresh = names.fresh

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        return self.opsets[""]

    def input(
        self, name: str, kind: ElementKey | Type, shape: Sequence[int | str | Dim] | None = None
    ) -> Value:
        """Add a graph input: `b.input("x", "float", ["N", 3])`; `kind` may also be a type of its own."""
        return self.graph.add_input(self._fresh(name), _type(kind, shape))

    def initializer(self, name: str, data: Constant | object) -> Value:
        """Add a constant from an array, a tensor, or anything numpy takes as an array."""
        return self.graph.add_initializer(self._fresh(name), data)

    def output(
        self,
        value: Value,
        name: str = "",
        kind: ElementKey | Type | None = None,
        shape: Sequence[int | str | Dim] | None = None,
    ) -> Value:
        """Make a value a graph output, renamed and typed when asked; returns it."""
        if name and name != value.name:
            value.name = self._fresh(name)
        if kind is not None:
            value.type = _type(kind, shape)
        self.graph.outputs.append(value)
        return value

    def op(
        self,
        op: str,
        *inputs: Value | None,
        outputs: int = 1,
        domain: str = "",
        overload: str = "",
        name: str = "",
        **attributes: object,
    ) -> Any:
        """Append a node; returns its output, or a tuple of them when `outputs` is not 1."""
        facts = {key: Attribute.of(key, value) for key, value in attributes.items() if value is not None}
        node = Node(op, inputs, outputs, facts, domain=domain, overload=overload, name=name)
        for value in node.outputs:
            if value is not None:
                value.name = self._fresh(f"{op.lower()}_out")
        self.graph.append(node)
        if self._after is not None:
            self._after(node)
        return node.output if outputs == 1 else node.outputs

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if op.startswith("_"):
            raise AttributeError(op)

        def emit(*inputs: Value | None, **options: Any) -> Any:
            return self.op(op, *inputs, **options)

        return emit

    def model(self, *, ir_version: int | None = None, **fields: Any) -> Model:
        """Return the model of this graph; its IR version is the oldest that has all that it uses."""
        fields.setdefault("producer_name", "sabir")
        fields.setdefault("producer_version", __version__)
        model = Model(self.graph, dict(self.opsets), **fields)
        model.ir_version = ir_version or least_ir(model)
        if Builder.complete is not None:
            Builder.complete(model)
            model.ir_version = ir_version or least_ir(model)  # the types of the outputs may need a later one
        return model


def _type(kind: ElementKey | Type, shape: Sequence[int | str | Dim] | None) -> Type:
    return kind if isinstance(kind, Type) else tensor_type(kind, shape)
