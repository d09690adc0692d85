"""Tables of numbers in kernels: few keys and many, equal ones, NaN, the ends of each type."""

import math
from typing import Any

import numpy as np

from sabir.ir import ArrayTensor, Builder, tensor_type
from support.lowered import kernels_only, same_bits


def model_of(keys, values, default, shape):
    b = Builder(21, opsets={"ai.onnx.ml": 4})
    x = b.input("x", tensor_type(keys.dtype, shape))
    tables: dict[str, Any] = {
        "keys_tensor": ArrayTensor(keys), "values_tensor": ArrayTensor(values),
        "default_tensor": ArrayTensor(np.array([default], values.dtype)),
    }  # fmt: skip
    b.output(b.op("LabelEncoder", x, domain="ai.onnx.ml", **tables), "y")
    return b.model()


def expected(x, keys, values, default):
    """Look each element up in the table, from its end."""
    pairs = [*zip(keys.tolist(), values.tolist(), strict=True)][::-1]

    def value(item):
        same = (v for k, v in pairs if k == item or (math.isnan(k) and math.isnan(item)))
        return next(same, default)

    return np.array([value(item) for item in x.ravel().tolist()], values.dtype).reshape(x.shape)


def test_every_size_of_table():
    random = np.random.default_rng(1)
    for kind in (np.float32, np.float64, np.int64, np.int32, np.int16):
        for count in (1, 24, 25, 32, 33, 600):
            keys = random.integers(-count, count, count).astype(kind)  # some are equal
            values = random.standard_normal(count).astype(np.float32)
            x = random.integers(-count - 2, count + 2, (7, 9)).astype(kind)
            y = kernels_only(model_of(keys, values, -0.5, ("N", 9)), {"x": x})["y"]
            same_bits(y, expected(x, keys, values, -0.5), (kind, count))


def test_the_ends_of_each_type():
    for kind in (np.int64, np.int16):
        info = np.iinfo(kind)
        keys = np.array([info.max, info.min, info.min + 1, info.max - 1, 0, *range(5, 40)], kind)
        values = np.arange(len(keys), dtype=np.int64) + (1 << 60)
        x = np.array([[info.min, info.min + 2, info.max, 4, 39, info.max - 1, 0, -1]], kind)
        y = kernels_only(model_of(keys, values, -7, (1, "N")), {"x": x})["y"]
        same_bits(y, expected(x, keys, values, -7), kind)
    for kind in (np.float32, np.float64):
        for more in ([], np.arange(1, 40) / 8):
            keys = np.array([math.nan, math.inf, -math.inf, -0.0, 5e-324, *more, math.nan], kind)
            values = np.arange(len(keys), dtype=np.int32)
            x = np.array([math.nan, 0.0, math.inf, -math.inf, -0.0, 1, 0.3, 5e-324, -1], kind)
            y = kernels_only(model_of(keys, values, -7, ("N",)), {"x": x})["y"]
            same_bits(y, expected(x, keys, values, -7), (kind, len(keys)))
