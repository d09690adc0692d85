"""Dimensions of a model fixed, renamed and freed; the sizes that constants still contain."""

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError, UnsupportedError
from sabir.inference import change_model_dims
from sabir.ir import NodeDevice, ShardedAxis, Sharding, symbol

HEADER = '<ir_version: 11, opset_import: ["" : 21]>\n'
NESTED = (
    '<ir_version: 11, opset_import: ["" : 21, "local" : 1]>\n'
    """
g (float[batch,seq] x, bool c) => (float[batch,2*seq] y, seq(float[batch]) s, float[batch,seq] z)
<float[batch,seq] t> {
    t = local.Twice (x)
    y = Concat <axis = 1> (t, x)
    s = SplitToSequence <axis = 1, keepdims = 0> (x)
    z = If (c) <
        then_branch = a () => (float[batch,seq] p) <float[batch,seq] q> { q = Neg (t)  p = Neg (q) },
        else_branch = b () => (float[batch,seq] r) { r = Abs (t) }
    >
}
<domain: "local", opset_import: ["" : 21]>
Twice (u) => (v) <float[batch,seq] w> { w = Neg (u)  v = Neg (w) }
"""
)


def types(model):
    return {
        value.name: str(value.type)
        for graph in model.graphs()
        for scope in graph.scopes()
        for value in scope.defined()
        if value.type is not None
    }


def parsed(text):
    return sabir.parse(HEADER + text)


def test_a_variable_changes_in_every_graph_and_the_argument_stays():
    model = sabir.parse(NESTED)
    before = sabir.text(model)
    changed = sabir.set_dims(model, {"batch": 4, "seq": "tokens"})
    assert sabir.text(model) == before
    found = types(changed)
    assert {found[name] for name in "xtzpqrw"} == {"float[4,tokens]"}
    assert (found["y"], found["s"]) == ("float[4,2*tokens]", "seq(float[4])")
    assert "batch" not in sabir.text(changed)
    x = np.ones((4, 3), np.float32)
    assert sabir.evaluate(changed, {"x": x, "c": True})["y"].shape == (4, 6)
    with pytest.raises(sabir.FeedError):
        sabir.evaluate(changed, {"x": x[:2], "c": True})


def test_all_changes_are_made_at_once():
    changed = sabir.set_dims(sabir.parse(NESTED), {"batch": "seq", "seq": "batch"})
    assert types(changed)["y"] == "float[seq,2*batch]"


def test_expressions_and_unknown_sizes():
    model = parsed("g (float[N,M] x) => (float[N,M] y) { y = Relu (x) }")
    assert types(sabir.set_dims(model, {"N": "2*K", "M": None}))["y"] == "float[2*K,?]"


def test_axes_of_inputs_are_freed_and_fixed():
    model = parsed("g (float[1,3,?] x) => (float[1,3,6] y) <float[1,3,6] t> { t = Relu (x)  y = Abs (t) }")
    changed = sabir.set_dims(model, {"x[0]": "N", "x[2]": 8})
    assert {types(changed)[name] for name in "xty"} == {"float[N,3,8]"}


def test_layouts_over_devices_change_too():
    model = parsed("g (float[N] x) => (float[N] y) { y = Relu (x) }")
    (node,) = model.graph
    axes = (ShardedAxis(0, ((symbol("N"), 2),)),)
    node.devices = (NodeDevice("all", (Sharding(node.output, "y", axes=axes),)),)
    (device,) = sabir.set_dims(model, {"N": 6}).graph[0].devices
    assert device.shardings[0].axes[0].pieces == ((6, 2),)
    assert node.devices[0].shardings[0].axes == axes


