"""Reductions, remainders, bits and losses on random arrays, held against onnxruntime."""

import numpy as np
import onnxruntime as ort
import pytest

import sabir
from sabir.evaluation import Runner
from sabir.ir import Builder, TensorType, minimum_ir, tensor_type

NATIVE_OPSET = 21
REDUCTIONS = [
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
]  # fmt: skip
SHAPES = [(2, 3, 4), (3, 1, 2), (4,)]
CALLS = [((2, 3, 4), [-1], 0), ((2, 3, 4), [0, 2], 1), ((3, 1, 2), [1], 0), ((4,), None, 1), ((), None, 0)]


def both(op, *arrays, opset=NATIVE_OPSET, outputs=1, known=(), **attributes):
    """What we and onnxruntime compute; the inputs numbered in `known` are initializers."""
    b = Builder(opset)
    feeds, inputs = {}, []
    for i, x in enumerate(arrays):
        if x is None:
            inputs.append(None)
        elif i in known:
            inputs.append(b.initializer(f"i{i}", x))
        else:
            feeds[f"i{i}"] = np.asarray(x)
            inputs.append(b.input(f"i{i}", tensor_type(feeds[f"i{i}"].dtype, feeds[f"i{i}"].shape)))
    made = b.op(op, *inputs, outputs=outputs, **attributes)
    for value in made if outputs > 1 else (made,):
        b.output(value)
    model = b.model(ir_version=minimum_ir(opset))
    model = sabir.infer(model)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(sabir.dumps(model), options, providers=["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.NotImplemented:
        pytest.skip("onnxruntime has no kernel for this type")
    got = list(Runner(model).run(feeds).values())
    for value, array in zip(model.graph.outputs, got, strict=True):
        assert isinstance(value.type, TensorType)
        assert value.type.shape == array.shape
    return got, session.run(None, feeds)


def agree(got, expected, rtol=1e-5, atol=1e-6):
    for g, e in zip(got, expected, strict=True):
        assert (g.dtype, g.shape) == (e.dtype, e.shape)
        if g.dtype.kind == "f":
            half = 2e-3 if g.dtype.itemsize == 2 else 0  # onnxruntime rounds some halves at every step
            np.testing.assert_allclose(
                g.astype(float), e.astype(float), rtol=max(rtol, half), atol=max(atol, half)
            )
        else:
            assert g.tolist() == e.tolist()


def some(rng, kind, shape):
    kind = np.dtype(kind)
    if kind.kind == "f":
        return np.asarray(rng.normal(0, 2, shape)).astype(kind)
    return np.asarray(rng.integers(1 if kind.kind == "u" else -3, 4, shape)).astype(kind)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op, kind):
    if op.startswith("ReduceLog") and np.dtype(kind).kind == "i":
        pytest.skip("the logarithms of integers are cut, and of these none is far from a whole number")
    rng = np.random.default_rng(1)
    for shape, axes, keepdims in CALLS:
        x = some(rng, kind, shape)
        x = np.abs(x) + 1 if op == "ReduceLogSum" else x
        given = () if axes is None else (np.array(axes),)
        agree(*both(op, x, *given, keepdims=keepdims, opset=18, known=(1,)))
        agree(*both(op, x, keepdims=keepdims, axes=axes, opset=11 if op == "ReduceSum" else 13))
    agree(*both(op, x, noop_with_empty_axes=1, opset=18))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_small_types(op, kind):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (3, 4)).astype(kind)
    for keepdims in (0, 1):
        agree(*both(op, x, np.array([1]), keepdims=keepdims, opset=20, known=(1,)))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places_of_extremes(op, kind):
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        x = np.asarray(rng.integers(0, 3, shape)).astype(kind)
        for axis, keepdims, last in ((0, 1, 0), (-1, 0, 1), (len(shape) - 1, 1, 0)):
            agree(*both(op, x, axis=axis, keepdims=keepdims, select_last_index=last))


@pytest.mark.parametrize(
    "kind", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.float32, np.float64, np.float16]
)
def test_remainders(kind):
    rng = np.random.default_rng(4)
    number = np.dtype(kind)
    a = some(rng, kind, (200,)) * 5 if number.kind == "f" else rng.integers(0, 100, 200).astype(kind)
    b = some(rng, kind, (200,))
    if number.kind == "i":
        a *= np.where(rng.random(200) < 0.5, -1, 1).astype(kind)
        b[b == 0] = 3  # this ends the process that onnxruntime runs in, as -1 may
    for fmod in (0, 1):
        if fmod or number.kind != "f":
            agree(*both("Mod", a, b, fmod=fmod), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(kind, direction):
    rng = np.random.default_rng(5)
    limits = np.iinfo(kind)
    x = rng.integers(0, limits.max, (50, 1), dtype=kind, endpoint=True)
    agree(*both("BitShift", x, np.arange(limits.bits).astype(kind), direction=direction))


@pytest.mark.parametrize(
    "kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_bits(kind):
    rng = np.random.default_rng(6)
    limits = np.iinfo(kind)
    a, b = (rng.integers(limits.min, limits.max, s, dtype=kind, endpoint=True) for s in ((5, 1), (7,)))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        agree(*both(op, a, b))
    agree(*both("BitwiseNot", a))


def test_comparisons_logic_and_means():
    rng = np.random.default_rng(7)
    for kind in (np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8):
        a, b = some(rng, kind, (3, 1, 4)), some(rng, kind, (5, 1))
        for op in ("Greater", "Less", "Min"):
            agree(*both(op, a, b))
    a, b = rng.random((3, 1)) < 0.5, rng.random(4) < 0.5
    for op in ("Or", "Xor"):
        agree(*both(op, a, b))
    agree(*both("Mean", *(some(rng, np.float32, s) for s in ((2, 1), (3,), ()))))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_along_an_axis(kind):
    x = some(np.random.default_rng(8), kind, (2, 3, 4))
    for opset in (8, 11, 13):
        for axis in (0, 1, 2, *((-1, -2) if opset > 8 else ())):
            agree(*both("LogSoftmax", x, axis=axis, opset=opset))
            agree(*both("Hardmax", x, axis=axis, opset=opset))
            for p in (1, 2):
                agree(*both("LpNormalization", x, axis=axis, p=p, opset=opset))


def test_mean_variance_normalization():
    x = some(np.random.default_rng(9), np.float32, (2, 3, 4, 5))
    agree(*both("MeanVarianceNormalization", x, opset=13), rtol=1e-4, atol=1e-5)
    agree(*both("MeanVarianceNormalization", x, axes=[1, 2, 3], opset=9), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(op, reduction):
    rng = np.random.default_rng(10)
    outputs = 1 + (op == "SoftmaxCrossEntropyLoss")
    for index, places, ignored in ((np.int64, (), None), (np.int32, (4,), 1), (np.int64, (2, 3), -1)):
        scores = some(rng, np.float32, (3, 5, *places))
        labels = rng.integers(0, 5, (3, *places)).astype(index)
        marked = np.where(labels == 2, -1, labels) if ignored == -1 else labels
        for weights in ((), (rng.random(5).astype(np.float32),)):
            call = {"reduction": reduction, "ignore_index": ignored, "outputs": outputs}
            agree(*both(op, scores, marked, *weights, opset=13, **call))
