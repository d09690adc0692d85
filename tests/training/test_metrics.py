"""Metrics: values of one step and of the evaluation, beside formulas of numpy."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import pytest

import sabir
from sabir import UnsupportedError
from sabir.training import (
    IGNORED,
    METRICS,
    SGD,
    CrossEntropy,
    Focal,
    MeanAbsoluteError,
    NegativeLogLikelihood,
    prepare,
)

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
PLUS = HEAD + "g (double[N,4] x) => (double[N,4] y) <double[4] w = {0, 0, 0, 0}> { y = Add (x, w) }"
X = np.random.default_rng(5).standard_normal((6, 4))
LABELS = np.array([2, 0, 3, 1, 1, 0])
SOME = np.where(np.arange(6) % 3 == 1, IGNORED, LABELS)
NUMBERS = X + np.random.default_rng(6).standard_normal((6, 4))


def measured(loss, metrics, x=X, target=LABELS, text=PLUS):
    """The metrics of a step and of the evaluation, which are equal as the rate is 0."""
    model = prepare(sabir.parse(text), loss, optimizer=SGD(0.0), metrics=metrics)
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)
    session = sabir.TrainingSession(model, engine="reference")
    names = (
        [metrics] if isinstance(metrics, str) else [m if isinstance(m, str) else m.__name__ for m in metrics]
    )
    feeds = {"x": x, "label": target}
    step, evaluation = (session.step(feeds, i, names) for i in (0, 1))
    assert step == evaluation
    assert all(np.shape(v) == () for v in step.values())
    return {name: float(v) for name, v in step.items()}


def places(x, labels):
    """The place of each label in the order of the scores, from 0, and the log-probability of it."""
    rows = np.arange(len(x))
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    return (x > x[rows, labels][:, None]).sum(1), logs[rows, labels]


@pytest.mark.parametrize(
    "loss",
    [CrossEntropy, lambda **o: CrossEntropy(weights=[1, 2, 3, 4], label_smoothing=0.3, **o), Focal],
    ids=["plain", "weighted", "focal"],
)
def test_metrics_of_labels(loss):
    for labels in (LABELS, SOME):
        found = measured(
            loss(ignore_index=IGNORED), ["accuracy", "top_1", "top_2", "top_4", "perplexity"], target=labels
        )
        counted = labels != IGNORED
        place, logs = places(X[counted], labels[counted])
        for name, k in (("accuracy", 1), ("top_1", 1), ("top_2", 2), ("top_4", 4)):
            assert found[name] == pytest.approx((place < k).mean()), name
        assert 0 < found["top_2"] < 1
        np.testing.assert_allclose(found["perplexity"], np.exp(-logs.mean()))


def test_metrics_of_tokens_and_of_log_probabilities():
    text = HEAD + "g (double[N,T,4] x) => (double[N,T,4] y) <double[4] w = {0, 0, 0, 0}> { y = Add (x, w) }"
    metrics = ["accuracy", "top_2", "perplexity"]
    flat = measured("cross_entropy", metrics)
    found = measured("cross_entropy", metrics, X.reshape(2, 3, 4), LABELS.reshape(2, 3), text)
    assert found == pytest.approx(flat)
    logs = X - np.log(np.exp(X).sum(1, keepdims=True))
    assert measured(NegativeLogLikelihood(), metrics, logs) == pytest.approx(flat)


def test_metrics_of_numbers():
    found = measured("huber", ["mse", "mae", "r2"], target=NUMBERS)
    error = X - NUMBERS
    columns = 1 - (error**2).sum(0) / ((NUMBERS - NUMBERS.mean(0)) ** 2).sum(0)
    assert found == pytest.approx({"mse": (error**2).mean(), "mae": abs(error).mean(), "r2": columns.mean()})
    vector = HEAD + "g (double[N] x) => (double[N] y) <double[1] w = {0}> { y = Add (x, w) }"
    one = measured(MeanAbsoluteError(), "r2", X[:, 0], NUMBERS[:, 0], vector)
    assert one["r2"] == pytest.approx(columns[0])
    # a column that does not vary is explained whole or not at all
    for target, expected in ((np.ones((6, 4)), 0), (X * 0, 1)):
        assert measured("mse", "r2", X if expected == 0 else X * 0, target)["r2"] == expected


def test_metrics_of_ones_own():
    def largest(b, scores, target):
        return b.ReduceMax(b.Abs(b.Sub(scores, target)), keepdims=0)

    expected = abs(X - NUMBERS).max()
    assert measured("mse", ["mae", largest], target=NUMBERS)["largest"] == expected
    assert measured("mse", [largest], target=NUMBERS) == {"largest": expected}
    for asked in (
        largest,
        {"worst": largest, "error": "mae"},
    ):
        model = prepare(sabir.parse(PLUS), "mse", optimizer=SGD(0.0), metrics=asked)
        session = sabir.TrainingSession(model, engine="reference")
        name = "largest" if asked is largest else "worst"
        assert session.step({"x": X, "label": NUMBERS}, 0, name)[name] == expected
    (epoch,) = session.fit({"x": X, "label": NUMBERS}, batch=6, shuffle=False)
    assert epoch.results["worst"] == pytest.approx(expected)


def test_metrics_that_are_refused():
    cases = [
        ("mse", "perplexity", "for losses of labels, not for MeanSquaredError"), ("mse", "top_5", "for losses of labels"),
        ("cross_entropy", "top_5", "needs 5 classes; there are 4"), ("cross_entropy", "r2", r"compares numbers; the target is int64\[N\]"),
        ("cross_entropy", "mse", "compares numbers"), ("mse", "top_0", f"there are {', '.join(METRICS)}"),
        ("mse", [lambda *given: given[1]], "without a name"), ("mse", {"worst": lambda *given: given[1]}, "'worst'.*scalar"),
        ("mse", ["mae", "mae"], "two results have the name 'mae'"), ("mse", {"loss": "mae"}, "the name 'loss'"),
    ]  # fmt: skip
    for loss, metrics, message in cases:
        with pytest.raises(UnsupportedError, match=message):
            prepare(sabir.parse(PLUS), loss, metrics=metrics)
