"""Profiles: the time of each kernel and each evaluated call of a plan, run one by one."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import UnsupportedError
from sabir.compilation.backends.cpu.emit.nest import STILL, Nest, TakeStep, access_name
from sabir.compilation.backends.cpu.products.spec import Product
from sabir.compilation.backends.cpu.products.winograd_kernel import Winograd
from sabir.compilation.backends.cpu.windows.kernel import Sliding
from sabir.compilation.inspect.explaining import DecisionsOfNodes, kind_of
from sabir.compilation.plan.entries import BufferNumber, Entry, Mismatch
from sabir.compilation.plan.rows import blocks_of
from sabir.compilation.runtime.running import PlanRun
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.compilation.inspect.roofline import Roofline
    from sabir.compilation.plan.decisions import Decision
    from sabir.compilation.plan.entries import Argument, Buffer, EvaluatedEntry
    from sabir.compilation.plan.layout import PartLayout, RunSizes

_GIGA = 1e9
_MICRO = 1e6  # microseconds in a second


@dataclass(frozen=True, slots=True)
class Timing:
    """The median time of one kernel, or of one evaluated call.

    `kind` is that of a `Kernel`, or `evaluated`. `nodes` has the labels of the nodes. `flops` is the number
    of floating-point operations, 0 for an evaluated call; `bytes` is the size of its operands and results.
    `decisions` are those of the compiler for these nodes.

    >>> timing = Timing('nest', ("Relu with output 'y'",), seconds=2e-6, flops=1000, bytes=8000)
    >>> timing.fraction(Roofline(flops=1e9, bandwidth=16e9))
    0.5
    """

    kind: str
    nodes: tuple[str, ...]
    seconds: float
    flops: int
    bytes: int
    decisions: tuple[Decision, ...] = ()

    @property
    def rates(self) -> tuple[str, str]:
        """The GFLOP and the GB a second as texts, empty where nothing is counted."""
        return self._rate(self.flops), self._rate(self.bytes)

    def _rate(self, amount: int) -> str:
        return f"{amount / self.seconds / _GIGA:.3g}" if amount and self.seconds else ""

    def fraction(self, roofline: Roofline) -> float | None:
        """Return the least time that the machine needs divided by the measured time.

        None for an evaluated call. It may exceed 1 if operands are in a cache.
        """
        if self.kind == "evaluated" or self.seconds <= 0:
            return None
        return roofline.seconds(self.flops, self.bytes) / self.seconds


@dataclass(frozen=True, slots=True)
class NodeTime:
    """The seconds of all kernels that compute a node, which compute at most `others` other nodes with it.

    >>> timings = Timing('nest', ('a', 'b'), 2e-6, 8, 8), Timing('nest', ('a',), 1e-6, 8, 8)
    >>> profile = Profile(timings, whole=3e-6, runs=1)
    >>> [(n.node, n.others) for n in profile.nodes]
    [('a', 1), ('b', 1)]
    """

    node: str
    seconds: float
    others: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The times of a plan's kernels and evaluated calls, in the order of the plan, over `runs` runs.

    `whole` is the median time in seconds of an ordinary run, which does not return to Python between kernels.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> profile = Compiled(model).profile({'x': np.float32([-1, 2])}, runs=2)
    >>> [(t.kind, t.bytes) for t in profile.timings]
    [('nest', 16)]
    """

    timings: tuple[Timing, ...]
    whole: float
    runs: int

    @property
    def seconds(self) -> float:
        """The sum of the times in seconds."""
        return math.fsum(t.seconds for t in self.timings)

    @property
    def nodes(self) -> tuple[NodeTime, ...]:
        """The nodes, the slowest first. The time of a kernel counts for each node that it computes."""
        found: dict[str, NodeTime] = {}
        for timing in self.timings:
            for node in timing.nodes:
                old = found.get(node, NodeTime(node, 0.0, 0))
                others = max(old.others, len(timing.nodes) - 1)
                found[node] = NodeTime(node, old.seconds + timing.seconds, others)
        return tuple(sorted(found.values(), key=lambda n: -n.seconds))

    def _repr_html_(self) -> str:
        from sabir.drawing import Number, seconds_text, titled_table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        slowest = sorted(enumerate(self.timings, 1), key=lambda pair: -pair[1].seconds)
        total = self.seconds or 1.0
        columns = (*map(Number, ("", "time", "share", "GFLOP/s", "GB/s")), "kind", "nodes")
        rows = (
            (
                *map(Number, (str(place), seconds_text(t.seconds), f"{t.seconds / total:.1%}", *t.rates)),
                t.kind,
                ", ".join(t.nodes),
            )
            for place, t in slowest
        )
        return titled_table(f"{seconds_text(self.whole)} a run, median of {self.runs}", columns, rows)

    def trace(self) -> list[dict[str, object]]:
        """Return the events of one run in Chrome's trace format, kernels one after another.

        Times are in microseconds. https://ui.perfetto.dev and chrome://tracing show them.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> (event,) = Compiled(model).profile({'x': np.float32([-1, 2])}, runs=1).trace()
        >>> event['name'], event['cat'], event['ph'], event['ts']
        ("Relu with output 'y'", 'nest', 'X', 0.0)
        """
        starts = itertools.accumulate((t.seconds for t in self.timings), initial=0.0)
        return [
            {
                "name": ", ".join(t.nodes) or t.kind, "cat": t.kind, "ph": "X", "pid": 0, "tid": 0,
                "ts": start * _MICRO, "dur": t.seconds * _MICRO,
                "args": {"nodes": list(t.nodes), "flops": t.flops, "bytes": t.bytes},
            }
            for start, t in zip(starts, self.timings, strict=False)
        ]  # fmt: skip


