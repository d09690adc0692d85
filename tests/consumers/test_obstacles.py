"""What keeps a consumer from reading a model."""

import pytest

import sabir
from sabir.consumers import Consumer
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output


def model_of(body, ir=8, opset='"" : 17', types="float[N]", functions=""):
    return sabir.parse(
        f"<ir_version: {ir}, opset_import: [{opset}]> g ({types} x) => ({types} y) {{ {body} }} {functions}"
    )


def listed(model, consumer, **options):
    found = sabir.requirements(model, **options).obstacles(consumer)
    return [(o.kind, str(o.location), o.node and o.node.op, o.sentence) for o in found]


def test_nothing_keeps_a_consumer_that_has_all():
    assert listed(model_of("y = Relu (x)"), Consumer("c", {"": 17}, 8)) == []
    assert listed(model_of("y = Relu (x)"), Consumer("c", {"": 28}, 14)) == []


def test_an_import_that_is_too_new_though_its_operators_are_not():
    """Relu has been the same since opset 14."""
    assert listed(model_of("y = Relu (x)"), Consumer("c", {"": 14}, 8)) == [
        (
            "import", "opset_import 'ai.onnx'", None,
            ("the model imports opset 17 of ai.onnx, and c has up to 14; every operator that it calls is the same"
             " in opset 14: `sabir.convert` lowers the import"),
        )
    ]  # fmt: skip


def test_nodes_that_use_versions_which_the_consumer_does_not_have():
    model = model_of("a = Relu (x) b = Relu (a) y = LayerNormalization (b, x)")
    assert listed(model, Consumer("c", {"": 13}, 8)) == [
        (
            "import", "opset_import 'ai.onnx'", None,
            ("the model imports opset 17 of ai.onnx, and c has up to 13; 3 nodes use versions that opset 13 does"
             " not have"),
        ),
        ("operator", "graph/node[0] 'Relu'", "Relu",
         "Relu:14 is newer than opset 13 of ai.onnx, the newest of c, which has Relu:13"),
        ("operator", "graph/node[1] 'Relu'", "Relu",
         "Relu:14 is newer than opset 13 of ai.onnx, the newest of c, which has Relu:13"),
        ("operator", "graph/node[2] 'LayerNormalization'", "LayerNormalization",
         ("LayerNormalization:17 is newer than opset 13 of ai.onnx, the newest of c, which has no"
          " LayerNormalization")),
    ]  # fmt: skip


def test_one_node_in_the_way():
    sentence = listed(model_of("y = LayerNormalization (x, x)"), Consumer("c", {"": 16}, 8))[0][3]
    assert sentence.endswith("; 1 node uses a version that opset 16 does not have")


def test_an_ir_version_that_is_only_declared():
    assert listed(model_of("y = Relu (x)", ir=10), Consumer("c", {"": 17}, 8)) == [
        (
            "ir_version", "model", None,
            ("the model has IR version 10, and c reads up to 8; it uses no feature of the format that came later:"
             " set `ir_version` to 8"),
        )
    ]  # fmt: skip


def test_a_feature_that_needs_its_ir_version():
    model = model_of("[i] y = Identity (x)", ir=10, types="float8e5m2[N]")
    model.graph[0].metadata = {"k": "v"}
    found = listed(model, Consumer("c", {"": 17}, 8))
    assert found == [
        ("ir_version", "model", None,
         "the model has IR version 10, and c reads up to 8; 2 features of the format that it uses came later"),
        ("feature", "graph/node[0] 'i'", "Identity",
         "metadata_props of a node came with IR version 10, and c reads up to 8"),
        ("feature", "graph/input[0] 'x'", None,
         "float8e5m2 came with IR version 9, and c reads up to 8, in 2 places"),
    ]  # fmt: skip


def test_a_feature_that_is_newer_than_the_declared_ir_version():
    """The file states too low a version: what it contains decides."""
    found = listed(model_of("y = Identity (x)", types="float8e5m2[N]"), Consumer("c", {"": 17}, 8))
    assert [kind for kind, *_ in found] == ["feature"]


def test_functions_and_their_imports():
    functions = '<domain: "d", opset_import: ["" : 18]> f (a) => (b) { b = Split <num_outputs = 1> (a) }'
    model = model_of("y = d.f (x)", opset='"" : 17, "d" : 3', functions=functions)
    assert listed(model, Consumer("c", {"": 17}, 8)) == [
        (
            "import", "function[0] 'f'/opset_import 'ai.onnx'", None,
            ("function 'd.f' imports opset 18 of ai.onnx, and c has up to 17; 1 node uses a version that opset 17"
             " does not have"),
        ),
        ("operator", "function[0] 'f'/node[0] 'Split'", "Split",
         "Split:18 is newer than opset 17 of ai.onnx, the newest of c, which has Split:13"),
    ]  # fmt: skip
    found = listed(model, Consumer("c", {"": 18, "d": 2}, 7))
    assert [(kind, sentence) for kind, _, _, sentence in found] == [
        ("ir_version", "the model has IR version 8, and c reads up to 7; 1 feature of the format that it uses came later"),
        ("feature", "functions came with IR version 8, and c reads up to 7"),
        ("import",
         ("the model imports opset 3 of d, and c has up to 2; nodes call only functions of the model in it:"
          " import opset 2")),
    ]  # fmt: skip


