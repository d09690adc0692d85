"""Preparation of a model for a shape pattern: inlining, simplification, type inference, constant folding."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import (
    ACCIDENTS,
    ConversionError,
    SabirError,
    UnsupportedError,
    budget,
    check_time,
    shown_number,
)
from sabir.compilation.frontend.patterns import Guard, judge_of, number_of
from sabir.compilation.settings import MOST_CALLS
from sabir.evaluation import CallBinder
from sabir.inference import Inference
from sabir.ir import (
    Expr,
    TensorType,
    above_one,
    canonical_domain,
    choose_extremes,
    dim_max,
    dim_min,
    drop_constants,
    judging,
    symbol,
)
from sabir.opsets import with_internal
from sabir.rewriting import InlineFunctions, StackAccumulators, run_passes
from sabir.scheduling import OperatorCall, make_plan, schedule
from sabir.schema import INTERNAL, Scope, as_results, expansion
from sabir.simplification import Simplify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.frontend.patterns import ShapePattern
    from sabir.inlining import InlineOperators
    from sabir.ir import Array, Graph, Model, Type, Value
    from sabir.scheduling import Plan, Program, ScheduledCall
    from sabir.schema import Registry, Version

_MOST_FOLDED = 1 << 27  # elements of a folded constant


class Prepared(NamedTuple):
    """A model as a program, with the type of the value in each slot and the constants by slot.

    `inputs` are the slots of the feeds, `guards` the assumptions of the types about their sizes, `unknown`
    the symbols of sizes that no inference rule determines.
    """

    program: Program
    plan: Plan
    types: list[Type | None]
    constants: dict[int, Array]
    inputs: tuple[int, ...]
    guards: tuple[Guard, ...] = ()
    unknown: frozenset[str] = frozenset()


def prepare(
    model: Model, pattern: ShapePattern, sizes: Mapping[str, int], registry: Registry, *, newer_opsets: bool
) -> Prepared:
    """Return a copy of the model as a program for a pattern; raises the errors of scheduling.

    `sizes` are the sizes of the current feeds: they decide minima and maxima, which become guards.
    """
    _require_bounded_inlining(model, registry)
    registry, copy = with_internal(registry), model.clone()
    if copy.functions:
        run_passes(copy, [_inlining(registry)])
    _apply_pattern(copy.graph, pattern)
    copy = _in_opset_of_bodies(copy, registry)
    graph = copy.graph
    before = [*_replacements(copy, registry, sizes), StackAccumulators(registry)]
    run_passes(copy, [*before, Simplify(registry=registry)])
    typing = _Typing(copy, registry, sizes)
    for value, kind in typing.run().items():
        if value.home is graph:
            value.type = kind
    scheduled = schedule(copy, registry, newer_opsets=newer_opsets)
    program = scheduled.program
    plan = make_plan(program, list(dict.fromkeys(v.slot for v in program.outputs)))
    by_slot: list[Type | None] = [None] * program.size
    for value in program.values:
        by_slot[value.slot] = value.type
    inputs = tuple(v.slot for v in program.inputs)
    for each in copy.graphs():
        drop_constants(each)  # the program has them, and a copy lives until the cycle collector runs
    return Prepared(program, plan, by_slot, folded(program, plan), inputs, tuple(typing.guards),
                    frozenset(typing.unknown))  # fmt: skip


def _require_bounded_inlining(model: Model, registry: Registry) -> None:
    """Raise UnsupportedError if inlined functions have more calls than a plan may have."""
    needed, own = expansion([model.graph], Scope.of(model, registry, newer_opsets=True))
    if needed > max(MOST_CALLS, own):
        most = f"a plan has at most {MOST_CALLS:,} calls"
        raise UnsupportedError(f"inlined, the model has {shown_number(needed)} nodes, and {most}")


def require_bounded(prepared: Prepared) -> None:
    """Raise UnsupportedError for a program of more calls than a plan may have."""
    calls = len(prepared.plan.steps)
    if calls > MOST_CALLS:
        raise UnsupportedError(f"the model has {calls:,} calls, and a plan has at most {MOST_CALLS:,}")


def _inlining(registry: Registry) -> InlineFunctions:
    """Return the pass that replaces calls of functions by their bodies."""
    # ruff: ignore[import-outside-top-level]  slow to load, and few models have functions
    from sabir.conversion import convert_in_place

    def convert(body: Model, opsets: Mapping[str, int]) -> None:
        convert_in_place(body, opsets, registry)

    return InlineFunctions(registry, convert=convert)


def _replacements(model: Model, registry: Registry, sizes: Mapping[str, int]) -> list[InlineOperators]:
    """Return the passes that inline operators that are lowered only as their bodies, or in parts.

    A call that inference refuses is not inlined: its body may accept what the operator does not.
    """
    called = _called_versions(model, registry)
    parts = {version.operator.name for version in called if version.find("parts") is not None}
    bodies = {version.operator.name for version in called if _is_lowered_as_body(version)}
    if not parts and not bodies:
        return []
    # ruff: ignore[import-outside-top-level]  slow to load, and few models have such operators
    from sabir.inlining import InlineOperators

    model.opsets[INTERNAL] = 1
    types = _Typing(model, registry, sizes).run()
    invalid = frozenset(n for n in model.graph if any(v is not None and v not in types for v in n.outputs))
    found = [
        InlineOperators(registry, frozenset(parts), behaviour="parts", kept=invalid, labelled=True),
        InlineOperators(registry, frozenset(bodies), kept=invalid, labelled=True),
    ]
    return [each for each in found if each.named]


def _called_versions(model: Model, registry: Registry) -> set[Version]:
    """Return the versions of the operators that a model calls, in its subgraphs too."""
    graphs = (inner for graph in model.graphs() for inner in graph.scopes())
    called = {(node.domain, node.op) for graph in graphs for node in graph}
    found = (registry.find_version(d, op, model.opset(canonical_domain(d))) for d, op in called)
    return {version for version in found if version is not None}


def _is_lowered_as_body(version: Version) -> bool:
    return (
        version.find("lower") is None and not version.why_absent("lower") and version.find("body") is not None
    )


def _in_opset_of_bodies(model: Model, registry: Registry) -> Model:
    """Return the model in the opset that the bodies of its operators need; itself where no conversion is.

    The calls whose bodies need a newer opset are then evaluated.
    """
    bodies = [v.operator.body_opset for v in _called_versions(model, registry) if _is_lowered_as_body(v)]
    opset, needed = model.opset(""), max(bodies, default=0)
    if opset is None or opset >= needed:
        return model
    # ruff: ignore[import-outside-top-level]  slow to load, and few models have such operators
    from sabir.conversion import convert_in_place

    newer = model.clone()
    try:
        convert_in_place(newer, {"": needed}, registry)
    except ConversionError:
        return model
    return newer


def _apply_pattern(graph: Graph, pattern: ShapePattern) -> None:
    """Set the types of the inputs to those of a pattern, and remove the types of computed values."""
    for value, kind in zip(list(graph.inputs), pattern.inputs, strict=True):
        if kind is not None:
            value.type = kind
            if value in graph.initializers:
                graph.set_initializer(value, None)
        elif value in graph.initializers:
            graph.inputs.remove(value)  # its default is a constant of this plan
    for node in graph:
        for value in node.outputs:
            if value is not None and isinstance(value.type, TensorType):
                value.type = None


class _Typing:
    """The types of all values for one pattern.

    A size that no inference rule determines becomes a new symbol. A minimum or maximum of sizes becomes the
    operand that it equals for the current feeds, and a guard: exporters clamp slices so, and the clamp hides
    equal sizes.
    """

    def __init__(self, model: Model, registry: Registry, sizes: Mapping[str, int]) -> None:
        self._inference = Inference(model, registry=registry, fresh=True)
        self._graph, self._sizes = model.graph, sizes
        self.guards: dict[Guard, None] = {}
        self._changed: set[Value] = set()
        self._count = 0
        self.unknown: set[str] = set()

    def run(self) -> dict[Value, Type]:
        """Return the types by value."""
        with (
            above_one(self._sizes),
            judging(judge_of(self._sizes, self.guards)),
        ):  # smaller sizes are numbers in a pattern
            return self._run()

    def _run(self) -> dict[Value, Type]:
        inference = self._inference
        inference.run()
        for node in self._graph.sorted_nodes():
            if self._changed and any(v in self._changed for v in node.reads()):
                try:
                    inference.visit(node)
                except (SabirError, *ACCIDENTS):
                    continue
                self._changed.update(v for v in node.outputs if v is not None)
            for value in node.outputs:
                kind = None if value is None else inference.types.get(value)
                if value is not None and isinstance(kind, TensorType) and kind.shape is not None:
                    self._settle(value, kind)
        return inference.types

    def _settle(self, value: Value, kind: TensorType) -> None:
        shape = tuple(
            self._named(axis) if d is None else choose_extremes(d, self._choose)
            for axis, d in enumerate(kind.shape or ())
        )
        known = kind.known and tuple(
            choose_extremes(i, self._choose) if isinstance(i, Expr) else i for i in kind.known
        )
        if shape != kind.shape or known != kind.known:
            self._inference.types[value] = TensorType(kind.element, shape, known)
            self._changed.add(value)
            self._count += 1

    def _named(self, axis: int) -> Expr:
        name = f"s{self._count}.{axis}"
        self.unknown.add(name)
        return symbol(name)

    def _choose(self, op: str, arguments: tuple[int | Expr, ...]) -> int | Expr:
        numbers = [number_of(a, self._sizes) for a in arguments]
        present = [n for n in numbers if n is not None]
        if len(present) < len(arguments):
            return (dim_min if op == "min" else dim_max)(*arguments) or 0
        best = min(present) if op == "min" else max(present)
        chosen = arguments[numbers.index(best)]
        others = tuple(a for a in arguments if a is not chosen)
        self.guards.setdefault(Guard(op, chosen, others))
        return chosen


# ---------------------------------------------------------------- constants


def folded(program: Program, plan: Plan) -> dict[int, Array]:
    """Return the constants by slot: initializers, and the results of calls on constants."""
    arrays = {slot: tensor.array() for slot, tensor in program.constants.items()}
    binder = CallBinder(strict=False)
    for place, _ in plan.steps:
        check_time()
        fold(program.calls[place], arrays, binder)
    return arrays


def fold(call: ScheduledCall, arrays: dict[int, Array], binder: CallBinder) -> None:
    """Add the results of a call to the constants by slot, if its operands are constants."""
    if not _is_foldable(call, arrays):
        return
    results = _evaluated(call, arrays, binder)
    if results is not None:
        arrays.update({slot: x for slot, x in zip(call.outputs, results, strict=False) if slot})


def _is_foldable(call: ScheduledCall, arrays: Mapping[int, Array]) -> bool:
    if not isinstance(call, OperatorCall) or call.captures or call.problem or call.cost > 1:
        return False
    if call.version.operator.random or call.version.find("evaluate") is None:
        return False
    return all(slot in arrays for slot in call.inputs if slot)


def _evaluated(call: ScheduledCall, arrays: Mapping[int, Array], binder: CallBinder) -> list[Array] | None:
    """Return the results of a call on constants.

    None if it fails or exceeds a limit: the run reports that.
    """
    operands = [arrays.get(slot) for slot in call.inputs]
    present = budget()
    try:
        bound = binder.bind(call)
        if bound.checks is not None:
            bound.checks.check(operands, present.unchecked_elements)
        with np.errstate(all="ignore"):
            results = as_results(bound.function(*operands))
    except (SabirError, *ACCIDENTS):
        return None
    if not all(isinstance(x, (np.ndarray, np.generic)) for x in results):
        return None
    found = [np.asarray(x) for x in results]
    size = sum(x.nbytes for x in found)
    if sum(x.size for x in found) > _MOST_FOLDED or present.live_bytes + size > present.memory:
        return None
    present.live_bytes += size  # a folded constant lives as long as the plan
    return found
