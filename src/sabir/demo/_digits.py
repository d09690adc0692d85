"""The demo's data, read from the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]


class Digits(NamedTuple):
    """The classifier as the bytes of a file, and images that it was not trained on, with their labels.

    `images` is uint8 of shape [N,8,8], from 0 (paper) to 16 (ink); `labels` is uint8 of shape [N].
    """

    model: bytes
    images: Array
    labels: Array


def digits() -> Digits:
    """Return the demo's model and images."""
    folder = files("sabir.demo")
    with (
        folder.joinpath("digits_test.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as held_back,
    ):
        images, labels = held_back["images"], held_back["labels"]
    return Digits(folder.joinpath("digits.onnx").read_bytes(), images, labels)
