"""Small networks with the calls that onnxruntime's optimizer and quantizers change, and shapes of their inputs."""

import numpy as np

from sabir import Builder

IMAGE, TOKENS = (2, 3, 20, 24), (2, 5, 32)


class Weights:
    """Seeded weights as initializers of a builder."""

    def __init__(self, b):
        self.b, self.rng = b, np.random.default_rng(11)

    def __call__(self, *shape, scale=None):
        spread = scale or 1 / np.sqrt(max(1, np.prod(shape[1:])))
        return self.b.initializer("w", (self.rng.standard_normal(shape) * spread).astype(np.float32))


def cnn():
    """A small network with most kinds of convolutions and poolings, among them channels that fill no block."""
    b = Builder(18)
    w, x = Weights(b), b.input("x", "float", IMAGE)
    stem = b.Relu(b.Conv(x, w(32, 3, 3, 3), w(32, scale=1), strides=[2, 2], pads=[1, 1, 1, 1]))
    bounds = [b.initializer("bound", np.float32(bound)) for bound in (0, 6)]
    deep = b.Clip(b.Conv(stem, w(32, 1, 3, 3), w(32, scale=1), group=32, pads=[1, 1, 1, 1]), *bounds)
    joined = b.Relu(b.Add(b.Conv(deep, w(32, 32, 1, 1)), stem))
    pooled = b.MaxPool(joined, kernel_shape=[2, 2], strides=[2, 2])
    wide = b.LeakyRelu(b.Conv(pooled, w(64, 32, 3, 3), pads=[1, 1, 1, 1]), alpha=0.125)
    grouped = b.Sigmoid(b.Conv(wide, w(64, 32, 1, 1), w(64, scale=1), group=2))
    mean = b.AveragePool(grouped, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    both = b.Concat(mean, b.Conv(pooled, w(32, 32, 1, 1)), axis=1)
    scales = b.initializer("scales", np.float32([1, 1, 2, 2]))
    enlarged = b.Resize(
        both, None, scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    squeezed = b.Conv(enlarged, w(24, 96, 1, 1))
    b.output(b.Relu(b.Gemm(b.Flatten(b.GlobalAveragePool(grouped)), w(64, 10), w(10, scale=1))), "y")
    b.output(squeezed, "features")
    return b.model(), {"x": IMAGE}


def transformer():
    """Two blocks that normalize the results of attention and of the projection before they add them."""
    b = Builder(18)
    w, x = Weights(b), b.input("x", "float", TOKENS)
    hidden = x
    for _ in range(2):
        heads = [
            b.Transpose(
                b.Reshape(b.MatMul(hidden, w(32, 32)), b.initializer("s", np.array([0, 0, 4, 8]))), perm=p
            )
            for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        ]
        scores = b.Mul(b.MatMul(heads[0], heads[1]), b.initializer("scale", np.float32(8**-0.5)))
        mixed = b.Transpose(b.MatMul(b.Softmax(scores, axis=-1), heads[2]), perm=[0, 2, 1, 3])
        attended = b.MatMul(b.Reshape(mixed, b.initializer("s", np.array([0, 0, 32]))), w(32, 32))
        hidden = b.Mul(hidden, b.LayerNormalization(attended, w(32), w(32)))
        wide = b.MatMul(hidden, w(32, 64))
        gated = b.Mul(wide, b.Sigmoid(b.Mul(wide, b.initializer("slope", np.float32(1.702)))))
        hidden = b.Mul(hidden, b.LayerNormalization(b.MatMul(gated, w(64, 32)), w(32), w(32)))
    b.output(hidden, "y")
    return b.model(), {"x": TOKENS}


NETWORKS = {"cnn": cnn, "transformer": transformer}
