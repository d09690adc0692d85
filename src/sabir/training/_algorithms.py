"""The algorithms of a prepared model: gradients, their norm and sums, and the steps of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import UnsupportedError, quote
from sabir.elements import BFLOAT16, DOUBLE, FLOAT
from sabir.ir import Tensor, TensorType, TrainingInfo
from sabir.training._averaging import average_name
from sabir.training._loss_scaling import LossScaling
from sabir.training._losses import LOSS
from sabir.training._optimizers import PREVIEW, Moment, Parameter
from sabir.training._parameters import group_of
from sabir.training._schedules import rate_of
from sabir.training._written_out import written_gradients

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array, Builder, Graph, Value
    from sabir.rewriting import DetachedBuilder, Rewriter
    from sabir.training._learned_scales import LearnedScales
    from sabir.training._modes import TrainingMode
    from sabir.training._optimizers import Optimizer
    from sabir.training._precision import Precision
    from sabir.training._preparing import Plan

_TINY = 1e-6  # what PyTorch adds to a norm before it divides by it


class Builders(NamedTuple):
    """The builder of the first algorithm, the rewriter that makes others, and the scales that they learn."""

    first: DetachedBuilder
    rewriter: Rewriter
    learned: LearnedScales | None = None

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
    precision: Precision | None = None,
) -> list[TrainingInfo]:
    """Return the training information that trains parameters: one, or two for a split model."""
    b = builders.first
    updates = list(mode.statistics.items())
    b.graph.name = "training"
    b.graph.outputs = [v for v in (loss, *results) if v.home is b.graph]
    scaling = None
    if precision is not None and precision.scales_loss:
        scaling = LossScaling.begin(_State(b, builders if plan.split else None).new)
        updates = [(old, scaling.kept(b, old, new)) for old, new in updates]
    target = loss if scaling is None else scaling.scaled(b, loss)
    others = _other_sources(b, builders.main, target, parameters)
    # the operator Gradient admits no input of bfloat16, and what it differentiates is what a step returns
    if plan.recompute or scaling is not None or any(_kind(b, v).element is BFLOAT16 for v in others):
        origins = mode.origins()
        gradients = written_gradients(b, builders.rewriter, target, parameters, plan.recompute, origins)
        if loss.home is not b.graph:  # no operator Gradient names it
            b.output(b.Identity(loss), LOSS)
    else:
        gradients = _gradients(b, others, target, parameters)
    learned = builders.learned
    if learned is not None:
        gradients = [learned.gradient(b, v, g) for v, g in zip(parameters, gradients, strict=True)]
    pairs = list(zip(parameters, gradients, strict=True))
    if plan.split:
        return _split(builders, plan, pairs, updates, scaling)
    if plan.accumulate > 1:
        updates += _accumulated(b, plan, pairs, scaling)
    else:
        updates += _applied(b, plan, pairs, _State(b), scaling)
    return [_bound(b, updates, learned)]


class _State:
    """State variables: initializers of an algorithm, or of the main graph, which all algorithms share."""

    def __init__(self, b: DetachedBuilder, shared: Builders | None = None) -> None:
        self._b, self._shared = b, shared

    def new(self, name: str, value: Any, like: Value | None = None) -> Value:
        """Add a state variable; `value` fills the shape of `like` in its element type, if it is there."""
        data = like.constant if like is not None else None
        array: Array = (
            _filled(data.shape, value, data.element.dtype) if isinstance(data, Tensor) else np.asarray(value)
        )
        if self._shared is None:
            return self._b.initializer(name, array)
        return self._shared.main.add_initializer(self._shared.rewriter.names.fresh(name), array)


def _other_sources(b: Builder, main: Graph, loss: Value, parameters: Sequence[Value]) -> list[Value]:
    """Return the inputs that a loss depends on."""
    sources = _sources(loss) - set(parameters)
    return [v for v in (*main.inputs, *b.graph.inputs) if v in sources]


def _gradients(b: Builder, others: Sequence[Value], loss: Value, parameters: Sequence[Value]) -> list[Value]:
    """Append the operator Gradient: it names the parameters, and the inputs that the loss depends on."""
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
        new = [v for v in node.reads() if v not in seen]
        seen.update(new)
        pending += new
    return found


def _applied(
    b: DetachedBuilder,
    plan: Plan,
    pairs: Sequence[tuple[Value, Value]],
    state: _State,
    scaling: LossScaling | None,
    due: Value | None = None,
    step: Value | None = None,
) -> list[tuple[Value, Value]]:
    """Append the step of the optimizer for parameters and their gradients; return what is assigned.

    Where `due` is false all stays as it is.
    """
    gradients, updates, due = _checked(b, scaling, [gradient for _, gradient in pairs], due)
    before = state.new("training_step", np.int64(0)) if step is None else step
    base = state.new("learning_rate", np.float64(plan.optimizer.schedule.rate))
    after = b.Add(before, np.int64(1))
    moment = Moment(b, after, rate_of(b, plan.optimizer.schedule, base, before))
    b.output(b.Cast(moment.rate, to=FLOAT.number), "rate")
    stepped = [(before, after)]
    for (value, _), gradient in zip(pairs, _clipped(b, plan, gradients), strict=True):
        stepped += _stepped(plan, moment, value, gradient, state)
    updates.append((base, b.Identity(base)))
    return updates + [(old, new if due is None else b.Where(due, new, old)) for old, new in stepped]


def _checked(
    b: Builder, scaling: LossScaling | None, gradients: list[Value], due: Value | None
) -> tuple[list[Value], list[tuple[Value, Value]], Value | None]:
    """Return the gradients of the loss itself, the updates of its scale, and when a step is made."""
    if scaling is None:
        return gradients, [], due
    gradients = scaling.unscaled(b, gradients)
    finite = scaling.are_finite(b, gradients)
    return gradients, scaling.updates(b, finite, due), finite if due is None else b.And(due, finite)


def _stepped(
    plan: Plan, moment: Moment, value: Value, gradient: Value, state: _State
) -> list[tuple[Value, Value]]:
    """Append the step of one parameter; return its new value, and those of its state."""
    optimizer, group = plan.optimizer, group_of(value.name, plan.groups)
    decay = optimizer.weight_decay if group.weight_decay is None else group.weight_decay
    slots = _slots(state, optimizer, value)
    x = Parameter(value, gradient, group.scale, decay, slots)
    new, changed = optimizer.update(moment, x)
    found = [(value, new), *((slots[name], changed[name]) for name in slots)]
    if plan.average is not None:
        found.append(_averaged(state, moment, x, new, plan.average))
    return found


def _averaged(state: _State, moment: Moment, x: Parameter, new: Value, share: float) -> tuple[Value, Value]:
    """Add the moving average of a parameter; return it and its new value, that of the parameter at first."""
    b, name = moment.b, average_name(x.value.name)
    average = state.new(name, _data(x.value).array())
    if average.name != name:
        raise UnsupportedError(
            f"the model has a value {quote(name)}, which is the name of an average; rename it"
        )
    return average, b.Where(moment.is_first(), new, x.mixed(b, average, new, share))


def _filled(shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array of one value; zeros need no memory until they are written."""
    return np.full(shape, value, dtype) if value else np.zeros(shape, dtype)


