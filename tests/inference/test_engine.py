"""The inference engine itself; what each operator infers is proved in tests/rooms."""

import numpy as np
import pytest

import sabir
from sabir.base import InferenceError
from sabir.elements import FLOAT, INT64
from sabir.inference import Inference, merge
from sabir.ir import Builder, Graph, Node, OptionalType, SequenceType, TensorType, parse_dim, symbol

N, M = symbol("N"), symbol("M")


def shape_of(build, opset=21, **inputs):
    """The inferred type of what `build` makes of inputs declared as lists of dimensions."""
    b = Builder(opset)
    y = build(b, *(b.input(name, "float", dims) for name, dims in inputs.items()))
    b.output(y, "y")
    engine = Inference(b.model(), strict=True)
    engine.run()
    return str(engine.types[y])


def test_types_and_shapes_follow():
    assert shape_of(lambda b, x: b.Softmax(b.Relu(x)), x=["N", 3]) == "float[N,3]"


def test_contents_of_initializers_are_known():
    assert shape_of(lambda b, x: b.Reshape(x, b.initializer("s", [0, -1])), x=["N", 4, 6]) == "float[N,24]"


def test_declared_and_inferred_are_merged():
    b = Builder(21)
    x = b.input("x", "float", ["N", None])
    y = b.Relu(x)
    y.type = TensorType(FLOAT, (None, 7))
    z = b.output(b.Relu(y), "z", "float", ["batch", None])
    model = sabir.infer(b.model())
    y, z = model.graph.value(y.name), model.graph.value(z.name)
    assert str(y.type) == "float[N,7]"
    assert str(z.type) == "float[batch,7]"  # the interface keeps its own names
    assert model.graph.outputs[0] is z


@pytest.mark.parametrize(
    ("said", "found", "whole"),
    [
        (TensorType(FLOAT), TensorType(FLOAT, (N,)), TensorType(FLOAT, (N,))),
        (TensorType(FLOAT, (N, 2)), TensorType(FLOAT, (3, M)), TensorType(FLOAT, (3, 2))),
        (TensorType(FLOAT, (N,)), TensorType(FLOAT, (M,)), TensorType(FLOAT, (M,))),
        (None, TensorType(FLOAT), TensorType(FLOAT)),
        (SequenceType(None), SequenceType(TensorType(FLOAT)), SequenceType(TensorType(FLOAT))),
        (
            OptionalType(TensorType(FLOAT)),
            OptionalType(TensorType(FLOAT, (2,))),
            OptionalType(TensorType(FLOAT, (2,))),
        ),
    ],
)
def test_merging(said, found, whole):
    assert merge(said, found) == whole


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (TensorType(FLOAT), TensorType(INT64)),
        (TensorType(FLOAT, (2,)), TensorType(FLOAT, (3,))),
        (TensorType(FLOAT, (2,)), TensorType(FLOAT, (2, 2))),
        (TensorType(FLOAT, (N,)), TensorType(FLOAT, (parse_dim("N+1"),))),
        (TensorType(FLOAT), SequenceType(TensorType(FLOAT))),
    ],
)
def test_contradictions(said, found):
    with pytest.raises(InferenceError, match="declared as"):
        merge(said, found)


def contradicting():
    b = Builder(21, check=False)
    x = b.input("x", "float", [2, 3])
    bad = b.Relu(x)
    bad.type = TensorType(FLOAT, (2, 4))
    b.output(b.Relu(bad), "y")
    b.output(b.Softmax(x, axis=5), "z")
    return b.model()


def test_strict_raises_at_the_first_place():
    with pytest.raises(
        InferenceError, match=r"graph/node\[0\] 'Relu'/output\[0\] 'relu_out': declared as float\[2,4\]"
    ):
        sabir.infer(contradicting(), strict=True)


def test_otherwise_all_is_collected_and_inference_goes_on():
    engine = Inference(contradicting())
    engine.run()
    assert [str(f.location) for f in engine.diagnostics] == [
        "graph/node[0] 'Relu'/output[0] 'relu_out'",
        "graph/node[2] 'Softmax'",
    ]
    assert sabir.infer(contradicting()).graph.outputs[0].type is not None


