# ruff: file-ignore[suspicious-non-cryptographic-random-usage]  seeds make the cases, nothing is secret
"""What lays windows over its output, regions, and norms, of random geometry, against onnxruntime."""

import random

import numpy as np
import pytest

from sabir import dumps
from sabir.evaluation import Runner
from sabir.ir import Builder, minimum_ir, tensor_type

onnxruntime = pytest.importorskip("onnxruntime")


def compare(operator, opset, inputs, tolerance=1e-4, **facts):
    b = Builder(opset)
    values = [
        None if x is None else b.input(f"i{i}", tensor_type(x.dtype, x.shape)) for i, x in enumerate(inputs)
    ]
    b.output(b.op(operator, *values, **facts), "o", tensor_type(inputs[0].dtype))
    model = b.model(ir_version=minimum_ir(21))
    feeds = {f"i{i}": x for i, x in enumerate(inputs) if x is not None}
    quiet = onnxruntime.SessionOptions()
    quiet.intra_op_num_threads = 1
    (expected,) = onnxruntime.InferenceSession(dumps(model), quiet).run(None, feeds)

    got = Runner(model).run(feeds)["o"]

    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def floats(numbers, *shape):
    return numbers.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("seed", range(30))
def test_transposed_convolution(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    rank = draw.choice((1, 2, 2, 3))
    kernel, lengths = ([draw.randint(1, 4) for _ in range(rank)] for _ in range(2))
    strides, dilations = ([draw.randint(1, 3) for _ in range(rank)] for _ in range(2))
    facts = {"strides": strides, "dilations": dilations, "group": draw.choice((1, 1, 2, 4))}
    whole = [
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(lengths, strides, kernel, dilations, strict=True)
    ]
    added = [draw.randint(0, s - 1) for s in strides]
    facts["output_padding"] = added
    way = draw.choice(("pads", "same", "shape"))
    if way == "pads":
        facts["pads"] = [draw.randint(0, (w - 1) // 2) for w in whole * 2]
    elif way == "same":
        facts["auto_pad"] = draw.choice(("SAME_UPPER", "SAME_LOWER"))
    else:
        facts["output_shape"] = [
            draw.randint(max(1, w - 3), w + a) for w, a in zip(whole, added, strict=True)
        ]
        facts["auto_pad"] = draw.choice(("SAME_UPPER", "SAME_LOWER", "NOTSET"))
    inner, outer = facts["group"] * draw.randint(1, 3), draw.randint(1, 3)
    x, w = floats(numbers, 2, inner, *lengths), floats(numbers, inner, outer, *kernel)

    compare("ConvTranspose", draw.choice((7, 11)), [x, w, floats(numbers, outer * facts["group"])], **facts)


@pytest.mark.parametrize("seed", range(15))
def test_col2im(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    rank = 2  # with three axes onnxruntime mixes up strides and padding
    block, strides, dilations = ([draw.randint(1, 3) for _ in range(rank)] for _ in range(3))
    pads = [draw.randint(0, 2) for _ in range(2 * rank)]
    image = [(k - 1) * d + 1 + draw.randint(0, 4) for k, d in zip(block, dilations, strict=True)]
    places = [
        (n + pads[i] + pads[i + rank] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i, n in enumerate(image)
    ]
    x = floats(numbers, 2, 3 * np.prod(block), np.prod(places))

    compare(
        "Col2Im", 18, [x, np.array(image), np.array(block)], strides=strides, dilations=dilations, pads=pads
    )


@pytest.mark.parametrize("seed", range(15))
def test_lp_pool(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    rank = draw.choice((1, 2, 3))
    kernel = [draw.randint(1, 4) for _ in range(rank)]
    x = floats(numbers, 2, 3, *(k + draw.randint(0, 6) for k in kernel))
    facts = {"kernel_shape": kernel, "strides": [draw.randint(1, k) for k in kernel], "p": draw.randint(1, 4)}
    if seed % 2:
        facts["auto_pad"] = draw.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        facts["pads"] = [draw.randint(0, k - 1) for k in kernel * 2]

    compare("LpPool", draw.choice((2, 11, 18)), [x], **facts)
    compare("GlobalLpPool", 2, [x], p=facts["p"])


@pytest.mark.parametrize("seed", range(20))
def test_regions(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    x = floats(numbers, 3, 2, draw.randint(1, 9), draw.randint(1, 9))
    corners = numbers.uniform(-3, 9, (6, 4)).astype(np.float32)
    # of a region without extent, onnxruntime takes samples of its own
    corners[:, 2:] = corners[:, :2] + numbers.uniform(0.5, 9, (6, 2)).astype(np.float32)
    items = numbers.integers(0, 3, 6)
    facts = {"spatial_scale": draw.choice((1.0, 0.5, 2.0))}
    bins = {"output_height": draw.randint(1, 4), "output_width": draw.randint(1, 4)}
    rest = {"sampling_ratio": draw.randint(0, 3), "mode": draw.choice(("avg", "max"))}
    way = draw.choice(("half_pixel", "output_half_pixel"))
    rows = np.concatenate([items[:, None].astype(np.float32), corners], axis=1)

    compare("RoiAlign", 10, [x, corners, items], **facts, **bins, **rest)
    compare("RoiAlign", 16, [x, corners, items], **facts, **bins, **rest, coordinate_transformation_mode=way)
    compare("MaxRoiPool", 1, [x, rows], **facts, pooled_shape=[draw.randint(1, 4), draw.randint(1, 4)])


@pytest.mark.parametrize("seed", range(15))
def test_deformed_convolution(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    kernel, strides, dilations = ([draw.randint(1, 3) for _ in range(2)] for _ in range(3))
    pads = [draw.randint(0, 2) for _ in range(4)]
    lengths = [(k - 1) * d + draw.randint(1, 5) for k, d in zip(kernel, dilations, strict=True)]
    group, aside = draw.choice((1, 2)), draw.choice((1, 2))
    places = [
        (n + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i, n in enumerate(lengths)
    ]
    x, w = floats(numbers, 2, 4, *lengths), floats(numbers, 2 * group, 4 // group, *kernel)
    mask = floats(numbers, 2, aside * kernel[0] * kernel[1], *places)
    offset = floats(numbers, 2, 2 * mask.shape[1], *places) * 2
    facts = {"strides": strides, "dilations": dilations, "pads": pads, "group": group, "offset_group": aside}

    compare("DeformConv", 19, [x, w, offset, floats(numbers, len(w)), mask], **facts)
    compare("DeformConv", 19, [x, w, offset], **facts)


@pytest.mark.parametrize("seed", range(8))
def test_normalizations(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    x = floats(numbers, 2, 6, *(draw.randint(2, 9) for _ in range(draw.randint(1, 3)))) * 3 + 7
    scale, bias = floats(numbers, 6), floats(numbers, 6)

    compare("InstanceNormalization", 6, [x, scale, bias], epsilon=0.01)
    compare("GroupNormalization", 21, [x, scale, bias], num_groups=draw.choice((1, 2, 3, 6)))
    compare("GroupNormalization", 18, [x, scale[:3], bias[:3]], num_groups=3)
    axis = draw.randint(-x.ndim, x.ndim - 1)
    compare("RMSNormalization", 23, [x, floats(numbers, *x.shape[axis:])], axis=axis)
