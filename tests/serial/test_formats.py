# ruff: file-ignore[banned-api]  onnx is the oracle
"""A model in each of the formats: nothing is lost, onnx agrees, and no text does harm."""

import io
import json
import math
import pathlib
import sys
import time

import numpy as np
import onnx
import pytest
from google.protobuf import json_format, text_format
from hypothesis import HealthCheck, given, settings
from onnx import serialization

import sabir
from sabir.base import ExternalDataError, ParseError, SabirError, UnsupportedError, WireError
from sabir.elements import find_element
from sabir.proto import ModelProto
from sabir.serial import FORMATS
from support.messages import models, wire_of

MANY = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
TEXTS = ("textproto", "json")
SUFFIXES = {
    ".onnx": "protobuf", ".pb": "protobuf", ".textproto": "textproto", ".txtpb": "textproto",
    ".prototxt": "textproto", ".pbtxt": "textproto", ".json": "json", ".onnxjson": "json",
    ".onnxtxt": "onnxtxt", ".onnxtext": "onnxtxt", ".txt": "onnxtxt", ".TXT": "onnxtxt", "": "protobuf",
}  # fmt: skip


def small():
    """A model with a tensor, an attribute and a name beyond ASCII."""
    b = sabir.Builder(21, name="grün")
    x = b.input("x", "float", ["N", 2])
    y = b.Add(x, b.initializer("w", np.float32([[0.1, -0.0]])))
    b.output(b.LeakyRelu(y, alpha=0.25, name="leaky"), "y")
    return b.model()


def through(message, name):
    data = sabir.dumps(sabir.loads(message.SerializeToString()), format=name)
    return ModelProto.FromString(sabir.dumps(sabir.loads(data, format=name)))


# identity


@pytest.mark.parametrize("name", TEXTS)
def test_any_model_survives_each_of_protobufs_texts(name):
    @MANY
    @given(models())
    def holds(message):
        assert wire_of(through(message, name), nans=False) == wire_of(message, nans=False)

    holds()


def settled(message):
    """Put the data of well-formed tensors into `raw_data`, of all of them the first NaN: a text may move it."""
    pending = [message]
    while pending:
        one = pending.pop()
        if one.DESCRIPTOR.name == "TensorProto":
            settle(one)
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending.extend(value if hasattr(value, "add") else [value])
    return message


def settle(tensor):
    element = find_element(tensor.data_type)
    if element is None or tensor.data_location or element.kind == "string":
        return
    alone = type(tensor)(dims=tensor.dims, data_type=tensor.data_type)
    fields = [
        f.name for f, _ in tensor.ListFields() if f.name.endswith("_data") and f.name != "external_data"
    ]
    if len(fields) > 1 or (tensor.dims and min(tensor.dims) < 0) or math.prod(tensor.dims) > 1000:
        return
    for name in fields:
        value = getattr(tensor, name)
        alone.MergeFrom(type(tensor)(**{name: value}))
    try:
        raw = bytes(sabir.ir.WireTensor(alone).raw())
    except SabirError:
        return
    for name in fields:
        tensor.ClearField(name)
    tensor.raw_data = raw


@MANY
@given(models())
def test_any_model_survives_the_text_syntax(message):
    assert wire_of(settled(through(message, "onnxtxt")), nans=False) == wire_of(settled(message), nans=False)


@pytest.mark.parametrize("name", [*TEXTS, "onnxtxt"])
def test_every_model_of_the_wheel_survives(name):
    paths = sorted(pathlib.Path(onnx.__file__).parent.rglob("*.onnx"))
    assert len(paths) > 100
    for path in paths:
        message = ModelProto.FromString(path.read_bytes())
        assert wire_of(settled(through(message, name))) == wire_of(settled(message)), path


@pytest.mark.parametrize("name", FORMATS)
def test_every_bit_of_a_float_survives(name):
    values = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        1e-45,
        1.1754942e-38,
        3.4028235e38,
        -3.4028235e38,
        0.1,
        16777217,
        1 / 3,
    ]
    message = ModelProto(ir_version=14)
    message.opset_import.add(domain="", version=21)
    message.graph.name = "g"
    node = message.graph.node.add(op_type="Op", output=["y"])
    node.attribute.add(name="floats", type=6, floats=values)
    for place, value in enumerate(values):
        node.attribute.add(name=f"f{place}", type=1, f=value)
    tensor = message.graph.initializer.add(name="t", dims=[len(values)], data_type=1)
    tensor.float_data.extend(values)
    doubles = [5e-324, 1.7976931348623157e308, 0.1, -0.0, 1e23]
    message.graph.initializer.add(name="d", dims=[5], data_type=11).double_data.extend(doubles)
    back = through(message, name)
    assert wire_of(settled(back)) == wire_of(settled(message))


