"""Explanations: the nodes that each kernel computes, and the nodes that are evaluated, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

from sabir.base import counted
from sabir.compilation.backends.cpu.products.packing import Packing
from sabir.compilation.plan.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.plan.decisions import Decision
    from sabir.compilation.plan.entries import KernelPlan, Spec


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a plan, and the labels of the nodes that it computes.

    A copy that no node computes, for example of an input to an output, has a label as well.

    `kind` is the kind of its specification, such as `nest` (a loop nest), `product` (a matrix product or
    convolution), `winograd` (a convolution of 3x3 windows with fewer multiplications), `attention`,
    `recurrence` (steps that replace states), `matrixrecurrence` (steps that update matrices), `sliding`
    (pooling and depthwise convolutions), `descent` (decision trees), `bands` (several kernels that run band
    by band), or `pack` (packing of a matrix for a product). `spec` is the specification of its machine code;
    a kernel with variants for sizes has one text for each.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[4] x) => (float[4] y) { y = Relu (x) }''')
    >>> (kernel,) = Compiled(model).explain().kernels
    >>> kernel.kind, kernel.nodes
    ('nest', ("Relu with output 'y'",))
    """

    kind: str
    nodes: tuple[str, ...]
    spec: str


@dataclass(frozen=True, slots=True)
class EvaluatedCall:
    """A node that no kernel computes: its label, and the reason. The interpreter evaluates it in each run.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[4,2] x) => (float[4,N] y) { y = Unique <axis = 1> (x) }''')
    >>> Compiled(model).explain().evaluated[0].node
    "Unique with output 'y'"
    """

    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The computation of the nodes of a model by one plan; `str` returns it as text.

    `kernels` run in this order, between the `evaluated` calls. `prepared` are the kernels that ran once, on
    constants. `without_work` has the labels of nodes that no run computes: views, sizes, and nodes that
    depend on constants alone. `later` has those of nodes that are compiled when a run has decided the ranks
    and sizes of their operands. `decisions` are those of the compiler in order; the text has those with
    rejected alternatives, each below the kernel of its nodes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[4] x) => (float[4] y) { y = Relu (x) }''')
    >>> print(Compiled(model).explain())
    1 node: 1 kernel, nothing evaluated
    kernels
      1 nest       Relu with output 'y'
    """

    kernels: tuple[Kernel, ...]
    evaluated: tuple[EvaluatedCall, ...]
    without_work: tuple[str, ...]
    prepared: tuple[Kernel, ...] = ()
    nodes: int = 0
    decisions: tuple[Decision, ...] = ()
    later: tuple[str, ...] = ()

    def __str__(self) -> str:
        fallback = f"{len(self.evaluated)} evaluated" if self.evaluated else "nothing evaluated"
        fallback += f", {len(self.later)} compiled in a run" if self.later else ""
        lines = [f"{counted(self.nodes, 'node')}: {counted(len(self.kernels), 'kernel')}, {fallback}"]
        lines += _section("kernels", self._kernels())
        lines += _section("kernels that ran once, on constants", starmap(_line, enumerate(self.prepared, 1)))
        lines += _section("evaluated", (f"  {call.node}: {call.reason}" for call in self.evaluated))
        lines += _section("compiled in a run, for what it decides", (f"  {label}" for label in self.later))
        lines += _section("without work in a run", (f"  {label}" for label in self.without_work))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from sabir.drawing import Number, fragment, heading, note, table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        decided = DecisionsOfNodes(d for d in self.decisions if d.rejected)
        kernels = (
            (Number(str(n)), k.kind, ", ".join(k.nodes), "; ".join(d.text for d in decided.of(k.nodes)))
            for n, k in enumerate(self.kernels, 1)
        )
        evaluated = ((call.node, call.reason) for call in self.evaluated)
        later = f", {len(self.later)} compiled in a run" if self.later else ""
        return fragment(
            heading(f"{counted(self.nodes, 'node')}: {counted(len(self.kernels), 'kernel')}{later}"),
            table([Number(""), "kernel", "nodes", "decisions"], kernels),
            table(["evaluated", "reason"], evaluated) or note("nothing is evaluated"),
            note(f"{counted(len(self.without_work), 'node')} without work in a run"),
        )

    def _kernels(self) -> Iterator[str]:
        """Yield the line of each kernel, and below it the decisions with rejected alternatives."""
        left = {d for d in self.decisions if d.rejected}
        decided = DecisionsOfNodes(d for d in self.decisions if d.rejected)
        for number, kernel in enumerate(self.kernels, 1):
            yield _line(number, kernel)
            for decision in decided.of(kernel.nodes):
                if decision in left:
                    left.remove(decision)
                    yield f"      {decision.text if decision.nodes == kernel.nodes else decision}"


class DecisionsOfNodes:
    """Decisions by the nodes that they concern."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self._found: dict[str, dict[Decision, None]] = {}
        for decision in decisions:
            for node in decision.nodes[:1]:
                self._found.setdefault(node, {})[decision] = None

    def of(self, nodes: Sequence[str]) -> tuple[Decision, ...]:
        """Return the decisions that concern only these nodes."""
        known = set(nodes)
        return tuple(d for node in nodes for d in self._found.get(node, ()) if known.issuperset(d.nodes))


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = list(lines)
    return [title, *found] if found else []


def _line(number: int, kernel: Kernel) -> str:
    return f"  {number} {kernel.kind:<10} {', '.join(kernel.nodes)}"


def explain(
    prepared: Prepared, plan: KernelPlan, decisions: tuple[Decision, ...], later: Collection[str] = ()
) -> Explanation:
    """Return the explanation of a plan for the program `prepared`, with the decisions of the compiler.

    Evaluated calls whose labels are in `later` are compiled in a run.
    """
    kernels = [e for e in plan.entries if isinstance(e, Entry)]
    calls = [EvaluatedCall(e.label, e.reason) for e in plan.entries if not isinstance(e, Entry)]
    evaluated = tuple(call for call in calls if call.node not in later)
    labels = [prepared.program.calls[place].label for place, _ in prepared.plan.steps]
    working = {label for e in kernels for label in e.nodes} | {call.node for call in calls}
    return Explanation(
        tuple(map(_kernel, kernels)),
        evaluated,
        tuple(label for label in labels if label not in working),
        tuple(map(_kernel, plan.setup)),
        len(labels),
        decisions,
        tuple(call.node for call in calls if call.node in later),
    )


def _kernel(entry: Entry) -> Kernel:
    return Kernel(kind_of(entry), entry.nodes, spec_text(entry))


def kind_of(entry: Entry) -> str:
    """Return the kind of an entry's kernels: the lowercase class name of the specification, or `pack`."""
    return _kind(entry.choices[0][2])


def _kind(spec: Spec) -> str:
    return "pack" if isinstance(spec, Packing) else type(spec).__name__.lower()


def spec_text(entry: Entry) -> str:
    """Return the specifications of an entry's kernels; variants follow the condition on a size."""
    if entry.bands is not None:
        return "\n".join(spec_text(part.entry) for part in entry.bands.parts)
    if len(entry.choices) == 1:
        return str(entry.choices[0][2])
    return "\n".join(
        f"{condition}\n{choice[2]}"
        for choice, condition in zip(entry.choices, _conditions(entry), strict=True)
    )


def _conditions(entry: Entry) -> Sequence[str]:
    return [
        "else" if number == len(entry.choices) - 1 else f"if {size} <= {limit}"
        for number, (size, limit, _, _) in enumerate(entry.choices)
    ]
