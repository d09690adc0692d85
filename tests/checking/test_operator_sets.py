"""Operator sets as the checker sees them, beside the examples of their rules."""

from itertools import starmap

import pytest

import sabir
from sabir.checking import set_changes
from sabir.ir import OperatorEntry
from sabir.opsets import STANDARD
from sabir.syntax import parse_function

BODY = '<domain: "com.acme", opset_import: ["" : 17]>\nFast (x) => (y) {{ {} }}'


def operator_set(version, *entries, body="y = Relu (x)", **fields):
    functions = [parse_function(BODY.format(body))] if body else []
    return sabir.OperatorSet("com.acme", version, list(entries), functions, **fields)


FAST = OperatorEntry("Fast", 1)


def found(source, **options):
    return [(f.rule, str(f.location)) for f in sabir.findings(source, **options)]


def test_a_sound_set_has_no_findings():
    assert found(operator_set(3, FAST), strict=True) == []
    sabir.check(operator_set(3, FAST))


@pytest.mark.parametrize(
    ("body", "rule", "where"),
    [
        ("y = Reluu (x)", "NODE001", "node[0] 'Reluu'"),
        ("y = Relu (x, x)", "NODE002", "node[0] 'Relu'"),
        ("y = Relu (z)", "GRAPH005", "node[0] 'Relu'/input[0] 'z'"),
        ("y = com.acme.Fast (x)", "NODE001", "node[0] 'Fast'"),
    ],
)
def test_the_functions_are_checked_as_those_of_a_model(body, rule, where):
    rules = found(operator_set(3, FAST, body=body))
    assert (rule, f"operator_set 'com.acme:3'/function[0] 'Fast'/{where}") in rules


def test_a_function_that_calls_itself():
    recursive = operator_set(3, FAST, body="y = com.acme.Fast (x)")
    recursive.functions[0].opsets["com.acme"] = 3
    assert found(recursive) == [("FUNC003", "operator_set 'com.acme:3'/function[0] 'Fast'")]


def test_a_function_may_call_what_the_set_only_declares():
    calling = operator_set(3, FAST, OperatorEntry("Opaque", 2), body="y = com.acme.Opaque (x)")
    calling.functions[0].opsets["com.acme"] = 3
    assert [f.rule for f in sabir.findings(calling)] == ["NODE007"]


def test_two_functions_of_one_name():
    twice = operator_set(3, FAST)
    twice.functions.append(parse_function(BODY.format("y = Neg (x)")))
    assert ("FUNC001", "operator_set 'com.acme:3'/function[1] 'Fast'") in found(twice)


def test_an_error_names_the_set():
    with pytest.raises(
        sabir.CheckError, match="1 problem in the operator sets:\n  operator_set 'com.acme:0'"
    ):
        sabir.check(operator_set(0))


def test_a_file_is_a_model_or_a_set(tmp_path):
    path = tmp_path / "set.textproto"
    bad = operator_set(3, OperatorEntry("Fast", 4))
    bad.save(path)
    expected = [("OPSET005", "operator_set 'com.acme:3'/operator[0] 'Fast'")]
    assert found(path) == found(bad.dumps()) == found(str(path)) == expected
    assert found([path, operator_set(4, OperatorEntry("Fast", 4)).dumps()])[0][0] == "OPSET005"


def test_the_functions_of_the_default_domain_define_its_operators():
    function = parse_function('<opset_import: ["" : 17]>\nRelu (x) => (y) { y = Abs (x) }')
    assert found(sabir.OperatorSet("", 17, [OperatorEntry("Relu", 14)], [function])) == []


def test_versions_may_come_in_any_order():
    older, newer = operator_set(3, FAST), operator_set(4, FAST, body="y = Neg (x)")
    for sets, place in (([older, newer], 1), ([newer, older], 0)):
        assert found(sets) == [("OPSET012", f"operator_set[{place}] 'com.acme:4'/operator[0] 'Fast'")]


def test_sets_of_other_domains_are_not_compared():
    other = sabir.OperatorSet("org.other", 3, [OperatorEntry("Other", 3)])
    assert found([operator_set(3, FAST), other]) == []


def test_sets_that_are_checked_together_know_one_another():
    other = parse_function(
        '<domain: "org.other", opset_import: ["com.acme" : 3]>\nF (x) => (y) { y = com.acme.Fast (x) }'
    )
    outer = sabir.OperatorSet("org.other", 1, [OperatorEntry("F", 1)], [other])
    assert [rule for rule, _ in found(outer)] == ["NODE007"]
    assert found([operator_set(3, FAST), outer]) == []


def test_rules_are_selected_for_sets_too():
    bad = operator_set(3, OperatorEntry("Fast", 4), body="y = Reluu (x)")
    assert [rule for rule, _ in found(bad, select=["OPSET"])] == ["OPSET005"]
    assert [rule for rule, _ in found(bad, ignore=["OPSET"])] == ["NODE001"]


