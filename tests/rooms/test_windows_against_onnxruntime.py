# ruff: file-ignore[suspicious-non-cryptographic-random-usage]  seeds make the cases, nothing is secret
"""Convolutions and poolings of random geometry, against onnxruntime."""

import random

import numpy as np
import pytest

from sabir import dumps
from sabir.evaluation import Runner
from sabir.ir import Builder, minimum_ir, tensor_type
from sabir.opsets.families.windows import convolution

onnxruntime = pytest.importorskip("onnxruntime")


def geometry(draw):
    """Attributes and an input shape in which every window fits, and holds an element of the input."""
    rank = draw.choice((1, 2, 2, 3))
    kernel = [draw.randint(1, 4) for _ in range(rank)]
    dilations = [draw.choice((1, 1, 2)) for _ in range(rank)]
    lengths = [(k - 1) * d + draw.randint(1, 9) for k, d in zip(kernel, dilations, strict=True)]
    facts = {"kernel_shape": kernel, "strides": [draw.randint(1, k) for k in kernel]}
    way = draw.choice(("pads", "same", "valid"))
    if way == "pads":
        facts["pads"] = [draw.randint(0, k - 1) for k in kernel * 2]
    else:
        facts["auto_pad"] = draw.choice(("SAME_UPPER", "SAME_LOWER")) if way == "same" else "VALID"
    if way != "same":  # where onnxruntime pads by the kernel without its gaps
        facts["dilations"] = dilations
    return facts, lengths


def compare(operator, opset, inputs, outputs=1, **facts):
    b = Builder(opset)
    values = [b.input(f"i{i}", tensor_type(x.dtype, x.shape)) for i, x in enumerate(inputs)]
    made = b.op(operator, *values, outputs=outputs, **facts)
    for i, value in enumerate(made if outputs > 1 else (made,)):
        b.output(value, f"o{i}", tensor_type("int64" if i else inputs[0].dtype))
    model = b.model(ir_version=minimum_ir(21))
    feeds = {f"i{i}": x for i, x in enumerate(inputs)}
    quiet = onnxruntime.SessionOptions()
    quiet.intra_op_num_threads = 1
    expected = onnxruntime.InferenceSession(dumps(model), quiet).run(None, feeds)

    got = Runner(model).run(feeds)

    for ours, theirs in zip(got.values(), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(25))
def test_convolution(seed, monkeypatch):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    facts, lengths = geometry(draw)
    group, inner, outer = draw.choice((1, 1, 2, 4)), draw.randint(1, 3), draw.randint(1, 3)
    x = numbers.standard_normal((2, group * inner, *lengths)).astype(np.float32)
    w = numbers.standard_normal((group * outer, inner, *facts["kernel_shape"])).astype(np.float32)
    if seed % 2:  # several blocks, though the input is small
        monkeypatch.setattr(convolution, "_BLOCK", 1 << 9)
        monkeypatch.setattr(convolution, "_LARGEST_BLOCK", 1 << 9)

    compare("Conv", 11, [x, w, w[:, *(0,) * (w.ndim - 1)]], group=group, **facts)


@pytest.mark.parametrize("seed", range(25))
def test_max_pool(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    facts, lengths = geometry(draw)
    x = numbers.integers(-9, 9, (2, 3, *lengths)).astype(np.float32)

    compare("MaxPool", 12, [x], 2, storage_order=seed % 2, ceil_mode=draw.randint(0, 1), **facts)


@pytest.mark.parametrize("seed", range(25))
def test_average_pool(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    facts, lengths = geometry(draw)
    x = numbers.standard_normal((2, 3, *lengths)).astype(np.float32)

    compare("AveragePool", 19, [x], count_include_pad=seed % 2, ceil_mode=draw.randint(0, 1), **facts)
