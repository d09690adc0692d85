"""Operators in opsets before their first: the expressions by older operators compute the same, or say why not."""

import numpy as np
import pytest

import sabir
from sabir.ir import Builder, minimum_ir, tensor_type
from sabir.opsets import STANDARD
from support.conversions import assert_same_values, converted
from support.gradients import by_onnxruntime
from support.oracles import crashes
from support.rooms import attributes_of, examples_of, run, type_of

# How many examples convert to the opset before the first version, of all that call a version since then: with
# inputs computed at run time, and with all but the first one as small constants.
LEAST = {
    "BitShift": (18, 18),
    "BitwiseAnd": (11, 11),
    "BitwiseNot": (10, 10),
    "BitwiseOr": (11, 11),
    "BitwiseXor": (11, 11),
    "Compress": (0, 16),
    "ConstantOfShape": (9, 9),
    "ConvInteger": (8, 8),
    "Cosh": (8, 8),
    "CumProd": (0, 12),
    "CumSum": (0, 11),
    "DequantizeLinear": (68, 68),
    "Einsum": (35, 35),
    "Expand": (8, 8),
    "EyeLike": (8, 8),
    "GatherElements": (7, 7),
    "GatherND": (11, 11),
    "IsInf": (18, 18),
    "IsNaN": (15, 15),
    "MatMulInteger": (9, 9),
    "MelWeightMatrix": (0, 0),
    "Mod": (27, 27),
    "OneHot": (0, 17),
    "QLinearConv": (7, 7),
    "QLinearMatMul": (12, 12),
    "QuantizeLinear": (49, 49),
    "Range": (17, 17),
    "Resize": (0, 5),
    "ReverseSequence": (7, 7),
    "Round": (8, 8),
    "ScatterElements": (19, 19),
    "ScatterND": (19, 19),
    "Sign": (12, 12),
    "Sinh": (8, 8),
    "TensorScatter": (7, 7),
    "Trilu": (13, 13),
    "Where": (10, 10),
}
FURTHER = (2, 3, 5)  # opsets below the first version, of which each example takes one
_SMALL = 64  # elements of an input that may be a constant
UNDEFINED = {"QuantizeLinear"}  # for NaN: the standard does not say which integer it is


def _expressed():
    return [o for o in STANDARD if o.versions[0].find("downgrade") and o.versions[0].since > 1]


@pytest.mark.parametrize("operator", _expressed(), ids=lambda o: o.name)
@pytest.mark.parametrize("kind", ["inputs", "constants"])
def test_examples_keep_their_values(operator, kind):
    first = operator.versions[0].since
    count = sum(_converts(operator, example, kind, first - 1) for example in examples_of(operator))
    assert count >= LEAST[operator.name][kind == "constants"]


@pytest.mark.parametrize("operator", _expressed(), ids=lambda o: o.name)
def test_further_down_and_with_unknown_sizes(operator):
    first = operator.versions[0].since
    for place, example in enumerate(examples_of(operator)):
        _converts(operator, example, "symbols", first - 1)
        _converts(operator, example, "constants", first - FURTHER[place % len(FURTHER)])


def test_every_expression_is_in_the_table():
    assert {o.name for o in _expressed()} == LEAST.keys()


def _converts(operator, example, kind, opset):
    """Whether an example converts; if so, it computes the same. Else the error has a reason."""
    model, feeds = _model(operator, example, kind)
    got = converted(model, operator.domain, opset)
    if isinstance(got, sabir.ConversionError):
        return False
    assert_same_values(got, feeds, run(model, feeds), max(example.tolerance, 1e-6))
    return True


def _model(operator, example, kind):
    """A model of one call: with inputs of known sizes or of symbolic ones, or with constants."""
    b, operands, feeds = Builder(example.opset), [], {}
    for place, x in enumerate(example.inputs):
        array = None if x is None else _defined(operator, np.asarray(x))
        if array is None:
            operands.append(None)
        elif kind == "constants" and place and array.size <= _SMALL:
            operands.append(b.initializer(f"i{place}", array))
        else:
            told = type_of(array)
            if kind == "symbols" and (array.ndim > 1 or not place):
                told = tensor_type(array.dtype, [f"n{place}_{axis}" for axis in range(array.ndim)])
            operands.append(b.input(f"i{place}", told))
            feeds[f"i{place}"] = array
    b.output(b.op(operator.name, *operands, **attributes_of(operator.at(example.opset), example)), "y")
    return b.model(ir_version=minimum_ir(max(example.opset, 21))), feeds


