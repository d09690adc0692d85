"""What one job on a model may spend, and where the spending is counted.

A model file is untrusted: a few bytes can ask for terabytes, or for ever. The bounds in force are a context
variable, so that the place deep inside which is about to spend asks for them, and nothing between must pass
them on.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from sabir.base._errors import Excess, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


class Limits(NamedTuple):
    """Bounds on one job: a load, a check, an inference, a run. None removes a bound.

    The defaults accept every model whose cost is in proportion to its size and to its feeds, and refuse a
    model that asks for much more than that. Each number among the constants and the feeds of a run raises its
    bounds: by 32 `elements`, 256 bytes of `memory`, 32 KiB of `work` and one of `iterations`.
    """

    constant_bytes: int | None = 1 << 29
    """Bytes of a constant that is larger than its data in the file, such as a sparse tensor made dense."""
    elements: int | None = 1 << 27
    """Elements of one value that a node computes; one no larger than its inputs is always allowed."""
    nodes: int | None = 1_000_000
    """Nodes after functions are inlined."""
    depth: int | None = 32
    """Graphs inside graphs."""
    iterations: int | None = 1 << 18
    """Runs of subgraphs, of all loops together; every four nodes of a subgraph count as one run more."""
    seconds: float | None = None
    """Time, checked between one node and the next."""
    memory: int | None = 3 << 28
    """Bytes of the values that a run keeps at one time."""
    work: int | None = 1 << 31
    """Bytes that all nodes of a run compute."""


DEFAULT_LIMITS = Limits()
NO_LIMITS = Limits(*[None] * len(Limits._fields))
_ELEMENTS, _MEMORY, _WORK, _ITERATIONS = 32, 256, 1 << 15, 1  # for each number among constants and feeds
_NODES = 4  # of a subgraph, which cost as much as the call of it
_PLAIN, _INFINITE = 1 << 22, math.inf
_TURN = 1 << 13  # bytes that numpy computes in the time of an operation on next to nothing
_AGAIN = 2  # the step that exceeds a sum is seldom the last: what is proposed allows as much once more


class Budget:
    """What is left of some limits.

    `held` is how many bytes the values of a run have now, `plain` how many elements a value may have without
    another look.
    """

    __slots__ = ("deadline", "elements", "given", "held", "iterations", "limits", "memory", "plain", "work")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        self.elements = _INFINITE if limits.elements is None else limits.elements
        self.iterations = _INFINITE if limits.iterations is None else limits.iterations
        self.memory = _INFINITE if limits.memory is None else limits.memory
        self.work = _INFINITE if limits.work is None else limits.work
        self.held = self.given = 0
        bounded = min(self.elements, self.memory)
        self.plain = _INFINITE if bounded == _INFINITE else min(_PLAIN, bounded)

    def give(self, numbers: int) -> None:
        """Raise the bounds of a run that has so many numbers among its constants and feeds."""
        more = numbers - self.given
        if more > 0:
            self.elements += _ELEMENTS * more
            self.memory += _MEMORY * more
            self.work += _WORK * more
            self.iterations += _ITERATIONS * more
            self.given = numbers

    def hold(self, size: int) -> None:
        """Count a computed value of so many bytes; raises LimitError past `memory` and past `work`."""
        self.held += size
        self.work -= size
        if self.held > self.memory or self.work < 0:
            raise LimitError(
                f"the values of the run would take {self.held:,} bytes"
                if self.held > self.memory
                else _TOO_MUCH_WORK,
                *self.past_memory(self.held),
                *self.past_work(0),
            )

    def past_elements(self, needed: int) -> tuple[Excess, ...]:
        """Return the excess of a value of so many elements, where there is one."""
        return (Excess("elements", self.elements, needed),) if needed > self.elements else ()

    def past_memory(self, needed: int) -> tuple[Excess, ...]:
        """Return the excess of values of so many bytes together, where there is one."""
        return (Excess("memory", self.memory, needed),) if needed > self.memory else ()

    def past_work(self, more: int) -> tuple[Excess, ...]:
        """Return the excess of so much more work, where there is one."""
        if more <= self.work:
            return ()
        most = (self.limits.work or 0) + _WORK * self.given
        return (Excess("work", most, _AGAIN * (most - self.work + more)),)


_TOO_MUCH_WORK = "the nodes of the run compute too much"
_BUDGET: ContextVar[Budget] = ContextVar("what is left of the limits")


def budget() -> Budget:
    """Return what is left of the limits in force."""
    found = _BUDGET.get(None)
    return Budget(DEFAULT_LIMITS) if found is None else found


def run_within(
    limits: Limits | None, function: Callable[_P, _Result], /, *args: _P.args, **kwargs: _P.kwargs
) -> _Result:
    """Call `function` and bound what it spends; None means the limits in force, or the defaults.

    The call runs in a context of its own, so that nothing it sets outlives it, wherever an interrupt stops
    it: the interpreter leaves a context without executing an instruction of Python.
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
    """Put limits in force for the rest of the current context; whoever calls this has made that context."""
    _BUDGET.set(Budget(DEFAULT_LIMITS if limits is None else limits))


