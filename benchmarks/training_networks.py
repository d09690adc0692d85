"""Networks of the size that people train: convolutional, recurrent, transformers of images and of text.

Each is built for Sabir and written as a function of PyTorch, with the same weights and the same feeds.
BatchNormalization is in training mode on both sides.
"""
# ruff: file-ignore[ambiguous-unicode-character-string]  the sign of multiplication

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from gradients import DRAW, OPSET, Network, Weights, functional, lstm_weights, torch

import sabir

HEAD = 64  # the width of a head of attention
_MEAN, _VARIANCE = ".mean", ".variance"


class _Layers:
    """The layers of a network for Sabir: they draw weights, named for both sides, and append nodes."""

    def __init__(self) -> None:
        self.b, self.weights = sabir.Builder(OPSET), Weights()

    def weight(self, name: str, *shape: int, scale: float | None = None) -> Any:
        """Return a new weight, drawn so that the values stay about 1."""
        spread = (2 / np.prod(shape[1:])) ** 0.5 if scale is None else scale
        return self.constant(name, DRAW.standard_normal(shape) * spread)

    def constant(self, name: str, value: Any) -> Any:
        array = np.asarray(value, np.float32)
        self.weights[name] = array
        return self.b.initializer(name, array)

    def conv(self, name: str, x: Any, channels: tuple[int, int], size: int = 3, stride: int = 1) -> Any:
        """Append a convolution of odd windows that keeps the size of the image, divided by the stride."""
        before, after = channels
        w = self.weight(name, after, before, size, size)
        return self.b.Conv(x, w, pads=[size // 2] * 4, strides=[stride] * 2)

    def norm(self, name: str, x: Any, channels: int) -> Any:
        values = {"": 1, ".shift": 0, _MEAN: 0, _VARIANCE: 1}
        given = [self.constant(f"{name}{end}", np.full(channels, v)) for end, v in values.items()]
        return self.b.BatchNormalization(x, *given)

    def linear(self, name: str, x: Any, before: int, after: int) -> Any:
        w = self.weight(name, before, after, scale=before**-0.5)
        return self.b.Add(self.b.MatMul(x, w), self.constant(f"{name}.bias", np.zeros(after)))

    def layer_norm(self, name: str, x: Any, width: int) -> Any:
        scale, shift = (
            self.constant(f"{name}{end}", np.full(width, v)) for end, v in (("", 1), (".shift", 0))
        )
        return self.b.LayerNormalization(x, scale, shift)

    def network(self, name: str, scores: Any, targets: Any, loss: Any, **feeds: Any) -> Network:
        self.b.output(self.b.SoftmaxCrossEntropyLoss(scores, targets), "loss")
        return Network(name, self.b.model(), feeds, self.weights, loss)


def trained(network: Network) -> list[str]:
    """Return the names of the weights that gradients change: all but running statistics."""
    return [name for name in network.weights if not name.endswith((_MEAN, _VARIANCE))]


def _normed(w: Any, name: str, x: Any) -> Any:
    running = w[f"{name}{_MEAN}"], w[f"{name}{_VARIANCE}"]
    return functional.batch_norm(x, *running, w[name], w[f"{name}.shift"], training=True)


def _convolved(w: Any, name: str, x: Any, stride: int = 1) -> Any:
    return functional.conv2d(x, w[name], stride=stride, padding=w[name].shape[-1] // 2)


def _images(count: int, size: int, classes: int) -> dict[str, np.ndarray]:
    x = DRAW.standard_normal((count, 3, size, size)).astype(np.float32)
    return {"x": x, "t": DRAW.integers(0, classes, count)}


def _residual(layers: _Layers, name: str, x: Any, channels: tuple[int, int], stride: int) -> Any:
    """Append two convolutions with normalization beside a shortcut."""
    b, after = layers.b, channels[1]
    y = b.Relu(layers.norm(f"{name}.n1", layers.conv(f"{name}.c1", x, channels, stride=stride), after))
    y = layers.norm(f"{name}.n2", layers.conv(f"{name}.c2", y, (after, after)), after)
    if stride > 1:
        x = layers.norm(f"{name}.n3", layers.conv(f"{name}.c3", x, channels, 1, stride), after)
    return b.Relu(b.Add(x, y))


def _residual_peer(w: Any, name: str, x: Any) -> Any:
    stride = 2 if f"{name}.c3" in w else 1
    y = torch.relu(_normed(w, f"{name}.n1", _convolved(w, f"{name}.c1", x, stride)))
    y = _normed(w, f"{name}.n2", _convolved(w, f"{name}.c2", y))
    if stride > 1:
        x = _normed(w, f"{name}.n3", _convolved(w, f"{name}.c3", x, stride))
    return torch.relu(x + y)


def _classes(layers: _Layers, x: Any, width: int, classes: int) -> Any:
    return layers.linear("out", layers.b.Flatten(layers.b.GlobalAveragePool(x)), width, classes)


def _classes_peer(w: Any, x: Any) -> Any:
    return x.mean((2, 3)) @ w["out"] + w["out.bias"]


def residual() -> Network:
    """Return a network of two blocks of 64 channels, whose images of 64x64 are halved once."""
    layers, width = _Layers(), 64
    x, t = layers.b.input("x", "float", ["N", 3, 64, 64]), layers.b.input("t", "int64", ["N"])
    y = layers.b.Relu(layers.norm("n", layers.conv("c", x, (3, width), stride=2), width))
    for name in "ab":
        y = _residual(layers, name, y, (width, width), 1)

    def loss(w: Any, x: Any, t: Any) -> Any:
        x = torch.relu(_normed(w, "n", _convolved(w, "c", x, 2)))
        for name in "ab":
            x = _residual_peer(w, name, x)
        return functional.cross_entropy(_classes_peer(w, x), t)

    scores = _classes(layers, y, width, 10)
    return layers.network("residual network 16×3×64×64", scores, t, loss, **_images(16, 64, 10))


def _resnet18(count: int, size: int) -> Network:
    layers, widths = _Layers(), (64, 64, 128, 256, 512)
    b = layers.b
    x, t = b.input("x", "float", ["N", 3, size, size]), b.input("t", "int64", ["N"])
    y = b.Relu(layers.norm("n", layers.conv("c", x, (3, 64), 7, 2), 64))
    y = b.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    blocks: list[str] = []
    for stage, (before, after) in enumerate(pairwise(widths)):
        for number in range(2):
            blocks.append(f"b{stage}.{number}")
            channels = (before if number == 0 else after, after)
            y = _residual(layers, blocks[-1], y, channels, 2 if stage and number == 0 else 1)

    def loss(w: Any, x: Any, t: Any) -> Any:
        x = functional.max_pool2d(torch.relu(_normed(w, "n", _convolved(w, "c", x, 2))), 3, 2, 1)
        for name in blocks:
            x = _residual_peer(w, name, x)
        return functional.cross_entropy(_classes_peer(w, x), t)

    scores = _classes(layers, y, 512, 1000)
    return layers.network(f"ResNet-18 {count}×3×{size}×{size}", scores, t, loss, **_images(count, size, 1000))


def small_resnet18() -> Network:
    return _resnet18(4, 96)


def resnet18() -> Network:
    return _resnet18(8, 160)


def _bottleneck(layers: _Layers, name: str, x: Any, sizes: tuple[int, int, int], stride: int) -> Any:
    """Append three convolutions with normalization beside a shortcut; `sizes` are their channels."""
    b, (before, width, after) = layers.b, sizes
    y = b.Relu(layers.norm(f"{name}.n1", layers.conv(f"{name}.c1", x, (before, width), 1), width))
    y = b.Relu(layers.norm(f"{name}.n2", layers.conv(f"{name}.c2", y, (width, width), 3, stride), width))
    y = layers.norm(f"{name}.n3", layers.conv(f"{name}.c3", y, (width, after), 1), after)
    if before != after:
        shortcut = layers.conv(f"{name}.c4", x, (before, after), 1, stride)
        x = layers.norm(f"{name}.n4", shortcut, after)
    return b.Relu(b.Add(x, y))


def _bottleneck_peer(w: Any, name: str, x: Any, stride: int) -> Any:
    y = torch.relu(_normed(w, f"{name}.n1", _convolved(w, f"{name}.c1", x)))
    y = torch.relu(_normed(w, f"{name}.n2", _convolved(w, f"{name}.c2", y, stride)))
    y = _normed(w, f"{name}.n3", _convolved(w, f"{name}.c3", y))
    if f"{name}.c4" in w:
        x = _normed(w, f"{name}.n4", _convolved(w, f"{name}.c4", x, stride))
    return torch.relu(x + y)


def resnet50() -> Network:
    layers, count, size = _Layers(), 8, 160
    b = layers.b
    x, t = b.input("x", "float", ["N", 3, size, size]), b.input("t", "int64", ["N"])
    y = b.Relu(layers.norm("n", layers.conv("c", x, (3, 64), 7, 2), 64))
    y = b.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    blocks: list[tuple[str, int]] = []
    before = 64
    for stage, (width, depth) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for number in range(depth):
            blocks.append((f"b{stage}.{number}", 2 if stage and number == 0 else 1))
            y = _bottleneck(layers, blocks[-1][0], y, (before, width, 4 * width), blocks[-1][1])
            before = 4 * width

    def loss(w: Any, x: Any, t: Any) -> Any:
        x = functional.max_pool2d(torch.relu(_normed(w, "n", _convolved(w, "c", x, 2))), 3, 2, 1)
        for name, stride in blocks:
            x = _bottleneck_peer(w, name, x, stride)
        return functional.cross_entropy(_classes_peer(w, x), t)

    scores = _classes(layers, y, before, 1000)
    return layers.network(f"ResNet-50 {count}×3×{size}×{size}", scores, t, loss, **_images(count, size, 1000))


def _next_block(layers: _Layers, name: str, y: Any, width: int) -> Any:
    """Append a convolution of each channel and two linear layers over the channels, beside a shortcut."""
    b = layers.b
    depthwise = layers.weight(f"{name}.c", width, 1, 7, 7)
    moved = b.Conv(
        y, depthwise, layers.constant(f"{name}.c.bias", np.zeros(width)), pads=[3] * 4, group=width
    )
    n = layers.layer_norm(f"{name}.n", b.Transpose(moved, perm=[0, 2, 3, 1]), width)
    wide = b.Gelu(layers.linear(f"{name}.up", n, width, 4 * width))
    scaled = b.Mul(
        layers.linear(f"{name}.down", wide, 4 * width, width),
        layers.constant(f"{name}.scale", np.full(width, 0.1)),
    )
    return b.Add(y, b.Transpose(scaled, perm=[0, 3, 1, 2]))


def _next_block_peer(w: Any, name: str, y: Any) -> Any:
    width = y.shape[1]
    moved = functional.conv2d(y, w[f"{name}.c"], w[f"{name}.c.bias"], padding=3, groups=width)
    n = _layer_norm_peer(w, f"{name}.n", moved.permute(0, 2, 3, 1))
    scaled = _linear_peer(w, f"{name}.down", functional.gelu(_linear_peer(w, f"{name}.up", n)))
    return y + (scaled * w[f"{name}.scale"]).permute(0, 3, 1, 2)


def convnext() -> Network:
    """Return ConvNeXt-T."""
    layers, count, size, widths = _Layers(), 4, 160, (96, 192, 384, 768)
    b = layers.b
    x, t = b.input("x", "float", ["N", 3, size, size]), b.input("t", "int64", ["N"])

    def normed(name: str, y: Any, width: int) -> Any:
        rows = layers.layer_norm(name, b.Transpose(y, perm=[0, 2, 3, 1]), width)
        return b.Transpose(rows, perm=[0, 3, 1, 2])

    def joined(name: str, y: Any, channels: tuple[int, int], size: int) -> Any:
        before, after = channels
        filters = layers.weight(name, after, before, size, size)
        return b.Conv(y, filters, layers.constant(f"{name}.bias", np.zeros(after)), strides=[size] * 2)

    y = normed("n", joined("c", x, (3, widths[0]), 4), widths[0])
    stages: list[list[str]] = []
    for stage, (width, depth) in enumerate(zip(widths, (3, 3, 9, 3), strict=True)):
        if stage:
            before = widths[stage - 1]
            y = joined(f"c{stage}", normed(f"n{stage}", y, before), (before, width), 2)
        stages.append([f"b{stage}.{number}" for number in range(depth)])
        for name in stages[-1]:
            y = _next_block(layers, name, y, width)

    def normed_peer(w: Any, name: str, y: Any) -> Any:
        return _layer_norm_peer(w, name, y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def loss(w: Any, x: Any, t: Any) -> Any:
        y = normed_peer(w, "n", functional.conv2d(x, w["c"], w["c.bias"], stride=4))
        for stage, names in enumerate(stages):
            if stage:
                y = normed_peer(w, f"n{stage}", y)
                y = functional.conv2d(y, w[f"c{stage}"], w[f"c{stage}.bias"], stride=2)
            for name in names:
                y = _next_block_peer(w, name, y)
        rows = _layer_norm_peer(w, "last", y.mean((2, 3)))
        return functional.cross_entropy(_linear_peer(w, "out", rows), t)

    rows = layers.layer_norm("last", b.Flatten(b.GlobalAveragePool(y)), widths[-1])
    scores = layers.linear("out", rows, widths[-1], 1000)
    return layers.network(
        f"ConvNeXt-T {count}×3×{size}×{size}", scores, t, loss, **_images(count, size, 1000)
    )


def _block(layers: _Layers, name: str, y: Any, width: int, mask: Any = None) -> Any:
    """Append attention and two linear layers after normalizations; `mask` is added to the scores."""
    b = layers.b
    n = layers.layer_norm(f"{name}.n1", y, width)
    joined = layers.linear(f"{name}.qkv", n, width, 3 * width)
    parts = b.Reshape(joined, [0, 0, 3, width // HEAD, HEAD])
    q, k, v = (b.Gather(b.Transpose(parts, perm=[2, 0, 3, 1, 4]), j, axis=0) for j in range(3))
    scores = b.Mul(b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2])), np.float32(HEAD**-0.5))
    shares = b.Softmax(scores if mask is None else b.Add(scores, mask))
    mixed = b.Reshape(b.Transpose(b.MatMul(shares, v), perm=[0, 2, 1, 3]), [0, 0, width])
    y = b.Add(y, layers.linear(f"{name}.o", mixed, width, width))
    wide = b.Gelu(layers.linear(f"{name}.up", layers.layer_norm(f"{name}.n2", y, width), width, 4 * width))
    return b.Add(y, layers.linear(f"{name}.down", wide, 4 * width, width))


def _block_peer(w: Any, name: str, y: Any, *, causal: bool) -> Any:
    count, steps, width = y.shape
    n = _layer_norm_peer(w, f"{name}.n1", y)
    parts = _linear_peer(w, f"{name}.qkv", n).reshape(count, steps, 3, width // HEAD, HEAD)
    q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    middle = y + _linear_peer(w, f"{name}.o", mixed.transpose(1, 2).reshape(count, steps, width))
    wide = functional.gelu(_linear_peer(w, f"{name}.up", _layer_norm_peer(w, f"{name}.n2", middle)))
    return middle + _linear_peer(w, f"{name}.down", wide)


def _linear_peer(w: Any, name: str, x: Any) -> Any:
    return x @ w[name] + w[f"{name}.bias"]


def _layer_norm_peer(w: Any, name: str, x: Any) -> Any:
    return functional.layer_norm(x, x.shape[-1:], w[name], w[f"{name}.shift"])


def _language(title: str, shape: tuple[int, int], width: int, depth: int, words: int) -> Network:
    count, steps = shape
    layers = _Layers()
    b = layers.b
    ids, t = b.input("ids", "int64", ["N", steps]), b.input("t", "int64", ["M"])
    y = b.Gather(layers.weight("table", words, width, scale=0.1), ids)
    y = b.Add(y, layers.weight("positions", steps, width, scale=0.1))
    mask = b.initializer("mask", np.triu(np.full((steps, steps), -np.inf, np.float32), 1))
    for number in range(depth):
        y = _block(layers, f"b{number}", y, width, mask)
    y = b.Reshape(layers.layer_norm("n", y, width), [-1, width])
    scores = layers.linear("out", y, width, words)

    def loss(w: Any, ids: Any, t: Any) -> Any:
        y = functional.embedding(ids, w["table"]) + w["positions"]
        for number in range(depth):
            y = _block_peer(w, f"b{number}", y, causal=True)
        return functional.cross_entropy(_linear_peer(w, "out", _layer_norm_peer(w, "n", y)).flatten(0, 1), t)

    feeds = {"ids": DRAW.integers(0, words, shape), "t": DRAW.integers(0, words, count * steps)}
    return layers.network(f"{title} {count}×{steps}", scores, t, loss, **feeds)


def language() -> Network:
    return _language("language model, width 256, 4 layers, 1000 words,", (8, 128), 256, 4, 1000)


def large_language() -> Network:
    """Return a language model of 33 million parameters."""
    return _language("language model, width 512, 8 layers, 8000 words,", (4, 256), 512, 8, 8000)


def vit() -> Network:
    """Return ViT-S of patches of 16x16, whose class follows from the mean over the patches."""
    layers, width, depth = _Layers(), 384, 12
    b = layers.b
    x, t = b.input("x", "float", ["N", 3, 224, 224]), b.input("t", "int64", ["N"])
    patches = b.Conv(x, layers.weight("patch", width, 3, 16, 16), strides=[16, 16])
    y = b.Transpose(b.Reshape(patches, [0, width, -1]), perm=[0, 2, 1])
    y = b.Add(y, layers.weight("positions", 196, width, scale=0.1))
    for number in range(depth):
        y = _block(layers, f"b{number}", y, width)
    mean = b.ReduceMean(layers.layer_norm("n", y, width), [1], keepdims=0)
    scores = layers.linear("out", mean, width, 1000)

    def loss(w: Any, x: Any, t: Any) -> Any:
        y = functional.conv2d(x, w["patch"], stride=16).flatten(2).transpose(1, 2) + w["positions"]
        for number in range(depth):
            y = _block_peer(w, f"b{number}", y, causal=False)
        return functional.cross_entropy(_linear_peer(w, "out", _layer_norm_peer(w, "n", y).mean(1)), t)

    return layers.network("ViT-S 4×3×224×224", scores, t, loss, **_images(4, 224, 1000))


def _recurrent_layer(layers: _Layers, number: str, y: Any, width: int) -> Any:
    w, r = (layers.weight(f"{kind}{number}", 1, 4 * width, width, scale=width**-0.5) for kind in "wr")
    bias = layers.constant(f"b{number}", np.zeros((1, 8 * width)))
    return layers.b.Squeeze(layers.b.LSTM(y, w, r, bias, hidden_size=width, outputs=3)[0], [1])


def recurrent() -> Network:
    """Return a language model of two layers of LSTM, 512 wide, over 32 texts of 64 words of 2000."""
    layers, width, words, shape = _Layers(), 512, 2000, (64, 32)
    b = layers.b
    ids, t = b.input("ids", "int64", [shape[0], "N"]), b.input("t", "int64", ["M"])
    y = b.Gather(layers.weight("table", words, width, scale=0.1), ids)
    for number in "01":
        y = _recurrent_layer(layers, number, y, width)
    scores = layers.linear("out", b.Reshape(y, [-1, width]), width, words)
    layer = None if torch is None else torch.nn.LSTM(width, width)

    def loss(w: Any, ids: Any, t: Any) -> Any:
        y = functional.embedding(ids, w["table"])
        for number in "01":
            y = torch.func.functional_call(
                layer, lstm_weights(*(w[f"{kind}{number}"] for kind in "wrb")), (y,)
            )[0]
        return functional.cross_entropy(_linear_peer(w, "out", y).flatten(0, 1), t)

    feeds = {"ids": DRAW.integers(0, words, shape), "t": DRAW.integers(0, words, shape[0] * shape[1])}
    title = f"LSTM of 2 layers, width {width}, {words} words, {shape[1]}×{shape[0]}"
    return layers.network(title, scores, t, loss, **feeds)


def unet() -> Network:
    """Return a U-Net of three levels, of 32, 64 and 128 channels, that finds one of four classes a pixel."""
    layers = _Layers()
    b, levels = layers.b, (32, 64, 128)
    x, t = b.input("x", "float", ["N", 3, 96, 96]), b.input("t", "int64", ["N", 96, 96])

    def twice(name: str, y: Any, before: int, after: int) -> Any:
        for part, channels in (("1", (before, after)), ("2", (after, after))):
            y = layers.norm(f"{name}.n{part}", layers.conv(f"{name}.c{part}", y, channels), after)
            y = b.Relu(y)
        return y

    y = twice("d0", x, 3, levels[0])
    kept = [y]
    for number, (before, after) in enumerate(pairwise(levels), 1):
        pooled = b.MaxPool(y, kernel_shape=[2, 2], strides=[2, 2])
        y = twice(f"d{number}", pooled, before, after)
        kept.append(y)
    for number in (1, 0):
        wide, width = levels[number + 1], levels[number]
        up = b.ConvTranspose(y, layers.weight(f"t{number}", wide, width, 2, 2), strides=[2, 2])
        y = twice(f"u{number}", b.Concat(kept[number], up, axis=1), 2 * width, width)
    scores = layers.conv("out", y, (levels[0], 4), 1)

    def twice_peer(w: Any, name: str, y: Any) -> Any:
        for part in "12":
            y = torch.relu(_normed(w, f"{name}.n{part}", _convolved(w, f"{name}.c{part}", y)))
        return y

    def loss(w: Any, x: Any, t: Any) -> Any:
        kept = [twice_peer(w, "d0", x)]
        kept.append(twice_peer(w, "d1", functional.max_pool2d(kept[0], 2)))
        y = twice_peer(w, "d2", functional.max_pool2d(kept[1], 2))
        for number in (1, 0):
            up = functional.conv_transpose2d(y, w[f"t{number}"], stride=2)
            y = twice_peer(w, f"u{number}", torch.cat([kept[number], up], 1))
        return functional.cross_entropy(_convolved(w, "out", y), t)

    feeds = {"x": _images(4, 96, 4)["x"], "t": DRAW.integers(0, 4, (4, 96, 96))}
    return layers.network("U-Net 4×3×96×96", scores, t, loss, **feeds)


NETWORKS = {
    "residual": residual, "language": language, "resnet18-small": small_resnet18, "resnet18": resnet18,
    "resnet50": resnet50, "vit": vit, "convnext": convnext, "language-30M": large_language,
    "recurrent": recurrent, "unet": unet,
}  # fmt: skip
