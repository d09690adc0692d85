"""The kinds of broken model that onnx 1.23.2's checker takes, its full check included, are all found.

Each is written as a message, so that no reader of ours stands between the case and the checker.
"""

import onnx  # ruff: ignore[banned-api]  the peer whose gaps these are
import pytest
from google.protobuf import text_format

import sabir
from sabir.checking import RULES

N = 'tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } }'
NEGATIVE = "tensor_type { elem_type: 1 shape { dim { dim_value: -5 } } }"
X = f'input {{ name: "x" type {{ {N} }} }}'
Y = f'output {{ name: "y" type {{ {N} }} }}'
RELU = 'node { op_type: "Relu" input: "x" output: "y" }'
CALL = 'node { op_type: "f" domain: "d" input: "x" output: "y" }'
BODY = 'opset_import { version: 21 } node { op_type: "Relu" input: "a" output: "b" }'
OPSETS = 'opset_import { version: 21 } opset_import { domain: "d" version: 1 }'


def info(field, name, kind=N):
    return f'{field} {{ name: "{name}" type {{ {kind} }} }}'


def graph(nodes=RELU, more="", ports=X + Y):
    return f'graph {{ name: "g" {ports} {nodes} {more} }}'


def function(fields, body=BODY):
    return f'functions {{ name: "f" domain: "d" input: "a" output: "b" {fields} {body} }}'


def initialized(tensor):
    return graph(more=f'initializer {{ name: "w" {tensor} }}')


def branches(then_output="", then_name="t", wraps=""):
    outer = f'node {{ op_type: "Neg" input: "x" output: "o" }} {wraps}'
    typed = f"type {{ {N} }}"
    then = (
        f'g {{ name: "a" node {{ op_type: "Relu" input: "x" output: "{then_name}" }}'
        f' output {{ name: "{then_name}" {then_output or typed} }} }}'
    )
    other = (
        f'g {{ name: "b" node {{ op_type: "Abs" input: "x" output: "v" }} output {{ name: "v" {typed} }} }}'
    )
    held = f'attribute {{ name: "then_branch" type: GRAPH {then} }} attribute {{ name: "else_branch" type: GRAPH {other} }}'
    flag = info("input", "c", "tensor_type { elem_type: 9 shape { } }")
    return graph(f'{outer} node {{ op_type: "If" input: "c" output: "y" {held} }}', ports=X + flag + Y)


