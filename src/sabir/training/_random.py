"""Random numbers of a training step: a function of keys that the session feeds, and of the position.

A node that draws random numbers without a seed is replaced by nodes that compute what its room does, with a
key that is fed. So a resumed run repeats them, in every engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import EvaluationError, SabirError, UnsupportedError
from sabir.conversion import convert
from sabir.elements import DOUBLE, FLOAT, element
from sabir.inlining import inline
from sabir.ir import TensorType, canonical_domain, tensor_type
from sabir.opsets.families.random.randomness import (
    ANGLE,
    HIGH_BITS,
    LOW_BITS,
    SINGLE_BITS,
    WORD_BITS,
    precision,
    range_of,
)
from sabir.rewriting import Rewriter, enclosing
from sabir.schema import INTERNAL, Binding, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Array, Builder, Model, Node, Operand, Value
    from sabir.schema import Registry, Version

_ITERATION = 0x85EBCA6B  # what distinguishes the loops around a node
_DROPPED = 0.5  # the ratio of a Dropout that states none
_OLDEST_OPSET = 18  # that gradients are written for
_MODE = 2  # the place of `training_mode` among the inputs of a Dropout


def draw_from_keys(model: Model, registry: Registry) -> tuple[Model, str, int]:
    """Replace the nodes of a model that draw random numbers without a seed.

    Returns the model, a copy where there are any, the name of a new input, and the number of these nodes: the
    input is of uint32, and has two words for each. Raises UnsupportedError for an operator that cannot be
    replaced and for one in a Scan, EvaluationError for a range without numbers and a type that is no float,
    ConversionError where the model is below the operator set 18 and has no equivalent there.
    """
    scope = Scope.of(model, registry, newer_opsets=True)
    inside = any(_draws(n, scope.of_body(f)) for f in model.functions for n in f.graph.all_nodes())
    if not inside and not any(_draws(n, scope) for n in model.graph.all_nodes()):
        return model, "", 0
    model = _recent(inline(model, registry=registry) if inside else model, registry)
    scope = Scope.of(model, registry, newer_opsets=True)
    nodes = [n for n in model.graph.all_nodes() if _draws(n, scope)]
    model.opsets[INTERNAL] = 1
    rewriter = Rewriter(model, registry=registry)
    keys = model.graph.add_input(rewriter.names.fresh("random_keys"), tensor_type("uint32", [2 * len(nodes)]))
    graph_default = np.zeros(2 * len(nodes), np.uint32)  # a derivative warns of an input without one
    model.graph.set_initializer(keys, graph_default)
    rewriter.forget_types()
    for index, node in enumerate(nodes):
        version = _version(node, scope)
        write = _WRITTEN.get(node.op)
        if write is None or version is None:
            raise UnsupportedError(f"{node!r} draws random numbers in a training step; give it a seed")
        binding = Binding(version.formal, write(_Keys(keys, index, _iterations(node))))
        try:
            rewriter.apply(node, binding, since=version.since)
        except SabirError:
            raise
        except ValueError as error:  # of `randomness`, which evaluation turns into the same error
            raise EvaluationError(f"{node.op} cannot draw in a training step: {error}") from error
    return model, keys.name, len(nodes)


def _recent(model: Model, registry: Registry) -> Model:
    """Return a copy of a model in an operator set that has what replaces the nodes."""
    opset = Scope.of(model, registry, newer_opsets=True).opset("")
    if opset is not None and opset < _OLDEST_OPSET:
        return convert(model, _OLDEST_OPSET, registry=registry)
    return model.clone()


def keys_for(path: Sequence[int], count: int) -> Array:
    """Return the keys of this many nodes: they depend on every number of `path`."""
    return np.random.SeedSequence(list(path)).generate_state(2 * count, np.uint32)


def _version(node: Node, scope: Scope) -> Version | None:
    return scope.registry.find_version(node.domain, node.op, scope.opset(canonical_domain(node.domain)))


def _draws(node: Node, scope: Scope) -> bool:
    """Return whether a node draws other numbers in each run."""
    version = None if "seed" in node.attributes else _version(node, scope)
    if version is None or not version.operator.random:
        return False
    return node.op != "Dropout" or _may_drop(node)


def _may_drop(node: Node) -> bool:
    """Return whether a Dropout has a mode, so that it is more than a copy."""
    return len(node.inputs) > _MODE and node.inputs[_MODE] is not None


def _iterations(node: Node) -> list[Value]:
    """Return the numbers of the iterations around a node; raises UnsupportedError for one in a Scan."""
    found: list[Value] = []
    for graph in enclosing(node.graph):
        owner = graph.parent
        if owner is None or owner.op == "If":
            continue
        if owner.op != "Loop":
            raise UnsupportedError(
                f"{node!r} draws random numbers in the body of {owner!r}, which does not number its "
                "iterations; give it a seed, or use a Loop"
            )
        found.append(graph.inputs[0])
    return found


class _Keys:
    """The key of one node, and the numbers that follow from it."""

    def __init__(self, keys: Value, index: int, iterations: Sequence[Value]) -> None:
        self._keys, self._index, self._iterations = keys, index, iterations

    def unit(self, b: Builder, shape: Operand, to: ElementType) -> Value:
        """Return numbers of [0, 1) in single precision or in double, as `randomness.unit`."""
        first, second = self.words(b, shape)
        if to is not DOUBLE:
            return b.Mul(_top(b, first, SINGLE_BITS, FLOAT), np.float32(2.0**-SINGLE_BITS))
        high = b.Mul(_top(b, first, HIGH_BITS, DOUBLE), np.float64(2.0**LOW_BITS))
        low = _top(b, second, LOW_BITS, DOUBLE)
        return b.Mul(b.Add(high, low), np.float64(2.0 ** -(HIGH_BITS + LOW_BITS)))

    def words(self, b: Builder, shape: Operand) -> tuple[Value, Value]:
        """Return two random words for each element of a tensor."""
        start = 2 * self._index
        key = b.Slice(self._keys, np.array([start]), np.array([start + 2]))
        for value in self._iterations:
            number = b.Cast(b.Reshape(value, np.array([1])), to=element("uint32").number)
            key = b.Add(b.Mul(key, np.uint32(_ITERATION)), number)
        return b.op("RandomWords", key, shape, outputs=2, domain=INTERNAL)


def _top(b: Builder, word: Value, bits: int, to: ElementType) -> Value:
    """Return the first bits of words as floats."""
    return b.Cast(b.BitShift(word, np.uint32(WORD_BITS - bits), direction="RIGHT"), to=to.number)


def _element(x: Value) -> ElementType:
    return x.type.element if isinstance(x.type, TensorType) and x.type.element.number else FLOAT


def _dropout(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, x: Value, ratio: Value | None, training: Value, /) -> tuple[Value, Value]:
        kind = _element(x)
        wide = precision(kind)
        rate = np.float64(_DROPPED) if ratio is None else b.Cast(ratio, to=DOUBLE.number)
        drawn = keys.unit(b, b.Shape(x), FLOAT)
        mask = b.GreaterOrEqual(drawn, b.Cast(rate, to=FLOAT.number))
        scale = b.Cast(b.Div(np.float64(1), b.Sub(np.float64(1), rate)), to=wide.number)
        kept = b.Cast(b.Mul(b.Cast(x, to=wide.number), scale), to=kind.number)
        y = b.Where(mask, kept, np.zeros((), kind.dtype))
        return b.Where(training, y, x), b.Or(mask, b.Not(training))

    return write


def _uniform(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, /, *, shape: Sequence[int], dtype: int, low: float, high: float) -> Value:
        return _between(keys, b, np.asarray(shape, np.int64), element(dtype), low, high)

    return write


def _uniform_like(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, x: Value, /, *, dtype: int | None, low: float, high: float) -> Value:
        to = _element(x) if dtype is None else element(dtype)
        return _between(keys, b, b.Shape(x), to, low, high)

    return write


def _between(keys: _Keys, b: Builder, shape: Operand, to: ElementType, low: float, high: float) -> Value:
    """Return numbers of the uniform distribution, as `randomness.uniform`."""
    kind = precision(to)
    first, last = range_of(to, low, high)
    drawn = keys.unit(b, shape, kind)
    start, end, least, most, one = (np.asarray(v, kind.dtype) for v in (low, high, first, last, 1))
    y = b.Add(b.Mul(b.Sub(one, drawn), start), b.Mul(drawn, end))
    return b.Cast(b.Min(b.Max(y, least), most), to=to.number)


def _normal(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, /, *, shape: Sequence[int], dtype: int, mean: float, scale: float) -> Value:
        return _bell(keys, b, np.asarray(shape, np.int64), element(dtype), mean, scale)

    return write


def _normal_like(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, x: Value, /, *, dtype: int | None, mean: float, scale: float) -> Value:
        to = _element(x) if dtype is None else element(dtype)
        return _bell(keys, b, b.Shape(x), to, mean, scale)

    return write


def _bell(keys: _Keys, b: Builder, shape: Operand, to: ElementType, mean: float, scale: float) -> Value:
    """Return numbers of a normal distribution, as `randomness.normal`."""
    kind = precision(to)

    def number(value: float) -> Array:
        return np.asarray(value, kind.dtype)

    first, second = (b.Cast(word, to=kind.number) for word in keys.words(b, shape))
    share = b.Mul(b.Add(first, number(0.5)), number(2.0**-WORD_BITS))
    radius = b.Sqrt(b.Mul(b.Log(share), number(-2)))
    angle = b.Cos(b.Mul(second, number(ANGLE)))
    drawn = b.Add(b.Mul(b.Mul(radius, angle), number(scale)), number(mean))
    return b.Cast(drawn, to=to.number)


def _bernoulli(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, p: Value, /, *, dtype: int | None) -> Value:
        kind = precision(_element(p))
        drawn = keys.unit(b, b.Shape(p), kind)
        least = b.Less(drawn, b.Cast(p, to=kind.number))
        return b.Cast(least, to=_element(p).number if dtype is None else dtype)

    return write


_WRITTEN: dict[str, Callable[[_Keys], Callable[..., Any]]] = {
    "Bernoulli": _bernoulli, "Dropout": _dropout, "RandomNormal": _normal, "RandomNormalLike": _normal_like,
    "RandomUniform": _uniform, "RandomUniformLike": _uniform_like,
}  # fmt: skip

__all__ = ["draw_from_keys", "keys_for"]
