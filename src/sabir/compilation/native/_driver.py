"""The driver: LLVM IR that runs the rows of a plan on a team of threads.

A row is three 64-bit numbers: the address of a kernel, the address of its arguments, and flags. A row of
control flow has the flag `CONTROL`, and in its upper 32 bits a distance in rows: its kernel returns whether
the next row is the one at this distance, or the following one. One thread runs it, between two other rows.

A team is a block of memory that its threads share; `SLOTS` has the places of its fields. One word of it, the
gate, synchronizes the threads. It changes when a run starts, when all shares of a row are finished, and when
the team ends; idle threads wait for a change. Its bits:

- 1: the team is idle. The change that ends a run sets it;
- 2: a thread sleeps until the gate changes. Only then does the change need a system call, which wakes it;
- 4: the team has ended, and its workers leave;
- 8: the row is fine: it has several shares for each thread, other rows have one;
- the bits from 16 on are a number, the gate number, that each change increases.

Each thread owns some shares of a row, and claims these first, one after another. The claim word of a thread
has the gate number of the row, and how many of its shares are claimed. A thread without unclaimed shares
claims shares of others. So no thread waits for a thread that sleeps, or that the system has not scheduled
since the row began, and a run completes without any worker. In a fine row a fast core computes more shares
than a slow one. The results of a share do not depend on the thread that computes it.

The thread that finishes the last share of a row decides whether the run goes on. The decision is in the new
value of the gate, so all threads stop after the same row. A thread may miss rows, and whole runs: it can
claim no share of a finished row, because each claim word has that gate number with all shares claimed, or a
later number. It reads the fields of a run, such as the address of the plan, only after it has claimed a
share: they are written while the team is idle, before the gate opens.

The driver has no undefined symbols: the block has the addresses of the system's functions that it calls.
"""

from __future__ import annotations

from sabir.compilation.native._block import CLOSED, LINE, SLOTS
from sabir.compilation.native._gate import clock_text, opening_text, waiting_text
from sabir.compilation.native._records import with_fields
from sabir.compilation.plan.rows import CONTROL, DISTANCE, FINE


def driver_text(machine: str, clock: str) -> str:
    """Return the LLVM module of the driver; `machine` and `clock` are the arguments of `_gate`.

    Its function is `i64 kernel(ptr team, ptr plan, i64 first, i64 last, ptr buffers, ptr control)`. It runs
    the rows of a plan from `first` to before `last`, and returns the next row: less than `last` if a slice is
    over, or `control` is not 0. If `plan` is null, `first` is a task, and `last` is greater: `WORK` serves as
    a worker until the team ends, `END` ends an idle team. The tasks are in one function because they share
    most code.
    """
    shared = clock_text(clock), opening_text(), waiting_text(machine), _STOPS, _FINENESS, _CONTROL, _TOGETHER
    text = with_fields("\n".join([*shared, _ALONE, _WORK, _END, _RUN]), team=SLOTS)
    for name, number in _NUMBERS.items():
        text = text.replace(f"${name}", str(number))
    return text


WORK, END = 0, 1
"""The tasks of the driver without a plan."""
SHARES = 8
"""The number of shares of a fine row for each thread."""
_STEP = 16  # increment of the gate number
_NUMBERS = {
    "WORK": WORK, "FINE": FINE, "SHARES": SHARES, "STEP": _STEP, "LINE": LINE, "CLOSED": CLOSED,
    "CONTROL": CONTROL, "DISTANCE": DISTANCE,
}  # fmt: skip

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
  %coarse = field i32 %team.coarse
  %time = call i64 @now(ptr %team, i32 %coarse)
  %late = icmp sge i64 %time, %deadline
  ret i1 %late
yes:
  ret i1 true
}
"""

# the bit of the gate for a row
_FINENESS = """
define internal i32 @fineness(ptr %plan, i64 %row, i64 %last) {
  %exists = icmp slt i64 %row, %last
  br i1 %exists, label %read, label %none
read:
  %row_at = getelementptr [3 x i64], ptr %plan, i64 %row
  %fine_at = getelementptr i64, ptr %row_at, i64 2
  %flags = load i64, ptr %fine_at
  %fine = and i64 %flags, $FINE
  %bit = trunc i64 %fine to i32
  ret i32 %bit
none:
  ret i32 0
}
"""

# whether a row is one of control flow; and a run of such a row, which returns the next row
_CONTROL = """
define internal i1 @controls(ptr %plan, i64 %row) {
  %row_at = getelementptr [3 x i64], ptr %plan, i64 %row
  %flags_at = getelementptr i64, ptr %row_at, i64 2
  %flags = load i64, ptr %flags_at
  %bit = and i64 %flags, $CONTROL
  %is = icmp ne i64 %bit, 0
  ret i1 %is
}

