"""Updates at indices: their order, duplicates, reductions, and indices outside of the tensor."""

import itertools

import numpy as np
import pytest

import sabir
from support.lowered import NAMES, kernels_only, model_of, same_bits

REDUCTIONS = {"none": lambda _, y: y, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def expected_elements(data, indices, updates, axis, reduction):
    """Write one element after the other."""
    y = data.copy()
    with np.errstate(all="ignore"):
        for place in np.ndindex(indices.shape):
            to = list(place)
            to[axis] = indices[place]
            y[tuple(to)] = REDUCTIONS[reduction](y[tuple(to)], updates[place])
    return y


def expected_tuples(data, indices, updates, reduction):
    y = data.copy()
    with np.errstate(all="ignore"):
        for place in np.ndindex(indices.shape[:-1]):
            to = tuple(indices[place])
            y[to] = REDUCTIONS[reduction](y[to], updates[place])
    return y


def numbers(shape, dtype, seed=2):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return np.where(random.random(shape) < 0.05, np.nan, random.standard_normal(shape)).astype(dtype)
    return random.integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)


def check(operator, data, indices, updates, expect, cases, fixed=()):
    """Compare calls of one operator, by their attributes, in one model."""
    lines = [
        f"y{n} = {operator} <{attributes}> (data, indices, updates)" for n, attributes in enumerate(cases)
    ]
    expected = {f"y{n}": expect(*case) for n, case in enumerate(cases.values())}
    feeds = {"data": data, "indices": indices, "updates": updates}
    results = kernels_only(model_of(" ".join(lines), feeds, expected, fixed=fixed), feeds)
    for (name, y), attributes in zip(expected.items(), cases, strict=True):
        same_bits(results[name], y, (operator, data.shape, data.dtype, indices.shape, attributes))


def check_elements(shape, counts, axis, dtype=np.float32, index=np.int64, reductions=REDUCTIONS):
    data, updates = numbers(shape, dtype), numbers(counts, dtype, 3)
    size = shape[axis]
    indices = np.random.default_rng(4).integers(-size, max(size, 1), counts).astype(index)
    cases = {f'axis = {axis}, reduction = "{r}"': (r,) for r in reductions}
    check("ScatterElements", data, indices, updates,
          lambda r: expected_elements(data, indices, updates, axis, r), cases)  # fmt: skip


def check_tuples(shape, counts, width, dtype=np.float32, reductions=REDUCTIONS):
    data, updates = numbers(shape, dtype), numbers((*counts, *shape[width:]), dtype, 3)
    random = np.random.default_rng(5)
    columns = [random.integers(-size, max(size, 1), counts) for size in shape[:width]]
    indices = np.stack(columns, -1) if width else np.zeros((*counts, 0), np.int64)
    cases = {f'reduction = "{r}"': (r,) for r in reductions}
    check("ScatterND", data, indices, updates,
          lambda r: expected_tuples(data, indices, updates, r), cases, [width])  # fmt: skip


def test_elements():
    for dtype in NAMES:
        check_elements((3, 6), (3, 20), 1, dtype)
        check_elements((4, 37), (9, 37), 0, dtype, np.int32)
    some = ("none", "add")
    for axis, counts in itertools.product(
        range(3), [(9, 4, 3), (2, 4, 21), (2, 9, 3), (2, 4, 1), (1, 1, 1), (0, 4, 3)]
    ):
        shape = (4, 5, 22)
        if all(n <= size or i == axis for i, (n, size) in enumerate(zip(counts, shape, strict=True))):
            check_elements(shape, counts, axis, reductions=some)
    check_elements((5,), (50,), 0, reductions=some)
    check_elements((0, 3), (0, 3), 0, reductions=some)
    check_elements((3, 2100), (40, 2100), 0, reductions=some)


def test_tuples():
    for dtype in NAMES:
        check_tuples((5, 19), (12,), 1, dtype)
        check_tuples((3, 4), (30,), 2, dtype)
    some = ("none", "add", "max")
    for width, counts in itertools.product(range(4), [(7,), (3, 4), (), (0,)]):
        check_tuples((3, 4, 5), counts, width, reductions=some)
    check_tuples((6, 1500), (20,), 1, reductions=some)
    check_tuples((4,), (40,), 1, reductions=some)


def test_of_what_other_kernels_compute():
    x, indices = numbers((6, 9), np.float32), np.array([[0, 1, 0], [5, 2, 1]])
    feeds = {"x": x, "indices": indices}
    body = (
        "one = Constant <value = int64 {1}> () up = Constant <value = float {2}> () i = Sub (indices, one)"
        " t = Transpose (x) d = Mul (t, up) c = Cast <to = 1> (indices) u = Neg (c)"
        ' s = ScatterElements <axis = 1, reduction = "add"> (d, i, u) y = Mul (s, s)'
    )
    summed = expected_elements(x.T * 2, indices - 1, -indices.astype(np.float32), 1, "add")
    results = kernels_only(model_of(body, feeds, {"y": x.T}), feeds)
    same_bits(results["y"], summed * summed, "around")


@pytest.mark.parametrize(
    "call", ['ScatterElements <axis = 0, reduction = "add"> (d, i, u)', "ScatterND (d, j, u)"]
)
def test_an_index_outside_is_the_error_of_the_interpreter(call):
    model = sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 18]> g (float[a, b] d, int64[m, b] i, int64[m, o] j, float[m, b] u)'
        f" => (float[a, b] y) {{ y = {call} }}"
    )
    engine = sabir.Session(model, engine="compiled")
    for index in (4, -5, 2**62, -(2**63)):
        feeds = {"d": np.ones((4, 5), np.float32), "u": np.ones((3, 5), np.float32)}
        feeds |= {"i": np.zeros((3, 5), np.int64), "j": np.zeros((3, 1), np.int64)}
        engine.run(feeds)
        feeds["i"][1, 4] = feeds["j"][1, 0] = index
        messages = []
        for session in (sabir.Session(model, engine="reference"), engine):
            with pytest.raises(sabir.EvaluationError, match="outside") as caught:
                session.run(feeds)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
        assert (feeds["d"] == 1).all()


def test_more_updates_than_the_tensor_has_rows():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 18]> g (float[a, b] d, int64[m, n] i, float[m, n] u)'
        " => (float[a, b] y) { y = ScatterElements <axis = 0> (d, i, u) }"
    )
    d, i, u = np.zeros((2, 5), np.float32), np.ones((3, 4), np.int64), np.ones((3, 4), np.float32)
    assert kernels_only(model, {"d": d, "i": i, "u": u})["y"].tolist() == [[0] * 5, [1] * 4 + [0]]
    messages = []
    for engine in ("reference", "compiled"):
        with pytest.raises(sabir.EvaluationError) as caught:
            sabir.Session(model, engine=engine).run({"d": d[:, :3], "i": i, "u": u})
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
