"""Calls of onnxruntime's attention operators that contradict themselves, with the messages of both engines."""

import numpy as np
import pytest

import sabir
from sabir import SabirError
from sabir.ir import Builder

GROUPED = {"num_heads": 2, "kv_num_heads": 1}
ROWS, KEYS = np.zeros((1, 2, 16), np.float32), np.zeros((1, 2, 8), np.float32)
CACHE = np.zeros((1, 1, 4, 8), np.float32)
WINDOW = {**GROUPED, "sliding_window_cache": 1}


def ints(*numbers):
    return np.array(numbers, np.int32)


FAULTS = [
    ("GroupQueryAttention", [ROWS, KEYS, None, None, None, ints(1), ints(2)], GROUPED, "together"),
    ("GroupQueryAttention", [ROWS, KEYS, KEYS, CACHE, CACHE, ints(3), ints(4)], WINDOW, "needs a cache and"),
    ("MultiHeadAttention", [ROWS, None, None], {"num_heads": 2}, "must be present unless `query` has rank 5"),
    ("MultiHeadAttention", [ROWS, ROWS, CACHE], {"num_heads": 1}, "must both have rank 3, or both rank 4"),
    ("MultiHeadAttention", [ROWS, ROWS, ROWS], {"num_heads": 3}, "cannot be split into 3 heads"),
    ("Attention", [ROWS, np.zeros((16, 20), np.float32)], {"num_heads": 2}, "20 columns cannot be split"),
    ("Attention", [ROWS, np.zeros((16, 24), np.float32)], {"num_heads": 2, "do_rotary": 1}, "not supported"),
    ("RotaryEmbedding", [ROWS, np.array([3]), KEYS[0], KEYS[0]], {}, "from 0 to 1"),
]  # fmt: skip
# the compiled engine computes the body of this operator, and a body checks no contents
LENGTHS = [
    ("GroupQueryAttention", [ROWS, KEYS, KEYS, CACHE, CACHE, ints(6), ints(7)], GROUPED, "must be 6, or from 2 to 4"),
    ("GroupQueryAttention", [ROWS, KEYS, KEYS, CACHE, CACHE, ints(4), ints(4)], GROUPED, "from 1 to 4 keys"),
    ("GroupQueryAttention", [ROWS, KEYS, KEYS, CACHE, CACHE, ints(0), ints(4)], GROUPED, "2 keys or more"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), FAULTS)
def test_calls_that_contradict_themselves(op, inputs, attributes, message, engine):
    refused(op, inputs, attributes, message, engine)


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), LENGTHS)
def test_lengths_that_do_not_fit_a_cache(op, inputs, attributes, message):
    refused(op, inputs, attributes, message, "reference")


def refused(op, inputs, attributes, message, engine):
    b = Builder(18, opsets={"com.microsoft": 1}, check=False)
    feeds = {f"i{n}": x for n, x in enumerate(inputs) if x is not None}
    values = [None if x is None else b.input(f"i{n}", x.dtype, x.shape) for n, x in enumerate(inputs)]
    b.output(b.op(op, *values, domain="com.microsoft", **attributes), "y", "float", [None] * 3)
    with pytest.raises(SabirError, match=message):
        sabir.Session(b.model(), engine=engine).run(feeds)
