"""Sizes that a file declares and no tensor has: nothing follows from them, and nothing is made of them."""

import pytest

import sabir
from sabir.ir import TensorType
from support.bounds import bounded

HUGE = (1 << 27, 1 << 31, 1 << 62)


def conv_of(*shape):
    model = sabir.parse("""
    <ir_version: 10, opset_import: ["": 21]>
    g (float[1,3,5,5] x, float[4,3,3,3] w) => (y) { y = Conv (x, w) }
    """)
    x = model.graph.inputs[0]
    x.type = TensorType(x.type.element, shape)
    return model


def test_a_negative_dimension_is_an_unknown_one():
    model = sabir.infer(conv_of(-1, 3, -1, 7))
    assert str(model.graph.outputs[0].type) == "float[?,4,?,5]"
    assert str(model.graph.inputs[0].type) == "float[-1,3,-1,7]"  # as the file has it
    assert [f.rule for f in sabir.findings(conv_of(-1, 3, -1, 7), select=["TYPE"])] == ["TYPE003"]


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize(
    ("call", "opset"),
    [
        ("Upsample (x, s)", 9),
        ("Resize (x, , s)", 21),
        ("Resize (x, , , i)", 21),
        ("Slice (x, i, i)", 21),
        ("Squeeze (x, i)", 21),
        ("Unsqueeze (x, i)", 21),
        ("Reshape (x, i)", 21),
        ("Tile (x, i)", 21),
        ("Pad (x, i)", 21),
        ("ReduceMax <keepdims = 0> (x, i)", 21),
    ],
)
def test_a_list_of_huge_length_is_not_made(call, opset, size):
    for x in ("float[]", "float[2,3,4]"):
        model = sabir.parse(f"""
        <ir_version: 10, opset_import: ["": {opset}]>
        g ({x} x, float[{size}] s, int64[{size}] i) => (y) {{ y = {call} }}
        """)
        with bounded(seconds=1, memory=1 << 26):
            model = sabir.infer(model)


@pytest.mark.parametrize("count", [-(2**31), -1, 4, 2**31])
def test_no_more_axes_are_reduced_than_there_are(count):
    model = sabir.parse("""
    <ir_version: 10, opset_import: ["": 21]>
    g (float[3,2,6] x, int64[1] axes) => (y) { y = ReduceMax <keepdims = 0> (x, axes) }
    """)
    axes = model.graph.inputs[1]
    axes.type = TensorType(axes.type.element, (count,))
    model = sabir.infer(model)
    assert str(model.graph.outputs[0].type or "") in {"", "float[]"}


def test_many_dimensions_of_which_half_go_take_no_time():
    dims = ",".join(["N"] * 20_000)
    model = sabir.parse(f"""
    <ir_version: 10, opset_import: ["": 21]>
    g (float[{dims}] x, int64[10000] axes) => (y) {{ y = ReduceMax <keepdims = 0> (x, axes) }}
    """)
    with bounded(seconds=2):
        assert sabir.infer(model).graph.outputs[0].type.rank == 10_000


@pytest.mark.parametrize("shape", ["0,9223372036854775807", "9223372036854775807,0"])
def test_what_numpy_has_no_shape_for_has_a_type(shape):
    model = sabir.parse(f"""
    <ir_version: 10, opset_import: ["": 21]>
    g () => (uint8[{shape}] y) <uint8[{shape}] w = {{}}> {{ y = Identity (w) }}
    """)
    assert sabir.infer(model).graph.outputs[0].type.shape == tuple(map(int, shape.split(",")))
    assert [f.rule for f in sabir.findings(model)] == []
