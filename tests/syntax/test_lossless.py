# ruff: file-ignore[banned-api]  onnx is the oracle
"""A text keeps all that a message says: only where a tensor's numbers are stored may change, and which NaN."""

import math
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test.loader as official
import onnx.parser
import pytest
from hypothesis import HealthCheck, given, settings

import sabir
from sabir.base import UnsupportedError, WireError
from sabir.elements import ELEMENTS, STRING, packed_size, to_field
from sabir.ir import Builder, ExternalTensor, WireTensor
from sabir.proto import ModelProto, TensorProto
from sabir.serial._writer import ModelWriter
from sabir.syntax import parse, text
from support.messages import models

DATA = ("float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data")


def message_of(model):
    """The message of a model, its external data where it is."""
    return ModelWriter(put).model(model)


def put(tensor, proto):
    if isinstance(tensor, WireTensor):
        proto.CopyFrom(tensor.proto)
        if tensor.view is not None:
            proto.raw_data = bytes(tensor.view)
        return
    proto.dims.extend(tensor.shape)
    proto.data_type = tensor.element.number
    if tensor.element is STRING:
        proto.string_data.extend(to_field(STRING, tensor.array()))
    else:
        proto.raw_data = bytes(tensor.raw())


def settled(proto):
    """A message whose tensors all hold their numbers in one place, and its attributes one NaN."""
    pending = [proto]
    while pending:
        one = pending.pop()
        if one.DESCRIPTOR.name == "TensorProto":
            settle(one)
        if one.DESCRIPTOR.name == "AttributeProto":
            if math.isnan(one.f):
                one.f = math.copysign(math.nan, one.f)
            one.floats[:] = [math.copysign(math.nan, v) if math.isnan(v) else v for v in one.floats]
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending.extend([value] if hasattr(value, "DESCRIPTOR") else value)
    return proto


def settle(tensor):
    held = WireTensor(tensor)
    present = {f.name for f, _ in tensor.ListFields()} & set(DATA)
    if tensor.data_location == TensorProto.EXTERNAL or not present <= {"raw_data"} | {held.element.field}:
        return
    try:
        array = held.array()
        raw = b"" if held.element is STRING else bytes(held.raw())
    except (WireError, UnsupportedError):
        return
    if len(present) > 1:
        return
    strings = to_field(STRING, array) if held.element is STRING else []
    for field in DATA:
        tensor.ClearField(field)
    tensor.string_data.extend(strings)
    if raw:
        tensor.raw_data = raw


def assert_kept(proto):
    proto.graph.SetInParent()  # without one it is no model
    model = sabir.loads(proto.SerializeToString())
    shown = text(model)
    again = parse(shown)
    expected, found = settled(message_of(model)), settled(message_of(again))
    assert found.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
    assert text(again) == shown
    return shown


@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_whole_models_come_back(proto):
    assert_kept(proto)


@given(models(unknown=True))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_whole_models_with_unknown_fields_come_back(proto):
    assert_kept(proto)


# ---------------------------------------------------------------- what others read

UNSAID = (
    "denotation", "device_configurations", "quantization_annotation", "sparse_initializer", "training_info",
    "configuration", "segment",
)  # fmt: skip
UNREAD = {"TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTOS"}


def standard(proto):
    """A model without what takes a note, or words that `onnx.parser` does not know."""
    pending = [proto]
    while pending:
        one = pending.pop()
        name = one.DESCRIPTOR.name
        for field in UNSAID:
            if field in one.DESCRIPTOR.fields_by_name:
                one.ClearField(field)
        if name not in {"ModelProto", "FunctionProto"} and "doc_string" in one.DESCRIPTOR.fields_by_name:
            one.ClearField("doc_string")
        if name != "ModelProto" and "metadata_props" in one.DESCRIPTOR.fields_by_name:
            one.ClearField("metadata_props")
        if name in SIMPLIFY:
            SIMPLIFY[name](one)
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending.extend([value] if hasattr(value, "DESCRIPTOR") else value)
    return proto


def simple_import(entry):
    entry.domain = entry.domain  # there, though it may be empty


