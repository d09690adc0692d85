"""The seam between the compiler and its targets: what a backend makes of lowered expressions.

Everything before it (preparation, lowering, the passes) knows tensors and sizes. Everything behind it knows a
machine: vectors, caches, threads, machine code. The backend of CPUs is `cpu`; the tests have a second one
that runs each expression as plain loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.base import Budget
    from sabir.compilation.cache.calls import StoredCall
    from sabir.compilation.cache.stored import StoredPlan
    from sabir.compilation.engine.worth import PlanCost
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Control, Image
    from sabir.compilation.passes import Pass
    from sabir.compilation.plan.entries import Spec
    from sabir.compilation.plan.executable import Executable
    from sabir.compilation.plan.stage_facts import StageFacts
    from sabir.compilation.runtime.repeating import Repeated
    from sabir.compilation.settings import Settings
    from sabir.evaluation import BoundPlan, Run
    from sabir.ir import Array
    from sabir.scheduling import ScheduledSubgraph

    Bodies: TypeAlias = Callable[[ScheduledSubgraph, BoundPlan, bool], Any]


class Request(NamedTuple):
    """What a backend compiles: lowered expressions, for feeds whose symbols have these `sizes`.

    Kernels are added to the `cost`, which may end the work. `progress` is called with the number of kernels
    that are ready and of all. `bodies` returns, for the constants of the plan by slot, what runs the
    subgraphs of evaluated calls. `updates` has the slots of inputs that results may be written over, by the
    slots of these results; `caches` those of inputs whose rows a result has, with others, which may be
    written into the input.
    """

    lowered: Lowered
    sizes: Mapping[str, int]
    settings: Settings
    cost: PlanCost
    progress: Callable[[int, int], None]
    bodies: Callable[[Mapping[int, Array]], Bodies]
    updates: Mapping[int, int] = {}
    caches: Mapping[int, int] = {}


class Portable(NamedTuple):
    """A plan: the keys of the machine code of its kernels by specification, the code by key, evaluated calls.

    The calls are in a form that can be stored, by their index in the program.
    """

    executable: Executable
    keys: Mapping[Spec, bytes]
    images: Mapping[bytes, Image]
    calls: Mapping[int, StoredCall]


class PortableStages(NamedTuple):
    """A plan in stages: what the stages are, the constants between them by slot, and the calls there."""

    facts: StageFacts
    constants: Mapping[int, Array]
    calls: tuple[StoredCall, ...]


class Runnable(Protocol):
    """A plan that a backend has compiled; several threads may run it at once.

    `prepared` is the program that it was made from, None for a plan that was read from the disk. `inputs` are
    the slots of the arrays that a run takes.
    """

    prepared: Prepared | None

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slots of the arrays that a run takes."""
        ...

    @property
    def is_native(self) -> bool:
        """Whether a run makes no call of the interpreter."""
        ...

    def fits(self, sizes: Mapping[str, int], /) -> bool:
        """Return whether the guards of the plan hold for the sizes of some feeds."""
        ...

    def run(
        self, inputs: Sequence[Array | None], symbols: Mapping[str, int], run: Run,
        control: Control | None = None, /,
    ) -> list[Any]:  # fmt: skip
        """Return the outputs.

        Raises Mismatch where the interpreter must run the feeds, CancelledError, and what evaluated calls
        raise.
        """
        ...

    def direct(
        self, inputs: Sequence[Array], allowed: Budget, control: Control | None, /
    ) -> list[Any] | None:
        """Return the outputs of a run like an earlier one, with few checks; None where there is none.

        It spends no more than is `allowed`.
        """
        ...

    def repeat(
        self, arrays: Sequence[Any], symbols: Mapping[str, int], run: Run, /, *, carried: int,
        limit: int | None, conditional: bool, cost: int,
    ) -> Repeated | None:  # fmt: skip
        """Return the results of a loop with this plan as its body, None where the plan cannot repeat itself.

        See `sabir.compilation.runtime.repeating.repeat`.
        """
        ...

    def portable(self) -> Portable | PortableStages | None:
        """Return the part of the plan that another process can run, None where it has none."""
        ...

    def stages(self) -> Iterator[Runnable]:
        """Yield the plans that it consists of, usually itself."""
        ...

    def release(self) -> None:
        """Free the memory that runs have left for the next ones."""
        ...


class Backend(Protocol):
    """A target that plans are compiled for, and that runs them.

    `key` identifies the target among all targets, for the cache. `threads` is how many threads a run may use.
    """

    @property
    def key(self) -> str:
        """A text that identifies the target."""
        ...

    @property
    def threads(self) -> int:
        """The number of threads of a run."""
        ...

    @property
    def passes(self) -> Sequence[Pass]:
        """The passes over tensor expressions between lowering and `compile`, in order."""
        ...

    def begin(self) -> None:
        """Load what compiling needs, in the background, while a model is prepared."""
        ...

    def compile(self, request: Request, /) -> Runnable:
        """Return the plan of lowered expressions.

        Raises UnsupportedError for a plan that the backend cannot run.
        """
        ...

    def restored(self, stored: StoredPlan, progress: Callable[[int, int], None], /) -> Runnable | None:
        """Return a plan that was read from the disk, None where its machine code is gone."""
        ...
