"""The entries of branches and loops: rows that choose the next row, and between them those of subgraphs.

A branch:             A loop:
      choice ── other       start
      entries of one        test ─────── end    (1)
      jump ──── end         entries of the body
    other:                  next ─────── (1)
      entries of the other end:
    end:                    copies of the last states

Both branches write their results into the same memory. An iteration reads the states of its loop from one
tensor and writes them into another one; then rows exchange the addresses in the table of buffers, and no
state is copied. Stacked results are written to their places in the stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.compilation.backends.cpu.control.kernel import Choice, Jump, LoopEnd, LoopNext, LoopStart, LoopTest
from sabir.compilation.backends.cpu.jobs import work_of_an_iteration
from sabir.compilation.backends.cpu.reaches import values_of
from sabir.compilation.frontend.control import LoweredBranch
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.entries import BufferNumber, Computed, Entry, Offset, Place, count_of, start_of
from sabir.loops import element_bytes
from sabir.scheduling import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.frontend.control import Inner, LoweredLoop
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.entries import Buffer, EvaluatedEntry
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Size, Sizes

    ControlKernel = Choice | Jump | LoopStart | LoopTest | LoopNext | LoopEnd

_NODES = 4  # nodes of a subgraph that cost as much as one iteration, as limits count


def add_control(builder: PlanBuilder, group: Group) -> None:
    """Add the entries of a call with control flow."""
    control = builder.lowered.controls[group.place]
    call = builder.lowered.prepared.program.calls[group.place]
    results = [None if slot == ABSENT else builder.lowered.expressions[slot] for slot in call.outputs]
    buffers = [None if x is None else builder.buffer(x) for x in results]
    builder.works += [ComputedTensor(x.shape, element_bytes(x.element)) for x in results if x is not None]
    rows = _Rows(builder, call.label)
    if isinstance(control, LoweredBranch):
        _add_branch(rows, control, buffers)
    else:
        _add_loop(rows, control, buffers)


class _Rows:
    """Adds the rows of control flow of one call to a plan."""

    def __init__(self, builder: PlanBuilder, label: str) -> None:
        self.builder, self.label = builder, label

    def add(
        self, kernel: ControlKernel, target: Place, values: Mapping[str, Packable], buffers: Sequence[Buffer]
    ) -> None:
        """Add a row that may jump to a place; it uses some buffers."""
        block = kernel.signature.pack(values)
        entry = Entry([(None, 0, kernel, block)], nodes=(self.label,), alone=True, jumps=target)
        for buffer in buffers:
            self.builder.use(buffer, entry)
        self.builder.entries.append(entry)

    def reach(self, place: Place) -> None:
        """Set a place to that of the next entry."""
        place.entry = len(self.builder.entries)

    def operand(self, slot: int) -> Buffer:
        """Return the buffer of an operand, which fusion has made a whole tensor."""
        return self.builder.buffer(self.builder.lowered.expressions[slot])

    def inner(self, inner: Inner, inputs: Mapping[int, Buffer], results: Sequence[Buffer | None]) -> None:
        """Add the entries of a subgraph; a result without a buffer gets memory that nothing reads."""
        given = {**inputs, **{own: self.operand(outer) for outer, own in inner.captures}}
        shapes = inner.shapes()
        written = [
            self.builder.memory("arena", *shape) if buffer is None else buffer
            for buffer, shape in zip(_padded(results, len(shapes)), shapes, strict=True)
        ]
        self.builder.plan_inner(inner, given, written, self.label)

    def is_first(self) -> int:
        """Return 1 if no row of the plan has counted iterations before, else 0."""
        return int(not any(isinstance(e, Entry) and e.jumps is not None for e in self.builder.entries))


def _add_branch(rows: _Rows, control: LoweredBranch, results: Sequence[Buffer | None]) -> None:
    other, end = Place(), Place()
    condition = rows.operand(control.condition)
    cost, fresh = max(map(_cost, control.inners)), rows.is_first()
    rows.add(Choice(), other, {"condition": start_of(condition), "cost": cost, "fresh": fresh}, [condition])
    rows.inner(control.chosen, {}, results)
    rows.add(Jump(), end, {}, [])
    rows.reach(other)
    rows.inner(control.otherwise, {}, results)
    rows.reach(end)


def _add_loop(rows: _Rows, control: LoweredLoop, results: Sequence[Buffer | None]) -> None:
    loop = _Loop(rows, control, results)
    test, again, end = Place(), Place(), Place()
    loop.start(test)
    rows.reach(test)
    rows.reach(again)
    opened = len(rows.builder.entries)
    loop.test(end)
    loop.body()
    loop.add_next(again)
    _keep_alive(rows.builder.entries, opened)
    rows.reach(end)
    loop.end(results)


class _Loop:
    """The memory of one loop: the number of the iteration, two tensors for each state, and the stacks.

    The first state is the condition. An iteration reads the buffers `_read`, and writes `_written`.
    """

    def __init__(self, rows: _Rows, control: LoweredLoop, results: Sequence[Buffer | None]) -> None:
        self._rows, self._control, self._body = rows, control, control.body
        make, shapes = rows.builder.memory, control.body.shapes()
        self._first = [*self._condition(), *map(rows.operand, control.states)]
        carried = len(self._first)
        states, items = shapes[:carried], shapes[carried:]
        self._read, self._written = ([make("moved", *shape) for shape in states] for _ in range(2))
        self._memories, self._others = ([make("arena", *shape) for shape in states] for _ in range(2))
        self._items = [make("moved", *shape) for shape in items]
        stacks = _padded(results[len(control.states) :], len(items))
        # items without a stack are written over each other
        self._stacks = [
            make("arena", *item) if s is None else s for s, item in zip(stacks, items, strict=True)
        ]
        self._steps = [0 if s is None else item.size for s, item in zip(stacks, self._items, strict=True)]
        self._sources = [*map(rows.operand, control.slices)]
        self._slices = [make("moved", x.element, x.shape[1:]) for x in self._sources]
        self._number = make("arena", "int64", () if control.slices else _shape_of(control.body, 0))

    def _condition(self) -> list[Buffer]:
        """Return the condition before the first iteration; nothing for a loop over slices, which has none."""
        control, rows = self._control, self._rows
        if control.slices:
            return []
        if control.condition is None:
            return [rows.builder.constant(np.ones((), np.bool_))]
        return [rows.operand(control.condition)]

    def start(self, following: Place) -> None:
        """Add the row before all iterations."""
        moves = [
            *zip(self._read, self._first, strict=True),
            *zip(self._written, self._memories, strict=True),
            *zip(self._items, self._stacks, strict=True),
        ]
        starts: list[Mapping[str, Packable]] = [
            {"buffer": BufferNumber(b), "tensor": start_of(tensor)} for b, tensor in moves
        ]
        for item, source, backward in zip(self._slices, self._sources, self._control.backward, strict=True):
            last = item.size * (source.shape[0] - 1) if backward else 0
            starts.append({
                "buffer": BufferNumber(item),
                "tensor": [BufferNumber(source), Offset(source, last)],
            })
        values: dict[str, Packable] = {
            "number": start_of(self._number), "fresh": self._rows.is_first(), "count": len(starts),
            "moves": starts,
        }  # fmt: skip
        self._rows.add(LoopStart(), following, values, [*self._memory(), *self._stacks])

    def test(self, end: Place) -> None:
        """Add the row before each iteration."""
        control = self._control
        limit = None if control.limit is None else self._rows.operand(control.limit)
        values: dict[str, Packable] = {
            "number": start_of(self._number), "limit": None if limit is None else start_of(limit),
            "iterations": 0 if control.count is None else control.count,
            "condition": 0 if control.condition is None else BufferNumber(self._read[0]),
            "cost": _cost(self._body), "work": _work(self._body),
        }  # fmt: skip
        loops = self._rows.builder.shared.loops
        loops.append(f"{self._rows.builder.path}{self._rows.label}")
        values["loop"] = len(loops) - 1
        kernel = LoopTest(
            limited=limit is not None,
            conditional=control.condition is not None,
            counted=control.count is not None,
        )
        self._rows.add(kernel, end, values, [self._number, *([] if limit is None else [limit])])

    def body(self) -> None:
        """Add the entries of the body."""
        first = [] if self._control.slices else [self._number]
        inputs = dict(zip(self._body.inputs, [*first, *self._read, *self._slices], strict=True))
        self._rows.inner(self._body, inputs, [*self._written, *self._items])

    def add_next(self, again: Place) -> None:
        """Add the row after each iteration."""
        steps: list[Mapping[str, Packable]] = [
            {"read": BufferNumber(r), "written": BufferNumber(w), "second": start_of(second), "bytes": 0}
            for r, w, second in zip(self._read, self._written, self._others, strict=True)
        ]
        steps += [
            {"read": 0, "written": BufferNumber(item), "second": None, "bytes": size}
            for item, size in zip(self._items, self._steps, strict=True)
        ]
        steps += [
            {"read": 0, "written": BufferNumber(x), "second": None, "bytes": x.size * (-1 if backward else 1)}
            for x, backward in zip(self._slices, self._control.backward, strict=True)
        ]
        values: dict[str, Packable] = {
            "number": start_of(self._number), "states": len(self._read), "count": len(steps), "steps": steps,
        }  # fmt: skip
        self._rows.add(LoopNext(), again, values, [*self._memory(), *self._stacks])

    def end(self, results: Sequence[Buffer | None]) -> None:
        """Add the row after all iterations."""
        states = self._read[len(self._read) - len(self._control.states) :]
        copies = [(r, to) for r, to in zip(states, results, strict=False) if to is not None]
        values: dict[str, Packable] = {
            "count": len(copies),
            "results": [
                {"read": BufferNumber(r), "target": start_of(to), "bytes": to.size} for r, to in copies
            ],
        }
        following = Place(len(self._rows.builder.entries) + 1)
        self._rows.add(LoopEnd(), following, values, [*self._memory(), *(to for _, to in copies)])

    def _memory(self) -> list[Buffer]:
        """Return what lives from the first row to the last."""
        return [self._number, *self._first, *self._memories, *self._others, *self._sources]


def _keep_alive(entries: Sequence[Entry | EvaluatedEntry], opened: int) -> None:
    """Let buffers from before the loop live until its last row: each iteration reads them again."""
    for entry in entries[opened:]:
        for buffer in entry.buffers if isinstance(entry, Entry) else ():
            if buffer.first < opened:
                buffer.use(len(entries) - 1)


def _cost(inner: Inner) -> int:
    return 1 + inner.cost // _NODES


def _work(body: Inner) -> Computed:
    total: Size = 0
    for value in values_of(body.lowered):
        total += count_of(value.shape) * (value.width + value.work)
    return Computed(work_of_an_iteration, (total,))


def _shape_of(body: Inner, place: int) -> Sizes:
    return body.lowered.expressions[body.inputs[place]].shape


def _padded(results: Sequence[Buffer | None], count: int) -> list[Buffer | None]:
    """Return the buffers of results that the call names, and None for others up to `count`."""
    return [*results, *[None] * (count - len(results))]