def simple_node(node):
    node.op_type, node.domain = "Op", "com.x"
    node.ClearField("overload")
    kept = [a for a in node.attribute if a.AttributeType.Name(a.type) not in UNREAD]
    for number, attribute in enumerate(kept):
        attribute.name = f"a{number}"
    node.ClearField("attribute")
    node.attribute.extend(kept)


def simple_attribute(attribute):
    if attribute.ref_attr_name:
        return
    if attribute.HasField("t"):
        attribute.t.name = "t"
    attribute.s = b"s" if attribute.HasField("s") else attribute.s
    if not attribute.HasField("s") or attribute.type != attribute.STRING:
        attribute.ClearField("s")
    attribute.strings[:] = [b"s" for _ in attribute.strings]


def simple_graph(graph):
    graph.name = "g"


def simple_function(function):
    function.name, function.domain = "f", "d"
    defaults = [a for a in function.attribute_proto if a.AttributeType.Name(a.type) not in UNREAD]
    function.ClearField("attribute_proto")
    function.attribute_proto.extend(defaults)


def simple_opaque(opaque):
    opaque.domain, opaque.name = "a.b", "n"


def simple_dimension(dim):
    if " - " in dim.dim_param:  # blanks inside an expression are noted
        dim.dim_param = dim.dim_param.replace(" ", "")


def simple_info(info):
    info.name = info.name or "v"


def simple_tensor(tensor):
    if tensor.data_location == TensorProto.EXTERNAL:
        return
    size = packed_size(WireTensor(tensor).element, math.prod(tensor.dims)) if tensor.data_type != 8 else 0
    for field in DATA:
        tensor.ClearField(field)
    if tensor.data_type == 8:
        tensor.string_data.extend([b"s"] * math.prod(tensor.dims))
    else:
        tensor.raw_data = bytes(size)


SIMPLIFY = {
    "OperatorSetIdProto": simple_import, "NodeProto": simple_node, "AttributeProto": simple_attribute,
    "GraphProto": simple_graph, "FunctionProto": simple_function, "Opaque": simple_opaque,
    "TensorProto": simple_tensor, "Dimension": simple_dimension, "ValueInfoProto": simple_info,
}  # fmt: skip


@given(models(odd=False))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_the_standard_can_say_onnx_reads(proto):
    shown = assert_kept(standard(proto))
    assert "@{" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", shown)
    onnx.parser.parse_model(shown.replace("\0", "0"))  # it takes a NUL for the end


@pytest.fixture(scope="module")
def official_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case.model for case in official.load_node_model_tests()]


def test_the_official_node_models_come_back_and_onnx_reads_them(official_models):
    assert len(official_models) > 1800
    for model in official_models[::2]:  # test_oracle.py has the others
        onnx.parser.parse_model(assert_kept(model))


def test_the_files_of_the_wheel_come_back_and_onnx_reads_them():
    files = sorted(Path(onnx.__file__).parent.glob("backend/test/data/**/*.onnx"))
    assert len(files) > 100
    for file in files:
        onnx.parser.parse_model(assert_kept(onnx.load(file, load_external_data=False)))


# ---------------------------------------------------------------- by hand


def constants(*tensors):
    proto = ModelProto(ir_version=10)
    proto.graph.name = "g"
    for number, tensor in enumerate(tensors):
        tensor.name = f"w{number}"
    proto.graph.initializer.extend(tensors)
    return proto


@pytest.mark.parametrize("kind", [k for k in ELEMENTS if k is not STRING], ids=str)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_every_bit_of_every_element_type(kind, count):
    rng = np.random.default_rng(kind.number)
    size = packed_size(kind, count)
    for _ in range(20):
        raw = rng.integers(0, 256, size, np.uint8)
        proto = constants(TensorProto(data_type=kind.number, dims=[count], raw_data=raw.tobytes()))
        (data,) = parse(assert_kept(proto)).graph.initializers.values()
        assert bytes(data.raw()) == raw.tobytes()


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFFFFFFF])
def test_every_nan_of_a_tensor(bits):
    raw = np.array([bits, 0x3F800000], "<u4").tobytes()
    shown = assert_kept(constants(TensorProto(data_type=1, dims=[2], raw_data=raw)))
    assert ("nan" in shown) == (bits & 0x7FFFFFFF == 0x7FC00000)
    (data,) = parse(shown).graph.initializers.values()
    assert bytes(data.raw()) == raw


