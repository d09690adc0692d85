"""Documents of operator sets in a registry: their functions are inferred, checked, run and inlined like a model's."""

import warnings

import numpy as np
import pytest

import sabir
from sabir.ir import OperatorEntry
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output
from sabir.syntax import parse_function

TWICE = '<domain: "com.acme", opset_import: ["" : 21]>\nTwice (x) => (y) { y = Add (x, x) }'
QUAD = (
    '<domain: "com.acme", opset_import: ["" : 21, "com.acme" : 2]>\n'
    "Quad (x) => (y) { t = com.acme.Twice (x)  y = com.acme.Twice (t) }"
)
HELPER = '<domain: "com.acme", opset_import: ["" : 21]>\nHelper (x) => (y) { y = Neg (x) }'
THRICE = TWICE.replace("Add (x, x)", "Sum (x, x, x)")


def operator_set(version, entries, *functions):
    return sabir.OperatorSet("com.acme", version, entries, [parse_function(text) for text in functions])


NEWEST = operator_set(
    3,
    [
        OperatorEntry("Twice", 1),
        OperatorEntry("Quad", 2, "experimental"),
        OperatorEntry("Opaque", 2),
        OperatorEntry("Late", 3),
    ],
    TWICE,
    QUAD,
    HELPER,
)
REGISTRY = STANDARD.with_operator_sets(NEWEST)


def model(call, version=3, functions=""):
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 21, "com.acme" : {version}]>\n'
        f"g (float[N] x) => (float[N] y) {{ y = com.acme.{call} }}\n{functions}"
    )


def outcome(call, version=3, registry=REGISTRY, functions=""):
    return sabir.evaluate(model(call, version, functions), {"x": [1.0, 2.0]}, registry=registry)["y"].tolist()


@pytest.mark.parametrize(("call", "expected"), [("Twice (x)", [2.0, 4.0]), ("Helper (x)", [-1.0, -2.0])])
def test_a_function_of_a_document_runs(call, expected):
    assert outcome(call) == expected
    assert not list(sabir.findings(model(call), registry=REGISTRY))


def test_a_function_of_a_document_is_inferred():
    loaded = model("Twice (x)")
    loaded.graph.outputs[0].type = None
    assert str(sabir.infer(loaded, registry=REGISTRY).graph.outputs[0].type) == "float[N]"


def test_functions_of_a_document_call_one_another_and_are_inlined():
    with pytest.warns(sabir.SabirWarning, match=r"com.acme.Quad:2 is experimental"):
        assert outcome("Quad (x)") == [4.0, 8.0]
    inlined = sabir.inline(model("Quad (x)"), registry=REGISTRY)
    assert [node.op for node in inlined.graph] == ["Add", "Add"]
    assert sabir.evaluate(inlined, {"x": [1.0]})["y"].tolist() == [4.0]


def test_a_gradient_passes_a_function_of_a_document():
    found = sabir.differentiate(model("Twice (x)"), "y", "x", registry=REGISTRY)
    assert sabir.evaluate(found, {"x": [1.0, 5.0]})["grad_x"].tolist() == [2.0, 2.0]


def test_without_the_document_the_domain_is_unknown():
    assert [f.rule for f in sabir.findings(model("Twice (x)"))] == ["NODE007"]
    with pytest.raises(sabir.SchemaError, match="no operators of domain 'com.acme' are known"):
        outcome("Twice (x)", registry=STANDARD)


@pytest.mark.parametrize(
    ("call", "version", "rule", "message"),
    [
        ("Quad (x)", 1, "NODE001", "came with opset 2, but opset 1 is imported"),
        ("Late (x)", 2, "NODE001", "came with opset 3, but opset 2 is imported"),
        ("Helper (x)", 2, "NODE001", "not an operator that Sabir knows"),
        ("Twcie (x)", 3, "NODE001", "is it 'Twice'"),
        ("Twice:fast (x)", 3, "NODE008", "has no overload 'fast'"),
        ("Opaque (x)", 3, "NODE007", "com.acme.Opaque:2"),
        ("Twice (x, x)", 3, "NODE002", "takes 1 input"),
        ("Twice <k = 1> (x)", 3, "NODE003", "has no attribute 'k'"),
    ],
)
def test_a_call_that_the_document_does_not_define(call, version, rule, message):
    found = list(sabir.findings(model(call, version), registry=REGISTRY))
    assert [(f.rule, message in f.message) for f in found if f.rule != "NODE011"] == [(rule, True)]
    with pytest.raises(sabir.SchemaError, match=message):
        outcome(call, version)


def test_a_declared_operator_has_no_meaning_until_it_is_implemented():
    message = "com.acme.Opaque:2 is declared by the document of the operator set com.acme:3, which has no body for it"
    with pytest.raises(sabir.SchemaError, match=message):
        outcome("Opaque (x)")
    opaque = Operator("Opaque", "com.acme")
    constraint = Constraint("T", FLOATS)
    version = opaque.first(2, inputs=[Input("x", constraint)], outputs=[Output("y", constraint)])
    version.infer(lambda x, /: x.with_known(None))
    version.evaluate(lambda x, /: x + np.float32(1))
    assert outcome("Opaque (x)", registry=REGISTRY.with_operators(opaque)) == [2.0, 3.0]


