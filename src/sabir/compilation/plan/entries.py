"""A plan as data: entries, each a kernel with its arguments or a call that is evaluated, and its buffers."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.compilation.frontend.lowering import EvaluatedCall
    from sabir.compilation.plan.bounds import ComputedTensor, Reach
    from sabir.loops import Size, Sizes

# the first entries of the table of buffers
ERRORS, ARENA, SCRATCH = 0, 1, 2
FIRST = 3

BufferKind = Literal["input", "constant", "packed", "known", "keys", "result", "output", "arena", "own"]


class Mismatch(Exception):
    """A run contradicts what its plan assumes; the interpreter runs it, or says what is wrong."""


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory of one tensor: of an input, a constant, an evaluated result, an output, or a part of the arena.

    That of `keys` is filled with random words for each run. Each thread has its own memory for one that is
    `own`, in an entry with bands.

    `size` counts bytes. `slot` is that of its value, if it has one. `first` and `last` are the entries
    between which it is alive. `strides` count elements; they are None where the tensor lies row by row.
    """

    kind: BufferKind
    number: int
    element: str
    shape: Sizes
    size: Size
    slot: int = 0
    strides: Sizes | None = None
    first: int = -1
    last: int = -1

    def use(self, entry: int) -> None:
        """Note that an entry reads or writes it."""
        self.first = entry if self.first < 0 else min(self.first, entry)
        self.last = max(self.last, entry)


class BufferNumber(NamedTuple):
    """The argument that names a buffer."""

    buffer: Buffer


class Offset(NamedTuple):
    """The argument with the first byte of a tensor in its buffer."""

    buffer: Buffer
    bytes: Size


class Computed(NamedTuple):
    """An argument that a function computes from sizes and the number of threads."""

    function: Callable[..., int]
    sizes: Sizes


class StoredKernel(NamedTuple):
    """The kernel of a plan that was read from the disk: the key of its machine code."""

    key: bytes


Argument: TypeAlias = "int | Size | BufferNumber | Offset | Computed"
Kernel: TypeAlias = Hashable
"""The specification of a kernel of a target: equal ones have the same machine code."""
Spec: TypeAlias = Kernel | StoredKernel


@dataclass(slots=True, eq=False)
class Turns:
    """How often the entries that share it, which follow each other, run in turn."""

    count: Size


@dataclass(slots=True, eq=False)
class Entry:
    """A kernel and its arguments. `choices` are kernels for sizes up to a limit; the last is for all others.

    `scratch` is how many bytes each thread needs. `nodes` label the nodes that it computes, `reaches` is what
    it touches of tensors in memory. The first arguments are the sizes of so many `axes`; where all `writes`
    are empty tensors, no loop needs to turn. With `turns` the block of the kernel has the number of the turn,
    and the address of the arguments. One thread does all of one that is `alone`, and the part of a thread in
    one that is `whole` is not divided further. With `bands` it runs other kernels.
    """

    choices: list[tuple[Size | None, int, Spec, list[Argument]]]
    scratch: Size = 0
    nodes: tuple[str, ...] = ()
    flops: Size = 0
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    reaches: list[Reach] = field(default_factory=list["Reach"])
    writes: list[Buffer] = field(default_factory=list[Buffer])
    axes: int = 0
    turns: Turns | None = None
    alone: bool = False
    whole: bool = False
    bands: BandParts | None = None

    def specs(self) -> Iterator[Spec]:
        """Yield the kernels of the entry, those of its bands too."""
        yield from (spec for _, _, spec, _ in self.choices)
        for part in () if self.bands is None else self.bands.parts:
            yield from part.entry.specs()


class BandPart(NamedTuple):
    """A kernel of a band and how many rows it computes: it does not run in a band where these are 0."""

    entry: Entry
    rows: Size


@dataclass(slots=True, eq=False)
class BandParts:
    """The kernels that run for one band of rows after another: `count` bands of an item.

    `own` are the tensors between them, with the bytes of a band. `moves` has how many bytes tensors move from
    item to item and from band to band. The `variants` of bands are the sizes of symbols in the arguments of
    the kernels: for the first band, for one in the middle, for the same where the thread has computed the
    band before, and both for the last one.
    """

    count: int
    parts: list[BandPart]
    own: dict[Buffer, int]
    moves: dict[Buffer, tuple[int, int]]
    variants: tuple[dict[str, int], ...]


@dataclass(slots=True, eq=False)
class EvaluatedEntry:
    """A call that is evaluated on arrays: what it reads, by slot, with the memory of each tensor."""

    call: EvaluatedCall
    reads: dict[int, tuple[Buffer, Size, Sizes, Sizes]]
    writes: dict[int, Buffer]
    label: str
    reason: str


@dataclass(slots=True, eq=False)
class KernelPlan:
    """The entries of a plan in order, the buffers that they use, and the entries that prepare constants.

    `values` are all tensors that the entries compute, those too that are never in memory. The entries from
    the number `updating` on cannot fail, and may write results over inputs: `in_place` has the slots of these
    inputs by those of the results.
    """

    entries: list[Entry | EvaluatedEntry]
    buffers: list[Buffer]
    outputs: dict[int, Buffer]
    setup: list[Entry]
    values: list[ComputedTensor] = field(default_factory=list["ComputedTensor"])
    updating: int = 0
    in_place: dict[int, int] = field(default_factory=dict[int, int])


def count_of(sizes: Sequence[Size]) -> Size:
    """Return the product of sizes."""
    return math.prod(sizes, start=1)
