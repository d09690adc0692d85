"""Slices of symbolic dimensions against slices of numbers, and indexing operators against onnxruntime."""

import itertools

import numpy as np
import onnxruntime
import pytest

from sabir import Builder, dumps, evaluate
from sabir.inference import Inference
from sabir.ir import Expr, symbol
from sabir.opsets.families.indexing.indexing import TO_THE_END, sliced_dim, span

LEAST, MOST = -(2**63), 2**63 - 1
N, K = symbol("N"), symbol("K")
PLACES = [LEAST, -TO_THE_END - 1, -5, -2, -1, 0, 1, 3, TO_THE_END, MOST, K, N, N + 1, -K - 1, -N - 2]


def put(value, sizes):
    return value.substitute(sizes) if isinstance(value, Expr) else value


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_a_symbolic_slice_is_as_long_as_each_of_its_instances(step):
    for start, end, dim in itertools.product(PLACES, PLACES, [N, N + 1, 2 * N, N + K, 7]):
        length = sliced_dim(start, end, step, dim)
        for n, k in itertools.product([0, 1, 2, 7], [0, 1, 6]) if length is not None else ():
            sizes = {"N": n, "K": k}
            numbers = span(put(start, sizes), put(end, sizes), step, put(dim, sizes))
            assert put(length, sizes) == len(numbers), (start, end, step, dim, sizes)


@pytest.mark.parametrize(
    ("start", "end", "length"),
    [(1, MOST, "max(0,N-1)"), (0, TO_THE_END, "N"), (-1, MOST, "min(N,1)"), (0, K, "min(K,N)")],
)
def test_common_slices_of_a_symbol(start, end, length):
    assert str(sliced_dim(start, end, 1, N)) == length


def draw_slice(rng):
    x = rng.standard_normal(rng.integers(0, 5, 2)).astype(np.float32)
    step = rng.choice([LEAST, -3, -1, 1, 2, MOST], 2)
    end = rng.choice(
        [LEAST, -3, -1, 0, 1, 3, 9], 2
    )  # onnxruntime takes MOST for the front of a backward slice
    return (
        "Slice",
        [x, rng.choice([LEAST, -9, -2, -1, 0, 1, 9, MOST], 2), end, rng.permutation([0, -1]), step],
        {},
    )


def draw_gather_elements(rng):
    shape, axis = rng.integers(1, 5, 3), int(rng.integers(-3, 3))
    wanted = rng.integers(0, shape + 1)
    wanted[axis] = rng.integers(0, 7)
    indices = rng.integers(-shape[axis], shape[axis], wanted)
    return "GatherElements", [rng.standard_normal(shape), indices], {"axis": axis}


def draw_gather_nd(rng):
    shape, batch, width = rng.integers(1, 4, 4), int(rng.integers(0, 3)), int(rng.integers(1, 3))
    columns = [rng.integers(-n, n, (*shape[:batch], 2)) for n in shape[batch : batch + width]]
    return "GatherND", [rng.standard_normal(shape), np.stack(columns, -1)], {"batch_dims": batch}


@pytest.mark.parametrize("draw", [draw_slice, draw_gather_elements, draw_gather_nd])
def test_indexing_agrees_with_onnxruntime(draw):
    rng = np.random.default_rng(0)
    for _ in range(60):
        op, arrays, attributes = draw(rng)
        b = Builder(17)
        feeds = {f"i{i}": x for i, x in enumerate(arrays)}
        b.output(
            b.op(op, *(b.input(n, x.dtype, x.shape) for n, x in feeds.items()), **attributes),
            "y",
            arrays[0].dtype,
        )
        model = b.model()
        session = onnxruntime.InferenceSession(dumps(model), providers=["CPUExecutionProvider"])

        (expected,) = session.run(None, feeds)

        np.testing.assert_array_equal(evaluate(model, feeds)["y"], expected, strict=True)


def test_a_computed_shape_is_followed_through_indexing():
    b = Builder(17)
    x = b.input("x", "float", ["N", 4, 6])
    batch = b.Unsqueeze(
        b.Gather(b.Shape(x), b.initializer("first", np.array(0))), b.initializer("axes", np.array([0]))
    )
    b.output(b.Reshape(x, b.Concat(batch, b.initializer("rest", np.array([-1])), axis=0)), "y")
    engine = Inference(b.model(), strict=True)

    engine.run()

    assert str(engine.types[b.graph.outputs[0]]) == "float[N,24]"
