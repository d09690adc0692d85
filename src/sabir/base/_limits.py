"""The limits of one job on a model, and the budget that is left.

A model file is untrusted: a few bytes can ask for terabytes, or for an endless loop. The limits in force are
a context variable: the code that is about to allocate asks for them, and no code between passes them on.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from sabir.base._errors import CancelledError, Excess, LimitError
from sabir.base._machine import usable_memory

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


_LEAST_MEMORY = 1 << 31


def _default_memory() -> int:
    """Return half of the memory that this process may use, and at least 2 GiB."""
    return max(_LEAST_MEMORY, (usable_memory() or 0) // 2)


class Limits(NamedTuple):
    """Limits of one job: a load, a check, an inference, a run. None removes a limit.

    The defaults are for models that the caller trusts: they keep a mistake from exhausting the machine.
    `Limits.untrusted()` is for files of unknown origin. Each number among the constants and the feeds of a
    run raises its limits: by 32 `elements`, 256 bytes of `memory` (up to the memory of the machine), 32 KiB
    of `work` and one of `iterations`.

    >>> sabir.Limits(seconds=10, memory=None).seconds
    10
    """

    constant_bytes: int | None = 1 << 29
    """Bytes of a constant that is larger than its data in the file, such as a sparse tensor in dense form."""
    elements: int | None = None
    """Elements of one result of a node; a result that is not larger than the inputs is always allowed."""
    nodes: int | None = 1_000_000
    """Nodes after functions are inlined."""
    depth: int | None = 32
    """Levels of nested graphs."""
    iterations: int | None = 1 << 22
    """Runs of subgraphs in all loops together; every four nodes of a subgraph count as one more run."""
    seconds: float | None = None
    """Time, checked between one node and the next."""
    memory: int | None = _default_memory()
    """Bytes of all values that are alive at one time during a run.

    The default is half of the memory of the machine, or of its control group, and at least 2 GiB.
    """
    work: int | None = 1 << 35
    """Bytes that all nodes of a run compute together; compiled code counts a sixteenth of them."""

    @classmethod
    def untrusted(cls) -> Limits:
        """Return limits for files of unknown origin: a hostile file of some kilobytes ends within seconds.

        A model whose cost is proportional to its size and to its feeds runs under them.

        >>> sabir.Limits.untrusted().memory == 3 << 28
        True
        >>> sabir.Limits.untrusted()._replace(seconds=5).seconds
        5
        """
        return cls(elements=1 << 27, iterations=1 << 18, memory=3 << 28, work=1 << 31)


DEFAULT_LIMITS = Limits()
_DEFAULT = [DEFAULT_LIMITS]
COMPILED = 16  # bytes that compiled code computes for one byte of `work`: it is that much faster than numpy
NO_LIMITS = Limits(*[None] * len(Limits._fields))
_ELEMENTS, _MEMORY, _WORK, _ITERATIONS = 32, 256, 1 << 15, 1  # for each number among the constants and feeds
_NODES = 4  # nodes of a subgraph that cost as much as calling it
_UNCHECKED, _INFINITE = 1 << 22, math.inf
_MACHINE = usable_memory() or _INFINITE  # what the constants and feeds raise `memory` to, at most
_AGAIN = 2  # the step that exceeds a sum is seldom the last: we propose twice what is needed so far


class Budget:
    """What is left of some limits.

    `live_bytes` is the size of the values that are alive in the run now, `unchecked_elements` the number of
    elements up to which a value needs no check, `numbers` how many numbers the limits were raised for.
    """

    __slots__ = (
        "cancelled", "deadline", "elements", "iterations", "limits", "live_bytes", "memory", "numbers",
        "unchecked_elements", "work",
    )  # fmt: skip

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        self.elements = _INFINITE if limits.elements is None else limits.elements
        self.iterations = _INFINITE if limits.iterations is None else limits.iterations
        self.memory = _INFINITE if limits.memory is None else limits.memory
        self.work = _INFINITE if limits.work is None else limits.work
        self.live_bytes = self.numbers = 0
        self.cancelled = False
        bounded = min(self.elements, self.memory)
        self.unchecked_elements = _INFINITE if bounded == _INFINITE else min(_UNCHECKED, bounded)

    def raise_for(self, numbers: int) -> None:
        """Raise the limits of a run that has this many numbers among its constants and feeds."""
        more = numbers - self.numbers
        if more > 0:
            self.elements += _ELEMENTS * more
            self.memory = max(self.memory, min(self.memory + _MEMORY * more, _MACHINE))
            self.work += _WORK * more
            self.iterations += _ITERATIONS * more
            self.numbers = numbers

    def as_at_first(self) -> Budget:
        """Return what there was before anything was spent.

        >>> budget = Budget(Limits(work=100))
        >>> budget.allocate(40)
        >>> budget.as_at_first().work
        100
        """
        found = Budget(self.limits)
        found.raise_for(self.numbers)
        return found

    def mark(self) -> tuple[float, ...]:
        """Return what is left now, for `return_to`."""
        return self.elements, self.iterations, self.memory, self.work, self.live_bytes, self.numbers

    def return_to(self, mark: tuple[float, ...]) -> None:
        """Let what was spent since a mark count as not spent; the time goes on."""
        self.elements, self.iterations, self.memory, self.work, live_bytes, numbers = mark
        self.live_bytes, self.numbers = int(live_bytes), int(numbers)

    def cancel(self) -> None:
        """Let the next look at the time raise CancelledError; any thread may call it."""
        self.cancelled = True
        self.deadline = -_INFINITE

    def allocate(self, size: int) -> None:
        """Count a result of this many bytes; raises LimitError past `memory` and past `work`."""
        self.live_bytes += size
        self.work -= size
        if self.live_bytes > self.memory or self.work < 0:
            raise LimitError(
                f"the values of the run would take {self.live_bytes:,} bytes"
                if self.live_bytes > self.memory
                else _TOO_MUCH_WORK,
                *self.past_memory(self.live_bytes),
                *self.past_work(0),
            )

    def past_elements(self, needed: int) -> tuple[Excess, ...]:
        """Return the excess of a value of this many elements, if there is one."""
        return (Excess("elements", self.elements, needed),) if needed > self.elements else ()

    def past_memory(self, needed: int) -> tuple[Excess, ...]:
        """Return the excess of values of this many bytes together, if there is one."""
        return (Excess("memory", self.memory, needed),) if needed > self.memory else ()

    def past_work(self, more: int) -> tuple[Excess, ...]:
        """Return the excess of this much more work, if there is one."""
        if more <= self.work:
            return ()
        most = (self.limits.work or 0) + _WORK * self.numbers
        return (Excess("work", most, _AGAIN * (most - self.work + more)),)


_TOO_MUCH_WORK = "the nodes of the run compute too much"
_BUDGET: ContextVar[Budget] = ContextVar("what is left of the limits")


def set_default_limits(limits: Limits | None) -> None:
    """Set the limits of all later jobs of this process, in every thread; None restores `Limits()`.

    A service that reads files of unknown origin calls it once. A `limits=` argument still counts for its job.

    >>> sabir.set_default_limits(sabir.Limits.untrusted())
    >>> sabir.set_default_limits(None)
    """
    _DEFAULT[0] = DEFAULT_LIMITS if limits is None else limits


def default_limits() -> Limits:
    """Return the limits of a job that names none."""
    return _DEFAULT[0]


def budget() -> Budget:
    """Return what is left of the limits in force."""
    found = _BUDGET.get(None)
    return Budget(default_limits()) if found is None else found


def run_with_limits(
    limits: Limits | None, function: Callable[_P, _Result], /, *args: _P.args, **kwargs: _P.kwargs
) -> _Result:
    """Call `function` under limits; None means the limits in force, or the defaults.

    The call runs in a separate context, so that nothing it sets survives it, wherever an interrupt stops it:
    the interpreter leaves a context without executing any Python code.
    """
    if limits is None and _BUDGET.get(None) is not None:
        return function(*args, **kwargs)
    return copy_context().run(_started, limits, function, args, kwargs)


def _started(
    limits: Limits | None, function: Callable[..., _Result], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Result:
    start_budget(limits)
    return function(*args, **kwargs)


def start_budget(limits: Limits | None) -> None:
    """Put limits in force for the rest of the current context, which the caller has created."""
    _BUDGET.set(Budget(default_limits() if limits is None else limits))


def limits_in_force() -> Limits:
    """Return the limits in force."""
    return budget().limits


def has_limits() -> bool:
    """Return whether limits are in force here; else each job has the defaults to itself."""
    return _BUDGET.get(None) is not None


def spend_iteration(nodes: int = 1, times: int = 1) -> None:
    """Count runs of a subgraph of this many nodes; raises LimitError past `iterations` and `seconds`."""
    present = budget()
    each = 1 + nodes // _NODES
    if present.iterations < times * each:  # the first run that is too many counts, as if it were alone
        times = int(present.iterations // each) + 1
    present.iterations -= times * each
    if present.iterations < 0:
        most = (present.limits.iterations or 0) + _ITERATIONS * present.numbers
        excess = Excess("iterations", most, _AGAIN * (most - present.iterations))
        raise LimitError("subgraphs ran as often as they may", excess)
    check_time(present)


def spend_work(size: int) -> None:
    """Count work of a node beside its results, in bytes computed; raises LimitError past `work`."""
    present = budget()
    if size > present.work:
        raise LimitError(_TOO_MUCH_WORK, *present.past_work(size))
    present.work -= size


def check_time(present: Budget | None = None) -> None:
    """Raise LimitError after the deadline, and CancelledError where the budget is cancelled."""
    present = present or budget()
    if present.deadline is not None and time.monotonic() > present.deadline:
        if present.cancelled:
            raise CancelledError("the run was cancelled")
        raise LimitError("the time is up", Excess("seconds", present.limits.seconds or 0, None))


def check_elements(
    needed: int, allowed: int = 0, *, what: str = "the output", width: int = 1, beside: int = 0
) -> None:
    """Raise LimitError for a value of more than `elements` elements, unless they are at most `allowed`.

    `width` is the size of one element in bytes, `beside` the size of temporaries; all must fit into what is
    left of `memory`. The error also names the work of writing them, if that is too much.
    """
    present = budget()
    size = needed * width + beside
    many = present.past_elements(needed) if needed > allowed else ()
    large = present.past_memory(present.live_bytes + size)
    if many or large:
        needs = [f"have {shown_number(needed)} elements"] if many else []
        needs += [f"take {shown_number(size)} bytes{_circumstances(present, beside)}"] if large else []
        raise LimitError(
            f"{what} would {' and '.join(needs)}", *many, *large, *present.past_work(needed * width)
        )


def _circumstances(present: Budget, beside: int) -> str:
    """Return what else counts towards `memory`, for a message."""
    temporaries = " with its temporaries" if beside else ""
    alive = f" beside {present.live_bytes:,} bytes of values that are alive" if present.live_bytes else ""
    return temporaries + alive


def check_constant(needed: int, allowed: int = 0, *, what: str = "the constant") -> None:
    """Raise LimitError for a constant of more than `constant_bytes`, unless it takes at most `allowed`."""
    most = budget().limits.constant_bytes
    if most is not None and needed > most and needed > allowed:
        raise LimitError(
            f"{what} would take {shown_number(needed)} bytes", Excess("constant_bytes", most, needed)
        )


def check_nodes(needed: int, allowed: int = 0) -> None:
    """Raise LimitError for a model of more than `nodes` nodes, unless they are at most `allowed`."""
    most = budget().limits.nodes
    if most is not None and needed > most and needed > allowed:
        excess = Excess("nodes", most, _AGAIN * needed)
        raise LimitError(f"inlined, the model would have {shown_number(needed)} nodes", excess)


def check_depth(depth: int) -> None:
    """Raise LimitError for graphs that are nested deeper than `depth`."""
    most = budget().limits.depth
    if most is not None and depth > most:
        raise LimitError("graphs are nested too deep", Excess("depth", most, _AGAIN * depth))


def shown_number(n: int) -> str:
    """Return a number for a message: a product of numbers from a file may have any length."""
    return f"{n:,}" if n < 1 << 64 else f"more than 2^{n.bit_length() - 1}"
