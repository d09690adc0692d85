"""May a consumer of an old model take a new one: the sentence of the standard, and the interface."""

import numpy as np
import pytest

import sabir

MAJOR, MINOR = 1 << 48, 1 << 32


def model(inputs="float[N] x", outputs="float[N] y", body="{ y = Relu (x) }", *, ir=10, opset=21, version=0):
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}], model_version: {version}>'
    return sabir.parse(f"{header} g ({inputs}) => ({outputs}) {body}")


def reasons(old, new):
    found = sabir.accepts(old, new)
    assert bool(found) is not bool(found.reasons)
    return list(found.reasons)


def test_the_same_model():
    assert reasons(model(), model()) == []
    assert str(sabir.accepts(model(), model())) == "no breaking changes"


@pytest.mark.parametrize(
    "change",
    [
        {"body": "{ t = Neg (x) y = Relu (t) }"},
        {"inputs": "float[N] x, float[2] z = {1, 2}"},
        {"inputs": "double[N] x"},
        {"outputs": "float[N] y, float[N] t", "body": "{ t = Neg (x) y = Relu (t) }"},
        {"ir": 9, "opset": 20},
        {"opset": 22, "body": "{ y = Sigmoid (x) }"},
    ],
)
def test_what_does_not_break(change):
    old = model(body="{ y = Sigmoid (x) }") if "opset" in change and change["opset"] == 22 else model()
    assert reasons(old, model(**change)) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"inputs": "float[N] x, float[N] z"},
            "graph/input[1] 'z': the input 'z' is new, and has no default",
        ),
        ({"inputs": "float[N] x2", "body": "{ y = Relu (x2) }"}, "graph/input[0] 'x': the input 'x' is gone"),
        ({"inputs": "float[2] x"}, "graph/input[0] 'x': axis 0 was N and is 2"),
        ({"inputs": "int64[N] x"}, "graph/input[0] 'x': the elements were float and are int64"),
        (
            {"outputs": "float[N] t", "body": "{ t = Relu (x) }"},
            "graph/output[0] 'y': the output 'y' is gone",
        ),
        ({"outputs": "float[M] y"}, "graph/output[0] 'y': axis 0 was N and is M"),
        ({"ir": 11}, "model: the IR version was 10 and is 11; a newer one is a breaking change"),
        (
            {"opset": 13},
            "opset_import: Relu:13 is called; the imports of the old model have Relu:14",
        ),
        (
            {"body": "{ y = d.Thing (x) }"},
            "opset_import: d.Thing is called; the imports of the old model have none",
        ),
    ],
)
def test_what_breaks(change, reason):
    assert reason in reasons(model(), model(**change))


def test_the_declared_major_version():
    assert reasons(model(version=MAJOR), model(version=MAJOR | MINOR)) == []
    assert reasons(model(version=MAJOR), model(version=2 * MAJOR)) == [
        "model: the version was 1.0.0 and is 2.0.0; another MAJOR version declares a breaking change"
    ]
    assert reasons(model(version=MAJOR), model(version=7)) == [
        "model: the version was 1.0.0 and is 7; another MAJOR version declares a breaking change"
    ]
    assert reasons(model(version=7), model(version=9)) == []
    assert reasons(model(version=7), model(version=2 * MAJOR)) == []


def test_operators_of_subgraphs_and_functions():
    body = "{{ c = Constant <value_int = 1> () b = Cast <to = 9> (c) y = If (b) <then_branch = t () => (u) {{ u = {0} (x) }}, else_branch = e () => (v) {{ v = Relu (x) }}> }}"
    old, new = model(body=body.format("Relu")), model(body=body.format("Gelu"))
    assert reasons(old, new) == []  # the old operator set has it too
    older = model(body=body.format("Relu"), opset=19)
    assert "opset_import: Gelu:20 is called; the imports of the old model have none" in reasons(older, new)
    function = '<domain: "d", opset_import: ["" : {}]> f (a) => (b) {{ b = Relu (a) }}'
    head = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[2] x) => (float[2] y) { y = d.f (x) }'
    one, other = (sabir.parse(head + function.format(opset)) for opset in (21, 13))
    assert reasons(one, other) == [
        "opset_import: Relu:13 is called; the imports of the old model have Relu:14"
    ]
    assert reasons(one, one) == []


def test_neither_nodes_nor_weights_are_compared():
    old = model(inputs="float[2] x", outputs="float[2] y")
    new = old.clone()
    new.graph.set_initializer(sabir.ir.Value("w"), np.zeros(2, np.float32))
    assert reasons(old, new) == []
