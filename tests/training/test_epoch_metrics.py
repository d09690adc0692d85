"""Metrics of an epoch beside scikit-learn's of all its samples, in batches that have other values."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import pytest
from sklearn import metrics as judge

import sabir
from sabir import UnsupportedError
from sabir.training import (
    IGNORED,
    METRICS,
    SGD,
    BinaryCrossEntropy,
    CrossEntropy,
    NegativeLogLikelihood,
    StreamedMetric,
    prepare,
)

TEXT = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[{s}] x) => (float[{s}] y) <float[1] w = {{1}}> {{ y = Mul (x, w) }}'
RNG = np.random.default_rng(3)
COUNTS = ("precision", "recall", "f1")
SCORES = {
    name: getattr(judge, f"{name}_score") for name in (*COUNTS, "balanced_accuracy", "roc_auc", "accuracy")
}


def measured(shape, loss, metrics, x, target, batch=7):
    """The metrics of an epoch and of its validation, which are equal as the rate is 0."""
    model = prepare(sabir.parse(TEXT.format(s=shape)), loss, optimizer=SGD(0.0), metrics=metrics)
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)
    session = sabir.TrainingSession(model, engine="reference")
    data = {"x": x.astype(np.float32), "label": target}
    (epoch,) = session.fit(data, batch=batch, shuffle=False, validate=data)
    assert epoch.validation.keys() <= epoch.results.keys()
    for name, value in epoch.validation.items():
        assert epoch.results[name] == pytest.approx(value, nan_ok=True)
    return epoch.validation


def averages(labels, chosen, *, multiclass=True):
    found = {
        f"{name}_{average}": SCORES[name](labels, chosen, average=average, zero_division=0)
        for name in COUNTS
        for average in ("macro", "micro", "weighted")
    }
    return found | (
        {"balanced_accuracy": judge.balanced_accuracy_score(labels, chosen)} if multiclass else {}
    )


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")  # scikit-learn's, of a recall
def test_metrics_of_several_classes():
    x, labels = RNG.standard_normal((60, 5)), RNG.integers(0, 4, 60)  # a class is never true
    chosen = x.argmax(1)
    expected = averages(labels, chosen) | {"accuracy": judge.accuracy_score(labels, chosen)}
    expected["top_2"] = judge.top_k_accuracy_score(labels, x, k=2, labels=range(5))
    expected["perplexity"] = np.exp(
        judge.log_loss(labels, np.exp(x) / np.exp(x).sum(1, keepdims=True), labels=range(5))
    )
    found = measured("N,5", "cross_entropy", [*expected], x, labels)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    # some labels are ignored, which leaves another number of them in each batch; log-probabilities; places
    some = np.where(np.arange(60) % 7 < 3, IGNORED, labels)
    kept = some != IGNORED
    expected = averages(some[kept], chosen[kept]) | {"accuracy": (chosen == some)[kept].mean()}
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    for shape, loss, target in (
        ("N,5", CrossEntropy(ignore_index=IGNORED), x), ("N,5", NegativeLogLikelihood(ignore_index=IGNORED), logs),
        ("N,5,6", CrossEntropy(axis=1, ignore_index=IGNORED), x.reshape(10, 6, 5).transpose(0, 2, 1)),
    ):  # fmt: skip
        labels_of = some if target.ndim == 2 else some.reshape(10, 6)
        found = measured(shape, loss, [*expected], target, labels_of)
        assert {name: found[name] for name in expected} == pytest.approx(expected), shape


def test_metrics_of_two_classes():
    x, truth = RNG.standard_normal((80, 2)) * 2, RNG.integers(0, 2, 80)
    logit = x[:, 1] - x[:, 0]
    names = [*COUNTS, "balanced_accuracy", "accuracy"]
    expected = {name: SCORES[name](truth, logit > 0) for name in names} | averages(truth, logit > 0)
    area = judge.roc_auc_score(truth, logit)
    for shape, loss, given, target in (
        ("N,2", "cross_entropy", x, truth), ("N", "bce_logits", logit, truth.astype(np.float32)),
        ("N,1", BinaryCrossEntropy(logits=False), 1 / (1 + np.exp(-logit[:, None])), truth[:, None].astype(np.float32)),
    ):  # fmt: skip
        found = measured(shape, loss, [*expected, "roc_auc"], given, target)
        assert {name: found[name] for name in expected} == pytest.approx(expected), shape
        assert found["roc_auc"] == pytest.approx(area, abs=1e-3), shape
    # nothing is chosen, and one class alone has no curve
    found = measured("N", "bce_logits", [*COUNTS, "roc_auc"], np.full(8, -1.0), np.ones(8, np.float32))
    assert [found[name] for name in COUNTS] == [0, 0, 0]
    assert np.isnan(found["roc_auc"])


def test_metrics_of_several_truth_values():
    x, truth = RNG.standard_normal((50, 3)), RNG.integers(0, 2, (50, 3))
    expected = averages(truth, x > 0, multiclass=False)
    found = measured("N,3", "bce_logits", [*expected, "roc_auc"], x, truth.astype(np.float32))
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["roc_auc"] == pytest.approx(judge.roc_auc_score(truth, x), abs=1e-3)


def test_areas_of_several_classes_are_off_by_no_more_than_is_stated():
    x, labels = RNG.standard_normal((90, 3)), np.arange(90) % 3
    chances = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    found = measured("N,3", "cross_entropy", "roc_auc_ovr", x, labels)["roc_auc_ovr"]
    exact = judge.roc_auc_score(labels, chances, multi_class="ovr")
    bins = np.floor((np.log(chances) - np.log1p(-chances) + 16) * 256)
    bounds = []
    for c in range(3):
        right, wrong = (bins[mask, c] for mask in (labels == c, labels != c))
        bounds.append((right[:, None] == wrong).mean() / 2)
    assert abs(found - exact) <= np.mean(bounds) + 1e-9
    # scores that are apart have no error at all
    x = np.arange(12, dtype=float)[::-1] - 6
    truth = np.array([1, 0] * 6, np.float32)
    area = measured("N", "bce_logits", "roc_auc", x, truth, batch=5)["roc_auc"]
    assert area == pytest.approx(judge.roc_auc_score(truth, x), abs=1e-12)


def test_metrics_of_numbers():
    x, target = RNG.standard_normal((40, 3)), RNG.standard_normal((40, 3)) + 5
    found = measured("N,3", "mse", ["mse", "mae", "r2"], x, target.astype(np.float32), batch=9)
    x = x.astype(np.float32)
    expected = {
        "mse": judge.mean_squared_error(target, x), "mae": judge.mean_absolute_error(target, x), "r2": judge.r2_score(target, x),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_metrics_while_an_epoch_goes_on():
    x, truth = RNG.standard_normal((40, 2)), RNG.integers(0, 2, 40)
    model = prepare(sabir.parse(TEXT.format(s="N,2")), metrics=["f1", "accuracy"], optimizer=SGD(0.0))
    session, seen = sabir.TrainingSession(model, engine="reference"), []
    data = {"x": x.astype(np.float32), "label": truth}
    session.fit(data, batch=10, shuffle=False, progress=lambda at: seen.append(at.results))
    assert [list(results) for results in seen] == [["loss", "f1", "accuracy", "rate"]] * 4
    first = judge.f1_score(truth[:10], x[:10].argmax(1))
    assert seen[0]["f1"] == pytest.approx(first)


def test_a_metric_of_ones_own_is_computed_from_sums():
    metric = StreamedMetric(
        lambda b, scores, target: b.Cast(b.ReduceMax(b.Sub(scores, target), np.array([0])), to=11),
        lambda b, sums: b.Sqrt(b.ReduceSum(sums, keepdims=0)),
    )
    x = np.arange(1, 7, dtype=np.float32)
    found = measured("N", "mse", {"root": metric}, x, x * 0, batch=2)
    assert found["root"] == pytest.approx(np.sqrt(2 + 4 + 6))


def test_a_scalar_that_sums_alone_do_not_decide_is_a_mean():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[N] x) => (float[N] y) <float w = {1}> { y = Mul (x, w) }\n"
        "@training { algorithm: a () => (float loss, float c, float c_sums, float v)"
        " { loss = ReduceMean <keepdims = 0> (y)  c_sums = ReduceMax <keepdims = 0> (y)  c = Add (c_sums, loss)  v = Identity (w) },"
        ' update_binding: ["w": "v"] }'
    )
    session = sabir.TrainingSession(sabir.parse(text), engine="reference")
    (epoch,) = session.fit({"x": np.array([1, 2, 3], np.float32)}, batch=2, shuffle=False)
    assert epoch.results == pytest.approx({"loss": 2, "c": (2 * 3.5 + 6) / 3, "c_sums": (2 * 2 + 3) / 3})


def test_metrics_that_are_refused():
    three, open_ = "float[N,3] y", "float[N,C] y"
    cases = [
        (three, "cross_entropy", "f1", "f1 is for two classes.*there are f1_macro, f1_micro, f1_weighted"),
        (three, "cross_entropy", "roc_auc", "for two classes; for 3 there is roc_auc_ovr"),
        (three, "mse", "precision", "for losses of classes, not for MeanSquaredError"),
        (open_, CrossEntropy(axis=1), "roc_auc_ovr", "at most 256 classes, whose number is known"),
        (three, "cross_entropy", "f1_makro", "no metric 'f1_makro'; is it 'f1_macro'"),
        (three, "kl", "accuracy", "KLDivergence has no accuracy"),
        (three, "bce_logits", "balanced_accuracy", "for labels or one truth value"),
    ]  # fmt: skip
    for output, loss, metric, message in cases:
        text = TEXT.format(s="N,3" if output == three else "N,C")
        with pytest.raises(UnsupportedError, match=message):
            prepare(sabir.parse(text), loss, metrics=metric)
    assert {"f1_macro", "roc_auc", "r2"} <= set(METRICS)
    for sums in (lambda *given: given[1], lambda b, *given: b.Cast(b.Size(given[0]), to=11)):
        with pytest.raises(
            UnsupportedError, match="the sums of the metric 'own' are .* double of rank 1 or more"
        ):
            prepare(
                sabir.parse(TEXT.format(s="N")),
                "mse",
                metrics={"own": StreamedMetric(sums, lambda *given: given[1])},
            )
