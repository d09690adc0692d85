"""The entrance of fast runs: native code that reads the addresses in array objects, and runs a plan.

Python passes the ids of the arrays, which are their addresses. The entrance returns -1 unless each input is a
C-contiguous numpy array with the dtype object and the shape of the plan's layout. After the run it returns
the next row, or -2 if the run counted an error or was cancelled. It reads the fields of numpy's array object,
whose offsets are part of numpy's ABI; `works` tests them once.

A run that writes results over feeds stops before those rows. Another function then runs them to the end, and
cannot be cancelled.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.compilation.native._records import Record, fields, native_function, with_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.native._target import Target
    from sabir.compilation.native._team import Control, Team

_FRAME = fields(
    "run", "team", "rows", "last", "buffers", "control", "inputs", "outputs", "type", "header", "end",
    "first",
)  # fmt: skip
_INPUT = fields("object", "slot", "rank", "dtype", "sizes")
_OUTPUT = fields("object", "slot")
LAST, FIRST = _FRAME["last"], _FRAME["first"]  # places of the number of rows, and of the first input
INPUT, OUTPUT = len(_INPUT), len(_OUTPUT)

ENTRANCE_TEXT = with_fields(
    """
define i64 @kernel(ptr %frame) {
entry:
  %count = field i64 %frame.inputs
  %outputs = field i64 %frame.outputs
  %type = field ptr %frame.type
  %header = field i64 %frame.header
  %buffers = field ptr %frame.buffers
  %inputs = field at %frame.first
  %before = sub i64 %header, 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %fits ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %input, label %results
input:
  %start = mul i64 %i, 5
  %at = getelementptr i64, ptr %inputs, i64 %start
  %object = field ptr %at.object
  %slot = field i64 %at.slot
  %rank = field i64 %at.rank
  %dtype = field ptr %at.dtype
  %sizes = field ptr %at.sizes
  %its_type_at = getelementptr i8, ptr %object, i64 %before
  %its_type = load ptr, ptr %its_type_at
  %is_array = icmp eq ptr %its_type, %type
  br i1 %is_array, label %array, label %differs
array:
  %fields = getelementptr i8, ptr %object, i64 %header
  %data = load ptr, ptr %fields
  %its_rank_at = getelementptr i8, ptr %fields, i64 8
  %its_rank = load i32, ptr %its_rank_at
  %wide = zext i32 %its_rank to i64
  %its_sizes_at = getelementptr i8, ptr %fields, i64 16
  %its_sizes = load ptr, ptr %its_sizes_at
  %its_dtype_at = getelementptr i8, ptr %fields, i64 40
  %its_dtype = load ptr, ptr %its_dtype_at
  %flags_at = getelementptr i8, ptr %fields, i64 48
  %flags = load i32, ptr %flags_at
  %by_row = trunc i32 %flags to i1
  %same_rank = icmp eq i64 %wide, %rank
  %same_dtype = icmp eq ptr %its_dtype, %dtype
  %both = and i1 %same_rank, %same_dtype
  %all = and i1 %both, %by_row
  br i1 %all, label %axis, label %differs
axis:
  %a = phi i64 [ 0, %array ], [ %a1, %equal ]
  %another = icmp ult i64 %a, %rank
  br i1 %another, label %compare, label %fits
compare:
  %mine_at = getelementptr i64, ptr %sizes, i64 %a
  %mine = load i64, ptr %mine_at
  %its_at = getelementptr i64, ptr %its_sizes, i64 %a
  %its = load i64, ptr %its_at
  %a1 = add i64 %a, 1
  %same = icmp eq i64 %mine, %its
  br i1 %same, label %equal, label %differs
equal:
  br label %axis
fits:
  %entry_at = getelementptr ptr, ptr %buffers, i64 %slot
  store ptr %data, ptr %entry_at
  %i1 = add i64 %i, 1
  br label %next
results:
  %skipped = mul i64 %count, 5
  %places = getelementptr i64, ptr %inputs, i64 %skipped
  br label %result
result:
  %o = phi i64 [ 0, %results ], [ %o1, %fill ]
  %left = icmp ult i64 %o, %outputs
  br i1 %left, label %fill, label %run
fill:
  %place = mul i64 %o, 2
  %result_at = getelementptr i64, ptr %places, i64 %place
  %made = field ptr %result_at.object
  %made_slot = field i64 %result_at.slot
  %made_fields = getelementptr i8, ptr %made, i64 %header
  %made_data = load ptr, ptr %made_fields
  %made_at = getelementptr ptr, ptr %buffers, i64 %made_slot
  store ptr %made_data, ptr %made_at
  %o1 = add i64 %o, 1
  br label %result
run:
  %function = field ptr %frame.run
  %team = field ptr %frame.team
  %rows = field ptr %frame.rows
  %last = field i64 %frame.last
  %control = field ptr %frame.control
  %none = icmp eq i64 %last, 0
  br i1 %none, label %empty, label %go
go:
  %done = call i64 %function(ptr %team, ptr %rows, i64 0, i64 %last, ptr %buffers, ptr %control)
  %errors_at = load ptr, ptr %buffers
  %errors = load i64, ptr %errors_at
  %word = load i64, ptr %control
  %wrong = or i64 %errors, %word
  %ended = icmp eq i64 %wrong, 0
  %outcome = select i1 %ended, i64 %done, i64 -2
  ret i64 %outcome
empty:
  ret i64 0
differs:
  ret i64 -1
}
""",
    frame=_FRAME,
    at=_INPUT,
    result_at=_OUTPUT,
)

# runs the rows that the entrance left; `end` has the number of all rows, and a control word that stays 0
_LAST_TEXT = with_fields(
    """
