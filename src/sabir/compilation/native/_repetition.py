"""Repetition: native code that runs the rows of a plan many times, over two tables of memory in turn.

A block of 64-bit numbers says what to run; `Repetition` names them. After each run what has another place
too is copied there, the number of the run is counted up, and a byte that the run computed says whether
another one follows. The code returns after the runs that were asked for, and earlier where that byte is 0,
where a run counted an error, or where its slice of time is over: then the next call goes on at that row.
"""

from __future__ import annotations

import ctypes
import functools
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.compilation.native._objects import Library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.native._team import Control, Team

_TURN, _LEFT, _ROW, _STOPPED, _FIRST = 7, 8, 12, 13, 15
_COPY = 6  # numbers of a copy: sources and targets by table, bytes, by how many the targets move
_FAILED = -1

_TEXT = """
define i64 @kernel(ptr %block) {
entry:
  %run = load ptr, ptr %block
  %team_at = getelementptr i64, ptr %block, i64 1
  %team = load ptr, ptr %team_at
  %rows_at = getelementptr i64, ptr %block, i64 2
  %rows = load ptr, ptr %rows_at
  %last_at = getelementptr i64, ptr %block, i64 3
  %last = load i64, ptr %last_at
  %control_at = getelementptr i64, ptr %block, i64 4
  %control = load ptr, ptr %control_at
  %turn_at = getelementptr i64, ptr %block, i64 7
  %left_at = getelementptr i64, ptr %block, i64 8
  %left = load i64, ptr %left_at
  %number_at = getelementptr i64, ptr %block, i64 9
  %number = load ptr, ptr %number_at
  %row_at = getelementptr i64, ptr %block, i64 12
  %stopped_at = getelementptr i64, ptr %block, i64 13
  %count_at = getelementptr i64, ptr %block, i64 14
  %count = load i64, ptr %count_at
  %copies = getelementptr i64, ptr %block, i64 15
  br label %step
step:
  %n = phi i64 [ 0, %entry ], [ %n1, %counted ], [ %n1, %asked ]
  %more = icmp slt i64 %n, %left
  br i1 %more, label %go, label %done
go:
  %turn = load i64, ptr %turn_at
  %table_place = add i64 %turn, 5
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
  %source_at = getelementptr i64, ptr %at, i64 %turn
  %source = load ptr, ptr %source_at
  %target_at = getelementptr i64, ptr %at, i64 2
  %own_target_at = getelementptr i64, ptr %target_at, i64 %turn
  %target = load ptr, ptr %own_target_at
  %bytes_at = getelementptr i64, ptr %at, i64 4
  %bytes = load i64, ptr %bytes_at
  %moves_at = getelementptr i64, ptr %at, i64 5
  %moves = load i64, ptr %moves_at
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
  %again_place = add i64 %turn, 10
  %again_at = getelementptr i64, ptr %block, i64 %again_place
  %again = load ptr, ptr %again_at
  %other = xor i64 %turn, 1
  store i64 %other, ptr %turn_at
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
"""


@functools.cache
def _function() -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(_code().addresses[0])


@functools.cache
def _code() -> Library:
    """Return the code of repetitions, which stays in memory for the life of the process."""
    return Library.load([_TEXT])


class MemoryCopy(NamedTuple):
    """What is copied after each run: addresses with either table, bytes, by how many the targets move."""

    sources: tuple[int, int]
    targets: tuple[int, int]
    size: int
    moves: int


class Repeatedly(NamedTuple):
    """What runs: the rows of a plan on a team, over two tables in turn; and what cancels it."""

    team: Team
    rows: Any
    tables: tuple[Any, Any]
    control: Control


class Repetition:
    """Runs of a plan, the memory of which must stay.

    `number` is the address of the int64 that counts the runs, `again` those of the bytes that say, with
    either table, whether another run follows; 0 if one always does.
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
        self._block = array("q", block)
        self._address = self._block.buffer_info()[0]
        self._keep = plan
        self.turn = 0  # the table of the next run

    def aim(self, copy: int, address: int) -> None:
        """Let a copy go to another address."""
        place = _FIRST + copy * _COPY + 2
        self._block[place] = self._block[place + 1] = address

    def run(self, count: int) -> int:
        """Make up to so many runs; return how many ended."""
        self._block[_LEFT] = count
        done: int = _function()(self._address)
        self.turn = self._block[_TURN]
        return done

    @property
    def has_stopped(self) -> bool:
        """Whether a run said that no other one follows."""
        return self._block[_STOPPED] != 0

    @property
    def has_failed(self) -> bool:
        """Whether a run counted an error."""
        return self._block[_ROW] == _FAILED
