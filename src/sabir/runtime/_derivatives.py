"""Products of vectors and Jacobians, Jacobians, and Hessians of models, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import FeedError, Limits, check_elements, check_time, quote, run_with_limits
from sabir.evaluation import Runner, read_request
from sabir.ir import FreshNames, name_of, names_of
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from sabir.ir import Array, Model, ValueOrName
    from sabir.schema import Registry

    Feeds: TypeAlias = Mapping[str, Any] | Sequence[Any]


def vjp(
    model: Model,
    feeds: Feeds,
    of: ValueOrName,
    wrt: ValueOrName | Iterable[ValueOrName],
    cotangent: Any = None,
    *,
    strict: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> dict[str, Array]:
    """Return the product of a vector and the Jacobian of `of` with respect to each value of `wrt`, by name.

    `feeds` are those of `sabir.evaluate`. `cotangent` is the vector, of the shape of `of`: the weight of each
    element, by default 1. `strict` is that of `differentiate`. Raises what `differentiate` and `evaluate`
    raise.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (double[N] x) => (double[N] y) { y = Mul (x, x) }''')
    >>> vjp(model, {'x': [1.0, 2.0]}, 'y', 'x', cotangent=[1.0, 10.0])
    {'x': array([ 2., 40.])}
    """

    def run() -> dict[str, Array]:
        rows = _Rows(model, feeds, of, wrt, registry, strict=strict)
        seed = np.ones(rows.value.shape) if cotangent is None else np.asarray(cotangent)
        if seed.shape != rows.value.shape:
            raise FeedError(
                f"the cotangent has the shape {list(seed.shape)}, {quote(rows.of)} {list(rows.value.shape)}"
            )
        return rows.at(seed)

    return run_with_limits(limits, run)


def jacobian(
    model: Model,
    feeds: Feeds,
    of: ValueOrName,
    wrt: ValueOrName | Iterable[ValueOrName],
    *,
    strict: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> dict[str, Array]:
    """Return the Jacobian of `of` with respect to each value of `wrt`, by name: of small models.

    An entry has the dimensions of `of`, then those of the value of `wrt`; each element of `of` takes a run of
    the interpreter. `strict` is that of `differentiate`. Raises what `differentiate` and `evaluate` raise.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (double[2] x) => (double[2] y) { s = ReduceSum <keepdims = 0> (x)  y = Mul (x, s) }''')
    >>> print(jacobian(model, {'x': [1.0, 2.0]}, 'y', 'x')['x'])
    [[4. 1.]
     [2. 5.]]
    """
    return run_with_limits(limits, lambda: _Rows(model, feeds, of, wrt, registry, strict=strict).all())


def hessian(
    model: Model,
    feeds: Feeds,
    of: ValueOrName,
    wrt: ValueOrName | Iterable[ValueOrName],
    *,
    strict: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> dict[tuple[str, str], Array]:
    """Return the second derivatives of `of` with respect to each pair of values of `wrt`: of small models.

    The entry for `(a, b)` has the dimensions of `a`, then those of `b`. Of an `of` that is no scalar, they
    are those of the sum of its elements. Those of straight pieces, such as Relu's, are zeros, which `strict`
    refuses as `differentiate` does. Raises what `differentiate` and `evaluate` raise.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (double[2] x) => (double y) { s = Mul (x, x)  c = Mul (s, x)  y = ReduceSum <keepdims = 0> (c) }''')
    >>> print(hessian(model, {'x': [1.0, 2.0]}, 'y', 'x')['x', 'x'])
    [[ 6.  0.]
     [ 0. 12.]]
    """

    def run() -> dict[tuple[str, str], Array]:
        names = names_of(model, "wrt", wrt)
        first = _differentiated(model, name_of(model, "of", of), names, None, registry, strict=strict)
        gradients = [o.name for o in list(first.graph.outputs)[-len(names) :] if o is not None]
        return {
            (name, other): rows
            for name, gradient in zip(names, gradients, strict=True)
            for other, rows in _Rows(first, feeds, gradient, names, registry, strict=strict).all().items()
        }

    return run_with_limits(limits, run)


class _Rows:
    """The rows of the Jacobians of a value of a model, each from a run with a seed."""

    def __init__(
        self,
        model: Model,
        feeds: Feeds,
        of: ValueOrName,
        wrt: ValueOrName | Iterable[ValueOrName],
        registry: Registry,
        *,
        strict: bool,
    ) -> None:
        self._wrt, self.of = names_of(model, "wrt", wrt), name_of(model, "of", of)
        values = (v for g in model.graphs() for inner in g.scopes() for v in inner.defined())
        self._seed = FreshNames(v.name for v in values).fresh("seed")
        found = _differentiated(model, self.of, self._wrt, self._seed, registry, strict=strict)
        outputs = list(found.graph.outputs)[len(model.graph.outputs) :]
        self._outputs = [o.name for o in outputs if o is not None]
        runner = Runner(model, registry)
        self._feeds = read_request(feeds, None, runner.inputs).feeds
        self.value: Array = runner.run(self._feeds, [self.of])[self.of]
        self._runner = Runner(found, registry)

    def at(self, seed: Array) -> dict[str, Array]:
        """Return the gradients for the weights of the elements."""
        check_time()
        weights = seed.astype(self.value.dtype)
        results = self._runner.run({**self._feeds, self._seed: weights}, self._outputs)
        return dict(zip(self._wrt, results.values(), strict=True))

    def all(self) -> dict[str, Array]:
        """Return the Jacobians: the gradients of every element."""
        shape, rows = self.value.shape, self.value.size
        sizes = self.at(np.zeros(shape))
        for name, like in sizes.items():
            check_elements(rows * like.size, what=f"the Jacobian of {quote(name)}", width=like.itemsize)
        found = {n: np.zeros((rows, *like.shape), like.dtype) for n, like in sizes.items()}
        for row, seed in enumerate(_units(shape, rows)):
            for name, gradient in self.at(seed).items():
                found[name][row] = gradient
        return {name: x.reshape(*shape, *x.shape[1:]) for name, x in found.items()}


def _units(shape: tuple[int, ...], count: int) -> Iterator[Array]:
    """Yield one array for each element, which is 1 there and 0 elsewhere."""
    for index in range(count):
        unit = np.zeros(count)
        unit[index] = 1
        yield unit.reshape(shape)


def _differentiated(
    model: Model, of: str, wrt: Sequence[str], seed: str | None, registry: Registry, *, strict: bool
) -> Model:
    # ruff: ignore[import-outside-top-level]  a session needs no gradients
    from sabir.differentiation import differentiate

    return differentiate(model, of, wrt, seed=seed, strict=strict, registry=registry)
