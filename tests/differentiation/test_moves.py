"""The gradients of values that examples of rooms do not vary: paddings, the values of one-hot vectors, cuts."""

import numpy as np
import pytest

import sabir
from support.gradients import SEED, check, gradient_model


def parsed(inputs, output, body):
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["": 21]>\nmain ({inputs}) => ({output} y) {{\n{body}\n}}'
    )


def test_the_constant_of_a_padding():
    model = parsed(
        "double[2,2] x, double c",
        "double[?,?]",
        "pads = Constant <value_ints = [1, 0, -1, 2]> ()\ny = Pad (x, pads, c)",
    )
    check(model, {"x": np.array([[1.0, 2], [3, 4]]), "c": np.array(5.0)}, "y", ["x", "c"])


def test_the_values_of_one_hot_vectors():
    model = parsed(
        "int64[3] i, double[2] values",
        "double[?,?]",
        "depth = Constant <value_int = 4> ()\ny = OneHot <axis = 0> (i, depth, values)",
    )
    check(model, {"i": np.array([1, -1, 9]), "values": np.array([0.5, 2.0])}, "y", ["values"])


@pytest.mark.parametrize("steps", ["[1, 1]", "[2, -1]", "[3, 1]"])
def test_cuts_of_known_and_of_open_sizes(steps):
    body = f"""starts = Constant <value_ints = [1, -1]> ()
        ends = Constant <value_ints = [{2**63 - 1}, {-(2**63)}]> ()
        axes = Constant <value_ints = [-1, 0]> ()
        steps = Constant <value_ints = {steps}> ()
        y = Slice (x, starts, ends, axes, steps)"""
    x = np.arange(12.0).reshape(3, 4)
    for dims in ("3,4", "N,M"):
        check(parsed(f"double[{dims}] x", "double[?,?]", body), {"x": x}, "y", ["x"])


def test_rows_that_are_read_often_are_added_up():
    """The gradient of an embedding keeps whole rows: no numbers of elements are computed."""
    model = gradient_model(
        parsed("float[5,3] table, int64[N] ids", "float[N,3]", "y = Gather (table, ids)"), "y", ["table"]
    )
    assert "Range" not in {node.op for node in model.graph}
    seed = np.ones((4, 3), np.float32)
    feeds = {"table": np.zeros((5, 3), np.float32), "ids": np.array([4, 1, 4, -1]), SEED: seed}
    found = sabir.evaluate(model, feeds)["d_y_d_table"]
    np.testing.assert_array_equal(found, np.repeat([[0.0], [1], [0], [0], [3]], 3, axis=1))


def test_slices_that_are_all_of_a_tensor_are_joined():
    """As query, key and value are taken from one product: nothing is added to zeros."""
    one = "".join(
        f"i{n} = Constant <value_int = {n - 3}> ()  p{n} = Gather <axis = 1> (x, i{n})  " for n in range(3)
    )
    body = f"{one} q = Mul (p0, p1)  y = Sub (q, p2)"
    turned = body.replace("(x, i", "(t, i").replace("axis = 1", "axis = 0")
    x = np.arange(12.0).reshape(2, 3, 2)
    for text in (body, f"t = Transpose <perm = [1, 0, 2]> (x)  {turned}"):
        model = gradient_model(parsed("double[2,3,2] x", "double[2,2]", text), "y", ["x"])
        assert {"Concat"} == {n.op for n in model.graph} & {"Concat", "Sum", "Pad", "ScatterND"}
        check(parsed("double[2,3,2] x", "double[2,2]", text), {"x": x}, "y", ["x"])
    part = body.replace("Sub (q, p2)", "Neg (q)")
    check(parsed("double[2,3,2] x", "double[2,2]", part), {"x": x}, "y", ["x"])


def test_small_steps_are_spread():
    """Every second element, as in rotary embeddings: no numbers of elements are computed."""
    body = """starts = Constant <value_ints = [1]> ()
        ends = Constant <value_ints = [9]> ()
        axes = Constant <value_ints = [-1]> ()
        steps = Constant <value_ints = [2]> ()
        y = Slice (x, starts, ends, axes, steps)"""
    for length in (4, 5, 0):
        x = np.arange(2.0 * length).reshape(1, 2, length)
        for dims in (f"1,2,{length}", "N,M,L"):
            found, _, _ = check(parsed(f"double[{dims}] x", "double[?,?,?]", body), {"x": x}, "y", ["x"])
            assert "ScatterND" not in {node.op for node in found.graph}