MALFORMED = {
    "too short": TensorProto(data_type=1, dims=[3], raw_data=b"1234"),
    "too long": TensorProto(data_type=1, dims=[], raw_data=b"12345678"),
    "no data": TensorProto(data_type=1, dims=[3]),
    "unknown type": TensorProto(data_type=99, dims=[1], raw_data=b"1"),
    "no type": TensorProto(dims=[1], raw_data=b"1"),
    "negative": TensorProto(data_type=1, dims=[-1], raw_data=b""),
    "huge": TensorProto(data_type=1, dims=[2**62, 2**62], raw_data=b""),
    "rank 70": TensorProto(data_type=1, dims=[1] * 70, raw_data=b"1234"),
    "two fields": TensorProto(data_type=1, dims=[1], raw_data=b"1234", float_data=[1]),
    "wrong field": TensorProto(data_type=1, dims=[1], int64_data=[1]),
    "out of range": TensorProto(data_type=3, dims=[1], int32_data=[70000]),
    "stray bits": TensorProto(data_type=22, dims=[1], raw_data=b"\xf1"),
    "stray bits in a field": TensorProto(data_type=22, dims=[1], int32_data=[0xF1]),
    "a bool of 2": TensorProto(data_type=9, dims=[2], raw_data=b"\x02\x01"),
    "no text": TensorProto(data_type=8, dims=[1], string_data=[b"\xff"]),
    "raw text": TensorProto(data_type=8, dims=[1], raw_data=b"a"),
    "external with data": TensorProto(data_type=1, dims=[1], raw_data=b"1234", data_location=1),
    "external twice": TensorProto(
        data_type=1, dims=[1], data_location=1, external_data=[{"key": "location", "value": "a"}] * 2
    ),
    "external half": TensorProto(data_type=1, dims=[1], data_location=1, external_data=[{"key": "location"}]),
    "a segment": TensorProto(data_type=1, dims=[1], raw_data=b"1234", segment={"begin": 1, "end": 2}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_tensors_stay_what_they_are(name):
    assert_kept(constants(MALFORMED[name]))


def test_an_external_tensor_stays_external_and_reads_what_it_is_given():
    shown = 'g () => () <float[2] w = ["location": "f", "offset": "8"]> {}'
    seen = []

    def opener(entries, size):
        seen.append((dict(entries), size))
        return np.float32([1, 2]).tobytes()

    (data,) = parse(shown, opener=opener).graph.initializers.values()
    assert isinstance(data, ExternalTensor)
    assert data.array().tolist() == [1, 2]
    assert seen == [({"location": "f", "offset": "8"}, 8)]


def test_a_model_made_in_memory_is_saved_as_its_text_is():
    b = Builder(18, check=False)
    x = b.input("x", "float", ["N", 3])
    y, unnamed = b.op("Split", x, outputs=2, axis=1)
    unnamed.name = ""
    b.output(b.op("Add", y, unnamed, b.initializer("w", np.float32([1])), None), "x_out", "float", ["N", "?"])
    b.graph.doc = "a graph\n\nof two lines"
    b.graph.inputs[0].metadata = {"k": "v"}
    model = b.model(doc="a model", metadata={"k": ""})
    assert sabir.dumps(parse(text(model))) == sabir.dumps(model)
    assert "absent" not in text(model)


def test_a_name_that_hides_another_is_the_same_in_a_file_and_in_a_text():
    model = parse("""<ir_version: 10, opset_import: ["": 18]>
g (float x, bool c) => (y) {
  y = If (c) <then_branch = t () => (z) {z = Add(x, x) x = Neg(z)}, else_branch = e () => (x) {x = Neg(w)}>
}""")
    x, c = model.graph.inputs
    x.name = c.name = "x"
    assert sabir.dumps(parse(text(model))) == sabir.dumps(model)
