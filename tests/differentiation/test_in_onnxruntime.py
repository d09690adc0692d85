"""Gradients compute the same in onnxruntime with its default optimizations, which move transpositions."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.rewriting import remove_unread
from support.gradients import SEED, gradient_model

# between two transpositions: what is padded in the gradient
MOVES = {
    "a slice of known axes": "s = Constant <value_ints = [1]> ()  e = Constant <value_ints = [3]> ()"
    "  a = Constant <value_ints = [-2]> ()  m = Slice (t, s, e, a)",
    "slices along two axes in another order": "s = Constant <value_ints = [1, 0]> ()  e = Constant <value_ints = [3, 2]> ()"
    "  a = Constant <value_ints = [3, 1]> ()  m = Slice (t, s, e, a)",
    "axes that are an input": "s = Constant <value_ints = [1, 1]> ()  e = Constant <value_ints = [3, 2]> ()"
    "  m = Slice (t, s, e, axes)",
    "a slice with gaps": "s = Constant <value_ints = [0]> ()  e = Constant <value_ints = [4]> ()"
    "  a = Constant <value_ints = [2]> ()  w = Constant <value_ints = [2]> ()  m = Slice (t, s, e, a, w)",
    "one index": "i = Constant <value_ints = [1]> ()  m = Gather <axis = 3> (t, i)",
    "a padding with axes": "p = Constant <value_ints = [1, -1]> ()  a = Constant <value_ints = [2]> ()"
    "  m = Pad (t, p, , a)",
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("shape", ["2,3,4,5", "A,B,C,D"])
def test_padding_between_transpositions(move, shape):
    """A pass of onnxruntime ignores the operand `axes` of Pad, so a gradient has none."""
    model = sabir.parse(f"""<ir_version: 10, opset_import: ["": 21]>
        main (float[{shape}] x, int64[2] axes) => (float[?,?,?,?] y) {{
            t = Transpose <perm = [0, 2, 3, 1]> (x)  {MOVES[move]}  y = Transpose <perm = [0, 3, 1, 2]> (m) }}""")
    gradient = gradient_model(model, "y", ["x"])
    # without y: onnxruntime fails at a Pad with axes of the model itself, too
    gradient.graph.outputs = [gradient.graph.value("d_y_d_x")]
    remove_unread(gradient.graph)
    feeds = {
        "x": np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32),
        "axes": np.array([-1, 2]),
    }
    y = sabir.evaluate(model, feeds)["y"]
    feeds[SEED] = np.arange(y.size, dtype=np.float32).reshape(y.shape)
    feeds = {n: feeds[n] for n in (v.name for v in gradient.graph.inputs)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(sabir.dumps(gradient), options, providers=["CPUExecutionProvider"])
    (found,) = session.run(["d_y_d_x"], feeds)
    np.testing.assert_array_equal(found, sabir.evaluate(gradient, feeds)["d_y_d_x"])
