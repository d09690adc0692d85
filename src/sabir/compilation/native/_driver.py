"""The driver: LLVM IR that runs the rows of a plan on a team of threads.

A team is a block of memory that its threads share; `SLOTS` names its numbers of 64 bits. One word of it, the
gate, holds the threads together. It changes when a run starts, when all threads have done a row, and when the
team ends; threads that have nothing to do wait for a change. Its bits:

- 1: the team is idle. The change that ends a run sets it;
- 2: a thread sleeps until the gate changes. Only then does the change need a system call, which wakes it;
- 4: the team ended: its workers leave;
- from 8 on a number that each change increases.

The threads meet after each row. The last one that arrives decides whether the run goes on, and its decision
is the new value of the gate: so all threads stop after the same row. A thread cannot miss that the run goes
on, as the next row needs it too. It can miss that the run ended, if the next one starts at once: then the
number of the gate has increased by two. The facts of a run are written while the team is idle, and each worker
reads them before it arrives for the first time.

A thread that waits polls the gate, then gives its turn to other threads, then sleeps: in a futex on Linux, and
for up to four milliseconds at a time on other systems.

The driver has no undefined symbols: the block has the addresses of the system's functions that it calls.
Time is that of the system's monotonic clock, not of the processor's cycle counter: each processor has another
frequency of it, and some do not let programs read it. The end of a slice is looked up in the system's coarse
clock, where there is one: it costs a few nanoseconds a row.
"""

from __future__ import annotations

_LINE = 16  # numbers in two cache lines: processors fetch them in pairs

SLOTS = {
    # constant while the team lives
    "syscall": 0,  # 0 where there is no futex
    "futex": 1,  # the number of that system call
    "turn": 2,  # gives the processor to another thread
    "nap": 3,  # sleeps for a number of units
    "longest_nap": 4,
    "clock": 5,
    "fine": 6,  # the clock for waiting
    "coarse": 7,  # the clock for slices
    "slice": 8,  # how long a run goes on before it returns
    "spin": 9,  # how long a thread polls
    "patience": 10,  # how long it polls and gives its turn to others, before it sleeps
    "workers": 11,  # how many threads work for the callers; 0 until they are started
    # each on lines of its own, for they are written at different times
    "gate": _LINE,
    "arrived": 2 * _LINE,
    "busy": 3 * _LINE,
    "present": 4 * _LINE,
    # the run
    "plan": 5 * _LINE,
    "first": 5 * _LINE + 1,
    "last": 5 * _LINE + 2,
    "buffers": 5 * _LINE + 3,
    "control": 5 * _LINE + 4,
    "deadline": 5 * _LINE + 5,
}
SIZE = 6 * _LINE
"""How many numbers of 64 bits a block has; its address is a multiple of `ALIGNMENT` bytes."""
ALIGNMENT = 8 * _LINE
CLOSED = 1
"""The gate of a new team."""

_POLLS = 16  # looks at the gate between two looks at the clock
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


def driver_text(machine: str, clock: str = "timespec") -> str:
    """Return the module of the driver for a processor (`x86_64`, `aarch64` or another).

    `clock` is `timespec` if the function of the clock is `clock_gettime`, `ticks` if it writes one number.
    The module has three functions:

    - `i64 run(ptr team, ptr plan, i64 first, i64 last, ptr buffers, ptr control)` runs rows and returns the
      row that is next. It returns before `last` when a slice is over and when `control` is not 0;
    - `void work(ptr team)` is a worker: it returns when the team ends;
    - `void end(ptr team)` ends an idle team.
    """
    pause, declared = _PAUSES.get(machine, ("", ""))
    waits = _WAIT.replace("$PAUSE", pause).replace("$POLLS", str(_POLLS))
    parts = [
        _NOW.replace("$CLOCK", _CLOCKS[clock]),
        _OPEN,
        waits,
        _STOPS,
        _TOGETHER,
        _ALONE,
        _RUN,
        _WORK,
        _END,
    ]
    text = "\n".join([*parts, declared, ""])
    for name, slot in SLOTS.items():
        text = text.replace(f"${name}$", f"getelementptr i64, ptr %team, i64 {slot}")
    return text


_NOW = """
define internal i64 @now(ptr %team, i32 %number) {
  %time = alloca [2 x i64], align 8
  %clock_at = $clock$
  %clock = load ptr, ptr %clock_at$CLOCK
  ret i64 %now
}
"""