class ProfiledRun(PlanRun):
    """A run that returns to Python after each kernel; `times` has the seconds of each entry."""

    def measure(self) -> None:
        """Run the plan, and measure its entries; raises UnsupportedError if it does not fit the feeds."""
        self.times = [0.0] * len(self.program.plan.entries)
        try:
            with np.errstate(all="ignore"):
                self.outputs()
        except Mismatch as mismatch:
            raise UnsupportedError(f"only the interpreter can run these feeds, because {mismatch}") from None

    def _rows(self, layout: PartLayout, rows: tuple[int, int]) -> None:
        entries = self.program.plan.entries
        owners: list[int] = layout.owners.tolist()
        blocks = blocks_of(layout.rows)

        def iteration(row: int) -> object:
            entry = entries[owners[row]]
            return (entry.loop if isinstance(entry, Entry) and blocks[row] == row else None) or blocks[row]

        for _, group in groupby(range(*rows), key=iteration):
            found = list(group)
            started = time.perf_counter()
            super()._rows(layout, (found[0], found[-1] + 1))
            seconds = time.perf_counter() - started
            self._share(seconds, dict.fromkeys(owners[row] for row in found))

    def _share(self, seconds: float, numbers: Iterable[int]) -> None:
        """Divide the time of entries that run together among them, in proportion to their operations."""
        entries = [(n, self.program.plan.entries[n]) for n in numbers]
        work = {n: 1 + self.sizes(e.flops) for n, e in entries if isinstance(e, Entry)}
        for number, part in work.items():
            self.times[number] += seconds * part / sum(work.values())

    def _step(self, step: Any) -> None:
        started = time.perf_counter()
        super()._step(step)
        self.times[self.program.plan.entries.index(step)] += time.perf_counter() - started


def profile_of(run: ProfiledRun, alone: Sequence[Sequence[float]], whole: Sequence[float]) -> Profile:
    """Return the profile of a plan; `alone[run][entry]` and `whole[run]` (ordinary runs) are in seconds."""
    times = map(statistics.median, zip(*alone, strict=True))
    plan = run.program.plan
    decided = DecisionsOfNodes(plan.decisions.all())
    timings = [_timing(e, t, run.sizes, decided) for e, t in zip(plan.entries, times, strict=True)]
    return Profile(tuple(timings), statistics.median(whole), len(whole))


def _timing(
    entry: Entry | EvaluatedEntry, seconds: float, sizes: RunSizes, decided: DecisionsOfNodes
) -> Timing:
    if isinstance(entry, Entry):
        moved, decisions = _traffic(entry, sizes), decided.of(entry.nodes)
        return Timing(kind_of(entry), entry.nodes, seconds, sizes(entry.flops), moved, decisions)
    buffers = {*(read[0] for read in entry.reads.values()), *entry.writes.values()}
    return Timing("evaluated", (entry.label,), seconds, 0, sum(sizes(b.size) for b in buffers))


# ---------------------------------------------------------------- bytes


def _traffic(entry: Entry, sizes: RunSizes) -> int:
    """Return the bytes that a kernel reads and writes, each counted once.

    A nest declares which elements of a buffer it accesses, for example the gathered rows of a table. Other
    operands count as a whole.
    """
    _, _, spec, arguments = entry.choices[-1]
    parts: dict[Buffer, int] = {}
    nest: Nest | None = None
    if isinstance(spec, Nest):
        nest = spec
    elif isinstance(spec, (Product, Sliding, Winograd)):
        nest, arguments = spec.nest, spec.signature.read(arguments, "nest")
    if nest is not None:
        for buffer, count in _accesses(nest, arguments, sizes):
            parts[buffer] = parts.get(buffer, 0) + count
    return sum(min(parts.get(b, sizes(b.size)), sizes(b.size)) for b in dict.fromkeys(entry.buffers))


def _accesses(nest: Nest, arguments: Sequence[Argument], sizes: RunSizes) -> Iterator[tuple[Buffer, int]]:
    """Yield the buffer of each access of a nest, and the bytes that the loops read or write there."""
    signature = nest.signature
    lengths = [sizes(n) for n in signature.read(arguments, "sizes")]  # pyright: ignore[reportArgumentType]  sizes
    taken = {step.access for step in nest.steps if isinstance(step, TakeStep)}
    for number, access in enumerate(nest.accesses):
        named, _ = signature.read(arguments, access_name(number), "tensor")
        if isinstance(named, BufferNumber):
            moving = zip(lengths, access.strides, strict=True)
            counted = lengths if number in taken else [n for n, stride in moving if stride != STILL]
            yield named.buffer, math.prod(counted) * element_bytes(access.element)
