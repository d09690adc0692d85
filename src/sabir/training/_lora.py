"""Low-rank adapters (LoRA, Hu et al., 2021): products with two small matrices, which are trained alone."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import FeedError, NotFoundError, UnsupportedError, listed_names, quote, suggest
from sabir.ir import Node, Tensor, canonical_domain
from sabir.rewriting import Rewriter
from sabir.training._adapters import ALPHA, DOWN, UP, Adapter, Adapters
from sabir.training._losses import check_number

if TYPE_CHECKING:
    from sabir.ir import Builder, Model, Value
    from sabir.schema import Registry

_MATRIX = 2  # the rank of weights
_SEED = 5  # of the first values of adapters


@dataclass(frozen=True, slots=True)
class LoRA:
    """What `prepare(lora=)` adds: matrices A [in,rank] and B [rank,out] beside weights W [in,out].

    A product `x @ W` becomes `x @ W + (alpha / rank) * (x @ A @ B)`, and only A and B are trained. B is zero
    at first, so that the model computes what it did; A is uniform between `-1/sqrt(in)` and `1/sqrt(in)`.
    `alpha` is by default the rank. `targets` are patterns of the names of weights: initializers that MatMul
    or Gemm multiply with, also through a Transpose, and nothing else reads. `dropout` is the share of
    elements of x that are left out of the adapters' products while training.

    Raises UnsupportedError for numbers out of their range.

    >>> LoRA(8).scale, LoRA(8, alpha=16).scale
    (1.0, 2.0)
    """

    rank: int
    alpha: float | None = None
    targets: str | tuple[str, ...] = "*"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers out of their range."""
        if self.rank < 1:
            raise UnsupportedError(f"the rank of LoRA is 1 or more; got {self.rank}")
        if self.alpha is not None:
            check_number("the alpha of LoRA", self.alpha)
        if not 0 <= self.dropout < 1:
            raise UnsupportedError(f"the dropout of LoRA is from 0 to below 1; got {self.dropout}")

    @property
    def scale(self) -> float:
        """The factor of the adapters' products."""
        return 1.0 if self.alpha is None else self.alpha / self.rank


