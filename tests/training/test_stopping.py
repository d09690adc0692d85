"""Early stopping by any result, going on from a checkpoint by one option, and the log for TensorBoard."""

import sys
import types

import numpy as np
import pytest

import sabir
from sabir import FeedError, UnsupportedError
from sabir.training import SGD, Adam, EarlyStopping, TensorBoardLog, prepare
from sabir.training._stopping import Stopper

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1, 0, 2, 0, 1, 0, 1, 1, 0, 0, 2, 1}> { y = MatMul (x, w) }"
)
RNG = np.random.default_rng(5)
DATA = {"x": RNG.standard_normal((40, 4)).astype(np.float32), "label": RNG.integers(0, 3, 40)}
HELD = {"x": DATA["x"], "label": RNG.integers(0, 3, 40)}


def session(text=TEXT, **options):
    options.setdefault("optimizer", Adam(0.3))
    return sabir.TrainingSession(
        prepare(sabir.parse(text), metrics=["accuracy"], **options), engine="reference"
    )


@pytest.mark.parametrize(
    ("rule", "values", "best", "is_over"),
    [
        (EarlyStopping(2), [3, 2, 2.5, 2], 2, True),
        (EarlyStopping(2, min_delta=0.5), [3, 2.6, 2.55], 1, True),
        (EarlyStopping(2, min_delta=0.5), [3, 2.6, 2.4, 2], 3, False),
        (EarlyStopping(2, "accuracy"), [0.5, 0.6, 0.6, 0.5], 2, True),
        (EarlyStopping(2, "loss", "max"), [1, 2, 2, 1], 2, True),
        (EarlyStopping(None), [3, 2, 4, 4, 4], 2, False),
        (EarlyStopping(2), [float("nan"), 1, float("nan"), float("nan")], 2, True),
    ],
    ids=str,
)
def test_which_epoch_is_the_best(rule, values, best, is_over):
    stopper, found = Stopper(rule), 0
    for number, value in enumerate(values, 1):
        assert not stopper.is_over
        results = {"loss": value, "accuracy": value}
        found = number if stopper.is_best(rule.value({}, results)) else found
    assert found == best
    assert stopper.is_over == is_over


def test_a_result_of_the_training_or_of_the_validation_is_monitored():
    results, validation = {"loss": 1.0, "accuracy": 0.25, "rate": 0.5}, {"loss": 2.0, "accuracy": 0.75}
    for rule, value in (
        (EarlyStopping(), 2.0), (EarlyStopping(monitor="rate"), 0.5), (EarlyStopping(monitor="accuracy"), -0.75),
        (EarlyStopping(monitor="validation_accuracy"), -0.75), (EarlyStopping(monitor="accuracy", mode="min"), 0.75),
    ):  # fmt: skip
        assert rule.value(results, validation) == value
    assert EarlyStopping(monitor="accuracy").value(results, {}) == -results["accuracy"]


def test_which_results_rise():
    rising = [
        "accuracy",
        "validation_accuracy",
        "kind_accuracy",
        "top_5",
        "kind_f1_macro",
        "roc_auc_ovr",
        "r2",
        "balanced_accuracy",
    ]
    for name in (*rising, "loss", "kind_loss", "mse", "perplexity", "accuracy_loss"):
        assert EarlyStopping(monitor=name).rises == (name in rising)


def test_fit_ends_with_the_epoch_of_the_best_accuracy(tmp_path):
    one, path = session(), tmp_path / "best.onnx"
    rule = EarlyStopping(4, monitor="accuracy")
    found = one.fit(DATA, epochs=30, batch=8, validate=HELD, early_stopping=rule, checkpoint=path)
    scores = [epoch.validation["accuracy"] for epoch in found]
    best = int(np.argmax(scores)) + 1
    assert len(found) == best + 4
    assert one.position == (best, 0)
    other = session()
    other.fit(DATA, epochs=best, batch=8)
    for trained in (one, sabir.TrainingSession(path, engine="reference")):
        np.testing.assert_array_equal(trained.state["w"], other.state["w"])
    last = session()
    last.fit(
        DATA,
        epochs=30,
        batch=8,
        validate=HELD,
        early_stopping=EarlyStopping(4, "accuracy", restore_best=False),
    )
    assert last.position == (best + 4, 0)
    kept = session()
    kept.fit(DATA, epochs=best + 2, batch=8, validate=HELD, early_stopping=EarlyStopping(None, "accuracy"))
    assert kept.position == (best, 0)