def limits_in_force() -> Limits:
    """Return the limits that hold here."""
    return budget().limits


def spend_iteration(nodes: int = 1) -> None:
    """Count one run of a subgraph of so many nodes; raises LimitError past `iterations` and `seconds`."""
    present = budget()
    present.iterations -= 1 + nodes // _NODES
    if present.iterations < 0:
        most = (present.limits.iterations or 0) + _ITERATIONS * present.given
        excess = Excess("iterations", most, _AGAIN * (most - present.iterations))
        raise LimitError("subgraphs ran as often as they may", excess)
    check_time(present)


def spend_work(size: int, turns: int = 0) -> None:
    """Count work that a node does beside what it gives; raises LimitError past `work`.

    `size` is in bytes computed; `turns` counts array operations, each of which costs something by itself.
    """
    present = budget()
    size += turns * _TURN
    if size > present.work:
        raise LimitError(_TOO_MUCH_WORK, *present.past_work(size))
    present.work -= size


def check_time(present: Budget | None = None) -> None:
    """Raise LimitError where the time is up."""
    present = present or budget()
    if present.deadline is not None and time.monotonic() > present.deadline:
        raise LimitError("the time is up", Excess("seconds", present.limits.seconds or 0, None))


def check_elements(
    needed: int, given: int = 0, *, what: str = "the output", width: int = 1, beside: int = 0
) -> None:
    """Raise LimitError where a value would have more than `elements` elements, and more than is `given`.

    `width` is how many bytes one takes, `beside` how many others are in use while it is made; they have to
    fit into what is left of `memory`. The error names the work of writing them too, where that is too much.
    """
    present = budget()
    size = needed * width + beside
    many = present.past_elements(needed) if needed > given else ()
    large = present.past_memory(present.held + size)
    if many or large:
        told = [f"have {_number(needed)} elements"] if many else []
        told += [f"take {_number(size)} bytes{' with its temporaries' if beside else ''}"] if large else []
        raise LimitError(
            f"{what} would {' and '.join(told)}", *many, *large, *present.past_work(needed * width)
        )


def check_constant(needed: int, given: int = 0, *, what: str = "the constant") -> None:
    """Raise LimitError where a constant would take more than `constant_bytes`, and more than is `given`."""
    most = budget().limits.constant_bytes
    if most is not None and needed > most and needed > given:
        raise LimitError(f"{what} would take {_number(needed)} bytes", Excess("constant_bytes", most, needed))


def check_nodes(needed: int, given: int = 0) -> None:
    """Raise LimitError where a model would have more than `nodes` nodes, and more than is `given`."""
    most = budget().limits.nodes
    if most is not None and needed > most and needed > given:
        excess = Excess("nodes", most, _AGAIN * needed)
        raise LimitError(f"inlined, the model would have {_number(needed)} nodes", excess)


def check_depth(depth: int) -> None:
    """Raise LimitError where graphs are nested deeper than `depth`."""
    most = budget().limits.depth
    if most is not None and depth > most:
        raise LimitError("graphs are nested too deep", Excess("depth", most, _AGAIN * depth))


def _number(n: int) -> str:
    """Return a number as it may stand in a message: products of a file's numbers have no end."""
    return f"{n:,}" if n < 1 << 64 else f"more than 2^{n.bit_length() - 1}"