def test_a_version_above_all_documents_is_refused():
    assert REGISTRY.newest_opset("com.acme") == 3
    with pytest.raises(
        sabir.UnsupportedError, match="opset 4 of 'com.acme' is not known; the newest known one is 3"
    ):
        outcome("Twice (x)", 4)
    session = sabir.Session(model("Twice (x)", 4), registry=REGISTRY, newer_opsets=True)
    assert session.run({"x": [1.0]})["y"].tolist() == [2.0]


def test_the_document_of_the_imported_version_serves():
    older = operator_set(1, [OperatorEntry("Twice", 1)], TWICE)
    changed = operator_set(4, [OperatorEntry("Twice", 4)], THRICE)
    registry = STANDARD.with_operator_sets(changed, older)
    assert outcome("Twice (x)", 1, registry) == [2.0, 4.0]
    assert outcome("Twice (x)", 4, registry) == [3.0, 6.0]
    for version in (2, 3):  # the document of 4 cannot say what Twice was before
        with pytest.raises(sabir.SchemaError, match=f"came with opset 4, but opset {version} is imported"):
            outcome("Twice (x)", version, registry)


def test_the_import_of_a_body_decides_what_it_calls():
    """Quad is written for version 2 of its domain, whose Twice is another than that of the model's version."""
    first = operator_set(2, [OperatorEntry("Twice", 1), OperatorEntry("Quad", 2)], TWICE, QUAD)
    second = operator_set(3, [OperatorEntry("Twice", 3), OperatorEntry("Quad", 2)], THRICE, QUAD)
    registry = STANDARD.with_operator_sets(first, second)
    assert outcome("Twice (x)", 3, registry) == [3.0, 6.0]
    assert outcome("Quad (x)", 3, registry) == [4.0, 8.0]
    assert [n.op for n in sabir.inline(model("Quad (x)", 3), registry=registry).graph] == ["Add", "Add"]


def test_functions_of_the_model_come_first_and_documents_do_not_see_them():
    own = THRICE
    assert outcome("Twice (x)", functions=own) == [3.0, 6.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sabir.SabirWarning)
        assert outcome("Quad (x)", functions=own) == [4.0, 8.0]
    inlined = sabir.inline(model("Quad (x)", functions=own), registry=REGISTRY)
    assert [node.op for node in inlined.graph] == ["Add", "Add"]


def test_a_function_of_the_model_may_call_a_document():
    body = '<domain: "d", opset_import: ["com.acme" : 3]>\nf (a) => (b) { b = com.acme.Twice (a) }'
    text = f'<ir_version: 10, opset_import: ["" : 21, "d" : 1]>\ng (float[N] x) => (float[N] y) {{ y = d.f (x) }}\n{body}'
    loaded = sabir.parse(text)
    assert not list(sabir.findings(loaded, registry=REGISTRY))
    assert sabir.evaluate(loaded, {"x": [1.0]}, registry=REGISTRY)["y"].tolist() == [2.0]
    inlined = sabir.inline(loaded, registry=REGISTRY)
    assert [node.op for node in inlined.graph] == ["Add"]


def test_operators_of_the_registry_come_before_documents():
    relu = parse_function('<domain: "", opset_import: ["" : 21]>\nRelu (x) => (y) { y = Neg (x) }')
    document = sabir.OperatorSet("", 21, [OperatorEntry("Relu", 14)], [relu])
    registry = STANDARD.with_operator_sets(document)
    text = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[N] x) => (float[N] y) { y = Relu (x) }'
    assert sabir.evaluate(sabir.parse(text), {"x": [1.0]}, registry=registry)["y"].tolist() == [1.0]
    assert registry.newest_opset("") == STANDARD.newest_opset("")


def test_nothing_is_inlined_where_nothing_is_called():
    loaded = model("Opaque (x)")
    del loaded.opsets[""]
    assert [node.op for node in sabir.inline(loaded, registry=REGISTRY).graph] == ["Opaque"]
    assert loaded.opsets == {"com.acme": 3}


def test_an_inlined_body_keeps_the_meaning_of_what_is_only_declared():
    wrap = parse_function(
        '<domain: "d", opset_import: ["com.acme" : 1]>\nwrap (x) => (y) { y = com.acme.Opaque (x) }'
    )
    first = operator_set(1, [OperatorEntry("Opaque", 1)])
    second = operator_set(2, [OperatorEntry("Opaque", 2)])
    outer = sabir.OperatorSet("d", 1, [OperatorEntry("wrap", 1)], [wrap])
    registry = STANDARD.with_operator_sets(first, second, outer)
    for version, fits in ((1, True), (2, False)):
        loaded = sabir.parse(
            f'<ir_version: 10, opset_import: ["" : 21, "com.acme" : {version}, "d" : 1]>\n'
            "g (float[N] x) => (float[N] y) { y = d.wrap (x) }"
        )
        if fits:
            assert [node.op for node in sabir.inline(loaded, registry=registry).graph] == ["Opaque"]
            continue
        with pytest.raises(sabir.ConversionError, match=r"com.acme.Opaque:1: the target version has no such"):
            sabir.inline(loaded, registry=registry)


