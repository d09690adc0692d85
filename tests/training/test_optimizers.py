"""Optimizers against trajectories of PyTorch and the formulas of papers, in every group and on both engines."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import pytest

import sabir
from sabir import UnsupportedError
from sabir.checking import findings
from sabir.elements import element
from sabir.training import (
    LAMB,
    SGD,
    AdaBelief,
    Adafactor,
    Group,
    Lion,
    NAdam,
    RAdam,
    RMSprop,
    prepare,
    step_model,
)

W, V = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -0.75]]), np.array([0.25, -0.5, 1.0])
X = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
T = np.array([[0.0, 1, 2], [1, -1, 0.5], [2, 0, -1]])
STYLE = {"ATTR006", "MODEL009", "GRAPH014"}  # documentation that the model did not have before either


def affine(kind="double"):
    dtype = element(kind).dtype
    b = sabir.Builder(21)
    w, v = b.initializer("w", W.astype(dtype)), b.initializer("v", V.astype(dtype))
    b.output(b.Add(b.MatMul(b.input("x", kind, ["N", 2]), w), v), "y")
    return b.model()


def trained(optimizer, steps, *, engine="reference", kind="double", **options):
    session = sabir.TrainingSession(
        prepare(affine(kind), "mse", optimizer=optimizer, **options), engine=engine
    )
    dtype = element(kind).dtype
    for _ in range(steps):
        session.step({"x": X.astype(dtype), "label": T.astype(dtype)})
    return session


def slopes(w, v):
    """The gradients of the mean squared error."""
    error = 2 * (X @ w + v - T) / T.size
    return X.T @ error, error.sum(0)


# eight steps of torch 2.13 in double precision, by the same names: w in rows, then v
PYTORCH = [
    (SGD(0.1, momentum=0.9, dampening=0.3, weight_decay=0.01), [-0.23103270092386, -0.8555458349331, 1.48110773898097, 1.48866482103722, 0.05067237786982, -0.68008111603168, 0.66292404000998, -0.4325243242097, 1.4645688918571]),
    (SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01), [-0.93883428139466, -0.57323241964487, 1.17162194044315, 0.70198258918949, 0.38725654083252, -0.97906344459254, 0.49506374139884, -0.29506284954164, 1.47583703802391]),
    (RMSprop(0.02), [-0.18407299518405, -0.60411676220696, 1.53768626006232, 0.84734842740333, 0.35787526100771, -1.09532039847214, -0.34145375028744, -0.15484470208523, 1.10859490647987]),
    (RMSprop(0.02, alpha=0.9, momentum=0.8, centered=True, weight_decay=0.01), [-0.40463152935551, -0.45389896021535, 1.42452376866604, 0.62626242948765, 0.51360791262163, -1.19664534136985, -0.56527537862583, 0.00346831496292, 0.86404651300506]),
    (RAdam(0.05, weight_decay=0.02), [-0.47026117861941, -0.60370336458387, 1.58584428651354, 0.25726332831116, 0.54367226875131, -1.21335969623598, -0.06146926997984, -0.32883949331288, 0.92251164266741]),
    (RAdam(0.05, betas=(0.8, 0.9)), [-0.45503141497407, -0.60921821973567, 1.58722496441573, 0.29604571869976, 0.53608321627339, -1.20992589418364, -0.04689191946243, -0.3250826951369, 0.95579868091468]),
    (NAdam(0.05, weight_decay=0.02), [0.19900366884569, -0.73304706562328, 1.73127424899162, 1.20132667101469, 0.26316647978302, -1.00295057264706, -0.04416451735656, -0.23781625438222, 0.80283719480253]),
    (NAdam(0.05, betas=(0.8, 0.9), momentum_decay=0.1), [0.15810043902212, -0.70124976764915, 1.6991096770303, 1.16095466825948, 0.29442185363158, -1.03221619795088, -0.08384196360576, -0.20748316958901, 0.809148029513]),
    (RAdam(0.05, betas=(0.9, 0.6)), [-0.64117993243982, -0.54998668586551, 1.51356148834253, 0.09906298648677, 0.61939913521848, -1.27591547208918, -0.0760368194494, -0.30740937739916, 0.94541503272434]),
    (Adafactor(0.1), [-0.15933681321195, -0.61196744336878, 1.52429021646253, 0.85662200625782, 0.39711001018275, -1.08342924033846, -0.10154576212407, -0.27302619899607, 1.06700305354016]),
    (Adafactor(0.5, beta_decay=-0.6, least_scale=0.1, limit=1.5, weight_decay=0.02), [-0.71117862045453, -0.62093709593667, 1.33232766959902, 0.62350052661001, 0.21668947794838, -0.80960781888511, 0.24883975530413, -0.19833239171718, 1.17024624856459]),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("optimizer", "expected"), PYTORCH, ids=[str(o) for o, _ in PYTORCH])
def test_trajectories_are_those_of_pytorch(optimizer, expected, engine):
    session = trained(optimizer, 8, engine=engine)
    found = [*session.state["w"].ravel(), *session.state["v"]]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def lion(w, g, state, t, decay):
    del t
    m = state.setdefault("m", np.zeros_like(w))
    new = w - 0.02 * (np.sign(0.9 * m + 0.1 * g) + decay * w)
    state["m"] = 0.99 * m + 0.01 * g
    return new


def adabelief(w, g, state, t, decay):
    m, s = state.get("m", np.zeros_like(w)), state.get("s", np.zeros_like(w))
    state["m"] = m = 0.9 * m + 0.1 * g
    state["s"] = s = 0.999 * s + 0.001 * (g - m) ** 2 + 1e-8
    ahead = m / (1 - 0.9**t) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
    return w - 0.02 * decay * w - 0.02 * ahead


def lamb(w, g, state, t, decay):
    m, s = state.get("m", np.zeros_like(w)), state.get("s", np.zeros_like(w))
    state["m"] = m = 0.9 * m + 0.1 * g
    state["s"] = s = 0.999 * s + 0.001 * g**2
    ahead = m / (1 - 0.9**t) / (np.sqrt(s / (1 - 0.999**t)) + 1e-6) + decay * w
    return w - 0.02 * np.linalg.norm(w) / np.linalg.norm(ahead) * ahead


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("kind", "formula"), [(Lion, lion), (AdaBelief, adabelief), (LAMB, lamb)])
def test_trajectories_are_those_of_the_papers(kind, formula, engine):
    for decay in (0.0, 0.1):
        session = trained(kind(0.02, weight_decay=decay), 8, engine=engine)
        w, v, states = W, V, ({}, {})
        for t in range(1, 9):
            dw, dv = slopes(w, v)
            w, v = formula(w, dw, states[0], t, decay), formula(v, dv, states[1], t, decay)
        np.testing.assert_allclose(session.state["w"], w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(session.state["v"], v, rtol=1e-10, atol=1e-12)


EVERY = [
    RMSprop(0.02, momentum=0.5, centered=True), Lion(0.01), AdaBelief(0.02), LAMB(0.02), RAdam(0.05),
    NAdam(0.05), Adafactor(0.1), SGD(0.1, momentum=0.9, dampening=0.5),
]  # fmt: skip


@pytest.mark.parametrize("optimizer", EVERY, ids=str)
def test_groups_scale_rates_and_replace_decays(optimizer):
    frozen = trained(optimizer, 3, groups=[Group("w", scale=0.0, weight_decay=0.5)])
    np.testing.assert_allclose(frozen.state["w"], W, rtol=1e-15)
    assert not np.allclose(frozen.state["v"], V)
    whole = type(optimizer)
    given = {n: getattr(optimizer, n) for n in optimizer.__dataclass_fields__}
    grouped = trained(optimizer, 3, groups=[Group("*", scale=0.5, weight_decay=0.1)])
    plain = trained(whole(**{**given, "rate": optimizer.rate / 2, "weight_decay": 0.1}), 3)
    for name in ("w", "v"):
        np.testing.assert_allclose(grouped.state[name], plain.state[name], rtol=1e-12)


@pytest.mark.parametrize("optimizer", EVERY, ids=str)
def test_prepared_models_pass_the_checkers_and_fall_in_loss(optimizer):
    for options in ({}, {"accumulate": 2}, {"split": True}):
        model = sabir.loads(sabir.dumps(prepare(affine("float"), "mse", optimizer=optimizer, **options)))
        for part in (model, *(step_model(model, i) for i in range(len(model.training)))):
            assert {f.rule for f in findings(part, strict=True)} <= STYLE
            onnx.checker.check_model(onnx.load_from_string(sabir.dumps(part)), full_check=True)
        feeds = {"x": X.astype(np.float32), "label": T.astype(np.float32)}
        session = sabir.TrainingSession(model, engine="reference")
        losses = [float(session.step(feeds)["loss"]) for _ in range(20)]
        assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("optimizer", EVERY, ids=str)
def test_a_saved_training_goes_on_with_the_same_bits(optimizer, tmp_path):
    half, whole = trained(optimizer, 3), trained(optimizer, 5)
    half.save(tmp_path / "half.onnx")
    resumed = sabir.TrainingSession(tmp_path / "half.onnx", engine="reference")
    for _ in range(2):
        resumed.step({"x": X, "label": T})
    assert {n: a.tobytes() for n, a in resumed.state.items()} == {
        n: a.tobytes() for n, a in whole.state.items()
    }


def test_parameters_of_half_precision_have_state_in_single_precision():
    for optimizer in (Adafactor(0.05), LAMB(0.05, eps=1e-3), Lion(0.01)):
        session = trained(optimizer, 4, kind="float16")
        assert {a.dtype for n, a in session.state.items() if n.endswith(("_w", "_v"))} == {
            np.dtype(np.float32)
        }
        assert np.isfinite(session.state["w"].astype(np.float64)).all()
        assert not np.array_equal(session.state["w"].astype(np.float64), W)


def test_adafactor_keeps_rows_and_columns_of_matrices():
    state = trained(Adafactor(0.1), 1).state
    shapes = {n: a.shape for n, a in state.items() if n.startswith(("rows", "columns", "squares"))}
    assert shapes == {"rows_w": (2, 1), "columns_w": (1, 3), "squares_v": (3,)}
    assert Adafactor(0.1).slots_of((5, 4, 3)).keys() == {"rows", "columns"}


def test_lamb_does_not_scale_a_parameter_of_zeros():
    b = sabir.Builder(21)
    w = b.initializer("w", np.zeros((2, 3)))
    b.output(b.MatMul(b.input("x", "double", ["N", 2]), w), "y")
    session = sabir.TrainingSession(prepare(b.model(), "mse", optimizer=LAMB(0.1)), engine="reference")
    session.step({"x": X, "label": T})
    gradient = slopes(np.zeros((2, 3)), np.zeros(3))[0]
    np.testing.assert_allclose(session.state["w"], -0.1 * gradient / (abs(gradient) + 1e-6), rtol=1e-9)


def test_what_is_refused():
    for wrong in (
        lambda: RMSprop(0.1, alpha=1.0), lambda: RMSprop(0.1, momentum=-1.0), lambda: Lion(0.1, betas=(1.0, 0.9)),
        lambda: SGD(0.1, dampening=1.5), lambda: Adafactor(0.1, eps=-1.0), lambda: LAMB(0.1, eps=-1.0),
        lambda: Adafactor(0.1, beta_decay=0.5), lambda: Adafactor(0.1, limit=0.0),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="is a number"):
            wrong()
