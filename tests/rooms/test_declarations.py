"""What an operator cannot be declared to be: the declaration itself fails, not a later call."""

import pytest

import sabir
from sabir.base import SchemaError
from sabir.opsets import STANDARD
from sabir.reference import index, page
from sabir.schema import FLOATS, Attribute, Constraint, Input, Operator, Output

T = Constraint("T", FLOATS)
X, Y, MANY = Input("x", T), Output("y", T), Input("xs", T, variadic=True)


def first(**parts):
    return Operator("Op", "example").first(1, **{"inputs": [X], "outputs": [Y], **parts})


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"inputs": [MANY, X]}, "the variadic input 'xs' before others"),
        ({"inputs": [MANY, Input("ys", T, variadic=True)]}, "the variadic input 'xs' before others"),
        ({"outputs": [Output("ys", T, variadic=True), Y]}, "the variadic output 'ys' before others"),
        ({"inputs": [X, X]}, "two inputs named 'x'"),
        ({"outputs": [Y, Output("y", "tensor(int64)")]}, "two outputs named 'y'"),
        ({"attributes": [Attribute("a", "int"), Attribute("a", "float")]}, "two attributes named 'a'"),
    ],
)
def test_a_signature_that_no_call_can_fit(parts, told):
    with pytest.raises(SchemaError, match=told):
        first(**parts)


def test_a_later_version_is_examined_too():
    v1 = first(attributes=[Attribute("a", "int")])
    with pytest.raises(SchemaError, match="Op:2 declares the variadic input 'xs' before others"):
        v1.evolve(2, "More.", inputs=[MANY, X])
    with pytest.raises(SchemaError, match="Op:2 declares two inputs named 'x'"):
        v1.extend(2, "More.", inputs=[Input("x", T, optional=True)])
    with pytest.raises(SchemaError, match="Op:2 declares two attributes named 'b'"):
        v1.evolve(2, "More.", add=[Attribute("b", "int"), Attribute("b", "int")])
    assert [v.since for v in v1.operator.versions] == [1]


def test_what_the_standard_has_may_be_declared():
    """An output, or an attribute as in Split:1, may be named as an input; a replaced attribute as the old."""
    v1 = first(inputs=[X, MANY], outputs=[Output("x", T)], attributes=[Attribute("x", "int")])
    assert v1.evolve(2, "As a float.", add=[Attribute("x", "float")]).attributes[0].type == "float"


def test_the_status_of_a_version():
    v1 = first(status="experimental")
    assert v1.widen(2, T=frozenset({"tensor(bfloat16)"})).status == "experimental"
    v3 = v1.evolve(3, "Settled.", status="stable")
    assert (v1.status, v3.status, v3.retire(4, "Gone.").status) == ("experimental", "stable", "stable")


def test_the_pages_show_what_is_experimental():
    flex, upsample = STANDARD.find("ai.onnx.preview", "FlexAttention"), STANDARD.find("", "Upsample")
    assert "**Experimental**" in page(flex)
    assert "**Experimental**" in page(upsample, 1)
    assert "**Experimental**" not in page(upsample, 9)
    assert "- **1** (experimental): First version.\n- **7**: " in page(upsample)
    assert "| [Upsample](ai.onnx.Upsample.md) | 1 (experimental), 7, 9, 10 |" in index()


def test_a_call_of_an_experimental_operator_is_reported():
    model = sabir.parse(
        '<ir_version: 3, opset_import: ["" : 1]>\ng (float[1,1,2,2] x) => (float[1,1,4,4] y)'
        " { y = Upsample<height_scale = 2.0, width_scale = 2.0>(x) }"
    )
    (found,) = sabir.findings(model)
    assert (found.rule, found.severity) == ("NODE011", "warning")
    assert "Upsample:1 is experimental" in found.message
