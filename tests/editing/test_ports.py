"""Other outputs and inputs of a model."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError
from sabir.ir import ArrayTensor, verify

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
MODEL = """g (float[N,2] x, float[N] m) => (float[N] y) <float[2] w = {1, 2}, float unused = {0}> {
    t = Mul (x, w)  a, i = TopK <axis = 1> (t, k)  s = Squeeze (a, one)  y = Add (s, m)
}"""
MODEL = MODEL.replace("float unused = {0}", "int64[1] k = {1}, int64[1] one = {1}")
NESTED = """g (bool c, float x) => (float y) {
    y = If (c) <then_branch = a () => (q) { q = Neg (x) }, else_branch = b () => (r) { r = Abs (x) }>
}"""


def parsed(text):
    return sabir.parse(HEADER + text)


def changed_by(edit, model, *arguments, **options):
    before = sabir.dumps(model)
    changed = edit(model, *arguments, **options)
    assert sabir.dumps(model) == before
    verify(changed)
    sabir.check(changed)
    return changed


def ports(values):
    return [f"{value.name}: {value.type}" for value in values]


def test_outputs_are_added_after_those_there_are():
    changed = changed_by(sabir.add_outputs, parsed(MODEL), ["t", "y", "i"])
    assert ports(changed.graph.outputs) == ["y: float[N]", "t: float[N,2]", "i: int64[N,1]"]
    got = sabir.evaluate(changed, {"x": np.float32([[3, 4]]), "m": np.float32([1])})
    assert (got["t"].tolist(), got["i"].tolist(), got["y"].tolist()) == ([[3, 8]], [[1]], [9])


def test_all_outputs():
    changed = changed_by(sabir.add_outputs, parsed(MODEL), "all")
    assert [value.name for value in changed.graph.outputs] == ["y", "t", "a", "i", "s"]


def test_a_value_named_all_is_not_meant_by_all():
    model = parsed("g (float x) => (float y) { all = Neg (x)  u = Abs (all)  y = Neg (u) }")
    assert [v.name for v in sabir.add_outputs(model, ["all"]).graph.outputs] == ["y", "all"]
    assert [v.name for v in sabir.add_outputs(model, "all").graph.outputs] == ["y", "all", "u"]


def test_a_value_that_cannot_be_an_output():
    with pytest.raises(
        sabir.UnsupportedError, match="'q' is in the graph 'a' of <Node If>, which may run never"
    ):
        sabir.add_outputs(parsed(NESTED), "q")
    with pytest.raises(NotFoundError, match="no value 'T'; is it 't'?"):
        sabir.add_outputs(parsed(MODEL), "T")


def test_initializers_become_inputs():
    model = parsed(MODEL)
    changed = changed_by(sabir.initializers_to_inputs, model, "w")
    assert ports(changed.graph.inputs) == ["x: float[N,2]", "m: float[N]", "w: float[2]"]
    assert [value.name for value in changed.graph.initializers] == ["k", "one"]
    got = sabir.evaluate(changed, {"x": np.float32([[3, 4]]), "m": np.float32([1]), "w": np.float32([5, 1])})
    assert got["y"].tolist() == [16]
    every = changed_by(sabir.initializers_to_inputs, model, "all")
    assert [value.name for value in every.graph.inputs] == ["x", "m", "w", "k", "one"]
    assert not every.graph.initializers


def test_initializers_stay_as_defaults_on_request():
    model = parsed(MODEL)
    changed = changed_by(sabir.initializers_to_inputs, model, ["w"], keep_defaults=True)
    assert changed.graph.initializers["w"] is model.graph.initializers["w"]
    feeds = {"x": np.float32([[3, 4]]), "m": np.float32([1])}
    assert sabir.evaluate(changed, feeds)["y"].tolist() == [9]
    assert sabir.evaluate(changed, {**feeds, "w": np.float32([5, 1])})["y"].tolist() == [16]


def test_an_initializer_that_is_not_there():
    with pytest.raises(NotFoundError, match="no initializer named 'W'; is it 'w'?"):
        sabir.initializers_to_inputs(parsed(MODEL), "W")
    with pytest.raises(NotFoundError, match="is no initializer of"):
        sabir.initializers_to_inputs(parsed(MODEL), parsed(MODEL).graph.value("t"))


def test_a_state_variable_stays_an_initializer():
    b = sabir.Builder(21)
    w = b.initializer("w", np.ones(2, np.float32))
    b.output(b.Add(b.input("x", "float", [2]), w), "y")
    model = b.model()
    model.training = [sabir.ir.TrainingInfo(update_binding=[(w, model.graph.outputs[0])])]
    with pytest.raises(sabir.UnsupportedError, match="'w' is a state variable of training"):
        sabir.initializers_to_inputs(model, "w")


def test_inputs_become_initializers_and_their_sizes_hold_everywhere():
    model = parsed(MODEL)
    changed = changed_by(sabir.inputs_to_initializers, model, {"m": [1, 2]})
    assert ports([*changed.graph.inputs, *changed.graph.outputs]) == ["x: float[2,2]", "y: float[2]"]
    got = sabir.evaluate(changed, {"x": np.float32([[3, 4], [5, 0]])})
    assert got["y"].tolist() == [9, 7]


def test_a_tensor_is_taken_as_it_is():
    tensor = ArrayTensor(np.float32([[1, 2]]))
    changed = changed_by(sabir.inputs_to_initializers, parsed(MODEL), {"x": tensor, "m": np.float64([3])})
    assert changed.graph.initializers["x"] is tensor
    assert (ports(changed.graph.inputs), sabir.evaluate(changed, {})["y"].tolist()) == ([], [7])


def test_data_that_does_not_fit():
    model = parsed(MODEL)
    with pytest.raises(
        sabir.FeedError, match="must be float, and 0.1 is no such number|must be float, and 'a' is not"
    ):
        sabir.inputs_to_initializers(model, {"m": ["a"]})
    with pytest.raises(sabir.FeedError, match=r"has the shape \[2, 3\], and the input is float\[N,2\]"):
        sabir.inputs_to_initializers(model, {"x": np.ones((2, 3), np.float32)})
    with pytest.raises(sabir.FeedError, match=r"has the shape \[2\], and the input is float\[N,2\]"):
        sabir.inputs_to_initializers(model, {"x": [1, 2]})
    with pytest.raises(sabir.FeedError, match="where N is 1"):
        sabir.inputs_to_initializers(model, {"x": [[1, 2]], "m": [1, 2]})
    with pytest.raises(sabir.FeedError, match="is double, the input float"):
        sabir.inputs_to_initializers(model, {"m": ArrayTensor(np.float64([1]))})
    with pytest.raises(NotFoundError, match="no input 'n'; is it 'm'|no input 'n'; its inputs are 'x', 'm'"):
        sabir.inputs_to_initializers(model, {"n": [1]})
    sequence = parsed("g (seq(float[N]) s) => (int64 n) { n = SequenceLength (s) }")
    with pytest.raises(sabir.UnsupportedError, match="only a tensor can be constant"):
        sabir.inputs_to_initializers(sequence, {"s": [1]})


def test_an_initializer_of_ir_3_stays_an_input():
    model = sabir.parse(
        '<ir_version: 3, opset_import: ["" : 8]>\ng (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    changed = changed_by(sabir.inputs_to_initializers, model, {"x": [1, 2]})
    assert [value.name for value in changed.graph.inputs] == ["x"]
    back = changed_by(sabir.initializers_to_inputs, changed, "x")
    assert sabir.dumps(back) == sabir.dumps(model)
