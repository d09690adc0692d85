"""Small models whose nodes read or compute much and give little, or loop over nothing very many times.

What a node gives is counted after it ran, so that an operator which does much more counts that itself.
"""

import time

import pytest

import sabir

pytestmark = pytest.mark.usefixtures("untrusted_files")

MOST_SECONDS = 5.0
LONG = 2**40


def model(body, kind="float", opset=21):
    head = f'<ir_version: 10, opset_import: ["": {opset}, "ai.onnx.ml": 3]>'
    return sabir.parse(f"{head} g () => ({kind}[] y) {{ {body} }}")


def filled(name, *sizes, kind="float", value="1"):
    """A tensor of these sizes that costs a file a few bytes."""
    sized = f"{name}_s = Constant <value_ints = [{','.join(map(str, sizes))}]> () "
    return f"{sized} {name} = ConstantOfShape <value = {kind}[1] {{{value}}}> ({name}_s) "


TURNS = "m = Constant <value = int64 {90000}> () c = Constant <value = bool {1}> () "


def looped(call, kind="float"):
    """A node that runs very often on one tensor."""
    body = f"b (int64 i, bool k) => (bool k2, {kind}[] o) {{ k2 = Identity (k) {call} }}"
    return f"{TURNS} y = Loop <body = {body}> (m, c)"


LAVISH = {
    "a reduction": filled("x", 2**22) + looped("o = ReduceSum (x)"),
    "a norm": filled("x", 2**22) + looped("o = ReduceL2 (x)"),
    "a place of the greatest": filled("x", 2**22) + looped("o = ArgMax (x)", "int64"),
    "different elements": filled("x", 2**20) + looped("o = Unique (x)"),
    "the greatest elements": filled("x", 2**20)
    + "n = Constant <value_ints = [1]> () "
    + looped("o, p = TopK (x, n)"),
    "what is not zero": filled("x", 2**22, value="0") + looped("o = NonZero (x)", "int64"),
    "a determinant": filled("x", 700, 700) + looped("o = Det (x)"),
    "a mean of an image": filled("x", 1, 1, 2**22) + looped("o = GlobalAveragePool (x)"),
    "the greatest of an image": filled("x", 1, 1, 2**22) + looped("o = GlobalMaxPool (x)"),
    "what a condition picks": filled("x", 2**24, kind="bool", value="0")
    + looped("o = Compress (x, x)", "bool"),
    "many neighbours": filled("x", 2**12, 2**11) + "y = LRN <size = 4096> (x)",
    "many images": filled("x", 2**24, 1) + "y = LRN <size = 3> (x)",
    "n-grams far apart": filled("x", 2**22, kind="int64")
    + "y = TfIdfVectorizer <max_gram_length = 2, max_skip_count = 4611686018427387904, min_gram_length = 1, "
    'mode = "TF", ngram_counts = [0, 1], ngram_indexes = [0, 1], pool_int64s = [1, 1, 1]> (x)',
    "boxes of many classes": filled("b", 1, 1, 4)
    + filled("s", 1, 2**22, 1)
    + "n = Constant <value_ints = [5]> () y = NonMaxSuppression (b, s, n)",
    "samples between the corners of a cube of 24 dimensions": filled("x", *[1] * 26)
    + filled("g", *[1] * 25, 24)
    + "y = GridSample (x, g)",
    "weights over 22 dimensions": filled("x", *[1] * 24)
    + filled("w", 1, 1, *[2] * 22)
    + f"y = Conv <pads = [{','.join(['1'] * 44)}]> (x, w)",
    "offsets in 20 dimensions": filled("x", *[1] * 22)
    + filled("w", *[1] * 22)
    + filled("o", 1, 20, *[1] * 20)
    + "y = DeformConv (x, w, o)",
    "a kernel as long as half the input": filled("x", 1, 1, 2**21)
    + filled("w", 1, 1, 2**20)
    + "y = Conv (x, w)",
}


@pytest.mark.parametrize("what", LAVISH)
def test_work_that_gives_little_is_counted(what):
    began = time.process_time()
    with pytest.raises(sabir.LimitError, match=r"Limits\((work|elements|memory)="):
        sabir.evaluate(model(LAVISH[what], opset=22), {})
    assert time.process_time() - began < MOST_SECONDS


HALF = "13517"  # the bits of a third
LARGE = {
    "eight bits from sixteen": filled("x", 2**27, kind="float16", value=HALF) + "y = Cast <to = 17> (x)",
    "places of the greatest halves": filled("x", 1, 1, 2**26, kind="float16", value=HALF)
    + "y, i = MaxPool <kernel_shape = [2], strides = [2]> (x)",
    "means of halves": filled("x", 1, 1, 2**26, kind="float16", value=HALF)
    + "y = AveragePool <kernel_shape = [3]> (x)",
    "sums of exponentials of halves": filled("x", 2**27, kind="float16", value=HALF)
    + "y = ReduceLogSumExp (x)",
    "small integers mirrored": filled("x", 2**25, kind="uint8")
    + 'p = Constant <value_ints = [67108864, 33554432]> () y = Pad <mode = "reflect"> (x, p)',
    "small integers resized": filled("x", 2**26, kind="uint8")
    + "s = Constant <value_ints = [67108865]> () y = Resize (x, , , s)",
    "random halves": "y = RandomNormal <shape = [134217728], dtype = 10> ()",
    "numbers as texts": filled("x", 2**25) + "y = Cast <to = 8> (x)",
    "places of what is not zero": filled("x", 2**23, 2, 2, kind="bool") + "y = NonZero (x)",
    "scores of 100 targets": filled("x", 2**22, 1)
    + f"y = ai.onnx.ml.LinearRegressor <targets = 100, coefficients = [{','.join(['1.0'] * 100)}]> (x)",
    "a filter for very many pixels": filled("x", 2**26)
    + 's = Constant <value_ints = [1]> () y = Resize <mode = "cubic", antialias = 1> (x, , , s)',
    "counts of n-grams": filled("x", 2**22, 1, kind="int64")
    + "y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, "
    f'mode = "TF", ngram_counts = [0], ngram_indexes = [{",".join(["0"] * 200)}], '
    f"pool_int64s = [{','.join(map(str, range(200)))}]> (x)",
}


