"""The base class of tensor expressions: element type, shape, operands, and checks of shapes.

An expression is immutable and compared by identity. It describes a value. Order of computation, memory and
kernels are decisions of the compiler, for the expressions of a whole graph. Every size of a shape is a number
or symbolic.

A kind of expression is a class with the decorator `expression`. Its operands are the fields that are
annotated as expressions, so nothing else lists them. `violations` yields the errors of an expression; the
compiler's tests call it for every expression after every pass.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields, replace
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, dataclass_transform

from sabir.ir import Expr, known_equal, lower_bound, sub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Size: TypeAlias = int | Expr
Sizes: TypeAlias = tuple[Size, ...]

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = frozenset({"float", "double"})
HALVES = frozenset({"float16", "bfloat16"})  # kernels load and store them, and compute with them as float
SMALL_INTEGERS = frozenset({"int4", "uint4", "int2", "uint2"})  # stored as one byte each,
SMALL_FLOATS = frozenset({  # as these are; kernels move and convert both
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
    "float6e2m3", "float6e3m2", "float4e2m1",
})  # fmt: skip
ELEMENTS = (
    FLOATS | HALVES | INTEGERS | SMALL_INTEGERS | SMALL_FLOATS | {"bool"}
)  # all that kernels load and store

_WIDTHS = {"float": 4, "double": 8, "float16": 2, "bfloat16": 2}


def element_bytes(element: str) -> int:
    """Return the bytes of one element in memory, for a type of `ELEMENTS`; small types take a byte.

    >>> element_bytes('int64'), element_bytes('uint4'), element_bytes('bool')
    (8, 1, 1)
    """
    if element in INTEGERS:
        return int(element.removeprefix("u").removeprefix("int")) // 8
    return _WIDTHS.get(element, 1)


NOT_READ: Final = {"operand": False}
"""The metadata of a field that refers to another expression without reading it."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A tensor as an expression of other tensors.

    `element` is the name of an element type, one of `ELEMENTS`.
    """

    element: str
    shape: Sizes

    checks_indices: ClassVar[bool] = False
    """Whether an index outside of its axis is an error of the run."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The operands, in the order of the fields."""
        return ()

    def with_operands(self, operands: Sequence[Expression]) -> Expression:
        """Return a copy of the expression with other operands, in the order of `operands`.

        Raises ValueError for another number of operands.
        """
        if len(operands) != len(self.operands):
            raise ValueError(
                f"{type(self).__name__} has {len(self.operands)} operands, and {len(operands)} were passed"
            )
        found = _operand_fields(type(self))
        if _SEVERAL in found.values():
            return replace(self, **dict.fromkeys(found, tuple(operands)))
        names = [name for name in found if getattr(self, name) is not None]
        return replace(self, **dict(zip(names, operands, strict=True)))

    def violations(self) -> Iterator[str]:
        """Yield a sentence for each way in which the fields contradict each other."""
        yield from ()

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.element in FLOATS or self.element in HALVES


_Kind = TypeVar("_Kind", bound=Expression)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def expression(kind: type[_Kind]) -> type[_Kind]:
    """Make a class a kind of expression: a frozen dataclass whose operands follow from its fields.

    A field is an operand if it is annotated as `Expression`, `Expression | None` or
    `tuple[Expression, ...]`, and its metadata is not `NOT_READ`.
    """
    decorated = dataclass(frozen=True, slots=True, eq=False)(kind)
    setattr(decorated, "operands", property(_reader(decorated)))  # ruff: ignore[set-attr-with-constant]  the type has no setter
    decorated.__init__.__annotations__ |= {"shape": Sizes}  # tools resolve names in the module of the kind
    return decorated


_ONE, _OPTIONAL, _SEVERAL = "Expression", "Expression | None", "tuple[Expression, ...]"


@functools.cache
def _operand_fields(kind: type[Expression]) -> dict[str, str]:
    """Return the annotations of the fields of a kind that are operands, by name."""
    return {
        f.name: str(f.type)
        for f in fields(kind)
        if f.type in {_ONE, _OPTIONAL, _SEVERAL} and f.metadata.get("operand", True)
    }


def _reader(kind: type[Expression]) -> Callable[[Any], tuple[Expression, ...]]:
    """Return the function that reads the operands of a kind."""
    found = _operand_fields(kind)
    names = list(found)
    if not names:
        return lambda _: ()
    if _SEVERAL in found.values() and len(names) == 1:
        return attrgetter(names[0])
    if _SEVERAL in found.values():
        raise TypeError(f"{kind.__name__} has a tuple of operands and other operands")
    if _OPTIONAL in found.values():
        return lambda x: tuple(o for name in names if (o := getattr(x, name)) is not None)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: (getattr(x, names[0]),)


# ---------------------------------------------------------------- conditions of shapes
#
# Sizes may be equal only under a guard of the plan, so a violation needs sizes that are known to differ.


def differ(m: Size, n: Size) -> bool:
    """Return whether two sizes are known to differ."""
    return known_equal(m, n) is False


def agree(a: Sizes, b: Sizes) -> bool:
    """Return whether two shapes may be equal."""
    return len(a) == len(b) and not any(starmap(differ, zip(a, b, strict=True)))


def broadcasts(shape: Sizes, to: Sizes) -> bool:
    """Return whether a shape may broadcast to another one, as numpy does."""
    if len(shape) > len(to):
        return False
    return all(m == 1 or not differ(m, n) for m, n in zip(shape, to[len(to) - len(shape) :], strict=True))


def are_axes(axes: Iterable[int], rank: int) -> bool:
    """Return whether the numbers are distinct axes of a tensor of a rank, counted from the front."""
    found = list(axes)
    return len({*found}) == len(found) and all(0 <= axis < rank for axis in found)


def exceeds(m: Size, n: Size) -> bool:
    """Return whether one size is known to be larger than another."""
    difference = sub(m, n)
    low = None if difference is None else lower_bound(difference)
    return low is not None and low > 0
