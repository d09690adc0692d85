"""Shape arithmetic: elementwise operators on known contents with symbols among them."""

import numpy as np
import pytest

import sabir
from sabir.base import InferenceError
from sabir.inference import Inference
from sabir.ir import Builder, TensorType, parse_dim, tensor_type
from sabir.opsets.families.numbers import arithmetic, broadcasting

N, M = parse_dim("N"), parse_dim("M")


def known(build, opset=21):
    """What is known of the value that `build` makes of the shape [N, 3, M]."""
    b = Builder(opset)
    x = b.input("x", "float", ["N", 3, "M"])
    b.output(build(b, b.Shape(x)))
    engine = Inference(b.model(), strict=True)
    engine.run()
    return engine.types[b.graph.outputs[0]].known


def ints(b, *values):
    return b.initializer("c", np.array(values, np.int64))


@pytest.mark.parametrize(
    ("op", "other", "expected"),
    [
        ("Add", (1, 1, -1), (N + 1, 4, M - 1)),
        ("Sub", (2,), (N - 2, 1, M - 2)),
        ("Mul", (2, 2, 0), (N * 2, 6, 0)),
        ("Div", (2, 2, 1), (N // 2, 1, M)),
        ("Div", (-2, 2, 0), (None, 1, None)),
        ("Max", (0, 5, -1), (N, 5, M)),
        ("Equal", (-1, 3, -1), (False, True, False)),
        ("Equal", (4, 3, 4), (None, True, None)),
        ("GreaterOrEqual", (0, 4, 7), (True, False, None)),
        ("LessOrEqual", (-1, 3, 7), (False, True, None)),
    ],
)
def test_binary_operators(op, other, expected):
    assert known(lambda b, s: b.op(op, s, ints(b, *other))) == expected


def test_division_of_what_may_be_negative_is_not_guessed():
    assert known(lambda b, s: b.Div(b.Sub(s, ints(b, 1)), ints(b, 2))) == (None, 1, None)


def test_the_choice_that_exporters_write_for_expand():
    def build(b, s):
        return b.Where(b.Equal(s, ints(b, -1)), ints(b, 1, 1, 1), s)

    assert known(build) == (N, 3, M)


def test_a_choice_on_unknown_conditions_keeps_what_both_sides_share():
    def build(b, s):
        condition = b.input("condition", "bool", [3])
        return b.Where(condition, s, b.Add(s, ints(b, 0, 0, 1)))

    assert known(build) == (N, 3, None)


def test_a_choice_knows_its_contents_beside_an_operand_of_unknown_size():
    b = Builder(21)
    x = b.input("x", "float", [2, None])
    b.output(b.Where(b.initializer("c", np.array([[True, False, False], [False, True, True]])), x, 2.0))
    engine = Inference(b.model(), strict=True)
    engine.run()
    assert engine.types[b.graph.outputs[0]].known == (None, 2, 2, 2, None, None)


def test_casts_keep_sizes_where_the_type_holds_them():
    assert known(lambda b, s: b.Cast(b.Cast(s, to=1), to=7)) == (N, 3, M)
    assert known(lambda b, s: b.Cast(s, to=6)) == (N, 3, M)
    assert known(lambda b, s: b.Cast(s, to=3)) == (None, 3, None)
    assert known(lambda b, s: b.Cast(s, to=9)) == (None, True, None)
    assert known(lambda b, s: b.Cast(b.Sub(s, ints(b, 9)), to=13)) == (None, None, None)


def test_floats_divide_only_where_nothing_is_left():
    def halved(b, s):
        doubled = b.Mul(b.Cast(s, to=1), b.initializer("two", np.float32(2)))
        return b.Div(doubled, b.initializer("four", np.array([2, 4, 4], np.float32)))

    assert known(halved) == (N, None, None)


def test_limits_of_sizes():
    assert known(lambda b, s: b.Clip(s, b.initializer("low", np.int64(0)))) == (N, 3, M)
    upper = known(lambda b, s: b.Clip(s, None, b.initializer("high", np.int64(2))))
    assert upper == (parse_dim("min(N, 2)"), 2, parse_dim("min(M, 2)"))


def test_results_that_would_wrap_are_not_known():
    a = tensor_type("uint8", [2]).with_known([250, N])

    assert arithmetic.known_sum(a, tensor_type("uint8", []).with_known([10])).known == (None, None)


def test_broadcasting_of_symbols():
    a, b = tensor_type("float", ["N", 1, 4]), tensor_type("float", ["M", 4])

    assert broadcasting.merged(a, b).shape == (N, M, 4)
    assert broadcasting.merged(a, tensor_type("float")).shape is None
    with pytest.raises(InferenceError, match="do not broadcast"):
        broadcasting.merged(a, tensor_type("float", [3]))


def test_broadcasting_of_a_size_and_its_capped_size():
    """Rows of a table of 512 have min(N, 512) rows: beside N rows a run is only valid where both are equal."""
    rows, all_rows = (tensor_type("float", [parse_dim(size), 4]) for size in ("min(N, 512)", "N"))
    for a, b in ((rows, all_rows), (all_rows, rows)):
        assert broadcasting.merged(a, b).shape == (N, 4)
    unknown = tensor_type("float", [parse_dim("min(N, 1)"), 4])  # one row, for more than none
    assert broadcasting.merged(unknown, all_rows).shape == (None, 4)
    assert broadcasting.merged(tensor_type("float", [parse_dim("min(N, M)"), 4]), all_rows).shape == (None, 4)


@pytest.mark.parametrize(
    ("a", "b", "axis", "expected"),
    [
        ((2, 3, 4), (3,), 1, True),
        ((2, 3, 4), (1, 1), None, True),
        ((2, 3, 4), (3, 4), None, True),
        ((2, 3, 4), (3,), None, False),
        ((2, 3, 4), (3, 4), 2, False),
        (("N", 3), ("N",), 0, True),
        (("N", 3), (2, 3, 4), None, False),
    ],
)
def test_the_one_way_broadcast(a, b, axis, expected):
    infer = broadcasting.one_way()
    left, right = tensor_type("float", a), tensor_type("float", b)
    if expected:
        assert infer(left, right, broadcast=1, axis=axis) == left
    else:
        with pytest.raises(InferenceError):
            infer(left, right, broadcast=1, axis=axis)


def test_without_broadcast_shapes_must_agree():
    infer = broadcasting.one_way()
    with pytest.raises(InferenceError, match="not set"):
        infer(tensor_type("float", [2, 3]), tensor_type("float", [3]), broadcast=0, axis=None)
    unknown = infer(
        TensorType(tensor_type("float").element), tensor_type("float", [3]), broadcast=0, axis=None
    )
    assert unknown.shape == (3,)


def test_a_conversion_that_the_version_lacks():
    b = Builder(8)
    b.output(b.Cast(b.input("x", "float", [2]), to=8))
    with pytest.raises(InferenceError, match="8 .string., and must be"):
        Inference(b.model(), strict=True).run()


def test_a_text_that_is_no_number():
    b = Builder(13)
    b.output(b.Cast(b.input("x", "string", [1]), to=1), "y")
    with pytest.raises(sabir.EvaluationError, match="abc"):
        sabir.evaluate(b.model(), {"x": np.array(["abc"], object)})