@pytest.mark.parametrize(
    ("target", "dims", "place", "message"),
    [
        ("1, 24", {"x[0]": "N"}, "graph/node[0] 'Reshape'", "a run fails unless N = 1"),
        ("1, -1", {"x[0]": "N"}, "graph/node[0] 'Reshape'", "contains 1, the size that an input had"),
        ("1, 24", {"x[0]": 4}, "graph/node[0] 'Reshape'", "96 elements cannot take the shape [1, 24]"),
    ],
)
def test_sizes_in_constants_are_reported_with_their_place(target, dims, place, message):
    model = parsed(
        f"g (float[1,3,8] x) => (float[1,24] y) <int64[2] s = {{{target}}}> {{ y = Reshape (x, s) }}"
    )
    problem, *_ = change_model_dims(model, dims).problems
    assert str(problem.location) == place
    assert message in problem.message
    with pytest.warns(sabir.SabirWarning, match=r"graph/node\[0\] 'Reshape': "):
        sabir.set_dims(model, dims)


def test_what_only_some_sizes_contradict_is_found_with_one_that_suits_no_constant():
    model = parsed("""g (float[1,3,8] x, float[24,5] w) => (float[1,5] y)
<int64[2] s = {1, -1}> { t = Reshape (x, s)  y = MatMul (t, w) }""")
    found = change_model_dims(model, {"x[0]": "N"}).problems
    assert [str(problem.location) for problem in found] == [
        "graph/node[0] 'Reshape'",
        "graph/node[1] 'MatMul'",
    ]
    assert found[1].message.startswith("with N = 7919: ")


def test_each_shape_of_the_old_size_is_reported():
    model = parsed("""g (float[2,6] x) => (float[3,2,2] z)
<int64[3] s = {2, 3, 2}, int64[3] t = {3, 2, 2}> { y = Reshape (x, s)  h = Relu (y)  z = Reshape (h, t) }""")
    found = change_model_dims(model, {"x[0]": "N"}).problems
    assert [str(problem.location) for problem in found] == [
        "graph/node[0] 'Reshape'",
        "graph/node[2] 'Reshape'",
    ]
    assert "the result is float[3,2,2], without the new variable" in found[1].message


def test_what_follows_the_input_is_no_problem():
    for target in ("-1, 24", "0, 24", "0, -1"):
        model = parsed(
            f"g (float[1,3,8] x) => (float[1,24] y) <int64[2] s = {{{target}}}> {{ y = Reshape (x, s) }}"
        )
        changed = change_model_dims(model, {"x[0]": "N"})
        assert not changed.problems
        assert types(changed.model)["y"] == "float[N,24]"


def test_problems_that_the_model_had_are_not_reported():
    model = parsed("g (float[N,3] x) => (float[N,5] y) { y = Relu (x) }")
    assert not change_model_dims(model, {"N": 2}).problems


@pytest.mark.parametrize(
    ("dims", "error", "message"),
    [
        ({"batc": 3}, NotFoundError, "no dimension variable 'batc'; is it 'batch'?"),
        (
            {"q": 3},
            NotFoundError,
            "'q'; it has 'batch', 'seq'; an axis of an input is written as INPUT",
        ),
        ({"yy[0]": 3}, NotFoundError, "the model has no input 'yy'; its inputs are 'x'"),
        ({"x[5]": 3}, UnsupportedError, "'x[5]': the input is float[batch,seq], which has no axis 5"),
        ({"x[0]": 3}, UnsupportedError, "this axis is batch; name the variable instead"),
        ({"batch": -1}, UnsupportedError, "must be a number, 0 or more"),
        ({"batch": True}, UnsupportedError, "got True"),
        ({"batch": "4"}, UnsupportedError, "is the text '4'; pass a number"),
    ],
)
def test_invalid_arguments_name_what_is_wrong(dims, error, message):
    model = parsed("g (float[batch,seq] x) => (float[batch,seq] y) { y = Relu (x) }")
    with pytest.raises(error) as raised:
        sabir.set_dims(model, dims)
    assert message in str(raised.value)


def test_a_path_is_no_model():
    with pytest.raises(TypeError, match="a sabir.Model is expected"):
        sabir.set_dims("model.onnx", {"N": 3})
