"""The driver: LLVM IR that runs the rows of a plan on a team of threads.

A team is a block of memory that its threads share; `SLOTS` names its numbers of 64 bits. One word of it, the
gate, holds the threads together. It changes when a run starts, when all threads have done a row, and when the
team ends; threads that have nothing to do wait for a change. Its bits:

- 1: the team is idle. The change that ends a run sets it;
- 2: a thread sleeps until the gate changes. Only then does the change need a system call, which wakes it;
- 4: the team ended: its workers leave;
- from 8 on a number that each change increases.

A row has as many shares as the team has threads, and a thread claims its own share first: the number of the
gate, which is that of the row, becomes the number of the claim. A thread that is done claims shares of
others that have not begun. So nobody waits for a thread that sleeps, or that the system has not let run
since the row began, and a run needs no worker to be there. What a share computes does not depend on who
computes it.

Whoever finishes the last share of a row decides whether the run goes on. The decision is the new value of
the gate: so all threads stop after the same row. A thread may miss rows, and whole runs: the shares of a row
that is over are claimed, by numbers that are not below the one that the thread has seen. It reads the facts
of a run, such as the address of the plan, only after it has claimed a share: they are written while the team
is idle, before the gate opens.

The driver has no undefined symbols: the block has the addresses of the system's functions that it calls.
"""

from __future__ import annotations

from sabir.compilation.native._block import CLOSED, LINE, addressed
from sabir.compilation.native._gate import clock_text, opening_text, waiting_text


def driver_text(machine: str, clock: str) -> str:
    """Return a module with a function `kernel`; `machine` and `clock` are those of `_gate`.

    It is `i64 kernel(ptr team, ptr plan, i64 first, i64 last, ptr buffers, ptr control)`. It runs rows of a
    plan and returns the row that is next. It returns before `last` when a slice is over and when `control` is
    not 0. Without a plan it does what `first` says, where `last` is above that: `WORK` is a worker, and
    returns when the team ends; `END` ends an idle team. They are one function, as they share most code.
    """
    shared = clock_text(clock), opening_text(), waiting_text(machine), _STOPS, _TOGETHER
    return addressed("\n".join([*shared, _ALONE, _WORK, _END, _RUN]))


WORK, END = 0, 1
"""What the driver does without a plan."""

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

