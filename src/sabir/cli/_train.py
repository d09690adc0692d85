"""`sabir train`: train a model with the data of a file or a folder of pictures."""

from __future__ import annotations

from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from sabir.base import UnsupportedError

# ruff: ignore[typing-only-first-party-import]  typer reads these at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._loss_options import loss_with_options
from sabir.cli._models import ModelPath, OutputPath, load_any, report_saved, report_screen, save_any
from sabir.cli._operators import NewerOpsetsOption, OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import training_bar
from sabir.cli._screen import Screen, plain
from sabir.cli._training_curves import reporting, show_loss
from sabir.cli._training_data import (
    CropOption,
    FlipOption,
    ImageSizeOption,
    MeanOption,
    PictureOptions,
    StdOption,
    share_of,
    steps_of,
    target_of,
    training_data,
    validation_data,
)
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
    EarlyStopping,
    Linear,
    Lion,
    NAdam,
    OneCycle,
    Polynomial,
    RAdam,
    ReduceOnPlateau,
    RMSprop,
    TensorBoardLog,
    TrainingLog,
    TrainingSession,
    WarmUp,
    adapters,
    averaged,
    prepare,
    trained_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.cli._training_data import Samples
    from sabir.ir import Model
    from sabir.schema import Registry
    from sabir.training import Epoch, Optimizer, Schedule

