"""Model-local functions from Python functions, and calls of them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sabir.base import SchemaError, counted, suggest
from sabir.ir._attributes import Attribute, AttributeType
from sabir.ir._coercion import coerced, free_attribute
from sabir.ir._constants import natural_tensor
from sabir.ir._imports import canonical_domain
from sabir.ir._tensors import Constant, SparseTensor, Tensor
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FunctionType

    from sabir.ir._hooks import Site
    from sabir.ir._model import Function

Bound: TypeAlias = "tuple[list[Value | Constant | None], dict[str, Attribute]]"
_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
_ANNOTATED: dict[Any, AttributeType] = {
    int: "int", float: "float", str: "string", list[int]: "ints", list[float]: "floats", list[str]: "strings",
}  # fmt: skip


def bind_freely(
    site: Site, inputs: Sequence[Any], attributes: Mapping[str, Any], owner: str = "this operator"
) -> Bound:
    """Return the operands and attributes of a call whose signature is not known."""
    operands = [
        operand(value) if is_operand(value) else natural_tensor(value, f"{owner}: input {place}")
        for place, value in enumerate(inputs)
    ]
    facts = {key: free_attribute(key, value, site) for key, value in attributes.items() if value is not None}
    return operands, facts


def is_operand(value: object) -> bool:
    """Whether an input of a call needs no conversion."""
    return value is None or isinstance(value, (Value, Tensor, SparseTensor))


def operand(value: Any) -> Value | Constant | None:
    """Return an input of a call that `is_operand`."""
    return value


class FunctionCallee:
    """A model-local function, as a builder calls it."""

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def required_outputs(self) -> int:
        """The number of outputs of the function."""
        return len(self.function.graph.outputs)

    @property
    def methods(self) -> dict[str, FunctionType]:
        """No functions: a callee is made for each look at a method, as functions can be defined again."""
        return {}

    @property
    def doc(self) -> str:
        """The doc string of the function."""
        return self.function.doc

    @property
    def signature(self) -> inspect.Signature:
        """The inputs, and the attributes with their defaults."""
        inputs = [_named(v.name, inspect.Parameter.POSITIONAL_ONLY) for v in self.function.graph.inputs]
        attributes = [
            _named(name, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty if a is None else a.value)
            for name, a in self.function.attributes.items()
        ]
        return inspect.Signature([*inputs, *attributes])

    def bind(self, site: Site, inputs: Sequence[Any], outputs: int, attributes: Mapping[str, Any]) -> Bound:
        """Return the operands and attributes of a call; raises SchemaError for an invalid one."""
        function = self.function
        for kind, actual, formal in (
            ("input", len(inputs), len(function.graph.inputs)),
            ("output", outputs, len(function.graph.outputs)),
        ):
            if actual > formal:
                raise SchemaError(f"{function!r} has {counted(formal, kind)}, and the call has {actual}")
        for name in attributes:
            if name not in function.attributes:
                known = suggest(name, function.attributes)
                raise SchemaError(f"{function!r} has no attribute {name!r}{known}")
        operands, facts = bind_freely(site, inputs, {}, repr(function))
        for name, default in function.attributes.items():
            value = attributes.get(name)
            if value is not None and default is not None:
                facts[name] = coerced(repr(function), name, default.type, value, site)
            elif value is not None:
                facts[name] = free_attribute(name, value, site)
            elif default is None:
                raise SchemaError(f"{function!r} requires the attribute {name!r}")
        return operands, facts


class _Innermost(Protocol):
    @property
    def innermost(self) -> Any: ...


class LocalFunction:
    """A model-local function of a builder: a call appends a node that calls it.

    The node is appended to the innermost graph that the builder is building. `function` is the definition.
    """

    def __init__(self, builder: _Innermost, function: Function) -> None:
        self._builder, self.function = builder, function
        self.__name__, self.__doc__ = function.name, function.doc
        self.__signature__ = FunctionCallee(function).signature

    def __call__(self, *inputs: Any, outputs: int | None = None, name: str = "", **attributes: Any) -> Any:
        """Append a call; returns its output, or a tuple if the function has several."""
        function = self.function
        return self._builder.innermost.op(
            function.name, *inputs, outputs=len(function.graph.outputs) if outputs is None else outputs,
            domain=function.domain, overload=function.overload, name=name, **attributes,
        )  # fmt: skip


def parameters_of(
    build: Callable[..., Any],
) -> tuple[list[str], dict[str, Attribute | None], dict[str, Attribute]]:
    """Return the inputs and the attributes that a Python function declares, and references to the latter.

    After the builder its positional parameters are the inputs, its keyword-only ones the attributes, with
    their defaults; one without a default needs an annotation: int, float, str or a list of them. Raises
    SchemaError for other parameters.
    """
    inputs: list[str] = []
    attributes: dict[str, Attribute | None] = {}
    references: dict[str, Attribute] = {}
    parameters = list(inspect.signature(build, eval_str=True).parameters.values())
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise SchemaError("a function takes the builder of its body first, then its inputs")
    for parameter in parameters[1:]:
        if parameter.kind in _POSITIONAL:
            inputs.append(parameter.name)
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            type_, default = _formal(parameter)
            attributes[parameter.name] = default
            references[parameter.name] = Attribute(parameter.name, type_, None, ref=parameter.name)
        else:
            raise SchemaError(f"a function has a fixed number of inputs; {str(parameter)!r} is none of them")
    return inputs, attributes, references


def domains_of(function: Function, opsets: Mapping[str, int]) -> dict[str, int]:
    """Return the opset imports that the nodes of a function need."""
    used = {canonical_domain(node.domain): None for node in function.graph.all_nodes()}
    return {domain: opsets[domain] for domain in used if domain in opsets}


def _formal(parameter: inspect.Parameter) -> tuple[AttributeType, Attribute | None]:
    if parameter.default is not inspect.Parameter.empty:
        default = Attribute.of(parameter.name, parameter.default)
        return default.type, default
    type_ = _ANNOTATED.get(parameter.annotation)
    if type_ is None:
        raise SchemaError(
            f"the attribute {parameter.name!r} has neither a default nor a type; annotate it as int, float,"
            " str or a list of them"
        )
    return type_, None


def _named(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name if name.isidentifier() else "x", kind, default=default)
