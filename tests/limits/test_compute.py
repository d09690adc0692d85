"""Little input, much to compute: refused, or done in time."""

import struct
import zlib

import numpy as np
import pytest

import sabir
from sabir import Builder
from sabir.base import LimitError, SabirError
from sabir.ir import tensor_type
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

F = np.float32


def filled(b, *shape, value=0.0):
    """A value that a few bytes make."""
    return b.ConstantOfShape(b.initializer("shape", np.array(shape)), value=np.array([value], F))


def run(build, opset=23, **given):
    """Evaluate what `build` makes, within bounds; return its value, or the error's text."""
    b = Builder(opset, opsets={"ai.onnx.ml": 3})
    b.output(build(b))
    model = sabir.Model(b.graph, b.opsets, 10)
    with bounded():
        try:
            return sabir.evaluate(model, {}, **given).popitem()[1]
        except SabirError as error:
            assert len(str(error)) <= 2000
            return error


REFUSED = {
    "a product of large matrices": lambda b: b.MatMul(filled(b, 8000, 8000), filled(b, 8000, 8000)),
    "a chain of large values": lambda b: _chain(b, filled(b, 2**25), 200),
    "many large values at once": lambda b: b.Sum(*(filled(b, 2**25) for _ in range(8))),
    "attention over a long sequence": lambda b: b.op(
        "Attention", *(filled(b, 1, 1, 2**20, 1) for _ in range(3))),
    "a recurrence of many steps": lambda b: b.op(
        "RNN", filled(b, 2**24, 1, 1), filled(b, 1, 1, 1), filled(b, 1, 1, 1), hidden_size=1, outputs=2)[1],
    "a convolution of many items": lambda b: b.Conv(filled(b, 2**23, 1, 2, 3), filled(b, 1, 1, 1, 2)),
    "boxes that suppress nothing": lambda b: b.NonMaxSuppression(
        filled(b, 1, 2**20, 4), filled(b, 1, 1, 2**20, value=1.0), b.initializer("most", np.array(2**40)),
        b.initializer("iou", np.array([2.0], F))),
    "regions without end": lambda b: b.MaxRoiPool(
        filled(b, 1, 1, 2, 2), filled(b, 2**21, 5), pooled_shape=[2, 2], spatial_scale=1.0),
    "a sequence of millions": lambda b: b.SplitToSequence(filled(b, 2**24)),
    "a pool with a kernel as wide as its padding": lambda b: b.AveragePool(
        filled(b, 1, 1, 2**22), kernel_shape=[2**21], pads=[2**20, 2**20], count_include_pad=1),
}  # fmt: skip


def _chain(b, x, length):
    for _ in range(length):
        x = b.Exp(x)
    return x


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name):
    assert isinstance(run(REFUSED[name]), LimitError)


def test_an_equation_of_many_letters_is_summed_operand_by_operand():
    row = np.ones(100, F)
    letters = "abcdefghijklmnopqrst"
    y = run(lambda b: b.Einsum(*[b.Constant(value=row)] * 20, equation=",".join(letters) + "->"))
    assert isinstance(y, SabirError) or np.isinf(y)


def test_an_equation_whose_products_grow_is_refused():
    row = np.ones(1000, F)
    found = run(lambda b: b.Einsum(*[b.Constant(value=row)] * 6, equation="a,b,c,d,e,f->abcdef"))
    assert isinstance(found, LimitError)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*a){20}b", "(x+x+)+y"])
def test_a_pattern_takes_linear_time(pattern):
    text = np.array(["a" * 50_000 + "!", "x" * 50_000], object)
    found = run(lambda b: b.RegexFullMatch(b.Constant(value=text), pattern=pattern))
    assert isinstance(found, SabirError) or found.tolist() == [False, False]


@pytest.mark.parametrize("pattern", ["a{1,1000}{1,1000}", "((a{1,100}){1,100}){1,100}"])
def test_a_pattern_that_counts_in_counts_is_refused(pattern):
    text = np.array(["a" * 1000], object)
    assert isinstance(run(lambda b: b.RegexFullMatch(b.Constant(value=text), pattern=pattern)), SabirError)


def test_texts_are_split_into_no_more_than_fits():
    many = np.array(["a b " * 500_000, *["c"] * 5000], object)
    assert isinstance(run(lambda b: b.StringSplit(b.Constant(value=many), outputs=2)[0]), LimitError)