@pytest.mark.parametrize("name", TEXTS)
def test_a_nan_stays_one(name):
    message = ModelProto(ir_version=14)
    message.graph.node.add(op_type="Op").attribute.add(name="a", type=6, floats=[math.nan, 1.0])
    found = through(message, name).graph.node[0].attribute[0].floats
    assert math.isnan(found[0])
    assert found[1] == np.float32(1)


# onnx


@pytest.mark.parametrize("name", TEXTS)
def test_onnx_reads_what_we_write(name):
    model = small()
    theirs = onnx.load_model_from_string(sabir.dumps(model, format=name), format=name)
    assert theirs.SerializeToString(deterministic=True) == wire_of(ModelProto.FromString(sabir.dumps(model)))


@pytest.mark.parametrize("name", TEXTS)
def test_onnx_reads_any_model_that_we_write(name):
    classes = {"textproto": text_format, "json": json_format}

    @settings(MANY, max_examples=25)
    @given(models())
    def holds(message):
        data = sabir.dumps(sabir.loads(message.SerializeToString()), format=name)
        theirs = classes[name].Parse(data.decode(), onnx.ModelProto())
        ours = ModelProto.FromString(theirs.SerializeToString())
        assert wire_of(ours, nans=False) == wire_of(message, nans=False)

    holds()


@pytest.mark.parametrize("name", TEXTS)
def test_we_read_any_model_that_onnx_writes(name):
    serializer = serialization.registry.get(name)

    @settings(MANY, max_examples=25)
    @given(models())
    def holds(message):
        theirs = onnx.ModelProto.FromString(message.SerializeToString())
        back = sabir.loads(serializer.serialize_proto(theirs), format=name)
        assert wire_of(ModelProto.FromString(sabir.dumps(back)), nans=False) == wire_of(message, nans=False)

    holds()


def test_camel_case_keys_and_numbers_as_they_may_be_written_in_json():
    text = """{"irVersion": 14.0, "opsetImport": [{"version": 21, "domain": null}], "graph": {"name": "g", "node": [
        {"opType": "Op", "attribute": [{"name": "a", "type": 1, "f": "1.5"}, {"name": "b", "type": "INT", "i": 7},
        {"name": "c", "type": "STRING", "s": "-_8"}]}]}}"""
    (node,) = sabir.loads(text.encode()).graph
    assert [a.value for a in node.attributes.values()] == [1.5, 7, b"\xfb\xff"]


def test_the_ways_in_which_textproto_may_be_written():
    text = r"""# a comment
        ir_version: 0xE opset_import: [ { version: 025, domain: "" }, < domain: 'a' "b" version: 1 > ];
        graph { name: 'g\x41\102\n\u00e41\0601\x3z\?' "\618" node: { op_type: "Op", attribute { name: "f" f: -1.5f type: 1 }
          attribute { name: "i" i: - 3; type: INT } attribute { name: "fs" floats: [1, -inf, .5e1] floats: 2 type: FLOATS }
        } }"""
    model = sabir.loads(text.encode())
    assert (model.opsets, model.graph.name) == ({"": 21, "ab": 1}, "gAB\nä101\x03z?18")
    (node,) = model.graph
    assert [a.value for a in node.attributes.values()] == [-1.5, -3, (1.0, -math.inf, 5.0, 2.0)]


# which format


@pytest.mark.parametrize(("suffix", "name"), SUFFIXES.items())
def test_the_name_of_a_file_tells_its_format(suffix, name, tmp_path):
    path = tmp_path / f"m{suffix}"
    sabir.save(small(), path)
    assert path.read_bytes() == sabir.dumps(small(), format=name)
    assert sabir.dumps(sabir.load(path)) == sabir.dumps(small())


@pytest.mark.parametrize("name", FORMATS)
def test_the_content_tells_where_the_name_does_not(name, tmp_path):
    data = sabir.dumps(small(), format=name)
    path = tmp_path / "model"
    path.write_bytes(data)
    for model in (sabir.load(path), sabir.load(data), sabir.loads(data), sabir.load(io.BytesIO(data))):
        assert model.graph.name == "grün"


