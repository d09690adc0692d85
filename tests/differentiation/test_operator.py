# ruff: file-ignore[implicit-string-concatenation-in-collection-literal]  a model is one string of several lines
"""The operator Gradient: what it differentiates, at which values, nested, in branches, and what is refused."""

import numpy as np
import pytest

import sabir
from sabir.base import (
    LimitError,
    NotFoundError,
    SabirWarning,
    SchemaError,
    UnsupportedError,
)
from sabir.differentiation import expand_in_graph
from sabir.ir import verify
from support.engines import ENGINES

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>\n'
GRADIENT = "ai.onnx.preview.training.Gradient"
CASES = {
    "sums": (
        "g (double[2] a, double b) => (double[2] c, double[2] da, double db) {{"
        ' c = Add(a, b)  da, db = {g}<xs = ["a", "b"], y = "c">(a, b) }}',
        {"a": [2.0, 5], "b": 3.0},
        {"da": [1.0, 1], "db": 2.0},
    ),
    "a path through another variable is cut": (
        'g (double a, double b) => (double d, double dc, double da) {{ c = Add(a, b)  d = Mul(c, a)'
        '  dc, da = {g}<xs = ["c", "a"], y = "d">(c, a) }}',
        {"a": 2.0, "b": 3.0},
        {"dc": 2.0, "da": 5.0},
    ),
    "other values than those in the graph": (
        'g (double a, double b) => (double d, double dc, double da) {{ c = Add(a, b)  d = Mul(c, a)'
        '  dc = {g}<xs = ["c"], zs = ["a"], y = "d">(b, c)  da = Neg(dc) }}',
        {"a": 2.0, "b": 3.0},
        {"dc": 5.0, "d": 10.0},
    ),
    "an output that is left out": (
        'g (double a, double b) => (double db) {{ c = Mul(a, b)  , db = {g}<xs = ["a", "b"], y = "c">(a, b) }}',
        {"a": 2.0, "b": 3.0},
        {"db": 2.0},
    ),
    "a variable that nothing depends on": (
        'g (double a, double[2] b) => (double[2] db) {{ c = Mul(a, a)  da, db = {g}<xs = ["a", "b"], y = "c">(a, b) }}',
        {"a": 2.0, "b": [3.0, 4]},
        {"db": [0.0, 0]},
    ),
    "derivatives of derivatives, out of order": (
        'g (double a) => (double d, double d2, double d3) {{ c = Mul(a, a)  d = Mul(c, a)'
        '  d2 = {g}<xs = ["a"], y = "d1">(a)  d1 = {g}<xs = ["a"], y = "d">(a)  d3 = {g}<xs = ["a"], y = "d2">(a) }}',
        {"a": 2.0},
        {"d": 8.0, "d2": 12.0, "d3": 6.0},
    ),
    "within a branch": (
        'g (bool k, double a) => (double e) {{ c = Mul(a, a)  d = Mul(c, a)  e = If(k) <'
        ' then_branch = t () => (double p) {{ p = {g}<xs = ["a"], y = "d">(a) }},'
        ' else_branch = f () => (double q) {{ q = {g}<xs = ["a"], y = "d">(c) }}> }}',
        {"k": False, "a": 2.0},
        {"e": 48.0},  # 3 a², at 4
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_by_every_engine(name):
    text, feeds, expected = CASES[name]
    text = text.format(g=GRADIENT)
    model = sabir.parse(HEAD + text)
    sabir.check(model)
    expansion = expand_in_graph(model)
    verify(expansion)
    sabir.check(expansion)
    for engine in ENGINES:
        results = sabir.Session(model, engine=engine).run(feeds)
        for key, value in expected.items():
            np.testing.assert_allclose(results[key], value, rtol=1e-12)
            assert results[key].shape == np.shape(value)


def test_an_old_operator_set():
    text = CASES["sums"][0].format(g=GRADIENT)
    model = sabir.parse(HEAD.replace("10,", "7,").replace("21", "12") + text)
    assert sabir.evaluate(model, {"a": [1.0, 2], "b": 3.0})["db"] == 2
    assert model.opset() == 12


def test_functions_on_the_way_are_inlined():
    text = HEAD.replace("]>", ', "f" : 1]>') + (
        f'g (double a) => (double d) {{ c = f.Square(a)  d = {GRADIENT}<xs = ["a"], y = "c">(a) }}'
        '<domain: "f", opset_import: ["" : 21]> Square (x) => (y) { y = Mul(x, x) }'
    )
    assert sabir.evaluate(sabir.parse(text), {"a": 3.0})["d"] == 6


def test_a_model_with_the_operator_is_differentiated():
    text = f'g (double a) => (double d) {{ c = Mul(a, a)  d = {GRADIENT}<xs = ["a"], y = "c">(a) }}'
    found = sabir.differentiate(sabir.parse(HEAD + text), "d", "a")
    assert sabir.evaluate(found, {"a": 3.0})["grad_a"] == 2


def test_types_are_inferred():
    text = f'g (float[N] a, float b) => (da, db) {{ c = Mul(a, b)  da, db = {GRADIENT}<xs = ["a", "b"], y = "c">(a, b) }}'
    model = sabir.parse(HEAD + text)
    model = sabir.infer(model)
    assert [str(o.type) for o in model.graph.outputs] == ["float[N]", "float"]


def test_an_input_that_is_not_named_keeps_its_value():
    text = f'g (double a, double b) => (double d) {{ c = Mul(a, b)  d = {GRADIENT}<xs = ["a"], y = "c">(a) }}'
    with pytest.warns(
        SabirWarning, match="depends on 'b', which neither `xs` nor `zs` names; it keeps its value"
    ):
        session = sabir.Session(sabir.parse(HEAD + text))
    assert session.run({"a": 2.0, "b": 3.0})["d"] == 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ('xs = ["a"], y = "zz">(a)', NotFoundError, "names 'zz', and no graph around it has such a value"),
        ('xs = ["zz"], y = "c">(a)', NotFoundError, "no value named 'zz'"),
        ('xs = ["a", "a"], y = "c">(a, a)', SchemaError, "names a value twice"),
        ('xs = ["a"], y = "d">(a)', SchemaError, "depends on its own result"),
        ('xs = ["i"], zs = ["a", "f"], y = "c">(i, a, f)', SchemaError, "'i' is int64; only floating-point"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, message):
    text = (
        "g (double a, int64 i, double f) => (double d) { j = Cast<to = 7>(f)  h = Cast<to = 11>(j)  e = Mul(a, h)"
        f"  c = Mul(e, a)  d = {GRADIENT}<{call} }}"
    )
    for engine in ENGINES:
        with pytest.raises(error, match=message):
            sabir.Session(sabir.parse(HEAD + text), engine=engine)


def test_a_derivative_that_integers_stop_is_zero_or_refused():
    text = (
        "g (double a, double f) => (double d) { j = Cast<to = 7>(f)  h = Cast<to = 11>(j)  c = Mul(a, h)"
        f'  d = {GRADIENT}<xs = ["f"], zs = ["a"], y = "c">(f, a) }}'
    )
    model = sabir.parse(HEAD + text)
    for engine in ENGINES:
        assert sabir.Session(model, engine=engine).run({"a": 2.0, "f": 3.5})["d"] == 0
    with pytest.raises(UnsupportedError, match="it ends at <Node Cast>$"):
        expand_in_graph(model, strict=True)
    with pytest.raises(UnsupportedError, match="it ends at <Node Cast>$"):
        sabir.differentiate(model, "d", ["a"], strict=True)


FUNCTIONS = {  # the body of F, what the graph computes, feeds, results
    "an input": (
        'F (x) => (y) {{ c = Mul(x, x)  y = {g}<xs = ["x"], y = "c">(x) }}',
        "g (double a) => (double d) { d = f.F(a) }",
        {"a": 3.0}, {"d": 6.0},
    ),
    "two calls, whose values have other names": (
        'F (x) => (y) {{ c = Mul(x, x)  y = {g}<xs = ["x"], y = "c">(x) }}',
        "g (double a) => (double d, double c) { b = f.F(a)  c = Mul(a, a)  d = f.F(b) }",
        {"a": 3.0}, {"d": 12.0, "c": 9.0},
    ),
    "one value for two inputs, of which one is a variable": (
        'F (x, z) => (y) {{ c = Mul(x, z)  y = {g}<xs = ["x"], zs = ["z"], y = "c">(x, z) }}',
        "g (double a) => (double d) { d = f.F(a, a) }",
        {"a": 3.0}, {"d": 3.0},
    ),
    "other values than those in the function": (
        'F (x, z) => (y) {{ c = Mul(x, x)  y = {g}<xs = ["x"], y = "c">(z) }}',
        "g (double a, double b) => (double d) { d = f.F(a, b) }",
        {"a": 3.0, "b": 5.0}, {"d": 10.0},
    ),
    "a function in a branch": (
        'F (x) => (y) {{ c = Mul(x, x)  y = {g}<xs = ["x"], y = "c">(x) }}',
        "g (bool k, double a) => (double d) { b = Neg(a)  d = If(k) <"
        " then_branch = t () => (double p) { p = f.F(b) }, else_branch = e () => (double q) { q = Neg(b) }> }",
        {"k": True, "a": 3.0}, {"d": -6.0},
    ),
    "within a branch of a function": (
        "F (k, x) => (y) {{ c = Mul(x, x)  y = If(k) <"
        ' then_branch = t () => (p) {{ p = {g}<xs = ["x"], y = "c">(x) }}, else_branch = e () => (q) {{ q = Neg(x) }}> }}',
        "g (bool k, double a) => (double d) { d = f.F(k, a) }",
        {"k": True, "a": 3.0}, {"d": 6.0},
    ),
    "derivatives of derivatives": (
        'F (x) => (y) {{ b = Mul(x, x)  c = Mul(b, x)  d = {g}<xs = ["x"], y = "c">(x)  y = {g}<xs = ["x"], y = "d">(x) }}',
        "g (double a) => (double d) { d = f.F(a) }",
        {"a": 3.0}, {"d": 18.0},
    ),
}  # fmt: skip
WITH_F = '<domain: "f", opset_import: ["" : 21, "ai.onnx.preview.training" : 1]> '


def with_function(graph, function):
    """The model of a graph that calls F, which alone imports the operators of training."""
    head = '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n'
    return sabir.parse(head + graph + WITH_F + function.format(g=GRADIENT))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_in_a_function(name):
    function, graph, feeds, expected = FUNCTIONS[name]
    model = with_function(graph, function)
    sabir.check(model)
    expansion = expand_in_graph(model)
    verify(expansion)
    for engine in ENGINES:
        results = sabir.Session(model, engine=engine).run(feeds)
        assert {key: results[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ('F (x) => (y) {{ y = {g}<xs = ["x"], y = "zz">(x) }}', NotFoundError, "names 'zz', and its function has no"),
        ('F (x) => (y) {{ y = {g}<xs = ["x"], y = "y">(x) }}', SchemaError, "reads its own output"),
        ('F <n> (x) => (y) {{ c = Mul(x, x)  y = {g}<xs: strings = @n, y = "c">(x) }}', UnsupportedError,
         "takes names of values from an attribute of its function"),
        ('F (x) => (y) {{ c = Mul(x, x)  y = {g}<xs = ["x"], y = "c", named_values = 1>(x) }}', SchemaError,
         "attribute 'named_values', which no operator has"),
    ],
)  # fmt: skip
def test_calls_in_functions_that_are_refused(function, error, message):
    call = 'f.F<n = ["x"]>(a)' if "<n>" in function else "f.F(a)"
    with pytest.raises(error, match=message):
        sabir.Session(with_function(f"g (double a) => (double d) {{ d = {call} }}", function))


def test_an_expansion_that_explodes_ends_in_a_limit():
    nodes = "".join(f'  v{k + 1} = {GRADIENT}<xs = ["a"], y = "v{k}">(a)' for k in range(1, 30))
    text = f"g (double a) => (double v30) {{ b = Tanh(a)  v0 = Mul(b, a)  v1 = Mul(v0, b){nodes} }}"
    with pytest.raises(LimitError, match="nodes"):
        sabir.evaluate(sabir.parse(HEAD + text), {"a": 1.0}, limits=sabir.Limits(nodes=2000))


def test_a_name_that_is_no_text_is_refused():
    model = sabir.parse(
        HEAD + f'g (double a) => (double d) {{ c = Mul(a, a)  d = {GRADIENT}<xs = ["a"], y = "c">(a) }}'
    )
    data = sabir.dumps(model).replace(b"y\x22\x01c", b"y\x22\x01\xff")
    assert data != sabir.dumps(model)
    with pytest.raises(SchemaError, match="bytes that are no text"):
        sabir.Session(sabir.loads(data))
