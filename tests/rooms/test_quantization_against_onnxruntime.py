# ruff: file-ignore[suspicious-non-cryptographic-random-usage]  seeds make the cases, nothing is secret
"""Quantized products and conversions on random numbers, against onnxruntime."""

import random

import ml_dtypes
import numpy as np
import pytest

from sabir import dumps
from sabir.evaluation import Runner
from sabir.ir import Builder, minimum_ir, tensor_type

onnxruntime = pytest.importorskip("onnxruntime")
NATIVE = "biuf"


def both(operator, opset, inputs, outputs=("uint8",), **facts):
    """What Sabir and onnxruntime give; types that onnxruntime takes no feeds of are initializers."""
    b = Builder(opset)
    values, feeds = [], {}
    for i, x in enumerate(inputs):
        if x is not None and np.asarray(x).dtype.kind in NATIVE:
            feeds[f"i{i}"] = np.asarray(x)
            values.append(b.input(f"i{i}", tensor_type(np.asarray(x).dtype, np.shape(x))))
        else:
            values.append(None if x is None else b.initializer(f"i{i}", x))
    made = b.op(operator, *values, outputs=len(outputs), **facts)
    for i, value in enumerate(made if len(outputs) > 1 else (made,)):
        b.output(value, f"o{i}", tensor_type(outputs[i]))
    model = b.model(ir_version=minimum_ir(21))
    quiet = onnxruntime.SessionOptions()
    quiet.intra_op_num_threads = 1
    quiet.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = onnxruntime.InferenceSession(dumps(model), quiet).run(None, feeds)
    return list(Runner(model).run(feeds).values()), expected


def same(pair):
    for ours, theirs in zip(*pair, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def integers(numbers, shape, kind):
    limits = np.iinfo(kind)
    return numbers.integers(limits.min, limits.max, shape, kind, endpoint=True)


KINDS = [np.uint8, np.int8]


@pytest.mark.parametrize("seed", range(24))
def test_quantize_and_back(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    kind = draw.choice([*KINDS, np.uint16, np.int16])
    shape = [draw.randint(1, 7) for _ in range(3)]
    axis = draw.randint(-3, 2)
    parameters = draw.choice([(), (shape[axis],)])
    facts = {"axis": axis}
    if seed % 3 == 0:
        facts["block_size"] = draw.randint(1, shape[axis])
        parameters = list(shape)
        parameters[axis] = -(-shape[axis] // facts["block_size"])
    scale = numbers.uniform(0.001, 0.3, parameters).astype(np.float32)
    zero = integers(numbers, parameters, kind)
    x = (numbers.standard_normal(shape) * 10 ** draw.uniform(-1, 5)).astype(np.float32)
    name = np.dtype(kind).name

    same(both("QuantizeLinear", 21, [x, scale, zero], (name,), **facts))
    same(both("DequantizeLinear", 21, [integers(numbers, shape, kind), scale, zero], ("float",), **facts))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_quantize_to_floats_of_8_bits(name, saturate):
    x = (np.random.default_rng(0).standard_normal(999) * 2000).astype(np.float32)
    x = x[np.abs(np.abs(x / 1.7) - 488) > 24]  # of 480, beyond float8_e4m3fn, onnxruntime makes 448
    zero = np.zeros((), getattr(ml_dtypes, name))
    b = Builder(19)
    made = b.QuantizeLinear(
        b.input("x", "float", x.shape),
        b.initializer("s", np.float32(1.7)),
        b.initializer("z", zero),
        saturate=saturate,
    )
    b.output(b.Cast(made, to=1), "y", tensor_type("float"))
    model = b.model(ir_version=minimum_ir(21))

    expected = onnxruntime.InferenceSession(dumps(model)).run(None, {"x": x})

    np.testing.assert_array_equal(Runner(model).run({"x": x})["y"], expected[0])


@pytest.mark.parametrize("seed", range(8))
def test_dynamic_quantization(seed):
    numbers = np.random.default_rng(seed)
    x = (numbers.standard_normal((5, 7)) * 30 + 20 * (seed - 4)).astype(np.float32)

    same(both("DynamicQuantizeLinear", 11, [x], ("uint8", "float", "uint8")))


@pytest.mark.parametrize("seed", range(16))
def test_matrix_products(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    left, right = draw.choice([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    inner = draw.choice([1, 3, 40, 700])
    a = integers(numbers, (*draw.choice([(), (3,)]), draw.randint(1, 5), inner), left)
    b = integers(numbers, (inner, draw.randint(1, 5)), right)
    zeros = integers(numbers, (), left), integers(numbers, draw.choice([(), b.shape[1:]]), right)
    scales = numbers.uniform(0.001, 0.05, 3).astype(np.float32)
    columns = numbers.uniform(0.001, 0.05, zeros[1].shape).astype(np.float32)
    zero = integers(numbers, (), left)

    same(both("MatMulInteger", 10, [a, b, *zeros], ("int32",)))
    call = [a, scales[0], zeros[0], b, columns, zeros[1], scales[2] * np.float32(inner), zero]
    same(both("QLinearMatMul", 10, call, (np.dtype(left).name,)))


@pytest.mark.parametrize("seed", range(16))
def test_convolutions(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    left, right = draw.choice([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    group, inner, outer = draw.choice((1, 1, 2, 4)), draw.choice([1, 3, 60]), draw.randint(1, 3)
    x = integers(numbers, (2, group * inner, 7, 6), left)
    w = integers(numbers, (group * outer, inner, draw.randint(1, 3), draw.randint(1, 3)), right)
    facts = {
        "group": group,
        "strides": [draw.randint(1, 2)] * 2,
        "pads": [draw.randint(0, k - 1) for k in w.shape[2:] * 2],
    }
    x_zero, scale = integers(numbers, (), left), numbers.uniform(0.001, 0.1, 2).astype(np.float32)
    scales = numbers.uniform(0.001, 0.1, draw.choice([(), (len(w),)])).astype(np.float32)
    if left == np.uint8:
        same(both("ConvInteger", 10, [x, w, x_zero, integers(numbers, (), right)], ("int32",), **facts))
    filters = w, scales, np.zeros_like(scales, right)  # onnxruntime takes but one zero point for them
    call = [x, scale[0], x_zero, *filters, scale[1], x_zero, numbers.integers(-9999, 9999, len(w), np.int32)]
    same(both("QLinearConv", 10, call, (np.dtype(left).name,), **facts))
