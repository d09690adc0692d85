"""Hostile documents of operator sets: each ends in an answer or a SabirError, and soon."""

import random

import pytest
from google.protobuf.message import DecodeError

import sabir
from hostile.case import MANY, field
from sabir.checking import set_changes
from sabir.opsets import STANDARD
from sabir.proto import OperatorSetProto

LARGEST = 2**63 - 1


def document(version=1, **fields):
    return OperatorSetProto(magic="ONNXOPSET", ir_version=10, domain="d", opset_version=version, **fields)


def add_function(made, name, *callees, version=1):
    """Add a function that calls others of its domain one after the other, or Neg."""
    made.operator.add(op_type=name, since_version=1, status=1)
    function = made.functions.add(name=name, domain="d", input=["v0"], output=[f"v{len(callees) or 1}"])
    function.opset_import.add(domain="", version=21)
    function.opset_import.add(domain="d", version=version)
    for place, callee in enumerate(callees):
        function.node.add(op_type=callee, domain="d", input=[f"v{place}"], output=[f"v{place + 1}"])
    if not callees:
        function.node.add(op_type="Neg", input=["v0"], output=["v1"])


def use(data):
    """Do with the bytes of a document whatever a program can do with it."""
    loaded = sabir.OperatorSet.loads(data)
    for form in ("protobuf", "textproto", "json"):
        try:
            loaded.dumps(format=form)
        except sabir.SabirError:
            continue
    list(sabir.findings([loaded, loaded], strict=True))
    set_changes(loaded, loaded)
    registry = STANDARD.with_operator_sets(loaded)
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>\ng (float[2] x) => (float[2] y) { y = d.f (x) }'
    )
    return sabir.evaluate(sabir.parse(text), {"x": [1.0, 2.0]}, registry=registry)["y"].tolist()


def test_a_document_of_this_file_is_sound():
    made = document()
    add_function(made, "f", "g", "g")
    add_function(made, "g")
    assert use(made.SerializeToString()) == [1.0, 2.0]


def test_recursion_is_refused():
    made = document()
    add_function(made, "f", "g")
    add_function(made, "g", "f")
    with pytest.raises(sabir.SchemaError, match="calls itself"):
        use(made.SerializeToString())
    assert "FUNC003" in {f.rule for f in sabir.findings(made.SerializeToString())}


def test_functions_that_double_are_refused_before_they_are_expanded():
    made = document()
    for i in range(60):
        add_function(made, "f" if i == 0 else f"f{i}", f"f{i + 1}", f"f{i + 1}")
    add_function(made, "f60")
    with pytest.raises(sabir.LimitError):
        use(made.SerializeToString())


def test_a_long_chain_of_calls():
    made = document()
    for i in range(1000):
        add_function(made, "f" if i == 0 else f"f{i}", f"f{i + 1}")
    add_function(made, "f1000")
    with pytest.raises(sabir.SabirError, match="nested"):
        use(made.SerializeToString())


@pytest.mark.parametrize("version", [LARGEST, -LARGEST, 0])
def test_any_number_is_a_version(version):
    made = document(version)
    add_function(made, "f", version=version)
    made.operator[0].since_version = version
    with pytest.raises(sabir.SabirError):
        use(made.SerializeToString())
    assert list(sabir.findings(made.SerializeToString(), strict=True))


def test_very_many_entries():
    made = document()
    add_function(made, "f")
    for i in range(MANY // 5):
        made.operator.add(op_type=f"Operator{i}", since_version=1, status=1)
    assert use(made.SerializeToString()) == [-1.0, -2.0]


def test_very_many_entries_of_one_name():
    made = document()
    for _ in range(MANY // 10):
        made.operator.add(op_type="f", since_version=1, status=1)
    assert (
        len([f for f in sabir.findings(made.SerializeToString()) if f.rule == "OPSET004"]) == MANY // 10 - 1
    )
    with pytest.raises(sabir.SchemaError, match="has no body for it"):
        use(made.SerializeToString())


def test_control_characters_in_names_are_legible():
    made = document()
    made.operator.add(op_type="\x1b[31m\nF", since_version=9, status=1)
    messages = [f"{f.message}{f.location}" for f in sabir.findings(made.SerializeToString())]
    assert messages
    assert all(message.isprintable() for message in messages)


@pytest.mark.parametrize("number", [1, 3, 4, 6, 7])
def test_text_that_is_no_utf8(number):
    with pytest.raises(sabir.WireError, match="is not UTF-8"):
        sabir.OperatorSet.loads(document(doc_string="d").SerializeToString() + field(number, b"\xb5"))


def test_mutants_and_truncations_end_in_an_answer_or_an_error():
    made = document()
    add_function(made, "f", "g")
    add_function(made, "g")
    made.operator.add(op_type="h", since_version=1)
    sound, chance = made.SerializeToString(), random.Random(7)  # ruff: ignore[suspicious-non-cryptographic-random-usage]  mutants
    for _ in range(400):
        data = bytearray(sound)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            use(bytes(data[: chance.randint(1, len(data))]))
        except sabir.SabirError:
            continue


def test_the_largest_depth_that_protobuf_reads():
    inner = b""
    for _ in range(200):
        inner = field(5, field(6, field(1, inner)))  # attributes with graphs with nodes
    data = document().SerializeToString() + field(9, field(7, inner))
    with pytest.raises(DecodeError):
        OperatorSetProto.FromString(data)
    with pytest.raises(sabir.WireError, match="truncated or no operator set"):
        sabir.OperatorSet.loads(data)
