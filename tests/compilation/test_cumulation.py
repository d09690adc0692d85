"""Running sums and products: every bit is that of one operation after the other."""

import itertools

import numpy as np

from support.lowered import kernels_only, model_of, same_bits

NEUTRAL = {"CumSum": 0, "CumProd": 1}
COMBINE = {"CumSum": np.add, "CumProd": np.multiply}


def running(name, x, axis, exclusive, reverse):
    """Return the result by one operation for each index."""
    rows = np.moveaxis(x, axis, 0)
    y, total = np.empty_like(rows), None
    order = range(len(rows))
    with np.errstate(all="ignore"):
        for place in reversed(order) if reverse else order:
            after = rows[place] if total is None else COMBINE[name](total, rows[place])
            y[place] = (NEUTRAL[name] if total is None else total) if exclusive else after
            total = after
    return np.moveaxis(y, 0, axis)


def calls(shape):
    """Return the lines and the names of all calls for a shape, with the arguments of `running`."""
    cases = [*itertools.product(COMBINE, range(len(shape)), (0, 1), (0, 1))]
    lines = [
        f"a{n} = Constant <value = int64 {{{axis - len(shape) * (n % 2)}}}> ()"
        f" y{n} = {name} <exclusive = {exclusive}, reverse = {reverse}> (x, a{n})"
        for n, (name, axis, exclusive, reverse) in enumerate(cases)
    ]
    return " ".join(lines), {f"y{n}": case for n, case in enumerate(cases)}


def numbers(shape, dtype):
    random = np.random.default_rng(7)
    if np.dtype(dtype).kind == "f":
        return random.uniform(-1.5, 1.5, shape).astype(dtype)
    return random.integers(-7 if np.dtype(dtype).kind == "i" else 0, 8, shape).astype(dtype)


def test_every_axis_and_direction():
    shapes = [(1,), (0,), (70,), (3, 0), (0, 3), (5, 133), (37, 19), (3, 1, 66), (2, 3, 4, 5)]
    cases = [(shape, np.float32) for shape in shapes]
    cases += [((7, 67), dtype) for dtype in (np.float64, np.int32, np.int64, np.uint32, np.uint64)]
    for shape, dtype in cases:
        x = numbers(shape, dtype)
        body, names = calls(shape)
        results = kernels_only(model_of(body, {"x": x}, dict.fromkeys(names, x), 26), {"x": x})
        for name, case in names.items():
            same_bits(results[name], running(case[0], x, *case[1:]), (shape, dtype, case))


def test_of_what_other_kernels_compute_and_read():
    x = numbers((33, 21), np.float32)
    body = (
        "a = Constant <value = int64 {1}> () two = Constant <value = float {2}> () t = Transpose (x)"
        " m = Mul (t, two) s = CumSum (m, a) y = Mul (s, two)"
    )
    results = kernels_only(model_of(body, {"x": x}, {"y": x.T}), {"x": x})
    same_bits(results["y"], running("CumSum", x.T * 2, 1, 0, 0) * 2, "around")


def test_the_sum_of_negative_zeros_is_negative():
    x = np.array([[-0.0, -0.0, 0.0, np.nan, 1], [np.inf, -np.inf, 1, 2, 3]], np.float32)
    for shape in (x.shape, x.T.shape):
        rows = x.reshape(shape)
        body, names = calls(shape)
        results = kernels_only(model_of(body, {"x": rows}, dict.fromkeys(names, rows), 26), {"x": rows})
        for name, case in names.items():
            same_bits(results[name], running(case[0], rows, *case[1:]), (shape, case))