def _slots(state: _State, optimizer: Optimizer, value: Value) -> dict[str, Value]:
    """Add the state variables of a parameter, in its element type."""
    data = _data(value)
    return {
        name: state.new(f"{name}_{value.name}", _filled(slot.shape, slot.initial, data.element.dtype))
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
    b: DetachedBuilder, plan: Plan, pairs: Sequence[tuple[Value, Value]], scaling: LossScaling | None
) -> list[tuple[Value, Value]]:
    """Append sums of gradients, of which the mean is applied in every step number `accumulate`."""
    state = _State(b)
    count = state.new("accumulated_steps", np.int64(0))
    more = b.Add(count, np.int64(1))
    due = b.Equal(more, np.int64(plan.accumulate))
    updates = [(count, b.Where(due, np.int64(0), more))]
    means: list[tuple[Value, Value]] = []
    for value, gradient in pairs:
        buffer = state.new(f"accumulated_{value.name}", 0, value)
        total = b.Add(buffer, gradient)
        zero, number = (np.asarray(n, _kind(b, value).element.dtype) for n in (0, plan.accumulate))
        updates.append((buffer, b.Where(due, zero, total)))
        means.append((value, b.Div(total, number)))
    return updates + _applied(b, plan, means, state, scaling, due)


def _split(
    builders: Builders,
    plan: Plan,
    pairs: Sequence[tuple[Value, Value]],
    updates: list[tuple[Value, Value]],
    scaling: LossScaling | None,
) -> list[TrainingInfo]:
    """Return two training informations: one sums gradients in the state, and one applies their mean.

    A variable is updated by one of them, as `onnx.proto` requires. So the second does not reset the sums: the
    first starts them anew when the number of the step, or of those skipped, is another one than that for
    which they hold.
    """
    b, second = builders.first, builders.rewriter.builder(builders.main)
    shared = _State(b, builders)
    step = shared.new("training_step", np.int64(0))
    valid, count = shared.new("grad_step", np.int64(-1)), shared.new("grad_count", np.float32(0))
    number = step if scaling is None else b.Add(step, scaling.skipped_steps)
    fresh = b.Not(b.Equal(valid, number))
    one = np.float32(1)
    updates += [(valid, b.Identity(number)), (count, b.Where(fresh, one, b.Add(count, one)))]
    means: list[tuple[Value, Value]] = []
    for value, gradient in pairs:
        total = shared.new(f"grad_{value.name}", 0, value)
        updates.append((total, b.Where(fresh, gradient, b.Add(total, gradient))))
        means.append((value, second.Div(total, second.CastLike(count, total))))
    second.graph.name = "applying"
    applied = _applied(second, plan, means, _State(second), scaling, step=step)
    return [_bound(b, updates), _bound(second, applied, builders.learned)]


def _bound(
    b: DetachedBuilder, updates: Sequence[tuple[Value, Value]], learned: LearnedScales | None = None
) -> TrainingInfo:
    """Return training information with a builder's graph, whose outputs the updates become."""
    pairs: list[tuple[Value, Value]] = []
    for key, update in updates:
        value = update if learned is None else learned.stepped(b, key, update)
        computed = value.node is not None and value.home is b.graph and value not in b.graph.outputs
        new = value if computed else b.Identity(value)
        pairs.append((key, b.output(new, f"next_{key.name}")))
    return TrainingInfo(algorithm=b.graph, update_binding=pairs)


def _kind(b: Builder, value: Value) -> TensorType:
    kind = b.type_of(value)
    return kind if isinstance(kind, TensorType) else TensorType(FLOAT)


__all__ = ["Builders", "algorithms"]
