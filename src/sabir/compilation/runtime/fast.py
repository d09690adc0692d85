"""Fast runs: runs of a plan of kernels for fixed shapes, with little work in Python.

The plan may begin with evaluated calls that read feeds alone, its head, and end with evaluated calls that
kernels do not depend on, its tail.

The first run for some shapes takes the slow path, which converts and compares feeds and makes all checks that
depend on shapes. Later runs with arrays of the same types and shapes only store the addresses of arrays.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, SupportsIndex

import numpy as np

from sabir.base import CancelledError, owns_memory
from sabir.compilation.native import Control, Frame, execute, team
from sabir.compilation.native._entrance import FIRST, INPUT, LAST, OUTPUT, InputSpec, entrance, finish, works
from sabir.compilation.plan.entries import Entry
from sabir.compilation.runtime.binding import UNUSED, Binding
from sabir.compilation.runtime.values import shape_and_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.base import Budget, Limits
    from sabir.compilation.native import Team
    from sabir.compilation.plan.entries import KernelPlan
    from sabir.compilation.plan.layout import PartLayout, RunSizes
    from sabir.compilation.runtime.around import Around
    from sabir.compilation.runtime.commits import Commit
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.compilation.runtime.tail import Tail
    from sabir.ir import Array, TensorType

_EMPTY = np.empty


class RunOutput(NamedTuple):
    """A result of a run: its name, shape and dtype, and the index of its object in the block of a frame."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    place: int


class FastFunction(Protocol):
    """Maps feeds to results, both by name; returns None if the feeds need the slow path.

    `buffers` has arrays for results. With a `commit`, these may be the feeds that `FastRun.in_place` names;
    they are written at the end of the run, all of them or none.
    """

    def __call__(
        self,
        feeds: Mapping[str, Any],
        buffers: Mapping[str, Array] | None = None,
        commit: Commit[Any] | None = None,
        /,
    ) -> dict[str, Any] | None:
        """Return all outputs by name; None for other feeds than those of this function, or after an error."""
        ...


class FastRun(NamedTuple):
    """The fast runs of a program for fixed shapes; `control` cancels them.

    `in_place` maps the name of a result to the name of the input that it may be written over.
    """

    run: FastFunction
    control: Control
    in_place: Mapping[str, str]


