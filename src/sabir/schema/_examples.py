"""Examples: calls of an operator, from its room, that the generic suites run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from sabir.base import SchemaError, quote
from sabir.elements import element
from sabir.schema._ports import Constraint, port_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Type
    from sabir.schema._ports import Port
    from sabir.schema._version import Version

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_LITERALS = (bool, int, float, complex, str)


class Example:
    """One call of an operator at one opset, as the generic suites run it.

    `inputs` are arrays (or sequences of them as lists, maps as dicts, None for an input left out),
    `attributes` Python values; a subgraph is written in the text syntax. `expect` has outputs that an
    oracle outside the room computed; `outputs` is how many outputs the node names. `types` declares the
    input types where the values do not determine them: an empty sequence, an optional.

    A tensor may be written as a number or a nested list. It takes the element type that its port shares with
    another tensor of the call, or the only type that the port admits, or else the first of float, int64,
    bool and string that fits its numbers and that the port admits.

    >>> Example(13, [-1.0, 2.0], expect=[[0.0, 2.0]]).opset
    13
    """

    __slots__ = ("attributes", "expect", "inputs", "opset", "outputs", "tolerance", "types")

    def __init__(
        self,
        opset: int,
        /,
        *inputs: Any,
        outputs: int = 1,
        expect: Sequence[Any] | None = None,
        tolerance: float = 1e-5,
        types: Sequence[Type | None] | None = None,
        **attributes: Any,
    ) -> None:
        self.opset, self.inputs, self.attributes = opset, inputs, attributes
        self.outputs, self.expect, self.tolerance, self.types = outputs, expect, tolerance, types

    def resolve(self, version: Version) -> Example:
        """Convert numbers and lists to arrays, typed by the signature of `version`; return the example.

        Raises SchemaError for a list whose element type does not follow from the signature.
        """
        types = _Types(str(version))
        types.observe(version.inputs, self.inputs)
        self.inputs = types.arrays(version.inputs, self.inputs)
        if self.expect is not None:
            types.observe(version.outputs, self.expect)
            self.expect = types.arrays(version.outputs, self.expect)
        return self


class _Types:
    """The element type that each constraint has in one call."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._dtypes: dict[str, np.dtype[Any]] = {}

    def observe(self, ports: Sequence[Port], values: Sequence[Any]) -> None:
        """Bind the constraints of the ports whose values are arrays already."""
        for place, value in enumerate(values):
            kind = port_at(ports, place).type
            if isinstance(kind, Constraint) and isinstance(value, (np.ndarray, np.generic)):
                self._dtypes.setdefault(kind.name, cast("Array", value).dtype)

    def arrays(self, ports: Sequence[Port], values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values, each number or nested list of numbers as an array."""
        return tuple(self._array(port_at(ports, place), value) for place, value in enumerate(values))

    def _array(self, port: Port, value: Any) -> Any:
        if not _is_literal(value) or not _takes_tensors_alone(port):
            return value
        dtype = self._dtype(port, value)
        if isinstance(port.type, Constraint):
            self._dtypes.setdefault(port.type.name, dtype)
        return np.array(value, dtype)

    def _dtype(self, port: Port, value: Any) -> np.dtype[Any]:
        if isinstance(port.type, Constraint) and port.type.name in self._dtypes:
            return self._dtypes[port.type.name]
        if len(port.allowed) == 1:
            (only,) = port.allowed
            return element(only[len("tensor(") : -1]).dtype
        kind = np.array(value).dtype.kind
        natural = {"f": "float", "i": "int64", "b": "bool", "U": "string"}.get(kind)
        if natural is None or f"tensor({natural})" not in port.allowed:
            raise SchemaError(
                f"{self._owner}: write {quote(port.name)} of an example as an array; "
                "its element type does not follow from the call"
            )
        return element(natural).dtype


def _takes_tensors_alone(port: Port) -> bool:
    return all(name.startswith("tensor(") for name in port.allowed)


def _is_literal(value: Any) -> bool:
    """Whether a value is a number, a text or a nested list of them; scalars of numpy have a type already."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_literal, cast("Sequence[Any]", value)))
    return isinstance(value, _LITERALS) and not isinstance(value, np.generic)