define internal i64 @after(ptr %plan, i64 %row, ptr %buffers) {
  %kernel_at = getelementptr [3 x ptr], ptr %plan, i64 %row
  %args_at = getelementptr ptr, ptr %kernel_at, i64 1
  %flags_at = getelementptr ptr, ptr %kernel_at, i64 2
  %kernel = load ptr, ptr %kernel_at
  %args = load ptr, ptr %args_at
  %flags = load i64, ptr %flags_at
  %distance = ashr i64 %flags, $DISTANCE
  %jumps = call i64 %kernel(ptr %args, ptr %buffers, i64 0, i64 1, i64 0)
  %does = icmp ne i64 %jumps, 0
  %step = select i1 %does, i64 %distance, i64 1
  %next = add i64 %row, %step
  ret i64 %next
}
"""

# runs shares of rows until the run is over; returns the gate of the idle team. `thread` is the number of the
# calling thread: it claims the shares of that number first, and uses the scratch memory of that number
_TOGETHER = """
define internal i32 @together(ptr %team, i64 %thread, i32 %gate) {
entry:
  %workers_at = field at %team.workers
  %workers = load atomic i64, ptr %workers_at monotonic, align 8
  %threads = add i64 %workers, 1
  %arrived = field at %team.arrived
  br label %row
row:
  %word = phi i32 [ %gate, %entry ], [ %met, %wait ], [ %new, %go ]
  %flags = and i32 %word, 5
  %open = icmp eq i32 %flags, 0
  br i1 %open, label %begin, label %done
begin:
  %number = and i32 %word, -$STEP
  %fineness = and i32 %word, $FINE
  %is_fine = icmp ne i32 %fineness, 0
  %each = select i1 %is_fine, i64 $SHARES, i64 1
  %shares = mul i64 %threads, %each
  br label %owner
owner:
  %i = phi i64 [ 0, %begin ], [ %i1, %other ]
  %left = icmp ult i64 %i, %threads
  br i1 %left, label %find, label %wait
find:
  %further = add i64 %thread, %i
  %wraps = icmp uge i64 %further, %threads
  %back = select i1 %wraps, i64 %threads, i64 0
  %owned = sub i64 %further, %back
  %line = mul i64 %owned, $LINE
  %claims = field at %team.claims
  %claim = getelementptr i64, ptr %claims, i64 %line
  br label %look
look:
  %claimed = load atomic i64, ptr %claim monotonic, align 8
  %high = lshr i64 %claimed, 32
  %claimed_row = trunc i64 %high to i32
  %ahead = sub i32 %number, %claimed_row
  %is_new = icmp sgt i32 %ahead, 0
  %is_same = icmp eq i32 %ahead, 0
  %counted = and i64 %claimed, 4294967295
  %before = select i1 %is_new, i64 0, i64 %counted
  %this = or i1 %is_new, %is_same
  %some = icmp ult i64 %before, %each
  %free = and i1 %this, %some
  br i1 %free, label %take, label %other
take:
  %wide = zext i32 %number to i64
  %top = shl i64 %wide, 32
  %base = or i64 %top, %before
  %more = add i64 %base, 1
  %swapped = cmpxchg ptr %claim, i64 %claimed, i64 %more acq_rel monotonic, align 8
  %taken = extractvalue { i64, i1 } %swapped, 1
  br i1 %taken, label %do, label %look
do:
  %opened = field i32 %team.opened
  %first = field i64 %team.first
  %plan = field ptr %team.plan
  %buffers = field ptr %team.buffers
  %distance = sub i32 %number, %opened
  %rows = udiv i32 %distance, $STEP
  %rows64 = zext i32 %rows to i64
  %place = add i64 %first, %rows64
  %kernel_at = getelementptr [3 x ptr], ptr %plan, i64 %place
  %args_at = getelementptr ptr, ptr %kernel_at, i64 1
  %kernel = load ptr, ptr %kernel_at
  %args = load ptr, ptr %args_at
  %own = mul i64 %owned, %each
  %share = add i64 %own, %before
  call void %kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread)
  %arrivals = atomicrmw add ptr %arrived, i64 1 acq_rel, align 8
  %now = add i64 %arrivals, 1
  %is_last = icmp eq i64 %now, %shares
  br i1 %is_last, label %decide, label %look
other:
  %i1 = add i64 %i, 1
  br label %owner
decide:
  store atomic i64 0, ptr %arrived monotonic, align 8
  %second = add i64 %place, 1
  %last = field i64 %team.last
  %control = field ptr %team.control
  %deadline = field i64 %team.deadline
  %following = add i32 %number, $STEP
  br label %settle
settle:
  %next = phi i64 [ %second, %decide ], [ %target, %jump ]
  %stop = call i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %next, i64 %last)
  br i1 %stop, label %settled, label %ask
ask:
  %controls = call i1 @controls(ptr %plan, i64 %next)
  br i1 %controls, label %jump, label %settled
jump:
  %target = call i64 @after(ptr %plan, i64 %next, ptr %buffers)
  br label %settle
