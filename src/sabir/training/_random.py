"""Random numbers of a training step: a function of keys that the session feeds, and of the position.

A node that draws random numbers without a seed is replaced by integer arithmetic on the numbers of its
elements and on two keys. So the numbers are the same in every engine, and a resumed run repeats them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import UnsupportedError
from sabir.conversion import convert
from sabir.elements import DOUBLE, FLOAT, element
from sabir.inlining import inline
from sabir.ir import TensorType, canonical_domain, tensor_type
from sabir.rewrite import Rewriter, enclosing
from sabir.schema import Binding, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Array, Builder, Model, Node, Operand, Value
    from sabir.schema import Registry, Version

# the finalizer of 32 bits by Wellons: shifts, and the factors between them
_SHIFTS, _FACTORS = (16, 15, 16), (0x7FEB352D, 0x846CA68B)
_STRIDE, _OTHER, _ITERATION = 0x9E3779B9, 0x6A09E667, 0x85EBCA6B
_DROPPED = 0.5  # the ratio of a Dropout that states none
_OLDEST_OPSET = 18  # the first with BitwiseXor, and the one that gradients are written for
_MODE = 2  # the place of `training_mode` among the inputs of a Dropout
_BITS_LEFT, _WORD = 24, 32  # the bits of a float's number, and of a key


def draw_from_keys(model: Model, registry: Registry) -> tuple[Model, str, int]:
    """Replace the nodes of a model that draw random numbers without a seed.

    Returns the model, a copy where there are any, the name of a new input, and the number of these nodes: the
    input is of uint32, and has two keys for each. Raises UnsupportedError for an operator that cannot be
    replaced and for one in a Scan, ConversionError where the model is below the operator set 18 and has no
    equivalent there.
    """
    scope = Scope.of(model, registry, newer_opsets=True)
    inside = any(_draws(n, scope.of_body(f)) for f in model.functions for n in f.graph.all_nodes())
    if not inside and not any(_draws(n, scope) for n in model.graph.all_nodes()):
        return model, "", 0
    model = _recent(inline(model, registry=registry) if inside else model, registry)
    scope = Scope.of(model, registry, newer_opsets=True)
    nodes = [n for n in model.graph.all_nodes() if _draws(n, scope)]
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
        rewriter.apply(node, binding, since=version.since)
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
    """The keys of one node, and the numbers that follow from them."""

    def __init__(self, keys: Value, index: int, iterations: Sequence[Value]) -> None:
        self._keys, self._index, self._iterations = keys, index, iterations

    def uniform(self, b: Builder, shape: Operand, to: ElementType, part: int = 0) -> Value:
        """Return numbers of [0, 1) in a shape, in single precision or in double."""
        count = b.ReduceProd(shape, keepdims=0)
        bits = self._bits(b, count, part)
        if to is DOUBLE:
            drawn = b.Mul(b.Cast(bits, to=DOUBLE.number), np.float64(2.0**-_WORD))
        else:
            high = b.BitShift(bits, np.uint32(_WORD - _BITS_LEFT), direction="RIGHT")
            drawn = b.Mul(b.Cast(high, to=FLOAT.number), np.float32(2.0**-_BITS_LEFT))
        return b.Reshape(drawn, shape, allowzero=1)

    def _bits(self, b: Builder, count: Operand, part: int) -> Value:
        """Return random words: each number is mixed with one key, and the result with the other."""
        first, second = (b.Gather(self._keys, np.int64(2 * self._index + i)) for i in range(2))
        for value in self._iterations:
            number = b.Cast(b.Reshape(value, np.zeros(0, np.int64)), to=element("uint32").number)
            first = b.Add(first, b.Mul(number, np.uint32(_ITERATION)))
        if part:
            second = b.Add(second, np.uint32(_OTHER))
        numbers = b.Cast(b.Range(np.int64(0), count, np.int64(1)), to=element("uint32").number)
        mixed = _mixed(b, b.Add(b.Mul(numbers, np.uint32(_STRIDE)), first))
        return _mixed(b, b.BitwiseXor(mixed, second))


def _mixed(b: Builder, x: Value) -> Value:
    for shift, factor in zip(_SHIFTS, (*_FACTORS, None), strict=True):
        x = b.BitwiseXor(x, b.BitShift(x, np.uint32(shift), direction="RIGHT"))
        if factor is not None:
            x = b.Mul(x, np.uint32(factor))
    return x


def _precision(to: ElementType) -> ElementType:
    return DOUBLE if to is DOUBLE else FLOAT


def _element(x: Value) -> ElementType:
    return x.type.element if isinstance(x.type, TensorType) and x.type.element.number else FLOAT


def _dropout(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, x: Value, ratio: Value | None, training: Value, /) -> tuple[Value, Value]:
        kind = _element(x)
        precision = _precision(kind)
        rate = np.asarray(_DROPPED, precision.dtype) if ratio is None else b.Cast(ratio, to=precision.number)
        mask = b.GreaterOrEqual(keys.uniform(b, b.Shape(x), precision), rate)
        mask = b.Or(mask, b.Not(training))
        one = np.ones((), precision.dtype)
        scale = b.Where(training, b.Div(one, b.Sub(one, rate)), one)
        factor = b.Where(mask, b.Cast(scale, to=kind.number), np.zeros((), kind.dtype))
        return b.Mul(x, factor), mask

    return write


def _uniform(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, /, *, shape: Sequence[int], dtype: int, low: float, high: float) -> Value:
        return _between(keys, b, np.asarray(shape, np.int64), element(dtype), low, high)

    return write


def _uniform_like(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, x: Value, /, *, dtype: int | None, low: float, high: float) -> Value:
        return _between(keys, b, b.Shape(x), _element(x) if dtype is None else element(dtype), low, high)

    return write


def _between(keys: _Keys, b: Builder, shape: Operand, to: ElementType, low: float, high: float) -> Value:
    precision = _precision(to)
    drawn = keys.uniform(b, shape, precision)
    width, start = (np.asarray(v, precision.dtype) for v in (high - low, low))
    return b.Cast(b.Add(b.Mul(drawn, width), start), to=to.number)


def _normal(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, /, *, shape: Sequence[int], dtype: int, mean: float, scale: float) -> Value:
        return _bell(keys, b, np.asarray(shape, np.int64), element(dtype), mean, scale)

    return write


def _normal_like(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, x: Value, /, *, dtype: int | None, mean: float, scale: float) -> Value:
        return _bell(keys, b, b.Shape(x), _element(x) if dtype is None else element(dtype), mean, scale)

    return write


def _bell(keys: _Keys, b: Builder, shape: Operand, to: ElementType, mean: float, scale: float) -> Value:
    """Return numbers of a normal distribution, by the transformation of Box and Muller."""
    precision = _precision(to)

    def number(value: float) -> Array:
        return np.asarray(value, precision.dtype)

    radius = b.Sqrt(b.Mul(b.Log(b.Sub(number(1), keys.uniform(b, shape, precision))), number(-2)))
    angle = b.Cos(b.Mul(keys.uniform(b, shape, precision, part=1), number(2 * math.pi)))
    drawn = b.Add(b.Mul(b.Mul(radius, angle), number(scale)), number(mean))
    return b.Cast(drawn, to=to.number)


def _bernoulli(keys: _Keys) -> Callable[..., Any]:
    def write(b: Builder, p: Value, /, *, dtype: int | None) -> Value:
        precision = _precision(_element(p))
        drawn = b.Less(keys.uniform(b, b.Shape(p), precision), b.Cast(p, to=precision.number))
        return b.Cast(drawn, to=_element(p).number if dtype is None else dtype)

    return write


_WRITTEN: dict[str, Callable[[_Keys], Callable[..., Any]]] = {
    "Bernoulli": _bernoulli, "Dropout": _dropout, "RandomNormal": _normal, "RandomNormalLike": _normal_like,
    "RandomUniform": _uniform, "RandomUniformLike": _uniform_like,
}  # fmt: skip

__all__ = ["draw_from_keys", "keys_for"]