class Runs:
    """The state that all fast runs for fixed shapes share; those of `growing` override it."""

    def __init__(
        self, program: CompiledProgram, layout: PartLayout, sizes: RunSizes,
        names: Sequence[tuple[str, int, Array]], outputs: Sequence[tuple[str, int]], control: Control, *,
        allowed: Budget, around: Around | None = None,
    ) -> None:  # fmt: skip
        """Create the state; `names` are (name, slot, feed) of inputs, `outputs` (name, slot) of results.

        Loops of a run may spend what is `allowed`. The results of kernels are `outputs` without those of the
        calls `around` them, which kernels read after the feeds.
        """
        self.allowed = allowed
        self._program, self._layout, self._sizes, self._control = program, layout, sizes, control
        numbers = {slot: buffer.number for slot, buffer in program.input_buffers.items()}
        self._inputs = [InputSpec(numbers.get(slot, UNUSED), x.dtype, x.shape) for _, slot, x in names]
        self._inputs += () if around is None else around.inputs(sizes)
        outputs = outputs if around is None else around.native
        found = [(name, program.plan.outputs[slot]) for name, slot in outputs]
        places = range(FIRST + INPUT * len(self._inputs), sys.maxsize, OUTPUT)
        self.outputs = [
            RunOutput(name, *shape_and_dtype(b, sizes), place)
            for (name, b), place in zip(found, places, strict=False)
        ]
        self._slots = [b.number for _, b in found]
        self.around = around
        self._tail = None if around is None else around.tail(layout, sizes)
        self._team, self.target = team_for(program, sizes), program.target
        self.last = len(layout.rows)
        given = {slot: name for name, slot, _ in names}
        over = {name: given.get(program.plan.in_place.get(slot, 0)) for name, slot in outputs}
        self.in_place = {result: name for result, name in over.items() if name is not None}
        cached = {name: given.get(program.plan.caches.get(slot, 0)) for name, slot in outputs}
        self.caches = {result: name for result, name in cached.items() if name is not None}
        if self.in_place:
            finish(self.target)  # loaded now, so that a run cannot fail at its end
        self.updating = int(np.searchsorted(layout.owners, program.plan.updating))
        self.moves = False  # whether sizes may change
        self.frames: list[RunFrame] = _DrawnFrames() if program.key_buffers else []

    def adapted(
        self, _frame: RunFrame, _arrays: Sequence[Any], /
    ) -> tuple[RunFrame, Sequence[RunOutput]] | None:
        """Return a frame for a run of these feeds, and its outputs; None if there is none.

        It is called where the sizes of feeds may have changed, and in a forked process: it has another team.
        """
        return self.frame(), self.outputs

    def frame(self) -> RunFrame:
        """Return a new frame, the memory of a run."""
        made = RunFrame(
            self._program, self._layout, self._sizes, self._team, self._control, self._inputs, self._slots,
            allowed=self.allowed,
        )  # fmt: skip
        made.end_with(self._tail)
        return made

    def finished(self, frame: RunFrame, done: int, last: int) -> bool:
        """Run the rows from `done` to before `last`; return whether there was no error or cancellation."""
        execute(self._team, frame.rows_address, done, last, frame.table_address, self._control, _nothing)
        return not frame.binding.errors[0] and not self._control.cancelled

    def into(
        self, buffers: Mapping[str, Array], outputs: Sequence[RunOutput], feeds: Mapping[str, Any], *,
        commit: bool,
    ) -> dict[str, Any]:  # fmt: skip
        """Return an array for each output: its buffer if a run can write into that, else a new one."""
        results: dict[str, Any] = {}
        read: _Memory | None = None
        for name, shape, dtype, _ in outputs:
            made = buffers.get(name)
            cached = made is not None and made is feeds.get(self.caches.get(name, "")) and made.shape == shape
            over = commit and made is not None and made is feeds.get(self.in_place.get(name, ""))
            if made is not None and not cached and not over:
                read = _Memory([*feeds.values()]) if read is None else read
                made = _fitting(made, shape, dtype, read)
            results[name] = _EMPTY(shape, dtype) if made is None else made
        return results

    def failed(self, frame: RunFrame) -> None:
        """Reset and keep the frame of a failed run; raises CancelledError if the run was cancelled."""
        frame.binding.errors[0] = 0
        self.frames.append(frame)
        if self._control.cancelled:
            raise CancelledError("the run was cancelled")


def entered(runs: Runs, names: Sequence[str]) -> FastFunction:  # ruff: ignore[complex-structure]  as in `run`
    """Return the function that runs a plan; it is a closure because that has the least overhead."""
    count, fixed, frames, enter = len(names), runs.outputs, runs.frames, entrance(runs.target)
    in_place, updating, rows, moves = runs.in_place, runs.updating, runs.last, runs.moves
    only, head = names[0] if count == 1 else None, None if runs.around is None else runs.around.head

    def run(  # ruff: ignore[too-many-locals]  a function for each step takes as long as it
        feeds: Mapping[str, Any],
        buffers: Mapping[str, Array] | None = None,
        commit: Commit[Any] | None = None,
        /,
    ) -> dict[str, Any] | None:
        if len(feeds) != count:
            return None
        # native code refuses None, for a feed that is missing, as another type
        arrays = [feeds.get(name) for name in names] if only is None else (feeds.get(only),)
        values: Sequence[Any] = arrays
        if head is not None:
            found = head.run(arrays)
            if found is None:
                return None
            arrays, values = found
        try:
            frame = frames.pop()
        except IndexError:  # concurrent runs use different frames
            frame = runs.frame()
        outputs = fixed
        if moves or frame.team_memory != frame.team.memory:
            adapted = runs.adapted(frame, arrays)
            if adapted is None:
                return None
            frame, outputs = adapted
        block, at = frame.numbers, FIRST
        for array in arrays:
            block[at] = id(array)
            at += INPUT
        results: dict[str, Any] = {}
        given = None if buffers is None else runs.into(buffers, outputs, feeds, commit=commit is not None)
        for name, shape, dtype, place in outputs:
            results[name] = made = _EMPTY(shape, dtype) if given is None else given[name]
            block[place] = id(made)
        commits = commit is not None and bool(in_place)
        block[LAST] = last = updating if commits else rows
        if commits and commit is not None:
            commit.prepare(results)
        done = enter(frame.address)
        if done == last or (done >= 0 and runs.finished(frame, done, last)):
            if commits and commit is not None:
                finish(runs.target)(frame.address, commit.address)
            tail = frame.tail
            ended = results if tail is None else tail.finish(frame.slots, values, results)
            frames.append(frame)  # from now on another thread may use it
            return ended
        runs.failed(frame)
        return None

    return run