def png(width, height):
    """A small file that says it is a large picture."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\0" * 2_000_000, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(2**31 - 1, 2**31 - 1), (2**20, 2**14), (20_000, 20_000)])
def test_an_image_is_measured_before_it_is_decoded(size):
    data = np.frombuffer(png(*size), np.uint8)
    with bounded(seconds=2, memory=1 << 28):
        assert isinstance(run(lambda b: b.ImageDecoder(b.Constant(value=data))), (SabirError, np.ndarray))


def test_a_tree_that_leads_back_to_itself_is_refused():
    b = Builder(22, opsets={"ai.onnx.ml": 3}, check=False)
    x = b.graph.add_input("x", tensor_type(F, (1, 1)))
    y = b.op(
        "TreeEnsembleRegressor", x, domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0, 0], nodes_nodeids=[0, 1], nodes_featureids=[0, 0], nodes_values=[0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ"], nodes_truenodeids=[1, 0], nodes_falsenodeids=[1, 0],
        target_treeids=[0], target_nodeids=[1], target_ids=[0], target_weights=[1.0],
    )  # fmt: skip
    b.output(y)
    with bounded(seconds=2), pytest.raises(SabirError):
        sabir.evaluate(sabir.Model(b.graph, b.opsets, 10), {"x": np.ones((1, 1), F)})


@pytest.mark.parametrize("attribute", ["n_targets", "target_ids"])
def test_a_tree_with_huge_numbers_is_refused(attribute):
    numbers = {"n_targets": 1, "target_ids": [0], attribute: 2**40 if attribute == "n_targets" else [2**40]}
    b = Builder(22, opsets={"ai.onnx.ml": 3}, check=False)
    x = b.graph.add_input("x", tensor_type(F, (1, 1)))
    b.output(b.op(
        "TreeEnsembleRegressor", x, domain="ai.onnx.ml", nodes_treeids=[0], nodes_nodeids=[0],
        nodes_featureids=[0], nodes_values=[0.0], nodes_modes=["LEAF"], nodes_truenodeids=[0],
        nodes_falsenodeids=[0], target_treeids=[0], target_nodeids=[0], target_weights=[1.0], **numbers,
    ))  # fmt: skip
    with bounded(seconds=2, memory=1 << 27), pytest.raises(SabirError):
        sabir.evaluate(sabir.Model(b.graph, b.opsets, 10), {"x": np.ones((1, 1), F)})


def test_a_window_wider_than_its_input_costs_no_more_than_the_input():
    for op in ("MaxPool", "LpPool", "AveragePool"):
        y = run(
            lambda b, op=op: b.op(
                op, filled(b, 1, 1, 4, value=1.0), kernel_shape=[2**40], auto_pad="SAME_UPPER"
            )
        )
        assert isinstance(y, SabirError) or y.shape == (1, 1, 4)


def test_strides_past_the_image_read_one_window():
    y = run(
        lambda b: b.Conv(
            filled(b, 1, 1, 3, 3, value=1.0), filled(b, 1, 1, 2, 2, value=1.0), strides=[2**62] * 2
        )
    )
    assert y.tolist() == [[[[4]]]]


def test_the_same_work_on_large_feeds_is_no_bomb():
    b = Builder(22)
    x = b.input("x", "float", [2000, 2000])
    y = x
    for _ in range(4):
        y = b.MatMul(y, x)
    b.output(y)
    zeros = np.zeros((2000, 2000), F)
    assert np.array_equal(sabir.evaluate(b.model(), {"x": zeros}, limits=sabir.Limits(work=0))[y.name], zeros)


SLOW = {
    "a remainder of numbers far apart": lambda b: b.Mod(
        filled(b, 2**24, value=3e38), b.initializer("y", np.array([1e-38], F)), fmod=1),
    "a remainder in double precision": lambda b: b.Mod(
        _wide(b, 1e300), b.initializer("y", np.array([3.7])), fmod=1),
    "cosines of large angles": lambda b: _repeated(lambda x: b.Mul(b.Cos(x), x), _wide(b, 1e18), 20),
}  # fmt: skip


def _wide(b, value):
    return b.ConstantOfShape(b.Constant(value_ints=[2**22]), value=np.array([value]))


def _repeated(rule, x, times):
    for _ in range(times):
        x = rule(x)
    return x


@pytest.mark.parametrize("name", SLOW)
def test_what_is_slow_for_some_values_is_counted(name):
    quarter = sabir.Limits(work=1 << 29)  # of the default
    assert isinstance(run(SLOW[name], limits=quarter), LimitError)
