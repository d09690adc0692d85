"""Convolutions and poolings: groups, dilations, strides, pads, up to three spatial axes."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

_TIES = [[[[1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0]]]]


def _conv(name, attributes, x, w, bias=True, **options):
    f = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}[len(x)]
    inputs = {"x": x, "w": w, "b": (w[0],)} if bias else {"x": x, "w": w}
    return case(f"Conv {name}", f"y = Conv <{attributes}> ({', '.join(inputs)})",
                lambda *given: f(*given, **options), **inputs)  # fmt: skip


def _transposed(name, attributes, x, w, channels, **options):
    f = {3: functional.conv_transpose1d, 4: functional.conv_transpose2d, 5: functional.conv_transpose3d}[
        len(x)
    ]
    return case(f"ConvTranspose {name}", f"y = ConvTranspose <{attributes}> (x, w, b)",
                lambda *given: f(*given, **options), x=x, w=w, b=(channels,))  # fmt: skip


def _pool(name, call, f, x):
    return case(f"{name}", f"y = {call} (x)", f, x=x)


def _max(name, attributes, x, **options):
    f = {3: functional.max_pool1d, 4: functional.max_pool2d, 5: functional.max_pool3d}[x.ndim]
    return _pool(f"MaxPool {name}", f"MaxPool <{attributes}>", lambda v: f(v, **options), x)


def _average(name, attributes, x, **options):
    f = {3: functional.avg_pool1d, 4: functional.avg_pool2d, 5: functional.avg_pool3d}[x.ndim]
    return _pool(f"AveragePool {name}", f"AveragePool <{attributes}>", lambda v: f(v, **options), x)


def _unpooled(x):
    pooled, places = functional.max_pool2d(x, 2, return_indices=True)
    return functional.max_unpool2d(pooled, places, 2)


IMAGE, LINE, VOLUME = between(-2, 2, 1, 2, 5, 4), between(-2, 2, 2, 2, 7), between(-2, 2, 1, 1, 3, 4, 4)

CASES = [
    _conv("plain", "group = 1", (1, 2, 4, 5), (3, 2, 3, 2)),
    _conv("no bias", "pads = [1, 1, 1, 1]", (2, 1, 3, 3), (2, 1, 3, 3), bias=False, padding=1),
    _conv("strides", "strides = [2, 3], pads = [1, 0, 1, 0]", (1, 1, 5, 7), (2, 1, 3, 2), stride=(2, 3), padding=(1, 0)),
    _conv("dilations", "dilations = [2, 1], pads = [2, 1, 2, 1]", (1, 1, 5, 4), (1, 1, 3, 3), dilation=(2, 1), padding=(2, 1)),
    _conv("groups", "group = 2", (1, 4, 3, 3), (4, 2, 2, 2), groups=2),
    _conv("depthwise", "group = 3, pads = [1, 1, 1, 1], strides = [2, 2]", (1, 3, 4, 4), (6, 1, 3, 3), groups=3, padding=1, stride=2),
    _conv("very many taps", "strides = [3]", (1, 1, 80), (1, 1, 66), stride=3),
    _conv("1 by 1", "group = 1", (2, 3, 2, 2), (2, 3, 1, 1)),
    _conv("1d", "strides = [2], pads = [1, 1], dilations = [2]", (2, 2, 7), (2, 2, 3), stride=2, padding=1, dilation=2),
    _conv("3d", "pads = [1, 0, 1, 1, 0, 1]", (1, 2, 3, 3, 2), (2, 2, 2, 2, 3), padding=(1, 0, 1)),
    case("Conv uneven pads", "y = Conv <pads = [0, 1, 2, 0]> (x, w)", lambda x, w: functional.conv2d(
        functional.pad(x, (1, 0, 0, 2)), w), x=(1, 1, 4, 4), w=(2, 1, 3, 3)),
    case("Conv SAME_UPPER", 'y = Conv <auto_pad = "SAME_UPPER"> (x, w)', lambda x, w: functional.conv2d(x, w, padding="same"),
         x=(1, 1, 4, 4), w=(2, 1, 3, 3)),
    _transposed("plain", "group = 1", (1, 2, 3, 3), (2, 2, 2, 3), 2),
    _transposed("strides", "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 0]", (1, 1, 3, 4), (1, 2, 3, 3), 2,
                stride=2, padding=1, output_padding=(1, 0)),
    _transposed("groups", "group = 2, dilations = [2, 1]", (1, 4, 2, 3), (4, 1, 2, 2), 2, groups=2, dilation=(2, 1)),
    _transposed("1d", "strides = [3]", (2, 2, 3), (2, 1, 2), 1, stride=3),
    _transposed("3d", "strides = [1, 2, 1]", (1, 1, 2, 2, 2), (1, 2, 2, 2, 2), 2, stride=(1, 2, 1)),
    _max("plain", "kernel_shape = [2, 2]", IMAGE, kernel_size=2, stride=1),
    _max("strides", "kernel_shape = [2, 2], strides = [2, 2]", IMAGE, kernel_size=2),
    _max("pads", "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]", IMAGE, kernel_size=3, stride=2, padding=1),
    _max("dilations", "kernel_shape = [2, 2], dilations = [2, 2]", IMAGE, kernel_size=2, stride=1, dilation=2),
    _max("ceil", "kernel_shape = [2, 3], strides = [2, 2], ceil_mode = 1", IMAGE, kernel_size=(2, 3), stride=2, ceil_mode=True),
    _max("1d", "kernel_shape = [3], strides = [2]", LINE, kernel_size=3, stride=2),
    _max("3d", "kernel_shape = [2, 2, 2]", VOLUME, kernel_size=2, stride=1),
    case("MaxPool ties", "y = MaxPool <kernel_shape = [2, 2]> (x)", lambda x: functional.max_pool2d(x, 2, 1), x=_TIES),
    case("MaxPool ties, tiled", "y = MaxPool <kernel_shape = [3, 2], strides = [3, 2]> (x)",
         lambda x: functional.max_pool2d(x, (3, 2)), x=_TIES),
    _average("plain", "kernel_shape = [2, 2], strides = [2, 2]", IMAGE, kernel_size=2),
    _average("overlapping", "kernel_shape = [3, 2]", IMAGE, kernel_size=(3, 2), stride=1),
    _average("pads left out", "kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]", IMAGE, kernel_size=3, stride=2, padding=1,
             count_include_pad=False),
    _average("pads counted", "kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1", IMAGE, kernel_size=3, stride=1, padding=1),
    _average("ceil", "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1", IMAGE, kernel_size=2, ceil_mode=True),
    _average("1d", "kernel_shape = [3], strides = [2]", LINE, kernel_size=3, stride=2),
    _average("3d", "kernel_shape = [2, 2, 3]", VOLUME, kernel_size=(2, 2, 3), stride=1),
    _pool("LpPool 2", "LpPool <kernel_shape = [2, 2], p = 2>", lambda x: functional.lp_pool2d(x, 2, 2, 1), abs(IMAGE)),
    _pool("LpPool 3", "LpPool <kernel_shape = [2, 2], strides = [2, 2], p = 3>", lambda x: functional.lp_pool2d(x, 3, 2), abs(IMAGE)),
    _pool("GlobalAveragePool", "GlobalAveragePool", lambda x: functional.adaptive_avg_pool2d(x, 1), IMAGE),
    _pool("GlobalMaxPool", "GlobalMaxPool", lambda x: functional.adaptive_max_pool2d(x, 1), IMAGE),
    _pool("GlobalLpPool", "GlobalLpPool <p = 2>", lambda x: torch.linalg.vector_norm(x, dim=(2, 3), keepdim=True), IMAGE),
    case("GlobalMaxPool ties", "y = GlobalMaxPool (x)", lambda x: functional.adaptive_max_pool2d(x, 1), x=_TIES),
    case("MaxUnpool", "p, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) "
         "y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (p, i)", _unpooled, x=between(-2, 2, 1, 2, 4, 4)),
    case("Col2Im", "y = Col2Im <pads = [0, 1, 0, 1], strides = [1, 2]> (x, size, block)",
         lambda x, s, b: functional.fold(x, (3, 5), (2, 3), padding=(0, 1), stride=(1, 2)),
         x=(1, 12, 6), size=[3, 5], block=[2, 3]),
]  # fmt: skip
