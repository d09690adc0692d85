"""The algorithms of a prepared model: gradients, their norm and sums, and the steps of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import UnsupportedError, quote
from sabir.elements import DOUBLE, FLOAT
from sabir.ir import Tensor, TensorType, TrainingInfo
from sabir.training._averaging import average_name
from sabir.training._losses import LOSS
from sabir.training._optimizers import PREVIEW, Moment, Parameter
from sabir.training._parameters import group_of
from sabir.training._schedules import rate_of
from sabir.training._written_out import written_gradients

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array, Builder, Graph, Value
    from sabir.rewriting import DetachedBuilder, Rewriter
    from sabir.training._modes import TrainingMode
    from sabir.training._optimizers import Optimizer
    from sabir.training._preparing import Plan

_TINY = 1e-6  # what PyTorch adds to a norm before it divides by it


class Builders(NamedTuple):
    """The builder of the first algorithm, and the rewriter that makes others."""

    first: DetachedBuilder
    rewriter: Rewriter

    @property
    def main(self) -> Graph:
        """The main graph, whose initializers are shared by all algorithms."""
        return self.rewriter.model.graph


def algorithms(
    builders: Builders,
    plan: Plan,
    loss: Value,
    parameters: Sequence[Value],
    results: Sequence[Value],
    mode: TrainingMode,
) -> list[TrainingInfo]:
    """Return the training information that trains parameters: one, or two for a split model."""
    b = builders.first
    updates = list(mode.statistics.items())
    b.graph.name = "training"
    b.graph.outputs = [v for v in (loss, *results) if v.home is b.graph]
    if plan.recompute:
        origins = mode.origins()
        gradients = written_gradients(b, builders.rewriter, loss, parameters, plan.recompute, origins)
        if loss.home is not b.graph:  # no operator Gradient names it
            b.output(b.Identity(loss), LOSS)
    else:
        gradients = _gradients(b, builders.main, loss, parameters)
    if plan.split:
        return _split(builders, plan, list(zip(parameters, gradients, strict=True)), updates)
    if plan.accumulate > 1:
        updates += _accumulated(b, plan, parameters, gradients)
    else:
        updates += _applied(b, plan, parameters, gradients, _State(b))
    return [_bound(b, updates)]


class _State:
    """State variables: initializers of an algorithm, or of the main graph, which all algorithms share."""

    def __init__(self, b: DetachedBuilder, shared: Builders | None = None) -> None:
        self._b, self._shared = b, shared

    def new(self, name: str, value: Any, like: Value | None = None) -> Value:
        """Add a state variable; `value` fills the shape of `like` in its element type, if it is there."""
        data = like.constant if like is not None else None
        array: Array = (
            np.full(data.shape, value, data.element.dtype) if isinstance(data, Tensor) else np.asarray(value)
        )
        if self._shared is None:
            return self._b.initializer(name, array)
        return self._shared.main.add_initializer(self._shared.rewriter.names.fresh(name), array)


def _gradients(b: Builder, main: Graph, loss: Value, parameters: Sequence[Value]) -> list[Value]:
    """Append the operator Gradient: it names the parameters, and the inputs that the loss depends on."""
    sources = _sources(loss) - set(parameters)
    others = [v for v in (*main.inputs, *b.graph.inputs) if v in sources]
    found = b.op(
        "Gradient", *parameters, *others, outputs=len(parameters),
        domain=PREVIEW, xs=[v.name for v in parameters], zs=[v.name for v in others] or None, y=loss.name,
    )  # fmt: skip
    return list(found) if len(parameters) > 1 else [found]


def _sources(target: Value) -> set[Value]:
    """Return the values that a value depends on and no node computes."""
    seen, pending = {target}, [target]
    found: set[Value] = set()
    while pending:
        value = pending.pop()
        node = value.node
        if node is None:
            found.add(value)
            continue
        read = [*node.inputs, *(v for graph in node.graphs for v in graph.captures())]
        new = [v for v in read if v is not None and v not in seen]
        seen.update(new)
        pending += new
    return found


def _applied(
    b: DetachedBuilder,
    plan: Plan,
    parameters: Sequence[Value],
    gradients: Sequence[Value],
    state: _State,
    due: Value | None = None,
    step: Value | None = None,
) -> list[tuple[Value, Value]]:
    """Append the step of the optimizer; return what is assigned. Where `due` is false all stays as it is."""
    optimizer = plan.optimizer
    before = state.new("training_step", np.int64(0)) if step is None else step
    base = state.new("learning_rate", np.float64(optimizer.schedule.rate))
    after = b.Add(before, np.int64(1))
    rate = rate_of(b, optimizer.schedule, base, before)
    moment = Moment(b, after, rate)
    b.output(b.Cast(rate, to=FLOAT.number), "rate")
    updates = [(base, b.Identity(base)), (before, after if due is None else b.Where(due, after, before))]
    for value, gradient in zip(parameters, _clipped(b, plan, gradients), strict=True):
        group = group_of(value.name, plan.groups)
        decay = optimizer.weight_decay if group.weight_decay is None else group.weight_decay
        slots = _slots(state, optimizer, value)
        x = Parameter(value, gradient, group.scale, decay, slots)
        new, changed = optimizer.update(moment, x)
        pairs = [(value, new), *((slots[name], changed[name]) for name in slots)]
        if plan.average is not None:
            pairs.append(_averaged(state, moment, x, new, plan.average))
        updates += [(old, v if due is None else b.Where(due, v, old)) for old, v in pairs]
    return updates


def _averaged(state: _State, moment: Moment, x: Parameter, new: Value, share: float) -> tuple[Value, Value]:
    """Add the moving average of a parameter; return it and its new value, that of the parameter at first."""
    b, name = moment.b, average_name(x.value.name)
    average = state.new(name, _data(x.value).array())
    if average.name != name:
        raise UnsupportedError(
            f"the model has a value {quote(name)}, which is the name of an average; rename it"
        )
    return average, b.Where(moment.is_first(), new, x.mixed(b, average, new, share))


def _slots(state: _State, optimizer: Optimizer, value: Value) -> dict[str, Value]:
    """Add the state variables of a parameter, in its element type."""
    data = _data(value)
    return {
        name: state.new(f"{name}_{value.name}", np.full(slot.shape, slot.initial, data.element.dtype))
        for name, slot in optimizer.slots_of(tuple(data.shape)).items()
    }


def _data(value: Value) -> Tensor:
    """Return the first value of a parameter; raises UnsupportedError."""
    data = value.constant
    if not isinstance(data, Tensor):
        raise UnsupportedError(f"{quote(value.name)} is no dense tensor, so it cannot be trained")
    return data


def _clipped(b: Builder, plan: Plan, gradients: Sequence[Value]) -> list[Value]:
    """Return gradients limited to a range, whose norm, over all of them, is at most `plan.clip`."""
    gradients, clip = [_limited(b, plan.clip_value, g) for g in gradients], plan.clip
    if clip is None:
        return gradients
    squares = [b.Cast(b.ReduceSumSquare(g, keepdims=0), to=DOUBLE.number) for g in gradients]
    share = b.Div(np.float64(clip), b.Add(b.Sqrt(b.Sum(*squares)), np.float64(_TINY)))
    share = b.Min(share, np.float64(1))
    return [b.Mul(g, b.CastLike(share, g)) for g in gradients]


def _limited(b: Builder, limit: float | None, gradient: Value) -> Value:
    """Return a gradient whose elements are at most `limit` away from 0."""
    if limit is None:
        return gradient
    dtype = _kind(b, gradient).element.dtype
    return b.Clip(gradient, np.asarray(-limit, dtype), np.asarray(limit, dtype))


def _accumulated(
    b: DetachedBuilder, plan: Plan, parameters: Sequence[Value], gradients: Sequence[Value]
) -> list[tuple[Value, Value]]:
    """Append sums of gradients, of which the mean is applied in every step number `accumulate`."""
    state = _State(b)
    count = state.new("accumulated_steps", np.int64(0))
    more = b.Add(count, np.int64(1))
    due = b.Equal(more, np.int64(plan.accumulate))
    updates = [(count, b.Where(due, np.int64(0), more))]
    means: list[Value] = []
    for value, gradient in zip(parameters, gradients, strict=True):
        buffer = state.new(f"accumulated_{value.name}", 0, value)
        total = b.Add(buffer, gradient)
        zero, number = (np.asarray(n, _kind(b, value).element.dtype) for n in (0, plan.accumulate))
        updates.append((buffer, b.Where(due, zero, total)))
        means.append(b.Div(total, number))
    return updates + _applied(b, plan, parameters, means, state, due)


def _split(
    builders: Builders,
    plan: Plan,
    pairs: Sequence[tuple[Value, Value]],
    updates: list[tuple[Value, Value]],
) -> list[TrainingInfo]:
    """Return two training informations: one sums gradients in the state, and one applies their mean.

    A variable is updated by one of them, as `onnx.proto` requires. So the second does not reset the sums: the
    first starts them anew when the number of the step is another one than that for which they hold.
    """
    b, second = builders.first, builders.rewriter.builder(builders.main)
    shared = _State(b, builders)
    step = shared.new("training_step", np.int64(0))
    valid, count = shared.new("grad_step", np.int64(-1)), shared.new("grad_count", np.float32(0))
    fresh = b.Not(b.Equal(valid, step))
    one = np.float32(1)
    updates += [(valid, b.Identity(step)), (count, b.Where(fresh, one, b.Add(count, one)))]
    means: list[Value] = []
    for value, gradient in pairs:
        total = shared.new(f"grad_{value.name}", 0, value)
        updates.append((total, b.Where(fresh, gradient, b.Add(total, gradient))))
        means.append(second.Div(total, second.CastLike(count, total)))
    second.graph.name = "applying"
    applied = _applied(second, plan, [v for v, _ in pairs], means, _State(second), step=step)
    return [_bound(b, updates), _bound(second, applied)]


def _bound(b: DetachedBuilder, updates: Sequence[tuple[Value, Value]]) -> TrainingInfo:
    """Return training information with a builder's graph, whose outputs the updates become."""
    pairs: list[tuple[Value, Value]] = []
    for key, value in updates:
        computed = value.node is not None and value.home is b.graph and value not in b.graph.outputs
        new = value if computed else b.Identity(value)
        pairs.append((key, b.output(new, f"next_{key.name}")))
    return TrainingInfo(algorithm=b.graph, update_binding=pairs)


def _kind(b: Builder, value: Value) -> TensorType:
    kind = b.type_of(value)
    return kind if isinstance(kind, TensorType) else TensorType(FLOAT)


__all__ = ["Builders", "algorithms"]