def test_subgraphs_and_training_graphs():
    model = sabir.parse("""<ir_version: 8, opset_import: ["" : 16]>
        g (bool c, float[N] x) => (float[N] y) {
            [choose] y = If (c) <then_branch = t () => (float[N] a) { a = PRelu (x, x) },
                                 else_branch = e () => (float[N] b) { b = Identity (x) }>
        }""")
    model.training.append(
        sabir.ir.TrainingInfo(algorithm=model_of("y = Where (x, x, x)", opset='"" : 16').graph)
    )
    found = listed(model, Consumer("c", {"": 15}, 8))
    assert [place for kind, place, *_ in found if kind == "operator"] == [
        "graph/node[0] 'choose'",
        "graph/node[0] 'choose'/attribute 'then_branch'/node[0] 'PRelu'",
        "graph/node[0] 'choose'/attribute 'else_branch'/node[0] 'Identity'",
        "training_info[0]/algorithm/node[0] 'Where'",
    ]


def test_domains_that_the_consumer_does_not_have():
    """An import that nothing uses keeps no one from reading; a call does."""
    model = model_of("y = org.acme.Clip (x)", opset='"" : 17, "org.acme" : 2, "ai.onnx.ml" : 3')
    assert listed(model, Consumer("c", {"": 17}, 8)) == [
        (
            "domain",
            "graph/node[0] 'Clip'",
            "Clip",
            "c has no operators of 'org.acme'; the node calls org.acme.Clip",
        )
    ]
    assert listed(model, Consumer("c", {"": 17, "org.acme": 2}, 8)) == []
    (found,) = listed(model, Consumer("c", {"": 17, "org.acme": 1}, 8))
    assert found[0] == "unknown"
    assert found[3].endswith("Sabir does not know the operators of this domain, and cannot say what changed")


def test_the_default_domain_may_be_missing_too():
    (found,) = listed(model_of("y = Relu (x)"), Consumer("c", {"ai.onnx.ml": 3}, 8))
    assert found[3] == "c has no operators of 'ai.onnx'; the node calls Relu:14"


def test_an_import_that_is_too_new_and_not_used():
    model = model_of("y = Relu (x)", ir=10, opset='"" : 17, "ai.onnx.ml" : 5')
    (found,) = listed(model, Consumer("c", {"": 17, "ai.onnx.ml": 3}, 10))
    assert found[:2] == ("import", "opset_import 'ai.onnx.ml'")
    assert found[3].endswith("; no node calls anything of it: remove the import")


def test_an_opset_that_sabir_does_not_know():
    (found,) = listed(model_of("y = Relu (x)", opset='"" : 29'), Consumer("c", {"": 28}, 14))
    assert found[0] == "unknown"
    assert found[3].endswith("; Sabir does not know this opset, and cannot say what changed")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("y = Reluu (x)", "ai.onnx.Reluu is not an operator that Sabir knows; is it 'Relu'?"),
        ("y = Gelu (x)", "ai.onnx.Gelu came with opset 20, but opset 17 is imported"),
        ("y = other.F (x)", "other.F: no operator set of 'other' is imported"),
        ("y = Scatter (x, x, x)", "Scatter was removed from ai.onnx with opset 11"),
    ],
)
def test_calls_that_no_consumer_can_have(body, sentence):
    (found,) = listed(model_of(body), Consumer("c", {"": 28, "other": 1}, 14))
    assert found[0] == "invalid"
    assert found[3].startswith(sentence)


def test_operators_of_a_registry_are_compared_by_their_versions():
    kind = Constraint("T", FLOATS)
    clip = Operator("Clip", "org.acme", summary="Clip.")
    clip.first(1, inputs=[Input("x", kind)], outputs=[Output("y", kind)]).restate(3, "Clearer text.")
    registry = STANDARD.with_operators(clip)
    model = model_of("y = org.acme.Clip (x)", opset='"" : 17, "org.acme" : 4')
    (found,) = listed(model, Consumer("c", {"": 17, "org.acme": 3}, 8), registry=registry)
    assert found[3].endswith("is the same in opset 3: `sabir.convert` lowers the import")
    found = listed(model, Consumer("c", {"": 17, "org.acme": 2}, 8), registry=registry)
    assert [kind for kind, *_ in found] == ["import", "operator"]
    assert found[1][3] == (
        "org.acme.Clip:3 is newer than opset 2 of org.acme, the newest of c, which has org.acme.Clip:1"
    )
