"""Dimensions of connected ports: made equal where they can be, refused where they contradict each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote
from sabir.editing._merged_names import Renaming
from sabir.editing._naming import named_graphs
from sabir.ir import Expr, FreshNames, TensorType, change_dims, dim_variables, may_be_equal, symbol, with_dims

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from sabir.ir import Dim, Model, Type, Value


class Unification:
    """Sizes of dimension variables that make the types of connected ports equal.

    `yielding` are the variables that take the name of another one where two are equal.

    >>> from sabir.ir import tensor_type
    >>> dims = Unification({'M'})
    >>> print(dims.types('x', tensor_type('float', ['N', 3]), tensor_type('float', ['M', 'C'])))
    float[N,3]
    >>> print(dims.of(symbol('M') + 1), dims.of(symbol('C')))
    N+1 3
    """

    def __init__(self, yielding: Collection[str]) -> None:
        self._yielding = yielding
        self._sizes: dict[str, int | Expr] = {}

    def of(self, dim: Dim) -> Dim:
        """Return a dimension with the sizes that are known so far."""
        while isinstance(dim, Expr) and not dim.symbols.isdisjoint(self._sizes):
            try:
                dim = dim.substitute(self._sizes)
            except OverflowError:
                return None
        return dim

    def types(self, port: str, made: Type | None, taken: Type | None) -> Type | None:
        """Return the type of a connection: of the output `made` that becomes the input `taken`.

        Raises SchemaError, which names the `port`, where the two contradict each other.
        """
        if made is None or taken is None:
            return made or taken
        if not isinstance(made, TensorType) or not isinstance(taken, TensorType):
            if with_dims(made, _unknown) != with_dims(taken, _unknown):
                raise SchemaError(f"{port}: the output is {made}, and the input takes {taken}")
            return with_dims(made, self.of)
        if made.element is not taken.element and made.element.number and taken.element.number:
            raise SchemaError(f"{port}: the output is {made}, and the input takes {taken}")
        if made.shape is None or taken.shape is None:
            return with_dims(made if taken.shape is None else taken, self.of)
        if len(made.shape) != len(taken.shape):
            raise SchemaError(f"{port}: the output {made} and the input {taken} have different ranks")
        for axis, pair in enumerate(zip(made.shape, taken.shape, strict=True)):
            self._equal(*pair, f"{port}: axis {axis} of the output {made} and of the input {taken}")
        shape = [b if a is None else a for a, b in zip(made.shape, taken.shape, strict=True)]
        element = made.element if made.element.number else taken.element
        return TensorType(element, tuple(map(self.of, shape)))

    def _equal(self, made: Dim, taken: Dim, what: str) -> None:
        """Make two dimensions equal; raises SchemaError where they cannot be."""
        made, taken = self.of(made), self.of(taken)
        if made is None or taken is None or made == taken:
            return
        if not may_be_equal(made, taken):
            raise SchemaError(f"{what} contradict each other: {made} and {taken}")
        pairs = [(_variable(made), taken), (_variable(taken), made)]
        for name, size in sorted(pairs, key=lambda pair: pair[0] not in self._yielding):
            if name is not None and not (isinstance(size, Expr) and name in size.symbols):
                self._sizes[name] = size
                return


def _unknown(_: Dim) -> Dim:
    return None


def _variable(size: int | Expr) -> str | None:
    """Return the name of the variable that a size is, or None."""
    if not isinstance(size, Expr) or len(size.symbols) != 1:
        return None
    (name,) = size.symbols
    return name if size == symbol(name) else None


def join_dims(first: Model, second: Model, ports: list[tuple[Value, Value]]) -> Iterator[Renaming]:
    """Make the dimensions of connected ports equal, and all other variables of the models different."""
    own, other = _variables(first), _variables(second)
    fresh = FreshNames([*own, *other])
    apart = {name: fresh.numbered(name) for name in sorted(own & other)}
    _change_dims(second, _substitution({old: symbol(new) for old, new in apart.items()}))
    dims = Unification({apart.get(name, name) for name in other})
    types = [
        dims.types(f"{quote(made.name)} to {quote(taken.name)}", made.type, taken.type)
        for made, taken in ports
    ]
    for model in (first, second):
        _change_dims(model, dims.of)
    for (made, _), type_ in zip(ports, types, strict=True):
        made.type = type_
    for old, new in apart.items():
        if dims.of(symbol(new)) == symbol(new):
            yield Renaming(1, "dimension", old, new)


def _variables(model: Model) -> set[str]:
    found: set[str] = set()
    for graph in named_graphs(model):
        for value in (*graph.defined(), *(v for v in graph.outputs if v is not None)):
            if value.type is not None:
                found |= dim_variables(value.type)
    return found


def _substitution(sizes: Mapping[str, Expr]) -> Callable[[Dim], Dim]:
    def change(dim: Dim) -> Dim:
        if isinstance(dim, int) or dim is None or dim.symbols.isdisjoint(sizes):
            return dim
        return dim.substitute(sizes)

    return change


def _change_dims(model: Model, change: Callable[[Dim], Dim]) -> None:
    """Change the dimensions of all graphs but those of functions, whose variables are their own."""
    change_dims(replace(model, functions=[]), change)
