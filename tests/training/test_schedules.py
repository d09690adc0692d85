"""Schedules of the rate against PyTorch's, and a rate that falls when the loss does not."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import pytest

import sabir
from sabir import UnsupportedError
from sabir.checking import findings
from sabir.training import (
    SGD,
    Constant,
    Cosine,
    Epoch,
    OneCycle,
    Polynomial,
    ReduceOnPlateau,
    Step,
    WarmUp,
    prepare,
)

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (double[N,2] x) => (double[N] y) <double[2] w = {1.0, -2.0}> { y = MatMul (x, w) }"
)
FEEDS = {"x": np.array([[1.0, 2], [3, 4], [-1, 0.5]]), "label": np.array([0.0, 1, 2])}
STYLE = {"ATTR006", "MODEL009", "GRAPH014"}  # documentation that the model did not have before either


def session(schedule, engine="reference"):
    return sabir.TrainingSession(prepare(sabir.parse(TEXT), "mse", optimizer=SGD(schedule)), engine=engine)


def rates(schedule, steps, engine="reference"):
    made = session(schedule, engine)
    return [float(made.step(FEEDS, outputs="rate")["rate"]) for _ in range(steps)]


# torch 2.13: OneCycleLR(total_steps=10), OneCycleLR(total_steps=9, pct_start=0.5, div_factor=10,
# final_div_factor=100), PolynomialLR(5, power=2)
PYTORCH = [
    (OneCycle(0.4, 10), [0.016, 0.208, 0.4, 0.38019385280539, 0.32469826157991, 0.24450480877452, 0.15549679122548, 0.07530333842009, 0.01980774719461, 1.6e-06]),
    (OneCycle(0.4, 9, rise=0.5, first=10, last=100), [0.04, 0.10777183566543, 0.26005376811214, 0.38217439622244, 0.38795058563302, 0.3001, 0.16550509410215, 0.04714432026483, 0.0004]),
    (Polynomial(0.4, 5), [0.4, 0.256, 0.144, 0.064, 0.016, 0.0, 0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("schedule", "expected"), PYTORCH, ids=[str(s) for s, _ in PYTORCH])
def test_rates_are_those_of_pytorch(schedule, expected, engine):
    np.testing.assert_allclose(rates(schedule, len(expected), engine), expected, rtol=1e-6, atol=1e-12)


def test_one_cycle_ends_with_its_last_rate():
    np.testing.assert_allclose(rates(OneCycle(0.4, 10), 13)[9:], 1.6e-6, rtol=1e-6)


def test_a_polynomial_has_warmup_and_end():
    found = rates(Polynomial(0.4, 6, 2, 0.1, power=3), 8)
    falling = [0.1 + 0.3 * (1 - k / 4) ** 3 for k in range(5)]
    np.testing.assert_allclose(found, [0.2, 0.4, *falling, 0.1], rtol=1e-6)


def test_a_warm_up_joins_any_schedule():
    np.testing.assert_allclose(rates(WarmUp(Constant(0.4), 4), 6), [0.1, 0.2, 0.3, 0.4, 0.4, 0.4])
    np.testing.assert_allclose(
        rates(WarmUp(Step(0.4, every=2, factor_each=0.5), 2), 7), [0.2, 0.4, 0.4, 0.4, 0.2, 0.2, 0.1]
    )
    cosine, cycle = Cosine(0.4, 5), OneCycle(0.4, 10)
    np.testing.assert_allclose(rates(WarmUp(cosine, 3), 9)[3:], rates(cosine, 6), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(rates(WarmUp(cycle, 3), 9)[3:], rates(cycle, 6), rtol=1e-6)
    np.testing.assert_allclose(rates(WarmUp(cycle, 2), 2), [0.008, 0.016], rtol=1e-6)
    # it is the rate of the schedule that the state has
    made = session(WarmUp(Constant(0.4), 4))
    assert made.state["learning_rate"] == np.float64(0.4)


@pytest.mark.parametrize("schedule", [OneCycle(0.1, 10), Polynomial(0.1, 10), WarmUp(Step(0.1, every=3), 2)])
def test_prepared_models_pass_the_checkers(schedule):
    model = sabir.loads(sabir.dumps(session(schedule).model))
    assert {f.rule for f in findings(model, strict=True)} <= STYLE
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)


def test_a_plateau_reduces_the_rate_as_in_pytorch():
    # ReduceLROnPlateau(factor=0.5, patience=1, threshold=0.1, cooldown=1, min_lr=0.15) of torch 2.13
    losses = [1.0, 0.95, 0.94, 0.93, 0.92, 0.91, 0.3, 0.29, 0.29, 0.29, 0.29, 0.29, 0.29]
    expected = [0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.15, 0.15, 0.15, 0.15, 0.15]
    made = session(Constant(0.8))
    reduce = ReduceOnPlateau(made, 0.5, 1, threshold=0.1, cooldown=1, least=0.15)
    found = []
    for number, loss in enumerate(losses, 1):
        assert not reduce(Epoch(number, number, 0.0, {"loss": 9.0}, {"loss": loss}))
        found.append(float(made.state["learning_rate"]))
    np.testing.assert_allclose(found, expected)


def test_a_plateau_in_fit_is_in_the_checkpoint(tmp_path):
    made = session(Step(0.0, every=1))
    made.state["learning_rate"] = 1e-300
    reduce = ReduceOnPlateau(made, patience=0)
    made.fit(FEEDS, epochs=3, callbacks=[reduce], checkpoint=tmp_path / "half.onnx")
    resumed = sabir.TrainingSession(tmp_path / "half.onnx", engine="reference")
    np.testing.assert_allclose(resumed.state["learning_rate"], 1e-302)
    # a rate below the least one stays
    made.state["learning_rate"] = 0.01
    reduce = ReduceOnPlateau(made, patience=0, least=0.1)
    for number in (1, 2, 3):
        reduce(Epoch(number, number, 0.0, {"loss": 1.0}, {}))
    assert made.state["learning_rate"] == np.float64(0.01)


def test_what_is_refused():
    made = session(0.1)
    for wrong in (
        lambda: OneCycle(0.1, 3), lambda: OneCycle(0.1, 10, rise=1.0), lambda: OneCycle(0.1, 10, first=0.5),
        lambda: OneCycle(-0.1, 10), lambda: Polynomial(0.1, 10, power=0.0), lambda: Polynomial(0.1, 10, 10),
        lambda: WarmUp(Constant(0.1), 0), lambda: ReduceOnPlateau(made, 1.0), lambda: ReduceOnPlateau(made, patience=-1),
        lambda: ReduceOnPlateau(sabir.TrainingSession(sabir.parse(TEXT))),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError):
            wrong()
