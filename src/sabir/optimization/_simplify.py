"""`simplify`: fewer nodes that compute the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import (
    Limits,
    NotFoundError,
    SabirError,
    quote,
    run_with_limits,
    suggest,
    without_collector,
)
from sabir.inlining import inline_in_place
from sabir.ir import CONSTANTS, check_is_model, stored_bytes
from sabir.opsets import STANDARD
from sabir.optimization._branches import Unnest
from sabir.optimization._copies import DropCopies
from sabir.optimization._counts import Counts, count
from sabir.optimization._folding import Fold
from sabir.optimization._joining import JoinProducts
from sabir.optimization._protected import protected
from sabir.optimization._states import DropZeroStates
from sabir.optimization._verifying import verified
from sabir.rewriting import change_ir_version, merge_equal, remove_dead_nodes
from sabir.schema import Scope
from sabir.simplification import OPTIMIZATIONS, REWRITES, Simplify

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sabir.inference import Inference
    from sabir.ir import Graph, Model, Value
    from sabir.optimization._verifying import Verification
    from sabir.schema import Registry

_MOST_ROUNDS = 10
_LEAST_GROWTH = 1 << 16  # bytes


@dataclass(frozen=True)
class Simplification:
    """A simplified model, what both consist of, and how often each rewrite was applied.

    `verification` compares their outputs; None where they were not run.
    """

    model: Model
    before: Counts = field(default_factory=Counts)
    after: Counts = field(default_factory=Counts)
    applied: Mapping[str, int] = field(default_factory=dict[str, int])
    verification: Verification | None = None


def simplify(
    model: Model,
    keep: Collection[str] = (),
    fuse: bool = True,  # ruff: ignore[boolean-type-hint-positional-argument, boolean-default-value-positional-argument] - the public signature
    verify: bool | None = None,  # ruff: ignore[boolean-type-hint-positional-argument] - as `fuse`
    *,
    growth: float = 1.1,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model with fewer nodes, which computes the same up to rounding.

    Constants and known sizes are folded, equal nodes merged, and those that nothing reads or that have no
    effect removed; functions and branches of a known condition are written out. With `fuse` linear
    operators take in what follows them, and operators replace the patterns that they mean. The inputs,
    the outputs and the values named in `keep` stay. Constants grow by no more than the factor `growth`, or
    64 KiB. What is not known, such as the operators of other domains, stays.

    `verify` runs both models on random inputs of several shapes; by default that is done for models of up to
    256 MiB whose operators are all known. Raises EvaluationError where they differ, NotFoundError for a name
    in `keep` that no value of the main graph has, SchemaError for nodes that read each other in a cycle,
    LimitError.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,4] x) => (float[N,2,2] y) { s = Shape (x)  i = Constant <value = int64[1] {0}> ()
    ... n = Gather (s, i)  r = Constant <value = int64[2] {2, 2}> ()  t = Concat <axis = 0> (n, r)
    ... y = Reshape (x, t) }''')
    >>> [node.op for node in sabir.simplify(model).graph]
    ['Reshape']
    """
    check_is_model(model)
    options = _Options(keep, fuse, verify, growth, registry)
    return run_with_limits(limits, _simplified, model, options).model