def _defined(operator, x):
    return np.where(np.isnan(x), 0, x) if operator.name in UNDEFINED and x.dtype == np.float32 else x


# ---------------------------------------------------------------- reasons


@pytest.mark.parametrize(
    ("name", "reason"),
    [(o.name, why) for o in STANDARD if (why := o.versions[0].why_absent("downgrade")) and not o.domain],
)
def test_an_operator_without_an_expression_says_why(name, reason):
    operator = STANDARD.find("", name)
    first = operator.versions[0].since
    assert operator.versions[0].find("body") is None
    assert reason[0].islower()
    assert not reason.endswith(".")
    b = Builder(first, check=False)
    b.output(b.op(name, b.input("x", "float", [2])), "y", "float")
    error = converted(b.model(), "", first - 1)
    assert isinstance(error, sabir.ConversionError)
    assert reason in error.refusals[0].reason


# ---------------------------------------------------------------- what is written


def _ops(text, opset):
    return [node.op for node in sabir.convert(sabir.parse(text), opset).graph]


def test_an_operator_that_was_only_renamed_is_one_node():
    resize = """<ir_version: 5, opset_import: ["" : 10]>
    g (float[1,3,N,M] x) => (float[1,3,?,?] y) <float[4] scales = {1, 1, 2, 2}> { [up] y = Resize (x, scales) }"""
    scatter = """<ir_version: 6, opset_import: ["" : 13]>
    g (float[N,4] x, int64[N,2] i, float[N,2] u) => (float[N,4] y) { y = ScatterElements <axis = 1> (x, i, u) }"""
    assert _ops(resize, 9) == _ops(resize, 8) == _ops(resize, 7) == ["Upsample"]
    assert _ops(scatter, 10) == _ops(scatter, 9) == ["Scatter"]


def test_what_is_known_becomes_a_constant():
    mask = """<ir_version: 8, opset_import: ["" : 14]>
    g (float[B,5,5] x) => (float[B,5,5] y) { y = Trilu <upper = 0> (x) }"""
    numbers = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[5] x) => (float[5] y) <float start = {0}, float limit = {5}, float delta = {1}>
    { r = Range (start, limit, delta)  y = Add (x, r) }"""
    expand = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[N,1] x) => (float[N,4] y) <int64[2] shape = {1, 4}> { y = Expand (x, shape) }"""
    zeros = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,3] x) => (float[2,3] y) <int64[2] shape = {2, 3}> { z = ConstantOfShape (shape)  y = Add (x, z) }"""
    assert _ops(mask, 13) == ["Where"]
    assert _ops(numbers, 10) == ["Add"]
    assert _ops(expand, 7) == ["Tile"]
    assert _ops(zeros, 8) == ["Expand", "Add"]
    assert _ops(zeros, 7) == ["Tile", "Add"]


def test_a_constant_of_integers_becomes_an_initializer():
    model = sabir.parse("""<ir_version: 4, opset_import: ["" : 9]>
    g (float[2,3] x) => (float[3,2] y) { s = Constant <value = int64[2] {3, 2}> ()  y = Reshape (x, s) }""")
    got = sabir.convert(model, 7)
    sabir.check(got)
    assert [node.op for node in got.graph] == ["Reshape"]
    assert [value.constant.array().tolist() for value in got.graph.initializers] == [[3, 2]]


def test_an_equation_of_equal_sizes_is_one_product_of_matrices():
    heads = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[B,H,Q,8] q, float[B,H,K,8] k) => (float[B,H,Q,K] y)
    { y = Einsum <equation = "bhqd,bhkd->bhqk"> (q, k) }"""
    output = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[B,S,4,8] x, float[4,8,32] w) => (float[B,S,32] y) { y = Einsum <equation = "bshk,hkd->bsd"> (x, w) }"""
    assert sorted(_ops(heads, 11)) == ["MatMul", "Transpose"]
    assert _ops(output, 11).count("MatMul") == 1
    assert "ReduceSum" not in _ops(output, 11)
    rng = np.random.default_rng(1)
    feeds = {"x": rng.normal(size=(2, 3, 4, 8)), "w": rng.normal(size=(4, 8, 32))}
    feeds = {name: x.astype(np.float32) for name, x in feeds.items()}
    got = sabir.evaluate(sabir.convert(sabir.parse(output), 9), feeds)["y"]
    np.testing.assert_allclose(got, np.einsum("bshk,hkd->bsd", *feeds.values()), rtol=1e-5, atol=1e-5)


def test_sums_of_a_quantized_convolution_are_float_where_that_is_exact():
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (uint8[1,N,8,8] x, float s, uint8 z) => (uint8[1,1,6,6] y)
      <float t = {0.5}, uint8 p = {3}, int8[1,64,3,3] w = {WEIGHTS}, float u = {0.25}, int8 q = {0}>
    { y = QLinearConv (x, s, z, w, u, q, t, p) }"""
    for weight, kind in (("1", 1), ("127", 11)):  # the numbers of float and double
        weights = ", ".join([weight] * (64 * 9))
        got = sabir.convert(sabir.parse(text.replace("WEIGHTS", weights)), 9)
        conv = next(n for n in got.graph if n.op == "Conv")
        assert conv.inputs[0].node.inputs[0].node.attributes["to"].value == kind


