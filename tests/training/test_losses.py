"""Losses: values and gradients that PyTorch computes in double precision, and options that are refused."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import onnxruntime
import pytest

import sabir
from sabir import EvaluationError, UnsupportedError
from sabir.ir import tensor_type
from sabir.training import (
    IGNORED,
    LOSSES,
    SGD,
    CrossEntropy,
    Dice,
    Focal,
    Huber,
    KLDivergence,
    LossFunction,
    NegativeLogLikelihood,
    SmoothL1,
    prepare,
    step_model,
)

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
PLUS = HEAD + "g (double[N,3] x) => (double[N,3] y) <double[4,3] w> { y = Add (x, w) }"
X = np.array([[0.5, -1, 2], [1.5, 0.25, -0.5], [-2, 1, 0], [0.1, 0.2, 0.3]])
LABELS, OTHERS = np.array([2, IGNORED, 1, 0]), np.array([2, 1, 1, 0])
WEIGHTS = (0.5, 2.0, 1.0)
NUMBERS = np.array([[0, 0.75, 0], [4, 0.25, -3], [-2.5, 1, 1], [0, 0, 0]])
CHANCES = np.array([[0.2, 0.3, 0.5], [1, 0, 0], [0, 0.5, 0.5], [0.25, 0.25, 0.5]])
CASES = [
    (CrossEntropy(ignore_index=IGNORED), LABELS, 0.5974221205515292,
     [[0.058430130713, 0.013037524424, -0.071467655137], [0.0, 0.0, 0.0], [0.01170634232, -0.098205162434, 0.086498820114], [-0.233130131548, 0.110741664511, 0.122388467037]]),
    (CrossEntropy(ignore_index=IGNORED, weights=WEIGHTS), LABELS, 0.4400877583737577,
     [[0.050082969183, 0.011175020934, -0.061257990117], [0.0, 0.0, 0.0], [0.020068015405, -0.16835170703, 0.148283691624], [-0.099912913521, 0.047460713362, 0.052452200159]]),
    (CrossEntropy(ignore_index=IGNORED, label_smoothing=0.1), LABELS, 0.6885332316626402,
     [[0.047319019602, 0.001926413312, -0.049245432915], [0.0, 0.0, 0.0], [0.000595231209, -0.075982940212, 0.075387709003], [-0.210907909326, 0.0996305534, 0.111277355926]]),
    (CrossEntropy(ignore_index=IGNORED, weights=WEIGHTS, label_smoothing=0.1), LABELS, 0.5401069088772491,
     [[0.046155780574, -0.007686347764, -0.03846943281], [0.0, 0.0, 0.0], [0.014469943335, -0.147051338284, 0.132581394949], [-0.084663206752, 0.034741189429, 0.049922017323]]),
    (NegativeLogLikelihood(ignore_index=IGNORED, weights=WEIGHTS), LABELS, -1.157142857142857,
     [[0.0, 0.0, -0.285714285714], [0.0, 0.0, 0.0], [0.0, -0.571428571429, 0.0], [-0.142857142857, 0.0, 0.0]]),
    (CrossEntropy(ignore_index=1, weights=WEIGHTS, label_smoothing=0.2), OTHERS, 0.9559458736161668,
     [[0.098533381252, -0.061944671747, -0.036588709505], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.161964833294, 0.051383886159, 0.110580947136]]),
    (Huber(0.8), NUMBERS, 0.5433333333333333,
     [[0.041666666667, -0.066666666667, 0.066666666667], [-0.066666666667, 0.0, 0.066666666667], [0.041666666667, 0.0, -0.066666666667], [0.008333333333, 0.016666666667, 0.025]]),
    (SmoothL1(0.8), NUMBERS, 0.6791666666666667,
     [[0.052083333333, -0.083333333333, 0.083333333333], [-0.083333333333, 0.0, 0.083333333333], [0.052083333333, 0.0, -0.083333333333], [0.010416666667, 0.020833333333, 0.03125]]),
    (SmoothL1(0.0), NUMBERS, 0.9458333333333334,
     [[0.083333333333, -0.083333333333, 0.083333333333], [-0.083333333333, 0.0, 0.083333333333], [0.083333333333, 0.0, -0.083333333333], [0.083333333333, 0.083333333333, 0.083333333333]]),
    (KLDivergence(), CHANCES, 0.23917431499823816,
     [[-0.006177401965, -0.065221856682, 0.071399258647], [-0.074171505995, 0.050375706957, 0.023795799037], [0.00877975674, 0.051346128175, -0.060125884914], [0.012652401339, 0.020556248383, -0.033208649722]]),
    (KLDivergence(logits=False), CHANCES, -1.446880241366109,
     [[-0.05, -0.075, -0.125], [-0.25, 0.0, 0.0], [0.0, -0.125, -0.125], [-0.0625, -0.0625, -0.125]]),
    (Focal(ignore_index=IGNORED, weights=WEIGHTS), LABELS, 0.10446954218584283,
     [[0.006373500891, 0.001422120275, -0.007795621166], [0.0, 0.0, 0.0], [0.004652965437, -0.039033988075, 0.034381022638], [-0.099368207868, 0.04720196684, 0.052166241028]]),
    (Focal(ignore_index=IGNORED, weights=WEIGHTS, gamma=1), LABELS, 0.1936286593447743,
     [[0.020232337816, 0.004514444777, -0.024746782593], [0.0, 0.0, 0.0], [0.010852848951, -0.091045158681, 0.08019230973], [-0.105978222843, 0.050341861525, 0.055636361319]]),
    (Dice(ignore_index=IGNORED), LABELS, 0.2750850424714229,
     [[0.028423371382, 0.006351488616, -0.034774859999], [0.0, 0.0, 0.0], [0.0054623947, -0.042959049638, 0.037496654937], [-0.054624129184, 0.027915212002, 0.026708917182]]),
    (CrossEntropy(weights=WEIGHTS, label_smoothing=0.2), OTHERS, 0.9428520529947384,
     [[0.026872740341, -0.016894001386, -0.009978738956], [0.228377385947, -0.247983905875, 0.019606519929], [0.005645736259, -0.080023344252, 0.074377607993], [-0.044172227262, 0.014013787134, 0.030158440128]]),
    (CrossEntropy(label_smoothing=0.2), OTHERS, 0.9768878896976807,
     [[0.027155931368, -0.006888523349, -0.020267408019], [0.159161827339, -0.166290959709, 0.007129132371], [-0.007886909927, -0.040320538492, 0.048207448419], [-0.141514265328, 0.066389581717, 0.075124683611]]),
    (Focal(), OTHERS, 0.4126784843844309,
     [[0.00557681328, 0.00124435524, -0.00682116852], [0.202748547453, -0.230187579549, 0.027439032095], [0.002035672379, -0.017077369783, 0.015041697404], [-0.173894363768, 0.08260344197, 0.091290921798]]),
    (Dice(weights=WEIGHTS, smooth=0.5), OTHERS, 0.39533234227388087,
     [[0.019607082104, 0.007162407135, -0.026769489239], [0.029817524241, -0.038048052706, 0.008230528465], [0.005326144847, -0.056118541726, 0.050792396879], [-0.034112715488, 0.020947080059, 0.013165635429]]),
]  # fmt: skip


def with_weights(text, shape):
    """A model whose initializer `w` is zeros."""
    zeros = ", ".join("0" * int(np.prod(shape)))
    return sabir.parse(text.replace(" w>", f" w = {{{zeros}}}>"))


def descended(loss, x, target, text=PLUS, engine="reference", **options):
    """The loss and its gradient by what is added to the input."""
    model = prepare(with_weights(text, x.shape), loss, optimizer=SGD(1.0), **options)
    session = sabir.TrainingSession(model, engine=engine)
    found = session.step({"x": x, "label": target})["loss"]
    return found, -session.state["w"]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("loss", "target", "value", "gradient"), CASES, ids=str)
def test_values_and_gradients_are_those_of_pytorch(loss, target, value, gradient, engine):
    found, slope = descended(loss, X, target, engine=engine)
    np.testing.assert_allclose(found, value, rtol=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=2e-12)


@pytest.mark.parametrize("loss", [case[0] for case in CASES], ids=str)
def test_checkers_and_onnxruntime_accept_them(loss):
    text = PLUS.replace("double", "float")
    model = prepare(with_weights(text, (4, 3)), loss, optimizer=SGD(1.0))
    onnx.checker.check_model(onnx.load_from_string(sabir.dumps(model)), full_check=True)
    data = sabir.dumps(step_model(model))
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def test_a_softmax_that_computes_the_output_is_left_out():
    softmax = PLUS.replace("y = Add (x, w)", "z = Add (x, w)  y = Softmax (z)")
    for loss, target in (
        (CrossEntropy(ignore_index=IGNORED), LABELS),
        (Focal(ignore_index=IGNORED), LABELS),
        (Dice(ignore_index=IGNORED), LABELS),
        (KLDivergence(), CHANCES),
    ):
        for found, expected in zip(
            descended(loss, X, target, softmax), descended(loss, X, target), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_negative_log_likelihood_has_the_options_of_cross_entropy():
    options = {"ignore_index": IGNORED, "weights": WEIGHTS, "label_smoothing": 0.1}
    logs = PLUS.replace("y = Add (x, w)", "z = Add (x, w)  y = LogSoftmax (z)")
    found = descended(NegativeLogLikelihood(**options), X, LABELS, logs)
    for one, other in zip(found, descended(CrossEntropy(**options), X, LABELS), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    assert NegativeLogLikelihood() != CrossEntropy()


HALVES = [
    CrossEntropy(ignore_index=1, weights=WEIGHTS, label_smoothing=0.1), Focal(ignore_index=1), Dice(ignore_index=1),
    KLDivergence(), Huber(), SmoothL1(),
]  # fmt: skip


@pytest.mark.parametrize("loss", HALVES, ids=str)
def test_sums_of_many_elements_do_not_exceed_float16(loss):
    rows = 1 << 15
    many = np.tile(X, (rows, 1))
    if isinstance(loss, KLDivergence | Huber | SmoothL1):
        target = np.tile(CHANCES if isinstance(loss, KLDivergence) else NUMBERS, (rows, 1))
    else:
        target = np.tile(OTHERS, rows)
    text = PLUS.replace("double[4,3] w", "double[3] w = {0, 0, 0}")
    expected = sabir.TrainingSession(prepare(sabir.parse(text), loss)).step({"x": many, "label": target})[
        "loss"
    ]
    session = sabir.TrainingSession(
        prepare(sabir.parse(text.replace("double", "float16")), loss, optimizer=SGD(1.0))
    )
    feeds = {"x": many.astype("f2"), "label": target if target.dtype == np.int64 else target.astype("f2")}
    np.testing.assert_allclose(session.step(feeds)["loss"], expected, rtol=2e-3)
    assert np.isfinite(session.state["w"]).all()


IMAGES = np.random.default_rng(1).standard_normal((2, 3, 2, 2))
MARKS = np.array([[[0, 2], [1, IGNORED]], [[2, 2], [0, 1]]])
LAST = HEAD + "g (double[N,T,3] x) => (double[N,T,3] y) <double[2,4,3] w> { y = Add (x, w) }"
FIRST = HEAD + "g (double[N,3,H,W] x) => (double[N,3,H,W] y) <double[2,3,2,2] w> { y = Add (x, w) }"


@pytest.mark.parametrize(
    "loss", [CrossEntropy, NegativeLogLikelihood, Focal, Dice], ids=lambda kind: kind.__name__
)
def test_classes_of_images_and_of_tokens_are_those_of_a_matrix(loss):
    """The mean over all places is that of a matrix with a row for each place."""
    asked = loss(ignore_index=IGNORED, weights=WEIGHTS)
    rows, labels = IMAGES.transpose(0, 2, 3, 1).reshape(-1, 3), MARKS.reshape(-1)
    matrix = PLUS.replace("4,3", "8,3")
    value, slope = descended(asked, rows, labels, matrix)
    found, gradient = descended(asked, IMAGES, MARKS, FIRST)
    np.testing.assert_allclose(found, value)
    np.testing.assert_allclose(gradient.transpose(0, 2, 3, 1).reshape(-1, 3), slope, atol=1e-15)
    found, gradient = descended(asked, rows.reshape(2, 4, 3), labels.reshape(2, 4), LAST)
    np.testing.assert_allclose(found, value)
    np.testing.assert_allclose(gradient.reshape(-1, 3), slope, atol=1e-15)


def tokens(b):
    return b.MatMul(b.input("x", "double", [2, 4, 5]), b.initializer("w", np.zeros((5, 6))))


def biased(b):
    return b.Add(b.Reshape(b.initializer("bias", np.zeros(6)), [1, 1, 6]), tokens(b))


def chances(b):
    return b.Softmax(tokens(b), axis=1)


def images(b):
    return b.Relu(b.Conv(b.input("x", "double", [2, 4, 5, 5]), b.initializer("w", np.zeros((6, 4, 1, 1)))))


@pytest.mark.parametrize(
    ("build", "shape"), [(tokens, (2, 4)), (biased, (2, 4)), (chances, (2, 6)), (images, (2, 5, 5))]
)
def test_the_operators_of_a_model_tell_the_axis_of_the_classes(build, shape):
    b = sabir.Builder(21)
    b.output(build(b), "y")
    (target,) = prepare(b.model()).training[0].algorithm.inputs
    assert target.type == tensor_type("int64", shape)


def test_a_product_and_a_convolution_tell_no_axis():
    b = sabir.Builder(21)
    filters = b.initializer("k", np.zeros((4, 4, 1)))
    x = b.input("z", "double", [2, 4, 6])
    b.output(b.Add(b.Conv(x, filters), tokens(b)), "y")
    with pytest.raises(UnsupportedError, match="axis=1"):
        prepare(b.model())


def test_sizes_tell_the_axis_of_the_classes():
    for given, found in {
        ("N", 3): ["N"],
        ("N", "T", 9): ["N", "T"],
        ("N", 9, "H", "W"): ["N", "H", "W"],
    }.items():
        target = CrossEntropy().target(tensor_type("float", given))
        assert target == tensor_type("int64", found)


def test_an_axis_that_any_dimension_may_be_is_asked_for():
    text = HEAD + "g (double[2,4,3] x) => (double[2,4,3] y) <double[2,4,3] w> { y = Add (x, w) }"
    with pytest.raises(UnsupportedError, match=r"the output 'y' is double\[2,4,3\].*axis=-1"):
        prepare(with_weights(text, (2, 4, 3)))
    x, labels = IMAGES.reshape(2, 4, 3), MARKS.reshape(2, 4)
    asked = descended(CrossEntropy(axis=-1, ignore_index=IGNORED), x, labels, text)
    for one, other in zip(asked, descended(CrossEntropy(ignore_index=IGNORED), x, labels, LAST), strict=True):
        np.testing.assert_array_equal(one, other)
    softmax = text.replace("y = Add (x, w)", "z = Add (x, w)  y = Softmax (z)")
    with pytest.raises(UnsupportedError, match="axis 2 computes the output, and the loss has axis 1"):
        prepare(with_weights(softmax, (2, 4, 3)), CrossEntropy(axis=1))
    with pytest.raises(UnsupportedError, match="needs the axis 3"):
        prepare(with_weights(text, (2, 4, 3)), CrossEntropy(axis=3))
    for shape in (["N"], None):
        with pytest.raises(UnsupportedError, match="rank 2"):
            CrossEntropy().target(tensor_type("float", shape))


def test_ignored_labels():
    value, _ = descended(CrossEntropy(), X, OTHERS)
    with pytest.raises(EvaluationError, match="label"):
        descended(CrossEntropy(), X, LABELS)
    assert np.isfinite(value)
    every = np.full(4, IGNORED)
    assert np.isnan(descended(CrossEntropy(ignore_index=IGNORED), X, every)[0]), "a mean of nothing"
    # what is ignored may be a class
    kept = [0, 3]
    found, _ = descended(CrossEntropy(ignore_index=1), X, OTHERS)
    chosen, _ = descended(CrossEntropy(), X[kept], OTHERS[kept], PLUS.replace("4,3", "2,3"))
    np.testing.assert_allclose(found, chosen)


def test_a_loss_of_ones_own():
    def cubes(b, scores, target):
        return b.ReduceMean(b.Pow(b.Abs(b.Sub(scores, target)), np.array(3.0)), keepdims=0)

    for asked in (cubes, LossFunction(cubes)):
        found, slope = descended(asked, X, NUMBERS)
        error = X - NUMBERS
        np.testing.assert_allclose(found, (abs(error) ** 3).mean())
        np.testing.assert_allclose(slope, 3 * error * abs(error) / 12, atol=1e-15)
    hinge = LossFunction(
        lambda b, scores, target: b.ReduceMean(
            b.Relu(1.0 - b.GatherElements(scores, b.Unsqueeze(target, [1]), axis=1)), keepdims=0
        ),
        tensor_type("int64", ["N"]),
    )
    found, _ = descended(hinge, X, OTHERS)
    np.testing.assert_allclose(found, np.maximum(0, 1 - X[np.arange(4), OTHERS]).mean())
    for wrong in (
        lambda b, scores, target: b.Sub(scores, target),
        lambda b, scores, target: b.Size(b.Sub(scores, target)),
    ):
        with pytest.raises(UnsupportedError, match="it must be a scalar"):
            descended(wrong, X, NUMBERS)
    with pytest.raises(UnsupportedError, match="no accuracy"):
        descended(cubes, X, NUMBERS, metrics="accuracy")


def test_numbers_that_no_loss_can_have():
    for wrong in (
        lambda: CrossEntropy(label_smoothing=1.5), lambda: CrossEntropy(weights=[1, -1]), lambda: CrossEntropy(label_smoothing=float("nan")),
        lambda: Focal(gamma=0.5), lambda: Focal(weights=[-1]), lambda: Dice(smooth=0), lambda: Huber(0), lambda: SmoothL1(-1),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError):
            wrong()
    with pytest.raises(UnsupportedError, match="2 weights and 3 classes"):
        descended(CrossEntropy(weights=[1, 2]), X, OTHERS)


def test_every_loss_has_a_name():
    for name in ("huber", "smooth_l1", "kl", "focal", "dice"):
        target = OTHERS if name in {"focal", "dice"} else NUMBERS
        assert descended(name, X, target)[0] == descended(LOSSES[name], X, target)[0]
