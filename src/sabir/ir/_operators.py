"""Operators as methods: `b.Softmax(x, axis=1)`, `b.ml.Scaler(x)`, `b.domain("org.acme").SoftClip(x)`.

The stub beside this module declares each method for editors and type checkers; `tools/write_stubs.py`
writes it.
"""

from __future__ import annotations

import inspect
from types import MethodType
from typing import TYPE_CHECKING, Any, Protocol, cast

from sabir.base import SchemaError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from sabir.ir._hooks import Callee

    class _Builder(Protocol):
        """The part of a builder that the methods need."""

        def op(self, op: str, /, *inputs: Any, **options: Any) -> Any: ...
        def callee(self, domain: str, op: str) -> Callee | None: ...
        def operator_names(self, domain: str) -> list[str]: ...


class DomainOperators:
    """The operators of one domain as methods."""

    __slots__ = ("_builder", "_domain")

    def __init__(self, builder: _Builder, domain: str) -> None:
        self._builder, self._domain = builder, domain

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return operator_method(self._builder, self._domain, name)

    def __dir__(self) -> list[str]:
        return self._builder.operator_names(self._domain)


class OperatorMethods:
    """The operators as methods; those of the default domain directly.

    Inputs are positional, None leaves an optional one out; what is no value becomes a constant. Attributes
    are keywords. A method returns the node's output, or a tuple if it has several; `outputs` is their number,
    `name` the name of the node.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        builder: Any = self
        return operator_method(builder, "", name)

    def __dir__(self) -> list[str]:
        builder: Any = self
        return [*super().__dir__(), *builder.operator_names("")]

    def domain(self, name: str, /) -> DomainOperators:
        """Return the operators of any domain as methods."""
        builder: Any = self
        return DomainOperators(builder, name)

    @property
    def ml(self) -> DomainOperators:
        """The operators of `ai.onnx.ml`."""
        return self.domain("ai.onnx.ml")

    @property
    def preview(self) -> DomainOperators:
        """The operators of `ai.onnx.preview`."""
        return self.domain("ai.onnx.preview")

    @property
    def training(self) -> DomainOperators:
        """The operators of `ai.onnx.preview.training`."""
        return self.domain("ai.onnx.preview.training")


def operator_method(builder: _Builder, domain: str, op: str) -> Callable[..., Any]:
    """Return the method that appends a node; raises AttributeError for an operator that there is not."""
    if op.startswith("_"):
        raise AttributeError(op)
    try:
        callee = builder.callee(domain, op)
    except SchemaError as error:
        raise AttributeError(_unknown(builder, domain, op, error)) from None
    if callee is None:
        return MethodType(_function(domain, op, 1), builder)
    function = callee.methods.get(domain)
    if function is None:
        function = callee.methods[domain] = _function(domain, op, callee.required_outputs)
        function.__doc__ = callee.doc
        function.__signature__ = _bound_later(callee.signature)  # pyright: ignore[reportFunctionMemberAccess] - `inspect` reads it
    return MethodType(function, builder)


def _function(domain: str, op: str, least: int) -> FunctionType:
    """Return the function of a method; it keeps no builder alive, so that all builders can share it."""

    def emit(
        builder: _Builder, /, *inputs: Any, outputs: int = least, domain: str = domain, **options: Any
    ) -> Any:
        return builder.op(op, *inputs, outputs=outputs, domain=domain, **options)

    emit.__name__ = emit.__qualname__ = op
    return cast("FunctionType", emit)


def _bound_later(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with the builder before all others: that of a function, not of its method."""
    builder = inspect.Parameter("self_", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[builder, *signature.parameters.values()])


def _unknown(builder: _Builder, domain: str, op: str, error: SchemaError) -> str:
    """Return the message about a name that is no operator: a lower-case one may mean a method."""
    methods = [] if domain or not op[0].islower() else [n for n in dir(type(builder)) if n[0] != "_"]
    near = suggest(op, methods)
    return f"a builder has no {op!r}{near}" if near else str(error)
