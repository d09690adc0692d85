"""A name that is defined twice is an error of every run: the file does not say which definition is meant."""

import numpy as np
import pytest

import sabir

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = {"x": np.float32([1, 2])}
MODELS = {
    "sorted": "g (float[2] x) => (float[2] y) { a = Neg (x)  a = Abs (x)  y = Identity (a) }",
    "unsorted": "g (float[2] x) => (float[2] y) { y = Identity (a)  a = Neg (x)  a = Abs (x) }",
    "an input": "g (float[2] x, float[2] a) => (float[2] y) { a = Neg (x)  y = Identity (a) }",
    "in a branch": """g (float[2] x) => (float[2] y) { c = Constant <value = bool {1}> ()
        y = If (c) <then_branch = t () => (float[2] b) { a = Neg (x)  a = Abs (x)  b = Relu (a) },
            else_branch = e () => (float[2] d) { d = Neg (x) }> }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_both_definitions_are_named(name, engine):
    with pytest.raises(
        sabir.SchemaError, match="'a' is defined twice in the graph '[gt]': .* and by the node"
    ):
        sabir.Session(sabir.parse(HEAD + MODELS[name]), engine=engine).run(X | {"a": X["x"]})


def test_the_same_name_in_another_scope_is_no_duplicate(engine):
    model = sabir.parse(
        HEAD
        + """g (float[2] x) => (float[2] y) { c = Constant <value = bool {1}> ()
        y = If (c) <then_branch = t () => (float[2] b) { b = Neg (x) },
            else_branch = e () => (float[2] b) { b = Abs (x) }> }"""
    )
    assert sabir.Session(model, engine=engine).run(X)["y"].tolist() == [-1, -2]


def test_identity_of_a_sequence_with_an_empty_optional(engine):
    model = sabir.parse(
        HEAD + "g (seq(optional(float[2])) x) => (seq(optional(float[2])) y) { y = Identity (x) }"
    )
    found = sabir.Session(model, engine=engine).run({"x": [X["x"], None]})["y"]
    assert found[0].tolist() == [1, 2]
    assert found[1] is None


@pytest.mark.parametrize("field", ["version", "ir_version"])
def test_a_number_that_no_file_can_contain(field):
    model = sabir.parse(HEAD + "g (float[2] x) => (float[2] y) { y = Neg (x) }")
    setattr(model, field, 2**63)
    with pytest.raises(sabir.WireError, match=f"ModelProto.(model_)?{field} cannot hold 9223372036854775808"):
        sabir.dumps(model)
