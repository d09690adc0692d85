"""How a group of workers keeps the state of a training: in which buckets, and whose each variable is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import ArrayTensor, Tensor
from sabir.training._buckets import by_type, in_groups
from sabir.training._combining import state_of
from sabir.training._ownership import Ownership

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sabir.ir import Array, Model, Node
    from sabir.training._parts import RunnablePart


class Settings(NamedTuple):
    """How a group of workers divides its work.

    `algorithms` are those that update the state; `bucket` is the bytes of gradients that are sent as one.
    """

    algorithms: tuple[int, ...]
    workers: int
    bucket: int
    shard_optimizer: bool


class Layout:
    """Which variables of a state are gradients, parameters and moments, and which worker has them.

    `gradients` are groups of names, those first that are computed first; `rest` is what else the first
    algorithm updates. With a divided optimizer `parameters` are groups of the variables that workers send
    each other after a step, and `moments` have an owner each, which alone keeps them.
    """

    def __init__(self, model: Model, parts: Mapping[int, RunnablePart], settings: Settings) -> None:
        """Lay out the state of a model; `parts` are the algorithms that update it, by number, in order.

        The first of them sums gradients. Raises UnsupportedError where the optimizer cannot be divided.
        """
        self.parts, self.state, self.settings = dict(parts), hollow_state(model), settings
        self.first, *later = parts
        first = parts[self.first]
        read = {name for index in later for name in parts[index].reads(())}
        gradients = [n for n in first.updates if n in read and is_float(self.state[n]) and self.state[n].ndim]
        self.rest = frozenset(first.updates).difference(gradients)
        known = frozenset(first.prepared.fed)
        updated = [name for index in later for name in parts[index].updates]
        self.moments = frozenset(updated) - known
        self.gradients = in_groups(_by_depth(first, gradients), self.state, settings.bucket)
        self.parameters: list[list[str]] = []
        self.ownership: Ownership | None = None
        if settings.shard_optimizer:
            self.applying = _only(parts, later)
            self.ownership = Ownership(self.applying, gradients, self.state, known, settings.workers)
            sent = [n for n in updated if n in self.ownership.owners and n in known]
            groups = [in_groups(g, self.state, settings.bucket) for g in by_type(sent, self.state)]
            self.parameters = [group for found in groups for group in found]

    def kept_by(self, worker: int) -> list[str]:
        """Return the variables that a worker keeps."""
        owners = {} if self.ownership is None else self.ownership.owners
        return [n for n in self.state if n not in self.moments or owners.get(n, worker) == worker]

    def source_of(self, name: str) -> int:
        """Return a worker that has the value of a variable: gradients may be summed at their owner alone."""
        return 0 if self.ownership is None else self.ownership.owners.get(name, 0)


def hollow(model: Model) -> Model:
    """Return a model after its state variables got contents that take no memory."""
    for key in model.state():
        if key.home is not None and isinstance(key.constant, Tensor):
            key.home.set_initializer(key, ArrayTensor(_hollow(key.constant)))
    return model


def hollow_state(model: Model) -> dict[str, Array]:
    """Return arrays of the types and shapes of the state variables, which take no memory.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float y) <float w = {1}> { y = Neg (w) }
    ... @training {algorithm: a () => (float v) { v = Neg (w) }, update_binding: ["w": "v"]}''')
    >>> hollow_state(model)
    {'w': array(0., dtype=float32)}
    """
    return {n: _hollow(v.constant) for n, v in state_of(model).items() if isinstance(v.constant, Tensor)}


def is_float(array: Array) -> bool:
    """Return whether an array has floating-point numbers, of 16 bits and fewer too.

    >>> is_float(np.zeros(2)), is_float(np.zeros(2, bool))
    (True, False)
    """
    return array.dtype.kind in "fV"


def _hollow(data: Tensor) -> Array:
    return np.broadcast_to(np.zeros((), data.element.dtype), tuple(data.shape))


def _only(parts: Mapping[int, RunnablePart], later: Sequence[int]) -> RunnablePart:
    if len(later) == 1:
        return parts[later[0]]
    raise UnsupportedError(
        f"shard_optimizer divides one algorithm that applies gradients; the model has {len(later)}"
    )


def _by_depth(part: RunnablePart, names: Collection[str]) -> list[str]:
    """Return updates in the order in which they can be computed: by the longest chain before them."""
    graph = part.prepared.model.graph
    depth: dict[Node, int] = {}
    for node in graph.sorted_nodes():
        depth[node] = 1 + max((depth.get(v.node, 0) for v in node.reads() if v.node is not None), default=0)
    nodes = {name: graph.value(part.updates[name]).node for name in names}
    return sorted(names, key=lambda name: 0 if (node := nodes[name]) is None else depth[node])


__all__ = ["Layout", "Settings", "hollow", "hollow_state", "is_float"]
