"""Subgraphs and local functions that Python functions build."""

import numpy as np
import pytest

import sabir
from sabir.base import SchemaError
from sabir.ir import Attribute

X = np.float32([1, -3])


def builder():
    b = sabir.Builder(21)
    return b, b.input("x", "float", ["N"])


def evaluated(b, **feeds):
    model = b.model()
    sabir.check(model)
    assert sabir.text(sabir.loads(sabir.dumps(model))) == sabir.text(model)
    return sabir.evaluate(model, feeds)


def test_branches_are_functions_of_their_builder():
    b, x = builder()
    outer = x * 3
    condition = b.Greater(b.ReduceSum(x, keepdims=0), 0)
    b.output(b.If(condition, then_branch=lambda g: outer * 2, else_branch=lambda g: g.Neg(outer) + 1), "y")
    assert evaluated(b, x=X)["y"].tolist() == [-2, 10]
    assert evaluated(b, x=-X)["y"].tolist() == [-6, 18]
    node = b.graph.outputs[0].node
    then, other = node.attributes["then_branch"].value, node.attributes["else_branch"].value
    assert [n.op for n in then] == ["Mul"]
    assert [n.op for n in other] == ["Neg", "Add"]
    names = [v.name for g in b.graph.scopes() for v in g.defined()]
    assert len(names) == len(set(names))
    assert [str(v.type) for v in then.outputs] == ["float[N]"]


def test_outputs_that_the_subgraph_does_not_compute_are_copied():
    b, x = builder()
    twice = b.If(
        True, then_branch=lambda g: [x, x, 1.5], else_branch=lambda g: [g.Neg(x)] * 2 + [0.0], outputs=3
    )
    for i, value in enumerate(twice):
        b.output(value, f"y{i}")
    found = evaluated(b, x=X)
    assert [found[f"y{i}"].tolist() for i in range(3)] == [[1, -3], [1, -3], 1.5]


def test_a_loop_has_inputs():
    b, x = builder()

    def step(g):
        round_, going = g.input("round", "int64", []), g.input("going", "bool", [])
        total = g.input("total", "float", ["N"])
        return going, total + x, round_ + 1

    total, rounds = b.Loop(3, None, x, body=step, outputs=2)
    b.output(total, "sum", "float", ["N"])
    b.output(rounds, "rounds", "int64", [None])
    found = evaluated(b, x=X)
    assert found["sum"].tolist() == [4, -12]
    assert found["rounds"].tolist() == [1, 2, 3]


def test_subgraphs_nest_and_declare_outputs():
    b, x = builder()

    def outer(g):
        inner = g.If(g.Less(0, 1), then_branch=lambda h: x + 1, else_branch=lambda h: x)
        g.output(inner * 2, "named")

    graph = b.subgraph(outer)
    assert graph.name == "outer"
    assert [v.name for v in graph.outputs] == ["named"]
    b.output(b.If(True, then_branch=graph, else_branch=lambda g: x), "y")
    assert evaluated(b, x=X)["y"].tolist() == [4, -4]


def test_a_subgraph_without_outputs_is_an_error():
    b, _ = builder()
    with pytest.raises(SchemaError, match="'then_branch' has no outputs; return its values"):
        b.If(True, then_branch=lambda g: None, else_branch=lambda g: 1.0)


def test_an_error_in_a_subgraph_ends_it():
    b, x = builder()
    with pytest.raises(ZeroDivisionError):
        b.subgraph(lambda g: 1 / 0)
    assert (x + 1).node.graph is b.graph


def test_a_python_function_is_a_local_function():
    b, x = builder()

    @b.function
    def leaky(g, y, bias, *, alpha=0.1):
        """A leaky rectifier."""
        return g.LeakyRelu(y + bias, alpha=alpha) * 2.0

    b.output(leaky(leaky(x, 1.0), -1.0, alpha=0.5), "y", "float", ["N"])
    assert evaluated(b, x=X)["y"].tolist() == [6, np.float32(-1.4)]
    (function,) = b.model().functions
    assert (function.domain, function.name, function.doc) == ("local", "leaky", "A leaky rectifier.")
    assert function.opsets == {"": 21}
    assert not function.graph.initializers
    assert str(leaky.__signature__) == "(y, bias, /, *, alpha=0.10000000149011612)"
    inlined = sabir.inline(b.model())
    assert sabir.evaluate(inlined, {"x": X})["y"].tolist() == [6, np.float32(-1.4)]


def test_functions_have_names_domains_several_outputs_and_call_one_another():
    b, x = builder()

    def shifted(g, y, *, by: float, times: list[int]):
        w = g.initializer("w", np.float32([1, 1]))
        return y + w, g.Constant(value_float=by), g.Constant(value_ints=times)

    call = b.function(shifted, name="Shifted", domain="org.acme")

    @b.function
    def outer(g, y):
        first, second, _ = call(y, by=2.0, times=[1, 2])
        return g.Mul(first, second)

    b.output(outer(x), "y", "float", ["N"])
    assert evaluated(b, x=X)["y"].tolist() == [4, -4]
    model = b.model()
    assert [(f.domain, f.name) for f in model.functions] == [("org.acme", "Shifted"), ("local", "outer")]
    assert model.functions[1].opsets == {"org.acme": 1, "": 21}
    assert model.opsets == {"": 21, "org.acme": 1, "local": 1}
    assert model.functions[0].attributes["by"] is None
    assert call.function is model.functions[0]
    assert "outer" in b.operator_names("local")


def test_a_function_in_a_branch():
    b, x = builder()
    double = b.function(lambda g, y: y * 2, name="double")
    b.output(b.If(True, then_branch=lambda g: double(x), else_branch=lambda g: x), "y", "float", ["N"])
    assert evaluated(b, x=X)["y"].tolist() == [2, -6]
    assert [n.op for n in b.graph] == ["If"]


def test_invalid_functions_and_calls_are_refused():
    b, x = builder()
    with pytest.raises(
        SchemaError, match="the function 'function' reads 'x' of the graph around it; pass it"
    ):
        b.function(lambda g, y: y + x)
    with pytest.raises(SchemaError, match="takes the builder of its body first"):
        b.function(lambda: None)
    with pytest.raises(SchemaError, match="a fixed number of inputs; '\\*ys' is none"):
        b.function(lambda g, *ys: ys)
    with pytest.raises(SchemaError, match="'alpha' has neither a default nor a type"):
        b.function(lambda g, y, *, alpha: y)
    scaled = b.function(lambda g, y, *, alpha=0.5: g.Elu(y, alpha=alpha), name="scaled")
    with pytest.raises(SchemaError, match="has 1 input, and the call has 2"):
        scaled(x, x)
    with pytest.raises(SchemaError, match="has 1 output, and the call has 2"):
        scaled(x, outputs=2)
    with pytest.raises(SchemaError, match="no attribute 'alpa'; is it 'alpha'"):
        scaled(x, alpa=1.0)
    with pytest.raises(SchemaError, match="attribute 'alpha' must be float"):
        scaled(x, alpha="a")

    def required(g, y, *, axis: int):
        return g.Softmax(y, axis=axis)

    softmax = b.function(required)
    with pytest.raises(SchemaError, match="requires the attribute 'axis'"):
        softmax(x)
    assert softmax(x, axis=0).node.attributes["axis"] == Attribute("axis", "int", 0)
