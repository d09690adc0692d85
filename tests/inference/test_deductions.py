"""What inference concludes where an input that matters is not known, or known in part."""

import numpy as np
import pytest

import sabir
from sabir.base import InferenceError
from sabir.inference import Inference

HEAD = '<ir_version: 12, opset_import: ["" : 25]> main'


def type_of(signature, calls):
    """The type of `y`, inferred from a model of these inputs and calls."""
    model = sabir.parse(f"{HEAD} ({signature}) => (y) {{ {calls} }}")
    engine = Inference(model, strict=True)
    engine.run()
    return engine.types[model.graph.outputs[0]]


@pytest.mark.parametrize(
    ("signature", "calls", "kind"),
    [
        # one axis of size 1 can go, and it is not said which
        ("float[1,3,4] x, int64[1] a", "y = Squeeze (x, a)", "float[3,4]"),
        ("float[1,3,1,5] x, int64[1] a", "y = Squeeze (x, a)", "float[?,?,5]"),
        ("float[1,3,1,5] x, int64[2] a", "y = Squeeze (x, a)", "float[3,5]"),
        ("float[N,3] x, int64[1] a", "y = Squeeze (x, a)", "float[3]"),
        ("float[1,3,1,5] x, int64[1] a", "y = Unsqueeze (x, a)", "float[1,?,?,?,?]"),
        ("float[3,2,2] x, int64[1] a", "y = ReduceSum <keepdims = 0> (x, a)", "float[?,2]"),
        ("float[3,2] x, int64[2] a", "y = ReduceSum (x, a)", "float[1,1]"),
        ("float[1,2] x, int64[1] a", "y = ReduceMax (x, a)", "float[1,?]"),
        # all elements are somewhere
        ("float[2,3,N] x, int64[1] s", "y = Reshape (x, s)", "float[6*N]"),
        ("float[4,6] x, float[?,3] z", "s = Shape (z) y = Reshape (x, s)", "float[8,3]"),
        (
            "float[N,12] x, int64[1] s",
            "three = Constant <value_ints = [3]> () t = Concat <axis = 0> (s, three) y = Reshape (x, t)",
            "float[4*N,3]",
        ),
        # parts make the whole
        ("float[0,2] x, int64[2] s", "y, z = Split (x, s)", "float[0,2]"),
        ("float[6,2] x, int64[2] s", "y, z = Split (x, s)", "float[?,2]"),
        # a transform keeps the length of what is transformed, whichever axis it is
        ("float[1,8,9,1] x, int64 a", "y = DFT (x, , a)", "float[1,8,9,2]"),
        ("float[1,8,9,1] x, int64 a", "y = DFT <onesided = 1> (x, , a)", "float[1,?,?,2]"),
        ("float[1,8,9,2] x, int64 a", "y = DFT <onesided = 1, inverse = 1> (x, , a)", "float[1,?,?,1]"),
        ("float[1,8,1] x, int64 n, int64 a", "y = DFT (x, n, a)", "float[?,?,2]"),
    ],
)
def test_types(signature, calls, kind):
    assert str(type_of(signature, calls)) == kind


SIZES = "s = Shape (x) one = Constant <value_int = 1> () two = Constant <value_int = 2> () "


@pytest.mark.parametrize(
    ("calls", "known"),
    [
        ("f = Cast <to = 1> (s) y = Sum (f, f, f)", ["3*N", "9.0"]),
        ("y = Pow (s, two)", ["N*N", "9"]),
        ("y = Relu (s)", ["N", "3"]),
        ("m = Sub (s, two) y = Relu (m)", ["max(0,N-2)", "1"]),
        ("n = Size (x) m = Add (n, two) y = Range (n, m, one)", ["3*N", "3*N+1"]),
    ],
)
def test_contents_with_symbols(calls, known):
    found = type_of("float[N,3] x", SIZES + calls).known
    assert [str(item) for item in found] == known


@pytest.mark.parametrize(
    ("calls", "known"),
    [
        ("y = Not (u)", (None, False)),
        ("y = And (u, no)", (False, False)),
        ("y = And (u, yes)", (None, True)),
        ("y = Or (u, yes)", (True, True)),
        ("y = Or (u, no)", (None, True)),
        ("y = Xor (u, yes)", (None, False)),
    ],
)
def test_logic_on_what_is_known_in_part(calls, known):
    """`u` says whether [N, 3] is 3: that of the first is not known."""
    three = "three = Constant <value_ints = [3, 3]> () u = Equal (s, three) no = Less (s, s) yes = Not (no) "
    assert type_of("float[N,3] x", SIZES + three + calls).known == known


@pytest.mark.parametrize(
    ("signature", "calls", "message"),
    [
        ("float[2,3] x, int64[1] a", "y = Squeeze (x, a)", "only 0 of them can"),
        ("float[2,3] x, int64[3] a", "y = ReduceSum <keepdims = 0> (x, a)", "only 2 of them can"),
    ],
)
def test_contradictions(signature, calls, message):
    with pytest.raises(InferenceError, match=message):
        type_of(signature, calls)


def test_what_is_concluded_is_what_is_computed():
    model = sabir.parse(f"{HEAD} (float[1,3,4] x, int64[1] a) => (y) {{ y = Squeeze (x, a) }}")
    (y,) = sabir.evaluate(model, {"x": np.zeros((1, 3, 4), np.float32), "a": np.array([-3])}).values()
    assert y.shape == (3, 4)