EXAMPLES = (
    "sabir train resnet.onnx --data flowers/ --validate 0.1 --mean 0.5 --std 0.2 --flip -o trained.onnx",
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
AVERAGE = "average_"  # before the name of a weight: its moving average in the state
_WITH_MOMENTUM = ("sgd", "rmsprop")


class _Rates(NamedTuple):
    """The options about the learning rate; a rate of None is one that suits the optimizer."""

    schedule: str
    rate: float | None
    steps: int
    warmup: int


class _Preparing(NamedTuple):
    """The options about the training model that is made of an inference model."""

    loss: str
    loss_options: list[str]
    target: str | None
    optimizer: Optimizer
    metrics: list[str]
    trainable: list[str] | None
    frozen: list[str]
    others: dict[str, Any]  # other arguments of prepare
    initialize: str | None


def train(  # ruff: ignore[too-many-arguments]  the options of the command
    model: ModelPath,
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Inputs and target: a .npz, .csv, .parquet, .arrow or .feather file, or a folder with a "
            "folder of pictures for each class.",
        ),
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
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, help="The samples of a step; by default those of the model, else 32."),
    ] = None,
    drop_last: Annotated[
        bool, typer.Option("--drop-last", help="Leave out an incomplete batch at the end of an epoch.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="NAME", help="The array or column that is the target."),
    ] = None,
    mean: MeanOption = None,
    std: StdOption = None,
    image_size: ImageSizeOption = None,
    flip: FlipOption = False,
    crop: CropOption = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metrics", metavar="NAME", help=f"{', '.join(METRICS)}. May be repeated."),
    ] = None,
    validate: Annotated[
        str | None,
        typer.Option(
            "--validate",
            metavar="FILE",
            help="Data to evaluate after each epoch, or the share of --data to set apart, such as 0.1.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience",
            min=1,
            help="Stop after so many epochs without a better result; the best epoch is kept.",
        ),
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            "--monitor", metavar="NAME", help="The result that --patience watches; loss by default."
        ),
    ] = None,
    monitor_mode: Annotated[
        Literal["min", "max"] | None,
        typer.Option(
            "--monitor-mode",
            help="Whether a lower or a higher result is better; by default what its name says.",
        ),
    ] = None,
    min_delta: Annotated[
        float | None, typer.Option("--min-delta", help="How much better a result must be to count.")
    ] = None,
    plateau: Annotated[
        int | None,
        typer.Option(
            "--plateau",
            min=0,
            help="Divide the rate by 10 after more than so many epochs without a lower loss.",
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
    clip_value: Annotated[
        float | None, typer.Option("--clip-value", help="The largest element of a gradient.")
    ] = None,
    average: Annotated[
        float | None,
        typer.Option(
            "--average",
            help="Write moving averages of the weights, of which a step keeps this share, as 0.999.",
        ),
    ] = None,
    lora: Annotated[
        int | None,
        typer.Option("--lora", min=1, metavar="RANK", help="Train low-rank adapters of the weights alone."),
    ] = None,
    adapters_file: Annotated[
        Path | None,
        typer.Option("--adapters", metavar="FILE", help="Write the adapters alone: .npz or .safetensors."),
    ] = None,
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
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="FILE", help="As --checkpoint, and go on from the file if it is there."
        ),
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
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            "--tensorboard", metavar="FOLDER", help="Write the results where TensorBoard reads them."
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

    An inference model gets a loss, an optimizer and a target: --target, or the array of --data that is no
    input; of pictures the target is the number of the folder. A model with training information, such as a
    --checkpoint, is trained as it says, and goes on where it stopped.

    A terminal shows the loss as a curve at the end.
    """
    if plot is not None:
        plotting()
    checkpoint = _checkpoint(checkpoint, resume)
    registry = registry_of(operators, documents)
    if plan:
        options = PlanOptions(loss, trainable or [], frozen or [], tie or [], learn_scales)
        print_training_plan(load_any(model), options, registry)
        return
    if data is None or output is None:
        refuse(f"{'--data' if data is None else '--output'} is missing; only --plan needs none")
    pictures = PictureOptions(mean, std, image_size, flip, crop)
    loaded, samples, screen = load_any(model), training_data(data, pictures), report_screen(output)
    given = {
        "--loss": loss, "--loss-option": loss_options, "--optimizer": optimizer, "--rate": rate,
        "--momentum": momentum, "--weight-decay": weight_decay, "--schedule": schedule,
        "--warmup": warmup, "--metrics": metrics, "--trainable": trainable, "--frozen": frozen,
        "--clip": clip, "--clip-value": clip_value, "--average": average, "--lora": lora,
        "--initialize": initialize, "--target": target, "--tie": tie, "--precision": precision,
        "--learn-scales": learn_scales or None,
    }  # fmt: skip
    if loaded.training:
        _refuse_preparing(given)
    else:
        rates = _Rates(
            schedule or "constant",
            rate,
            epochs * steps_of(samples, loaded, batch, share_of(validate)),
            warmup or 0,
        )
        others = {
            "clip": clip, "clip_value": clip_value, "average": average, "lora": lora,
            "tie": ties_of(tie or []), "precision": precision, "learn_scales": learn_scales,
        }  # fmt: skip
        asked = _Preparing(
            loss or "cross_entropy",
            loss_options or [],
            target,
            _optimizer(optimizer or "adamw", rates, momentum, weight_decay),
            metrics or [],
            trainable or None,
            frozen or [],
            others,
            initialize,
        )
        loaded = _prepared(loaded, samples, asked, registry)
    session = TrainingSession(
        loaded, engine=engine, threads=threads, strict=strict, newer_opsets=newer_opsets, seed=seed,
        registry=registry,
    )  # fmt: skip
    _begin(session, initialize, resume)
    _describe(screen, session)
    found: list[Epoch] = []
    after = _callbacks(session, plateau, log, tensorboard, validates=validate is not None)
    settings = {
        "model": model, "data": data, "validation": validate, "epochs": epochs, "batch": batch,
        "seed": session.seed, "engine": engine, "patience": patience, "monitor": monitor,
        "mode": monitor_mode,
        **_without_dashes(given),
    }  # fmt: skip
    with reporting(report, f"Training of {model.name}", settings, found), training_bar() as progress:
        session.fit(
            samples,
            epochs=epochs,
            batch=batch,
            drop_last=drop_last or None,
            validate=validation_data(validate, pictures),
            early_stopping=_stopping(patience, monitor, monitor_mode, min_delta),
            callbacks=[found.append, lambda epoch: _report(screen, epoch), *after],
            progress=progress,
            checkpoint=checkpoint,
        )
    _report_end(screen, session, found, epochs)
    show_loss(screen, found)
    if plot is not None:
        write_plot(plot, found)
    if adapters_file is not None:
        adapters(session).save(adapters_file)
        report_saved(screen, adapters_file)
    save_any(session.checkpoint() if keep_training else _trained(session), output)
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


def _begin(session: TrainingSession, initialize: str | None, resume: Path | None) -> None:
    """Let a session begin with random weights, if it is new, or go on from a file, if it is there."""
    if initialize is not None and session.steps == 0:
        session.initialize()
    if resume is not None and resume.exists():
        session.restore(resume)


def _checkpoint(checkpoint: Path | None, resume: Path | None) -> Path | None:
    """Return the file to save the training in; raises UnsupportedError for two, or one of no format."""
    if checkpoint is not None and resume is not None:
        raise UnsupportedError("--resume writes the checkpoint too; leave --checkpoint out")
    found = resume or checkpoint
    if found is not None:
        format_by_name(found)
    return found


def _callbacks(
    session: TrainingSession,
    plateau: int | None,
    log: Path | None,
    tensorboard: Path | None,
    *,
    validates: bool,
) -> list[Callable[[Epoch], Any]]:
    """Return what the options add after each epoch."""
    found: list[Callable[[Epoch], Any]] = []
    if plateau is not None:
        found.append(ReduceOnPlateau(session, patience=plateau))
    if log is not None:
        found.append(TrainingLog(log, session, validates=validates))
    if tensorboard is not None:
        found.append(TensorBoardLog(tensorboard))
    return found


def _trained(session: TrainingSession) -> Model:
    """Return the model for inference, with the moving averages of the weights where the training has them."""
    has_averages = any(name.startswith(AVERAGE) for name in session.state)
    return averaged(session.checkpoint()) if has_averages else session.export()


def _stopping(
    patience: int | None, monitor: str | None, mode: Literal["min", "max"] | None, min_delta: float | None
) -> EarlyStopping | None:
    """Return the rule of early stopping; raises UnsupportedError for options of it without a patience."""
    if patience is None:
        given = {"--monitor": monitor, "--monitor-mode": mode, "--min-delta": min_delta}
        option = next((option for option, value in given.items() if value is not None), None)
        if option is not None:
            raise UnsupportedError(
                f"{option} is for --patience, the number of epochs to wait for a better one"
            )
        return None
    return EarlyStopping(patience, monitor, mode or "auto", min_delta=min_delta or 0.0)


def _refuse_preparing(given: dict[str, Any]) -> None:
    """Raise UnsupportedError for an option that a model with training information has decided already."""
    option = next((name for name, value in given.items() if value not in (None, [])), None)
    if option is not None:
        raise UnsupportedError(
            f"the model has training information, which decides what {option} is for; leave the option out"
        )


def _prepared(model: Model, samples: Samples, asked: _Preparing, registry: Registry) -> Model:
    """Return a training model for the data; raises FeedError where the data has no target for it."""
    target = asked.target or target_of(samples, model, needed=asked.loss in LOSSES)
    return prepare(
        model,
        loss_with_options(asked.loss, asked.loss_options) if asked.loss_options else asked.loss,
        target=target,
        optimizer=asked.optimizer,
        trainable=asked.trainable,
        frozen=asked.frozen,
        metrics=asked.metrics,
        initialize=asked.initialize,
        registry=registry,
        **asked.others,
    )


def _schedule(name: str, rate: float, steps: int, warmup: int) -> Schedule:
    if warmup and name in {"constant", "one-cycle"}:
        return WarmUp(_schedule(name, rate, steps - warmup, 0), warmup)
    if name == "constant":
        return Constant(rate)
    if name == "one-cycle":
        return OneCycle(rate, steps)
    return _DECAYS[name](rate, max(1, steps), warmup)


def _optimizer(name: str, rates: _Rates, momentum: float | None, weight_decay: float | None) -> Optimizer:
    if momentum and name not in _WITH_MOMENTUM:
        raise UnsupportedError(f"--momentum is for --optimizer {' or '.join(_WITH_MOMENTUM)}")
    options: dict[str, Any] = {} if weight_decay is None else {"weight_decay": weight_decay}
    if momentum:
        options["momentum"] = momentum
    rate = _RATES.get(name, _RATE) if rates.rate is None else rates.rate
    return _OPTIMIZERS[name](_schedule(rates.schedule, rate, rates.steps, rates.warmup), **options)


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
