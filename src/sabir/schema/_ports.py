"""Inputs, outputs, attributes and type constraints of an operator version."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sabir.base import SchemaError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import AttributeType
    from sabir.schema._values import Values

Status = Literal["stable", "experimental"]


@dataclass(frozen=True, slots=True, init=False)
class Constraint:
    """A named set of types that several ports share; in one call they all have the same type.

    >>> sorted(Constraint('T', FLOATS).allowed)
    ['tensor(double)', 'tensor(float)', 'tensor(float16)']
    """

    name: str
    allowed: frozenset[str]

    def __init__(self, name: str, *allowed: Iterable[str]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "allowed", frozenset[str]().union(*allowed))


@dataclass(frozen=True, slots=True)
class Port:
    """One formal input or output.

    `type` is a constraint, or the only type string that it admits. A variadic port is the last one and takes
    `minimum` or more values, of one type unless `heterogeneous`. `differentiable` says whether gradients pass
    according to the standard, None where it does not say. `tolerated` are types that files have there
    although the standard does not admit them: they run, and the room's check warns. Through an `items` port
    a tensor becomes an item of the sequence that the operator computes, or a sequence contributes its items.
    A `lists_axes` port takes axes of the first operand; runtimes accept a scalar for one axis, and an axis
    that is listed twice. Of the operand of a `presence` port the operator tests only whether it has a value.
    The operand of a `decides` port decides which subgraph runs; each operand of a `to_subgraph` port
    corresponds to one input of the subgraph.
    """

    name: str
    type: Constraint | str
    doc: str = ""
    optional: bool = False
    variadic: bool = False
    minimum: int = 1
    heterogeneous: bool = False
    differentiable: bool | None = None
    tolerated: frozenset[str] = frozenset()
    items: bool = False
    presence: bool = False
    decides: bool = False
    to_subgraph: bool = False
    lists_axes: bool = False

    @property
    def allowed(self) -> frozenset[str]:
        """The type strings this port admits."""
        return frozenset({self.type}) if isinstance(self.type, str) else self.type.allowed


class Input(Port):
    """One formal input.

    >>> Input('k', 'tensor(int64)', 'The diagonal.', optional=True).optional
    True
    """

    __slots__ = ()


class Output(Port):
    """One formal output.

    >>> Output('y', Constraint('T', FLOATS), 'As `x`.').name
    'y'
    """

    __slots__ = ()


AnyPort = TypeVar("AnyPort", bound=Port)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One formal attribute: required, optional, or with a default.

    `values` declares the admitted values, where not all of the type have a meaning. A `legacy` attribute was
    a hint for an optimisation and never had a meaning; behaviours do not take it. One that `names_values` has
    names of values of the graph around the node, which must follow when a value is renamed. A list whose
    items are all `implied` means the same as none. One that `lists_axes` is as such a port.

    >>> Attribute('axis', 'int', 'The axis.', default=-1).default
    -1
    """

    name: str
    type: AttributeType
    doc: str = ""
    default: Any = None
    required: bool = False
    legacy: bool = False
    values: Values | None = None
    names_values: bool = False
    implied: int | None = None
    lists_axes: bool = False

    def __post_init__(self) -> None:
        """Round a default as a file does: attributes are 32-bit floats, and both must compute the same."""
        if self.default is not None and self.type in {"float", "floats"}:
            number = self.default
            rounded = _rounded(number) if self.type == "float" else tuple(map(_rounded, number))
            object.__setattr__(self, "default", rounded)


def port_at(ports: Sequence[AnyPort], place: int) -> AnyPort:
    """Return the port of a call's value number `place`; the variadic port has all from its place on.

    >>> from sabir.opsets import STANDARD
    >>> concat = STANDARD.find_version('', 'Concat', 13)
    >>> port_at(concat.inputs, 5).name
    'inputs'
    """
    return ports[min(place, len(ports) - 1)]


def supplied_inputs(ports: Sequence[Port], operands: int) -> int:
    """Return how many inputs of its subgraph a call with this number of operands supplies: the first ones.

    An optional operand that the call leaves out has an input of the subgraph all the same.

    >>> from sabir.opsets import STANDARD
    >>> loop = STANDARD.find_version('', 'Loop', 13)
    >>> supplied_inputs(loop.inputs, 1), supplied_inputs(loop.inputs, 3)
    (2, 3)
    """
    if not ports:
        return 0
    places = range(max(operands, sum(not port.variadic for port in ports)))
    return sum(port_at(ports, place).to_subgraph for place in places)


def check_names(owner: str, kind: str, parameters: Iterable[Port | Attribute]) -> None:
    """Raise SchemaError where two parameters of one kind have the same name."""
    seen: set[str] = set()
    for parameter in parameters:
        if parameter.name in seen:
            raise SchemaError(f"{owner} declares two {kind}s named {quote(parameter.name)}; rename one")
        seen.add(parameter.name)


def check_variadic(owner: str, kind: str, ports: Sequence[Port]) -> None:
    """Raise SchemaError for a variadic port before the last: no call could show where its values end."""
    for port in ports[:-1]:
        if port.variadic:
            raise SchemaError(
                f"{owner} declares the variadic {kind} {quote(port.name)} before others; it must be the last"
            )


def _rounded(number: float) -> float:
    return struct.unpack("<f", struct.pack("<f", number))[0]
