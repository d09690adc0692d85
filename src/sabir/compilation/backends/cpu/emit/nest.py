"""Loop nests as data: the specification of a kernel, with all that its machine code depends on.

Sizes, strides and addresses are arguments of the kernel. So equal nests share one kernel for all of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Stride: TypeAlias = Literal[0, 1, 2]  # 0: broadcast; 1: adjacent elements; 2: an argument, in bytes
STILL: Literal[0] = 0
NEXT: Literal[1] = 1
ANY: Literal[2] = 2
SHORT = 4


class Access(NamedTuple):
    """An access to a tensor in memory: its element type, and the kind of its stride along each axis."""

    element: str
    strides: tuple[Stride, ...]

    def __str__(self) -> str:
        return f"{self.element}[{','.join('01n'[s] for s in self.strides)}]"


# steps are not named tuples: tuples of two classes would be equal


@dataclass(frozen=True, slots=True)
class Load:
    """A load of the element of an access."""

    element: str
    access: int

    def __str__(self) -> str:
        return f"load a{self.access}"


@dataclass(frozen=True, slots=True)
class TakeStep:
    """A gather: a load from an access, at an index along one more axis, with a bounds check."""

    element: str
    access: int
    place: int  # the number of the step that computes the index
    near: bool = False  # that axis has stride 1, and the index 32 bits

    def __str__(self) -> str:
        return f"take a{self.access}{' near' if self.near else ''} at %{self.place}"


@dataclass(frozen=True, slots=True, eq=False)
class ConstantStep:
    """A constant; 0 and -0 differ."""

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
    """A size from the arguments, converted to the element type."""

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
    """The accumulator of a product, the input of an epilogue; `number` selects one of several."""

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
    """A reduction of an earlier value along the reduced axes."""

    element: str
    op: str
    operand: int
    last: bool = False

    def __str__(self) -> str:
        return f"{self.op}{' last' if self.last else ''} over the reduced axes of %{self.operand}"


Step: TypeAlias = Load | TakeStep | ConstantStep | SizeArgument | Position | Accumulated | Apply | Fold


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over axes, the outermost first; steps compute values, stores write them.

    `reduced` says for each axis whether folds reduce it. `inner` is the vectorized axis. `stores` has pairs
    of numbers: an access, and the step whose value it stores.
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
    repeats: tuple[int, ...] = ()  # (axis, n): each value is stored n times in adjacent places along the axis

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
    """The layout of the arguments of a nest in its block of 64-bit numbers.

    The order is: the sizes of the axes; for each access its buffer, its offset in bytes, and its strides that
    are arguments; the size and the stride of each gather; the sizes that steps read; the scratch memory: its
    buffer, its offset, and the bytes for a thread.
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
        """Return the number of the argument with a stride."""
        return self.accesses[access] + 2 + nest.accesses[access].strides[:axis].count(ANY)
