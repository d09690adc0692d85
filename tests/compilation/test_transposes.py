"""Copies in another order of axes: tiles, their edges, short rows."""

import numpy as np

from sabir.compilation.backends.cpu.emit.nest import ANY, NEXT, Access, Apply, Load, Nest
from sabir.compilation.backends.cpu.texts import text_of
from support.lowered import NAMES, kernels_only, model_of, same_bits

SHAPES = [
    ((37, 19), (1, 0)),
    ((64, 64), (1, 0)),
    ((1, 300), (1, 0)),
    ((0, 5), (1, 0)),
    ((3, 50, 3), (0, 2, 1)),
    ((5, 6, 7), (2, 1, 0)),
    ((2, 3, 65, 33), (0, 2, 3, 1)),
    ((2, 65, 33, 3), (0, 3, 1, 2)),
    ((17, 2, 5, 70), (3, 1, 0, 2)),
    ((6, 4, 5, 3), (0, 2, 1, 3)),  # rows of 3
    ((300, 30, 1, 2), (1, 0, 2, 3)),  # more rows than a job has
    ((2, 5000, 3), (0, 1, 2)),
]


def numbers(shape, dtype):
    random = np.random.default_rng(3)
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype == np.bool_ else 120, shape).astype(dtype)


def test_every_element_type():
    for dtype in NAMES:
        for shape, order in SHAPES:
            x = numbers(shape, dtype)
            y = x.transpose(order)
            results = kernels_only(
                model_of(f"y = Transpose <perm = {list(order)}> (x)", {"x": x}, {"y": y}), {"x": x}
            )
            same_bits(results["y"], y, (dtype, shape, order))


def test_axes_that_are_known_to_be_short():
    shapes = [((100, n), (1, 0)) for n in (2, 3, 4)] + [((n, 100), (1, 0)) for n in (2, 3, 4)]
    shapes += [
        ((2, 37, 5, 3), (0, 3, 1, 2)),
        ((2, 3, 37, 5), (0, 2, 3, 1)),
        ((3, 4), (1, 0)),
        ((2, 0), (1, 0)),
    ]
    for dtype in NAMES:
        for shape, order in shapes:
            x = numbers(shape, dtype)
            y = x.transpose(order)
            model = model_of(f"y = Transpose <perm = {list(order)}> (x)", {"x": x}, {"y": y}, fixed=(2, 3, 4))
            same_bits(kernels_only(model, {"x": x})["y"], y, (dtype, shape, order))
    x, z = numbers((70, 3), np.float32), numbers((3, 70), np.float32)
    for a, b in ((x, z), (z, x)):
        body = "t = Transpose (a) s = Add (t, b) y = Cast <to = 7> (s)"
        y = (a.T + b).astype(np.int64)
        feeds = {"a": a, "b": b}
        same_bits(kernels_only(model_of(body, feeds, {"y": y}, fixed=(3,)), feeds)["y"], y, a.shape)


def test_steps_between_the_sides():
    for shape in ((40, 23), (3, 70), (7, 5, 3, 33)):
        x, z = numbers(shape, np.float32), numbers(shape[::-1], np.float32)
        row = numbers(shape[:1], np.float32)
        body = "t = Transpose (x) s = Add (t, z) p = Mul (s, row) c = Cast <to = 7> (p) y = Neg (p)"
        feeds = {"x": x, "z": z, "row": row}
        y = -((x.T + z) * row)
        results = kernels_only(model_of(body, feeds, {"y": y, "c": y.astype(np.int64)}), feeds)
        same_bits(results["y"], y, shape)
        same_bits(results["c"], (-y).astype(np.int64), shape)


def test_two_tensors_read_across():
    a, b = numbers((50, 35), np.int32), numbers((50, 35), np.int32)
    feeds = {"a": a, "b": b}
    results = kernels_only(
        model_of("s = Transpose (a) t = Transpose (b) y = Sub (s, t)", feeds, {"y": a.T}), feeds
    )
    same_bits(results["y"], a.T - b.T, "difference")


def test_what_is_read_across_is_read_by_vectors():
    steps = (Load("float", 0), Load("float", 1), Apply("float", "add", (0, 1)))
    accesses = (Access("float", (NEXT, ANY)), Access("float", (ANY, NEXT)), Access("float", (ANY, NEXT)))
    text = text_of(Nest(2, (False, False), 1, accesses, steps, ((2, 2),)))
    assert "gather" not in text
    assert "shufflevector" in text
