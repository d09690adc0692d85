"""`prepare`: a training model made of an inference model."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.base import UnsupportedError, quote, run_with_limits
from sabir.conversion import convert
from sabir.evaluation import warn
from sabir.inference import without_contents
from sabir.inlining import inline_in_place
from sabir.ir import TrainingInfo, least_ir
from sabir.opsets import STANDARD
from sabir.rewriting import Rewriter, change_ir_version, remove_unread
from sabir.training._algorithms import Builders, algorithms
from sabir.training._bodies import lift_from_bodies
from sabir.training._inference_mode import to_inference
from sabir.training._initializing import initial_values
from sabir.training._layers import changes_in_training
from sabir.training._learned_scales import LearnedScales
from sabir.training._lora import add_adapters
from sabir.training._modes import TrainingMode
from sabir.training._objectives import (
    Asked,
    build_objectives,
    compared_by,
    note_ignored_labels,
    objectives_of,
    output_of,
)
from sabir.training._optimizers import PREVIEW, AdamW, Optimizer, check_number
from sabir.training._parameters import check_groups
from sabir.training._planning import Choice, TrainingPlan, decide, resolve_sharing
from sabir.training._precision import keep_masters, precision_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.base import Limits
    from sabir.ir import Graph, Model, Value
    from sabir.schema import Registry
    from sabir.training._adapters import Adapters
    from sabir.training._lora import LoRA
    from sabir.training._metrics import Metrics
    from sabir.training._objectives import AnyLoss, Objective
    from sabir.training._parameters import Group
    from sabir.training._precision import Precision

_OLDEST_OPSET = 18  # that gradients are written for
_OLDEST_IR = 7  # that has training information
_MOST_REASONS = 5


class Plan(NamedTuple):
    """What is asked of `prepare`."""

    objectives: tuple[Objective, ...] | str
    optimizer: Optimizer
    choice: Choice
    precision: str | None
    groups: tuple[Group, ...]
    clip: float | None
    clip_value: float | None
    average: float | None
    accumulate: int
    split: bool
    initialize: Mapping[str, str]
    recompute: tuple[str, ...]
    lora: int | LoRA | Adapters | None


def prepare(  # ruff: ignore[too-many-arguments]  all but two are by keyword
    model: Model,
    loss: AnyLoss | Mapping[str, AnyLoss] = "cross_entropy",
    *,
    target: str | Mapping[str, str] = "label",
    output: str | None = None,
    loss_weights: Mapping[str, float] | None = None,
    optimizer: Optimizer | None = None,
    trainable: str | Sequence[str] | None = None,
    frozen: str | Sequence[str] = (),
    tie: Iterable[tuple[str, str]] = (),
    precision: Literal["bfloat16", "float16"] | None = None,
    learn_scales: bool = False,
    groups: Sequence[Group] = (),
    clip: float | None = None,
    clip_value: float | None = None,
    average: float | None = None,
    accumulate: int = 1,
    split: bool = False,
    metrics: Metrics = (),
    initialize: str | Mapping[str, str] | None = None,
    recompute: str | Sequence[str] = (),
    lora: int | LoRA | Adapters | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a training model of an inference model: a copy of it with training information.

    `loss` is a loss of `sabir.training`, the name of one (a key of `LOSSES`), a function that builds one,
    `lambda b, scores, target: ...`, or the name of a scalar of the main graph. It compares `output`, by
    default the first output, with a new input `target`, which for a function has the type of the output
    (`LossFunction` takes another). Losses of several outputs are a dict by the names of the outputs, and so
    are then `target`, the `metrics`, and `loss_weights`, their factors in the sum that is minimized, which
    are 1 by default; the results have names such as `boxes_loss`. `optimizer` is by default `AdamW(1e-3)`.

    Trained are the floating-point constants that are parameters, by what the exporter recorded, by their use
    and by their names; `training_plan` lists them with the reasons. With `trainable` they are instead those
    whose names match a pattern (a scalar: whose whole name it is), in any case without those that `frozen`
    matches. Each pair of names in `tie` is one parameter, stored twice, also transposed; what an exporter
    stored once for several layers becomes one parameter of each. A SabirWarning says what may not be meant.
    `groups` change the rate and the decay for some.

    With `precision` products, convolutions and attention compute in 16 bits inside the algorithm.
    Normalizations, Softmax, reductions and the loss, the parameters and the state of the optimizer are in
    single precision, and so is the main graph. It is by default that of a model whose weights are stored in
    16 bits. For float16 the loss is scaled by the state variable `loss_scale`: a step whose gradients are not
    finite halves it, is counted in `skipped_steps`, and leaves parameters and moments as they are.

    With `learn_scales` the scales of pairs of QuantizeLinear and DequantizeLinear are trained too.

    Gradients are limited to the range from `-clip_value` to `clip_value`, and then scaled where their norm,
    over all parameters, is above `clip`. With `average`, such as 0.999, the state has moving averages of the
    parameters too, of which a step keeps that share; `averaged` puts them into the model. With `accumulate`
    the mean of the gradients of so many steps is applied in the last of them. With `split` the first
    algorithm sums gradients in the state, `grad_` and the name of the parameter, and the second applies their
    mean.

    Dropout and BatchNormalization are in training mode inside the algorithm, and in inference mode in the
    main graph; running statistics are state. The algorithm returns `loss`, the `metrics` and `rate`; the last
    training information has no bindings, and evaluates loss and metrics of the main graph. `metrics` are
    names (a number may replace that of top_5 in `METRICS`) and functions as for `loss`, by their names, or a
    dict of either by names of outputs.

    `initialize` has rules by pattern, or one for all: glorot, he, normal, zeros, ones. `recompute` has
    patterns of node names, as `differentiate` takes them: the results of these nodes are computed again for
    the gradients, which are then written out, and not one operator Gradient. One pattern may be a string.

    With `lora`, a rank or a `LoRA`, the weights of MatMul and Gemm stay as they are, and so do all other
    initializers, except those that `trainable` names; low-rank adapters of the weights are trained, which
    `adapters` returns and `merge_adapters` adds to the weights. `lora` may also be adapters to go on with.

    A model below operator set 18, or 22 for bfloat16, is converted to it. Raises NotFoundError for a name or
    a pattern that matches nothing, UnsupportedError, SchemaError, ConversionError or LimitError.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> from sabir.training import SGD, prepare
    >>> session = sabir.TrainingSession(prepare(model, 'mse', optimizer=SGD(0.1)))
    >>> found = session.step({'x': [[1.0, 0.0]], 'label': [[3.0]]})
    >>> print(found['loss'], session.state['w'].ravel())
    4.0 [ 1.4 -1. ]
    """
    rules = {"*": initialize} if isinstance(initialize, str) else dict(initialize or {})
    if accumulate < 1 or (split and accumulate != 1):
        raise UnsupportedError("accumulate is 1 or more, and 1 for a split model, where the caller counts")
    if clip is not None and not clip > 0:
        raise UnsupportedError(f"clip is a norm above 0, or None; got {clip}")
    if clip_value is not None and not clip_value > 0:
        raise UnsupportedError(f"clip_value is a number above 0, or None; got {clip_value}")
    if average is not None:
        check_number("average", average, below=1)
    chosen = AdamW(1e-3) if optimizer is None else optimizer
    if not isinstance(chosen, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise UnsupportedError(
            f"an optimizer is an object such as sabir.training.AdamW(1e-3); got {chosen!r}"
        )
    choice = _choice(trainable, frozen, tie, learn_scales=learn_scales)
    plan = Plan(
        objectives_of(Asked(loss, target, output, loss_weights, metrics)), chosen, choice, precision,
        tuple(groups), clip, clip_value, average, accumulate, split, rules, _names(recompute), lora,
    )  # fmt: skip
    return run_with_limits(limits, _prepare, model, plan, registry)


def training_plan(
    model: Model,
    *,
    output: str | None = None,
    trainable: str | Sequence[str] | None = None,
    frozen: str | Sequence[str] = (),
    tie: Iterable[tuple[str, str]] = (),
    learn_scales: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> TrainingPlan:
    """Return what `prepare` trains of a model, freezes and leaves, each with the reason; nothing is changed.

    `output` is what the loss compares, by default the first output, or a loss that the model computes. The
    other arguments are those of `prepare`, and so are the errors.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}, float half = {0.5}> {
    ...   h = MatMul (x, w)  y = Mul (h, half) }''')
    >>> for decision in training_plan(model).decisions:
    ...     print(decision.action, decision.name, '-', decision.reason)
    trained w - weight of MatMul
    left half - a number for Mul
    """
    choice = _choice(trainable, frozen, tie, learn_scales=learn_scales)
    return run_with_limits(limits, _planned, model, output, choice, registry)


def _planned(model: Model, output: str | None, choice: Choice, registry: Registry) -> TrainingPlan:
    return _understood(_ready(model, registry), [output], choice, registry)


def _choice(
    trainable: str | Sequence[str] | None,
    frozen: str | Sequence[str],
    tie: Iterable[tuple[str, str]],
    *,
    learn_scales: bool,
) -> Choice:
    patterns = None if trainable is None else _names(trainable)
    return Choice(patterns, _names(frozen), tuple((name, other) for name, other in tie), learn_scales)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return several names or patterns, of which there may be one."""
    return (given,) if isinstance(given, str) else tuple(given)


def _ready(model: Model, registry: Registry, precision: Precision | None = None) -> Model:
    """Return a copy of a model for an operator set and a version of the format that can be trained."""
    if model.training:
        raise UnsupportedError(f"{model!r} has training information; sabir.strip_training removes it")
    oldest = max(_OLDEST_OPSET, 0 if precision is None else precision.opset)
    model = convert(model, oldest, registry=registry) if _is_older(model, oldest) else model.clone()
    inner = [n for f in model.functions for n in f.graph.all_nodes()]
    if precision is not None or any(changes_in_training(n) for n in inner):
        inline_in_place(model, registry=registry)
    change_ir_version(model, max(model.ir_version, _OLDEST_IR), registry)
    model.opsets[PREVIEW] = 1
    return model


def _understood(
    model: Model,
    compared: Sequence[str | None],
    choice: Choice,
    registry: Registry,
    lora: int | LoRA | Adapters | None = None,
) -> TrainingPlan:
    """Bring a model into inference mode, and make one initializer of each parameter that is trained.

    The gradients come from the values that are `compared`; None is the first output. With `lora` adapters are
    added, and they are trained, and what patterns of the choice name.
    """
    lift_from_bodies(model, choice.trainable or ())
    sharing = resolve_sharing(model, choice)
    to_inference(model, registry)
    if lora is not None:
        own = (glob.escape(name) for name in add_adapters(model, lora, registry))
        choice = choice._replace(trainable=(*own, *(choice.trainable or ())))
    rewriter = Rewriter(model, registry=registry)
    return decide(rewriter, [output_of(model.graph, name) for name in compared], choice, sharing)


def _prepare(model: Model, plan: Plan, registry: Registry) -> Model:
    precision = precision_of(model, plan.precision)
    model = _ready(model, registry, precision)
    understood = _understood(
        model, compared_by(model.graph, plan.objectives), plan.choice, registry, plan.lora
    )
    for text in understood.warnings:
        warn(text)
    if precision is not None:
        keep_masters(model.graph, understood.trained)
    evaluation = _evaluation(model, plan, registry)
    rewriter = Rewriter(model, registry=registry)
    b = rewriter.builder(model.graph)
    learned = LearnedScales(rewriter, plan.choice.frozen) if plan.choice.learn_scales else None
    mode = TrainingMode(model.graph, _fixed_statistics(plan), precision, learned)
    mode.build(b, rewriter)
    loss, results = build_objectives(b, model, plan.objectives, mode)
    parameters = _parameters(model.graph, understood, mode)
    check_groups(plan.groups, parameters)
    builders = Builders(b, rewriter, learned)
    infos = algorithms(builders, plan, loss, parameters, results, mode, precision)
    if plan.initialize:
        start = rewriter.builder(model.graph)
        pairs = initial_values(start, parameters, plan.initialize)
        start.graph.name, start.graph.outputs = "initialization", [new for _, new in pairs]
        infos[0].initialization, infos[0].initialization_binding = start.graph, pairs
    for info in infos:
        if info.algorithm is not None:
            remove_unread(info.algorithm)
        _declare(info.algorithm, rewriter)
        _declare(info.initialization, rewriter)
    model.training = [*infos, evaluation]
    note_ignored_labels(model, plan.objectives)
    model.ir_version = max(model.ir_version, least_ir(model))
    return model


def _fixed_statistics(plan: Plan) -> tuple[str, ...]:
    """Return patterns of the running statistics that stay: with adapters, all do."""
    return plan.choice.frozen if plan.lora is None else ("*",)


def _parameters(graph: Graph, understood: TrainingPlan, mode: TrainingMode) -> list[Value]:
    """Return the initializers to train; raises UnsupportedError where there are none."""
    trained = set(understood.trained)
    found = [v for v in graph.initializers if v.name in trained and v not in mode.statistics]
    if found:
        return found
    reasons = [f"{quote(d.name)} is {d.action}: {d.reason}" for d in understood.decisions]
    listed = "; ".join(reasons[:_MOST_REASONS]) or "the model has no floating-point initializer"
    raise UnsupportedError(f"there is nothing to train: {listed}")


def _is_older(model: Model, oldest: int) -> bool:
    opset = model.opset("")
    return opset is not None and opset < oldest


def _evaluation(model: Model, plan: Plan, registry: Registry) -> TrainingInfo:
    """Return training information without bindings, which computes loss and metrics of the main graph."""
    rewriter = Rewriter(model, registry=registry)
    b = rewriter.builder(model.graph)
    loss, results = build_objectives(b, model, plan.objectives, None)
    b.graph.name = "evaluation"
    b.graph.outputs = [v for v in (loss, *results) if v.home is b.graph]
    _declare(b.graph, rewriter)
    return TrainingInfo(algorithm=b.graph)


def _declare(graph: Graph | None, rewriter: Rewriter) -> None:
    """Give the outputs of a graph the types that are inferred, and no value contents."""
    if graph is None:
        return
    for value in graph.outputs:
        if value is not None:
            kind = rewriter.inference.type_of(value)
            value.type = kind and without_contents(kind)
    for value in graph.defined():
        if value.type is not None:
            value.type = without_contents(value.type)


__all__ = ["Plan", "prepare", "training_plan"]