def test_rules_that_are_refused():
    cases = [
        ({"patience": 0}, "patience is 1 or more"), ({"min_delta": -1.0}, "min_delta is a finite number"),
        ({"min_delta": float("nan")}, "min_delta is a finite number"), ({"mode": "up"}, "auto, min or max; got 'up'"),
    ]  # fmt: skip
    for options, message in cases:
        with pytest.raises(UnsupportedError, match=message):
            EarlyStopping(**options)
    for monitor, message in (
        ("acuracy", "no result 'acuracy' to monitor; is it 'accuracy'"),
        ("validation_loss", "no result 'validation_loss' to monitor"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            session().fit(DATA, early_stopping=EarlyStopping(monitor=monitor))
    with pytest.raises(UnsupportedError, match="early_stopping has its own patience; pass one of them"):
        session().fit(DATA, patience=3, early_stopping=EarlyStopping())


def test_one_option_goes_on_where_a_training_stopped(tmp_path):
    path = tmp_path / "run.onnx"
    whole = session(optimizer=SGD(0.1))
    whole.fit(DATA, epochs=3, batch=8)
    for stop in (3, 12):
        path.unlink(missing_ok=True)
        one = session(optimizer=SGD(0.1))

        def interrupt(_, one=one, stop=stop):
            if one.steps == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            one.fit(DATA, epochs=3, batch=8, resume=path, progress=interrupt)
        other = session(optimizer=SGD(0.1))
        other.seed = 7
        found = other.fit(DATA, epochs=3, batch=8, resume=path)
        assert len(found) == 3 - stop // 5
        assert other.seed == 0
        np.testing.assert_array_equal(other.state["w"], whole.state["w"])
        assert other.fit(DATA, epochs=3, resume=path) == []
    one.restore(other.checkpoint())
    assert one.position == (3, 0)


def test_checkpoints_that_are_refused(tmp_path):
    one, path = session(), tmp_path / "other.onnx"
    session(optimizer=SGD(0.1)).save(path)
    with pytest.raises(
        FeedError,
        match=r"other.onnx: this is a checkpoint of another model: the state variable .* is absent there",
    ):
        one.fit(DATA, resume=path)
    wide = session(TEXT.replace("float[4,3] w = {", "float[4,4] w = {0, 0, 0, 0, ").replace("[N,3]", "[N,4]"))
    with pytest.raises(
        FeedError, match=r"the checkpoint: .* is float32\[4, 4\] there, and float32\[4, 3\] in the session"
    ):
        one.restore(wide.checkpoint())
    assert one.steps == 0
    with pytest.raises(UnsupportedError, match="resume names the checkpoint"):
        one.fit(DATA, resume=path, checkpoint=tmp_path / "more.onnx")


@pytest.mark.parametrize("module", ["tensorboardX", "tensorboard.summary"])
def test_the_log_for_tensorboard(monkeypatch, module, tmp_path):
    written = []

    class Writer:
        def __init__(self, folder):
            assert folder == str(tmp_path)

        def add_scalar(self, tag, value, step):
            written.append((tag, value, step))

        def flush(self):
            written.append("flushed")

        def close(self):
            written.append("closed")

    for name in ("tensorboard", "tensorboard.summary", "tensorboardX"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in {module, module.partition(".")[0]}:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[module].SummaryWriter = sys.modules[module].Writer = Writer
    one, log = session(), TensorBoardLog(tmp_path)
    (epoch,) = one.fit(DATA, batch=8, validate=HELD, callbacks=[log])
    log.close()
    assert written == [
        *((f"{name}/training", value, 5) for name, value in epoch.results.items()),
        *((f"{name}/validation", value, 5) for name, value in epoch.validation.items()), "flushed", "closed",
    ]  # fmt: skip
    assert {"loss/training", "accuracy/validation"} <= {entry[0] for entry in written}


def test_without_the_library_of_tensorboard_the_error_says_what_to_install(monkeypatch):
    for name in ("tensorboard", "tensorboard.summary", "tensorboardX"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match=r"pip install 'sabir\[tensorboard\]'"):
        TensorBoardLog("runs")