define void @kernel(ptr %frame, ptr %word) {
entry:
  %function = field ptr %frame.run
  %team = field ptr %frame.team
  %rows = field ptr %frame.rows
  %first = field i64 %frame.last
  %buffers = field ptr %frame.buffers
  %end = field ptr %frame.end
  %last = load i64, ptr %end
  %never = getelementptr i64, ptr %end, i64 1
  br label %slice
slice:
  %row = phi i64 [ %first, %entry ], [ %next, %slice ]
  %next = call i64 %function(ptr %team, ptr %rows, i64 %row, i64 %last, ptr %buffers, ptr %never)
  %on = icmp slt i64 %next, %last
  br i1 %on, label %slice, label %done
done:
  store atomic i64 1, ptr %word release, align 8
  ret void
}
""",
    frame=_FRAME,
)


@functools.cache
def entrance(target: Target) -> Any:
    """Return the entrance: a function of the address of a frame."""
    return native_function(ENTRANCE_TEXT, target, ctypes.c_int64)


@functools.cache
def finish(target: Target) -> Any:
    """Return the function of (frame address, word address) that runs the last rows and sets the word to 1."""
    return native_function(_LAST_TEXT, target, None, 2)


@functools.cache
def header() -> int:
    """Return the bytes of the header of an object, before the fields of an array."""
    return object.__basicsize__


@functools.cache
def works(target: Target) -> bool:
    """Return whether numpy's arrays have their fields at the offsets that the entrance reads."""
    zeros = np.zeros((3, 5), np.float32)
    buffers = (ctypes.c_int64 * 1)()
    sizes = (ctypes.c_int64 * 2)(3, 5)
    entries = {"buffers": ctypes.addressof(buffers), "inputs": 1, "type": id(np.ndarray), "header": header()}
    given = [id(zeros), 0, 2, id(zeros.dtype), ctypes.addressof(sizes)]
    frame = Record([*(entries.get(name, 0) for name in _FRAME if name != "first"), *given])
    accepted = entrance(target)(frame.address) == 0 and buffers[0] == zeros.ctypes.data
    sizes[1] = 4
    return accepted and entrance(target)(frame.address) == -1


class InputSpec(NamedTuple):
    """An input of a frame: the number of its buffer, its dtype and its shape."""

    buffer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Frame(Record):
    """The arguments of the entrance for one plan, used by one run at a time.

    `buffers` is the table of buffer addresses; the memory that it refers to must outlive the frame. `outputs`
    has the numbers of the buffers of results. `shapes` are the sizes that feeds are compared with, which may
    be changed between runs.
    """

    __slots__ = ("_keep", "shapes", "team", "team_memory")

    def __init__(
        self, team: Team, rows: np.ndarray[Any, Any], buffers: np.ndarray[Any, Any], control: Control,
        inputs: Sequence[InputSpec], outputs: Sequence[int],
    ) -> None:  # fmt: skip
        run, memory = team.entry()
        end = (ctypes.c_int64 * 2)(len(rows), 0)
        block = [
            run, memory, rows.ctypes.data, len(rows), buffers.ctypes.data, control.address,
            len(inputs), len(outputs), id(np.ndarray), header(), ctypes.addressof(end),
        ]  # fmt: skip
        shapes = [(ctypes.c_int64 * len(i.shape))(*i.shape) for i in inputs]
        for spec, sizes in zip(inputs, shapes, strict=True):
            block += [
                0, spec.buffer, len(spec.shape), id(spec.dtype), ctypes.addressof(sizes) if spec.shape else 0,
            ]  # fmt: skip
        for buffer in outputs:
            block += [0, buffer]
        super().__init__(block)
        self.team, self.team_memory, self.shapes = team, memory, shapes
        self._keep = rows, buffers, control, end, [i.dtype for i in inputs]
