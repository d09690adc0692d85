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

from sabir.base._errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

_P, _Result = ParamSpec("_P"), TypeVar("_Result")


class Limits(NamedTuple):
    """Bounds on one job: a load, a check, an inference, a run. None leaves a bound out.

    The defaults let every model through whose cost is in proportion to its size and to its feeds, and stop
    the ones that blow up. `elements` and `constant_bytes` therefore bound only what is larger than the data
    it is made from, and a run may have more `memory` and `work` the more bytes its constants and feeds have.
    """

    constant_bytes: int | None = 1 << 29
    """Bytes of a constant that is larger than the file says: a sparse tensor made dense, a shape filled."""
    elements: int | None = 1 << 27
    """Elements of one value that a node computes, where its inputs together have fewer."""
    nodes: int | None = 1_000_000
    """Nodes after functions are inlined."""
    depth: int | None = 32
    """Graphs inside graphs."""
    iterations: int | None = 100_000
    """How often subgraphs may run, those of all loops together, beyond one run for each KiB of constants and
    feeds; every eight nodes of a subgraph count as one more."""
    seconds: float | None = None
    """Time, looked at between one node and the next."""
    memory: int | None = 3 << 28
    """Bytes of the values that a run holds at a time, beyond 16 for each byte of its constants and feeds."""
    work: int | None = 1 << 31
    """Bytes that all nodes of a run compute, beyond 4096 for each byte of its constants and feeds."""


DEFAULT_LIMITS = Limits()
NO_LIMITS = Limits(*[None] * len(Limits._fields))
_MEMORY_SHARE, _WORK_SHARE = 16, 4096  # per byte of constants and feeds
_ITERATION_SHIFT, _NODES = 10, 8
_PLAIN, _INFINITE = 1 << 22, math.inf
_TURN = 1 << 13  # bytes that numpy computes in the time of an operation on next to nothing


class Budget:
    """What is left of some limits.

    `held` is how many bytes the values of a run have now, `plain` how many elements a value may have without
    another look.
    """

    __slots__ = ("deadline", "given", "held", "iterations", "limits", "memory", "plain", "work")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.iterations = _INFINITE if limits.iterations is None else limits.iterations
        self.deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        self.memory = _INFINITE if limits.memory is None else limits.memory
        self.work = _INFINITE if limits.work is None else limits.work
        self.held = self.given = 0
        elements = limits.elements
        bounded = elements is not None or limits.memory is not None
        most = _PLAIN if elements is None else elements
        self.plain = min(_PLAIN, self.memory, most) if bounded else _INFINITE

    def give(self, size: int) -> None:
        """Make room for a run on so many bytes of constants and feeds."""
        if size > self.given:
            self.memory += _MEMORY_SHARE * (size - self.given)
            self.work += _WORK_SHARE * (size - self.given)
            self.iterations += (size - self.given) >> _ITERATION_SHIFT
            self.given = size

    def hold(self, size: int) -> None:
        """Count a computed value of so many bytes; raises LimitError past `memory` and past `work`."""
        self.held += size
        self.work -= size
        if self.held > self.memory:
            raise LimitError("memory", f"the values of the run would take {self.held:,} bytes", self.memory)
        if self.work < 0:
            raise LimitError("work", "the nodes of the run compute too much", self.limits.work)


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
        raise LimitError("iterations", "subgraphs ran as often as they may", present.limits.iterations)
    check_time(present)


def spend_work(size: int, turns: int = 0) -> None:
    """Count work that a node does beside what it gives; raises LimitError past `work`.

    `size` is in bytes computed; `turns` counts array operations, each of which costs something by itself.
    """
    present = budget()
    size += turns * _TURN
    if size > present.work:
        raise LimitError("work", "the nodes of the run compute too much", present.limits.work)
    present.work -= size


def check_time(present: Budget | None = None) -> None:
    """Raise LimitError where the time is up."""
    present = present or budget()
    if present.deadline is not None and time.monotonic() > present.deadline:
        raise LimitError("seconds", "the time is up", present.limits.seconds)


def check_elements(needed: int, given: int = 0, *, what: str = "the output", width: int = 1) -> None:
    """Raise LimitError where a value would have more than `elements` elements, and more than is `given`.

    `width` is how many bytes one takes; they have to fit into what is left of `memory`.
    """
    present = budget()
    most = present.limits.elements
    if most is not None and needed > most and needed > given:
        raise LimitError("elements", f"{what} would have {_number(needed)} elements", most)
    if needed * width > present.memory - present.held:
        raise LimitError("memory", f"{what} would take {_number(needed * width)} bytes", present.memory)


def check_constant(needed: int, given: int = 0, *, what: str = "the constant") -> None:
    """Raise LimitError where a constant would take more than `constant_bytes`, and more than is `given`."""
    most = budget().limits.constant_bytes
    if most is not None and needed > most and needed > given:
        raise LimitError("constant_bytes", f"{what} would take {_number(needed)} bytes", most)


def check_nodes(needed: int, given: int = 0) -> None:
    """Raise LimitError where a model would have more than `nodes` nodes, and more than is `given`."""
    most = budget().limits.nodes
    if most is not None and needed > most and needed > given:
        raise LimitError("nodes", f"inlined, the model would have {_number(needed)} nodes", most)


def check_depth(depth: int) -> None:
    """Raise LimitError where graphs are nested deeper than `depth`."""
    most = budget().limits.depth
    if most is not None and depth > most:
        raise LimitError("depth", "graphs are nested too deep", most)


def _number(n: int) -> str:
    """Return a number as it may stand in a message: products of a file's numbers have no end."""
    return f"{n:,}" if n < 1 << 64 else f"more than 2^{n.bit_length() - 1}"