@pytest.mark.parametrize("what", LARGE)
def test_memory_beside_the_outputs_is_counted(what):
    with pytest.raises(sabir.LimitError, match=r"Limits\((elements|memory)="):
        sabir.evaluate(model(LARGE[what]), {})


EMPTY = {
    "windows of no image": filled("x", 0, 1, 8)
    + filled("w", 1, 1, 2)
    + f"y = Conv <pads = [{LONG}, 0]> (x, w)",
    "windows that make no image": filled("x", 0, 1, LONG) + filled("w", 1, 1, 2) + "y = ConvTranspose (x, w)",
    "classes without a box": filled("b", 1, 0, 4)
    + filled("s", 1, LONG, 0)
    + "n = Constant <value_ints = [5]> () y = NonMaxSuppression (b, s, n)",
    "images without a box": filled("b", LONG, 0, 4)
    + filled("s", LONG, 1, 0)
    + "n = Constant <value_ints = [5]> () y = NonMaxSuppression (b, s, n)",
    "groups of nothing": filled("x", LONG, 1, 0)
    + filled("s", 1)
    + "y = GroupNormalization <num_groups = 1> (x, s, s)",
    "heads of nothing": filled("q", 1, LONG, 0, 4) + "y = Attention (q, q, q)",
    "images of nothing": filled("x", LONG, 0, 2) + "y = LRN <size = 3> (x)",
    "a filter for no pixel": filled("x", 8)
    + 's = Constant <value_floats = [1e-30]> () y = Resize <mode = "linear", antialias = 1> (x, , s)',
}


@pytest.mark.parametrize("what", EMPTY)
def test_very_many_of_nothing_are_nothing(what):
    began = time.process_time()
    made = model(EMPTY[what], "int64" if "without a box" in what else "float", opset=23)
    made = sabir.infer(made)
    assert sabir.evaluate(made, {})["y"].size == 0
    assert time.process_time() - began < MOST_SECONDS


def test_a_loop_may_look_at_a_large_tensor_without_reading_it():
    body = filled("x", 2**22) + looped("o = Shape (x)", "int64")
    assert sabir.evaluate(model(body, "int64"), {})["y"].shape == (90_000, 1)


def test_one_number_may_stand_for_very_many():
    body = filled("x", 2**22) + "s = Constant <value_ints = [1]> () "
    for mode in ("linear", "cubic"):
        call = f'y = Resize <mode = "{mode}", antialias = 1> (x, , , s)'
        if mode == "cubic":
            body = filled("x", 2**20) + "s = Constant <value_ints = [1]> () "
        assert sabir.evaluate(model(body + call), {})["y"] == pytest.approx([1.0], rel=1e-5)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool"])
def test_a_dilation_past_64_bits_is_told(op):
    weights = filled("w", 1, 1, 3) if op != "MaxPool" else ""
    kernel = ", kernel_shape = [3]" if op == "MaxPool" else ""
    call = f"y = {op} <dilations = [9223372036854775807]{kernel}> (x{', w' if weights else ''})"
    with pytest.raises(sabir.EvaluationError, match=r"windows? of"):
        sabir.evaluate(model(filled("x", 1, 1, 8) + weights + call), {})


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_no_groups_are_told(op):
    body = filled("x", 1, 1, 8) + filled("w", 1, 1, 3) + f"y = {op} <group = 0> (x, w)"
    with pytest.raises(sabir.SchemaError, match="'group' is 0"):
        sabir.evaluate(model(body), {})
    assert any("'group' is 0" in f.message for f in sabir.findings(model(body)))


REFUSED = {
    "a number with an underscore": 'x = Constant <value_strings = ["1_000"]> () y = Cast <to = 7> (x)',
    "other digits": 'x = Constant <value_strings = ["\u0661\u0662"]> () y = Cast <to = 1> (x)',
    "random texts": "y = RandomNormal <shape = [2], dtype = 8> ()",
    "random integers": "y = RandomUniform <shape = [2], dtype = 7> ()",
    "an identity of texts": filled("x", 2, 2) + "y = EyeLike <dtype = 8> (x)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_value_is_refused(what):
    with pytest.raises(sabir.SabirError, match=r"is not a number|attribute 'dtype' is"):
        sabir.evaluate(model(REFUSED[what]), {})


def test_very_many_columns_are_compared_in_order():
    body = filled("a", 3, 100_000) + (
        "i = Constant <value = int64[3,1] {0,1,2}> () u = Constant <value = float[3,1] {2,0,2}> () "
        "w = ScatterElements <axis = 1> (a, i, u) y, first, back, count = Unique <axis = 0> (w)"
    )
    found = sabir.evaluate(model(body), {}, ["y", "first", "back", "count"])
    assert found["y"].shape == (3, 100_000)
    assert [found[k].tolist() for k in ("first", "back", "count")] == [[1, 2, 0], [2, 0, 1], [1, 1, 1]]
