"""Values that a few bytes ask to be huge are refused before they are made."""

import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import LimitError, SabirError
from sabir.elements import element
from sabir.ir import ArrayTensor, MapType, tensor_type
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

HUGE = 2**40
F = np.float32
SMALL = Limits(elements=1000)


def call(op, *inputs, opset=22, domain="", outputs=1, **attributes):
    """A model of one node on inputs of these values, and its feeds."""
    b = Builder(opset if not domain else 22, opsets={domain: opset})
    feeds, read = {}, []
    for place, x in enumerate(inputs):
        if x is None:
            read.append(None)
            continue
        value = b.graph.add_input(f"i{place}", _type(x))
        feeds[value.name] = x
        read.append(value)
    made = b.op(op, *read, outputs=outputs, domain=domain, **attributes)
    for value in made if outputs != 1 else (made,):
        b.output(value)
    return b.model(), feeds


def _type(x):
    if isinstance(x, dict):
        return MapType(element("int64"), tensor_type("float", ()))
    return tensor_type(x.dtype, x.shape)


def i(*numbers):
    return np.array(numbers, np.int64)


ONE, IMAGE = np.ones(1, F), np.ones((1, 1, 2, 2), F)
FILTER = np.ones((1, 1, 1, 1), F)
BOXES = np.array([[0, 0, 1, 1]], F)

