"""Elementwise operators on random arrays, held against onnxruntime."""

import numpy as np
import onnxruntime as ort
import pytest

import sabir
from sabir.evaluation import Runner
from sabir.ir import Builder, TensorType, minimum_ir, tensor_type

NATIVE_OPSET = 21
SHAPES = [((3, 4), (3, 4)), ((2, 1, 4), (3, 1)), ((), (2, 3)), ((0, 3), (1, 3)), ((5,), (1,))]
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
NUMBERS = (np.float16, np.float32, np.float64, *SIGNED, *UNSIGNED)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e30, -1e-30]


def both(op, *arrays, opset=NATIVE_OPSET, outputs=1, **attributes):
    b = Builder(opset)
    feeds = {f"i{i}": np.asarray(x) for i, x in enumerate(arrays) if x is not None}
    inputs = [
        None if x is None else b.input(f"i{i}", tensor_type(feeds[f"i{i}"].dtype, feeds[f"i{i}"].shape))
        for i, x in enumerate(arrays)
    ]
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
    return list(Runner(model).run(feeds).values()), session.run(None, feeds), model


def agree(got, expected, rtol=1e-6):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if got.dtype.kind == "f":
        np.testing.assert_allclose(
            got.astype(np.float64), expected.astype(np.float64), rtol=max(rtol, np.finfo(got.dtype).eps)
        )
    else:
        assert got.tolist() == expected.tolist()


def random(rng, dtype, shape):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind == "f":
        x = np.asarray(rng.normal(0, 3, shape))
        chosen = np.asarray(rng.random(shape) < 0.3)
        with np.errstate(over="ignore"):
            return np.where(chosen, rng.choice(SPECIAL, shape), x).astype(kind)
    limits = np.iinfo(kind)
    small = rng.integers(max(limits.min, -9), 10, shape)
    wide = rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    return np.where(np.asarray(rng.random(shape) < 0.7), small, wide).astype(kind)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Equal", "GreaterOrEqual", "LessOrEqual", "Max"])
def test_binary_operators(op, dtype):
    rng = np.random.default_rng(7)
    for left, right in SHAPES:
        a, b = random(rng, dtype, left), random(rng, dtype, right)
        if op == "Div" and np.dtype(dtype).kind in "iu":
            b = np.where(np.isin(b, [0, -1]), 3, b).astype(
                dtype
            )  # these end the process that onnxruntime runs in
        got, expected, model = both(op, a, b)
        agree(got[0], expected[0])
        kind = model.graph.outputs[0].type
        assert isinstance(kind, TensorType)
        assert kind.shape == got[0].shape


@pytest.mark.parametrize("op", ["Sum", "Max"])
def test_three_inputs(op):
    rng = np.random.default_rng(8)
    for dtype in (np.float32, np.float64):
        arrays = [random(rng, dtype, s) for s in ((2, 1, 3), (4, 1), (1,))]
        got, expected, _ = both(op, *arrays)
        agree(got[0], expected[0], rtol=1e-5)


def test_logic_and_choice():
    rng = np.random.default_rng(9)
    for left, right in SHAPES:
        a, b = random(rng, np.bool_, left), random(rng, np.bool_, right)
        for call in (("And", a, b), ("Not", a), ("Equal", a, b)):
            got, expected, _ = both(*call)
            agree(got[0], expected[0])
        for dtype in (np.float32, np.int64, np.uint8):
            got, expected, _ = both("Where", a, random(rng, dtype, right), random(rng, dtype, (1,)))
            agree(got[0], expected[0])


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("Tanh", np.float32),
        ("Tanh", np.float64),
        ("Erf", np.float32),
        ("IsNaN", np.float32),
        ("IsNaN", np.float16),
    ],
)
def test_unary_operators(op, dtype):
    x = random(np.random.default_rng(10), dtype, (500,))
    got, expected, _ = both(op, x)
    agree(got[0], expected[0], rtol=2e-6)


@pytest.mark.parametrize("exponent", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("base", [np.float32, np.float64, np.int32, np.int64])
def test_powers(base, exponent):
    rng = np.random.default_rng(11)
    x = rng.integers(-5, 6, (4, 3)).astype(base)
    for y in (
        np.array(2),
        np.array(3),
        np.array([0.5]),
        np.array([[0], [1], [4], [-1]]),
        np.array([1, 2, 5]),
    ):
        if np.dtype(exponent).kind == "i" and y.dtype.kind == "f":
            continue
        if np.dtype(base).kind == "i" and y.dtype.kind == "f":
            x = np.abs(x)  # no integer holds the NaN that a negative base gives
        got, expected, _ = both("Pow", x, y.astype(exponent), opset=15)
        agree(got[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_clip(dtype):
    x = np.clip(
        random(np.random.default_rng(12), dtype, (3, 20)), 0 if np.dtype(dtype).kind == "u" else -100, 100
    )
    for low, high in ((2, 5), (5, 2), (None, 3), (1, None)):
        limits = [None if v is None else np.array(v, dtype) for v in (low, high)]
        got, expected, _ = both("Clip", x, *limits, opset=13)
        agree(got[0], expected[0])


NAMES = [
    "float16",
    "float",
    "double",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "string",
]


@pytest.mark.parametrize("source", NAMES)
def test_casts(source):
    rng = np.random.default_rng(13)
    dtype = tensor_type(source).element.dtype
    x = np.array(["1", "-2", "300", "70000"], object) if source == "string" else random(rng, dtype, (5, 7))
    if np.dtype(dtype).kind == "f":
        x = np.where(np.abs(x) < 100, x, np.array(7, dtype)).astype(
            dtype
        )  # beyond, the standard leaves integers open
    for target in NAMES:
        got, expected, _ = both("Cast", x, to=tensor_type(target).element.number)
        agree(got[0], expected[0])


@pytest.mark.parametrize("target", ["int32", "int64"])
def test_floats_beyond_the_range_of_integers(target):
    x = np.array([3e9, -3e9, 1e19, -1e19, np.inf, -np.inf, np.nan, -0.9, 2147483647.5])
    for dtype in (np.float32, np.float64):
        got, expected, _ = both("Cast", x.astype(dtype), to=tensor_type(target).element.number)
        agree(got[0], expected[0])


def test_inference_mode_of_dropout():
    x = random(np.random.default_rng(14), np.float32, (4, 5))
    for opset in (12, 13):
        got, expected, _ = both("Dropout", x, outputs=2, opset=opset)
        agree(got[0], expected[0])
        agree(got[1], expected[1])
