"""Any model at all is the same message after it was read and written."""

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, Phase, given, settings

import sabir
from sabir import proto
from sabir.ir import Labels
from sabir.proto import ModelProto, TensorProto
from support.messages import messages, models, wire_of

MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def trip(message, **options):
    return ModelProto.FromString(sabir.dumps(sabir.loads(message.SerializeToString(), **options)))


@MANY
@given(models())
def test_any_model_is_the_same_after_a_round_trip(message):
    assert wire_of(trip(message)) == wire_of(message)


@MANY
@given(models(unknown=True))
def test_unknown_fields_anywhere_survive(message):
    assert wire_of(trip(message)) == wire_of(message)


@MANY
@given(models(odd=False))
def test_writing_twice_gives_the_same_bytes(message):
    once = sabir.dumps(sabir.loads(message.SerializeToString()))
    assert sabir.dumps(sabir.loads(once)) == once


@MANY
@given(models(odd=False))
def test_no_value_of_a_sound_model_is_renamed(message):
    model = sabir.loads(message.SerializeToString())
    labels = Labels(model.graph)
    assert all(labels(v) == v.name for g in model.graph.scopes() for v in g.defined() if v.uses)


def fields_under(descriptor, seen):
    if descriptor not in seen:
        seen.add(descriptor)
        for field in descriptor.fields:
            yield field
            if field.message_type is not None:
                yield from fields_under(field.message_type, seen)


class AllUsed(Exception):
    """No field is left: there is no need for more examples."""


def test_the_strategy_uses_every_field_of_a_model():
    unused = {f.full_name for f in fields_under(ModelProto.DESCRIPTOR, set())}

    # what hypothesis draws depends on the modules that are loaded: enough examples for the rarest field
    @settings(MANY, max_examples=2000, derandomize=True, database=None, phases=[Phase.generate])
    @given(models())
    def draw(message):
        pending = [message]
        while pending:
            for field, value in pending.pop().ListFields():
                unused.discard(field.full_name)
                if field.message_type is not None:
                    pending.extend(value if hasattr(value, "add") else [value])

        if not unused:
            raise AllUsed

    with pytest.raises(AllUsed):
        draw()


@pytest.mark.parametrize("name", ["GraphProto", "NodeProto", "TypeProto", "TensorProto", "TrainingInfoProto"])
def test_the_strategy_draws_each_message_alone(name):
    cls = getattr(proto, name)

    @settings(MANY, max_examples=20)
    @given(messages(cls))
    def draw(message):
        assert cls.FromString(message.SerializeToString()) is not None

    draw()


def model_of(**fields):
    message = ModelProto(ir_version=14, **fields)
    message.opset_import.add(domain="", version=21)
    message.graph.name = "g"
    return message


def test_a_function_attribute_that_is_listed_twice_or_has_a_default_too():
    message = model_of()
    function = message.functions.add(name="f", domain="d", attribute=["a", "b", "a", "c", "b"])
    for name in ("b", "e", "b"):
        function.attribute_proto.add(name=name, type=2, i=len(function.attribute_proto))
    model = sabir.loads(message.SerializeToString())
    (found,) = model.functions
    assert {name: a and a.value for name, a in found.attributes.items()} == {
        "a": None,
        "c": None,
        "b": 0,
        "e": 1,
    }
    assert sorted(found.residue.repeated) == ["a", "b", "b", "b"]
    assert wire_of(trip(message)) == wire_of(message)


def test_entries_that_come_twice_keep_their_places():
    message = model_of()
    for key, value in (("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("a", "5"), ("b", "2")):
        message.metadata_props.add(key=key, value=value)
    message.metadata_props.add(value="no key")
    message.opset_import.add(version=3)
    message.opset_import.add(domain="d")
    model = sabir.loads(message.SerializeToString())
    assert model.metadata == {"a": "1", "b": "2", "c": "4", "": "no key"}
    assert model.opsets == {"": 21, "d": 0}
    assert model.residue.repeated == ("a", "a", "b", "")
    assert wire_of(trip(message)) == wire_of(message)
    model.metadata["b"] = "new"
    written = ModelProto.FromString(sabir.dumps(model))
    assert [p.value for p in written.metadata_props] == ["1", "new", "3", "4", "5", "2", "no key"]


@pytest.mark.parametrize("form", ["protobuf", "onnxtxt", "json", "textproto"])
@pytest.mark.parametrize(
    "told",
    [
        'metadata_props {} metadata_props {} metadata_props { key: "k" value: "" } metadata_props {}',
        'opset_import {} opset_import {} opset_import { domain: "x" }',
        'functions { name: "f" opset_import {} opset_import { domain: "" } opset_import {} attribute: "" node {} }',
        'graph { name: "g" quantization_annotation {} quantization_annotation { tensor_name: "" } }',
        'graph { name: "g" quantization_annotation { quant_parameter_tensor_names {} } }',
        "graph {} training_info { initialization_binding {} initialization_binding {} }",
    ],
)
def test_messages_with_nothing_in_them_stay_where_they_are(told, form):
    message = model_of()
    text_format.Merge(told, message)
    model = sabir.loads(sabir.dumps(sabir.loads(message.SerializeToString()), format=form), format=form)
    assert wire_of(ModelProto.FromString(sabir.dumps(model))) == wire_of(message)


def test_data_of_an_attribute_that_comes_twice_is_kept_though_it_stays_in_the_file():
    message = model_of()
    node = message.graph.node.add(op_type="Constant", output=["y"])
    for value in (1.0, 2.0):
        data = np.full(100_000, value, np.float32)
        node.attribute.add(name="value", type=4).t.CopyFrom(
            TensorProto(data_type=1, dims=[data.size], raw_data=data.tobytes())
        )
    node.attribute.add(name="other", type=1, f=1.0).t.raw_data = bytes(range(256)) * 100
    assert wire_of(trip(message)) == wire_of(message)


def test_a_value_that_a_file_does_not_give_is_not_written():
    message = model_of()
    node = message.graph.node.add(op_type="Op", output=["y"])
    for number in range(1, 15):
        node.attribute.add(name=f"a{number}", type=number)
    model = sabir.loads(message.SerializeToString())
    (found,) = model.graph
    assert found.attributes["a2"].value == 0
    assert wire_of(trip(message)) == wire_of(message)
    found.set(a2=0)
    assert ModelProto.FromString(sabir.dumps(model)).graph.node[0].attribute[1].HasField("i")


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("name", ["x", "y", "z"])
def test_what_is_told_of_one_value_in_two_places(name, typed):
    message = model_of()
    message.graph.node.add(op_type="Op", input=["x"], output=["y", "z"])
    message.graph.input.add(name="x", doc_string="input")
    message.graph.output.add(name="y", doc_string="output")
    message.graph.output.add(name="y", doc_string="again")
    if typed:
        for port in (*message.graph.input, *message.graph.output):
            port.type.tensor_type.elem_type = 1
    message.graph.value_info.add(name=name, doc_string="told").type.tensor_type.elem_type = 7
    model = sabir.loads(message.SerializeToString())
    assert wire_of(trip(message)) == wire_of(message)
    if name == "z" or (name == "y" and not typed):
        value = next(v for v in model.graph.defined() if v.name == name)
        assert str(value.type) == "int64[]"


def test_a_model_of_functions_alone_has_no_graph():
    message = ModelProto(ir_version=14)
    message.functions.add(name="f", domain="d")
    assert not trip(message).HasField("graph")
