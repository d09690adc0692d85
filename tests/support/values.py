# ruff: file-ignore[banned-api]  the official cases are in the onnx package
"""Official cases whose results can be repeated, and values of runs compared bit by bit."""

import warnings

import numpy as np
from onnx.backend.test.loader import load_model_tests


def same(a, b):
    """Whether two values have the same type, shape and bits; lists item by item."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and x.shape == y.shape and (
        x.tolist() == y.tolist() if x.dtype == object else x.tobytes() == y.tobytes()
    )  # fmt: skip


def repeatable_cases():
    """The official node cases that have data and draw no random numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = load_model_tests(kind="node")
    drawn = ("bernoulli", "random", "multinomial", "training_dropout")
    return [c for c in every if c.data_sets and not any(word in c.name for word in drawn)]