HOSTILE = {
    "ConstantOfShape": call("ConstantOfShape", i(HUGE)),
    "ConstantOfShape whose product leaves int64": call("ConstantOfShape", i(2**32, 2**32, 2**32)),
    "Expand": call("Expand", ONE, i(HUGE)),
    "Tile": call("Tile", ONE, i(HUGE)),
    "Tile:1": call("Tile", ONE, np.array(2.0**40, F), np.array(0, F), opset=1),
    "Range": call("Range", np.array(0), np.array(2**62), np.array(1)),
    "Range of floats": call("Range", np.array(0, F), np.array(1e30, F), np.array(1, F)),
    "Pad": call("Pad", ONE, i(0, HUGE)),
    "Pad edge": call("Pad", ONE, i(HUGE, HUGE), mode="edge"),
    "Pad:2": call("Pad", ONE, opset=2, pads=[HUGE, 0]),
    "Resize sizes": call("Resize", IMAGE, None, None, i(1, 1, 2**20, 2**20)),
    "Resize scales": call("Resize", IMAGE, None, np.array([1, 1, 1e9, 1e9], F), mode="linear"),
    "Upsample": call("Upsample", IMAGE, np.array([1, 1, 1e6, 1e6], F), opset=9),
    "OneHot": call("OneHot", i(1, 2), np.array(HUGE), np.array([0, 1], F)),
    "HannWindow": call("HannWindow", np.array(HUGE)),
    "MelWeightMatrix": call("MelWeightMatrix", *(np.array(n) for n in (2**20, 2**21, 8000)),
                            np.array(0, F), np.array(4000, F)),
    "DFT": call("DFT", np.ones((1, 4, 1), F), np.array(HUGE), np.array(1)),
    "STFT": call("STFT", np.ones((1, 4, 1), F), np.array(1), None, np.array(HUGE)),
    "RandomNormal": call("RandomNormal", shape=[HUGE]),
    "RandomUniform": call("RandomUniform", shape=[2**20, 2**20]),
    "Multinomial": call("Multinomial", np.ones((1, 2), F), sample_size=2**31 - 1),
    "ConvTranspose strides": call("ConvTranspose", IMAGE, FILTER, strides=[2**30, 2**30]),
    "Conv pads": call("Conv", IMAGE, FILTER, pads=[2**30] * 4),
    "MaxPool pads": call("MaxPool", IMAGE, kernel_shape=[1, 1], pads=[2**30] * 4),
    "MaxPool kernel": call("MaxPool", IMAGE, kernel_shape=[2**31, 2**31], pads=[2**31] * 4),
    "AveragePool pads": call("AveragePool", IMAGE, kernel_shape=[2, 2], pads=[2**30] * 4),
    "MaxUnpool": call("MaxUnpool", FILTER, np.zeros((1, 1, 1, 1), int), i(1, 1, 2**30, 2**30),
                      kernel_shape=[1, 1]),
    "MaxUnpool strides": call("MaxUnpool", IMAGE, np.zeros((1, 1, 2, 2), int), kernel_shape=[1, 1],
                              strides=[2**30, 2**30]),
    "Col2Im": call("Col2Im", np.ones((1, 1, 2**9), F), i(2**30, 2), i(2**30 - 2**9 + 1, 2)),
    "CenterCropPad": call("CenterCropPad", ONE, i(HUGE)),
    "AffineGrid": call("AffineGrid", np.ones((1, 2, 3), F), i(1, 1, 2**20, 2**20)),
    "RoiAlign": call("RoiAlign", IMAGE, BOXES, i(0), output_height=2**20, output_width=2**20),
    "MaxRoiPool": call("MaxRoiPool", IMAGE, np.zeros((1, 5), F), pooled_shape=[2**20, 2**20]),
    "MatMul outer": call("MatMul", np.ones((2**15, 1), F), np.ones((1, 2**15), F)),
    "Add outer": call("Add", np.ones((2**15, 1), F), np.ones((1, 2**15), F)),
    "Einsum outer": call("Einsum", *[np.ones(2**10, F)] * 4, equation="a,b,c,d->abcd"),
    "Gather": call("Gather", np.ones((1, 2**15), F), np.zeros(2**15, int)),
    "CastMap": call("CastMap", {1: F(1)}, opset=1, domain="ai.onnx.ml", map_form="SPARSE", max_map=HUGE),
    "FeatureVectorizer": call("FeatureVectorizer", np.ones((1, 2), F), opset=1, domain="ai.onnx.ml",
                              inputdimensions=[HUGE]),
    "TfIdfVectorizer": call("TfIdfVectorizer", i(1), opset=9, mode="TF", ngram_counts=[0],
                            ngram_indexes=[HUGE], pool_int64s=[1], min_gram_length=1, max_gram_length=1,
                            max_skip_count=0),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_huge_value_is_refused_before_it_is_made(name):
    model, feeds = HOSTILE[name]
    with bounded(seconds=3, memory=1 << 28), pytest.raises(SabirError) as caught:
        sabir.evaluate(model, feeds)
    assert len(str(caught.value)) < 2000
    assert isinstance(caught.value, LimitError) or "Col2Im" in name or "STFT" in name


@pytest.mark.parametrize("name", HOSTILE)
def test_inference_makes_none_of_it(name):
    model, feeds = HOSTILE[name]
    for value in model.graph.inputs:
        if isinstance(feeds[value.name], np.ndarray):
            model.graph.set_initializer(value, ArrayTensor(feeds[value.name]))
    with bounded(seconds=1, memory=1 << 27):
        model = sabir.infer(model)


def test_a_value_no_larger_than_its_inputs_is_never_refused():
    x = np.ones((100, 100), F)
    for op in ("Relu", "Transpose", "Softmax", "Neg"):
        model, feeds = call(op, x)
        assert next(iter(sabir.evaluate(model, feeds, limits=SMALL).values())).shape == x.shape
    model, feeds = call("Add", x, x[:1])
    assert next(iter(sabir.evaluate(model, feeds, limits=SMALL).values())).shape == x.shape


def test_the_limit_is_named_and_can_be_raised():
    model, feeds = call("Expand", ONE, i(2000))
    with pytest.raises(LimitError, match=r"Expand.* would have 2,000 elements; the limit is 1,064: raise it "
                                         r"with `sabir.Limits\(elements=2000\)`"):  # fmt: skip
        sabir.evaluate(model, feeds, limits=SMALL)
    assert next(iter(sabir.evaluate(model, feeds, limits=Limits(elements=2000)).values())).shape == (2000,)
    assert next(iter(sabir.evaluate(model, feeds, limits=Limits(elements=None)).values())).shape == (2000,)


@pytest.mark.parametrize("op", ["MatMul", "Add", "Einsum", "Gather"])
def test_a_small_limit_holds_for_what_shapes_make_large(op):
    column, row = np.ones((100, 1), F), np.ones((1, 100), F)
    inputs = (row, np.zeros(100, int)) if op == "Gather" else (column, row)
    model, feeds = call(op, *inputs, **({"equation": "ab,bc->ac"} if op == "Einsum" else {}))
    with pytest.raises(LimitError, match="10,000 elements"):
        sabir.evaluate(model, feeds, limits=SMALL)


@pytest.mark.parametrize("op", ["Gather", "GatherND", "Unsqueeze"])
def test_more_axes_than_numpy_has_are_refused(op):
    x = np.ones((1,) * 60, F)
    index = {
        "Gather": np.zeros((1,) * 60, int),
        "GatherND": np.zeros((1,) * 60, int),
        "Unsqueeze": np.arange(60),
    }
    model, feeds = call(op, x, index[op])
    with pytest.raises(SabirError):
        sabir.evaluate(model, feeds)
