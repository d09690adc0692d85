"""A plan as data: its buffers and entries; an entry is a kernel with its arguments, or an evaluated call."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sabir.compilation.plan.decisions import Decisions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.compilation.frontend.unlowered import UnloweredCall
    from sabir.compilation.plan.bounds import ComputedTensor, Reach
    from sabir.ir import Known
    from sabir.loops import Size, Sizes

# the first indices of the table of buffers
ERRORS, ARENA, SCRATCH = 0, 1, 2
FIRST = 3

# the numbers that the errors are the first of: the meter of a run, in which control flow counts
ITERATIONS, MOST_ITERATIONS, WORK, MOST_WORK, EXCEEDED = 1, 2, 3, 4, 5
METER = 6
"""The numbers of a meter: errors, iterations, their limit, work, its limit, and the loop that exceeds one."""

BufferKind = Literal[
    "input", "constant", "packed", "known", "keys", "result", "output", "arena", "own", "moved"
]


class Mismatch(Exception):
    """A run contradicts the assumptions of its plan; the interpreter runs it, or reports its error."""


class PartMissing(Mismatch):
    """A plan from the disk has no stage for these inputs, and its program was not stored with it."""


@dataclass(slots=True, eq=False)
class Buffer:
    """The memory of one tensor: an input, a constant, an evaluated result, an output, or a part of the arena.

    The buffer of `keys` is filled with random words for each run. An `own` buffer, of an entry with bands,
    has separate memory in each thread. The address of a `moved` buffer changes in a run: rows of control flow
    write it into the table of buffers.

    `size` counts bytes. `slot` is the slot of its value, if it has one. It is live from the entry number
    `first` to `last`. `strides` count elements; None is row-major.
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
        """Extend the live range to an entry that reads or writes it."""
        self.first = entry if self.first < 0 else min(self.first, entry)
        self.last = max(self.last, entry)


class BufferNumber(NamedTuple):
    """The argument that is the number of a buffer."""

    buffer: Buffer


class Offset(NamedTuple):
    """The argument that is the offset of a tensor in its buffer, in bytes."""

    buffer: Buffer
    bytes: Size


class Computed(NamedTuple):
    """An argument that a function computes from sizes, when the plan is laid out."""

    function: Callable[..., int]
    sizes: Sizes


class StoredKernel(NamedTuple):
    """The kernel of a plan from the disk: the key of its machine code."""

    key: bytes


Argument: TypeAlias = "int | Size | BufferNumber | Offset | Computed"
Kernel: TypeAlias = Hashable
"""The specification of a kernel of a target: equal ones have the same machine code."""
Spec: TypeAlias = Kernel | StoredKernel


def start_of(buffer: Buffer) -> list[Argument]:
    """Return the arguments that place a tensor at the first byte of a buffer."""
    return [BufferNumber(buffer), Offset(buffer, 0)]


@dataclass(slots=True, eq=False)
class EntryLoop:
    """A loop over consecutive entries, which share this object: all run in order, `count` times."""

    count: Size


@dataclass(slots=True, eq=False)
class Place:
    """A place that control flow may jump to: before the entry number `entry`, set once that is known."""

    entry: int = -1


