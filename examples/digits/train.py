"""Train a digit classifier on the UCI digits and save it as ONNX, with Sabir's own builder.

    python examples/digits/train.py

writes the model and the held-back test images that `sabir demo` shows. Needs scikit-learn, for the data.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from network import Adam, Network
from sklearn.datasets import load_digits

import sabir

if TYPE_CHECKING:
    from network import Array, Layer

    from sabir.ir import Value

SEED = 7
HELD_BACK = 360
EPOCHS = 60
BATCH = 64
RATE = 3e-3
BRIGHTEST = 16  # the data's pixels count the dark ones among the 4x4 of a scan: 0..16
TARGET = Path(sabir.__file__).parent / "demo"


def main() -> None:
    """Train, report on the held-back images, save."""
    rng = np.random.default_rng(SEED)
    images, labels, held_images, held_labels = split(rng)
    network = Network(rng)
    started = time.perf_counter()
    train(network, images, labels, rng)
    right = network.scores(scaled(held_images)).argmax(1) == held_labels
    print(f"trained on {len(images)} images in {time.perf_counter() - started:.0f} s")
    print(f"right on {right.sum()} of {len(right)} held-back images: {right.mean():.2%}")
    model = as_onnx(network)
    sabir.check(model)
    sabir.save(sabir.infer(model), TARGET / "digits.onnx")
    np.savez_compressed(TARGET / "digits_test.npz", images=held_images, labels=held_labels)
    for name in ("digits.onnx", "digits_test.npz"):
        print(f"wrote {TARGET / name}, {(TARGET / name).stat().st_size} bytes")


def split(rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return the training images and labels, then those held back; as uint8, in a shuffled order."""
    pixels, targets = load_digits(return_X_y=True)
    order = rng.permutation(len(targets))
    images = np.reshape(pixels, (-1, 8, 8))[order].astype(np.uint8)
    labels = np.asarray(targets)[order].astype(np.uint8)
    return images[HELD_BACK:], labels[HELD_BACK:], images[:HELD_BACK], labels[:HELD_BACK]


def train(network: Network, images: Array, labels: Array, rng: np.random.Generator) -> None:
    """Fit the network, with every image moved a little each time it is seen."""
    adam = Adam(network.parameters)
    for epoch in range(EPOCHS):
        rate = RATE * (1 + np.cos(np.pi * epoch / EPOCHS)) / 2
        order = rng.permutation(len(images))
        for batch in np.array_split(order, len(order) // BATCH):
            adam.step(network.gradients(scaled(moved(images[batch], rng)), labels[batch]), rate)


def moved(images: Array, rng: np.random.Generator) -> Array:
    """Return the images, each shifted by at most a pixel in each direction."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    corners = rng.choice(3, size=(len(images), 2), p=(0.2, 0.6, 0.2))
    return np.stack([p[i : i + 8, j : j + 8] for p, (i, j) in zip(padded, corners, strict=True)])


def scaled(images: Array) -> Array:
    """Return images as the network takes them: [N,1,8,8] in 0..1."""
    return images[:, None].astype(np.float32) / BRIGHTEST


def as_onnx(network: Network) -> sabir.Model:
    """Return the network as an ONNX model that takes raw pixels and gives probabilities."""
    b = sabir.Builder(17, name="digits")
    x = b.Mul(b.input("image", "float", ["N", 1, 8, 8]), b.initializer("scale", np.float32(1 / BRIGHTEST)))
    for name, layer in (("conv1", network.conv1), ("conv2", network.conv2)):
        x = b.Conv(x, *constants(b, name, layer), kernel_shape=[3, 3], pads=[1, 1, 1, 1], name=name)
        x = b.MaxPool(b.Relu(x), kernel_shape=[2, 2], strides=[2, 2])
    scores = b.Gemm(b.Flatten(x), *constants(b, "dense", network.dense), name="dense")
    b.output(b.Softmax(scores, axis=1), "probabilities", "float", ["N", 10])
    return b.model(
        producer_version=sabir.__version__,
        doc="Reads handwritten digits of 8x8 pixels in 0..16. Trained by examples/digits/train.py on the "
        "data set of E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998 (CC BY 4.0).",
    )


def constants(b: sabir.Builder, name: str, layer: Layer) -> tuple[Value, Value]:
    """Return a layer's weight and bias as initializers."""
    weight, bias = layer.parameters
    return b.initializer(f"{name}.weight", weight), b.initializer(f"{name}.bias", bias)


if __name__ == "__main__":
    main()
