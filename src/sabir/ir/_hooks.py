"""The functions of packages above `ir` that a builder needs, as protocols: `ir` cannot import them.

`sabir` sets an implementation that imports each of them when it is first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping, Sequence
    from types import FunctionType

    from sabir.ir._attributes import Attribute
    from sabir.ir._graph import Graph
    from sabir.ir._model import Model
    from sabir.ir._tensors import Constant
    from sabir.ir._types import Type
    from sabir.ir._value import Value


class OperatorRegistry(Protocol):
    """A `sabir.schema.Registry`."""

    def find_version(self, domain: str, name: str, opset: int | None) -> object:
        """Return the version of an operator that applies in an opset, or None."""
        ...


class Site(Protocol):
    """The place where a node is built."""

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        ...

    def type_of(self, value: Value) -> Type | None:
        """Return the type of a value, as far as it is known."""
        ...

    def op(self, op: str, /, *inputs: Any) -> Any:
        """Append a node and return its output."""
        ...

    def subgraph(self, build: Callable[[Any], Any], *, name: str = "") -> Graph:
        """Return the subgraph that a function builds."""
        ...


class Callee(Protocol):
    """An operator version or a local function, as a builder calls it."""

    @property
    def required_outputs(self) -> int:
        """The number of outputs that every call has, at least 1."""
        ...

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the method that calls it."""
        ...

    @property
    def doc(self) -> str:
        """The docstring of that method."""
        ...

    @property
    def methods(self) -> dict[str, FunctionType]:
        """The functions of that method which builders have made so far, by the domain as it is spelled."""
        ...

    def bind(
        self, site: Site, inputs: Sequence[Any], outputs: int, attributes: Mapping[str, Any]
    ) -> tuple[Sequence[Value | Constant | None], dict[str, Attribute]]:
        """Return the operands and attributes of a node; raises SchemaError for an invalid call.

        What is not a value becomes a constant of the element type that the callee needs.
        """
        ...


class CalleeLookup(Protocol):
    """The operators of a registry."""

    def find(self, domain: str, op: str, opsets: Mapping[str, int]) -> Callee | None:
        """Return the version of an operator that applies; None in a domain or an opset that is not known.

        Raises SchemaError for an operator that its domain does not have in this opset.
        """
        ...

    def require(self, opsets: Mapping[str, int]) -> None:
        """Raise SchemaError for an operator set that the registry does not have."""
        ...

    def names(self, domain: str, opsets: Mapping[str, int]) -> Sequence[str]:
        """Return the names of the operators of a domain in the opset imported, sorted."""
        ...


class TypeSource(Protocol):
    """Inference of the values of a graph while it grows."""

    def type_of(self, value: Value) -> Type | None:
        """Return the inferred type of a value; raises InferenceError for an invalid node before it."""
        ...


class Hooks(Protocol):
    """The packages above `ir`; `registry` is None for the operators of the standard."""

    def callees(self, registry: OperatorRegistry | None) -> CalleeLookup:
        """Return the operators of a registry."""
        ...

    def types(self, model: Model, registry: OperatorRegistry | None) -> TypeSource:
        """Return the inference of a model whose graph grows."""
        ...

    def complete(self, model: Model, registry: OperatorRegistry | None) -> None:
        """Infer the types of the outputs of a finished model."""
        ...