# gives the gate a new value, and wakes those that sleep
_OPEN = """
define internal void @open(ptr %team, i32 %value) {
  %gate = $gate$
  %old = atomicrmw xchg ptr %gate, i32 %value acq_rel, align 4
  %sleep = and i32 %old, 2
  %asleep = icmp ne i32 %sleep, 0
  br i1 %asleep, label %wake, label %done
wake:
  %syscall_at = $syscall$
  %syscall = load ptr, ptr %syscall_at
  %futex_at = $futex$
  %futex = load i64, ptr %futex_at
  %woken = call i64 (i64, ...) %syscall(
      i64 %futex, ptr %gate, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  br label %done
done:
  ret void
}
"""

# returns the value of the gate once it is not `seen`; without the bit of sleepers, which is theirs
_WAIT = """
define internal i32 @wait(ptr %team, i32 %seen) {
entry:
  %gate = $gate$
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
  %fine_at = $fine$
  %fine = load i32, ptr %fine_at
  %time = call i64 @now(ptr %team, i32 %fine)
  %first = icmp eq i64 %begun, 0
  %since = select i1 %first, i64 %time, i64 %begun
  %waited = sub i64 %time, %since
  %spin_at = $spin$
  %spin = load i64, ptr %spin_at
  %spins = icmp slt i64 %waited, %spin
  br i1 %spins, label %burst, label %weary
weary:
  %patience_at = $patience$
  %patience = load i64, ptr %patience_at
  %patient = icmp slt i64 %waited, %patience
  br i1 %patient, label %yield, label %rest
yield:
  %turn_at = $turn$
  %turn = load ptr, ptr %turn_at
  %given = call i32 %turn()
  br label %rested
rest:
  %syscall_at = $syscall$
  %syscall = load ptr, ptr %syscall_at
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
  %futex_at = $futex$
  %number = load i64, ptr %futex_at
  %expected = zext i32 %asleep to i64
  %woken = call i64 (i64, ...) %syscall(
      i64 %number, ptr %gate, i64 128, i64 %expected, ptr null, ptr null, i64 0)
  br label %rested
nap:
  %nap_at = $nap$
  %sleeper = load ptr, ptr %nap_at
  %longest_at = $longest_nap$
  %longest = load i64, ptr %longest_at
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

# whether a run returns before the row `next`
_STOPS = """
define internal i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %next, i64 %last) {
  %all = icmp sge i64 %next, %last
  br i1 %all, label %yes, label %ask
ask:
  %asked = load atomic i64, ptr %control monotonic, align 8
  %cancelled = icmp ne i64 %asked, 0
  br i1 %cancelled, label %yes, label %look
look:
  %coarse_at = $coarse$
  %coarse = load i32, ptr %coarse_at
  %time = call i64 @now(ptr %team, i32 %coarse)
  %late = icmp sge i64 %time, %deadline
  ret i1 %late
yes:
  ret i1 true
}
"""

# runs rows as one of several threads; returns the row that is next, and the gate that it saw after the run:
# of the idle team, or of the next run
_TOGETHER = """
define internal { i64, i32 } @together(ptr %team, i64 %thread, i32 %opened) {
entry:
  %plan_at = $plan$
  %plan = load ptr, ptr %plan_at
  %first_at = $first$
  %first = load i64, ptr %first_at
  %last_at = $last$
  %last = load i64, ptr %last_at
  %buffers_at = $buffers$
  %buffers = load ptr, ptr %buffers_at
  %control_at = $control$
  %control = load ptr, ptr %control_at
  %deadline_at = $deadline$
  %deadline = load i64, ptr %deadline_at
  %workers_at = $workers$
  %workers = load i64, ptr %workers_at
  %threads = add i64 %workers, 1
  %arrived = $arrived$
  br label %row
row:
  %place = phi i64 [ %first, %entry ], [ %next, %met ]
  %gate = phi i32 [ %opened, %entry ], [ %now, %met ]
  %kernel_at = getelementptr [2 x ptr], ptr %plan, i64 %place
  %args_at = getelementptr ptr, ptr %kernel_at, i64 1
  %kernel = load ptr, ptr %kernel_at
  %args = load ptr, ptr %args_at
  call void %kernel(ptr %args, ptr %buffers, i64 %thread, i64 %threads)
  %next = add i64 %place, 1
  %before = atomicrmw add ptr %arrived, i64 1 acq_rel, align 8
  %is_last = icmp eq i64 %before, %workers
  br i1 %is_last, label %decide, label %wait
decide:
  store atomic i64 0, ptr %arrived monotonic, align 8
  %stop = call i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %next, i64 %last)
  %idle = zext i1 %stop to i32
  %number = add i32 %gate, 8
  %new = or i32 %number, %idle
  call void @open(ptr %team, i32 %new)
  br label %met
wait:
  %seen = call i32 @wait(ptr %team, i32 %gate)
  br label %met
met:
  %now = phi i32 [ %new, %decide ], [ %seen, %wait ]
  %following = add i32 %gate, 8
  %on = icmp eq i32 %now, %following
  br i1 %on, label %row, label %done