@dataclass(slots=True, eq=False)
class Entry:
    """A kernel and its arguments.

    `choices` are variants of the kernel: `(size, limit, kernel, arguments)` is for a size up to the limit,
    the last one for all others. `scratch` is the bytes of scratch memory of a thread. `nodes` are the labels
    of the nodes that it computes, `reaches` the memory that it touches. `loops` are the first word of the
    arguments with sizes of its loops, and the word after the last one: the sizes are set to 0 if all tensors
    in `writes` are empty. With a `loop` the block of the kernel is the iteration and the address of the
    arguments. An entry that is `alone` runs in one thread; in a `whole` one each thread has one share. An
    entry with `bands` runs the kernels of these. The kernel of an entry that `jumps` decides whether the run
    goes on at this place.
    """

    choices: list[tuple[Size | None, int, Spec, list[Argument]]]
    scratch: Size = 0
    nodes: tuple[str, ...] = ()
    flops: Size = 0
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    reaches: list[Reach] = field(default_factory=list["Reach"])
    writes: list[Buffer] = field(default_factory=list[Buffer])
    loops: tuple[int, int] = (0, 0)
    loop: EntryLoop | None = None
    alone: bool = False
    whole: bool = False
    bands: BandParts | None = None
    jumps: Place | None = None

    def specs(self) -> Iterator[Spec]:
        """Yield the kernels of the entry and of its bands."""
        yield from (spec for _, _, spec, _ in self.choices)
        for part in () if self.bands is None else self.bands.parts:
            yield from part.entry.specs()


class BandPart(NamedTuple):
    """A kernel of a band, and how many rows it computes: with 0 rows it does not run in a band."""

    entry: Entry
    rows: Size


@dataclass(slots=True, eq=False)
class BandParts:
    """Kernels that run band by band: a band is a few rows of an image, and an item has `count` bands.

    `own` are the intermediate tensors, with their bytes for a band. `moves` has, for each tensor, the bytes
    from item to item and from band to band. `variants` are the values of the symbols in the arguments of the
    kernels, by the kind of band: the first, a middle one, a middle one whose previous band was computed by
    the same thread, and both again for the last.
    """

    items: Size
    count: int
    parts: list[BandPart]
    own: dict[Buffer, int]
    moves: dict[Buffer, tuple[int, int]]
    variants: tuple[dict[str, int], ...]


@dataclass(slots=True, eq=False)
class EvaluatedEntry:
    """A call that is evaluated on arrays; `reads` has buffer, offset, strides and shape of each operand.

    `decides` has the shapes, by slot, of results that kernels do not read, texts for example, but whose sizes
    they need.
    """

    call: UnloweredCall
    reads: dict[int, tuple[Buffer, Size, Sizes, Sizes]]
    writes: dict[int, Buffer]
    label: str
    reason: str
    decides: dict[int, Sizes]


@dataclass(slots=True, eq=False)
class KernelPlan:
    """The entries of a plan in order, their buffers, and the `setup` entries, which pack constants once.

    `values` are all tensors that the entries compute, also those that are never in memory. Entries from the
    number `updating` on cannot fail, and may write results over inputs: `in_place` maps the slots of these
    results to the slots of the inputs. `caches` does so for results that may be in the memory of the input
    from the beginning: a kernel that copies the input does nothing then. One thread runs a plan with less
    work than `single_work`, in operations and bytes. An entry with at least `fine_work` operations for each
    thread is fine: a thread claims several shares of it. `loops` has the labels of loops, each with those of
    the calls around it. `known` has the contents of tensors of subgraphs that sizes determine, by slot.
    """

    entries: list[Entry | EvaluatedEntry]
    buffers: list[Buffer]
    outputs: dict[int, Buffer]
    setup: list[Entry]
    values: list[ComputedTensor] = field(default_factory=list["ComputedTensor"])
    updating: int = 0
    in_place: dict[int, int] = field(default_factory=dict[int, int])
    caches: dict[int, int] = field(default_factory=dict[int, int])
    decisions: Decisions = field(default_factory=Decisions)
    known: dict[int, Known] = field(default_factory=dict[int, "Known"])
    loops: list[str] = field(default_factory=list[str])
    single_work: int = field(kw_only=True)
    fine_work: int = field(kw_only=True)

    @property
    def has_control(self) -> bool:
        """Whether entries are chosen or repeated in a run."""
        return any(isinstance(e, Entry) and e.jumps is not None for e in self.entries)


def count_of(sizes: Sequence[Size]) -> Size:
    """Return the product of sizes."""
    return math.prod(sizes, start=1)