LOOP = graph(
    'node { op_type: "Loop" input: "n" input: "c" input: "x" output: "y" attribute { name: "body" type: GRAPH g {'
    ' name: "b" input { name: "i" type { tensor_type { elem_type: 7 shape { } } } } input { name: "k" type {'
    f' tensor_type {{ elem_type: 9 shape {{ }} }} }} }} {X} node {{ op_type: "Identity" input: "k" output: "k2" }}'
    ' node { op_type: "Neg" input: "x" output: "s" } output { name: "k2" type { tensor_type { elem_type: 9 shape {'
    f" }} }} }} }} {info('output', 's')} }} }} }}",
    ports=X
    + info("input", "n", "tensor_type { elem_type: 7 shape { } }")
    + info("input", "c", "tensor_type { elem_type: 9 shape { } }")
    + Y,
)
TRAINING = (
    'training_info {{ algorithm {{ name: "t" node {{ op_type: "{op}" output: "w2" attribute {{ name: "value_float"'
    ' type: FLOAT f: 1 }} }} output {{ name: "w2" type {{ tensor_type {{ elem_type: 1 shape {{ }} }} }} }} }}'
    ' update_binding {{ key: "{key}" value: "w2" }} }}'
)
STATE = initialized("data_type: 1 float_data: 1")
KINDS = {
    "two entries of value_info that contradict each other": (
        "GRAPH010",
        8,
        graph(
            'node { op_type: "Neg" input: "x" output: "m" } node { op_type: "Relu" input: "m" output: "y" }',
            info("value_info", "m") + info("value_info", "m", "tensor_type { elem_type: 7 }"),
        ),
    ),
    "value_info for an unknown value": ("GRAPH011", 8, graph(more=info("value_info", "ghost"))),
    "names that are no identifiers": (
        "NAME001",
        8,
        graph('node { op_type: "Relu" input: "x.1" output: "y" }', ports=info("input", "x.1") + Y),
    ),
    "duplicate node names": (
        "NAME003",
        8,
        graph(
            'node { name: "n" op_type: "Neg" input: "x" output: "m" } node { name: "n" op_type: "Relu" input: "m"'
            ' output: "y" }'
        ),
    ),
    "duplicate metadata keys of a graph": (
        "META002",
        10,
        graph(more='metadata_props { key: "k" value: "1" }' * 2),
    ),
    "duplicate graph outputs": ("GRAPH009", 8, graph(ports=X + Y + Y)),
    "duplicate opset_import": ("MODEL004", 8, "opset_import { version: 20 }" + graph()),
    "opset 999": ("MODEL006", 8, 'opset_import { domain: "ai.onnx.ml" version: 999 }' + graph()),
    "IR 3 with opset 21": ("MODEL007", 3, graph()),
    "int4 in IR 8": ("TYPE007", 8, initialized('data_type: 22 dims: 2 raw_data: "\\001"')),
    "a reference in the main graph": (
        "NODE006",
        8,
        graph(
            'node { op_type: "Softmax" input: "x" output: "y" attribute { name: "axis" type: INT ref_attr_name: "k" } }'
        ),
    ),
    "an attribute with and without a default": (
        "FUNC005",
        9,
        graph(CALL) + function('attribute: "k" attribute_proto { name: "k" type: INT i: 1 }'),
    ),
    "a function called with too many inputs": (
        "NODE002",
        8,
        graph('node { op_type: "f" domain: "d" input: "x" input: "x" output: "y" }') + function(""),
    ),
    "a function called with an unknown attribute": (
        "NODE003",
        8,
        graph(CALL.replace(' output: "y"', ' output: "y" attribute { name: "k" type: INT i: 1 }'))
        + function(""),
    ),
    "a missing overload": (
        "NODE008",
        10,
        graph(CALL.replace("domain:", 'overload: "o" domain:')) + function(""),
    ),
    "a function's output that nothing computes": (
        "GRAPH005",
        8,
        graph(CALL) + function("", BODY.replace('output: "b"', 'output: "c"')),
    ),
    "an undeclared reference in a function": (
        "NODE006",
        8,
        graph(CALL)
        + function(
            "",
            'opset_import { version: 21 } node { op_type: "Softmax" input: "a" output: "b" attribute { name: "axis"'
            ' type: INT ref_attr_name: "k" } }',
        ),
    ),
    "a function in the place of an operator": (
        "FUNC007",
        8,
        graph()
        + function("", BODY.replace("Relu", "Neg")).replace(
            'name: "f" domain: "d"', 'name: "Relu" domain: "ai.onnx"'
        ),
    ),
    "a training binding of nothing": ("TRAIN001", 8, STATE + TRAINING.format(op="Constant", key="ghost")),
    "an unknown operator in training": ("NODE001", 8, STATE + TRAINING.format(op="Konstant", key="w")),
    "devices that are not as many as stated": (
        "DEV002",
        11,
        graph() + 'configuration { name: "c" num_devices: 2 device: "cpu" }',
    ),
    "an unknown configuration_id": (
        "DEV001",
        11,
        graph(RELU.replace("input", 'device_configurations { configuration_id: "ghost" } input', 1)),
    ),
    "quantization of an unknown tensor": (
        "QUANT001",
        8,
        graph(more='quantization_annotation { tensor_name: "ghost" }'),
    ),
    "raw data longer than the shape": (
        "TENSOR006",
        8,
        initialized('data_type: 1 dims: 1 raw_data: "\\000\\000\\000\\000\\000\\000\\000\\000"'),
    ),
    "float data longer than the shape": (
        "TENSOR006",
        8,
        initialized("data_type: 1 dims: 1 float_data: 1 float_data: 2"),
    ),
    "a bool byte of 2": ("TENSOR007", 8, initialized('data_type: 9 dims: 1 raw_data: "\\002"')),
    "an int8 of 70000": ("TENSOR008", 8, initialized("data_type: 3 dims: 1 int32_data: 70000")),
    "element type 99": ("TENSOR001", 8, initialized('data_type: 99 dims: 1 raw_data: "\\002"')),
    "a negative dimension": (
        "TYPE003",
        8,
        graph("", info("output", "x", NEGATIVE), ports=info("input", "x", NEGATIVE)),
    ),
    "a map with float keys": (
        "TYPE004",
        8,
        graph(
            more=info(
                "input", "m", "map_type { key_type: 1 value_type { tensor_type { elem_type: 1 shape { } } } }"
            )
        ),
    ),
    "an input of a subgraph named as a value outside": ("GRAPH008", 8, LOOP),
    "an output of a subgraph without a type": ("GRAPH015", 8, branches(then_output='doc_string: "no type"')),
    "an unknown operator of a custom domain": ("NODE007", 8, graph(CALL)),
    "an unknown operator of ai.onnx.preview": (
        "NODE001",
        13,
        'opset_import { domain: "ai.onnx.preview" version: 1 }'
        + graph(CALL.replace('"d"', '"ai.onnx.preview"')),
    ),
    "an optional of an optional": (
        "TYPE005",
        8,
        graph(
            more=info(
                "input", "o", f"optional_type {{ elem_type {{ optional_type {{ elem_type {{ {N} }} }} }} }}"
            )
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_broken_model(kind):
    rule, ir_version, fields = KINDS[kind]
    text = f"ir_version: {ir_version} {OPSETS} {fields}"
    data = text_format.Parse(text, onnx.ModelProto()).SerializeToString()
    always = [r.id for r in RULES if not r.group]
    rules = {f.rule for f in sabir.findings(data, select=[*always, rule])}
    assert rule in rules
    aside = {"MODEL007", "MODEL011"}  # most cases are written for an IR version of their own
    assert rules - aside <= {rule}


def test_text_that_is_not_utf8():
    model = text_format.Parse(f"ir_version: 8 {OPSETS} {graph()}", onnx.ModelProto()).SerializeToString()
    broken = model.replace(b"\x0a\x01x\x12\x01y", b"\x0a\x01\xff\x12\x01y")
    assert broken != model
    assert [f.rule for f in sabir.findings(broken)] == ["TEXT001"]


def test_the_ones_that_a_reader_would_not_expect_are_accepted_by_onnx():
    """What makes this list worth having: onnx's checker says nothing to any of these."""
    taken = []
    for kind, (_, ir_version, fields) in KINDS.items():
        model = text_format.Parse(f"ir_version: {ir_version} {OPSETS} {fields}", onnx.ModelProto())
        try:
            onnx.checker.check_model(model, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            continue
        taken.append(kind)
    assert len(taken) >= 30
