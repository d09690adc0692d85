"""The error of a sum of floats does not grow with its length, on both engines; and infinities stay infinities."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.elements import element
from sabir.evaluation import Runner

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


# ---------------------------------------------------------------- products

PRODUCTS = {  # the operator, the shapes of a batch and of weights, attributes
    "matrices": ("MatMul", (300, 1500), (1500, 70), {}),
    "a matrix and columns": ("Gemm", (300, 1500), (70, 1500), {"transB": 1}),
    "small matrices": ("MatMul", (300, 1100), (1100, 9), {}),
    "batches": ("MatMul", (100, 3, 1030), (1030, 40), {}),
    "windows": ("Conv", (9, 70, 9, 8), (33, 70, 3, 3), {"strides": [2, 2], "pads": [1] * 4}),
    "large windows": ("Conv", (9, 6, 31, 30), (7, 6, 29, 28), {}),
    "sums along an axis": ("MatMul", (300, 20000), (20000, 1), {}),
}
TYPES = ("float", "double")
CONSTANTS = ("float", "float16", "bfloat16", "double")


def product_model(name, kind, weights=None):
    """A model of a product of `kind`, of a batch of any size; `weights` are a constant."""
    op, shape, of_weights, attributes = PRODUCTS[name]
    b = sabir.Builder(opsets={"": 24})
    x = b.input("x", kind, ["N", *shape[1:]])
    w = b.input("w", kind, of_weights) if weights is None else weights
    if weights is not None and weights.dtype != element(kind).dtype:
        w = b.Cast(weights, to=1)
    b.output(getattr(b, op)(x, w, **attributes), "y")
    return b.model()


def product_feeds(name, kind):
    rng, (_, *shapes, _) = np.random.default_rng(0), PRODUCTS[name]
    return [rng.random(shape).astype(element(kind).dtype) for shape in shapes]


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("kind", TYPES)
def test_products_of_long_depth_are_near_those_in_double(name, kind):
    x, w = product_feeds(name, kind)
    wide = Runner(product_model(name, "double")).run({"x": x.astype(np.float64), "w": w.astype(np.float64)})[
        "y"
    ]
    varying, constant = Compiled(product_model(name, kind)), Compiled(product_model(name, kind, w))
    for rows in (1, 3, 40, len(x)):
        y, z = varying.run({"x": x[:rows], "w": w})["y"], constant.run({"x": x[:rows]})["y"]
        for found in (y, z):
            np.testing.assert_allclose(found, wide[:rows], rtol=1.5e-6 if kind == "float" else 5e-15)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("constant", [None, *CONSTANTS])
def test_products_of_long_depth_have_the_same_bits_in_any_batch_and_on_any_number_of_threads(name, constant):
    kind = "double" if constant == "double" else "float"
    x, w = product_feeds(name, kind)
    others = {"w": w} if constant is None else {}
    weights = None if constant is None else w.astype(element(constant).dtype)
    model = product_model(name, kind, weights)
    whole = sabir.Session(model, engine="compiled", threads=2).run({"x": x} | others)["y"]
    session = sabir.Session(model, engine="compiled", threads=1)
    for count in (1, 2, 3, 5, 8, 50, 300):
        part = session.run({"x": x[:count]} | others)["y"]
        assert part.tobytes() == whole[:count].tobytes(), count


def test_the_error_of_products_does_not_grow_with_their_depth():
    x, w = np.full((5, 1 << 18), 0.1, np.float32), np.full((1 << 18, 8), 0.1, np.float32)

    y = computed("compiled", "float[a,b] x, float[b,c] w", "y = MatMul(x, w)", {"x": x, "w": w})

    np.testing.assert_allclose(y, x.astype(np.float64) @ w.astype(np.float64), rtol=1e-5)


def test_products_of_few_terms_have_no_parts():
    def spec(depth):
        inputs = f"float[4,{depth}] x, float[{depth},8] w"
        compiled = Compiled(sabir.parse(f"{HEAD} ({inputs}) => (float[] y) {{ y = MatMul(x, w) }}"))
        (found,) = (k.spec for k in compiled.explain().kernels if k.kind == "product")
        return found

    assert " long" not in spec(512)
    assert " long" in spec(513)


def test_all_kernels_of_products_add_the_same_parts():
    """Few rows are streamed, small matrices read in place, others packed, in blocks where they are large."""
    rng, specs = np.random.default_rng(0), ""
    for depth, columns in ((1100, 12), (5000, 3), (9000, 70)):
        x, w = rng.random((700, depth), dtype=np.float32), rng.random((depth, columns), dtype=np.float32)
        found = {}
        for rows in (1, 4, 40, 700):
            for turned in (0, 1):
                b = sabir.Builder(opsets={"": 24})
                a = b.input("x", "float", [depth, rows] if turned else [rows, depth])
                b.output(b.Gemm(a, b.input("w", "float", list(w.shape)), transA=turned), "y")
                compiled = Compiled(b.model())
                part = np.ascontiguousarray(x[:rows].T if turned else x[:rows])
                found[rows, turned] = compiled.run({"x": part, "w": w})["y"]
                specs += "".join(k.spec + "\n" for k in compiled.explain().kernels)
        for (rows, turned), y in found.items():
            assert y.tobytes() == found[700, 0][:rows].tobytes(), (depth, columns, rows, turned)
        np.testing.assert_allclose(found[700, 1], x.astype(np.float64) @ w.astype(np.float64), rtol=1.5e-6)
    kinds = [line.split() for line in specs.splitlines() if line.startswith("product") and "long" in line]
    assert all(any(kind in words for words in kinds) for kind in ("streamed", "direct", "blocked", "apart"))


def test_convolutions_of_many_channels_by_transformed_tiles():
    rng = np.random.default_rng(0)
    x, w = (rng.random(shape, dtype=np.float32) for shape in ((2, 2048, 13, 14), (32, 2048, 3, 3)))

    def model(kind, weights):
        b = sabir.Builder(opsets={"": 24})
        b.output(b.Conv(b.input("x", kind, ["N", *x.shape[1:]]), weights), "y")
        return b.model()

    wide = Runner(model("double", w.astype(np.float64))).run({"x": x.astype(np.float64)})["y"]
    compiled = Compiled(model("float", w))

    y = compiled.run({"x": x})["y"]

    np.testing.assert_allclose(y, wide, rtol=1.5e-6)
    assert any(k.kind == "winograd" and " long" in k.spec for k in compiled.explain().kernels)
    assert compiled.run({"x": x[:1]})["y"].tobytes() == y[:1].tobytes()


@pytest.mark.parametrize("keys", [64, 65, 20000])
def test_attention_to_many_keys(keys):
    rng = np.random.default_rng(0)
    shapes = {"q": (1, 2, 9, 8), "k": (1, 2, keys, 8), "v": (1, 2, keys, 8)}
    feeds = {name: rng.random(shape, dtype=np.float32) for name, shape in shapes.items()}

    def model(kind):
        b = sabir.Builder(opsets={"": 24})
        b.output(b.Attention(*(b.input(name, kind, list(shape)) for name, shape in shapes.items())), "y")
        return b.model()

    compiled = Compiled(model("float"))
    wide = Runner(model("double")).run({name: x.astype(np.float64) for name, x in feeds.items()})["y"]

    np.testing.assert_allclose(compiled.run(feeds)["y"], wide, rtol=1.5e-6)
    assert "attention" in {k.kind for k in compiled.explain().kernels}