def test_scales_along_an_axis_before_they_existed():
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (int8[2,3] x) => (float[2,3] y) <float[2] s = {0.5, 2}, int8[2] z = {1, 0}>
    { y = DequantizeLinear <axis = 0> (x, s, z) }"""
    x = np.array([[1, 3, -5], [1, 2, -128]], np.int8)
    for opset in (12, 10, 9):
        got = sabir.evaluate(sabir.convert(sabir.parse(text), opset), {"x": x})["y"]
        assert got.tolist() == [[0, 1, -3], [2, 4, -256]]


def test_a_causal_mask_of_any_length():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,1,S,S] scores) => (float[1,1,S,S] y)
      <int64[1] last = {3}, float low = {-1000}, int64 k = {1}> {
        n = Shape (scores)
        s = Gather (n, last)
        square = Concat <axis = 0> (s, s)
        ones = ConstantOfShape <value = float[1] {1}> (square)
        above = Trilu <upper = 1> (ones, k)
        hidden = Cast <to = 9> (above)
        y = Where (hidden, low, scores)
    }""")
    for opset in (13, 11, 10, 9):
        got = sabir.convert(model, opset)
        sabir.check(got)
        for size in (1, 3):
            scores = np.arange(size * size, dtype=np.float32).reshape(1, 1, size, size)
            expected = np.where(np.triu(np.ones((size, size)), 1), -1000, scores)
            assert sabir.evaluate(got, {"scores": scores})["y"].tolist() == expected.tolist()


# ---------------------------------------------------------------- special values