@pytest.mark.parametrize(
    ("old", "new", "changes", "are_valid"),
    [
        (operator_set(1, FAST), operator_set(1, FAST), [], True),
        (operator_set(1, FAST), operator_set(9, FAST), [], True),
        (operator_set(2, FAST), operator_set(1), [("removed", "Fast", ())], False),
        (operator_set(1, FAST), operator_set(2), [("removed", "Fast", ())], True),
        (operator_set(1), operator_set(2, OperatorEntry("Fast", 2)), [("added", "Fast", ())], True),
        (operator_set(1), operator_set(2, FAST), [("added", "Fast", ())], False),
        (
            operator_set(1, FAST),
            operator_set(2, OperatorEntry("Fast", 2), body="y = Neg (x)"),
            [("changed", "Fast", ("since_version", "function"))],
            True,
        ),
        (
            operator_set(1, FAST),
            operator_set(2, FAST, body="y = Neg (x)"),
            [("changed", "Fast", ("function",))],
            False,
        ),
        (operator_set(1, FAST, body=""), operator_set(2, FAST), [], True),
        (
            operator_set(1, OperatorEntry("Fast", 1, "experimental")),
            operator_set(2, FAST),
            [("changed", "Fast", ("status",))],
            True,
        ),
        (operator_set(1, FAST), operator_set(1, OperatorEntry("Fast", 1, doc="more")), [], True),
    ],
)
def test_the_changes_between_two_sets(old, new, changes, are_valid):
    found_changes = set_changes(old, new)
    assert [(c.kind, c.name, c.what) for c in found_changes.changes] == changes
    assert found_changes.are_valid == are_valid


def test_documentation_is_no_change():
    old, new = operator_set(1, FAST), operator_set(2, FAST)
    body = new.functions[0].graph
    body.doc, body.metadata, body[0].name, body[0].doc = "why", {"k": "v"}, "relu", "how"
    assert set_changes(old, new).changes == []


def test_the_example_of_the_specification():
    """The table of versioning.txt: A is updated in 3 and removed in 4, B is added in 2, C in 3."""
    table = {1: {"A": 1}, 2: {"A": 1, "B": 2}, 3: {"A": 3, "B": 2, "C": 3}, 4: {"B": 2, "C": 4}}
    sets = [
        sabir.OperatorSet("com.acme", version, list(starmap(OperatorEntry, entries.items())))
        for version, entries in table.items()
    ]
    assert found(sets, strict=True) == []


# models that call the operators of documents

CALLS_FAST = '<ir_version: 10, opset_import: ["" : 17, "com.acme" : 3]> g (float[N] x) => (float[N] y) { y = com.acme.Fast (x) }'


@pytest.mark.parametrize(
    ("opsets", "problem"),
    [
        ({"org.no": 1}, "org.no.Foo is not an operator that Sabir knows"),
        ({}, "org.no.Foo: no operator set of 'org.no' is imported"),
    ],
)
def test_a_body_of_a_document_that_calls_what_is_not_known(opsets, problem):
    document = operator_set(3, FAST, body="y = org.no.Foo (x)")
    document.functions[0].opsets.update(opsets)
    registry = STANDARD.with_operator_sets(document)
    (finding,) = sabir.findings(sabir.parse(CALLS_FAST), registry=registry)
    assert (finding.rule, str(finding.location)) == ("NODE007", "graph/node[0] 'Fast'")
    assert finding.message.startswith(f"com.acme.Fast:1 cannot be checked: in its body, {problem}")


def test_a_body_of_a_document_that_calls_what_is_known():
    registry = STANDARD.with_operator_sets(operator_set(3, FAST))
    assert not found(sabir.parse(CALLS_FAST), registry=registry)


def test_the_imports_of_a_function_select_documented_operators_too():
    registry = STANDARD.with_operator_sets(
        operator_set(1, FAST), operator_set(2, OperatorEntry("Fast", 2), body="y = Neg (x)")
    )
    text = (
        '<ir_version: 10, opset_import: ["" : 17, "com.acme" : {}, "d" : 1]>'
        " g (float[N] x) => (float[N] y) {{ y = d.f (x) }}\n"
        '<domain: "d", opset_import: ["" : 17, "com.acme" : 1]> f (a) => (b) {{ b = com.acme.Fast (a) }}'
    )
    (finding,) = sabir.findings(sabir.parse(text.format(2)), registry=registry)
    assert (finding.rule, finding.message) == (
        "FUNC006",
        "the function imports com.acme.Fast:1; the model's opset 2 has com.acme.Fast:2",
    )
    assert not found(sabir.parse(text.format(1)), registry=registry)


@pytest.mark.parametrize("form", ["protobuf", "textproto", "json"])
def test_a_document_with_another_magic_is_reported_as_one(form):
    data = operator_set(3, FAST).dumps(format=form).replace(b"ONNXOPSET", b"ONNXOPSEX")
    with pytest.raises(sabir.WireError, match="its magic is 'ONNXOPSEX', and must be 'ONNXOPSET'"):
        found(data)
