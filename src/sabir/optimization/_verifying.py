"""Two models on the same random inputs, of several shapes."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import EvaluationError, FeedError, SabirError, SchemaError, quote
from sabir.evaluation import Runner
from sabir.ir import Expr, TensorType, stored_bytes
from sabir.schema import Callees, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sabir.evaluation import ModelPort
    from sabir.ir import Array, Dim, Model
    from sabir.schema import Registry

MOST_VERIFIED = 1 << 28  # bytes of constants of a model that is verified unless `verify` says otherwise
_SHAPES = ((2, 3, 4, 5, 6), (1, 4, 2, 3, 7), (3, 2, 5, 1, 4))  # sizes of the variables, in their order
_INTEGERS = (8, 2, 1)  # random integers are below the first of these with which the model runs
_TOLERANCE = 1e-3  # of the largest element of an output


class Verification(NamedTuple):
    """The largest difference of two models' outputs, and on how many lists of inputs both ran.

    `difference` is relative to the largest element of an output where that is above 1, and `where` the name
    of the output; `equal` says whether all differences are within rounding.
    """

    runs: int
    difference: float
    where: str = ""

    @property
    def equal(self) -> bool:
        """Whether all outputs are equal up to rounding."""
        return self.difference <= _TOLERANCE


def verified(
    old: Model, new: Model, after: str, *, verify: bool | None, registry: Registry
) -> Verification | None:
    """Compare the results of two models; raises EvaluationError, which says after what, where they differ.

    With `verify` of None that is done for models of up to 256 MiB whose operators are all known; None is
    returned where it is not done.
    """
    if verify is None:
        verify = stored_bytes(old) <= MOST_VERIFIED and all(_are_known(m, registry) for m in (old, new))
    if not verify:
        return None
    found = verify_equal(old, new, registry=registry)
    if not found.equal:
        raise EvaluationError(f"output {quote(found.where)} differs by {found.difference:.3g} after {after}")
    return found


def _are_known(model: Model, registry: Registry) -> bool:
    """Return whether all nodes call operators, or functions, that are known."""
    main, callees = Scope.of(model, registry, newer_opsets=True), Callees()
    scopes = {function.graph: main.of_body(function) for function in model.functions}
    calls = ((node, scopes.get(graph, main)) for graph in model.graphs() for node in graph.all_nodes())
    return not any(isinstance(callees.find(node, scope), SchemaError) for node, scope in calls)


def verify_equal(old: Model, new: Model, *, registry: Registry) -> Verification:
    """Run two models on random inputs of several shapes, and return how far their outputs differ.

    Inputs that the first model refuses are not counted: integers may be indices, and sizes may be
    required to be equal.
    """
    first, second = Runner(old, registry), Runner(new, registry)
    runs, worst, where = 0, 0.0, ""
    for lists in input_lists(first.inputs):
        for feeds in lists:
            try:
                with np.errstate(all="ignore"):
                    expected = first.run(feeds)
            except SabirError:
                continue
            with np.errstate(all="ignore"):
                found = second.run(feeds)
            runs += 1
            for name, value in expected.items():
                difference = largest_difference(value, found.get(name))
                if difference > worst:
                    worst, where = difference, name
            break
    return Verification(runs, worst, where)


def input_lists(ports: Sequence[ModelPort]) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield, for several shapes, lists of random inputs, of which one that a model accepts is enough."""
    for sizes in _SHAPES:
        yield _feeds(ports, sizes)


def _feeds(ports: Sequence[ModelPort], sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield lists of inputs of one list of sizes: with large integers first, then with smaller ones."""
    names = list(dict.fromkeys(n for p in ports if isinstance(p.type, TensorType) for n in _symbols(p.type)))
    chosen = {name: sizes[i % len(sizes)] for i, name in enumerate(names)}
    for above in _INTEGERS:
        rng = np.random.default_rng(0)
        try:
            yield {p.name: _random(p, chosen, above, rng) for p in ports if not p.optional}
        except FeedError:
            return


def _symbols(kind: TensorType) -> Iterator[str]:
    for dim in kind.shape or ():
        if isinstance(dim, Expr):
            yield from sorted(dim.symbols)


def _random(port: ModelPort, sizes: Mapping[str, int], above: int, rng: np.random.Generator) -> Array:
    kind = port.type
    if not isinstance(kind, TensorType) or kind.shape is None:
        raise FeedError(f"input {quote(port.name)} declares no shape")
    shape = tuple(_size(dim, sizes) for dim in kind.shape)
    match kind.element.kind:
        case "float" | "complex":
            return np.asarray(rng.standard_normal(shape)).astype(kind.element.dtype)
        case "bool":
            return np.asarray(rng.integers(0, 2, shape)).astype(kind.element.dtype)
        case "integer":
            return np.asarray(rng.integers(0, above, shape)).astype(kind.element.dtype)
        case _:
            raise FeedError(f"input {quote(port.name)} is of texts")


def _size(dim: Dim, sizes: Mapping[str, int]) -> int:
    size = dim.substitute(sizes) if isinstance(dim, Expr) else dim
    if isinstance(size, Expr) or (size is not None and size < 0):
        raise FeedError(f"the dimension {dim} has no size")
    return 2 if size is None else size


def largest_difference(a: Any, b: Any) -> float:
    """Return the largest difference of two results, infinity where they differ in kind.

    It is relative to the largest element of `a` where that is above 1.

    >>> largest_difference(np.float32([1, 2]), np.float32([1, 3]))
    0.5
    """
    if isinstance(a, list) and isinstance(b, list):
        first, second = cast("list[Any]", a), cast("list[Any]", b)
        pairs = zip(first, second, strict=False)
        return max(starmap(largest_difference, pairs), default=0.0) if len(first) == len(second) else np.inf
    x: Array = np.asarray(cast("Array", a))
    y: Array = np.asarray(cast("Array", b))
    if x.shape != y.shape or x.dtype != y.dtype:
        return np.inf
    if x.dtype.kind in "OSUb":
        return 0.0 if np.array_equal(x, y) else np.inf
    x, y = x.astype(np.float64), y.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if same.all():
        return 0.0
    if not (np.isfinite(x) == np.isfinite(y)).all():
        return np.inf
    finite = np.isfinite(x)
    scale = max(1.0, float(np.abs(x[finite]).max(initial=0)))
    return float(np.abs(x - y)[finite & ~same].max(initial=0)) / scale