def _one(op, opset, kind, *, types="float"):
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g ({types}[N] x) => ({kind}[N] y) {{ y = {op} (x) }}"""


def test_the_sign_of_zero_stays():
    x = np.float32([
        -0.0,
        0.0,
        -0.3,
        0.3,
        -0.5,
        0.5,
        1.5,
        2.5,
        -2.5,
        0.49999997,
        -1e-40,
        8388609,
        np.inf,
        np.nan,
    ])
    got = sabir.evaluate(sabir.convert(sabir.parse(_one("Round", 11, "float")), 10), {"x": x})["y"]
    expected = np.rint(x)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(np.signbit(got[:-1]), np.signbit(expected[:-1]))
    got = sabir.evaluate(sabir.convert(sabir.parse(_one("Sinh", 9, "float")), 8), {"x": np.asarray(x)[:2]})[
        "y"
    ]
    assert np.signbit(got).tolist() == [True, False]


def test_hyperbolic_functions_keep_their_digits():
    x = np.float32([1e-30, -3e-4, 0.1, 2, -88, 89])
    for op, function in (("Sinh", np.sinh), ("Cosh", np.cosh)):
        got = sabir.evaluate(sabir.convert(sabir.parse(_one(op, 9, "float")), 8), {"x": x})["y"]
        np.testing.assert_allclose(got, function(x.astype(np.float64)), rtol=1e-6)


def test_what_is_not_chosen_has_no_influence():
    model = sabir.parse("""<ir_version: 5, opset_import: ["" : 9]>
    g (bool[2,2] c, float[2,2] x, float[2] y) => (float[2,2] z) { z = Where (c, x, y) }""")
    c, x = [[True, False], [False, True]], np.float32([[np.inf, np.nan], [-np.inf, -0.0]])
    z = sabir.evaluate(sabir.convert(model, 8), {"c": np.array(c), "x": x, "y": np.float32([np.nan, 5])})["z"]
    assert np.array_equal(z, np.float32([[np.inf, 5], [np.nan, -0.0]]), equal_nan=True)
    assert np.signbit(z[1, 1])


def test_integers_that_are_no_doubles_are_not_compared_as_such():
    model = sabir.parse("""<ir_version: 5, opset_import: ["" : 9]>
    g (int64[N] x, int64[N] y) => (bool[N] z) { z = Less (x, y) }""")
    error = converted(model, "", 8)
    assert error.refusals[0].reason == "Less:7 compares floats, and not every int64 is one"
    zero = sabir.parse("""<ir_version: 5, opset_import: ["" : 9]>
    g (int64[N] x) => (bool[N] z) <int64 y = {0}> { z = Less (x, y) }""")
    x = np.array([-(2**63), -1, 0, 1, 2**63 - 1])
    assert sabir.evaluate(sabir.convert(zero, 8), {"x": x})["z"].tolist() == [True, True, False, False, False]


def test_remainders_by_zero_and_of_the_least_integer():
    model = sabir.parse("""<ir_version: 5, opset_import: ["" : 10]>
    g (int32[N] x, int32[N] y) => (int32[N] z) { z = Mod (x, y) }""")
    x, y = np.int32([7, -7, 7, -7, 5, -(2**31), 6]), np.int32([3, 3, -3, -3, 0, -1, -3])
    got = sabir.evaluate(sabir.convert(model, 8), {"x": x, "y": y})["z"]
    assert got.tolist() == [1, 2, -2, -1, 0, 0, 0]


# ---------------------------------------------------------------- onnxruntime

# how many of the examples, converted to the opset before the first version, onnxruntime computes as Sabir does
RUN = {
    "BitShift": 18,
    "Compress": 16,
    "ConstantOfShape": 9,
    "ConvInteger": 6,
    "Cosh": 8,
    "CumSum": 10,
    "DequantizeLinear": 68,
    "Einsum": 35,
    "Expand": 8,
    "EyeLike": 8,
    "GatherElements": 7,
    "GatherND": 11,
    "IsInf": 18,
    "IsNaN": 15,
    "Mod": 24,
    "OneHot": 17,
    "QLinearConv": 6,
    "QLinearMatMul": 12,
    "QuantizeLinear": 41,
    "Range": 17,
    "ReverseSequence": 7,
    "Round": 8,
    "ScatterElements": 19,
    "ScatterND": 19,
    "Sinh": 8,
    "TensorScatter": 6,
    "Trilu": 11,
    "Where": 10,
}
_NEWEST_IR = 10  # of onnxruntime


@pytest.mark.parametrize(("name", "least"), RUN.items())
def test_onnxruntime_computes_the_same(name, least):
    operator, count = STANDARD.find("", name), 0
    for example in examples_of(operator):
        empty = name == "CumSum" and np.size(example.inputs[0]) == 0  # a Scan of nothing ends the process
        if empty or crashes(operator, example):
            continue
        model, feeds = _model(operator, example, "constants")
        got = converted(model, "", operator.versions[0].since - 1)
        if not isinstance(got, sabir.ConversionError):
            got.ir_version = min(got.ir_version, _NEWEST_IR)
            count += _runs(got, feeds, run(model, feeds), max(example.tolerance, 1e-6))
    assert count >= least


def _runs(model, feeds, expected, tolerance):
    """Whether onnxruntime has all kernels; what it then computes is the same."""
    try:
        found = [*by_onnxruntime(model, feeds).values()]
    except Exception:  # ruff: ignore[blind-except]  its errors have no common base
        return False
    for got, wanted in zip(found, expected, strict=True):
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=tolerance, atol=tolerance)
        else:
            assert np.array_equal(np.asarray(got), wanted)
    return True
