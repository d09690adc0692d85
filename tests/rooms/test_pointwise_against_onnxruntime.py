"""Functions of one element at a time on random arrays, held against onnxruntime."""

import numpy as np
import onnxruntime as ort
import pytest

import sabir
from sabir.evaluation import Runner
from sabir.ir import Builder, minimum_ir, tensor_type

FLOATS = (np.float32, np.float64, np.float16)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 1e30, -1e-30, 100.0, -100.0]
CALLS = [
    *(
        (op, {})
        for op in [
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Cos",
            "Cosh",
            "Exp",
            "Log",
            "Sin",
            "Sinh",
            "Sqrt",
            "Tan",
        ]
    ),
    *(
        (op, {})
        for op in [
            "Ceil",
            "Floor",
            "HardSwish",
            "Mish",
            "Reciprocal",
            "Round",
            "Sigmoid",
            "Softplus",
            "Softsign",
        ]
    ),
    *((op, {}) for op in ("Abs", "Neg", "Sign", "Gelu", "Selu", "HardSigmoid", "IsInf", "Shrink")),
    ("Celu", {"alpha": 0.7}),
    ("Elu", {"alpha": 1.3}),
    ("Gelu", {"approximate": "tanh"}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("IsInf", {"detect_positive": 0}),
    ("LeakyRelu", {"alpha": 0.2}),
    ("Selu", {"alpha": 1.1, "gamma": 0.9}),
    ("Shrink", {"lambd": 1.5, "bias": 1.5}),
    ("ThresholdedRelu", {"alpha": 0.3}),
]


def both(op, *arrays, opset=22, **attributes):
    b = Builder(opset)
    inputs = [b.input(f"i{i}", tensor_type(x.dtype, x.shape)) for i, x in enumerate(arrays)]
    b.output(b.op(op, *inputs, **attributes))
    model = b.model(ir_version=minimum_ir(opset))
    model = sabir.infer(model)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(sabir.dumps(model), options, providers=["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    feeds = {f"i{i}": x for i, x in enumerate(arrays)}
    return next(iter(Runner(model).run(feeds).values())), session.run(None, feeds)[0]


def agree(got, expected):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    tolerance = max(2e-6, 2 * float(np.finfo(got.dtype).eps))
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
    )


def random(rng, dtype, shape):
    if np.dtype(dtype).kind == "f":
        x = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), rng.normal(0, 3, shape))
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    limits = np.iinfo(dtype)
    wide = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.7, rng.integers(max(limits.min, -9), 10, shape), wide).astype(dtype)


@pytest.mark.parametrize(("op", "attributes"), CALLS)
def test_floats(op, attributes):
    rng = np.random.default_rng(20)
    compared = 0
    for dtype in (np.float32,) if op == "Celu" else FLOATS:
        for shape in ((), (0, 3), (20, 30)):
            x = random(rng, dtype, shape)
            if op == "Sign":
                x = np.asarray(np.nan_to_num(x))  # of a float16 NaN onnxruntime makes 0, of any other NaN
            found = both(op, x, **attributes)
            if found is not None:
                agree(*found)
                compared += 1
    assert compared


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["Abs", "Neg", "Sign", "Relu"])
def test_integers(op, dtype):
    if np.dtype(dtype).kind == "u" and op in {"Neg", "Relu"}:
        return
    found = both(op, random(np.random.default_rng(21), dtype, (20, 30)))
    if found is not None:
        agree(*found)


@pytest.mark.parametrize(("x", "slope"), [((2, 3, 4), (3, 1)), ((2, 3, 4), (4,)), ((3, 4), (3, 4)), ((), ())])
def test_slopes(x, slope):
    rng = np.random.default_rng(22)
    for dtype in (np.float32, np.float64, np.int64):
        for opset in (9, 16):
            found = both("PRelu", random(rng, dtype, x), random(rng, dtype, slope), opset=opset)
            if found is not None:
                agree(*found)