def entered_by_position(runs: Runs) -> Callable[[Sequence[Any]], list[Array] | None]:
    """Return the function that runs a plan for arrays in the order of its inputs, as `entered` does.

    Its results are new arrays in the order of the outputs. The plan has no evaluated calls. What `entered`
    does is written out again without names, buffers and commits: a run of a stage takes little longer.
    """
    fixed, frames, enter, last, moves = (
        runs.outputs,
        runs.frames,
        entrance(runs.target),
        runs.last,
        runs.moves,
    )

    def run(arrays: Sequence[Any], /) -> list[Array] | None:
        try:
            frame = frames.pop()
        except IndexError:  # concurrent runs use different frames
            frame = runs.frame()
        outputs = fixed
        if moves or frame.team_memory != frame.team.memory:
            adapted = runs.adapted(frame, arrays)
            if adapted is None:
                return None
            frame, outputs = adapted
        block, at = frame.numbers, FIRST
        for array in arrays:
            block[at] = id(array)
            at += INPUT
        results: list[Array] = []
        for _, shape, dtype, place in outputs:
            made = _EMPTY(shape, dtype)
            results.append(made)
            block[place] = id(made)
        block[LAST] = last
        done = enter(frame.address)
        if done == last or (done >= 0 and runs.finished(frame, done, last)):
            frames.append(frame)  # from now on another thread may use it
            return results
        runs.failed(frame)
        return None

    return run


class FedInput(NamedTuple):
    """An input that is fed: its name, its slot, its feed in the last run, and its type in the pattern."""

    name: str
    slot: int
    feed: Array
    kind: TensorType


class RunFrame(Frame):
    """The memory of one run: its binding and its arena."""

    __slots__ = ("arena", "binding", "rows_address", "slots", "table_address", "tail")

    def __init__(
        self, program: CompiledProgram, layout: PartLayout, sizes: RunSizes, team: Team, control: Control,
        inputs: Sequence[InputSpec], outputs: Sequence[int], *, allowed: Budget,
    ) -> None:  # fmt: skip
        self.binding = binding = Binding(program)
        self.arena = binding.bind_arena(program.parts[0], layout, team.threads)[0]
        binding.bind_known(sizes)
        binding.bind_keys(sizes)
        binding.limit(allowed)
        super().__init__(team, layout.rows, binding.table, control, inputs, outputs)
        self.table_address, self.rows_address = binding.table.ctypes.data, layout.rows.ctypes.data
        self.end_with(None)

    def end_with(self, tail: Tail | None) -> None:
        """Set the calls after all kernels, whose values by slot the frame has."""
        self.tail = tail
        self.slots: list[Any] = [] if tail is None else tail.slots(self.arena)