@pytest.mark.parametrize("suffix", [".unheard", ".onx", ".bin", ".tmp", ".ONX", ".onnx~"])
def test_an_unknown_extension_is_refused_with_the_known_ones(suffix, tmp_path):
    path = tmp_path / f"m{suffix}"
    told = rf"m{suffix}: the extension '{suffix}' names no format.* The known ones are \.onnx, \.pb,.*--from and --to"
    with pytest.raises(UnsupportedError, match=told):
        sabir.save(small(), path)
    with pytest.raises(UnsupportedError, match=told):
        sabir.save(small(), path, external="w.data")
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(sabir.dumps(small()))
    for read in (sabir.load, sabir.check, sabir.Session):
        with pytest.raises(UnsupportedError, match=told):
            read(path)
    assert sabir.load(path, format="protobuf").graph.name == "grün"
    with path.open("rb") as file:
        assert sabir.load(file).graph.name == "grün"


def test_an_extension_that_is_nearly_known_is_corrected(tmp_path):
    with pytest.raises(UnsupportedError, match=r"'\.onx' names no format of a model; is it '\.onnx'\?"):
        sabir.save(small(), tmp_path / "m.onx")


@pytest.mark.parametrize(
    ("suffix", "why"),
    [
        (".ort", "onnxruntime's own"),
        (".safetensors", "of tensors"),
        (".pt", r"'\.pt' is a file of PyTorch.*torch\.onnx\.export"),
        (".PTH", r"torch\.onnx\.export"),
        (".pkl", "a Python pickle.*skl2onnx"),
        (".tflite", "a TensorFlow Lite model; convert it with `python -m tf2onnx"),
        (".gz", "a compressed file; decompress it first"),
        (".zip", "a compressed file; decompress it first"),
        (".npy", "an array of NumPy, and no model.* --input NAME=FILE"),
        (".png", "a picture, and no model"),
    ],
)
def test_files_that_are_taken_for_models_are_refused_with_the_reason(suffix, why, tmp_path):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"")
    for call in (lambda: sabir.load(path), lambda: sabir.save(small(), path)):
        with pytest.raises(UnsupportedError, match=why):
            call()


def test_a_missing_file_is_missing_whatever_its_extension(tmp_path):
    with pytest.raises(sabir.FileError, match="there is no such file"):
        sabir.load(tmp_path / "m.unheard")


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_that_is_given_wins(name, tmp_path):
    for path in (tmp_path / "m.onnx", tmp_path / "m.json", tmp_path / "m"):
        sabir.save(small(), path, format=name)
        assert path.read_bytes() == sabir.dumps(small(), format=name)
        assert sabir.load(path, format=name).graph.name == "grün"


@pytest.mark.parametrize("name", FORMATS)
def test_a_byte_order_mark_is_no_part_of_a_text(name):
    data = sabir.dumps(small(), format=name)
    if name != "protobuf":
        assert sabir.loads(b"\xef\xbb\xbf" + data).graph.name == "grün"


def test_an_unknown_format_is_refused_with_the_nearest(tmp_path):
    for call in (
        lambda: sabir.dumps(small(), format="jsom"),
        lambda: sabir.loads(b"", format="jsom"),
        lambda: sabir.save(small(), tmp_path / "m", format="jsom"),
        lambda: sabir.load(tmp_path / "m", format="jsom"),
    ):
        with pytest.raises((UnsupportedError, sabir.FileError)) as caught:
            call()
    with pytest.raises(UnsupportedError, match=r"there is no format 'jsom'; is it 'json'\?"):
        sabir.dumps(small(), format="jsom")
    with pytest.raises(UnsupportedError, match="the formats are protobuf, textproto, json, onnxtxt"):
        sabir.dumps(small(), format="zzz")
    assert caught


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"graph": 5}')
    with pytest.raises(ParseError, match=r"m\.json: graph must be an object, and is 5"):
        sabir.load(path)


# external data


@pytest.fixture
def beside(tmp_path):
    """A model whose data lies in a file beside it."""
    b = sabir.Builder(21)
    b.output(b.Neg(b.initializer("w", np.arange(4000, dtype=np.float32))), "y")
    sabir.save(b.model(), tmp_path / "m.onnx", external="w.data")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".textproto", ".onnxtxt"])
