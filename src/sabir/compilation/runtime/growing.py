"""Fast runs whose sizes change from run to run, as those of a decoder with one more token each time.

A frame has a layout with room for somewhat larger sizes (`plan/relayout`), and follows the shapes of the
feeds. When they outgrow it, the next frame has a quarter more room. A frame remembers the sizes that it has
followed: the numbers of results that runs decide are often the same again.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.compilation.native._entrance import InputSpec, works
from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.plan.relayout import Condition, MovingLayout, Outgrown
from sabir.compilation.runtime.fast import FastRun, RunFrame, RunOutput, Runs, are_plain, entered
from sabir.elements import element
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.base import Budget, Limits
    from sabir.compilation.native import Control
    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import PartLayout
    from sabir.compilation.plan.relayout import LayoutState
    from sabir.compilation.plan.size_table import SizeTable
    from sabir.compilation.runtime.around import Around
    from sabir.compilation.runtime.fast import FedInput
    from sabir.compilation.runtime.program import CompiledProgram
    from sabir.compilation.runtime.tail import Tail
    from sabir.ir import Array, TensorType

_MOST_PAST = 1 << 22  # bytes of earlier sizes that a frame remembers
_LEAST_ROOM = 64  # further elements of a growing axis that a frame has room for


class _Known(NamedTuple):
    """A tensor that sizes determine: the number of its buffer, its elements, the rows of its sizes.

    `places` are the elements that are sizes, of the rows `items`; the others are numbers of any type.
    """

    number: int
    elements: Array
    shape: list[int]
    places: list[int]
    items: list[int]


def growing_run(
    program: CompiledProgram, sizes: Mapping[str, int], last: Mapping[str, int], fed: Sequence[FedInput],
    outputs: Sequence[tuple[str, int]], control: Control, allowed: Budget, *,
    limits: Limits | None = None,
) -> FastRun | None:  # fmt: skip
    """Return the fast runs of a plan for feeds of any sizes, as `growing_runs`; None if there are none."""
    runs = growing_runs(program, sizes, last, fed, outputs, control, allowed, limits=limits)
    if runs is None:
        return None
    return FastRun(entered(runs, [each.name for each in fed]), control, runs.in_place)


def growing_runs(
    program: CompiledProgram, sizes: Mapping[str, int], last: Mapping[str, int], fed: Sequence[FedInput],
    outputs: Sequence[tuple[str, int]], control: Control, allowed: Budget, *,
    limits: Limits | None = None,
) -> Runs | None:  # fmt: skip
    """Return the state of fast runs of a plan for feeds of any sizes; None if there are none.

    `allowed` is what a run may spend, `last` are the sizes of an earlier run. The symbols whose sizes differ
    in both get more room than they need. Calls around the kernels are evaluated under `limits`.
    """
    if not works(program.target) or len(program.parts) != 1:
        return None
    around = None
    if not program.is_native:
        from sabir.compilation.runtime.around import around_kernels  # ruff: ignore[import-outside-top-level]  few plans have calls

        around = around_kernels(program, [(each.slot, each.feed.dtype) for each in fed], outputs, limits)
        if around is None:
            return None
    if not are_plain(program, outputs if around is None else around.native):
        return None
    if not all(isinstance(i, (int, Expr)) for items in program.executable.known.values() for i in items):
        return None
    try:
        return _GrowingRuns(program, sizes, last, fed, outputs, control, allowed, around=around)
    except Mismatch:
        return None


class _Past(NamedTuple):
    """A layout for earlier sizes, the tensors that these determine, the results, and the calls at the end.

    `slots` are the values of these calls, `more` are the shapes of what kernels read beside feeds.
    """

    state: LayoutState
    tensors: list[Array]
    results: Sequence[RunOutput]
    more: Sequence[tuple[int, ...]]
    tail: Tail | None
    slots: list[Any]


class _GrowingFrame(RunFrame):
    """A frame with its own layout, and the shapes of feeds that this is for."""

    __slots__ = (
        "fed",
        "known",
        "more_rows",
        "moving",
        "past",
        "result_bytes",
        "result_rows",
        "results",
        "room",
        "tensors",
    )

    def __init__(self, runs: _GrowingRuns, moving: MovingLayout, sizes: RunSizes) -> None:
        super().__init__(*runs.frame_arguments(moving.layout, sizes), allowed=runs.allowed)
        self.moving = moving
        self.fed: list[tuple[int, ...]] = []
        self.results: Sequence[RunOutput] = ()
        table = moving.table
        self.known = [_known(buffer, items, table) for buffer, items in runs.known]
        self.tensors: list[Array] = []
        self.result_rows = [table.rows(buffer.shape) for buffer in runs.result_buffers]
        self.more_rows = [table.rows(buffer.shape) for buffer in runs.more_buffers]
        self.result_bytes = table.rows(buffer.size for buffer in runs.result_buffers)
        self.past: dict[tuple[tuple[int, ...], ...], _Past] = {}
        self.room = _MOST_PAST  # bytes that further sizes may take in `past`

    def remember(self, shapes: tuple[tuple[int, ...], ...], past: _Past) -> None:
        """Remember the sizes of the layout, as those of feeds of some shapes."""
        self.room -= past.state.nbytes + sum(x.nbytes for x in past.tensors)
        if self.room >= 0:
            self.past[shapes] = past

    def return_to(self, past: _Past) -> None:
        """Return the layout to earlier sizes."""
        self.moving.restore(past.state)
        self.bind_known(past.tensors)

    def bind_known(self, tensors: list[Array]) -> None:
        """Bind the tensors that sizes determine."""
        self.tensors = tensors
        table = self.binding.table
        for known, array in zip(self.known, self.tensors, strict=True):
            table[known.number] = array.ctypes.data


def _known(buffer: Buffer, items: Sequence[Any], table: SizeTable) -> _Known:
    places = [place for place, item in enumerate(items) if isinstance(item, Expr)]
    numbers = [0 if isinstance(item, Expr) else item for item in items]
    elements: Array = np.array(numbers).astype(element(buffer.element).dtype)
    rows = table.rows(items[place] for place in places)
    return _Known(buffer.number, elements, table.rows(buffer.shape), places, rows)


def _tensor(known: _Known, values: Array) -> Array:
    """Return a tensor for new sizes."""
    array = known.elements.copy()
    array[known.places] = values[known.items]
    return array.reshape(tuple(values[known.shape].tolist()))


class _GrowingRuns(Runs):
    """The state that the runs of a plan for all sizes share."""

    def __init__(
        self, program: CompiledProgram, sizes: Mapping[str, int], last: Mapping[str, int],
        fed: Sequence[FedInput], outputs: Sequence[tuple[str, int]], control: Control, allowed: Budget, *,
        around: Around | None,
    ) -> None:  # fmt: skip
        self._growing = {name for name, size in sizes.items() if last.get(name) != size}
        self._symbols = dict(sizes)
        self._kinds = [_axes(each.kind) for each in fed]
        self._sized = [n for n, each in enumerate(fed) if each.kind.known is not None]
        executable = program.executable
        self._conditions = [
            Condition(*guard) for guard in executable.guards if _symbols_of(guard) <= executable.symbols
        ]
        self.known: list[tuple[Buffer, Sequence[Any]]] = [
            (buffer, executable.known[buffer.slot])
            for buffer in program.plan.buffers
            if buffer.kind == "known"
        ]
        self._owner = program
        moving = self._moving_layout(program, sizes)
        super().__init__(
            program, moving.layout, RunSizes(sizes), [(e.name, e.slot, e.feed) for e in fed], outputs,
            control, allowed=allowed, around=around,
        )  # fmt: skip
        self.moves = True
        native = outputs if around is None else around.native
        self.result_buffers = [program.plan.outputs[slot] for _, slot in native]
        self.more_buffers = [] if around is None else around.buffers

    def frame_arguments(self, layout: PartLayout, sizes: RunSizes) -> tuple[Any, ...]:
        """Return the arguments of a frame with a layout."""
        inputs = list(starmap(InputSpec, self._inputs))
        return self._program, layout, sizes, self._team, self._control, inputs, self._slots

    def frame(self) -> RunFrame:
        """Return a new frame, with room for more than the latest sizes."""
        return _GrowingFrame(self, self._moving_layout(self._owner, self._symbols), RunSizes(self._symbols))

    def _moving_layout(self, program: CompiledProgram, sizes: Mapping[str, int]) -> MovingLayout:
        room = {
            name: size + max(size // 4, _LEAST_ROOM) if name in self._growing else size
            for name, size in sizes.items()
        }
        return program.moving_layout(sizes, room, self._conditions)

    def adapted(
        self, frame: RunFrame, arrays: Sequence[Any], /
    ) -> tuple[RunFrame, Sequence[RunOutput]] | None:
        """Return a frame that is laid out for some feeds, and its outputs; None if there is none."""
        if frame.team_memory != frame.team.memory:
            frame = self.frame()
        if not isinstance(frame, _GrowingFrame):
            raise TypeError("a growing run has growing frames")
        shapes = self._shapes_of(arrays)
        if shapes is not None and shapes == frame.fed:
            return frame, frame.results
        symbols = None if shapes is None else self._sizes_of(shapes)
        if shapes is None or symbols is None:
            self.frames.append(frame)
            return None
        try:
            return self._moved(frame, shapes, symbols)
        except Outgrown:
            return self._anew(shapes, symbols)
        except Mismatch:
            self.frames.append(frame)
            return None

    def _anew(
        self, shapes: list[tuple[int, ...]], symbols: dict[str, int]
    ) -> tuple[RunFrame, Sequence[RunOutput]] | None:
        """Return a new frame for sizes that have outgrown the last one."""
        self._growing |= {name for name, size in symbols.items() if self._symbols[name] != size}
        self._symbols = symbols
        try:
            made = self.frame()
            return self._moved(made, shapes, symbols) if isinstance(made, _GrowingFrame) else None
        except Mismatch:
            return None

    def _shapes_of(self, arrays: Sequence[Any]) -> list[tuple[int, ...]] | None:
        """Return the shapes of feeds, with the contents of those that are sizes; None if one is no array."""
        try:
            shapes = [array.shape for array in arrays[: len(self._kinds)]]
            for number in self._sized:
                shapes[number] = *shapes[number], int(arrays[number].item())
        except (AttributeError, ValueError):
            return None
        return shapes

    def _moved(
        self, frame: _GrowingFrame, shapes: list[tuple[int, ...]], symbols: Mapping[str, int]
    ) -> tuple[RunFrame, Sequence[RunOutput]] | None:
        """Lay a frame out for other sizes; None if the run may exceed the limits."""
        frame.fed = []  # while the layout is incomplete
        key, layout = tuple(shapes), frame.moving.layout
        past = frame.past.get(key)
        if past is not None:
            frame.return_to(past)
            return self._fed(frame, shapes, past)
        values = frame.moving.move(symbols)
        results = [
            output._replace(shape=tuple(values[row].tolist()))
            for output, row in zip(self.outputs, frame.result_rows, strict=True)
        ]
        needs, most = frame.moving.needs(values), self.allowed
        size = layout.arena_bytes + layout.scratch_bytes * self._program.threads
        size += int(values[frame.result_bytes].sum())
        if needs.elements > most.elements or needs.charge > most.work or size > most.memory:
            return None
        frame.bind_known([_tensor(known, values) for known in frame.known])
        more = [tuple(values[row].tolist()) for row in frame.more_rows]
        tail = None if self.around is None else self.around.tail(layout, RunSizes(symbols))
        slots = [] if tail is None else tail.slots(frame.arena)
        found = _Past(frame.moving.state(), frame.tensors, results, more, tail, slots)
        frame.remember(key, found)
        return self._fed(frame, shapes, found)

    @staticmethod
    def _fed(
        frame: _GrowingFrame, shapes: list[tuple[int, ...]], past: _Past
    ) -> tuple[RunFrame, Sequence[RunOutput]]:
        """Return a frame that has the layout for feeds of some shapes, and its outputs."""
        for sizes, shape in zip(frame.shapes, [*shapes, *past.more], strict=True):
            sizes[:] = shape[: len(sizes)]
        frame.tail, frame.slots = past.tail, past.slots
        frame.fed, frame.results = shapes, past.results
        return frame, past.results

    def _sizes_of(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int] | None:
        """Return the sizes of feeds by symbol; None if they have another pattern."""
        found: dict[str, int] = {}
        for axes, shape in zip(self._kinds, shapes, strict=True):
            if len(axes) != len(shape):
                return None
            for axis, size in zip(axes, shape, strict=True):
                if isinstance(axis, int):
                    if axis != size:
                        return None
                elif size <= 1 or found.setdefault(axis, size) != size:
                    return None
        return found


def _axes(kind: TensorType) -> tuple[int | str, ...]:
    """Return the shape of a type in a pattern, and its contents if sizes depend on them."""
    sizes = (*(kind.shape or ()), *(kind.known or ()))
    return tuple(axis if isinstance(axis, int) else str(axis) for axis in sizes)


def _symbols_of(guard: Any) -> set[str]:
    return {name for size in (guard.chosen, *guard.others) if isinstance(size, Expr) for name in size.symbols}


__all__ = ["growing_run", "growing_runs"]
