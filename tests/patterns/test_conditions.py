"""Conditions as text: what they read, what they say, what is none."""

import pytest

import sabir
from sabir.base import SchemaError
from sabir.optimization import explain_node
from sabir.patterns import RewriteRule

MODEL = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x) => (y) <float[2] c = {1, 0.5}, float[1] one = {3}, double[4] far = {1, 1, 1, 1}> {
  s = Softmax <axis = 1> (x)  m = Concat <axis = 0> (s, x, x)  y = Transpose <perm = [1, 0]> (m) }""")
PATTERN = "y = Transpose <perm: ints = @p> (Concat (s = Softmax (x), *rest))"


def refusal(condition):
    rule = RewriteRule("r", PATTERN, "y = Transpose (Concat <axis = 0> (s, *rest))", [condition])
    (found,) = explain_node(MODEL, rule, "y")
    return found.reason


@pytest.mark.parametrize(
    "condition",
    [
        "rank(x) == 2",
        "shape(x)[-1] == 4",
        "shape(x) == ['N', 4]",
        "shape(x)[0] == 'N' and not rank(x) != 2",
        "dtype(x) in ['float', 'double']",
        "p == [1, 0]",
        "len(p) == rank(x) and sorted(p)[0] == 0",
        "s.axis == 1",
        "count(rest) == 2",
        "opset() >= 17",
        "present(x) and not is_constant(x)",
        "readers(s) == 1",
        "1 < rank(x) <= 2",
        "close(max(1, 2), 2.000001) or rank(x) == 7",
        "(2 * rank(x) - 1) % 2 == 3 // 3 == 1.0",
        "sqrt(4) / 2 == abs(-1)",
    ],
)
def test_what_holds(condition):
    assert not refusal(condition)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("rank(x) == 3", "the condition rank(x) == 3 does not hold: rank(x) is 2"),
        ("shape(x)[0] == 4", "the condition shape(x)[0] == 4 does not hold: shape(x) is ['N', 4]"),
        ("s.axis < 0", "the condition s.axis < 0 does not hold: s.axis is 1"),
        ("s.axes == 0", "the condition s.axes == 0 does not hold"),
        ("p == [0, 1]", "the condition p == [0, 1] does not hold: p is [1, 0]"),
        ("value(x) == 1", "the condition value(x) == 1 does not hold: value(x) is not known"),
        ("value(x) < 1", "the condition value(x) < 1 does not hold: value(x) is not known"),
        ("1 / (rank(x) - 2) == 1", "the condition 1 / (rank(x) - 2) == 1 does not hold: rank(x) is 2"),
        ("shape(x)[5] == 1", "the condition shape(x)[5] == 1 does not hold: shape(x) is ['N', 4]"),
        ("shape(x) + [1] == 1", "the condition shape(x) + [1] == 1 does not hold: shape(x) is ['N', 4]"),
    ],
)
def test_why_it_does_not_hold(condition, reason):
    assert refusal(condition) == reason


def test_contents_of_constants():
    rule = RewriteRule("r", "Mul (x, $c)", "Div (x, c)", ["elements(c) == [1, 0.5] and size(c) == 2"])
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (y) <float[2] c = {1, 0.5}> { y = Mul (x, c) }""")
    assert [node.op for node in sabir.rewrite(model, rule, verify=False).graph] == ["Div"]


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("rank(x", "is no condition"),
        ("", "is no condition"),
        ("x == 1", r"write rank\(x\)"),
        ("rank(z) == 1", "the pattern has no value 'z'"),
        ("rnak(x) == 1", "is it 'rank'"),
        ("rank(1) == 1", "takes the name of one value"),
        ("q == 1", "'q' is no attribute that the pattern names"),
        ("z.axis == 1", "the pattern has no value 'z'"),
        ("__import__('os')", "is no function of conditions"),
        ("(lambda: 1)()", "is no function of conditions"),
        ("[i for i in [1]]", "has a ListComp"),
        ("rank(x) ** 9", "has a BinOp"),
        ("rank(x) is 2", "has a Compare"),
        ("x.__class__.__mro__", "has a Attribute"),
        ("p[0:1] == 1", "has a Subscript"),
        ("1j == 1", "has a Constant"),
        ("(" * 500 + "1" + ")" * 500, "is no condition"),
        ("-" * 1500 + "1", "nested too deep"),
        ("1 + " * 600 + "1", "more than 2000 characters"),
        ("'\0'", "is no condition"),
        ("rank(x) == 2and 1", "is no condition"),
    ],
)
def test_what_is_no_condition(condition, problem):
    with pytest.raises(SchemaError, match=problem):
        RewriteRule("r", PATTERN, "y = Transpose (Concat <axis = 0> (s, *rest))", [condition])


def test_a_function_of_the_match():
    def has_matrix(m):
        return m.rank("x") == 3

    rule = RewriteRule("r", PATTERN, "y = Transpose (Concat <axis = 0> (s, *rest))", [has_matrix])
    (found,) = sabir.rewrite(MODEL, rule, explain=True).refusals
    assert found.reason == "the condition has_matrix does not hold"
    with pytest.raises(SchemaError, match="the conditions are a list"):
        RewriteRule("r", "Relu (x)", "x", "rank(x) == 2")