# runs shares of rows until the run is over; returns the gate of the idle team. A gate that is open is the
# number of its row; `thread` is the share that this thread claims first
_TOGETHER = """
define internal i32 @together(ptr %team, i64 %thread, i32 %gate) {
entry:
  %workers_at = $workers$
  %workers = load atomic i64, ptr %workers_at monotonic, align 8
  %threads = add i64 %workers, 1
  %arrived = $arrived$
  br label %row
row:
  %number = phi i32 [ %gate, %entry ], [ %met, %wait ], [ %new, %decide ]
  %flags = and i32 %number, 5
  %open = icmp eq i32 %flags, 0
  br i1 %open, label %shares, label %done
shares:
  %i = phi i64 [ 0, %row ], [ %i1, %other ]
  %left = icmp ult i64 %i, %threads
  br i1 %left, label %look, label %wait
look:
  %further = add i64 %thread, %i
  %wraps = icmp uge i64 %further, %threads
  %back = select i1 %wraps, i64 %threads, i64 0
  %share = sub i64 %further, %back
  %line = mul i64 %share, $LINE
  %claims = $claims$
  %claim = getelementptr i64, ptr %claims, i64 %line
  %claimed = load atomic i32, ptr %claim monotonic, align 8
  %ahead = sub i32 %number, %claimed
  %free = icmp sgt i32 %ahead, 0
  br i1 %free, label %take, label %other
take:
  %swapped = cmpxchg ptr %claim, i32 %claimed, i32 %number acq_rel monotonic, align 8
  %taken = extractvalue { i32, i1 } %swapped, 1
  br i1 %taken, label %do, label %other
do:
  %opened_at = $opened$
  %opened = load i32, ptr %opened_at
  %first_at = $first$
  %first = load i64, ptr %first_at
  %plan_at = $plan$
  %plan = load ptr, ptr %plan_at
  %buffers_at = $buffers$
  %buffers = load ptr, ptr %buffers_at
  %distance = sub i32 %number, %opened
  %rows = lshr i32 %distance, 3
  %rows64 = zext i32 %rows to i64
  %place = add i64 %first, %rows64
  %kernel_at = getelementptr [2 x ptr], ptr %plan, i64 %place
  %args_at = getelementptr ptr, ptr %kernel_at, i64 1
  %kernel = load ptr, ptr %kernel_at
  %args = load ptr, ptr %args_at
  call void %kernel(ptr %args, ptr %buffers, i64 %share, i64 %threads)
  %before = atomicrmw add ptr %arrived, i64 1 acq_rel, align 8
  %is_last = icmp eq i64 %before, %workers
  br i1 %is_last, label %decide, label %other
other:
  %i1 = add i64 %i, 1
  br label %shares
decide:
  store atomic i64 0, ptr %arrived monotonic, align 8
  %next = add i64 %place, 1
  %last_at = $last$
  %last = load i64, ptr %last_at
  %control_at = $control$
  %control = load ptr, ptr %control_at
  %deadline_at = $deadline$
  %deadline = load i64, ptr %deadline_at
  %next_at = $next$
  store i64 %next, ptr %next_at
  %stop = call i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %next, i64 %last)
  %idle = zext i1 %stop to i32
  %following = add i32 %number, 8
  %new = or i32 %following, %idle
  call void @open(ptr %team, i32 %new)
  br label %row
wait:
  %met = call i32 @wait(ptr %team, i32 %number)
  br label %row
done:
  ret i32 %number
}
""".replace("$LINE", str(LINE))

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
define i64 @kernel(ptr %team, ptr %plan, i64 %first, i64 %last, ptr %buffers, ptr %control) {
  %none = icmp sge i64 %first, %last
  br i1 %none, label %nothing, label %look
look:
  %no_plan = icmp eq ptr %plan, null
  br i1 %no_plan, label %serve, label %ask
serve:
  %works = icmp eq i64 %first, $WORK
  br i1 %works, label %work, label %end
work:
  call void @work(ptr %team)
  ret i64 %last
end:
  call void @end(ptr %team)
  ret i64 %last
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
  %workers = load atomic i64, ptr %workers_at monotonic, align 8
  %has_workers = icmp ne i64 %workers, 0
  br i1 %has_workers, label %claim, label %single
single:
  %place = call i64 @alone(
    ptr %team, ptr %plan, i64 %first, i64 %last, ptr %buffers, ptr %control, i64 %deadline)
  ret i64 %place
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
  %opened_at = $opened$
  store i32 %opened, ptr %opened_at
  call void @open(ptr %team, i32 %opened)
  %idle = call i32 @together(ptr %team, i64 0, i32 %opened)
  %next_at = $next$
  %next = load i64, ptr %next_at
  store atomic i64 0, ptr %busy_at release, align 8
  ret i64 %next
}
""".replace("$WORK", str(WORK))

_WORK = """
define internal void @work(ptr %team) {
entry:
  %present = $present$
  %others = atomicrmw add ptr %present, i64 1 acq_rel, align 8
  %thread = add i64 %others, 1
  br label %look
look:
  %gate = phi i32 [ $CLOSED, %entry ], [ %closed, %idle ]
  %end = and i32 %gate, 4
  %leave = icmp ne i32 %end, 0
  br i1 %leave, label %done, label %idle
idle:
  %changed = call i32 @wait(ptr %team, i32 %gate)
  %closed = call i32 @together(ptr %team, i64 %thread, i32 %changed)
  br label %look
done:
  ret void
}
""".replace("$CLOSED", str(CLOSED))

_END = """
define internal void @end(ptr %team) {
  %gate = $gate$
  %closed = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %closed, -8
  %next = add i32 %number, 8
  %over = or i32 %next, 5
  call void @open(ptr %team, i32 %over)
  ret void
}
"""