def test_external_data_stays_in_the_folder_and_is_found_from_every_format(beside, suffix):
    target = beside.with_name(f"other{suffix}")
    sabir.save(sabir.load(beside), target)
    assert target.stat().st_size < 4000
    (tensor,) = sabir.load(target).graph.initializers.values()
    assert isinstance(tensor, sabir.ir.ExternalTensor)
    assert tensor.array()[-1] == 3999


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".textproto", ".onnxtxt"])
def test_external_data_is_taken_along_to_another_folder(beside, suffix, tmp_path):
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / f"m{suffix}"
    sabir.save(sabir.load(beside), target)
    (tensor,) = sabir.load(target).graph.initializers.values()
    assert tensor.array()[-1] == 3999


@pytest.mark.parametrize("suffix", [".json", ".textproto", ".onnxtxt"])
def test_a_text_may_have_its_data_beside_it(beside, suffix, tmp_path):
    target = tmp_path / f"text{suffix}"
    sabir.save(sabir.load(beside), target, external="new.data")
    assert (tmp_path / "new.data").exists()
    assert target.stat().st_size < 4000
    (tensor,) = sabir.load(target, verify=True).graph.initializers.values()
    assert tensor.array()[-1] == 3999


@pytest.mark.parametrize("name", [*TEXTS, "onnxtxt"])
def test_bytes_of_a_text_tell_where_external_data_lies(beside, name):
    data = sabir.dumps(sabir.load(beside), format=name)
    (tensor,) = sabir.loads(data, format=name).graph.initializers.values()
    with pytest.raises(ExternalDataError, match="folder"):
        tensor.array()
    (tensor,) = sabir.loads(data, format=name, folder=beside.parent).graph.initializers.values()
    assert tensor.array()[-1] == 3999


# what a text cannot hold


