"""The gate, at which the threads of a team wait for each other: LLVM IR that changes it, and that waits.

A waiting thread first polls the gate, then yields the processor, then sleeps: in a futex on Linux, and for up
to four milliseconds at a time on other systems.

Times are those of the system's monotonic clock. A processor's cycle counter would be faster to read, but its
frequency differs between processors, and some do not let programs read it. The driver compares the end of a
slice with the coarse clock, if the system has one: that costs a few nanoseconds a row.
"""

from __future__ import annotations

from sabir.compilation.native._block import SLOTS
from sabir.compilation.native._records import with_fields

_POLLS = 16  # loads of the gate between two reads of the clock
_PAUSES = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.isb(i32 15)", "declare void @llvm.aarch64.isb(i32)"),
}
_CLOCKS = {
    "timespec": """
  %got = call i32 %clock(i32 %number, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest""",
    "ticks": """
  %got = call i32 %clock(ptr %time)
  %now = load i64, ptr %time""",
}


def opening_text() -> str:
    """Return the LLVM IR of `void open(ptr team, i32 value)`.

    It sets the gate to a new value, and wakes sleeping threads.
    """
    return with_fields(_OPEN, team=SLOTS)


def clock_text(clock: str) -> str:
    """Return the LLVM IR of `i64 now(ptr team, i32 number)`, the time of clock `number` in its ticks.

    `clock` is `timespec` if the system's function is `clock_gettime`, `ticks` if it writes one number.
    """
    return with_fields(_NOW.replace("$CLOCK", _CLOCKS[clock]), team=SLOTS)


def waiting_text(machine: str) -> str:
    """Return the LLVM IR of `i32 wait(ptr team, i32 seen)` for a processor (`x86_64`, `aarch64` or another).

    It waits until the gate differs from `seen`, and returns its value without the bit of sleepers.
    """
    pause, declared = _PAUSES.get(machine, ("", ""))
    text = _WAIT.replace("$PAUSE", pause).replace("$POLLS", str(_POLLS))
    return with_fields(text, team=SLOTS) + declared + "\n"


_NOW = """
define internal i64 @now(ptr %team, i32 %number) {
  %time = alloca [2 x i64], align 8
  %clock_at = field at %team.clock
  %clock = load ptr, ptr %clock_at$CLOCK
  ret i64 %now
}
"""

_OPEN = """
define internal void @open(ptr %team, i32 %value) {
  %gate = field at %team.gate
  %old = atomicrmw xchg ptr %gate, i32 %value acq_rel, align 4
  %sleep = and i32 %old, 2
  %asleep = icmp ne i32 %sleep, 0
  br i1 %asleep, label %wake, label %done
wake:
  %syscall = field ptr %team.syscall
  %futex = field i64 %team.futex
  %woken = call i64 (i64, ...) %syscall(
      i64 %futex, ptr %gate, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  br label %done
done:
  ret void
}
"""

_WAIT = """
define internal i32 @wait(ptr %team, i32 %seen) {
entry:
  %gate = field at %team.gate
  br label %burst
burst:
  %begun = phi i64 [ 0, %entry ], [ %since, %look ], [ %since, %rested ]
  br label %poll
poll:
  %polls = phi i64 [ 0, %burst ], [ %polled, %again ]
  %value = load atomic i32, ptr %gate acquire, align 4
  %now = and i32 %value, -3
  %changed = icmp ne i32 %now, %seen
  br i1 %changed, label %done, label %again
again:
  $PAUSE
  %polled = add i64 %polls, 1
  %enough = icmp uge i64 %polled, $POLLS
  br i1 %enough, label %look, label %poll
look:
  %fine = field i32 %team.fine
  %time = call i64 @now(ptr %team, i32 %fine)
  %first = icmp eq i64 %begun, 0
  %since = select i1 %first, i64 %time, i64 %begun
  %waited = sub i64 %time, %since
  %spin = field i64 %team.spin
  %spins = icmp slt i64 %waited, %spin
  br i1 %spins, label %burst, label %weary
weary:
  %patience = field i64 %team.patience
  %patient = icmp slt i64 %waited, %patience
  br i1 %patient, label %yield, label %rest
yield:
  %sched_yield = field ptr %team.sched_yield
  %given = call i32 %sched_yield()
  br label %rested
rest:
  %syscall = field ptr %team.syscall
  %has_futex = icmp ne ptr %syscall, null
  br i1 %has_futex, label %sleep, label %nap
sleep:
  %asleep = or i32 %seen, 2
  %swapped = cmpxchg ptr %gate, i32 %seen, i32 %asleep acq_rel acquire, align 4
  %found = extractvalue { i32, i1 } %swapped, 0
  %same = and i32 %found, -3
  %still = icmp eq i32 %same, %seen
  br i1 %still, label %futex, label %rested
futex:
  %futex_at = field at %team.futex
  %number = load i64, ptr %futex_at
  %expected = zext i32 %asleep to i64
  %woken = call i64 (i64, ...) %syscall(
      i64 %number, ptr %gate, i64 128, i64 %expected, ptr null, ptr null, i64 0)
  br label %rested
nap:
  %nap_at = field at %team.nap
  %sleeper = load ptr, ptr %nap_at
  %longest = field i64 %team.longest_nap
  %about = lshr i64 %waited, 10
  %short = icmp ult i64 %about, %longest
  %units = select i1 %short, i64 %about, i64 %longest
  %units32 = trunc i64 %units to i32
  call void %sleeper(i32 %units32)
  br label %rested
rested:
  br label %burst
done:
  ret i32 %now
}
"""
