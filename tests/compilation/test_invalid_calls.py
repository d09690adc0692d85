"""A call that the interpreter refuses is refused by the compiled engine, with the same error, whatever reads it."""

import numpy as np
import pytest

import sabir
from sabir.ir import TensorType
from support.differences import difference
from support.rooms import STANDARD, examples_of
from support.wrong_shapes import model_of

F, I = np.float32, np.int64  # ruff: ignore[ambiguous-variable-name]  the two types of this file


def zeros(*shape, dtype=F):
    return np.zeros(shape, dtype)


def outcomes(model, feeds):
    """What each engine computes of a model, an error as text."""
    found = []
    for engine in ("compiled", "reference"):
        try:
            found.append([*sabir.Session(model, engine=engine).run(feeds).values()])
        except sabir.SabirError as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def parsed(text, opset=24):
    head = f'<ir_version: 11, opset_import: ["" : {opset}, "ai.onnx.ml" : 5, "ai.onnx.preview" : 1]> g'
    return sabir.parse(f"{head} {text}")


OUTSIDE = {  # an index out of range, though no element of the result is computed
    "Gather of rows without elements": ("(float[n,m] x, int64[k] i) => (y) { y = Gather (x, i) }", zeros(2, 0), [7]),
    "the shape of a Gather": ("(float[n] x, int64[k] i) => (y) { a = Gather (x, i) y = Shape (a) }", zeros(2), [7]),
    "the shape of a constant Gather": (
        "(float[n] x, int64[k] i) => (y) <int64[1] j = {7}> { a = Gather (x, j) y = Shape (a) }", zeros(2), [0]),
    "the shape of GatherElements": (
        "(float[n] x, int64[k] i) => (y) { a = GatherElements (x, i) y = Shape (a) }", zeros(2), [-3]),
    "GatherND of rows without elements": (
        "(float[n,m] x, int64[k,j] i) => (y) { y = GatherND (x, i) }", zeros(2, 0), [[7]]),
    "the shape of GatherND": (
        "(float[n,m] x, int64[k,j] i) => (y) { a = GatherND (x, i) y = Shape (a) }", zeros(2, 3), [[0, 3]]),
    "a row that a Pad removes": (
        "(float[n,m] x, int64[k] i) => (y) <int64[4] p = {0, 0, -1, 0}> { a = Gather (x, i) y = Pad (a, p) }",
        zeros(2, 3), [1, 62]),
    "a row that a Slice leaves out": (
        "(float[n,m] x, int64[k] i) => (y) <int64[1] o = {0}, int64[1] e = {1}> { a = Gather (x, i) y = Slice (a, o, e) }",
        zeros(2, 3), [1, 62]),
    "a row that a Gather leaves out": (
        "(float[n,m] x, int64[k] i) => (y) <int64[1] o = {0}> { a = Gather (x, i) y = Gather (a, o) }",
        zeros(2, 3), [1, 62]),
    "a part of a Split that nothing reads": (
        "(float[n,m] x, int64[k] i) => (y) { a = Gather (x, i) y, z = Split <num_outputs = 2> (a) }",
        zeros(2, 3), [1, 62]),
    "rows repeated no times": (
        "(float[n,m] x, int64[k] i) => (y) <int64[2] s = {2, 0}> { a = Gather (x, i) y = Expand (a, s) }",
        zeros(2, 1), [1, 62]),
    "columns of no rows": (
        "(float[n,m] x, int64[k] i) => (y) { y = ai.onnx.ml.ArrayFeatureExtractor (x, i) }", zeros(0, 2), [5]),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_out_of_range_is_an_error_though_no_element_is_read(name):
    text, x, indices = OUTSIDE[name]
    ours, theirs = outcomes(parsed(text), {"x": x, "i": np.array(indices)})
    assert ours == theirs
    assert "is outside [" in theirs


@pytest.mark.parametrize("reads", ["y", "s"])
def test_scattered_indices_are_compared_where_rows_have_no_elements_or_only_the_shape_is_read(reads):
    text = "(float[n,m] x, int64[k,j] i, float[k,m] u) => (OUT) { y = ScatterND (x, i, u) s = Shape (y) }"
    x, updates = (zeros(2, 0), zeros(1, 0)) if reads == "y" else (zeros(2, 3), zeros(1, 3))
    ours, theirs = outcomes(parsed(text.replace("OUT", reads)), {"x": x, "i": np.array([[7]]), "u": updates})
    assert ours == theirs
    assert "index 7 is outside [-2, 1]" in theirs


LSTM = "(float[s,b,i] x, float[1,8,i] w, float[1,8,2] r, int32[b] l) => (y) { y = LSTM <hidden_size = 2> (x, w, r, , l) }"
CACHE = (
    '(float[b,s,d] c, float[b,t,d] u, int64[b] w) => (y) { y = TensorScatter <mode = "circular"> (c, u, w) }'
)
FLEX = "(float[b,h,s,d] q, float[b,k,t,d] k, float[b,v,t,d] v) => (y) { y = ai.onnx.preview.FlexAttention (q, k, v) }"
INVALID = {
    "Concat of one input along axis 99": (
        "(float[n,m] x) => (float[n,m] y) { y = Concat <axis = 99> (x) }", {"x": zeros(2, 3)}, "axis 99 is outside"),
    "more pads than axes": (
        "(float[n] x) => (y) <int64[4] p = {0, 0, 0, 0}> { y = Pad (x, p) }", {"x": zeros(2)}, "4 pads for 1 axes"),
    "fed pads for other axes": (
        "(float[n] x, int64[k] p) => (y) { y = Pad (x, p) }", {"x": zeros(2), "p": zeros(4, dtype=I)}, "4 pads for 1 axes"),
    "a zero point for one scale of seven": (
        "(float[n] x, float[k] s, int8[j] z) => (y) { y = QuantizeLinear <axis = 0> (x, s, z) }",
        {"x": zeros(7), "s": zeros(7) + 1, "z": zeros(1, dtype=np.int8)}, "`the zero point` must have the shape"),
    "scales of other rows": (
        "(int8[n,m] x, float[k] s) => (y) { a = DequantizeLinear <axis = 0> (x, s) y = Shape (a) }",
        {"x": zeros(7, 2, dtype=np.int8), "s": zeros(5) + 1}, "5 is not 7"),
    "zero points of a matrix for a stack": (
        "(int8[a,b,c] x, int8[d,e] w, int8[f,g] z) => (y) { a = MatMulInteger (x, w, z) y = Shape (a) }",
        {"x": zeros(2, 2, 2, dtype=np.int8), "w": zeros(2, 2, dtype=np.int8), "z": zeros(2, 1, dtype=np.int8)},
        "`a_zero_point` must be 3-D"),
    "a circular cache that is too short": (
        CACHE, {"c": zeros(1, 2, 1), "u": zeros(1, 3, 1), "w": np.array([0])}, "3 steps do not fit into a cache of 2"),
    "the shape of a cache that is too short": (
        CACHE.replace("y =", "a =").replace("w) }", "w) y = Shape (a) }"),
        {"c": zeros(1, 2, 1), "u": zeros(1, 3, 1), "w": np.array([0])}, "3 steps do not fit into a cache of 2"),
    "heads that are no multiple": (
        FLEX, {"q": zeros(1, 3, 2, 2), "k": zeros(1, 2, 2, 2), "v": zeros(1, 2, 2, 2)}, "do not match"),
    "heads of other values": (
        FLEX, {"q": zeros(1, 4, 2, 2), "k": zeros(1, 2, 2, 2), "v": zeros(1, 1, 2, 2)}, "do not match"),
    "the length of a sequence without steps": (
        LSTM, {"x": zeros(0, 1, 3), "w": zeros(1, 8, 3), "r": zeros(1, 8, 2), "l": np.array([5], np.int32)},
        "`sequence_lens`[0] is 5, and must be 0 to 0"),
    "the length of a reversed sequence without steps": (
        "(float[n,m] x, int64[k] s) => (y) { y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, s) }",
        {"x": zeros(2, 0), "s": np.array([1, 5])}, "must be lengths from 0 to 0"),
    "a region of an item beyond a batch without channels": (
        "(float[n,c,h,w] x, float[r,4] o, int64[r] b) => (y) { y = RoiAlign (x, o, b) }",
        {"x": zeros(1, 0, 3, 3), "o": zeros(1, 4), "b": np.array([9])}, "item 9 of a batch of 1"),
    "a window longer than the signal": (
        "(float[n,m,1] x, float[k] w) => (y) <int64 s = {1}> { a = STFT (x, s, w) y = Shape (a) }",
        {"x": zeros(1, 1, 1), "w": zeros(2)}, "a frame of 2 is longer than the signal of 1"),
    "sizes that do not broadcast beside an axis of no elements": (
        "(bool[k,n] c, float[m] x) => (y) <float[2] z = {0, 0}> { y = Where (c, x, z) }",
        {"c": zeros(0, 17, dtype=np.bool_), "x": zeros(2)},
        "do not broadcast",
    ),
    "a Reshape that a later one hides": (
        "(float[n] x) => (y) <int64[2] s = {7, 7}, int64[1] t = {-1}> { a = Reshape (x, s) y = Reshape (a, t) }",
        {"x": zeros(6)}, "cannot take the shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_both_engines_refuse_a_call(name):
    text, feeds, message = INVALID[name]
    ours, theirs = outcomes(parsed(text), feeds)
    assert ours == theirs
    assert message in theirs


@pytest.mark.parametrize("how", ["input", "attribute"])
def test_sizes_of_the_first_split_must_add_up(how):
    text = {
        "input": "(float[n,m] x, float[k] s) => (y, z) { y, z = Split <axis = 0> (x, s) }",
        "attribute": "(float[n,m] x) => (y, z) { y, z = Split <axis = 0, split = [1, 9]> (x) }",
    }[how]
    feeds = {"x": zeros(5, 3), "s": np.array([1, 9], F)}
    ours, theirs = outcomes(parsed(text, opset=1), feeds if how == "input" else {"x": feeds["x"]})
    assert ours == theirs
    assert "a dimension of 5" in theirs


@pytest.mark.parametrize("name", ["TreeEnsemble", "TreeEnsembleRegressor", "TreeEnsembleClassifier"])
@pytest.mark.parametrize("number", [-1, 7, 99, 2**31, 2**62 - 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("declared", [True, False])
def test_both_engines_refuse_features_modes_and_links_out_of_range(name, number, declared):
    operator = STANDARD.find("ai.onnx.ml", name)
    count = 0
    for example in examples_of(operator)[:4]:
        for attribute, value in example.attributes.items():
            changed = with_number(value, number)
            if changed is None:
                continue
            example.attributes[attribute] = changed
            model, feeds = model_of(operator, example)
            example.attributes[attribute] = value
            if not declared:
                (port,) = model.graph.inputs
                port.type = TensorType(port.type.element)
            assert not difference(*outcomes(model, feeds)), attribute
            count += 1
    assert count


def with_number(value, number):
    """The value of an attribute with this number first; None where it has no such numbers."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
        if not np.iinfo(value.dtype).min <= number <= np.iinfo(value.dtype).max:
            return None
        changed = value.copy()
        changed.reshape(-1)[0] = number
        return changed
    return [number, *value[1:]] if isinstance(value, list) and value and type(value[0]) is int else None


# ---------------------------------------------------------------- valid calls on which the engines differed


def test_the_depth_of_a_one_hot_without_elements_may_be_any_number():
    text = "(int64[n] x, int64 d, float[2] v) => (y) { y = OneHot (x, d, v) }"
    ours, theirs = outcomes(parsed(text), {"x": zeros(0, dtype=I), "d": np.array(2**40), "v": zeros(2)})
    assert not difference(ours, theirs)
    assert theirs[0].shape == (0, 2**40)


@pytest.mark.parametrize("kind", ["string", "float"])
def test_a_size_that_a_call_decides_is_known_where_only_the_shape_is_read(kind):
    text = (
        f"({kind}[n] x, bool[n] c) => (y, z) {{ a = Compress (x, c) y = Shape (a) z = ConstantOfShape (y) }}"
    )
    x = np.array(["a", "b", "c"], object) if kind == "string" else zeros(3)
    session = sabir.Session(parsed(text), engine="compiled")
    for chosen in ([True, False, True], [False] * 3, [True] * 3):
        y, z = session.run({"x": x, "c": np.array(chosen)}).values()
        assert y.tolist() == [sum(chosen)]
        assert z.shape == (sum(chosen),)


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2), (2, 3, 5), (3, 4, 5)])
def test_tuples_of_no_indices_take_whole_items_of_a_batch(shape):
    sizes = ",".join("nmkj"[: len(shape)])
    text = f"(float[{sizes}] x, int64[n,w] i) => (y) {{ a = Neg (x) y = GatherND <batch_dims = 1> (a, i) }}"
    x = np.arange(np.prod(shape), dtype=F).reshape(shape)
    ours, theirs = outcomes(parsed(text), {"x": x, "i": zeros(shape[0], 0, dtype=I)})
    assert not difference(ours, theirs)
    np.testing.assert_array_equal(ours[0], -x)


HALVES = {
    "ScatterElements": "(bfloat16[n] x, int64[m] i, bfloat16[m] u) => (y) <bool c = {1}> { a = Where (c, u, u) "
    'y = ScatterElements <reduction = "mul"> (x, i, a) }',
    "CumSum": "(bfloat16[n] x) => (y) <bool c = {1}, int64 o = {0}> { a = Where (c, x, x) y = CumSum (a, o) }",
    "TopK": "(bfloat16[n] x) => (y, z) <bool c = {1}, int64[1] o = {2}> { a = Where (c, x, x) y, z = TopK (a, o) }",
}


@pytest.mark.parametrize("name", HALVES)
def test_a_computed_half_is_read_widened(name):
    model = parsed(HALVES[name], opset=18)
    values = {"x": np.array([1, 2, 3]), "u": np.array([5, -4]), "i": np.array([2, -1])}
    feeds = {}
    for port in model.graph.inputs:
        feeds[port.name] = values[port.name].astype(port.type.element.dtype)
    ours, theirs = outcomes(model, feeds)
    assert not difference(ours, theirs)


ODD = (np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, 2.0**63, -0.0, 1e-40)
ODD_FEEDS = ("o", "x", "m", "om", "ox", "")
DEFORMED = {
    "alone": "y = DeformConv <pads = [1, 1, 1, 1]> (x, w, o, , m)",
    "between maps": "n = Relu (x) q = DeformConv <pads = [1, 1, 1, 1]> (n, w, o, , m) y = Sigmoid (q)",
    "after a convolution": "c = Conv <pads = [1, 1, 1, 1]> (x, w) q = DeformConv <pads = [1, 1, 1, 1]> (c, w, o, , m) "
    "y = MaxPool <kernel_shape = [2, 2]> (q)",
    "with computed offsets": "t = Tanh (o) k = Sigmoid (m) p = Mul (o, t) y = DeformConv <pads = [1, 1, 1, 1]> (x, w, p, , k)",
}


@pytest.mark.parametrize("name", DEFORMED)
def test_odd_offsets_factors_and_pixels_of_a_deformed_convolution(name):
    rng = np.random.default_rng(7)
    for channels in (3, 12):
        text = f"(float[n,c,h,v] x, float[{channels},{channels},3,3] w, float[n,18,h,v] o, float[n,9,h,v] m) => (y) "
        model = parsed(text + f"{{ {DEFORMED[name]} }}", opset=22)
        sessions = [sabir.Session(model, engine=engine) for engine in ("compiled", "reference")]
        for turn in range(12):
            shapes = {
                "x": (2, channels, 5, 6),
                "w": (channels, channels, 3, 3),
                "o": (2, 18, 5, 6),
                "m": (2, 9, 5, 6),
            }
            feeds = {n: rng.standard_normal(shape).astype(F) for n, shape in shapes.items()}
            if turn % 2:
                feeds["o"] = np.round(feeds["o"])
            for changed in ODD_FEEDS[turn % len(ODD_FEEDS)]:
                feeds[changed].reshape(-1)[rng.integers(feeds[changed].size, size=3)] = rng.choice(ODD, 3)
            ours, theirs = ([*session.run(feeds).values()] for session in sessions)
            assert not difference(ours, theirs), (channels, turn)


def test_a_deformed_convolution_of_an_image_without_columns():
    text = "(float[n,c,h] x, float[2,1,1] w, float[n,d,h] o) => (y) { y = DeformConv <group = 2, offset_group = 2> (x, w, o) }"
    ours, theirs = outcomes(
        parsed(text, opset=22), {"x": zeros(1, 2, 0), "w": zeros(2, 1, 1), "o": zeros(1, 2, 0)}
    )
    assert not difference(ours, theirs)
    assert theirs[0].shape == (1, 2, 0)


def test_integer_products_wrap(engine):
    model = parsed("(uint32[n,m] a, uint32[m,k] b) => (y) { y = MatMul (a, b) }", opset=13)
    a, b = np.full((40, 17), 2**31, np.uint32), np.full((17, 40), 3, np.uint32)
    (y,) = sabir.Session(model, engine=engine).run({"a": a, "b": b}).values()
    assert (y == 17 * 3 * 2**31 % 2**32).all()