class _Weight(NamedTuple):
    """A weight that products read, and whether it is stored [out,in]."""

    value: Value
    nodes: list[Node]
    is_transposed: bool

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes in and out."""
        data = self.value.constant
        first, last = data.shape if isinstance(data, Tensor) else (0, 0)
        return (last, first) if self.is_transposed else (first, last)


def add_adapters(model: Model, asked: int | LoRA | Adapters, registry: Registry) -> list[str]:
    """Add adapters to the products of a model; return the names of what is trained.

    Raises NotFoundError for a pattern or a name that matches no weight, UnsupportedError and FeedError for
    matrices that do not fit.
    """
    weights = _weights(model)
    if isinstance(asked, Adapters):
        chosen = {name: _found(weights, name) for name in asked}
        rule, adapters = LoRA(1), dict(asked)
    else:
        rule = LoRA(asked) if isinstance(asked, int) else asked
        chosen = _matching(weights, rule)
        rng = np.random.default_rng(_SEED)
        adapters = {name: _first(weight, rule, rng) for name, weight in chosen.items()}
    rewriter, trained = Rewriter(model, registry=registry), list[str]()
    for name, weight in chosen.items():
        adapter = _fitting(name, weight, adapters[name])
        values = _stored(model, name, adapter)
        trained += [value.name for value in values[:2]]
        for node in weight.nodes:
            left = node.inputs[0]
            if left is not None:
                rewriter.replace(node, _Product(node, left, values, rule.dropout).build)
    return trained


def merge_adapters(model: Model, adapters: Adapters) -> Model:
    """Return a copy of a model with adapters added to its weights: a model for inference with no more nodes.

    `model` is the one that `prepare` got, and `adapters` are those of the trained session, or of a file.
    Raises NotFoundError for an adapter whose weight the model does not have, FeedError for one of other
    sizes, and UnsupportedError for a model that has adapters.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse', lora=1, optimizer=SGD(0.1)))
    >>> found = session.fit({'x': np.eye(2, dtype=np.float32), 'label': np.zeros((2, 1), np.float32)})
    >>> merged, feeds = merge_adapters(model, adapters(session)), {'x': np.ones((1, 2), np.float32)}
    >>> bool(np.allclose(sabir.evaluate(merged, feeds)['y'], session.run(feeds)['y'], atol=1e-6))
    True
    """
    if any(v.name.endswith(DOWN) for v in model.graph.initializers):
        raise UnsupportedError(
            f"{model!r} has adapters already; pass the model that sabir.training.prepare added them to"
        )
    copy = model.clone()
    weights = _weights(copy)
    for name, adapter in adapters.items():
        weight = _found(weights, name)
        data, fitting = weight.value.constant, _fitting(name, weight, adapter)
        if not isinstance(data, Tensor):
            continue
        change = fitting.scale * (fitting.a.astype(np.float64) @ fitting.b.astype(np.float64))
        whole = data.array().astype(np.float64) + (change.T if weight.is_transposed else change)
        copy.graph.set_initializer(weight.value, whole.astype(data.element.dtype))
    return copy


class _Product(NamedTuple):
    """A product with a weight, and the adapter that is added to it."""

    node: Node
    left: Value
    adapter: tuple[Value, Value, Value]
    dropout: float

    def build(self, b: Builder) -> Value:
        """Build the product and its adapter."""
        node, (down, up, scale) = self.node, self.adapter
        attributes: dict[str, Any] = dict(node.attributes)
        whole = b.op(node.op, *node.inputs, domain=node.domain, **attributes)
        x = self.left
        if self.dropout:
            x = b.Dropout(x, np.float32(self.dropout))
        change = b.Mul(b.MatMul(b.MatMul(x, down), up), scale)
        alpha = node.attributes.get("alpha")
        if alpha is not None:
            change = b.Mul(change, b.CastLike(np.float32(alpha.value), change))
        return b.Add(whole, change)


def _stored(model: Model, name: str, adapter: Adapter) -> tuple[Value, Value, Value]:
    """Add the matrices and the factor to the initializers; raises UnsupportedError for a taken name."""
    taken = {v.name for v in model.graph.defined()}
    names = [f"{name}{end}" for end in (DOWN, UP, ALPHA)]
    other = next((n for n in names if n in taken), None)
    if other is not None:
        raise UnsupportedError(f"the model has a value {quote(other)}, the name of an adapter; rename it")
    data = (adapter.a, adapter.b, np.asarray(adapter.scale, adapter.a.dtype))
    a, b, scale = starmap(model.graph.add_initializer, zip(names, data, strict=True))
    return a, b, scale


def _weights(model: Model) -> dict[str, _Weight]:
    """Return the weights that adapters can be added to, by name."""
    found: dict[str, _Weight] = {}
    for value, data in model.graph.initializers.items():
        is_matrix = isinstance(data, Tensor) and len(data.shape) == _MATRIX and data.element.is_float
        if not is_matrix or value.is_input:
            continue
        uses = [_use(use.user, use.slot) for use in value.uses]
        nodes = [node for use in uses if use is not None for node, _ in use]
        sides = {side for use in uses if use is not None for _, side in use}
        if uses and None not in uses and len(sides) == 1:
            found[value.name] = _Weight(value, nodes, sides.pop())
    return found


def _use(user: object, slot: int) -> list[tuple[Node, bool]] | None:
    """Return the products that a reader of a weight is, or passes it to, and whether it is stored [out,in].

    None where it is read by anything else.
    """
    if not isinstance(user, Node) or canonical_domain(user.domain):
        return None
    if user.op == "Transpose":
        inner = (
            [_use(use.user, use.slot) for use in user.outputs[0].uses] if user.outputs[0] is not None else []
        )
        if not inner or None in inner:
            return None
        return [(node, not side) for use in inner if use is not None for node, side in use]
    if slot != 1 or user.op not in {"MatMul", "Gemm"} or _number(user, "transA"):
        return None
    return [(user, bool(_number(user, "transB")))]


def _number(node: Node, name: str) -> int:
    attribute = node.attributes.get(name)
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else 0


def _found(weights: dict[str, _Weight], name: str) -> _Weight:
    if name not in weights:
        hint = suggest(name, weights) or f"; there are {listed_names(weights)}"
        raise NotFoundError(f"the model has no weight {quote(name)} that an adapter can be added to{hint}")
    return weights[name]


def _matching(weights: dict[str, _Weight], rule: LoRA) -> dict[str, _Weight]:
    """Return the weights that the patterns choose; raises NotFoundError for a pattern that matches none."""
    patterns = (rule.targets,) if isinstance(rule.targets, str) else rule.targets
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in weights):
            raise NotFoundError(
                f"no weight of a MatMul or Gemm matches the target {quote(pattern)} of LoRA; there are "
                f"{listed_names(weights)}"
            )
    return {n: w for n, w in weights.items() if any(fnmatchcase(n, pattern) for pattern in patterns)}


def _first(weight: _Weight, rule: LoRA, rng: np.random.Generator) -> Adapter:
    """Return the adapter that training begins with."""
    (features, outputs), data = weight.sizes, weight.value.constant
    dtype: np.dtype = data.element.dtype if isinstance(data, Tensor) else np.dtype(np.float32)
    bound = 1 / np.sqrt(features)
    a = rng.uniform(-bound, bound, (features, rule.rank)).astype(dtype)
    return Adapter(a, np.zeros((rule.rank, outputs), dtype), rule.scale)


def _fitting(name: str, weight: _Weight, adapter: Adapter) -> Adapter:
    """Return an adapter in the element type of its weight; raises FeedError for other sizes."""
    features, outputs = weight.sizes
    if (adapter.a.shape[0], adapter.b.shape[1]) != (features, outputs):
        raise FeedError(
            f"the adapter of {quote(name)} is for a weight [{adapter.a.shape[0]},{adapter.b.shape[1]}], and "
            f"that of the model is [{features},{outputs}]"
        )
    data = weight.value.constant
    dtype = data.element.dtype if isinstance(data, Tensor) else adapter.a.dtype
    return Adapter(adapter.a.astype(dtype), adapter.b.astype(dtype), adapter.scale)


__all__ = ["LoRA", "add_adapters", "merge_adapters"]