def simplify_model(
    model: Model,
    keep: Collection[str] = (),
    fuse: bool = True,  # ruff: ignore[boolean-type-hint-positional-argument, boolean-default-value-positional-argument] - the public signature
    verify: bool | None = None,  # ruff: ignore[boolean-type-hint-positional-argument] - as `fuse`
    *,
    growth: float = 1.1,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Simplification:
    """Simplify a model as `simplify` does, and return it with what changed."""
    check_is_model(model)
    options = _Options(keep, fuse, verify, growth, registry)

    def run() -> Simplification:
        found = _simplified(model, options)
        before, after = (count(m, registry=registry) for m in (model, found.model))
        return replace(found, before=before, after=after)

    return run_with_limits(limits, run)


class _Options(NamedTuple):
    """The options of `simplify`."""

    keep: Collection[str]
    fuse: bool
    verify: bool | None
    growth: float
    registry: Registry


def _simplified(model: Model, options: _Options) -> Simplification:
    with without_collector():  # hardly any node becomes garbage, and each pass would visit all of them
        copy = model.clone()
        applied = _Job(copy, options).run()  # the job and its types are gone before the collector runs again
    found = verified(model, copy, "the simplification", verify=options.verify, registry=options.registry)
    return Simplification(copy, applied=applied, verification=found)


class _Job:
    """The simplification of one model, in place."""

    def __init__(self, model: Model, options: _Options) -> None:
        self._model, self._registry, self._fuse = model, options.registry, options.fuse
        self._named = frozenset(_named(model.graph, options.keep))
        self._kept = self._named
        present = stored_bytes(model)
        self._limit = max(present * options.growth, present + _LEAST_GROWTH)
        self._rules = [r for r in (*REWRITES, *OPTIMIZATIONS) if options.fuse or r.exact]
        self._inference: Inference | None = None  # of the last round, if its types are still right
        self._applied: dict[str, int] = {}

    def run(self) -> dict[str, int]:
        """Apply all passes until none changes anything; return how often each rewrite was applied."""
        model = self._model
        if model.functions:
            self._inline()
        model.graph.sort()
        if 0 < model.ir_version < CONSTANTS.since:
            _separate_constants(model, self._registry)
        self._kept = self._named | protected(model, self._registry)
        outputs = list(model.graph.outputs)
        model.graph.outputs.extend(v for v in self._kept if v not in outputs and v.home is model.graph)
        for _ in range(_MOST_ROUNDS):
            if not self._round():
                break
        del model.graph.outputs[len(outputs) :]
        _drop_unread(model.graph, self._kept)
        return self._applied

    def _inline(self) -> None:
        try:
            inline_in_place(self._model, registry=self._registry)
        except SabirError:
            return  # what has no body, or too large a one, stays a call

    def _round(self) -> bool:
        model, registry = self._model, self._registry
        rewriting = Simplify(self._rules, registry=registry)
        room = int(self._limit) - stored_bytes(model)
        changed, inference = Fold(registry, max(0, room), self._kept).infer(model, self._inference)
        remove_dead_nodes(model, registry=registry)
        is_flatter = Unnest(registry, self._kept).run(model)
        is_other = is_flatter | DropZeroStates().run(model)
        changed |= rewriting.run(model, None if is_flatter else inference)
        if self._fuse:
            changed |= JoinProducts(registry, self._kept).run(model, inference)
        changed |= is_other
        self._inference = None if is_other or rewriting.has_new_types else inference
        for name in rewriting.applied:
            self._applied[name] = self._applied.get(name, 0) + 1
        scope = Scope.of(model, registry, newer_opsets=True)
        kept = self._kept
        changed |= DropCopies(kept).run(model)
        changed |= merge_equal(model.graph, scope, most_bytes=None, kept=kept) > 0
        changed |= remove_dead_nodes(model, registry=registry) > 0
        for graph in model.graph.scopes():
            _drop_unread(graph, kept)
        return changed


def _separate_constants(model: Model, registry: Registry) -> None:
    """Raise a model to the IR version in which a constant need not be an input; until then all were."""
    change_ir_version(model, CONSTANTS.since, registry)
    for value in [v for v in model.graph.inputs if v in model.graph.initializers]:
        model.graph.inputs.remove(value)


def _named(graph: Graph, names: Collection[str]) -> Iterator[Value]:
    """Yield the values of a graph with these names."""
    by_name = {v.name: v for v in graph.defined()} if names else {}
    for name in names:
        if name not in by_name:
            raise NotFoundError(f"the main graph has no value {quote(name)}{suggest(name, by_name)}")
        yield by_name[name]


def _drop_unread(graph: Graph, kept: Collection[Value]) -> None:
    """Remove the initializers that nothing reads."""
    for value in list(graph.initializers):
        if not (value.is_read or value.is_input or value in kept):
            graph.set_initializer(value, None)
