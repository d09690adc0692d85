# ruff: file-ignore[banned-api]  its schemas are the reference
"""The operator sets of a registry as documents."""

import pytest
from onnx import defs

import sabir
from sabir.ir import OperatorEntry
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output
from sabir.syntax import parse_function

T = Constraint("T", FLOATS)
PORTS = {"inputs": [Input("x", T)], "outputs": [Output("y", T)]}
HISTORY = {s.name for s in defs.get_all_schemas_with_history() if not s.domain}
# its only version was deprecated after the release; it was in these sets, which stay as they were
DEPRECATED_LATER = {("GroupNormalization", 18)}


def published(version):
    """The operators of the standard in an opset, as `onnx` has them."""
    found = set()
    for name in HISTORY:
        try:
            schema = defs.get_schema(name, version, "")
        except defs.SchemaError:
            continue
        if not schema.deprecated:
            found.add((name, schema.since_version))
    return found


@pytest.mark.parametrize("version", [1, 7, 10, 13, 18, 21, STANDARD.newest_opset("")])
def test_the_operator_sets_of_the_standard(version):
    listed = {(entry.name, entry.since) for entry in STANDARD.operator_set("", version).operators}
    assert listed - published(version) <= DEPRECATED_LATER
    assert published(version) <= listed


def test_the_status_is_that_of_the_version():
    (entry,) = STANDARD.operator_set("ai.onnx.preview").operators
    assert (entry.name, entry.status) == ("FlexAttention", "experimental")
    assert STANDARD.operator_set("ai.onnx", 1).entry("Relu").status == "stable"


def custom():
    half = Operator("Half", "org.acme", summary="Half of x.")
    first = half.first(1, **PORTS)
    first.evolve(3, "Rounds.")
    old = Operator("Old", "org.acme")
    old.first(1, **PORTS).retire(2, "Use Half.")
    return STANDARD.with_operators(half, old, opsets={"org.acme": 4})


def test_operators_of_ones_own():
    registry = custom()
    by_version = {
        version: [(e.name, e.since) for e in registry.operator_set("org.acme", version).operators]
        for version in range(1, 5)
    }
    assert by_version == {1: [("Half", 1), ("Old", 1)], 2: [("Half", 1)], 3: [("Half", 3)], 4: [("Half", 3)]}
    newest = registry.operator_set("org.acme")
    assert (newest.version, newest.entry("Half").doc) == (4, "Half of x.")
    assert not list(sabir.findings([registry.operator_set("org.acme", v) for v in range(1, 5)], strict=True))


def test_what_documents_define_is_included():
    text = '<domain: "org.acme", opset_import: ["" : 21]>\n{} (x) => (y) {{ y = Neg (x) }}'
    functions = [parse_function(text.format(name)) for name in ("Half", "Less", "Late")]
    entries = [OperatorEntry("Half", 2), OperatorEntry("Less", 2), OperatorEntry("Late", 4)]
    registry = custom().with_operator_sets(sabir.OperatorSet("org.acme", 4, entries, functions))
    found = registry.operator_set("org.acme", 3)
    assert [(e.name, e.since) for e in found.operators] == [
        ("Half", 3),
        ("Less", 2),
    ]  # the registry comes first
    assert [f.name for f in found.functions] == ["Less"]


@pytest.mark.parametrize(
    ("domain", "version", "error", "message"),
    [
        ("", 29, sabir.UnsupportedError, "opset 29 of 'ai.onnx' is not known; the newest known one is 28"),
        ("", 0, sabir.SchemaError, "at least 1, and not 0"),
        ("nowhere", 1, sabir.SchemaError, "no operators of domain 'nowhere' are known"),
        ("org.acme", None, sabir.SchemaError, "have no bound; state a version"),
    ],
)
def test_operator_sets_that_there_are_not(domain, version, error, message):
    half = Operator("Half", "org.acme")
    half.first(1, **PORTS)
    with pytest.raises(error, match=message):
        STANDARD.with_operators(half).operator_set(domain, version)
