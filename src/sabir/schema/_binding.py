"""The binder: joins a node's inputs and attributes to a behaviour's parameters.

Inputs are positional, attributes keyword-only. A behaviour names the attributes it needs, or takes all of
them with `**`; it may also name `call`, to see what no signature tells.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import AttributeValueError, SchemaError, suggest
from sabir.schema._values import Within, alias_of, bound, fault_of, is_admitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir import ir
    from sabir.schema._ports import Attribute, Input, Output, Port
    from sabir.schema._values import Choice, Values


class Call(NamedTuple):
    """What a behaviour may want to know of a call beside its inputs and attributes."""

    outputs: tuple[bool, ...] = (True,)  # which outputs the node names
    opset: int = 0

    def wants(self, index: int) -> bool:
        """Whether the node names its output number `index`."""
        return index < len(self.outputs) and self.outputs[index]


Arguments = dict[str, Any]


class Signature:
    """What a version takes and gives; holds calls against it."""

    __slots__ = ("attributes", "inputs", "outputs", "owner", "requires", "spelt", "values")

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
        self.spelt = {name: v for name, v in self.values.items() if not isinstance(v, Within)}

    def check_arity(self, inputs: Sequence[Any], outputs: int) -> None:
        """Raise SchemaError where a node gives too few or too many inputs or outputs."""
        _check_ports(self.owner, "input", self.inputs, [i is not None for i in inputs])
        _check_ports(self.owner, "output", self.outputs, [True] * outputs)

    def check(self, attributes: Mapping[str, ir.Attribute]) -> None:
        """Raise SchemaError for an unknown, missing or mistyped attribute, or for its value."""
        self.check_attributes(attributes)
        if self.values:
            self.check_values(attributes)

    def check_attributes(self, attributes: Mapping[str, ir.Attribute]) -> None:
        """Raise SchemaError for an attribute that is unknown, missing or of another type."""
        for name, given in attributes.items():
            formal = self.attributes.get(name)
            if formal is None:
                raise SchemaError(f"{self.owner} has no attribute {name!r}{self._hint(name)}")
            if formal.type != given.type:
                raise SchemaError(
                    f"{self.owner}: attribute {name!r} is {given.type}, and must be {formal.type}"
                )
        for name, formal in self.attributes.items():
            if formal.required and name not in attributes:
                raise SchemaError(f"{self.owner} requires the attribute {name!r} ({formal.type})")

    def check_values(self, attributes: Mapping[str, ir.Attribute]) -> None:
        """Raise AttributeValueError for an attribute whose value is not among those it may have."""
        for name, values in self.values.items():
            given = attributes.get(name)
            if given is not None and given.value is not None and not is_admitted(values, given.value):
                for fault in self.faults({name: given}):
                    raise AttributeValueError(*fault)

    def faults(self, attributes: Mapping[str, ir.Attribute]) -> Iterator[tuple[str, str]]:
        """Yield each attribute whose value is not admitted, and a message; references have no value yet."""
        for name, values, value in self._valued(attributes, self.values):
            found = fault_of(values, value)
            if found is not None:
                place, told = found
                item = "" if place is None else f"item {place} of "
                yield name, f"{self.owner}: {item}attribute {name!r} is {told}"

    def aliases(self, attributes: Mapping[str, ir.Attribute]) -> Iterator[tuple[str, object, Choice]]:
        """Yield each attribute with a value that the standard does not name, and what it stands for."""
        for name, values, value in self._valued(attributes, self.spelt):
            found = alias_of(values, value)
            if found is not None:
                yield name, *found

    def _valued(
        self, attributes: Mapping[str, ir.Attribute], among: Mapping[str, Values]
    ) -> Iterator[tuple[str, Values, Any]]:
        for name, values in among.items():
            given = attributes.get(name)
            if given is not None and given.value is not None and given.type == self.attributes[name].type:
                yield name, values, given.value

    def _hint(self, name: str) -> str:
        return suggest(name, self.attributes) or f"; it has {', '.join(sorted(self.attributes)) or 'none'}"


class Binding:
    """A behaviour, ready to be called with what a node gives."""

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

        `body` turns a subgraph into what the behaviour calls. Raises SchemaError for an attribute that is
        unknown, missing or of another type, AttributeValueError for a value that the version does not admit.
        """
        self.signature.check(attributes)
        wanted = attributes if self._everything else self._wanted.intersection(attributes)
        return self.fill({name: _value(attributes[name], body) for name in wanted})

    def fill(self, values: Mapping[str, Any]) -> Arguments:
        """Return the keywords for the values of a node's attributes, checked already, with defaults."""
        attributes = self.signature.attributes
        wanted = attributes if self._everything else self._wanted
        return {n: values.get(n, formal.default) for n, formal in attributes.items() if n in wanted}

    def prepare(self, arguments: Arguments, call: Call) -> Callable[..., Any]:
        """Return the behaviour as a function of its inputs alone."""
        keywords = {**arguments, "call": call} if self._wants_call else arguments
        return functools.partial(self.function, **keywords) if keywords else self.function

    def __call__(self, inputs: Sequence[Any], arguments: Arguments, call: Call) -> Any:
        """Apply the behaviour to one call."""
        if self._wants_call:
            return self.function(*inputs, **arguments, call=call)
        return self.function(*inputs, **arguments)


def as_results(result: object) -> tuple[Any, ...]:
    """Return what a behaviour gave as the tuple of its outputs."""
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


def _check_ports(owner: str, kind: str, formal: Sequence[Port], given: list[bool]) -> None:
    variadic = bool(formal) and formal[-1].variadic
    if len(given) > len(formal) and not variadic:
        raise SchemaError(f"{owner} takes {len(formal)} {kind}s, and the node has {len(given)}")
    for place, port in enumerate(formal):
        if port.variadic:
            if len(given) - place < port.minimum:
                needed = f"{owner} needs {place + port.minimum} or more {kind}s"
                hint = "; an empty name leaves an optional one out" if place else ""
                raise SchemaError(f"{needed}, and the node has {len(given)}{hint}")
            if not all(given[place:]):
                absent = given.index(False, place)
                raise SchemaError(
                    f"{owner} needs its {kind} number {absent}: one of any number is not optional"
                )
        elif not port.optional and not (place < len(given) and given[place]):
            raise SchemaError(f"{owner} needs its {kind} {port.name!r} (number {place})")
