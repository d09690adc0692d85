# ruff: file-ignore[banned-api]  its class is the reference
"""Operator sets as files: nothing is lost, and the messages are those of the `onnx` package."""

import copy
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import onnx_operators_ml_pb2 as official

import sabir
from sabir.base import run_with_limits
from sabir.ir import OperatorEntry
from sabir.syntax import parse_function

EXPERIMENTAL, STABLE = 0, 1
FORMATS = ("protobuf", "textproto", "json")
TWICE = '<domain: "com.acme", opset_import: ["" : 21]>\nTwice (x) => (y) { y = Add (x, x) }'
SCALED = (
    '<domain: "com.acme", opset_import: ["" : 21, "com.acme" : 2]>\n'
    "Scaled <factor: float = 2.0> (x) => (y) { k = Constant <value_float: float = @factor> ()  t = Mul (x, k)"
    "  y = com.acme.Twice (t) }"
)
MODEL = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[N] x) => (float[N] y) { y = Relu (x) }'

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)


@st.composite
def messages(draw):
    """A message of the official class, with any of its fields absent, present, or present and empty."""
    proto = official.OperatorSetProto(magic="ONNXOPSET")
    for field in ("ir_version_prerelease", "ir_build_metadata", "domain", "doc_string"):
        if draw(st.booleans()):
            setattr(proto, field, draw(texts))
    for field in ("ir_version", "opset_version"):
        if draw(st.booleans()):
            setattr(proto, field, draw(numbers))
    for _ in range(draw(st.integers(0, 3))):
        operator = proto.operator.add()
        for field, values in (
            ("op_type", texts), ("since_version", numbers), ("status", st.integers(0, 1)), ("doc_string", texts),
        ):  # fmt: skip
            if draw(st.booleans()):
                setattr(operator, field, draw(values))
    for text in draw(st.lists(st.sampled_from([TWICE, SCALED]), max_size=2)):
        proto.functions.add().ParseFromString(sabir.to_proto(parse_function(text)).SerializeToString())
    return proto


@settings(deadline=None)  # the machine may be busy
@given(messages())
def test_what_the_official_class_writes_is_read_and_written_again(proto):
    wire = proto.SerializeToString()
    operator_set = sabir.OperatorSet.loads(wire)
    assert operator_set.dumps() == wire
    assert (operator_set.domain, operator_set.version) == (proto.domain, proto.opset_version)
    entries = [(e.name, e.since, e.status == "stable") for e in operator_set.operators]
    assert entries == [(o.op_type, o.since_version, bool(o.status)) for o in proto.operator]
    for form in FORMATS[1:]:
        again = sabir.OperatorSet.loads(operator_set.dumps(format=form), format=form)
        assert again.dumps() == wire


def a_set():
    return sabir.OperatorSet(
        "com.acme",
        3,
        [OperatorEntry("Twice", 1, "stable", "Adds."), OperatorEntry("Next", 3, "experimental")],
        [parse_function(TWICE)],
        ir_version=10,
        ir_prerelease="rc1",
        ir_build="b7",
        doc="Ours.",
    )


def test_the_official_class_reads_what_we_write():
    proto = official.OperatorSetProto.FromString(a_set().dumps())
    assert proto.magic == "ONNXOPSET"
    assert (proto.ir_version, proto.ir_version_prerelease, proto.ir_build_metadata) == (10, "rc1", "b7")
    assert (proto.domain, proto.opset_version, proto.doc_string) == ("com.acme", 3, "Ours.")
    assert [(o.op_type, o.since_version, o.status, o.doc_string) for o in proto.operator] == [
        ("Twice", 1, STABLE, "Adds."),
        ("Next", 3, EXPERIMENTAL, ""),
    ]
    assert proto.operator[1].HasField("status")  # readers of other kinds would see no difference from absent
    assert [n.op_type for n in proto.functions[0].node] == ["Add"]


def test_the_first_bytes_are_the_magic():
    assert a_set().dumps().startswith(b"\n\x09ONNXOPSET")


def test_messages_of_both_packages():
    proto = sabir.to_proto(a_set(), official.OperatorSetProto)
    assert proto.operator[0].op_type == "Twice"
    assert sabir.from_proto(proto).dumps() == a_set().dumps() == sabir.to_proto(a_set()).SerializeToString()


@pytest.mark.parametrize("name", ["set.onnx", "set.pb", "set.textproto", "set.json", "set"])
def test_a_file_has_the_format_of_its_extension(tmp_path, name):
    path = tmp_path / name
    a_set().save(path)
    assert sabir.OperatorSet.load(path).dumps() == a_set().dumps()
    assert sabir.OperatorSet.load(path.read_bytes()).dumps() == a_set().dumps()
    with path.open("rb") as file:
        assert sabir.OperatorSet.load(file).dumps() == a_set().dumps()


def test_an_open_file_takes_a_set():
    file = io.BytesIO()
    a_set().save(file, format="json")
    assert sabir.OperatorSet.loads(file.getvalue()).version == 3


def test_unknown_fields_stay():
    wire = a_set().dumps() + b"\xa2\x06\x03new"  # field 100
    assert sabir.OperatorSet.loads(wire).dumps() == wire
    with pytest.raises(sabir.WireError, match="the operator set has fields that Sabir does not know"):
        sabir.OperatorSet.loads(wire).dumps(format="json")


