"""Repetition: native code that runs the rows of a plan many times, alternating between two buffer tables.

The arguments are a record, see `Repetition`. After each run, the code does the copies of the record,
increments the run number, and reads a byte that the run computed: 0 ends the loop. The code returns after the
requested number of runs, or earlier if that byte is 0, if a run counted an error, or if a slice of time is
over: then the next call continues at the next row.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.compilation.native._records import Record, fields, native_function, with_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.native._team import Control, Team

_BLOCK = fields(
    "run", "team", "rows", "last", "control", "table", "other_table", "side", "left", "number", "again",
    "other_again", "row", "stopped", "count", "first",
)  # fmt: skip
_COPY = fields("source", "other_source", "target", "other_target", "size", "moves")  # by table
_FAILED = -1

_TEXT = with_fields(
    """
define i64 @kernel(ptr %block) {
entry:
  %run = field ptr %block.run
  %team = field ptr %block.team
  %rows = field ptr %block.rows
  %last = field i64 %block.last
  %control = field ptr %block.control
  %side_at = field at %block.side
  %left = field i64 %block.left
  %number = field ptr %block.number
  %row_at = field at %block.row
  %stopped_at = field at %block.stopped
  %count = field i64 %block.count
  %copies = field at %block.first
  br label %step
step:
  %n = phi i64 [ 0, %entry ], [ %n1, %counted ], [ %n1, %asked ]
  %more = icmp slt i64 %n, %left
  br i1 %more, label %go, label %done
go:
  %side = load i64, ptr %side_at
  %table_place = add i64 %side, 5
  %table_at = getelementptr i64, ptr %block, i64 %table_place
  %table = load ptr, ptr %table_at
  %first = load i64, ptr %row_at
  %row = call i64 %run(ptr %team, ptr %rows, i64 %first, i64 %last, ptr %table, ptr %control)
  store i64 %row, ptr %row_at
  %whole = icmp eq i64 %row, %last
  br i1 %whole, label %ended, label %done
ended:
  %errors_at = load ptr, ptr %table
  %errors = load i64, ptr %errors_at
  %wrong = icmp ne i64 %errors, 0
  br i1 %wrong, label %failed, label %fine
failed:
  store i64 -1, ptr %row_at
  ret i64 %n
fine:
  store i64 0, ptr %row_at
  br label %next
next:
  %c = phi i64 [ 0, %fine ], [ %c1, %moved ]
  %another = icmp ult i64 %c, %count
  br i1 %another, label %copy, label %copied
copy:
  %start = mul i64 %c, 6
  %at = getelementptr i64, ptr %copies, i64 %start
  %source_at = getelementptr i64, ptr %at, i64 %side
  %source = load ptr, ptr %source_at
  %target_at = field at %at.target
  %own_target_at = getelementptr i64, ptr %target_at, i64 %side
  %target = load ptr, ptr %own_target_at
  %bytes = field i64 %at.size
  %moves = field i64 %at.moves
  %words = and i64 %bytes, -8
  br label %word
word:
  %w = phi i64 [ 0, %copy ], [ %w1, %put ]
  %has_word = icmp ult i64 %w, %words
  br i1 %has_word, label %put, label %byte
put:
  %word_from = getelementptr i8, ptr %source, i64 %w
  %word_to = getelementptr i8, ptr %target, i64 %w
  %x = load i64, ptr %word_from, align 1
  store i64 %x, ptr %word_to, align 1
  %w1 = add i64 %w, 8
  br label %word
byte:
  %b = phi i64 [ %words, %word ], [ %b1, %put_byte ]
  %has_byte = icmp ult i64 %b, %bytes
  br i1 %has_byte, label %put_byte, label %moved
put_byte:
  %byte_from = getelementptr i8, ptr %source, i64 %b
  %byte_to = getelementptr i8, ptr %target, i64 %b
  %y = load i8, ptr %byte_from
  store i8 %y, ptr %byte_to
  %b1 = add i64 %b, 1
  br label %byte
moved:
  %other_at = getelementptr i64, ptr %target_at, i64 1
  %t0 = load i64, ptr %target_at
  %t1 = load i64, ptr %other_at
  %u0 = add i64 %t0, %moves
  %u1 = add i64 %t1, %moves
  store i64 %u0, ptr %target_at
  store i64 %u1, ptr %other_at
  %c1 = add i64 %c, 1
  br label %next
copied:
  %old = load i64, ptr %number
  %new = add i64 %old, 1
  store i64 %new, ptr %number
  %again_place = add i64 %side, 10
  %again_at = getelementptr i64, ptr %block, i64 %again_place
  %again = load ptr, ptr %again_at
  %other = xor i64 %side, 1
  store i64 %other, ptr %side_at
  %n1 = add i64 %n, 1
  %always = icmp eq ptr %again, null
  br i1 %always, label %counted, label %asked
counted:
  br label %step
asked:
  %going = load i8, ptr %again
  %goes = icmp ne i8 %going, 0
  br i1 %goes, label %step, label %stop
stop:
  store i64 1, ptr %stopped_at
  ret i64 %n1
done:
  ret i64 %n
}
""",
    block=_BLOCK,
    at=_COPY,
)


class MemoryCopy(NamedTuple):
    """A copy after each run: `size` bytes; after it, both targets are increased by `moves` bytes.

    `sources` and `targets` are the addresses for runs with the first and the second table.
    """

    sources: tuple[int, int]
    targets: tuple[int, int]
    size: int
    moves: int


class Repeatedly(NamedTuple):
    """The rows of a plan, its team, the two buffer tables, and the control that cancels runs."""

    team: Team
    rows: Any
    tables: tuple[Any, Any]
    control: Control


class Repetition:
    """The repeated runs of a plan; the caller keeps its memory alive.

    `number` is the address of an int64 that counts runs. `again` has, for runs with each table, the address
    of the byte that is 0 if no other run follows; 0 means that there is no such byte.
    """

    def __init__(
        self, plan: Repeatedly, number: int, again: tuple[int, int], copies: Sequence[MemoryCopy]
    ) -> None:
        run, memory = plan.team.entry()
        block = [
            run, memory, plan.rows.ctypes.data, len(plan.rows), plan.control.address,
            *(table.ctypes.data for table in plan.tables), 0, 0, number, *again, 0, 0, len(copies),
        ]  # fmt: skip
        for copy in copies:
            block += [*copy.sources, *copy.targets, copy.size, copy.moves]
        self._record = Record(block)
        self._keep = plan
        self.side = 0  # number of the table of the next run

    def aim(self, copy: int, address: int) -> None:
        """Set both target addresses of a copy."""
        place = _BLOCK["first"] + copy * len(_COPY) + _COPY["target"]
        self._record.numbers[place] = self._record.numbers[place + 1] = address

    def run(self, count: int) -> int:
        """Run the plan up to `count` times; return the number of completed runs."""
        self._record.numbers[_BLOCK["left"]] = count
        done: int = native_function(_TEXT, self._keep.team.target, ctypes.c_int64)(self._record.address)
        self.side = self._record.numbers[_BLOCK["side"]]
        return done

    @property
    def has_stopped(self) -> bool:
        """Whether a run has set its byte to 0, which ends the loop."""
        return self._record.numbers[_BLOCK["stopped"]] != 0

    @property
    def has_failed(self) -> bool:
        """Whether a run counted an error."""
        return self._record.numbers[_BLOCK["row"]] == _FAILED
