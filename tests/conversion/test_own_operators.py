"""Conversion of operators outside the standard: those of a registry, and those that documents define."""

from itertools import starmap

import numpy as np
import pytest

import sabir
from sabir.ir import OperatorEntry
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Attribute, Constraint, Input, Operator, Output, Unconvertible
from sabir.syntax import parse_function

T = Constraint("T", FLOATS)


@pytest.fixture
def registry():
    """`Scale` has an attribute that version 2 makes an input, `Old` is gone with 3, `New` comes with 3."""
    scale = Operator("Scale", "com.acme", summary="The product with a number.")
    by = Attribute("by", "float", "The factor.", default=2.0)
    v1 = scale.first(1, inputs=[Input("x", T)], outputs=[Output("y", T)], attributes=[by])
    v2 = v1.evolve(2, "`by` is an input.", inputs=[Input("x", T), Input("by", T)], drop=["by"])

    @v1.infer
    def infer(x, /, **_):
        return x

    @v1.evaluate
    def evaluate(x, /, *, by):
        return x * x.dtype.type(by)

    @v2.infer
    def infer_with_input(x, _, /):
        return x

    @v2.evaluate
    def evaluate_with_input(x, by, /):
        return x * by

    @v2.upgrade
    def to_input(b, x, /, *, by):
        return b.op("Scale", x, np.array(by, x.type.element.dtype), domain="com.acme")

    @v2.downgrade
    def to_attribute(b, x, by, /):
        known = by.type.known
        if known is None:
            raise Unconvertible("`by` is computed at run time")
        return b.op("Scale", x, by=float(known[0]), domain="com.acme")

    old = Operator("Old", "com.acme", summary="The opposite.")
    first = old.first(1, inputs=[Input("x", T)], outputs=[Output("y", T)])
    gone = first.retire(3, "Use Neg.")
    first.infer(lambda x, /: x)
    first.evaluate(lambda x, /: -x)
    gone.upgrade(lambda b, x, /: b.Neg(x))

    new = Operator("New", "com.acme", summary="Twice the input.")
    v3 = new.first(3, inputs=[Input("x", T)], outputs=[Output("y", T)])
    v3.infer(lambda x, /: x)
    v3.evaluate(lambda x, /: x + x)
    v3.body(lambda b, x, /: b.Add(x, x))
    return STANDARD.with_operators(scale, old, new, opsets={"com.acme": 3})


def parsed(body, version):
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 21, "com.acme" : {version}]>\n'
        f"g (float[N] x) => (float[N] y) {{ {body} }}"
    )


def test_upwards(registry):
    model = parsed("t = com.acme.Scale <by = 3.0> (x)  y = com.acme.Old (t)", 1)
    got = sabir.convert(model, opsets={"com.acme": 3}, registry=registry)
    assert [(n.domain, n.op) for n in got.graph] == [("com.acme", "Scale"), ("", "Neg")]
    assert [v.name for v in got.graph.initializers] == ["by"]
    assert got.opsets == {"": 21, "com.acme": 3}
    assert sabir.evaluate(got, {"x": [1.0, 2.0]}, registry=registry)["y"].tolist() == [-3, -6]


def test_downwards_and_through_the_standard_at_once(registry):
    model = parsed("t = com.acme.New (x)  f = Constant <value_float = 0.5> ()  y = com.acme.Scale (t, f)", 3)
    got = sabir.convert(model, opset=13, opsets={"com.acme": 1}, registry=registry)
    assert [(n.domain, n.op) for n in got.graph] == [("", "Add"), ("com.acme", "Scale")]
    assert str(got.graph[1].attributes["by"]) == "Attribute(by: float = 0.5)"
    assert sabir.evaluate(got, {"x": [1.0, 2.0]}, registry=registry)["y"].tolist() == [1, 2]


def test_what_cannot_cross_is_named(registry):
    model = parsed("y = com.acme.Scale (x, x)", 2)
    with pytest.raises(sabir.ConversionError, match=r"com.acme.Scale:2: `by` is computed at run time"):
        sabir.convert(model, opsets={"com.acme": 1}, registry=registry)


def test_versions_far_apart_cost_nothing():
    relu = Operator("Id", "com.acme", summary="The input.")
    relu.first(1, inputs=[Input("x", T)], outputs=[Output("y", T)]).infer(lambda x, /: x)
    registry = STANDARD.with_operators(relu)
    model = parsed("y = com.acme.Id (x)", 1 << 60)
    assert sabir.convert(model, opsets={"com.acme": 1}, registry=registry).opsets["com.acme"] == 1
    assert sabir.convert(model, opsets={"com.acme": 1 << 62}, registry=registry).opsets["com.acme"] == 1 << 62


def document(version, *functions, **entries):
    found = [parse_function(f'<domain: "com.acme", opset_import: ["" : 18]>\n{text}') for text in functions]
    listed = list(starmap(OperatorEntry, entries.items()))
    return sabir.OperatorSet("com.acme", version, listed, found)


def test_documented_operators_that_did_not_change_stay_and_others_are_written_out():
    same = "Same (x) => (y) { y = Neg (x) }"
    first = document(1, same, "Mean (x) => (y) { y = ReduceMean <keepdims = 1> (x) }", Same=1, Mean=1)
    second = document(2, same, "Mean (x) => (y) { y = ReduceMax <keepdims = 1> (x) }", Same=1, Mean=2)
    registry = STANDARD.with_operator_sets(first, second)
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 13, "com.acme" : 1]>\n'
        "g (float[N] x) => (float[1] y) { t = com.acme.Same (x)  y = com.acme.Mean (t) }"
    )

    got = sabir.convert(model, opset=21, opsets={"com.acme": 2}, registry=registry)

    assert [(n.domain, n.op) for n in got.graph] == [("com.acme", "Same"), ("", "ReduceMean")]
    assert got.opsets == {"": 21, "com.acme": 2}
    assert sabir.evaluate(got, {"x": [1.0, 3.0]}, registry=registry)["y"].tolist() == [-2]


def test_a_declared_operator_without_a_body_is_refused_where_it_changed():
    registry = STANDARD.with_operator_sets(document(1, Opaque=1), document(2, Opaque=2))
    model = parsed("y = com.acme.Opaque (x)", 1)
    with pytest.raises(
        sabir.ConversionError, match=r"com.acme.Opaque:1: the target version has no such operator, and no doc"
    ):
        sabir.convert(model, opsets={"com.acme": 2}, registry=registry)
    assert sabir.convert(model, opset=18, registry=registry).graph[0].op == "Opaque"