def test_documents_that_contradict_each_other_are_refused():
    with pytest.raises(sabir.SchemaError, match="two documents are the operator set com.acme:3; pass one"):
        REGISTRY.with_operator_sets(operator_set(3, []))
    assert REGISTRY.with_operator_sets(NEWEST).operator_sets == (NEWEST, NEWEST)


@pytest.mark.parametrize(
    "functions",
    [
        [TWICE.replace("Add (x, x)", "com.acme.Twice (x)").replace('"" : 21', '"com.acme" : 1')],
        [
            '<domain: "com.acme", opset_import: ["com.acme" : 1]>\nA (x) => (y) { y = com.acme.B (x) }',
            '<domain: "com.acme", opset_import: ["com.acme" : 1]>\nB (x) => (y) { y = com.acme.A (x) }',
        ],
    ],
)
def test_recursion_is_refused(functions):
    document = operator_set(1, [OperatorEntry(name, 1) for name in ("Twice", "A", "B")], *functions)
    with pytest.raises(sabir.SchemaError, match="calls itself"):
        STANDARD.with_operator_sets(document)


def test_recursion_across_documents_is_refused():
    there = parse_function('<domain: "a", opset_import: ["b" : 1]>\nF (x) => (y) { y = b.F (x) }')
    back = parse_function('<domain: "b", opset_import: ["a" : 1]>\nF (x) => (y) { y = a.F (x) }')
    documents = [
        sabir.OperatorSet(d, 1, [OperatorEntry("F", 1)], [f]) for d, f in (("a", there), ("b", back))
    ]
    with pytest.raises(sabir.SchemaError, match="calls itself"):
        STANDARD.with_operator_sets(*documents)
    with pytest.raises(sabir.SchemaError, match="calls itself"):
        STANDARD.with_operator_sets(documents[0]).with_operator_sets(documents[1])


def test_functions_that_double_have_a_limit():
    texts = [
        f'<domain: "com.acme", opset_import: ["" : 21, "com.acme" : 1]>\n'
        f"F{i} (x) => (y) {{ t = com.acme.F{i + 1} (x)  y = com.acme.F{i + 1} (t) }}"
        for i in range(40)
    ]
    last = '<domain: "com.acme", opset_import: ["" : 21]>\nF40 (x) => (y) { y = Neg (x) }'
    document = operator_set(1, [OperatorEntry(f"F{i}", 1) for i in range(41)], *texts, last)
    registry = STANDARD.with_operator_sets(document)
    with pytest.raises(sabir.LimitError):
        sabir.Session(model("F0 (x)", 1), registry=registry)


def test_a_builder_knows_the_functions_of_documents():
    b = sabir.Builder(21, opsets={"com.acme": 3}, registry=REGISTRY)
    acme = b.domain("com.acme")
    b.output(acme.Twice(b.input("x", "float", ["N"])), "y")
    built = b.model()
    assert str(built.graph.outputs[0].type) == "float[N]"
    assert b.operator_names("com.acme") == ["Late", "Opaque", "Quad", "Twice"]
    with pytest.raises(sabir.SchemaError, match="has 1 input, and the call has 2"):
        acme.Twice(1.0, 2.0)
    with pytest.raises(AttributeError, match="is it 'Twice'"):
        _ = acme.Twcie
    assert acme.Opaque(b.input("z", "float", ["N"])).node.op == "Opaque"


def test_huge_version_numbers():
    document = operator_set(2**63 - 1, [OperatorEntry("Twice", 2**63 - 1)], TWICE)
    registry = STANDARD.with_operator_sets(document)
    assert outcome("Twice (x)", 2**63 - 1, registry) == [2.0, 4.0]
    with pytest.raises(sabir.SchemaError, match="came with opset 9223372036854775807"):
        outcome("Twice (x)", 5, registry)


def test_a_warning_for_each_experimental_operator_comes_once():
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "com.acme" : 3]>\n'
        "g (float[N] x) => (float[N] y) { t = com.acme.Quad (x)  y = com.acme.Quad (t) }"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sabir.Session(sabir.parse(text), registry=REGISTRY).run({"x": [1.0]})
    assert [str(w.message) for w in caught] == [
        "com.acme.Quad:2 is experimental: its meaning may change without a new version"
    ]
    assert [f.rule for f in sabir.findings(sabir.parse(text), registry=REGISTRY)] == ["NODE011", "NODE011"]
