"""Loop nests as data: the specification of a kernel, with all that its machine code depends on.

Sizes, strides and addresses are arguments of the kernel. So equal nests share one kernel for all of these.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from sabir.compilation.plan.signature import SCRATCH_MEMORY, KernelSignature

Stride: TypeAlias = Literal[0, 1, 2]  # 0: broadcast; 1: adjacent elements; 2: an argument, in bytes
STILL: Literal[0] = 0
NEXT: Literal[1] = 1
ANY: Literal[2] = 2
SHORT = 4
_TAKE = KernelSignature(size="size", stride="bytes")  # of the axis that an index chooses from


def access_name(number: int) -> str:
    """Return the name of an access: of its arguments, and in listings."""
    return f"a{number}"


def take_name(number: int) -> str:
    """Return the name of the arguments of a step that takes elements at indices."""
    return f"take{number}"


@functools.lru_cache(maxsize=1 << 10)
def _signature(axes: int, strides: tuple[int, ...], takes: tuple[int, ...], sizes: int) -> KernelSignature:
    """Return the arguments of a nest whose accesses have so many strides that are arguments."""
    return KernelSignature(
        sizes=("size", axes),
        **{
            access_name(number): KernelSignature(tensor="tensor", strides=("stride", count))
            for number, count in enumerate(strides)
        },
        **{take_name(number): _TAKE for number in takes},
        extents=("size", sizes),
        scratch=SCRATCH_MEMORY,
    )


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
    unless_same: bool = False  # a copy that does nothing where both tensors begin at the same address
    repeats: tuple[int, ...] = ()  # (axis, n): each value is stored n times in adjacent places along the axis
    together: tuple[int, ...] = ()  # (axis, n): folds at n adjacent places along the axis share their loads

    def varying(self, axis: int) -> list[bool]:
        """Return for each step whether it varies along an axis; folds vary along those that they keep."""
        folds = bool(self.axes) and not self.reduced[axis]
        found: list[bool] = []
        for step in self.steps:
            match step:
                case Load():
                    varies = self._moves(step.access, axis)
                case TakeStep():
                    varies = self._moves(step.access, axis) or found[step.place]
                case Position():
                    varies = step.axis == axis
                case Apply():
                    varies = any(found[o] for o in step.operands)
                case Fold():
                    varies = folds and found[step.operand]
                case Accumulated():
                    varies = True
                case _:
                    varies = False
            found.append(varies)
        return found

    def _moves(self, access: int, axis: int) -> bool:
        return bool(self.axes) and self.accesses[access].strides[axis] != STILL

    @property
    def signature(self) -> KernelSignature:
        """The arguments: sizes of axes, tensors and strides of accesses, extents of takes, sizes, scratch."""
        strides = tuple(access.strides.count(ANY) for access in self.accesses)
        takes = tuple(number for number, step in enumerate(self.steps) if isinstance(step, TakeStep))
        return _signature(self.axes, strides, takes, self.sizes)

    def __str__(self) -> str:
        marks = "".join("r" if r else "k" for r in self.reduced)
        short = f" short {self.short}" if self.short else ""
        repeats = f" repeats {self.repeats}" if self.repeats else ""
        together = f" together {self.together}" if self.together else ""
        same = " unless the same" if self.unless_same else ""
        lines = [f"nest {marks} inner {self.inner} lanes {self.lanes}{short}{repeats}{together}{same}"]
        lines += [f"  a{i}: {a}" for i, a in enumerate(self.accesses)]
        lines += [f"  %{i} = {s}" for i, s in enumerate(self.steps)]
        lines += [f"  store %{value} to a{access}" for access, value in self.stores]
        return "\n".join(lines)
