"""The error of a sum of floats does not grow with its length, on both engines; and infinities stay infinities."""

import numpy as np
import pytest

import sabir

HEAD = '<ir_version: 11, opset_import: ["" : 24]> g'
ENGINES = ("compiled", "reference")
NEAR = 1e-6  # of a sum of numbers of one sign: numpy's pairwise sums are as near
SHAPES = {  # and the axes that are summed
    "one row": ((1 << 20,), (0,)),
    "rows": ((3, 1 << 16), (1,)),
    "rows that fill no vectors": ((3, (1 << 16) + 37), (1,)),
    "few columns": ((1 << 16, 4), (0,)),
    "columns": ((30000, 33), (0,)),
    "columns between": ((2, 20000, 17), (1,)),
    "two axes apart": ((1 << 14, 3, 5), (0, 2)),
    "two axes beside another": ((2, 1000, 33, 16), (1, 2)),
    "short rows of many": ((1 << 14, 2, 7), (0, 2)),
}
FUNCTIONS = {  # of positive numbers, in double
    "ReduceSum": lambda x, axes: x.sum(axis=axes),
    "ReduceMean": lambda x, axes: x.mean(axis=axes),
    "ReduceL1": lambda x, axes: x.sum(axis=axes),
    "ReduceL2": lambda x, axes: np.sqrt((x * x).sum(axis=axes)),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axis=axes),
    "ReduceLogSum": lambda x, axes: np.log(x.sum(axis=axes)),
    "ReduceLogSumExp": lambda x, axes: np.log(np.exp(x).sum(axis=axes)),
}


def computed(engine, inputs, nodes, feeds, constants=""):
    model = sabir.parse(f"{HEAD} ({inputs}) => (float[] y) {constants} {{ {nodes} }}")
    return sabir.Session(model, engine=engine).run(feeds)["y"]


def reduced(engine, name, x, axes):
    dims = ", ".join(map(str, x.shape))
    listed = ", ".join(map(str, axes))
    constants = f"<int64[{len(axes)}] a = {{{listed}}}>"
    return computed(engine, f"float[{dims}] x", f"y = {name} <keepdims=0> (x, a)", {"x": x}, constants)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SHAPES)
def test_equal_numbers_are_summed_as_exactly_as_few(engine, name):
    shape, axes = SHAPES[name]
    x = np.full(shape, 0.1, np.float32)

    y = reduced(engine, "ReduceSum", x, axes)

    np.testing.assert_allclose(y, x.astype(np.float64).sum(axis=axes), rtol=NEAR)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reductions_of_long_axes(engine, name, axis):
    x = np.random.default_rng(0).random((5000, 700), dtype=np.float32)
    x = np.tile(x, (4, 1)) if axis == 0 else np.tile(x[:9], (1, 100))

    y = reduced(engine, name, x, (axis,))

    np.testing.assert_allclose(y, FUNCTIONS[name](x.astype(np.float64), (axis,)), rtol=NEAR)


@pytest.mark.parametrize("engine", ENGINES)
def test_statistics_of_long_rows(engine):
    count = 1 << 17
    x = (np.arange(2 * count, dtype=np.float32).reshape(2, count) % 7 + 100).astype(np.float32)
    ones, zeros = np.ones(count, np.float32), np.zeros(count, np.float32)
    wide = x.astype(np.float64)
    deviation = wide - wide.mean(axis=1, keepdims=True)
    expected = deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-5)

    y = computed(
        engine,
        f"float[2, {count}] x, float[{count}] s, float[{count}] b",
        "y = LayerNormalization(x, s, b)",
        {"x": x, "s": ones, "b": zeros},
    )

    np.testing.assert_allclose(y, expected, atol=3e-5)  # the mean, 103, is known to 1e-5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("axis", [0, 1])
def test_probabilities_of_long_rows_have_the_sum_1(engine, axis):
    x = np.zeros((1 << 17, 2) if axis == 0 else (2, 1 << 17), np.float32) + np.float32(0.3)

    y = computed(engine, "float[a, b] x", f"y = Softmax <axis={axis}> (x)", {"x": x})

    np.testing.assert_allclose(y, 1 / (1 << 17), rtol=NEAR)


@pytest.mark.parametrize("engine", ENGINES)
def test_averages_of_large_images(engine):
    x = np.full((1, 3, 700, 701), 0.1, np.float32)
    turned = x.transpose(0, 2, 3, 1)

    y = computed(engine, "float[1,3,a,b] x", "y = GlobalAveragePool(x)", {"x": x})
    z = computed(
        engine,
        "float[1,a,b,3] x",
        "t = Transpose <perm=[0,3,1,2]> (x) y = GlobalAveragePool(t)",
        {"x": turned},
    )

    np.testing.assert_allclose([y, z], np.float32(0.1), rtol=NEAR)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (40, 3, 50)])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_infinities_and_nan_among_many_blocks(engine, shape, kind):
    dtype = {"float": np.float32, "double": np.float64}[kind]
    axes = (0,) if len(shape) < 3 else (0, 2)
    model = sabir.parse(
        f"{HEAD} ({kind}[{', '.join(map(str, shape))}] x) => ({kind}[] y) "
        f"<int64[{len(axes)}] a = {{{', '.join(map(str, axes))}}}> {{ y = ReduceSum <keepdims=0> (x, a) }}"
    )
    session = sabir.Session(model, engine=engine)
    most = np.finfo(dtype).max
    for numbers, expected in (
        ([np.inf], np.inf),
        ([-np.inf], -np.inf),
        ([np.nan], np.nan),
        ([np.inf, -np.inf], np.nan),
        ([np.inf, np.inf], np.inf),
        ([most, most], np.inf),
        ([most], most),
    ):
        for places in ([0, -1], [7, 21], [-2, -1]):
            x = np.zeros(shape, dtype)
            columns = x if len(shape) < 3 else x[:, :, 31]
            columns[places[: len(numbers)]] = np.reshape(numbers, (-1, *(1,) * (columns.ndim - 1)))
            np.testing.assert_array_equal(session.run({"x": x})["y"], np.full(shape[1:2], expected))


def test_long_sums_have_the_same_bits_in_any_batch_and_on_any_number_of_threads():
    x = np.random.default_rng(0).standard_normal((40, 3000)).astype(np.float32)
    model = sabir.parse(
        f"{HEAD} (float[N,3000] x) => (float[] y, float[] z) <int64[1] last = {{-1}}> "
        "{ y = ReduceSum <keepdims=0> (x, last) z = Softmax(x) }"
    )
    whole = sabir.Session(model, engine="compiled", threads=1).run({"x": x})
    for threads in (1, 2, 3):
        session = sabir.Session(model, engine="compiled", threads=threads)
        for count in (1, 2, 7, 40):
            part = session.run({"x": x[:count]})
            assert all(part[k].tobytes() == whole[k][:count].tobytes() for k in "yz"), (threads, count)
