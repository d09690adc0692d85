"""What a training model minimizes and reports: losses of outputs, their weighted sum, and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.base import NotFoundError, UnsupportedError, quote, suggest
from sabir.inference import without_contents
from sabir.ir import TensorType
from sabir.training._joint import JointLoss
from sabir.training._labels import LabelLoss
from sabir.training._losses import LOSS, Loss, check_number, dtype_of
from sabir.training._metrics import metrics_of
from sabir.training._named_losses import LOSSES, loss_of
from sabir.training._precision import widened, widened_type
from sabir.training._regression import NumberLoss
from sabir.training._saving import IGNORED_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Graph, Model, Type, Value
    from sabir.training._losses import Function
    from sabir.training._metrics import Metric, Metrics
    from sabir.training._modes import TrainingMode

    AnyLoss: TypeAlias = str | Loss | Function
    """A loss by its name, as an object, or as a function that builds it."""


class Objective(NamedTuple):
    """A loss of one output, its target, its share of the sum, and the metrics of the output.

    `prefix` is what the names of its results begin with: that of the output where there are several.
    """

    loss: Loss
    output: str | None
    target: str
    weight: float
    metrics: tuple[Metric, ...]
    prefix: str = ""


class Asked(NamedTuple):
    """The arguments of `prepare` about losses."""

    loss: AnyLoss | Mapping[str, AnyLoss]
    target: str | Mapping[str, str]
    output: str | None
    weights: Mapping[str, float] | None
    metrics: Metrics


def objectives_of(asked: Asked) -> tuple[Objective, ...] | str:
    """Return the losses that are asked for, or the name of a scalar that the model computes.

    Raises UnsupportedError for arguments that contradict each other.
    """
    given = asked.loss
    if isinstance(given, Mapping):
        return _several(asked, cast("Mapping[str, AnyLoss]", given))
    if asked.weights is not None:
        raise UnsupportedError("loss_weights are for several losses: loss={'scores': 'cross_entropy', ...}")
    if not isinstance(asked.target, str):
        raise UnsupportedError(
            "targets by output are for several losses: loss={'scores': 'cross_entropy', ...}"
        )
    loss, metrics = loss_of(given), metrics_of(asked.metrics)
    if not isinstance(loss, str):
        return (Objective(loss, asked.output, asked.target, 1.0, metrics),)
    if metrics:
        raise UnsupportedError("a model with a loss of its own computes its metrics too")
    return loss


def _several(asked: Asked, losses: Mapping[str, AnyLoss]) -> tuple[Objective, ...]:
    """Return losses by output; raises UnsupportedError."""
    if asked.output is not None or not losses:
        raise UnsupportedError("with losses by output, one or more, output= has no meaning")
    weights = asked.weights or {}
    targets = dict.fromkeys(losses, asked.target) if isinstance(asked.target, str) else asked.target
    metrics = cast("Mapping[str, Metrics]", asked.metrics or {})
    if not isinstance(metrics, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller may pass a list
        raise UnsupportedError(
            "with losses by output the metrics are by output too: {'scores': ['accuracy']}"
        )
    for what, given in (("loss_weights", weights), ("target", targets), ("metrics", metrics)):
        other = next((name for name in given if name not in losses), None)
        if other is not None:
            raise UnsupportedError(
                f"{what} has {quote(other)}, for which there is no loss{suggest(other, losses)}"
            )
    found: list[Objective] = []
    for name, given in losses.items():
        loss, weight = loss_of(given), weights.get(name, 1.0)
        check_number(f"the weight of the loss of {quote(name)}", weight)
        if isinstance(loss, str):
            hint = suggest(loss, LOSSES) or f"; losses are {', '.join(LOSSES)}"
            raise NotFoundError(f"{quote(loss)} is no loss{hint}")
        target = targets.get(name, f"{name}_label")
        found.append(Objective(loss, name, target, weight, metrics_of(metrics.get(name, ())), f"{name}_"))
    return tuple(found)


def compared_by(graph: Graph, asked: tuple[Objective, ...] | str) -> list[str | None]:
    """Return the names of what losses compare, None for the first output; raises NotFoundError."""
    if isinstance(asked, str):
        return [_loss_in(graph, asked).name]
    others = [name for one in asked if isinstance(one.loss, JointLoss) for name in one.loss.others]
    return [*(one.output for one in asked), *others]


def build_objectives(
    b: Builder, model: Model, asked: tuple[Objective, ...] | str, mode: TrainingMode | None
) -> tuple[Value, list[Value]]:
    """Build the loss and what is reported with it, of the values in training mode where there is one."""
    if isinstance(asked, str):
        return _own_loss(b, model.graph, asked, mode), []
    targets: dict[str, Value] = {}
    losses: list[Value] = []
    results: list[Value] = []
    for one in asked:
        original = output_of(model.graph, one.output)
        kind = b.type_of(original)
        if not isinstance(kind, TensorType):
            raise UnsupportedError(f"the output {quote(original.name)} is {kind or 'of unknown type'}")
        loss = one.loss.of_output(original, widened_type(kind))
        scores = _in_mode(b, loss.scores(original), mode)
        wanted = without_contents(loss.target(kind))
        if isinstance(loss, JointLoss):
            _refuse_metrics(loss, one)
            others = [_in_mode(b, model.graph.value(name), mode) for name in loss.others]
            compared = widened(b, _target(b, targets, one.target, wanted)) if loss.has_target else None
            losses.append(loss.build_of(b, [scores, *others], compared))
            continue
        target = widened(b, _target(b, targets, one.target, wanted))
        losses.append(loss.build(b, scores, target))
        built = [metric.build(loss, b, (scores, target), one.prefix) for metric in one.metrics]
        results += [value for values in built for value in values]
    if len(asked) == 1 and not asked[0].prefix:
        return b.output(losses[0], LOSS), results
    shown = [b.output(x, f"{one.prefix}{LOSS}") for one, x in zip(asked, losses, strict=True)]
    return b.output(_weighted_sum(b, losses, [one.weight for one in asked]), LOSS), [*shown, *results]


def _in_mode(b: Builder, value: Value, mode: TrainingMode | None) -> Value:
    """Return the value that takes the place of one of the main graph in training mode, not in 16 bits."""
    return widened(b, value) if mode is None else mode.value(value, b)


def _refuse_metrics(loss: Loss, objective: Objective) -> None:
    """Raise UnsupportedError where a loss that compares several values has metrics of one of them."""
    if objective.metrics:
        raise UnsupportedError(
            f"the loss {type(loss).__name__} reads several values, and a metric one; there is no "
            f"{quote(objective.metrics[0].name)}"
        )


def note_ignored_labels(model: Model, asked: tuple[Objective, ...] | str) -> None:
    """Note the targets that losses ignore, where all do: a batch may be filled with such samples."""
    if isinstance(asked, str):
        return
    notes: dict[str, str] = {}
    for one in asked:
        original = output_of(model.graph, one.output)
        kind = original.type
        loss = one.loss.of_output(original, kind) if isinstance(kind, TensorType) else one.loss
        own = any(not isinstance(metric.asked, str) for metric in one.metrics)
        if not isinstance(loss, (LabelLoss, NumberLoss)) or loss.ignored is None or own:
            return
        notes[f"{IGNORED_LABEL}{one.target}"] = str(loss.ignored)
    model.metadata = {**(model.metadata or {}), **notes}


def _target(b: Builder, known: dict[str, Value], name: str, kind: Type) -> Value:
    """Return the new input of a name, which several losses may read; raises UnsupportedError."""
    if name in known:
        if b.type_of(known[name]) != kind:
            raise UnsupportedError(
                f"the target {quote(name)} is {b.type_of(known[name])} for one output and {kind} for another "
                "one; give each its own: target={'scores': 'label', ...}"
            )
        return known[name]
    found = known[name] = b.input(name, kind)
    if found.name != name:
        raise UnsupportedError(f"the model has a value {quote(name)}; choose another name of the target")
    return found


def _weighted_sum(b: Builder, losses: Sequence[Value], weights: Sequence[float]) -> Value:
    """Build the sum of losses times their weights, in the element type of the first."""
    dtype = dtype_of(b, losses[0])
    same = [losses[0], *(b.CastLike(loss, losses[0]) for loss in losses[1:])]
    terms = [b.Mul(loss, np.asarray(weight, dtype)) for loss, weight in zip(same, weights, strict=True)]
    return b.Sum(*terms)


def _own_loss(b: Builder, graph: Graph, name: str, mode: TrainingMode | None) -> Value:
    """Return the scalar of a name that the model computes; raises NotFoundError, UnsupportedError."""
    found = _loss_in(graph, name)
    kind = b.type_of(found)
    if isinstance(kind, TensorType) and kind.shape:
        raise UnsupportedError(f"the loss {quote(name)} is {kind}; a loss is a scalar")
    return found if mode is None else mode.value(found, b)


def _loss_in(graph: Graph, name: str) -> Value:
    """Return the value of the main graph that is the loss; raises NotFoundError."""
    found = next((v for v in graph.defined() if v.name == name), None)
    if found is None:
        known = ", ".join(LOSSES)
        raise NotFoundError(f"{quote(name)} is neither a loss nor a value of the model; losses are {known}")
    return found


def output_of(graph: Graph, name: str | None) -> Value:
    """Return a value of the main graph by name, by default the first output; raises UnsupportedError."""
    outputs = [v for v in graph.outputs if v is not None]
    if name is not None:
        return graph.value(name)
    if not outputs:
        raise UnsupportedError("the model has no output to compare with a target")
    return outputs[0]


__all__ = [
    "AnyLoss", "Asked", "Objective", "build_objectives", "compared_by", "note_ignored_labels",
    "objectives_of", "output_of",
]  # fmt: skip
