"""`sabir train`: train a model with the data of a .npz file."""

from __future__ import annotations

from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from sabir.base import FeedError, UnsupportedError, listed_names, quote, suggest
from sabir.cli._files import read_archive

# ruff: ignore[typing-only-first-party-import]  typer reads these at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._loss_options import loss_with_options
from sabir.cli._models import ModelPath, OutputPath, load_any, report_saved, report_screen, save_any
from sabir.cli._operators import NewerOpsetsOption, OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import training_bar
from sabir.cli._screen import Screen, plain
from sabir.cli._training_curves import reporting, show_loss
from sabir.cli._training_plan import PlanOptions, print_training_plan, ties_of
from sabir.cli._training_plot import plotting, write_plot
from sabir.cli._usage import refuse
from sabir.drawing import seconds_text
from sabir.serial import format_by_name
from sabir.training import (
    LAMB,
    LOSSES,
    METRICS,
    SGD,
    AdaBelief,
    Adafactor,
    Adagrad,
    Adam,
    AdamW,
    Constant,
    Cosine,
    Linear,
    Lion,
    NAdam,
    OneCycle,
    Polynomial,
    RAdam,
    RMSprop,
    TrainingLog,
    TrainingSession,
    WarmUp,
    prepare,
    trained_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Array, Model
    from sabir.schema import Registry
    from sabir.training import Epoch, Optimizer, Schedule

EXAMPLES = (
    "sabir train model.onnx --data digits.npz -o trained.onnx --metrics accuracy --epochs 20",
    "sabir train model.onnx --data a.npz --validate b.npz --loss mse --optimizer sgd -o trained.onnx",
    "sabir train model.onnx --data train.npz --checkpoint half.onnx --log course.csv -o trained.onnx",
    "sabir train model.onnx --data train.npz --epochs 20 --report course.html -o trained.onnx",
    "sabir train half.onnx --data train.npz --epochs 40 -o trained.onnx",
    "sabir train model.onnx --plan",
)
_OPTIMIZERS: dict[str, Any] = {
    "adamw": AdamW, "adam": Adam, "adagrad": Adagrad, "sgd": SGD, "rmsprop": RMSprop, "lion": Lion,
    "lamb": LAMB, "adabelief": AdaBelief, "radam": RAdam, "nadam": NAdam, "adafactor": Adafactor,
}  # fmt: skip
_RATES = {"lion": 1e-4, "adagrad": 1e-2, "sgd": 1e-2, "rmsprop": 1e-2, "adafactor": 1e-2}
_RATE = 1e-3  # of the other optimizers
_DECAYS = {"linear": Linear, "cosine": Cosine, "polynomial": Polynomial}
_WITH_MOMENTUM = ("sgd", "rmsprop")
_TARGET = "label"


class _Preparing(NamedTuple):
    """The options about the training model that is made of an inference model."""

    loss: str
    loss_options: list[str]
    optimizer: Optimizer
    metrics: list[str]
    trainable: list[str] | None
    frozen: list[str]
    tie: list[tuple[str, str]]
    precision: Literal["bfloat16", "float16"] | None
    learn_scales: bool
    clip: float | None
    initialize: str | None


def train(  # ruff: ignore[too-many-arguments]  the options of the command
    model: ModelPath,
    *,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="The arrays of inputs and target, a .npz file."),
    ] = None,
    output: OutputPath = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Only print what would be trained, frozen and left, and why."),
    ] = False,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss",
            metavar="NAME",
            help=f"{', '.join(LOSSES)}, or a scalar of the model; cross_entropy by default.",
        ),
    ] = None,
    loss_options: Annotated[
        list[str] | None,
        typer.Option(
            "--loss-option",
            metavar="NAME=NUMBER",
            help="An option of the loss, such as axis=-1 or weights=1,2,0.5. May be repeated.",
        ),
    ] = None,
    optimizer: Annotated[
        Literal[
            "adamw",
            "adam",
            "adagrad",
            "sgd",
            "rmsprop",
            "lion",
            "lamb",
            "adabelief",
            "radam",
            "nadam",
            "adafactor",
        ]
        | None,
        typer.Option("--optimizer", help="The optimizer, adamw by default."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="The learning rate; by default one that suits the optimizer."),
    ] = None,
    momentum: Annotated[
        float | None, typer.Option("--momentum", help="The momentum of sgd or rmsprop.")
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option("--weight-decay", help="The decay of the weights; 0.01 for adamw, else 0.")
    ] = None,
    schedule: Annotated[
        Literal["constant", "linear", "cosine", "polynomial", "one-cycle"] | None,
        typer.Option("--schedule", help="How the rate changes over all epochs; constant by default."),
    ] = None,
    warmup: Annotated[
        int | None, typer.Option("--warmup", help="The steps in which the rate rises first.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="How often all data is used.")] = 1,
    batch: Annotated[int, typer.Option("--batch", min=1, help="The samples of a step.")] = 32,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metrics", metavar="NAME", help=f"{', '.join(METRICS)}. May be repeated."),
    ] = None,
    validate: Annotated[
        Path | None, typer.Option("--validate", metavar="FILE", help="Data to evaluate after each epoch.")
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience",
            min=1,
            help="Stop after so many epochs without a lower loss; the best epoch is kept.",
        ),
    ] = None,
    trainable: Annotated[
        list[str] | None,
        typer.Option("--trainable", metavar="PATTERN", help="Train only these initializers, such as 'fc*'."),
    ] = None,
    frozen: Annotated[
        list[str] | None,
        typer.Option("--frozen", metavar="PATTERN", help="Leave these initializers as they are."),
    ] = None,
    tie: Annotated[
        list[str] | None,
        typer.Option("--tie", metavar="NAME=OTHER", help="Two initializers that are one parameter."),
    ] = None,
    precision: Annotated[
        Literal["bfloat16", "float16"] | None,
        typer.Option("--precision", help="Compute products in 16 bits; weights stay in single precision."),
    ] = None,
    learn_scales: Annotated[
        bool, typer.Option("--learn-scales", help="Train the scales of a quantization too.")
    ] = False,
    clip: Annotated[float | None, typer.Option("--clip", help="The largest norm of the gradients.")] = None,
    initialize: Annotated[
        Literal["glorot", "he", "normal"] | None,
        typer.Option("--initialize", help="Begin with random weights."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Decides the order of the data and random numbers.")
    ] = None,
    engine: Annotated[
        Literal["auto", "compiled", "reference"], typer.Option("--engine", help="What runs the steps.")
    ] = "auto",
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="The threads of a step.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Save the training here after each epoch."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a value that contradicts its declared type.")
    ] = False,
    newer_opsets: NewerOpsetsOption = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    keep_training: Annotated[
        bool, typer.Option("--keep-training", help="Save the training model, not the one for inference.")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Write a row as each epoch ends: lines of JSON for .jsonl, else CSV.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the loss as a PNG file.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a page with curves, epochs and settings (HTML)."
        ),
    ] = None,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Train a model with data.

    An inference model gets a loss, an optimizer and a target, the array of --data that is no input. A model
    with training information, such as a --checkpoint, is trained as it says, and goes on where it stopped.

    A terminal shows the loss as a curve at the end.
    """
    if plot is not None:
        plotting()
    if checkpoint is not None:
        format_by_name(checkpoint)
    registry = registry_of(operators, documents)
    if plan:
        asked_plan = PlanOptions(loss, trainable or [], frozen or [], tie or [], learn_scales)
        print_training_plan(load_any(model), asked_plan, registry)
        return
    if data is None or output is None:
        refuse(f"{'--data' if data is None else '--output'} is missing; only --plan needs none")
    loaded, arrays, screen = load_any(model), read_archive(data), report_screen(output)
    given = {
        "--loss": loss, "--loss-option": loss_options, "--optimizer": optimizer, "--rate": rate,
        "--momentum": momentum, "--weight-decay": weight_decay, "--schedule": schedule,
        "--warmup": warmup, "--metrics": metrics, "--trainable": trainable, "--frozen": frozen,
        "--clip": clip, "--initialize": initialize, "--tie": tie, "--precision": precision,
        "--learn-scales": learn_scales or None,
    }  # fmt: skip
    if loaded.training:
        _refuse_preparing(given)
    else:
        name = optimizer or "adamw"
        samples = max((len(a) for a in arrays.values() if a.ndim), default=0)
        steps = epochs * -(-samples // batch)
        rates = _schedule(
            schedule or "constant", _RATES.get(name, _RATE) if rate is None else rate, steps, warmup or 0
        )
        asked = _Preparing(
            loss or "cross_entropy",
            loss_options or [],
            _optimizer(name, rates, momentum, weight_decay),
            metrics or [],
            trainable or None,
            frozen or [],
            ties_of(tie or []),
            precision,
            learn_scales,
            clip,
            initialize,
        )
        loaded = _prepared(loaded, arrays, asked, registry)
    session = TrainingSession(
        loaded, engine=engine, threads=threads, strict=strict, newer_opsets=newer_opsets, seed=seed,
        registry=registry,
    )  # fmt: skip
    if initialize is not None and session.steps == 0:
        session.initialize()
    _describe(screen, session)
    found: list[Epoch] = []
    callbacks: list[Callable[[Epoch], None]] = [found.append, lambda epoch: _report(screen, epoch)]
    if log is not None:
        callbacks.append(TrainingLog(log, session, validates=validate is not None))
    settings = {
        "model": model, "data": data, "validation": validate, "epochs": epochs, "batch": batch,
        "seed": session.seed, "engine": engine, "patience": patience, **_without_dashes(given),
    }  # fmt: skip
    with reporting(report, f"Training of {model.name}", settings, found), training_bar() as progress:
        session.fit(
            arrays,
            epochs=epochs,
            batch=batch,
            validate=None if validate is None else read_archive(validate),
            patience=patience,
            callbacks=callbacks,
            progress=progress,
            checkpoint=checkpoint,
        )
    _report_end(screen, session, found, epochs)
    show_loss(screen, found)
    if plot is not None:
        write_plot(plot, found)
    save_any(session.checkpoint() if keep_training else session.export(), output)
    report_saved(screen, output)


def _report_end(screen: Screen, session: TrainingSession, found: list[Epoch], epochs: int) -> None:
    """Say where no epoch was left to make, and which one was kept."""
    made = session.position[0]
    if not found:
        screen.line(f"nothing to train: the model has made {made} epochs, and --epochs is {epochs}")
    elif made < found[-1].number:
        screen.line(f"kept the best epoch, {made}")


def _without_dashes(given: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("--"): value for name, value in given.items()}


def _refuse_preparing(given: dict[str, Any]) -> None:
    """Raise UnsupportedError for an option that a model with training information has decided already."""
    option = next((name for name, value in given.items() if value not in (None, [])), None)
    if option is not None:
        raise UnsupportedError(
            f"the model has training information, which decides what {option} is for; leave the option out"
        )


def _prepared(model: Model, arrays: dict[str, Array], asked: _Preparing, registry: Registry) -> Model:
    """Return a training model, whose target is the array that is no input; raises FeedError."""
    inputs = {v.name for v in model.graph.inputs}
    others = [name for name in arrays if name not in inputs]
    missing = [
        v.name for v in model.graph.inputs if v.name not in arrays and v not in model.graph.initializers
    ]
    if missing:
        near = suggest(missing[0], others) or f"; its arrays are {listed_names(arrays)}"
        raise FeedError(f"the data has no array {quote(missing[0])}, which is an input of the model{near}")
    if asked.loss in LOSSES and len(others) != 1:
        listed = f"{listed_names(others)} are no inputs" if others else "all are inputs"
        raise FeedError(
            f"one array of the data is the target, and the others are inputs, "
            f"{listed_names(sorted(inputs))}; {listed}"
        )
    return prepare(
        model,
        loss_with_options(asked.loss, asked.loss_options) if asked.loss_options else asked.loss,
        target=others[0] if others else _TARGET,
        optimizer=asked.optimizer,
        trainable=asked.trainable,
        frozen=asked.frozen,
        tie=asked.tie,
        precision=asked.precision,
        learn_scales=asked.learn_scales,
        clip=asked.clip,
        metrics=asked.metrics,
        initialize=asked.initialize,
        registry=registry,
    )


def _schedule(name: str, rate: float, steps: int, warmup: int) -> Schedule:
    if warmup and name in {"constant", "one-cycle"}:
        return WarmUp(_schedule(name, rate, steps - warmup, 0), warmup)
    if name == "constant":
        return Constant(rate)
    if name == "one-cycle":
        return OneCycle(rate, steps)
    return _DECAYS[name](rate, max(1, steps), warmup)


def _optimizer(
    name: str, schedule: Schedule, momentum: float | None, weight_decay: float | None
) -> Optimizer:
    if momentum and name not in _WITH_MOMENTUM:
        raise UnsupportedError(f"--momentum is for --optimizer {' or '.join(_WITH_MOMENTUM)}")
    options: dict[str, Any] = {} if weight_decay is None else {"weight_decay": weight_decay}
    if momentum:
        options["momentum"] = momentum
    return _OPTIMIZERS[name](schedule, **options)


def _describe(screen: Screen, session: TrainingSession) -> None:
    """Say what is trained."""
    weights = {name: session.state[name] for name in trained_weights(session.model)}
    rows = [(plain(n), f"{a.dtype}{list(a.shape)}") for n, a in weights.items()]
    numbers = sum(a.size for a in weights.values())
    screen.line(f"training {numbers:,} numbers in {len(rows)} initializers")
    screen.table(rows, "cyan")


def _report(screen: Screen, epoch: Epoch) -> None:
    shown = [f"{name} {value:.4g}" for name, value in epoch.results.items()]
    shown += [f"validation {name} {value:.4g}" for name, value in epoch.validation.items()]
    screen.line(f"epoch {epoch.number}: {', '.join(map(plain, shown))} ({seconds_text(epoch.seconds)})")
