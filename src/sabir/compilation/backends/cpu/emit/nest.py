"""Nests: loops over axes, as data. A nest says all that its machine code depends on, and nothing else.

So equal nests share one kernel, whatever the sizes, strides and addresses are: these are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Stride: TypeAlias = Literal[0, 1, 2]  # 0: does not move; 1: the next element; 2: an argument, in bytes
STILL: Literal[0] = 0
NEXT: Literal[1] = 1
ANY: Literal[2] = 2
SHORT = 4


class Access(NamedTuple):
    """How a tensor in memory is read or written: its element type and its stride along each axis."""

    element: str
    strides: tuple[Stride, ...]

    def __str__(self) -> str:
        return f"{self.element}[{','.join('01n'[s] for s in self.strides)}]"


# the steps are no tuples: those of two classes would be equal


@dataclass(frozen=True, slots=True)
class Load:
    """The element of an access."""

    element: str
    access: int

    def __str__(self) -> str:
        return f"load a{self.access}"


@dataclass(frozen=True, slots=True)
class TakeStep:
    """The element of an access moved along one more axis by an index; `size` bounds it."""

    element: str
    access: int
    place: int  # the step that computes the index
    near: bool = False  # elements lie side by side along that axis, and the index has 32 bits

    def __str__(self) -> str:
        return f"take a{self.access}{' near' if self.near else ''} at %{self.place}"


@dataclass(frozen=True, slots=True, eq=False)
class ConstantStep:
    """A number; 0 and -0 are two."""

    element: str
    number: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantStep) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.element} {self.number!r}"


@dataclass(frozen=True, slots=True)
class SizeArgument:
    """A size, converted to the element type."""

    element: str
    place: int

    def __str__(self) -> str:
        return f"{self.element} size {self.place}"


@dataclass(frozen=True, slots=True)
class Position:
    """The index along an axis."""

    element: str
    axis: int

    def __str__(self) -> str:
        return f"index {self.axis}"


@dataclass(frozen=True, slots=True)
class Accumulated:
    """The sum of a product, of which an epilogue computes the result; where there are several, a `number`."""

    element: str
    number: int = 0

    def __str__(self) -> str:
        return f"product {self.number}" if self.number else "product"


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of earlier values."""

    element: str
    op: str
    operands: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.op}{f' {self.element}' if self.op in {'cast', 'bits'} else ''} " + ", ".join(
            f"%{o}" for o in self.operands
        )


@dataclass(frozen=True, slots=True)
class Fold:
    """An earlier value combined along the reduced axes."""

    element: str
    op: str
    operand: int
    last: bool = False

    def __str__(self) -> str:
        return f"{self.op}{' last' if self.last else ''} over the reduced axes of %{self.operand}"


Step: TypeAlias = Load | TakeStep | ConstantStep | SizeArgument | Position | Accumulated | Apply | Fold


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over axes, from the outermost inwards; steps compute values, stores write them.

    `reduced` says of each axis whether folds run along it. `inner` is the axis along which vectors lie.
    `stores` pairs accesses with values.
    """

    axes: int
    reduced: tuple[bool, ...]
    inner: int
    accesses: tuple[Access, ...]
    steps: tuple[Step, ...]
    stores: tuple[tuple[int, int], ...]
    sizes: int = 0  # how many size arguments steps read
    lanes: int = field(default=16)
    short: tuple[int, ...] = ()  # axes with at most SHORT elements, where the loops differ for these
    repeats: tuple[int, ...] = ()  # an axis along which each value is stored so many times side by side

    def __str__(self) -> str:
        marks = "".join("r" if r else "k" for r in self.reduced)
        short = f" short {self.short}" if self.short else ""
        repeats = f" repeats {self.repeats}" if self.repeats else ""
        lines = [f"nest {marks} inner {self.inner} lanes {self.lanes}{short}{repeats}"]
        lines += [f"  a{i}: {a}" for i, a in enumerate(self.accesses)]
        lines += [f"  %{i} = {s}" for i, s in enumerate(self.steps)]
        lines += [f"  store %{value} to a{access}" for access, value in self.stores]
        return "\n".join(lines)


class Layout:
    """Where the arguments of a nest lie in its block, in 64-bit places.

    The sizes of the axes come first, then for each access its buffer, its offset in bytes and the strides
    that are arguments, then the size and the stride of each take, the sizes that steps read, and the scratch
    memory: its buffer, offset and bytes a thread.
    """

    def __init__(self, nest: Nest, first: int = 0) -> None:
        place = self.first = first
        place += nest.axes
        self.accesses: list[int] = []
        for access in nest.accesses:
            self.accesses.append(place)
            place += 2 + access.strides.count(ANY)
        self.takes: dict[int, int] = {}
        for number, step in enumerate(nest.steps):
            if isinstance(step, TakeStep):
                self.takes[number] = place
                place += 2
        self.sizes = place
        place += nest.sizes
        self.scratch = place
        self.end = place + 3
        self.count = self.end - first

    def stride(self, nest: Nest, access: int, axis: int) -> int:
        """Return the place of a stride that is an argument."""
        return self.accesses[access] + 2 + nest.accesses[access].strides[:axis].count(ANY)
