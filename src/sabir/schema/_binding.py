"""The binder: joins a node's inputs and attributes to a behaviour's parameters.

Inputs are positional, attributes keyword-only. A behaviour names the attributes it needs, or takes all of
them with `**`; it may also name `call`, for facts of the call that are not in the signature.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from sabir.base import ACCIDENTS, AttributeValueError, SabirError, SchemaError, counted, suggest
from sabir.schema._values import Range, alias_of, bound, fault_of, is_admitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir import ir
    from sabir.schema._ports import Attribute, Input, Output, Port
    from sabir.schema._values import Choice, Values


F = TypeVar("F", bound="Callable[..., Any]")


class Condition(NamedTuple):
    """A size that a call is given, and its operands have for some sizes of the model's inputs only."""

    actual: ir.Expr
    stated: int
    what: str


class Call(NamedTuple):
    """Facts of a call beside its inputs and attributes.

    `conditions` collects what inference finds to hold for some sizes only; None where nobody reads it.
    """

    outputs: tuple[bool, ...] = (True,)  # which outputs the node names
    opset: int = 0
    conditions: list[Condition] | None = None

    def wants(self, index: int) -> bool:
        """Whether the node names its output number `index`."""
        return index < len(self.outputs) and self.outputs[index]

    def suppose(self, actual: ir.Dim, stated: ir.Dim, what: str) -> None:
        """Note that the call is valid only if a symbolic size is the stated number; `what` says of what."""
        if self.conditions is not None and isinstance(stated, int) and not isinstance(actual, int | None):
            self.conditions.append(Condition(actual, stated, what))


Arguments = dict[str, Any]


class Signature:
    """The formal inputs, outputs and attributes of a version; checks calls against them.

    `values` has the admitted values of the attributes that declare them; `enumerated` are those of them that
    are no ranges. `requires` says whether an attribute is required.
    """

    __slots__ = ("attributes", "enumerated", "inputs", "outputs", "owner", "requires", "values")

    def __init__(
        self, owner: str, inputs: Sequence[Input], outputs: Sequence[Output], attributes: Sequence[Attribute]
    ) -> None:
        self.owner, self.inputs, self.outputs = owner, inputs, outputs
        self.attributes = {a.name: a for a in attributes}
        self.requires = any(a.required for a in attributes)
        admitted = _admitted((*inputs, *outputs))
        self.values: dict[str, Values] = {
            a.name: bound(a.values, admitted) for a in attributes if a.values is not None
        }
        self.enumerated = {name: v for name, v in self.values.items() if not isinstance(v, Range)}

    def check_arity(self, inputs: Sequence[Any], outputs: int) -> None:
        """Raise SchemaError for too few or too many inputs or outputs of a node."""
        _check_ports(self.owner, "input", self.inputs, [i is not None for i in inputs])
        _check_ports(self.owner, "output", self.outputs, [True] * outputs)

    def check(self, attributes: Mapping[str, ir.Attribute]) -> None:
        """Raise SchemaError for an unknown, missing or mistyped attribute, or for its value."""
        self.check_attributes(attributes)
        if self.values:
            self.check_values(attributes)

    def check_attributes(self, attributes: Mapping[str, ir.Attribute]) -> None:
        """Raise SchemaError for an attribute that is unknown, missing or of another type."""
        for name, attribute in attributes.items():
            formal = self.attributes.get(name)
            if formal is None:
                raise SchemaError(f"{self.owner} has no attribute {name!r}{self._hint(name)}")
            if formal.type != attribute.type:
                raise SchemaError(
                    f"{self.owner}: attribute {name!r} is {attribute.type}, and must be {formal.type}"
                )
        for name, formal in self.attributes.items() if self.requires else ():
            if formal.required and name not in attributes:
                raise SchemaError(f"{self.owner} requires the attribute {name!r} ({formal.type})")

    def check_values(self, attributes: Mapping[str, ir.Attribute]) -> None:
        """Raise AttributeValueError for an attribute whose value is not admitted."""
        for name, values in self.values.items():
            attribute = attributes.get(name)
            if attribute is None or attribute.value is None:
                continue
            if not is_admitted(values, attribute.value):
                for fault in self.faults({name: attribute}):
                    raise AttributeValueError(*fault)

    def faults(self, attributes: Mapping[str, ir.Attribute]) -> Iterator[tuple[str, str]]:
        """Yield each attribute whose value is not admitted, and a message; a reference has no value yet."""
        for name, values, value in self._valued(attributes, self.values):
            found = fault_of(values, value)
            if found is not None:
                place, fault = found
                item = "" if place is None else f"item {place} of "
                yield name, f"{self.owner}: {item}attribute {name!r} is {fault}"

    def aliases(self, attributes: Mapping[str, ir.Attribute]) -> Iterator[tuple[str, object, Choice]]:
        """Yield each attribute that has an alias: its name, the value, the name in the standard."""
        for name, values, value in self._valued(attributes, self.enumerated):
            found = alias_of(values, value)
            if found is not None:
                yield name, *found

    def _valued(
        self, attributes: Mapping[str, ir.Attribute], among: Mapping[str, Values]
    ) -> Iterator[tuple[str, Values, Any]]:
        for name, values in among.items():
            found = attributes.get(name)
            if found is not None and found.value is not None and found.type == self.attributes[name].type:
                yield name, values, found.value

    def _hint(self, name: str) -> str:
        return suggest(name, self.attributes) or f"; it has {', '.join(sorted(self.attributes)) or 'none'}"


