"""Losses of sequences and of several outputs: values and gradients that PyTorch 2.13 computes in double precision."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import onnxruntime
import pytest

import sabir
from sabir import UnsupportedError
from sabir.base import NotFoundError
from sabir.ir import tensor_type
from sabir.training import (
    CTC,
    IGNORED,
    SGD,
    Contrastive,
    CosineEmbedding,
    CrossEntropy,
    Huber,
    Triplet,
    prepare,
    step_model,
)

X = np.array([
    [
        [0.07, 2.72, 2.45, -1.02],
        [-0.6, -1.05, 1.14, -0.11],
        [1.49, -3.69, 3.13, -0.19],
        [1.36, -0.27, -0.76, 0.93],
        [1.65, -0.41, -0.31, 1.37],
        [-1.74, -3.03, 0.79, -1.34],
    ],
    [
        [-3.84, -1.63, -0.94, -2.39],
        [-2.98, 0.07, 1.79, -0.47],
        [-1.49, 0.77, 1.43, -0.6],
        [1.09, 2.09, -0.41, -1.63],
        [0.7, 0.5, 2.2, -2.57],
        [-1.32, -1.68, -3.47, 0.25],
    ],
    [
        [1.06, -1.48, 2.77, 1.64],
        [1.25, 0.8, 1.91, -2.66],
        [1.23, 1.21, -3.54, 0.69],
        [-0.5, 1.56, -0.88, -0.04],
        [0.69, -1.75, 1.2, -0.21],
        [0.98, -1.04, 2.17, 1.21],
    ],
])
LABELS = np.array([[1, 2, 2], [3, 1, IGNORED], [2, IGNORED, IGNORED]])
OTHERS = np.array([[1, 2, 0], [0, 1, -1], [-1, -1, -1]])
SEQUENCES = [
    (CTC(), LABELS, None, 3.5411152270937976, [[[0.00362116856, -0.0506983586, 0.0456564955, 0.00142069457], [-0.00102159324, -0.00125647121, -0.0179475013, 0.0202255658], [0.00359879612, 9.7499595e-05, -0.00695888593, 0.00326259021], [-0.044711594, 0.0110705728, -0.00311457506, 0.0367555963], [-0.0426473374, 0.00699648203, -0.00583727852, 0.0414881339], [0.00614180184, 0.00199637347, -0.0189574828, 0.0108193075]], [[-0.0105827767, 0.0466711877, 0.0930490718, -0.129137483], [-0.00340130122, -0.0578158622, 0.129009252, -0.0677920881], [-0.00314416036, -0.0903931651, 0.0979170761, -0.00437975056], [0.015766778, -0.0275098044, 0.00928018443, 0.00246284193], [-0.0545052039, -0.0643347828, 0.117844422, 0.000995564682], [-0.104138991, -0.0197918006, 0.00293227417, 0.120998517]], [[-0.133011308, 0.00313190596, 0.0589530705, 0.0709263314], [-0.113223139, 0.0591635422, 0.0522001009, 0.00185949605], [-0.196456197, 0.127062854, -0.00614813416, 0.0755414773], [-0.244053999, 0.235319919, -0.038776192, 0.0475102722], [-0.107649795, 0.00919702992, 0.0555523883, 0.0429003763], [-0.151110915, 0.00778722553, 0.0694405504, 0.0738831387]]]),
    (CTC(lengths="steps"), LABELS, [5, 3, 6], 3.2494943101485454, [[[0.00370192935, -0.0507791194, 0.0456564955, 0.00142069457], [0.000767742154, -3.4071665e-05, -0.0209592362, 0.0202255658], [-0.00782771658, 9.8521687e-05, 0.00446660469, 0.00326259021], [-0.0421203393, 0.0110705728, -0.00570582979, 0.0367555963], [0.0439480828, 0.00699648203, -0.0924326987, 0.0414881339], [0, 0, 0, 0]], [[-0.00705582562, 0.0466711877, 0.0930490718, -0.132664434], [-0.00312428938, -0.0752651147, 0.129009252, -0.0506198475], [-0.00401363943, -0.106763427, 0.0979170761, 0.0128599902], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], [[-0.133011308, 0.00313190596, 0.0589530705, 0.0709263314], [-0.113223139, 0.0591635422, 0.0522001009, 0.00185949605], [-0.196456197, 0.127062854, -0.00614813416, 0.0755414773], [-0.244053999, 0.235319919, -0.038776192, 0.0475102722], [-0.107649795, 0.00919702992, 0.0555523883, 0.0429003763], [-0.151110915, 0.00778722553, 0.0694405504, 0.0738831387]]]),
    (CTC(lengths="steps", zero_infinity=True), LABELS, [3, 2, 6], 2.699186122476755, [[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], [[0.00511985956, 0.0466711877, 0.0930490718, -0.144840119], [0.0010940475, -0.143565477, 0.129009252, 0.0134621779], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], [[-0.133011308, 0.00313190596, 0.0589530705, 0.0709263314], [-0.113223139, 0.0591635422, 0.0522001009, 0.00185949605], [-0.196456197, 0.127062854, -0.00614813416, 0.0755414773], [-0.244053999, 0.235319919, -0.038776192, 0.0475102722], [-0.107649795, 0.00919702992, 0.0555523883, 0.0429003763], [-0.151110915, 0.00778722553, 0.0694405504, 0.0738831387]]]),
    (CTC(blank=3, padding=-1), OTHERS, None, 6.293982799393234, [[[0.00422553502, -0.0511143163, 0.0456564955, 0.0012322858], [0.0123907154, -0.000214066894, -0.0121124184, -6.4230113e-05], [0.00779334444, 9.7719999e-05, -0.0086868174, 0.000795752954], [-0.0114075006, 0.0110704527, 0.000158861834, 0.000178186108], [-0.0235288449, 0.00699648203, 0.00744143689, 0.00909092596], [-0.0341157511, 0.00199637347, 0.0910430315, -0.0589236538]], [[-0.105321183, 0.0466711877, 0.0930490718, -0.0343990763], [-0.0204451146, -0.0382309129, 0.129009252, -0.070333224], [-0.0197734302, -0.0617251433, 0.0979170761, -0.0164185025], [0.0185505361, -0.0295976446, 0.00928018443, 0.00176692405], [0.0230820913, -0.136126768, 0.117844422, -0.00479974559], [0.0251731586, -0.00575366726, 0.00293227417, -0.0223517655]], [[0.0397115371, 0.00313190596, 0.219563559, -0.262407002], [0.0927869042, 0.0591635422, 0.179523391, -0.331473837], [0.129629693, 0.127062854, 0.00109930908, -0.257791856], [0.0299924578, 0.235319919, 0.0205106845, -0.285823061], [0.105517899, 0.00919702992, 0.175718028, -0.290432957], [0.0587026363, 0.00778722553, 0.192960333, -0.259450195]]]),
]  # fmt: skip
VECTORS = np.array([
    [[-0.18, 0.63, 1.26], [1.79, -1.57, 0.88], [0.47, -0.09, -1.01], [1.26, -1.26, 0.57]],
    [[1.3, -1.6, -0.3], [-1.31, 0.24, 1.51], [2.02, -1.78, -0.57], [0.7, 1.58, 0.42]],
    [[-0.75, 0.3, -0.02], [-0.2, -0.73, 0.39], [0.31, -0.09, -0.22], [-1.28, -0.49, 1.21]],
])
SIGNS = np.array([1.0, -1, -1, 1])
PAIRS = [
    (Contrastive("p"), None, 13.319076507866122, [[[-2.15630711, 1.5667185, -1.09140312], [0.737201869, -0.16340905, -1.79107222], [-0.822450965, 0.913238728, -0.464102415], [-0.92209799, -1.60815069, -1.51653754]], [[-0.0882191519, 0.059881094, -0.701648826], [-0.246964613, 1.64825718, -0.476228719], [0.0560206775, -0.324716094, 1.21255511], [-1.91491109, 0.836348057, 0.0452567419]]]),
    (Contrastive("p", temperature=0.5, symmetric=False), None, 2.5355588847318487, [[[-0.232731195, 0.204050632, -0.13527263], [0.105000346, -0.0140221697, -0.238597074], [-0.0231909196, 0.065740219, -0.0166498534], [-0.129959989, -0.210662256, -0.178394485]], [[-0.00572435322, 0.0261179899, -0.164101477], [-0.064638847, 0.181539642, -0.0849313931], [0.00991303361, -0.0407710207, 0.162450429], [-0.213760505, 0.107443944, -0.0479263741]]]),
    (Triplet("p", "n"), None, 2.1963388738231697, [[[-0.218427988, 0.122650317, -0.09640488], [-0.0119704382, -0.0293446329, -0.098521956], [-0.215578879, 0.180942406, 0.197915868], [-0.184282265, -0.174441422, 0.0715407501]], [[0.119436163, -0.179961447, -0.125892337], [-0.212644295, 0.124156721, 0.0432147257], [0.165953173, -0.180942716, 0.0471092112], [-0.0482998004, 0.244948464, -0.0129375097]], [[0.0989918259, 0.0573111302, 0.222297217], [0.224614733, -0.0948120885, 0.0553072303], [0.0496257054, 3.10159e-07, -0.245025079], [0.232582066, -0.0705070423, -0.0586032405]]]),
    (Triplet("p", "n", margin=0.5, swap=True), None, 1.7872339792134402, [[[-0.218427988, 0.122650317, -0.09640488], [0.212644295, -0.124156721, -0.0432147257], [-0.215578879, 0.180942406, 0.197915868], [-0.184282265, -0.174441422, 0.0715407501]], [[0.119436163, -0.179961447, -0.125892337], [-0.0627517349, -0.00683072338, -0.108028489], [0.165953173, -0.180942716, 0.0471092112], [-0.0482998004, 0.244948464, -0.0129375097]], [[0.0989918259, 0.0573111302, 0.222297217], [-0.14989256, 0.130987445, 0.151243214], [0.0496257054, 3.10159e-07, -0.245025079], [0.232582066, -0.0705070423, -0.0586032405]]]),
    (CosineEmbedding("p"), SIGNS, 0.8391967790869338, [[[-0.0976322899, 0.0924401661, -0.060167553], [0, 0, 0], [0.112644514, -0.134809785, 0.0644314873], [-0.0761136711, -0.0952026597, -0.0421967117]], [[-0.0257936944, -0.00276861666, -0.0970067204], [0, 0, 0], [0.00166702835, 0.0248788525, -0.0717841407], [-0.109132869, 0.0620409195, -0.0515039155]]]),
    (CosineEmbedding("p", margin=0.25), SIGNS, 0.7766967790869338, [[[-0.0976322899, 0.0924401661, -0.060167553], [0, 0, 0], [0.112644514, -0.134809785, 0.0644314873], [-0.0761136711, -0.0952026597, -0.0421967117]], [[-0.0257936944, -0.00276861666, -0.0970067204], [0, 0, 0], [0.00166702835, 0.0248788525, -0.0717841407], [-0.109132869, 0.0620409195, -0.0515039155]]]),
]  # fmt: skip


def sequences(layout=("N", "T", 4), element="double"):
    """A model whose output is its input plus `w`, with the numbers of steps as another input."""
    b = sabir.Builder(21)
    shape = X.shape if layout[0] == "N" else (6, 3, 4)
    zeros = b.initializer("w", np.zeros(shape, np.float64 if element == "double" else np.float32))
    b.output(b.Add(b.input("x", element, list(layout)), zeros), "y")
    b.output(b.Identity(b.input("steps", "int64", ["N"])), "same_steps")
    return b.model()


def vectors(element="double"):
    """A model of three outputs, each its input plus an initializer."""
    b = sabir.Builder(21)
    for name in ("a", "p", "n"):
        zeros = b.initializer(
            f"w_{name}", np.zeros((4, 3), np.float64 if element == "double" else np.float32)
        )
        b.output(b.Add(b.input(f"x_{name}", element, ["N", 3]), zeros), name)
    return b.model()


@pytest.mark.parametrize(
    ("case", "engine"),
    [*((i, "reference") for i in range(len(SEQUENCES))), (1, "compiled")],
    ids=["plain", "lengths", "zero", "blank", "compiled"],
)
def test_ctc(case, engine):
    loss, labels, steps, value, gradient = SEQUENCES[case]
    session = sabir.TrainingSession(prepare(sequences(), loss, optimizer=SGD(1.0)), engine=engine)
    feeds = {"x": X, "label": labels, "steps": np.array(steps or [0, 0, 0])}
    np.testing.assert_allclose(session.step(feeds)["loss"], value, rtol=1e-12)
    np.testing.assert_allclose(-session.state["w"], gradient, rtol=1e-7, atol=1e-9)


def test_ctc_with_steps_first_and_labels_that_are_too_many():
    loss, labels, _, value, gradient = SEQUENCES[0]
    model = prepare(sequences(("T", "N", 4)), CTC(time_axis=0), optimizer=SGD(1.0))
    session = sabir.TrainingSession(model, engine="reference")
    feeds = {"x": X.transpose(1, 0, 2), "label": labels, "steps": np.zeros(3, np.int64)}
    np.testing.assert_allclose(session.step(feeds)["loss"], value, rtol=1e-12)
    np.testing.assert_allclose(-session.state["w"].transpose(1, 0, 2), gradient, rtol=1e-7, atol=1e-9)
    for infinity in (False, True):
        loss = CTC(lengths="steps", zero_infinity=infinity)
        session = sabir.TrainingSession(prepare(sequences(), loss, optimizer=SGD(1.0)), engine="reference")
        found = session.step({"x": X, "label": labels, "steps": np.array([2, 1, 6])})["loss"]
        assert np.isinf(found) != infinity


def embedded(loss, target, engine="reference"):
    session = sabir.TrainingSession(
        prepare(vectors(), loss, optimizer=SGD(1.0), trainable="w*"), engine=engine
    )
    feeds = {f"x_{name}": rows for name, rows in zip("apn", VECTORS, strict=True)}
    feeds |= {} if target is None else {"label": target}
    return session, session.step(feeds)["loss"]


@pytest.mark.parametrize(
    ("case", "engine"),
    [*((i, "reference") for i in range(len(PAIRS))), (0, "compiled"), (3, "compiled")],
    ids=["clip", "nce", "triplet", "swap", "cosine", "margin", "compiled clip", "compiled swap"],
)
def test_losses_of_embeddings(case, engine):
    loss, target, value, gradients = PAIRS[case]
    session, found = embedded(loss, target, engine)
    np.testing.assert_allclose(found, value, rtol=1e-12)
    for name, gradient in zip("apn", gradients, strict=False):
        np.testing.assert_allclose(-session.state[f"w_{name}"], gradient, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "loss", [SEQUENCES[1][0], PAIRS[0][0], PAIRS[3][0], PAIRS[5][0]], ids=lambda loss: type(loss).__name__
)
def test_checkers_and_onnxruntime_accept_them(loss):
    source = sequences(element="float") if isinstance(loss, CTC) else vectors("float")
    model = prepare(source, loss, optimizer=SGD(1.0), trainable="w*")
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)
    data = sabir.dumps(step_model(model))
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def test_joint_losses_that_are_refused():
    cases = [
        (lambda: CTC(time_axis=2), "time_axis of CTC is 0 or 1; got 2"), (lambda: CTC(padding=0), "both are 0"),
        (lambda: CTC().target(tensor_type("float", ["N", 3])), r"scores \[N,T,C\]"), (lambda: CTC(blank=9).target(tensor_type("float", ["N", "T", 4])), "blank 9 is no class"),
        (lambda: Contrastive("p", temperature=0.0), "above 0; got 0.0"), (lambda: Triplet("p", "n", margin=-1), "margin of Triplet"),
        (lambda: CosineEmbedding("p", margin=2), "from -1 to 1"), (lambda: prepare(sequences(), Contrastive("y")), r"embeddings \[N,D\]; the output is double\[3,6,4\]"),
        (lambda: prepare(vectors(), Contrastive("p"), metrics="accuracy"), "reads several values, and a metric one; there is no 'accuracy'"),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(UnsupportedError, match=message):
            call()
    with pytest.raises(NotFoundError, match="q"):
        prepare(vectors(), Contrastive("q"))


HEADS = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (double[N,2] x) => (double[N,3] kind, double[N,1] size) <double[2,3] w = {1, 0, 2, 0, 1, 0}, double[2,1] v = {1, -1}>"
    " { h = Relu (x)  kind = MatMul (h, w)  size = MatMul (x, v) }"
)
FEEDS = {
    "x": np.array([[1.0, -2], [0.5, 3], [-1, 1]]),
    "kind_label": np.array([0, 2, 1]),
    "size_label": np.array([[1.0], [2], [-3]]),
}


def test_several_losses_are_a_weighted_sum():
    losses = {"kind": "cross_entropy", "size": Huber(0.5)}
    targets = {"kind": "kind_label", "size": "size_label"}
    model = prepare(
        sabir.parse(HEADS), losses, target=targets, loss_weights={"size": 0.25}, optimizer=SGD(1.0),
        metrics={"kind": ["accuracy"], "size": "mae"},
    )  # fmt: skip
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)
    session = sabir.TrainingSession(model, engine="reference")
    found = session.step(FEEDS, outputs=["loss", "kind_loss", "size_loss", "kind_accuracy", "size_mae"])
    for output, weight in (("kind", 1.0), ("size", 0.25)):
        alone = sabir.TrainingSession(
            prepare(
                sabir.parse(HEADS),
                losses[output],
                output=output,
                target=targets[output],
                optimizer=SGD(weight),
            ),
            engine="reference",
        )
        one = alone.step({name: FEEDS[name] for name in ("x", targets[output])})["loss"]
        assert found[f"{output}_loss"] == pytest.approx(one)
        name = "w" if output == "kind" else "v"
        np.testing.assert_allclose(session.state[name], alone.state[name])
    assert found["loss"] == pytest.approx(found["kind_loss"] + 0.25 * found["size_loss"])
    assert found["kind_accuracy"] == pytest.approx(1 / 3)
    (epoch,) = session.fit(FEEDS, batch=2, validate=FEEDS)
    assert {*epoch.validation} == {"loss", "kind_loss", "size_loss", "kind_accuracy", "size_mae"}


def test_several_losses_have_targets_of_their_own_or_share_one():
    own = prepare(sabir.parse(HEADS), {"kind": "cross_entropy", "size": "mse"}, target={"size": "goal"})
    session = sabir.TrainingSession(own)
    assert [port.name for port in session.inputs_of(0)] == ["x", "kind_label", "goal"]
    shared = HEADS.replace("double[N,1] size", "double[N,3] size").replace(
        "double[2,1] v = {1, -1}", "double[2,3] v = {1, -1, 0, 0, 1, 1}"
    )
    session = sabir.TrainingSession(
        prepare(sabir.parse(shared), dict.fromkeys(("kind", "size"), CrossEntropy()), optimizer=SGD(0.1))
    )
    session.fit({"x": FEEDS["x"], "label": FEEDS["kind_label"]})
    assert session.steps == 1


def test_several_losses_that_are_refused():
    both = {"kind": "cross_entropy", "size": "mse"}
    cases = [
        ({"loss": {}}, UnsupportedError, "losses by output, one or more"), ({"loss": both, "output": "kind"}, UnsupportedError, "output= has no meaning"),
        ({"loss": both, "metrics": ["accuracy"]}, UnsupportedError, "metrics are by output too"), ({"loss": both, "loss_weights": {"sise": 1.0}}, UnsupportedError, "'sise', for which there is no loss; is it 'size'"),
        ({"loss": both, "target": {"kinds": "t"}}, UnsupportedError, "target has 'kinds'"), ({"loss": both, "loss_weights": {"size": -1.0}}, UnsupportedError, "the weight of the loss of 'size'"),
        ({"loss": {"kind": "cross_entropie"}}, NotFoundError, "'cross_entropie' is no loss; is it 'cross_entropy'"), ({"loss": both, "target": "label"}, UnsupportedError, r"int64\[N\] for one output and double\[N,1\] for another"),
        ({"loss": "mse", "loss_weights": {"size": 1.0}}, UnsupportedError, "loss_weights are for several losses"), ({"loss": "mse", "target": {"size": "t"}}, UnsupportedError, "targets by output are for several losses"),
        ({"loss": {"color": "mse"}}, NotFoundError, "color"),
    ]  # fmt: skip
    for options, error, message in cases:
        with pytest.raises(error, match=message):
            prepare(sabir.parse(HEADS), **options)