def test_an_unknown_status_stays():
    entry = b"\n\x01A\x10\x01\x18\x07"  # status 7
    wire = b"\n\x09ONNXOPSET\x28\x01" + b"\x42" + bytes([len(entry)]) + entry
    assert sabir.OperatorSet.loads(wire).dumps() == wire


@pytest.mark.parametrize("form", FORMATS)
def test_a_model_and_a_set_are_told_apart(form, tmp_path):
    model = sabir.parse(MODEL)
    with pytest.raises(sabir.WireError, match="this is a model, and no operator set; `sabir.load` reads it"):
        sabir.OperatorSet.loads(sabir.dumps(model, format=form))
    path = tmp_path / "set"
    a_set().save(path, format=form)
    with pytest.raises(
        sabir.WireError, match="this is an operator set, and no model; `sabir.OperatorSet.load`"
    ):
        sabir.load(path)
    with pytest.raises(TypeError, match="an operator set has a method `save`"):
        sabir.save(a_set(), path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\x09ONNXOPSEX", "its magic is 'ONNXOPSEX', and must be 'ONNXOPSET'"),
        (b"\n\x02\xff\xfe", "magic is not UTF-8"),
        (b"\n\x09ONNXOPSET\x10", "truncated or no operator set"),
        (b"PK\x03\x04 an archive", "no operator set: this looks like a zip archive"),
        (b"\x22\x01d", "it has no magic"),
        (b'magic: "other"', "its magic is 'other'"),
        (b'{"magic": "ONNXOPSET", "graph": {}}', "graph"),
    ],
)
def test_what_is_no_operator_set(data, message):
    with pytest.raises(sabir.SabirError, match=message):
        sabir.OperatorSet.loads(data)


def test_every_truncation_is_an_error_or_a_smaller_set():
    wire = a_set().dumps()
    for size in range(len(wire)):
        try:
            sabir.OperatorSet.loads(wire[:size])
        except (sabir.WireError, sabir.ParseError):
            continue


def test_a_set_without_a_magic_is_read():
    wire = a_set().dumps().removeprefix(b"\n\x09ONNXOPSET")
    assert sabir.OperatorSet.loads(wire).dumps() == wire


@pytest.mark.parametrize("form", [*FORMATS, "onnxtxt"])
def test_a_model_may_mention_the_magic(form):
    model = sabir.parse(MODEL)
    model.doc = "magic: 'ONNXOPSET'"
    assert sabir.loads(sabir.dumps(model, format=form)).doc == model.doc


@pytest.mark.parametrize(
    "text",
    [
        'domain: "d" opset_version: 2 magic: "ONNXOPSET"',
        '{"domain": "d", "opsetVersion": "2", "magic": "ONNXOPSET"}',
    ],
)
def test_the_magic_may_come_late(text):
    assert sabir.OperatorSet.loads(text).label == "d:2"
    assert sabir.serial.load_either(text.encode()).label == "d:2"


def test_the_text_syntax_has_no_operator_sets(tmp_path):
    with pytest.raises(sabir.UnsupportedError, match="use protobuf, textproto or json"):
        a_set().save(tmp_path / "set.onnxtxt")
    assert not (tmp_path / "set.onnxtxt").exists()


def test_a_number_that_does_not_fit_is_named():
    operator_set = a_set()
    operator_set.version = 2**63
    with pytest.raises(sabir.WireError, match="OperatorSetProto.opset_version cannot hold"):
        operator_set.dumps()


def test_a_file_may_not_nest_without_end():
    branch = "then_branch = a () => (float u) { u = Identity(x) }, else_branch = b () => (float v) { v = Identity(x) }"
    body = f"y = If (c) <{branch}>"
    for _ in range(40):
        body = f"y = If (c) <then_branch = a () => (float y) {{ {body} }}, else_branch = b () => (float v) {{ v = Identity(x) }}>"
    text = f'<domain: "com.acme", opset_import: ["" : 21]>\nDeep (c, x) => (y) {{ {body} }}'
    function = run_with_limits(sabir.Limits(depth=66), parse_function, text)
    operator_set = sabir.OperatorSet("com.acme", 1, [OperatorEntry("Deep", 1)], [function])
    with pytest.raises(sabir.WireError, match="nested too deep"):
        operator_set.dumps(limits=sabir.Limits(depth=66))


def test_copies_share_no_node():
    original = a_set()
    for clone in (original.clone(), copy.copy(original)):
        assert clone.dumps() == original.dumps()
        clone.functions[0].graph[0].op = "Mul"
        clone.operators.clear()
    assert original.functions[0].graph[0].op == "Add"
    assert len(original.operators) == 2


def test_names_and_labels():
    operator_set = a_set()
    assert operator_set.entry("Next").since == 3
    assert operator_set.function("Twice").domain == "com.acme"
    assert operator_set.label == "com.acme:3"
    assert sabir.OperatorSet("", 13).label == "ai.onnx:13"
    assert repr(operator_set) == "<OperatorSet com.acme:3: 2 operators, 1 function>"
    with pytest.raises(KeyError, match="has no operator named 'Nxet'; is it 'Next'"):
        operator_set.entry("Nxet")
    with pytest.raises(AttributeError, match="it is called 'version'"):
        _ = operator_set.opset_version
