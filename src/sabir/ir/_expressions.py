"""Python's operators on values: `x + 1.0`, `-x`, `x @ w`, `x < y`, `x[0, 1:]`.

An operator appends a node to the graph of the value, through the builder of that graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from sabir.base import SchemaError

if TYPE_CHECKING:
    from sabir.ir._graph import Graph
    from sabir.ir._operands import Operand
    from sabir.ir._value import Value

    class Emitter(Protocol):
        """The part of a builder that operators on values need."""

        @property
        def graph(self) -> Graph:
            """The graph that it appends to."""
            ...

        @property
        def innermost(self) -> Emitter:
            """The builder of the innermost subgraph under construction."""
            ...

        def op(self, op: str, /, *inputs: Operand | None) -> Any:
            """Append a node."""
            ...

        def subscript(self, value: Value, key: object) -> Value:
            """Append the nodes of `value[key]`."""
            ...


# By the id of the graph: a builder keeps its graph alive, so an id is unique as long as its entry exists.
# Graphs and values need no field for it, and loading a model costs nothing.
_BUILDERS: WeakValueDictionary[int, Emitter] = WeakValueDictionary()


def register(builder: Emitter) -> None:
    """Let the operators on the values of a graph append nodes through its builder; the latest one serves."""
    _BUILDERS[id(builder.graph)] = builder


def _builder_of(*operands: object) -> Emitter:
    """Return the builder for a node that reads these operands: of the innermost subgraph being built."""
    values: list[Any] = [v for v in operands if isinstance(v, ValueOperators)]
    for value in values:
        graph = value.home
        builder = _BUILDERS.get(id(graph))
        if builder is not None and builder.graph is graph:
            return builder.innermost
    raise SchemaError(
        f"no builder: {values[0]!r} is in no graph that a Builder is building; operators on values need one"
        " that still exists, as `Builder(graph=model.graph, opsets=model.opsets)`"
    )


def _emit(op: str, *operands: object) -> Any:
    builder: Any = _builder_of(*operands)
    return builder.op(op, *operands)


class ValueOperators:
    """The operators of a value; `==` stays identity, since values are keys of dictionaries: use `b.Equal`."""

    __slots__ = ()

    __array_ufunc__ = None  # lets `array + value` reach `__radd__`
    __iter__ = None  # `__getitem__` alone would make a value iterable, without an end
    __contains__ = None

    def __add__(self, other: Operand) -> Value:
        return _emit("Add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return _emit("Add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return _emit("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return _emit("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return _emit("Mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return _emit("Mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return _emit("Div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _emit("Div", other, self)

    def __matmul__(self, other: Operand) -> Value:
        return _emit("MatMul", self, other)

    def __rmatmul__(self, other: Operand) -> Value:
        return _emit("MatMul", other, self)

    def __pow__(self, other: Operand) -> Value:
        return _emit("Pow", self, other)

    def __rpow__(self, other: Operand) -> Value:
        return _emit("Pow", other, self)

    def __neg__(self) -> Value:
        return _emit("Neg", self)

    def __abs__(self) -> Value:
        return _emit("Abs", self)

    def __lt__(self, other: Operand) -> Value:
        return _emit("Less", self, other)

    def __le__(self, other: Operand) -> Value:
        return _emit("LessOrEqual", self, other)

    def __gt__(self, other: Operand) -> Value:
        return _emit("Greater", self, other)

    def __ge__(self, other: Operand) -> Value:
        return _emit("GreaterOrEqual", self, other)

    def __getitem__(self, key: object) -> Value:
        value: Any = self
        return _builder_of(value).subscript(value, key)