@pytest.mark.parametrize("name", TEXTS)
def test_fields_that_are_unknown_are_not_lost_in_silence(name):
    message = ModelProto(ir_version=14)
    message.graph.node.add(op_type="Op").MergeFromString(b"\xf8\xff\x3f\x07")
    model = sabir.loads(message.SerializeToString())
    with pytest.raises(WireError, match=f"does not know, and {name} cannot contain them; use protobuf"):
        sabir.dumps(model, format=name)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_are_no_utf8_are_not_lost_in_silence(name):
    data = bytearray(sabir.dumps(small()))
    message = ModelProto.FromString(bytes(data))
    message.graph.initializer[0].doc_string = "QQQQ"
    model = sabir.loads(message.SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc"))
    with pytest.raises(WireError, match=f"TensorProto.doc_string is not UTF-8: .*; {name} cannot contain it"):
        sabir.dumps(model, format=name)


# bad input

DEEP = 100_000
NODE_JSON = '{"graph": {"node": [{"attribute": [{"%s": %s}]}]}}'
NODE = "graph { node { attribute { %s } } }"
BAD_JSON = {
    "truncated": ('{"graph": {"name": "g"', "line 1, column"),
    "no object": ("[1]", "the model must be an object, and is a list"),
    "two": ("{} {}", "extra data"),
    "trailing comma": ('{"irVersion": 1,}', "line 1"),
    "line": ('{\n "graph":\n  nope}', "line 3, column 3"),
    "unknown field": ('{"grpah": {}}', "ModelProto has no field 'grpah'; is it 'graph'?"),
    "unknown field inside": ('{"graph": {"node": [{}, {"opp_type": "x"}]}}', "graph.node[1]: NodeProto has no field"),
    "duplicate": ('{"graph": {}, "graph": {}}', "the key 'graph' is twice"),
    "duplicate by two names": ('{"irVersion": 1, "ir_version": 1}', "ir_version is there twice"),
    "duplicate list": ('{"opset_import": [{}], "opsetImport": [{}]}', "opset_import is there twice"),
    "two of a oneof": (
        '{"graph": {"input": [{"type": {"tensor_type": {}, "opaque_type": {}}}]}}',
        "graph.input[0].type.opaque_type and 'tensor_type' are both there",
    ),
    "wrong type": ('{"graph": {"node": {}}}', "graph.node must be a list, and is an object"),
    "wrong item": ('{"graph": {"node": [1]}}', "graph.node[0] must be an object, and is 1"),
    "wrong text": ('{"graph": {"name": 1}}', "graph.name must be a string, and is 1"),
    "text for a number": ('{"ir_version": "x"}', "ir_version must be an integer, and is 'x'"),
    "bool for a number": ('{"ir_version": true}', "ir_version must be a number or a string, and is true"),
    "half a number": ('{"ir_version": 1.5}', "ir_version must be an integer, and is 1.5"),
    "int64": ('{"ir_version": 9223372036854775808}', "must be an integer from"),
    "int32": ('{"graph": {"initializer": [{"data_type": 2147483648}]}}', "graph.initializer[0].data_type must be an integer"),
    "many digits": ('{"ir_version": 1%s}' % ("0" * 1_000_000), "has 1000001 digits"),
    "many quoted digits": ('{"ir_version": "1%s"}' % ("0" * 1_000_000), "ir_version must be an integer"),
    "float": (NODE_JSON % ("f", "1e39"), "graph.node[0].attribute[0].f must be a 32-bit float"),
    "double": ('{"graph": {"initializer": [{"double_data": [1e999]}]}}', "must be a 64-bit float"),
    "integer as float": (NODE_JSON % ("f", "9" * 399), "f must be a 32-bit float"),
    "bare NaN": (NODE_JSON % ("f", "NaN"), 'JSON has no number NaN; write it as the string "NaN"'),
    "bare infinity": (NODE_JSON % ("f", "-Infinity"), "JSON has no number -Infinity"),
    "odd number": (NODE_JSON % ("f", '"1_0"'), "f must be a number, and is '1_0'"),
    "enum": (NODE_JSON % ("type", '"FLOATT"'), "type has no value 'FLOATT'; is it 'FLOAT'?"),
    "enum number": (NODE_JSON % ("type", "99"), "type has no value 99"),
    "base64": (NODE_JSON % ("s", '"?"'), "s is not base64"),
    "surrogate": ('{"graph": {"name": "\\ud800"}}', "graph.name has half of a surrogate pair"),
    "control character": ('{"graph": {"name": "\n"}}', "invalid control character"),
    "null in a list": ('{"graph": {"node": [null]}}', "graph.node[0] must be an object, and is null"),
    "no graph": ("{}", "no ONNX model"),
    "deep": ("[" * DEEP, "nested deeper"),
    "deep objects": ('{"graph":' * DEEP, "nested deeper"),
    "deep messages": (
        '{"graph": {"input": [{"type": %s}]}}' % ('{"sequence_type": {"elem_type": ' * 60 + "{}" + "}}" * 60),
        "messages are nested deeper than 100",
    ),
    "50 MB of brackets": ("[" * 50_000_000, "nested deeper"),
    "50 MB of quotes": ('{"' + '\\"' * 25_000_000, "unterminated string"),
}  # fmt: skip
BAD_TEXTPROTO = {
    "truncated": ('graph { name: "g"', "expected '}', found the end of the text"),
    "truncated string": ('graph { name: "g', "this string does not end on its line"),
    "too many ends": ("graph { } }", "expected a field, found '}'"),
    "no value": ("ir_version:", "expected an integer for 'ir_version', found the end of the text"),
    "line": ("ir_version: 1\n  graph {\n    nmae: 'x' }", "line 3, column 5: GraphProto has no field 'nmae'; is it 'name'?"),
    "twice": ("graph { } graph { }", "ModelProto has 'graph' twice"),
    "number twice": ("ir_version: 1 ir_version: 1", "ModelProto has 'ir_version' twice"),
    "two of a oneof": (
        "graph { input { type { tensor_type {} opaque_type {} } } }", "TypeProto has both 'opaque_type' and 'tensor_type'",
    ),
    "no message": ("graph: 5", "expected '{', found '5'"),
    "wrong end": ("graph { >", "expected a field or '}', found '>'"),
    "no colon": ("ir_version 5", "expected ':', found '5'"),
    "text for a number": ("ir_version: 'x'", "expected an integer for 'ir_version'"),
    "number for a text": ("graph { name: 5 }", "expected a quoted string for 'name'"),
    "half a number": ("ir_version: 1.5", "expected an integer"),
    "octal": ("ir_version: 09", "expected an integer"),
    "glued": ("ir_version: 1x", "does not belong to the format"),
    "int64": ("ir_version: 9223372036854775808", "'ir_version' must be an integer from"),
    "int32": ("graph { initializer { data_type: -2147483649 } }", "'data_type' must be an integer from"),
    "many digits": ("ir_version: 1" + "0" * 1_000_000, "'ir_version' must be an integer from"),
    "float": (NODE % "f: -1e39", "'f' must be a 32-bit float, and '1e39' is too big"),
    "double": ("graph { initializer { double_data: 1e999 } }", "'double_data' must be a 64-bit float"),
    "no float": (NODE % "f: 0x10", "expected a number for 'f'"),
    "enum": (NODE % "type: FLOATT", "'type' has no value 'FLOATT'; is it 'FLOAT'?"),
    "enum number": (NODE % "type: 99", "'type' has no value '99'"),
    "escape": (NODE % r"s: '\q'", "an unknown escape"),
    "octal escape": (NODE % r"s: '\477'", "an unknown escape"),
    "code point": (NODE % r"s: '\U00110000'", "a character that does not exist"),
    "utf8": (r"graph { name: '\377' }", "'name' must be UTF-8"),
    "list": ("graph { node [ { } { } ] }", "expected ',' or ']'"),
    "list of one": ("graph [ { } ]", "expected '{'"),
    "extension": ("[a.b]: 1", "expected a field, found '['"),
    "character": ("graph { \x01 }", "does not belong to the format"),
    "no graph": ("producer_name: 'x'", "no ONNX model"),
    "deep": ("graph {" * DEEP, "GraphProto has no field 'graph'"),
    "deep types": ("graph { input { type {" + "sequence_type { elem_type {" * DEEP, "nested deeper than 100"),
    "50 MB of brackets": ("[" * 50_000_000, "expected a field"),
    "50 MB of quotes": ("'" * 49_999_999, "expected a field"),
    "50 MB of escapes": ("'" + r"\'" * 25_000_000, "does not end on its line"),
    "50 MB of comments": ("#\n" * 25_000_000, "no ONNX model"),
}  # fmt: skip


def refused(data, name):
    start = time.process_time()
    with pytest.raises((ParseError, WireError)) as caught:
        sabir.loads(data, format=name)
    assert time.process_time() - start < 10
    assert len(str(caught.value)) <= 2000
    assert str(caught.value).replace("\n", "").isprintable()
    return str(caught.value)


@pytest.mark.parametrize("case", BAD_JSON)
def test_bad_json_is_refused(case):
    text, told = BAD_JSON[case]
    assert told in refused(text.encode(), "json")


@pytest.mark.parametrize("case", BAD_TEXTPROTO)
def test_bad_textproto_is_refused(case):
    text, told = BAD_TEXTPROTO[case]
    assert told in refused(text.encode(), "textproto")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe{\x00}\x00", b"\x80\x81", b"\x00" * 1000])
def test_what_is_no_model_at_all_is_refused_in_every_format(name, data):
    assert refused(data, name)


@pytest.mark.parametrize("name", FORMATS)
def test_every_truncation_of_a_model_is_refused_or_a_model(name):
    data = sabir.dumps(small(), format=name)
    refusals = 0
    for length in range(0, len(data) - 1, 3):
        try:
            sabir.loads(data[:length], format=name)
        except (ParseError, WireError):
            refusals += 1
    assert refusals > len(data) // 3 * 0.8


@pytest.mark.parametrize("name", TEXTS)
def test_a_raised_recursion_limit_does_not_let_a_text_reach_the_end_of_the_stack(name):
    old = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        deep = b'{"graph":' if name == "json" else b"graph { node { attribute { g { node { attribute { g {"
        assert refused(deep * DEEP, name)
    finally:
        sys.setrecursionlimit(old)


def test_json_is_plain_json():
    found = json.loads(sabir.dumps(small(), format="json"))
    assert found["graph"]["node"][1]["attribute"][0] == {"name": "alpha", "f": 0.25, "type": "FLOAT"}
    assert found["opset_import"] == [{"domain": "", "version": "21"}]


def test_progress_of_a_text_tells_its_size_in_advance(tmp_path):
    b = sabir.Builder(21)
    b.output(b.Identity(b.initializer("w", np.arange(100_000, dtype=np.int64))), "y")
    calls = []
    sabir.save(b.model(), tmp_path / "m.onnxtxt", progress=lambda done, total: calls.append((done, total)))
    size = (tmp_path / "m.onnxtxt").stat().st_size
    assert {total for _, total in calls} == {size}
    assert calls[-1] == (size, size)
    assert sabir.dumps(b.model(), format="onnxtxt") == (tmp_path / "m.onnxtxt").read_bytes()