def test_unknown_operators_leave_what_is_declared():
    b = Builder(21, opsets={"d": 1})
    x = b.input("x", "float", ["N"])
    custom = b.op("Custom", x, domain="d")
    custom.type = TensorType(FLOAT, (5,))
    b.output(b.Relu(custom), "y")
    b.output(b.Relu(b.op("Custom", x, domain="d")), "z")
    model = sabir.infer(b.model())
    assert str(model.graph.outputs[0].type) == "float[5]"
    assert model.graph.outputs[1].type is None


def test_wrong_element_types_are_found():
    b = Builder(13, check=False)
    b.output(b.Relu(b.input("x", "int32", ["N"])), "y")
    engine = Inference(b.model())
    engine.run()
    assert "Relu:13 does not admit tensor(int32) for 'X'" in engine.diagnostics[0].message


def test_subgraphs_are_annotated():
    b = Builder(21)
    x, cond = b.input("x", "float", ["N", 2]), b.input("c", "bool", [])
    then, other = Graph("then"), Graph("else")
    inner = then.append(Node("Relu", [x])).output
    then.outputs.append(inner)
    other.outputs.append(other.append(Node("Reshape", [x, other.add_initializer("s", [-1, 1])])).output)
    y = b.output(b.If(cond, then_branch=then, else_branch=other), "y")
    sabir.infer(b.model())
    assert str(inner.type) == "float[N,2]"
    assert str(y.type) == "float[?,?]"


def test_inference_changes_no_contents_and_no_names():
    b = Builder(21)
    x = b.input("x", "float", ["N", 4])
    y = b.output(b.Reshape(x, b.initializer("s", [-1])), "y")
    model = b.model()
    model = sabir.infer(model)
    assert y.type == TensorType(FLOAT, (parse_dim("4*N"),))
    assert next(iter(model.graph.initializers)).type.known is None


def test_constants_before_ir_4_are_inputs_with_defaults():
    b = Builder(8)
    x, s = b.input("x", "float", [2, 3]), b.input("s", "int64", [2])
    b.graph.set_initializer(s, sabir.ir.ArrayTensor(np.array([3, 2])))
    y = b.output(b.Reshape(x, s), "y")
    model = b.model(ir_version=3)
    assert str(sabir.infer(model).graph.outputs[0].type) == "float[3,2]"
    y.type = None
    model.ir_version = 4  # from here on the default may be overridden
    assert str(sabir.infer(model).graph.outputs[0].type) == "float[?,?]"


def test_a_branch_that_never_runs_need_not_fit():
    b = Builder(21)
    x = b.input("x", "float", [2, 3])
    then, other = Graph("then"), Graph("else")
    then.outputs.append(then.append(Node("Relu", [x])).output)
    bad = other.append(Node("Reshape", [x, other.add_initializer("s", [5])]))
    other.outputs.append(bad.output)
    y = b.output(b.If(b.initializer("c", np.ones((), bool)), then_branch=then, else_branch=other), "y")
    assert str(sabir.infer(b.model(), strict=True).graph.outputs[0].type) == "float[2,3]"
    y.node.inputs[0] = b.input("d", "bool", [])  # now it may run, and the message says which branch it is
    place = (
        r"^graph/node\[0\] 'If'/attribute 'else_branch'/node\[0\] 'Reshape': 6 elements cannot take the shape"
    )
    with pytest.raises(InferenceError, match=place):
        sabir.infer(b.model(), strict=True)


def test_values_inside_functions_are_typed_as_far_as_all_calls_agree():
    text = """
        <ir_version: 10, opset_import: ["" : 21, "d" : 1]>
        main (float[2,3] x, float[2,4] z) => (float[2,3] y, float[2,4] w) { y = d.F (x)  w = d.F (z) }
        <domain: "d", opset_import: ["" : 21]> F (a) => (b) { t = Relu (a)  b = Neg (t) }
    """
    model = sabir.infer(sabir.parse(text))
    (function,) = model.functions
    assert [str(n.output.type) for n in function.graph] == ["float[2,?]", "float[2,?]"]
    again = sabir.loads(sabir.dumps(model))
    assert str(next(iter(again.functions[0].graph)).output.type) == "float[2,?]"
    model.ir_version = 9  # functions could not say so yet
    assert next(iter(sabir.loads(sabir.dumps(model)).functions[0].graph)).output.type is None