class Binding:
    """A behaviour, ready to be called with the inputs and attributes of a node."""

    __slots__ = ("_everything", "_wanted", "_wants_call", "function", "signature")

    def __init__(self, signature: Signature, function: Callable[..., Any]) -> None:
        self.signature, self.function = signature, function
        parameters = inspect.signature(function).parameters.values()
        self._everything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        self._wants_call = "call" in named
        self._wanted = frozenset(named - {"call"})

    def arguments(
        self,
        attributes: Mapping[str, ir.Attribute],
        body: Callable[[ir.Graph], Any] | None = None,
    ) -> Arguments:
        """Return the keywords for a node's attributes, defaults filled in.

        `body` returns for a subgraph the function that the behaviour calls. Raises SchemaError for an
        attribute that is unknown, missing or of another type, AttributeValueError for a value that is not
        admitted.
        """
        self.signature.check(attributes)
        everything, wanted = self._everything, self._wanted
        return self.fill({n: _value(a, body) for n, a in attributes.items() if everything or n in wanted})

    def fill(self, values: Mapping[str, Any]) -> Arguments:
        """Return the keywords for the values of a node's attributes, checked already, with defaults."""
        attributes = self.signature.attributes
        wanted = attributes if self._everything else self._wanted
        return {n: values.get(n, formal.default) for n, formal in attributes.items() if n in wanted}

    def prepare(self, arguments: Arguments, call: Call) -> Callable[..., Any]:
        """Return the behaviour as a function of its inputs alone, which a node calls in each run.

        What follows from attributes alone is made now, where the behaviour says how (`bound_once`). Where
        that fails, the call itself reports it.
        """
        keywords = {**arguments, "call": call} if self._wants_call else arguments
        make = getattr(self.function, "make", None)
        if make is not None:
            try:
                return make(**keywords)
            except (SabirError, *ACCIDENTS):
                pass
        return functools.partial(self.function, **keywords) if keywords else self.function

    def __call__(self, inputs: Sequence[Any], arguments: Arguments, call: Call) -> Any:
        """Apply the behaviour to one call."""
        if self._wants_call:
            return self.function(*inputs, **arguments, call=call)
        return self.function(*inputs, **arguments)


def bound_once(make: Callable[..., Callable[..., Any]]) -> Callable[[F], F]:
    """Return the decorator of an `evaluate` behaviour that makes tables of its attributes.

    `make` takes the attributes, and returns the function of the inputs.

    >>> @bound_once(lambda *, by: lambda x: x * by)
    ... def evaluate(x, /, *, by):
    ...     return x * by
    >>> evaluate.make(by=2)(3)
    6
    """

    def marked(behaviour: F) -> F:
        cast("Any", behaviour).make = make
        return behaviour

    return marked


def moving(behaviour: F) -> F:
    """Mark a function that computes no floats, but moves elements: it causes no floating-point warnings.

    >>> is_moving(moving(lambda x: x)), is_moving(lambda x: x + x)
    (True, False)
    """
    cast("Any", behaviour).is_moving = True
    return behaviour


def is_moving(behaviour: Callable[..., Any]) -> bool:
    """Return whether a function, or the one that it calls with some arguments, is marked by `moving`.

    >>> is_moving(moving(lambda x: x))
    True
    """
    found = behaviour.func if isinstance(behaviour, functools.partial) else behaviour
    return getattr(found, "is_moving", False)


def as_results(result: object) -> tuple[Any, ...]:
    """Return the result of a behaviour as the tuple of its outputs."""
    return cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)


def _admitted(ports: Sequence[Port]) -> dict[str, frozenset[str]]:
    """Return the type strings that each constraint admits."""
    return {p.type.name: p.type.allowed for p in ports if not isinstance(p.type, str)}


def _value(attribute: ir.Attribute, body: Callable[[ir.Graph], Any] | None) -> Any:
    if body is None or not attribute.graphs:
        return attribute.value
    if attribute.type == "graph":
        return body(attribute.value)
    return tuple(body(g) for g in attribute.graphs)


def _check_ports(owner: str, kind: str, formal: Sequence[Port], present: list[bool]) -> None:
    variadic = bool(formal) and formal[-1].variadic
    if len(present) > len(formal) and not variadic:
        raise SchemaError(f"{owner} takes {counted(len(formal), kind)}, but the node has {len(present)}")
    for place, port in enumerate(formal):
        if port.variadic:
            if len(present) - place < port.minimum:
                needed = f"{owner} requires at least {counted(place + port.minimum, kind)}"
                hint = "; an empty name omits an optional one" if place else ""
                raise SchemaError(f"{needed}, but the node has {len(present)}{hint}")
            if not all(present[place:]):
                absent = present.index(False, place)
                raise SchemaError(
                    f"{owner} requires the {kind} number {absent}: a variadic {kind} is not optional"
                )
        elif not port.optional and not (place < len(present) and present[place]):
            raise SchemaError(f"{owner} requires the {kind} {port.name!r} (number {place})")