settled:
  %next_at = field at %team.next
  store i64 %next, ptr %next_at
  %jumped = icmp ne i64 %next, %second
  br i1 %jumped, label %move, label %go
move:
  %moved_at = field at %team.first
  store i64 %next, ptr %moved_at
  %counted_at = field at %team.opened
  store i32 %following, ptr %counted_at
  br label %go
go:
  %idle = zext i1 %stop to i32
  %kind = call i32 @fineness(ptr %plan, i64 %next, i64 %last)
  %kept = select i1 %stop, i32 0, i32 %kind
  %flagged = or i32 %following, %kept
  %new = or i32 %flagged, %idle
  call void @open(ptr %team, i32 %new)
  br label %row
wait:
  %met = call i32 @wait(ptr %team, i32 %word)
  br label %row
done:
  ret i32 %word
}
"""

_ALONE = """
define internal i64 @alone(
    ptr %team, ptr %plan, i64 %first, i64 %last, ptr %buffers, ptr %control, i64 %deadline) {
entry:
  br label %row
row:
  %place = phi i64 [ %first, %entry ], [ %next, %ran ]
  %controls = call i1 @controls(ptr %plan, i64 %place)
  br i1 %controls, label %jump, label %kernel_row
jump:
  %target = call i64 @after(ptr %plan, i64 %place, ptr %buffers)
  br label %ran
kernel_row:
  %kernel_at = getelementptr [3 x ptr], ptr %plan, i64 %place
  %args_at = getelementptr ptr, ptr %kernel_at, i64 1
  %kernel = load ptr, ptr %kernel_at
  %args = load ptr, ptr %args_at
  call void %kernel(ptr %args, ptr %buffers, i64 0, i64 1, i64 0)
  %second = add i64 %place, 1
  br label %ran
ran:
  %next = phi i64 [ %target, %jump ], [ %second, %kernel_row ]
  %stop = call i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %next, i64 %last)
  br i1 %stop, label %done, label %row
done:
  ret i64 %next
}
"""

# the gate is closed while the team is idle, and only the thread that sets `busy` opens it
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
  %coarse = field i32 %team.coarse
  %time = call i64 @now(ptr %team, i32 %coarse)
  %slice = field i64 %team.slice
  %deadline = add i64 %time, %slice
  %workers_at = field at %team.workers
  %workers = load atomic i64, ptr %workers_at monotonic, align 8
  %has_workers = icmp ne i64 %workers, 0
  br i1 %has_workers, label %settle, label %single
settle:
  %row = phi i64 [ %first, %begin ], [ %target, %jump ]
  %controls = call i1 @controls(ptr %plan, i64 %row)
  br i1 %controls, label %jump, label %claim
jump:
  %target = call i64 @after(ptr %plan, i64 %row, ptr %buffers)
  %stop = call i1 @stops(ptr %team, ptr %control, i64 %deadline, i64 %target, i64 %last)
  br i1 %stop, label %stopped, label %settle
stopped:
  ret i64 %target
single:
  %from = phi i64 [ %first, %begin ], [ %row, %claim ]
  %place = call i64 @alone(
    ptr %team, ptr %plan, i64 %from, i64 %last, ptr %buffers, ptr %control, i64 %deadline)
  ret i64 %place
claim:
  %busy_at = field at %team.busy
  %swapped = cmpxchg ptr %busy_at, i64 0, i64 1 acquire monotonic, align 8
  %free = extractvalue { i64, i1 } %swapped, 1
  br i1 %free, label %lead, label %single
lead:
  %plan_at = field at %team.plan
  store ptr %plan, ptr %plan_at
  %first_at = field at %team.first
  store i64 %row, ptr %first_at
  %last_at = field at %team.last
  store i64 %last, ptr %last_at
  %buffers_at = field at %team.buffers
  store ptr %buffers, ptr %buffers_at
  %control_at = field at %team.control
  store ptr %control, ptr %control_at
  %deadline_at = field at %team.deadline
  store i64 %deadline, ptr %deadline_at
  %gate = field at %team.gate
  %closed = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %closed, -$STEP
  %opened = add i32 %number, $STEP
  %opened_at = field at %team.opened
  store i32 %opened, ptr %opened_at
  %kind = call i32 @fineness(ptr %plan, i64 %row, i64 %last)
  %gate_of_row = or i32 %opened, %kind
  call void @open(ptr %team, i32 %gate_of_row)
  %idle = call i32 @together(ptr %team, i64 0, i32 %gate_of_row)
  %next = field i64 %team.next
  store atomic i64 0, ptr %busy_at release, align 8
  ret i64 %next
}
"""

_WORK = """
define internal void @work(ptr %team) {
entry:
  %present = field at %team.present
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
"""

_END = """
define internal void @end(ptr %team) {
  %gate = field at %team.gate
  %closed = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %closed, -$STEP
  %next = add i32 %number, $STEP
  %over = or i32 %next, 5
  call void @open(ptr %team, i32 %over)
  ret void
}
"""
