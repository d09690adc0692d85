"""The inspection of a compiled plan: its explanation, and listings at each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, quote
from sabir.compilation.backends.cpu.passes import PASSES
from sabir.compilation.inspect.explaining import explain
from sabir.compilation.inspect.listing import LISTINGS, after_pass
from sabir.compilation.plan.decisions import Decision
from sabir.compilation.plan.entries import Entry
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.fast import work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from sabir.compilation.inspect.explaining import Explanation
    from sabir.compilation.inspect.listing import Listed
    from sabir.compilation.settings import Settings


class CompiledPlan:
    """The plan of a model for feeds of fixed shapes; `sizes` has the sizes of these shapes by symbol.

    It has `kernels` different kernels; `compiled` is the number of those that were in no cache.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> plan = Compiled(model).compile({'x': np.float32([-1, 2])})
    >>> plan.kernels
    1
    >>> list(plan.listing('loops'))[-1]
    '  y: float[N] = max(x, 0)'
    """

    def __init__(
        self, program: Listed, sizes: Mapping[str, int], settings: Settings, whole: Callable[[], Listed],
        later: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Create the view of a plan; `whole` returns a plan that has its `source` program.

        `later` has the labels of nodes that are compiled in a run, see `Explanation`.
        """
        self._later = later
        self._settings = settings
        self._program, self._whole = program, whole
        self.sizes = dict(sizes)
        self.kernels, self.compiled = program.kernels, program.compiled

    def explain(self) -> Explanation:
        """Return the nodes that each kernel computes, and the nodes that are evaluated."""
        program = self._whole()
        return explain(program.source, program.plan, self._decisions(program), self._later)

    def _decisions(self, program: Listed) -> tuple[Decision, ...]:
        """Return the decisions of a plan, and one about the number of threads for these sizes."""
        found, sizes, plan = program.plan.decisions.all(), RunSizes(self.sizes), program.plan
        if program.threads == 1 or not all(isinstance(e, Entry) for e in plan.entries):
            return found
        work, several = work_of(plan, sizes), f"{program.threads} threads"
        if work < plan.single_work:
            because = f"{work} operations and bytes < {plan.single_work}"
            return (*found, Decision((), "threads", "one thread", several, because))
        because = f"{work} operations and bytes >= {plan.single_work}"
        return (*found, Decision((), "threads", several, because=because))

    def listing(self, form: str) -> Iterator[str]:
        """Return the lines of a listing of the plan; equal plans have equal lines.

        `form` is `loops` (the tensor expressions of each node), `schedule` (the kernels with their loops),
        `plan` (the kernels with their memory for these sizes), `llvm` or `asm` (the code of each kernel for
        the processor of the plan), or the name of a pass, one of `PASSES` (the tensor expressions after that
        pass). Raises UnsupportedError for another form.
        """
        if form in PASSES:
            return after_pass(self._whole(), RunSizes(self.sizes), form, self._settings.without)
        if form not in LISTINGS:
            raise UnsupportedError(
                f"there is no listing {quote(form)}; the listings are {', '.join((*LISTINGS, *PASSES))}"
            )
        return LISTINGS[form](self._whole(), RunSizes(self.sizes))

    @property
    def flops(self) -> int:
        """The floating-point operations of the kernels whose sizes are known before a run."""
        sizes = RunSizes(self.sizes)
        return sum(sizes.get(e.flops) or 0 for e in self._program.plan.entries if isinstance(e, Entry))
