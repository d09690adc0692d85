"""Plans of three small kernels: what the tests of the native driver run, in this process and in others."""

import functools
from typing import NamedTuple

import numpy as np

from sabir.compilation.native import Library, host
from sabir.compilation.plan.rows import FINE

SIZE = 96

# counts to `%steps`, from the block `entry` on
_WAIT = """\
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %next = add i64 %i, 1
  %seen = load volatile i64, ptr %args
  %more = icmp slt i64 %next, %steps
  br i1 %more, label %head, label %done
done:
"""

# each kernel shares its work like those of models: by share and shares
_TEXTS = {
    "mix": """
; args: source and target (places in buffers), size. target[i] = 3 * source[(i + 31) % size] + source[size - 1 - i]
define void @kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread) {
entry:
  %from = load i64, ptr %args
  %to_at = getelementptr i64, ptr %args, i64 1
  %to = load i64, ptr %to_at
  %size_at = getelementptr i64, ptr %args, i64 2
  %size = load i64, ptr %size_at
  %source_at = getelementptr ptr, ptr %buffers, i64 %from
  %source = load ptr, ptr %source_at
  %target_at = getelementptr ptr, ptr %buffers, i64 %to
  %target = load ptr, ptr %target_at
  %a = mul i64 %size, %share
  %low = udiv i64 %a, %shares
  %t = add i64 %share, 1
  %b = mul i64 %size, %t
  %high = udiv i64 %b, %shares
  br label %head
head:
  %i = phi i64 [ %low, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %high
  br i1 %more, label %body, label %done
body:
  %shifted = add i64 %i, 31
  %j = urem i64 %shifted, %size
  %x_at = getelementptr i64, ptr %source, i64 %j
  %x = load i64, ptr %x_at
  %above = add i64 %i, 1
  %back = sub i64 %size, %above
  %y_at = getelementptr i64, ptr %source, i64 %back
  %y = load i64, ptr %y_at
  %x3 = mul i64 %x, 3
  %sum = add i64 %x3, %y
  %z_at = getelementptr i64, ptr %target, i64 %i
  store i64 %sum, ptr %z_at
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
""",
    "count": """
; args: place in buffers, element. Adds 1 to the element; the one after it becomes the number of shares
define void @kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread) {
  %to = load i64, ptr %args
  %element_at = getelementptr i64, ptr %args, i64 1
  %element = load i64, ptr %element_at
  %target_at = getelementptr ptr, ptr %buffers, i64 %to
  %target = load ptr, ptr %target_at
  %at = getelementptr i64, ptr %target, i64 %element
  %old = atomicrmw add ptr %at, i64 1 monotonic, align 8
  %then = getelementptr i64, ptr %at, i64 1
  %oldest = atomicrmw max ptr %then, i64 %shares monotonic, align 8
  ret void
}
""",
    "own": """
; args: place in buffers, steps. Element `thread` counts the shares that the thread does now, element 8 + thread
; those that it did, and element 7 those that began while another share of the same thread went on
define void @kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread) {
entry:
  %to = load i64, ptr %args
  %steps_at = getelementptr i64, ptr %args, i64 1
  %steps = load i64, ptr %steps_at
  %target_at = getelementptr ptr, ptr %buffers, i64 %to
  %target = load ptr, ptr %target_at
  %now = getelementptr i64, ptr %target, i64 %thread
  %before = atomicrmw add ptr %now, i64 1 seq_cst, align 8
  %busy = icmp ne i64 %before, 0
  %wrong = zext i1 %busy to i64
  %wrong_at = getelementptr i64, ptr %target, i64 7
  %errors = atomicrmw add ptr %wrong_at, i64 %wrong monotonic, align 8
$WAIT  %after = atomicrmw sub ptr %now, i64 1 seq_cst, align 8
  %did_at = getelementptr i64, ptr %now, i64 8
  %did = atomicrmw add ptr %did_at, i64 1 monotonic, align 8
  ret void
}
""",
    "delay": """
; args: steps
define void @kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread) {
entry:
  %steps = load i64, ptr %args
$WAIT  ret void
}
""",
}


@functools.cache
def _kernels():
    library = Library.load([text.replace("$WAIT", _WAIT) for text in _TEXTS.values()], host())
    return dict(zip(_TEXTS, library.addresses, strict=True)), library


class Plan(NamedTuple):
    """The rows of a plan, the buffers of a run, and what they point to."""

    rows: np.ndarray
    buffers: np.ndarray
    memory: tuple[np.ndarray, ...]
    kept: list[np.ndarray]

    @property
    def where(self):
        """The addresses that a run takes: of the plan, and of the buffers."""
        return int(self.rows.ctypes.data), int(self.buffers.ctypes.data)


def _plan(entries, memory, fine=lambda _: False):
    kernels, _library = _kernels()
    kept = [np.array(args, np.int64) for _, args in entries]
    rows = np.array(
        [
            (kernels[name], a.ctypes.data, FINE if fine(row) else 0)
            for row, ((name, _), a) in enumerate(zip(entries, kept, strict=True))
        ],
        np.int64,
    )
    return Plan(rows, np.array([m.ctypes.data for m in memory], np.int64), memory, kept)


def mixing(rows):
    """A plan in which each row reads what all threads wrote in the row before; some rows are fine."""
    memory = (np.arange(SIZE, dtype=np.int64), np.zeros(SIZE, np.int64))
    entries = [("mix", (row % 2, 1 - row % 2, SIZE)) for row in range(rows)]
    return _plan(entries, memory, lambda row: row % 3 == 1)


def mixed(rows):
    """What the plan `mixing(rows)` computes."""
    x = np.arange(SIZE, dtype=np.int64)
    for _ in range(rows):
        x = 3 * np.roll(x, -31) + x[::-1]
    return x


def is_mixed(plan):
    """Whether the whole plan `mixing` ran once."""
    return np.array_equal(plan.memory[len(plan.rows) % 2], mixed(len(plan.rows)))


def counting(rows, *, fine=False):
    """A plan whose row i counts in element 2i the shares that were done, and notes in the next how many there are."""
    entries = [("count", (0, 2 * row)) for row in range(rows)]
    return _plan(entries, (np.zeros(2 * rows, np.int64),), lambda _: fine)


def owning(rows, steps):
    """A plan of fine rows that note which thread does each share: see the kernel `own`."""
    return _plan([("own", (0, steps))] * rows, (np.zeros(16, np.int64),), lambda _: True)


def delaying(rows, steps=100_000):
    """A plan of rows that take a while, some ten microseconds or more."""
    one = _plan([("delay", (steps,))], (np.zeros(1, np.int64),))
    return one._replace(rows=np.repeat(one.rows, rows, axis=0))