done:
  %half = insertvalue { i64, i32 } poison, i64 %next, 0
  %both = insertvalue { i64, i32 } %half, i32 %now, 1
  ret { i64, i32 } %both
}
"""

_ALONE = """
define internal i64 @alone(
    ptr %team, ptr %plan, i64 %first, i64 %last, ptr %buffers, ptr %control, i64 %deadline) {
entry:
  br label %row
row:
  %place = phi i64 [ %first, %entry ], [ %next, %row ]
  %kernel_at = getelementptr [2 x ptr], ptr %plan, i64 %place
  %args_at = getelementptr ptr, ptr %kernel_at, i64 1
  %kernel = load ptr, ptr %kernel_at
  %args = load ptr, ptr %args_at
  call void %kernel(ptr %args, ptr %buffers, i64 0, i64 1)
  %next = add i64 %place, 1
  %stop = call i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %next, i64 %last)
  br i1 %stop, label %done, label %row
done:
  ret i64 %next
}
"""

# the gate is closed while the team is idle, and only the thread that made the team busy opens it
_RUN = """
define i64 @run(ptr %team, ptr %plan, i64 %first, i64 %last, ptr %buffers, ptr %control) {
  %none = icmp sge i64 %first, %last
  br i1 %none, label %nothing, label %ask
ask:
  %asked = load atomic i64, ptr %control monotonic, align 8
  %cancelled = icmp ne i64 %asked, 0
  br i1 %cancelled, label %nothing, label %begin
nothing:
  ret i64 %first
begin:
  %coarse_at = $coarse$
  %coarse = load i32, ptr %coarse_at
  %time = call i64 @now(ptr %team, i32 %coarse)
  %slice_at = $slice$
  %slice = load i64, ptr %slice_at
  %deadline = add i64 %time, %slice
  %workers_at = $workers$
  %workers = load i64, ptr %workers_at
  %has_workers = icmp ne i64 %workers, 0
  br i1 %has_workers, label %count, label %single
single:
  %place = call i64 @alone(
    ptr %team, ptr %plan, i64 %first, i64 %last, ptr %buffers, ptr %control, i64 %deadline)
  ret i64 %place
count:
  %present_at = $present$
  %present = load atomic i64, ptr %present_at acquire, align 8
  %complete = icmp eq i64 %present, %workers
  br i1 %complete, label %claim, label %single
claim:
  %busy_at = $busy$
  %swapped = cmpxchg ptr %busy_at, i64 0, i64 1 acquire monotonic, align 8
  %free = extractvalue { i64, i1 } %swapped, 1
  br i1 %free, label %lead, label %single
lead:
  %plan_at = $plan$
  store ptr %plan, ptr %plan_at
  %first_at = $first$
  store i64 %first, ptr %first_at
  %last_at = $last$
  store i64 %last, ptr %last_at
  %buffers_at = $buffers$
  store ptr %buffers, ptr %buffers_at
  %control_at = $control$
  store ptr %control, ptr %control_at
  %deadline_at = $deadline$
  store i64 %deadline, ptr %deadline_at
  %gate = $gate$
  %closed = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %closed, -8
  %opened = add i32 %number, 8
  call void @open(ptr %team, i32 %opened)
  %both = call { i64, i32 } @together(ptr %team, i64 0, i32 %opened)
  %next = extractvalue { i64, i32 } %both, 0
  store atomic i64 0, ptr %busy_at release, align 8
  ret i64 %next
}
"""

_WORK = """
define void @work(ptr %team) {
entry:
  %present = $present$
  %others = atomicrmw add ptr %present, i64 1 acq_rel, align 8
  %thread = add i64 %others, 1
  br label %look
look:
  %gate = phi i32 [ $CLOSED, %entry ], [ %opened, %idle ], [ %after, %go ]
  %end = and i32 %gate, 4
  %leave = icmp ne i32 %end, 0
  br i1 %leave, label %done, label %stay
stay:
  %bit = and i32 %gate, 1
  %closed = icmp ne i32 %bit, 0
  br i1 %closed, label %idle, label %go
idle:
  %opened = call i32 @wait(ptr %team, i32 %gate)
  br label %look
go:
  %both = call { i64, i32 } @together(ptr %team, i64 %thread, i32 %gate)
  %after = extractvalue { i64, i32 } %both, 1
  br label %look
done:
  ret void
}
""".replace("$CLOSED", str(CLOSED))

_END = """
define void @end(ptr %team) {
  %gate = $gate$
  %closed = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %closed, -8
  %next = add i32 %number, 8
  %over = or i32 %next, 5
  call void @open(ptr %team, i32 %over)
  ret void
}
"""
