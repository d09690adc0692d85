"""What an operator needs while it works is a small multiple of its inputs and outputs."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import LimitError, SabirError
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

MOST = 6.5  # bytes for each byte of inputs and outputs
F, H, U = np.float32, np.float16, np.uint8
N = 1 << 19


def o(*shape, kind=F):
    """Ones, which every operator takes."""
    return np.ones(shape, kind)


def i(*numbers):
    return np.array(numbers, np.int64)


def several(count, shape, kind=F):
    return [o(*shape, kind=kind)] * count


RANDOM = np.random.default_rng(3)
CASES = {
    # windows and images
    "GridSample": ("GridSample", [o(1, 3, 400, 400), o(1, 400, 400, 2)], {"mode": "linear"}),
    "GridSample of bytes": ("GridSample", [o(1, 3, 400, 400, kind=U), o(1, 400, 400, 2)], {"mode": "cubic"}),
    "GridSample of a volume": ("GridSample", [o(1, 1, 60, 60, 60), o(1, 60, 60, 60, 3)], {"mode": "linear"}),
    "GridSample mirrored": ("GridSample", [o(1, 1, 100, 100), o(1, 700, 700, 2)],
                            {"mode": "nearest", "padding_mode": "reflection"}),
    "Resize of bytes": ("Resize", [o(1, 3, 250, 250, kind=U), None, np.array([1, 1, 4, 4], F)], {"mode": "linear"}),
    "Resize of bytes, cubic": ("Resize", [o(1, 3, 250, 250, kind=U), None, np.array([1, 1, 4, 4], F)],
                               {"mode": "cubic"}),
    "Resize with antialiasing": ("Resize", [o(1, 3, 900, 900), None, np.array([1, 1, 0.1, 0.1], F)],
                                 {"mode": "cubic", "antialias": 1}),
    "Conv": ("Conv", [o(1, 16, 200, 200), o(16, 16, 3, 3)], {}),
    "Conv of halves": ("Conv", [o(1, 16, 200, 200, kind=H), o(16, 16, 3, 3, kind=H)], {}),
    "ConvTranspose": ("ConvTranspose", [o(1, 16, 200, 200), o(16, 16, 3, 3)], {}),
    "ConvInteger": ("ConvInteger", [o(1, 16, 300, 300, kind=U), o(16, 16, 3, 3, kind=U)], {}),
    "QLinearConv": ("QLinearConv", [o(1, 16, 400, 400, kind=U), F(1), U(0), o(16, 16, 3, 3, kind=U), F(1), U(0),
                                    F(1), U(0)], {}),
    "DeformConv": ("DeformConv", [o(1, 16, 100, 100), o(16, 16, 3, 3), o(1, 18, 98, 98)], {}),
    "AveragePool": ("AveragePool", [o(1, 1, 700, 700, kind=H)], {"kernel_shape": [3, 3]}),
    "MaxPool": ("MaxPool", [o(1, 16, 200, 200, kind=H)], {"kernel_shape": [3, 3]}),
    "LRN": ("LRN", [o(1, 64, 100, 100)], {"size": 5}),
    "Col2Im": ("Col2Im", [o(1, 144, 9604), i(100, 100), i(3, 3)], {}),
    # products
    "MatMulInteger": ("MatMulInteger", [np.full((700, 700), 200, U)] * 2, {}),
    "MatMul of halves": ("MatMul", several(2, (700, 700), H), {}),
    "Einsum": ("Einsum", [o(1000, 60), o(60, 1000), o(1000, 60)], {"equation": "ij,jk,kl->il"}),
    "Det": ("Det", [o(100, 60, 60)], {}),
    "Attention": ("Attention", several(3, (1, 8, 1500, 256)), {}),
    "LSTM": ("LSTM", [o(500, 8, 64), o(1, 256, 64), o(1, 256, 64)], {"hidden_size": 64, "outputs": 3}),
    # what follows from few numbers
    "HannWindow": ("HannWindow", [i(N)[0]], {"output_datatype": 10}),
    "AffineGrid": ("AffineGrid", [o(1, 2, 3), i(1, 1, 700, 700)], {}),
    "Range": ("Range", [F(0), F(N), F(1)], {}),
    "OneHot of bytes": ("OneHot", [i(*range(500)), i(2000)[0], np.array([0, 1], np.int8)], {}),
    "Tile": ("Tile", [o(10, kind=U), i(N)], {}),
    "Pad": ("Pad", [o(700, 700, kind=U), i(200, 200, 200, 200)], {"mode": "reflect"}),
    "RandomNormal of halves": ("RandomNormal", [], {"shape": [N], "dtype": 10}),
    # orders and places
    "TopK": ("TopK", [RANDOM.random(N).astype(F), i(10)], {"outputs": 2}),
    "Unique": ("Unique", [RANDOM.random(N).astype(F)], {"outputs": 4}),
    "NonZero": ("NonZero", [o(700, 700, kind=bool)], {}),
    "GatherElements": ("GatherElements", [o(700, 700, kind=U), np.zeros((700, 700), np.int32)], {}),
    "ScatterElements": ("ScatterElements", [o(N), np.zeros(N, int), o(N)], {"reduction": "add"}),
    "ScatterND": ("ScatterND", [o(N), np.zeros((N, 1), int), o(N)], {"reduction": "max"}),
    "NonMaxSuppression": ("NonMaxSuppression", [RANDOM.random((1, 4000, 4)).astype(F),
                                                RANDOM.random((1, 20, 4000)).astype(F), i(50)[0], F(0.5)], {}),
    "Compress": ("Compress", [o(N, kind=U), o(N, kind=bool)], {}),
    # element by element, and along an axis
    "Shrink of bytes": ("Shrink", [o(N, kind=U)], {"bias": 1.0}),
    "Erf of halves": ("Erf", [o(N, kind=H)], {}),
    "Mod of halves": ("Mod", [o(N, kind=H), o(1, kind=H)], {"fmod": 1}),
    "Bernoulli": ("Bernoulli", [o(N, kind=H)], {}),
    "Dropout": ("Dropout", [o(N, kind=H), F(0.5), np.array([True])[0]], {"outputs": 2}),
    "Multinomial": ("Multinomial", [np.zeros((100, 7000), F)], {"sample_size": 10}),
    "Softmax": ("Softmax", [o(100, 7000, kind=H)], {"axis": 0}),
    "ReduceLogSumExp": ("ReduceLogSumExp", [o(N, kind=H)], {}),
    "LayerNormalization": ("LayerNormalization", [o(700, 700, kind=H), o(700, kind=H)], {}),
    "GroupNormalization": ("GroupNormalization", [o(4, 16, 100, 100, kind=H), *several(2, (16,), H)],
                           {"num_groups": 4}),
    "QuantizeLinear": ("QuantizeLinear", [o(700, 700), o(700), o(700, kind=U)], {"axis": 1}),
    "DequantizeLinear": ("DequantizeLinear", [o(700, 700, kind=U), o(700)], {"axis": 1}),
    "SoftmaxCrossEntropyLoss": ("SoftmaxCrossEntropyLoss", [o(700, 700), np.zeros(700, int)], {}),
    "DFT": ("DFT", [o(1, N, 1)], {}),
    "STFT": ("STFT", [o(1, N, 1), i(256)[0], None, i(512)[0]], {}),
    "Trilu of brain floats": ("Trilu", [o(700, 700, kind=ml_dtypes.bfloat16)], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_temporaries_are_a_small_multiple(name):
    op, inputs, attributes = CASES[name]
    arrays = [None if x is None else np.asarray(x) for x in inputs]
    b = Builder(23)
    read = [None if x is None else b.initializer(f"i{k}", x) for k, x in enumerate(arrays)]
    made = b.op(op, *read, **{"outputs": 1} | attributes)
    for value in made if isinstance(made, tuple) else (made,):
        b.output(value)
    session = sabir.Session(sabir.Model(b.graph, b.opsets, 11))
    tracemalloc.start()
    try:
        found = session.run({}).values()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    given = sum(x.nbytes for x in arrays if x is not None)
    gives = sum(y.nbytes for y in found)
    assert given + gives > 1 << 18, "too little to be measured"
    assert peak - gives <= MOST * (given + gives), f"{(peak - gives) / (given + gives):.1f}"


def filled(b, *shape, **value):
    return b.ConstantOfShape(b.Constant(value_ints=list(shape)), **value)


GREEDY = {
    "a grid": lambda b: b.GridSample(filled(b, 1, 1, 2, 2), filled(b, 1, 5000, 5000, 2)),
    "a grid, cubic": lambda b: b.GridSample(
        filled(b, 1, 1, 2, 2), filled(b, 1, 4000, 4000, 2), mode="cubic", padding_mode="reflection"),
    "a product of bytes": lambda b: b.MatMulInteger(
        *(filled(b, *shape, value=np.array([200], U)) for shape in ((10, 9_000_000), (9_000_000, 10)))),
    "an order": lambda b: b.op("TopK", filled(b, 10_000_000), b.Constant(value_ints=[1]), outputs=2)[0],
    "the different ones": lambda b: b.op("Unique", filled(b, 10_000_000), outputs=1),
    "a mean of narrow windows": lambda b: b.AveragePool(
        filled(b, 1, 1, 6000, 6000, value=np.array([1], H)), kernel_shape=[2, 2]),
    "a line, interpolated": lambda b: b.Resize(
        filled(b, 2_000_000, value=np.array([1], U)), None, b.Constant(value_floats=[4.0]), mode="cubic"),
}  # fmt: skip


@pytest.mark.parametrize("name", GREEDY)
def test_a_small_model_stays_in_bounds_or_is_refused(name):
    b = Builder(22)
    b.output(GREEDY[name](b))
    with bounded():
        try:
            sabir.evaluate(sabir.Model(b.graph, b.opsets, 10), {})
        except SabirError as error:
            assert isinstance(error, LimitError), error


def test_what_narrow_inputs_take_while_they_are_computed_is_counted():
    b = Builder(22)
    many = filled(b, 1, 5_000_000, value=np.array([1], U))
    b.output(b.MatMulInteger(many, filled(b, 5_000_000, 1, value=np.array([1], U))))
    model = sabir.Model(b.graph, b.opsets, 10)
    assert next(iter(sabir.evaluate(model, {}).values())).tolist() == [[5_000_000]]
    with pytest.raises(LimitError, match="MatMulInteger.* with its temporaries"):
        sabir.evaluate(model, {}, limits=Limits(memory=50_000_000))
