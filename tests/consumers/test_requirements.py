"""What models require, in every part of them."""

import numpy as np
import pytest

import sabir
from sabir.elements import BFLOAT16, BOOL, FLOAT, FLOAT8E5M2, INT64, STRING
from sabir.ir import TrainingInfo
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

EVERYWHERE = """
<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5, "local" : 1, "org.acme" : 2]>
outer (bool c, float[2] x) => (float[2] y)
{
   [choose] z = If (c) <
      then_branch = left () => (float[2] a) { a = Relu (x) },
      else_branch = right () => (float[2] b) { b = local.Twice (x) }
   >
   [clip] u = org.acme.Clip (z)
   [gelu] y = Gelu (z)
}
<domain: "local", opset_import: ["" : 13]>
Twice (v) => (w) { w = Relu (v) }
"""


@pytest.fixture
def everywhere():
    return sabir.requirements(sabir.parse(EVERYWHERE))


def test_operators_are_counted_in_subgraphs_and_functions(everywhere):
    """Relu:14 is in force in opset 21 and Relu:13 in the function's opset 13."""
    assert [(use.name, use.calls) for use in everywhere.operators] == [
        ("Gelu:20", 1), ("If:21", 1), ("Relu:13", 1), ("Relu:14", 1),
    ]  # fmt: skip
    assert [(use.name, use.calls) for use in everywhere.functions] == [("function 'local.Twice'", 1)]


def test_imports_say_what_is_needed_of_them(everywhere):
    rows = [(u.domain, u.version, u.least, u.calls, u.function_calls) for u in everywhere.imports]
    assert rows == [
        ("", 21, 21, 3, 0),
        ("ai.onnx.ml", 5, None, 0, 0),
        ("local", 1, None, 0, 1),
        ("org.acme", 2, None, 1, 0),
        ("", 13, 13, 1, 0),
    ]
    assert [use.function.name if use.function else None for use in everywhere.imports] == [
        *[None] * 4,
        "Twice",
    ]


def test_what_is_unknown_is_listed_with_its_first_node(everywhere):
    (use,) = everywhere.unknown
    assert use.message.startswith("org.acme.Clip is not an operator that Sabir knows")
    assert (use.calls, str(use.location), use.node.name) == (1, "graph/node[1] 'clip'", "clip")


def test_ir_versions(everywhere):
    assert (everywhere.ir_version, everywhere.least_ir) == (10, 10)
    assert everywhere.least_ir_causes == ("opset 21 of ai.onnx", "opset 5 of ai.onnx.ml")


def test_a_feature_may_need_a_newer_ir_than_the_imports():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 17]>
        g (float8e5m2[N] x) => (float8e5m2[N] y) { y = Identity (x) }""")
    found = sabir.requirements(model)
    assert (found.ir_version, found.least_ir, found.least_ir_causes) == (8, 9, ("float8e5m2",))
    assert [(f.name, f.since, f.uses) for f in found.features] == [("float8e5m2", 9, 2)]


def test_element_types_of_types_tensors_and_attributes():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (bool[N] y) <int64[1] w = {1}> {
            t = Cast <to = 19> (x)
            e = EyeLike <dtype = 16> (x)
            s = Constant <value_string = "a"> ()
            k = Constant <value = string[1] {"a"}> ()
            y = Cast <to: int = 9> (t)
        }""")
    found = sabir.requirements(model)
    assert found.element_types == (FLOAT, INT64, STRING, BOOL, BFLOAT16, FLOAT8E5M2)
    assert [(f.name, f.since) for f in found.features] == [
        ("initializers that are no inputs", 4),
        ("strings", 0),
    ]


def test_external_data_and_training_and_quantization():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[4] x) => (float[4] y) <float[4] w = ["location": "gone.bin"]> { y = Add (x, w) }""")
    step = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        step (float[4] x) => (float[4] y) { y = Gelu (x) }""")
    model.training.append(TrainingInfo(algorithm=step.graph))
    found = sabir.requirements(model)
    assert [(f.name, f.since, str(f.location)) for f in found.features] == [
        ("training_info", 7, "model"),
        ("initializers that are no inputs", 4, "graph"),
        ("external data", 0, "graph/initializer 'w'/tensor"),
    ]
    assert {use.name for use in found.operators} == {"Add:14", "Gelu:20"}


def test_the_default_domain_without_an_import():
    """With IR 8 its newest version applies, 18; an import that nothing states and nothing uses is not listed."""
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 1]> g (float[N] x) => (float[N] y) { y = Split (x) }'
    )
    model.opsets.clear()
    (use,) = sabir.requirements(model).imports
    assert (use.domain, use.version, use.least, use.calls) == ("", 18, 18, 1)
    model.graph.outputs[0] = model.graph.inputs[0]
    model.graph.erase(model.graph[0])
    assert sabir.requirements(model).imports == ()


def test_an_operator_set_newer_than_any_known_one():
    model = sabir.parse(
        '<ir_version: 14, opset_import: ["" : 29]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
    )
    (use,) = sabir.requirements(model).imports
    assert (use.version, use.least, use.calls) == (29, None, 1)


def test_calls_of_what_is_not_there():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 13]>
        g (float[N] x) => (float[N] y) {
            a = Gelu (x)  b = Reluu (x)  c = Upsample (x, x)  d = org.acme.F (x)  y = org.acme.F (x)
        }""")
    assert [(use.message.split(";")[0], use.calls) for use in sabir.requirements(model).unknown] == [
        ("ai.onnx.Gelu came with opset 20, but opset 13 is imported", 1),
        ("ai.onnx.Reluu is not an operator that Sabir knows", 1),
        (
            "Upsample was removed from ai.onnx with opset 10, and the model imports 13. Replaced by Resize, which also shrinks.",
            1,
        ),
        ("org.acme.F: no operator set of 'org.acme' is imported", 2),
    ]


def test_operators_of_a_registry():
    kind = Constraint("T", FLOATS)
    clip = Operator("Clip", "org.acme", summary="Clip.")
    clip.first(2, inputs=[Input("x", kind)], outputs=[Output("y", kind)])
    found = sabir.requirements(sabir.parse(EVERYWHERE), registry=STANDARD.with_operators(clip))
    assert found.unknown == ()
    assert "org.acme.Clip:2" in {use.name for use in found.operators}
    assert [u.least for u in found.imports if u.domain == "org.acme"] == [2]


def test_a_function_that_hides_an_operator():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) { y = Relu (x) }
        <opset_import: ["" : 21]> Relu (a) => (b) { b = Abs (a) }""")
    found = sabir.requirements(model)
    assert [use.name for use in found.operators] == ["Abs:13"]
    assert [(u.least, u.calls, u.function_calls) for u in found.imports] == [(None, 0, 1), (13, 1, 0)]


def test_the_model_is_unchanged():
    model = sabir.parse(EVERYWHERE)
    before = sabir.dumps(model)
    sabir.requirements(model).obstacles("onnxruntime-1.0")
    assert sabir.dumps(model) == before


def test_no_tensor_is_read():
    b = sabir.Builder(21)
    b.output(b.Relu(b.initializer("w", np.zeros(3, np.float32))), "y")
    model = b.model()

    def read(*_):
        raise AssertionError

    tensor = next(iter(model.graph.initializers.values()))
    type(tensor).array, kept = read, type(tensor).array
    try:
        assert sabir.requirements(model).element_types == (FLOAT,)
    finally:
        type(tensor).array = kept
