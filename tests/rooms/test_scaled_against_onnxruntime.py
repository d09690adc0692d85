"""onnxruntime's operators on quantized tensors, on random numbers: all integers equal, in both engines."""

from typing import Any

import numpy as np
import pytest

from sabir import dumps
from sabir.ir import Attribute, Builder, minimum_ir, tensor_type
from sabir.runtime import Session

onnxruntime = pytest.importorskip("onnxruntime")
SEEDS = range(6)
SCALES = np.float32([0.1, 0.05, 0.02, 0.3, 0.7, 1 / 64, 1 / 256])


class Draw:
    """Random operands of one element type; few different scales, so that ties are frequent."""

    def __init__(self, seed):
        self.numbers = np.random.default_rng(seed)
        self.kind = self.byte()

    def byte(self):
        return (np.uint8, np.int8)[int(self.numbers.integers(2))]

    def tensor(self, *shape, kind=None):
        limits = np.iinfo(kind or self.kind)
        return self.numbers.integers(limits.min, limits.max + 1, shape).astype(kind or self.kind)

    def scale(self, *shape):
        return self.numbers.choice(SCALES, shape) if shape else self.numbers.choice(SCALES)

    def parameters(self):
        return self.scale(), self.tensor()

    def size(self, most=9):
        return int(self.numbers.integers(1, most))


def both(engine, operator, inputs, kind, **attributes):
    """What Sabir and onnxruntime compute of a call; the first input is fed, the others are constants."""
    b = Builder(18, opsets={"com.microsoft": 1})
    fed = next(i for i, x in enumerate(inputs) if x is not None and x.ndim)
    values = [None if x is None else b.initializer(f"i{i}", x) for i, x in enumerate(inputs)]
    values[fed] = b.input("fed", tensor_type(inputs[fed].dtype, inputs[fed].shape))
    typed: dict[str, Any] = {
        name: Attribute(name, "float", value) if isinstance(value, float) else Attribute.of(name, value)
        for name, value in attributes.items()
    }
    b.output(b.op(operator, *values, domain="com.microsoft", **typed), "y", tensor_type(kind))
    model, feeds = b.model(ir_version=minimum_ir(21)), {"fed": inputs[fed]}
    quiet = onnxruntime.SessionOptions()
    quiet.intra_op_num_threads = 1
    quiet.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (theirs,) = onnxruntime.InferenceSession(dumps(model), quiet).run(None, feeds)
    return Session(model, engine=engine).run(feeds)["y"], theirs


def arrays(*operands):
    return [None if x is None else np.asarray(x) for x in operands]


def same(pair):
    ours, theirs = pair
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(operator, seed, engine):
    draw = Draw(seed)
    shapes = [((3, 5, 70), (3, 5, 70)), ((64, 1), (1, 33)), ((7, 40), ()), ((1,), (2, 31))]
    for a, b in shapes:
        operands = draw.tensor(*a), *draw.parameters(), draw.tensor(*b), *draw.parameters()
        same(both(engine, operator, arrays(*operands, *draw.parameters()), draw.kind))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("operator", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_functions(operator, seed, engine):
    draw = Draw(seed)
    alpha = {"alpha": 0.3} if operator == "QLinearLeakyRelu" else {}
    x = np.arange(256).astype(np.uint8).view(draw.kind).reshape(2, 128)
    for _ in range(4):
        same(both(engine, operator, arrays(x, *draw.parameters(), *draw.parameters()), draw.kind, **alpha))


@pytest.mark.parametrize("seed", SEEDS)
def test_joins_and_choices(seed, engine):
    draw = Draw(seed)
    triples = [(draw.tensor(3, n, 4), *draw.parameters()) for n in (1, 5, 8)]
    joined = arrays(*draw.parameters(), *(part for triple in triples for part in triple))
    same(both(engine, "QLinearConcat", joined, draw.kind, axis=1))
    condition = draw.numbers.random((3, 1, 4)) < 0.5
    chosen = arrays(condition, *triples[0], *triples[1], *draw.parameters())
    same(both(engine, "QLinearWhere", chosen, draw.kind))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("last", [0, 1])
def test_poolings(seed, last, engine):
    draw = Draw(seed)
    x = draw.tensor(2, 6, 8, 7)
    operands = arrays(x.transpose(0, 2, 3, 1) if last else x, *draw.parameters(), *draw.parameters())
    same(both(engine, "QLinearGlobalAveragePool", operands, draw.kind, channels_last=last))
    kernel = [draw.size(4), draw.size(4)]
    window = {
        "kernel_shape": kernel,
        "strides": [draw.size(3), draw.size(3)],
        "pads": [int(draw.numbers.integers(0, k)) for k in (*kernel, *kernel)],
        "ceil_mode": seed % 2,
        "count_include_pad": seed // 2 % 2,
        "channels_last": last,
    }
    same(both(engine, "QLinearAveragePool", operands, draw.kind, **window))


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax(seed, engine):
    """With a step of 1/256, as quantizers write; its ties are those of an even number of equal elements."""
    draw = Draw(seed)
    to = np.float32(1 / 256), draw.kind(np.iinfo(draw.kind).min)
    for shape in ((4, 5, 64), (3, 999), (64, 2)):
        operands = arrays(draw.tensor(*shape), *draw.parameters(), *to)
        same(both(engine, "QLinearSoftmax", operands, draw.kind, opset=13))


@pytest.mark.parametrize("seed", SEEDS)
def test_products(seed, engine):
    draw = Draw(seed)
    weight = np.int8 if draw.kind is np.int8 else draw.byte()
    rows, depth, columns = draw.size(20), draw.size(90), draw.size(40)
    a, b = draw.tensor(rows, depth), draw.tensor(depth, columns, kind=weight)
    scale, zero = draw.scale(columns), draw.tensor(columns, kind=weight)
    bias = draw.numbers.integers(-9999, 9999, columns).astype(np.int32)
    operands = arrays(a.T.copy(), *draw.parameters(), b, scale, zero, bias, np.float32(50), draw.tensor())
    same(both(engine, "QGemm", operands, draw.kind, transA=1, alpha=0.7))
    wide = arrays(a, b, draw.scale(), scale, draw.tensor(), zero, bias.astype(np.float32))
    ours, theirs = both(engine, "MatMulIntegerToFloat", wide, np.float32)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-3)
    floats = arrays(draw.numbers.standard_normal((rows, depth)).astype(np.float32), b, scale, zero)
    ours, theirs = both(engine, "DynamicQuantizeMatMul", floats, np.float32)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_convolutions_with_channels_last(seed, engine):
    draw = Draw(seed)
    weight = np.int8 if draw.kind is np.int8 else draw.byte()
    group = int(draw.numbers.choice([1, 2, 8]))
    w = draw.tensor(16, 8 // group, 3, 2, kind=weight)
    scale, bias = draw.scale(16), draw.numbers.integers(-999, 999, 16).astype(np.int32)
    zero = np.full(16, draw.tensor(kind=weight))
    operands = arrays(
        draw.tensor(2, 9, 7, 8), *draw.parameters(), w, scale, zero, np.float32(90), draw.tensor(), bias
    )
    pads = [1, 0, 1, 1]
    same(both(engine, "QLinearConv", operands, draw.kind, channels_last=1, group=group, pads=pads))
