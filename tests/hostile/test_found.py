"""What fuzzing and mutants found, each once: it ends in an answer or a SabirError, and stays so."""

import time

import numpy as np
import pytest

import sabir
from hostile.case import FLOAT, graph, info, model, node
from sabir.base import legible

COMPLEX = 14


def loaded(made):
    return sabir.loads(made.SerializeToString())


@pytest.mark.parametrize("place", ["denotation", "dimension", "opaque", "sharding"])
def test_text_of_a_type_that_is_no_utf8(place):
    made = model()
    kind = made.graph.input[0].type
    match place:
        case "denotation":
            kind.denotation = "@@@@"
        case "dimension":
            kind.tensor_type.shape.dim[0].denotation = "@@@@"
        case "opaque":
            kind.opaque_type.domain = "@@@@"
        case _:
            made.graph.node[0].device_configurations.add(configuration_id="@@@@")
    with pytest.raises(sabir.WireError, match="is not UTF-8"):
        sabir.loads(made.SerializeToString().replace(b"@@@@", b"\xb5\xb5\xb5\xb5"))


def test_a_list_of_types_one_of_which_says_nothing_is_saved():
    made = model()
    held = made.graph.node[0].attribute.add(name="types", type=14)
    held.type_protos.add().tensor_type.elem_type = FLOAT
    held.type_protos.add()
    data = made.SerializeToString()
    assert sabir.dumps(sabir.loads(data)) == data


@pytest.mark.parametrize(
    ("op", "domain", "version"), [("DequantizeLinear", "", 21), ("Relu", "", 21), ("Scaler", "ai.onnx.ml", 5)]
)
def test_complex_numbers_are_refused_where_none_are_admitted(op, domain, version):
    made = graph()
    info(made.input, "x", [2], COMPLEX)
    info(made.output, "y", [2])
    node(made, op, ["x", "x"] if op == "DequantizeLinear" else ["x"], domain=domain)
    held = loaded(model(made, opset=21, domains={domain: version} if domain else None))
    with pytest.raises(sabir.EvaluationError, match="does not admit tensor.complex64"):
        sabir.evaluate(held, {"x": np.array([1, 2j], np.complex64)})


def test_an_output_without_a_name_is_found():
    made = model()
    info(made.graph.output, "", ["N"])
    assert "GRAPH002" in [f.rule for f in sabir.findings(loaded(made))]


def test_an_operator_with_control_characters_in_its_name_is_told_legibly():
    made = model()
    made.graph.node[0].op_type = "\x1b[31m\nRelu"
    told = [f.message for f in sabir.findings(loaded(made))]
    assert any("\\x1b[31m\\nRelu" in message for message in told)
    assert all(message.isprintable() for message in told)


def test_no_text_of_a_model_fakes_a_line_of_an_error():
    made = model()
    made.graph.node[0].op_type = "Relu\nerror: none"
    with pytest.raises(sabir.SchemaError) as caught:
        sabir.evaluate(loaded(made), {"x": [1.0]})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a" * 5000, "\n" * 5000, "\x1b" * 1500, "é\u202e" * 3000])
def test_a_message_is_cut_after_it_is_escaped(text):
    assert len(legible(text)) <= 2000
    assert legible(text).isprintable()


def test_unsqueeze_by_very_many_axes_ends_at_once():
    made = graph()
    info(made.input, "x", [])
    info(made.input, "axes", [100_000], 7)
    info(made.output, "y", [])
    node(made, "Unsqueeze", ["x", "axes"])
    began = time.process_time()
    with pytest.raises(sabir.EvaluationError, match="dimensions are more than 64"):
        sabir.evaluate(loaded(model(made)), {"x": 1.0, "axes": np.arange(100_000)})
    assert time.process_time() - began < 2


def test_a_graph_of_very_many_outputs_is_read_in_the_time_of_its_size():
    def seconds(count):
        made = model()
        for _ in range(count):
            made.graph.output.add(name="y")
        data, times = made.SerializeToString(), []
        for _ in range(3):
            began = time.process_time()
            sabir.loads(data)
            times.append(time.process_time() - began)
        return min(times)

    assert seconds(20_000) < 40 * max(seconds(1000), 0.01)


def test_outputs_keep_their_links_however_they_are_edited():
    held = loaded(model())
    outputs, x = held.graph.outputs, held.graph.inputs[0]
    outputs.append(x)
    outputs.insert(0, x)
    outputs[-1] = None
    outputs[0] = outputs[1]
    assert [use.slot for use in x.uses if use.user is held.graph] == []
    assert [use.slot for use in outputs[1].uses] == [1, 0]
    for value in outputs:  # goes on over what was there
        outputs.append(value)
    assert len(outputs) == 6