class _DrawnFrames(list[RunFrame]):  # ruff: ignore[subclass-builtin]  nothing but `pop` is called
    """A list of frames that draws new random words for a frame before it is reused."""

    def pop(self, index: SupportsIndex = -1, /) -> RunFrame:
        frame = super().pop(index)
        frame.binding.draw()
        return frame


def fast_run(
    program: CompiledProgram, layout: PartLayout | None, sizes: RunSizes,
    names: Sequence[tuple[str, int, Array]], outputs: Sequence[tuple[str, int]], control: Control,
    *, allowed: Budget, limits: Limits | None = None,
) -> FastRun | None:  # fmt: skip
    """Return the fast runs for the shapes of a run on the slow path, as `runs_of`; None if there are none."""
    runs = runs_of(program, layout, sizes, names, outputs, control, allowed=allowed, limits=limits)
    if runs is None:
        return None
    return FastRun(entered(runs, [name for name, _, _ in names]), control, runs.in_place)


def runs_of(
    program: CompiledProgram, layout: PartLayout | None, sizes: RunSizes,
    names: Sequence[tuple[str, int, Array]], outputs: Sequence[tuple[str, int]], control: Control,
    *, allowed: Budget, limits: Limits | None = None,
) -> Runs | None:  # fmt: skip
    """Return the state of fast runs for the shapes of a run on the slow path; None if there are none.

    Loops of a run may spend what is `allowed`. The calls of the tail are evaluated under `limits`.
    """
    if layout is None or not works(program.target):
        return None
    if program.is_native:
        around, native = None, outputs
    else:
        from sabir.compilation.runtime.around import around_kernels  # ruff: ignore[import-outside-top-level]  few plans have calls

        around = around_kernels(program, [(slot, x.dtype) for _, slot, x in names], outputs, limits)
        if around is None:
            return None
        native = around.native
    if not are_plain(program, native):
        return None
    return Runs(program, layout, sizes, names, outputs, control, allowed=allowed, around=around)


def are_plain(program: CompiledProgram, outputs: Sequence[tuple[str, int]]) -> bool:
    """Return whether kernels write each output into an array of its own, row by row."""
    plain = [program.plan.outputs.get(slot) for _, slot in outputs]
    return all(b is not None and b.strides is None for b in plain) and len({*plain}) == len(plain)


class _Memory:
    """The memory of feeds. Two arrays that own their memory do not overlap, which saves most comparisons."""

    def __init__(self, feeds: Sequence[Any]) -> None:
        self._arrays: list[Array] = [feed for feed in feeds if isinstance(feed, np.ndarray)]
        self._views = [array for array in self._arrays if not owns_memory(array)]
        self._numbers = set(map(id, self._arrays))

    def shares(self, buffer: Array) -> bool:
        """Return whether a buffer may overlap a feed."""
        if id(buffer) in self._numbers:
            return True
        others = self._views if owns_memory(buffer) else self._arrays
        return bool(others) and any(np.may_share_memory(buffer, array) for array in others)


def _fitting(buffer: Array, shape: tuple[int, ...], dtype: np.dtype[Any], feeds: _Memory) -> Array | None:
    """Return the buffer if kernels can write an output into it, else None: it must not overlap a feed."""
    if buffer.shape != shape or buffer.dtype != dtype:
        return None
    return None if feeds.shares(buffer) else buffer


def _nothing() -> None:
    """Do nothing between the slices of a run without a deadline: Python has handled signals by then."""


def team_for(program: CompiledProgram, sizes: RunSizes) -> Team:
    """Return the team for a plan: a single thread if the plan has little work."""
    little = work_of(program.plan, sizes) < program.plan.single_work
    return team(1, program.target) if little else program.team


def work_of(plan: KernelPlan, sizes: RunSizes) -> int:
    """Return the operations plus the bytes of buffers, of all entries that threads can share."""
    entries = [e for e in plan.entries if isinstance(e, Entry) and not e.alone]
    return sum(sizes(e.flops) + sum(sizes(b.size) for b in e.buffers) for e in entries)
