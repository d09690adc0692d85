"""The smallest model that still fails: delta debugging of models."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sabir.base import SabirError, UnsupportedError
from sabir.checking import findings
from sabir.debugging._parts import (
    bare,
    sizes_of,
    types_by_name,
    with_attributes,
    with_nodes,
    with_outputs,
    with_size,
    with_weights_as_inputs,
    without_node,
)
from sabir.debugging._shrinking import shrink
from sabir.inference import type_outputs
from sabir.inlining import inline
from sabir.ir import Model, check_is_model, stored_bytes
from sabir.opsets import STANDARD
from sabir.serial import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.ir import Type
    from sabir.schema import Registry

T = TypeVar("T")
_LITTLE = 1 << 22  # bytes of the tensors of a model that is remembered once it was tried
_FEW = 64  # elements of a weight that may stand for a shape or an axis


class ReductionStep(NamedTuple):
    """What a reduction has come to: what it does now, how many models it tried, and the smallest so far.

    >>> ReductionStep('nodes', trials=3, nodes=12, parameters=0).nodes
    12
    """

    action: str
    trials: int
    nodes: int
    parameters: int


def reduce(
    model: Model,
    failing: Callable[[Model], bool],
    *,
    progress: Callable[[ReductionStep], None] | None = None,
    registry: Registry = STANDARD,
) -> Model:
    """Return the smallest model found for which `failing` still returns true; the model is not changed.

    Nodes of the main graph are left out by delta debugging: what others read of them becomes an input, and
    what they read of others an output. Then go outputs, nodes whose operand can stand for their result, data
    of weights (which become inputs), sizes, attributes, and whatever is documentation. Each model that is
    tried is valid: the checker finds no error by a rule that it finds none by in `model`. The models that are
    tried depend on the answers of `failing` alone.

    `progress` is called after each trial. Raises UnsupportedError if `failing` is false of `model`, and what
    `failing` raises; then a `Reduction` has the smallest model so far.

    >>> b = sabir.Builder(21)
    >>> x = b.Relu(b.Sqrt(b.Neg(b.input('x', 'float', [640, 480]))))
    >>> y = b.output(b.Exp(x), 'y')
    >>> small = sabir.reduce(b.model(), lambda m: any(node.op == 'Sqrt' for node in m.graph))
    >>> [node.op for node in small.graph], str(small.graph.inputs[0].type)
    (['Sqrt'], 'float[1,1]')
    """
    reduction = Reduction(model, failing, progress=progress, registry=registry)
    reduction.run()
    return reduction.model


class Reduction:
    """A reduction that can be stopped: `model` is the smallest failing one so far.

    `trials` is the number of models that were tried. The arguments are those of `reduce`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { n = Neg (x)  y = Relu (n) }''')
    >>> reduction = Reduction(model, lambda m: 'Relu' in {node.op for node in m.graph})
    >>> reduction.run()
    >>> len(reduction.model.graph)
    1
    """

    def __init__(
        self,
        model: Model,
        failing: Callable[[Model], bool],
        *,
        progress: Callable[[ReductionStep], None] | None = None,
        registry: Registry = STANDARD,
    ) -> None:
        check_is_model(model)
        self.model = model
        self.trials = 0
        self._failing, self._progress, self._registry = failing, progress, registry
        self._action = "whole model"
        self._tried: set[bytes] = set()
        self._accepted = frozenset(self._errors(model))

    def run(self) -> None:
        """Reduce to the end; raises as `reduce`."""
        if not self._fails(self.model):
            raise UnsupportedError("the whole model does not fail, so there is nothing to reduce")
        self._try("documentation", bare(self.model))
        self._graph()
        if self.model.functions and self._try("functions", self._inlined()):
            self._graph()
        self._weights()
        self._sizes()
        self._attributes()

    # phases

    def _graph(self) -> None:
        """Leave out nodes and outputs until none can go."""
        before = None
        while before != (now := (len(self.model.graph), len(self.model.graph.outputs))):
            before = now
            self._nodes()
            self._outputs()
            self._bypasses()

    def _nodes(self) -> None:
        whole, types = self.model, self._types()
        self._shrink("nodes", range(len(whole.graph)), lambda kept: with_nodes(whole, set(kept), types))

    def _outputs(self) -> None:
        whole = self.model
        places = range(len(whole.graph.outputs))
        self._shrink("outputs", places, lambda kept: with_outputs(whole, set(kept), self._registry))

    def _bypasses(self) -> None:
        place = len(self.model.graph) - 1
        while place >= 0:
            types = self._types()
            for operand in range(len(self.model.graph[place].inputs)):
                candidate = without_node(self.model, place, operand, types)
                if candidate is not None and self._try("nodes between others", candidate):
                    break
            place -= 1

    def _weights(self) -> None:
        whole = self.model
        large = [v.name for v, data in whole.graph.initializers.items() if _elements(data.shape) > _FEW]
        small = {v.name for v in whole.graph.initializers} - set(large)
        self._shrink("weights", large, lambda kept: with_weights_as_inputs(whole, small | set(kept)))

    def _sizes(self) -> None:
        for size in sizes_of(self.model):
            for smaller in dict.fromkeys((1, 2, *_halves(size))):
                if smaller < size and self._try("sizes", with_size(self.model, size, smaller)):
                    break

    def _attributes(self) -> None:
        whole = self.model
        found = [(place, name) for place, node in enumerate(whole.graph) for name in node.attributes]
        self._shrink("attributes", found, lambda kept: with_attributes(whole, set(kept)))

    # trials

    def _shrink(self, action: str, items: Sequence[T], make: Callable[[Sequence[T]], Model]) -> None:
        shrink(items, lambda kept: self._try(action, make(kept)))

    def _try(self, action: str, candidate: Model | None) -> bool:
        """Return whether a candidate is valid and fails; then it is the smallest model so far."""
        self._action = action
        if candidate is None or not self._is_valid(candidate) or not self._fails(candidate):
            return False
        self.model = candidate
        self._report()
        return True

    def _fails(self, candidate: Model) -> bool:
        key = _digest(candidate)
        if key is not None and key in self._tried:
            return False
        if key is not None:
            self._tried.add(key)
        self.trials += 1
        self._report()
        return self._failing(candidate)

    def _report(self) -> None:
        if self._progress is not None:
            graph = self.model.graph
            parameters = sum(_elements(data.shape) for data in graph.initializers.values())
            self._progress(ReductionStep(self._action, self.trials, len(graph), parameters))

    def _is_valid(self, candidate: Model) -> bool:
        if not candidate.graph.outputs:
            return False
        try:
            type_outputs(candidate, self._registry)
            return self._accepted.issuperset(self._errors(candidate))
        except SabirError:
            return False

    def _errors(self, model: Model) -> Iterator[str]:
        return (f.rule for f in findings(model, registry=self._registry) if f.severity == "error")

    def _types(self) -> dict[str, Type]:
        return types_by_name(self.model, self._registry)

    def _inlined(self) -> Model | None:
        try:
            return inline(self.model, registry=self._registry)
        except SabirError:
            return None


def _halves(size: int) -> Iterator[int]:
    """Yield a size divided by 2 again and again, the smallest first."""
    yield from reversed([size >> shift for shift in range(1, size.bit_length()) if size >> shift > 2])  # ruff: ignore[magic-value-comparison]  1 and 2 are tried anyway


def _elements(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _digest(model: Model) -> bytes | None:
    """Return a digest of a model; None for a large one, which is not worth it."""
    return hashlib.sha256(dumps(model)).digest() if stored_bytes(model) < _LITTLE else None
