"""Build a digit classifier, train it on the UCI digits, and save it as ONNX: all of it with Sabir.

    python examples/digits/train.py [EPOCHS] [FOLDER]

writes the model and the held-back test images that `sabir demo` shows, into the package unless a folder is
given. Needs scikit-learn, for the data.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.datasets import load_digits

import sabir
from sabir.training import Adam, Cosine, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Value

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SEED = 7
HELD_BACK = 360
EPOCHS = 40
BATCH = 64
RATE = 3e-3
BRIGHTEST = 16  # the data's pixels count the dark ones among the 4x4 of a scan: 0..16
TARGET = Path(sabir.__file__).parent / "demo"


def main(count: int, target: Path) -> None:
    """Build, train for `count` epochs, report on the held-back images, save."""
    images, labels, held_images, held_labels = split(np.random.default_rng(SEED))
    data = Moved(images, labels)
    model = network(np.random.default_rng(SEED))
    rate = Cosine(RATE, count * len(data))
    session = sabir.TrainingSession(
        prepare(model, "cross_entropy", optimizer=Adam(rate), metrics=["accuracy"])
    )
    started = time.perf_counter()
    epochs = session.fit(data, epochs=count)
    right = session.run({"image": scaled(held_images)})["probabilities"].argmax(1) == held_labels
    print(f"trained on {len(images)} images in {time.perf_counter() - started:.0f} s")
    print(f"right on {epochs[-1].results['accuracy']:.2%} of the moved images of the last epoch")
    print(f"right on {right.sum()} of {len(right)} held-back images: {right.mean():.2%}")
    for name, value in session.state.items():
        if name in model.graph.initializers:
            model.graph.initializers[name] = value
    sabir.check(model)
    sabir.save(sabir.infer(model), target / "digits.onnx")
    np.savez_compressed(target / "digits_test.npz", images=held_images, labels=held_labels)
    for name in ("digits.onnx", "digits_test.npz"):
        print(f"wrote {target / name}, {(target / name).stat().st_size} bytes")


def split(rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return the training images and labels, then those held back; as uint8, in a shuffled order."""
    pixels, targets = load_digits(return_X_y=True)
    order = rng.permutation(len(targets))
    images = np.reshape(pixels, (-1, 8, 8))[order].astype(np.uint8)
    labels = np.asarray(targets)[order].astype(np.uint8)
    return images[HELD_BACK:], labels[HELD_BACK:], images[:HELD_BACK], labels[:HELD_BACK]


class Moved:
    """The batches of an epoch, in another order each time, and every image moved by at most a pixel."""

    def __init__(self, images: Array, labels: Array) -> None:
        self.images, self.labels = images, labels.astype(np.int64)
        self.rng = np.random.default_rng(SEED)

    def __len__(self) -> int:
        return len(self.images) // BATCH

    def __iter__(self) -> Iterator[dict[str, Array]]:
        for batch in np.array_split(self.rng.permutation(len(self.images)), len(self)):
            yield {"image": scaled(self.moved(self.images[batch])), "label": self.labels[batch]}

    def moved(self, images: Array) -> Array:
        """Return the images, each shifted by at most a pixel in each direction."""
        padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
        corners = self.rng.choice(3, size=(len(images), 2), p=(0.2, 0.6, 0.2))
        return np.stack([p[i : i + 8, j : j + 8] for p, (i, j) in zip(padded, corners, strict=True)])


def scaled(images: Array) -> Array:
    """Return images as the network takes them: [N,1,8,8]."""
    return images[:, None].astype(np.float32)


def network(rng: np.random.Generator) -> sabir.Model:
    """Return the network as an ONNX model that takes raw pixels and gives probabilities."""
    b = sabir.Builder(17, name="digits")
    x = b.Mul(b.input("image", "float", ["N", 1, 8, 8]), b.initializer("scale", np.float32(1 / BRIGHTEST)))
    for name, channels, filters in (("conv1", 1, 16), ("conv2", 16, 32)):
        weight, bias = weights(b, rng, name, (filters, channels, 3, 3), filters)
        x = b.Conv(x, weight, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1], name=name)
        x = b.MaxPool(b.Relu(x), kernel_shape=[2, 2], strides=[2, 2])
    scores = b.Gemm(b.Flatten(x), *weights(b, rng, "dense", (128, 10), 10), name="dense")
    b.output(b.Softmax(scores, axis=1), "probabilities", "float", ["N", 10])
    return b.model(
        producer_version=sabir.__version__,
        doc="Reads handwritten digits of 8x8 pixels in 0..16. Trained by examples/digits/train.py on the "
        "data set of E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998 (CC BY 4.0).",
    )


def weights(
    b: sabir.Builder, rng: np.random.Generator, name: str, shape: tuple[int, ...], outputs: int
) -> tuple[Value, Value]:
    """Return a layer's weight, random at first, and its bias."""
    deviation = np.sqrt(2 * outputs / np.prod(shape))
    weight = (rng.standard_normal(shape) * deviation).astype(np.float32)
    return b.initializer(f"{name}.weight", weight), b.initializer(
        f"{name}.bias", np.zeros(outputs, np.float32)
    )


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else EPOCHS, Path(words[1]) if len(words) > 1 else TARGET)
