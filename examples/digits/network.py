"""A small convolutional network in plain numpy: layers that go forward, and back with gradients."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

KERNEL = 3


class Layer:
    """One step of the network; `parameters` and `gradients` are lists in the same order."""

    def __init__(self) -> None:
        self.parameters: list[Array] = []
        self.gradients: list[Array] = []

    def forward(self, x: Array) -> Array:
        """Return the layer's output, and keep what `backward` will need."""
        raise NotImplementedError

    def backward(self, gradient: Array) -> Array:
        """Take the loss's gradient by the output, keep those by the parameters, return that by the input."""
        raise NotImplementedError


class Conv(Layer):
    """A 3x3 convolution that keeps the image size: every patch as a row, times a matrix."""

    def __init__(self, rng: np.random.Generator, channels: int, filters: int) -> None:
        super().__init__()
        scale = np.sqrt(2 / (channels * KERNEL * KERNEL))
        weight = rng.standard_normal((filters, channels, KERNEL, KERNEL)) * scale
        self.parameters = [weight.astype(np.float32), np.zeros(filters, np.float32)]

    def forward(self, x: Array) -> Array:
        """Gather the 3x3 patch around each pixel, and multiply."""
        weight, bias = self.parameters
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
        self.rows = np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(-1, weight[0].size)
        self.shape = x.shape
        out = self.rows @ weight.reshape(len(weight), -1).T + bias
        return out.reshape(x.shape[0], *x.shape[2:], -1).transpose(0, 3, 1, 2)

    def backward(self, gradient: Array) -> Array:
        """Multiply back, and add every patch onto its place in the image."""
        weight, _ = self.parameters
        n, channels, height, width = self.shape
        by_row = gradient.transpose(0, 2, 3, 1).reshape(-1, len(weight))
        self.gradients = [(by_row.T @ self.rows).reshape(weight.shape), by_row.sum(0)]
        patches = by_row @ weight.reshape(len(weight), -1)
        patches = patches.reshape(n, height, width, channels, KERNEL, KERNEL)
        padded = np.zeros((n, channels, height + 2, width + 2), np.float32)
        for i in range(KERNEL):  # a pixel belongs to nine patches, and collects from each
            for j in range(KERNEL):
                padded[:, :, i : i + height, j : j + width] += patches[..., i, j].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]


class Relu(Layer):
    """Negative values become zero."""

    def forward(self, x: Array) -> Array:
        """Keep what is above zero."""
        self.passes = x > 0
        return x * self.passes

    def backward(self, gradient: Array) -> Array:
        """Let the gradient through where the input was."""
        return gradient * self.passes


class MaxPool(Layer):
    """The largest of each 2x2 block."""

    def forward(self, x: Array) -> Array:
        """Lay each block out as a row of four, and keep its largest."""
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        blocks = blocks.reshape(n, c, h // 2, w // 2, 4)
        self.winner, self.shape = blocks.argmax(-1), x.shape
        return blocks.max(-1)

    def backward(self, gradient: Array) -> Array:
        """Give each gradient to the pixel that was the largest."""
        n, c, h, w = self.shape
        blocks = np.zeros((*gradient.shape, 4), np.float32)
        np.put_along_axis(blocks, self.winner[..., None], gradient[..., None], axis=-1)
        return blocks.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h, w)


class Dense(Layer):
    """Every number of the input, weighted into each output."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int) -> None:
        super().__init__()
        weight = rng.standard_normal((inputs, outputs)) * np.sqrt(1 / inputs)
        self.parameters = [weight.astype(np.float32), np.zeros(outputs, np.float32)]

    def forward(self, x: Array) -> Array:
        """Flatten, and multiply."""
        self.shape, self.rows = x.shape, x.reshape(len(x), -1)
        weight, bias = self.parameters
        return self.rows @ weight + bias

    def backward(self, gradient: Array) -> Array:
        """Multiply back, and unflatten."""
        weight, _ = self.parameters
        self.gradients = [self.rows.T @ gradient, gradient.sum(0)]
        return (gradient @ weight.T).reshape(self.shape)


class Network:
    """Two convolutions and a dense layer, from images in 0..1 to one score per digit."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.conv1, self.conv2 = Conv(rng, 1, 16), Conv(rng, 16, 32)
        self.dense = Dense(rng, 32 * 2 * 2, 10)
        self.layers = [self.conv1, Relu(), MaxPool(), self.conv2, Relu(), MaxPool(), self.dense]

    @property
    def parameters(self) -> list[Array]:
        """All arrays that training changes."""
        return [p for layer in self.layers for p in layer.parameters]

    def scores(self, images: Array) -> Array:
        """Return the scores of a batch of shape [N,1,8,8]."""
        for layer in self.layers:
            images = layer.forward(images)
        return images

    def gradients(self, images: Array, labels: Array) -> list[Array]:
        """Return the gradients of the mean cross-entropy by the parameters."""
        gradient = softmax(self.scores(images))
        gradient[np.arange(len(labels)), labels] -= 1
        gradient /= len(labels)
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient)
        return [g for layer in self.layers for g in layer.gradients]


class Adam:
    """Steps along averaged gradients, each scaled by its own recent size (Kingma and Ba, 2015)."""

    def __init__(self, parameters: list[Array]) -> None:
        self.parameters, self.steps = parameters, 0
        self.means = [np.zeros_like(p) for p in parameters]
        self.squares = [np.zeros_like(p) for p in parameters]

    def step(self, gradients: list[Array], rate: float) -> None:
        """Move every parameter a step down its gradient."""
        self.steps += 1
        fresh = (
            1 - 0.9**self.steps,
            1 - 0.999**self.steps,
        )  # the averages start at zero, and this makes up for it
        for at, gradient in enumerate(gradients):
            self.means[at] += 0.1 * (gradient - self.means[at])
            self.squares[at] += 0.001 * (gradient * gradient - self.squares[at])
            spread = np.sqrt(self.squares[at] / fresh[1]) + 1e-8
            self.parameters[at] -= np.float32(rate / fresh[0]) * self.means[at] / spread


def softmax(scores: Array) -> Array:
    """Return the probabilities that scores stand for."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
