"""Every room refuses the same shapes in inference and in a run, and says why in the standard's words."""

import linecache
import traceback
import zlib

import numpy as np
import pytest

import sabir
from sabir import Builder
from sabir.base import ACCIDENTS, EvaluationError, InferenceError, SabirError
from sabir.checking import findings
from sabir.evaluation import Runner
from sabir.inference import Inference
from sabir.ir import Model, tensor_type
from sabir.syntax import parse_graph
from support.rooms import OPERATORS, examples_of, inferred, run
from support.wrong_shapes import model_of, mutants

SHARE = {
    "reference": 16,
    "compiled": 64,
}  # one mutant in so many is tried: kernels take their time to compile
# a run accepts what the body's declared shapes contradict: in practice they are often wrong
DECLARED = {"Loop", "Scan", "SequenceMap"}
BY_CONTENTS = {  # a refusal depends on contents, which inference may not know, or on a subgraph
    "ConcatFromSequence": "a sequence type has one shape for all items",
    "MaxRoiPool": "the index of the item of each region",
    "Multinomial": "logarithms of which none is finite",
    "NegativeLogLikelihoodLoss": "the classes that are the labels",
    "ReverseSequence": "the lengths of the sequences",
    "RoiAlign": "the index of the item of each region",
    "Scan": "the lengths of the sequences",
    "ScatterElements": "the indices",
    "ScatterND": "the indices",
    "SequenceMap": "the body runs for each item separately",
    "SoftmaxCrossEntropyLoss": "the classes that are the labels",
    "Split": "in the first version sizes are floats",
    "TensorScatter": "the indices",
    "ai.onnx.ml.ArrayFeatureExtractor": "the indices of columns",
    "ai.onnx.ml.TreeEnsemble": "the features that the nodes read",
    "ai.onnx.ml.TreeEnsembleClassifier": "the features that the nodes read",
    "ai.onnx.ml.TreeEnsembleRegressor": "the features that the nodes read",
    "com.microsoft.BifurcationDetector": "the place from which tokens were predicted",
    "com.microsoft.CropAndResize": "the index of the image of each box",
    "com.microsoft.NGramRepeatBlock": "the tokens that have scores",
    "com.microsoft.RemovePadding": "the lengths of the sequences",
    "com.microsoft.RestorePadding": "the places of the tokens",
    "com.microsoft.TorchEmbedding": "the indices of rows",
    "com.microsoft.WordConvEmbedding": "the characters that have vectors",
}
BY_CONTENTS |= {
    f"{o.domain}.{o.name}": "inference leaves open whether blocks have 8 or 16 channels, a run must know"
    for o in OPERATORS
    if o.domain == "com.microsoft.nchwc"
}
NAMED = {f"{o.domain}.{o.name}".removeprefix("."): o for o in OPERATORS}
# a body that declares the shapes of its inputs warns of others
pytestmark = pytest.mark.filterwarnings("ignore::sabir.SabirWarning")
ROOMS = [pytest.param(o, id=name) for name, o in NAMED.items()]


def sampled(operator, engine):
    """A share of the mutants of a room's examples, always the same one."""
    for number, example in enumerate(examples_of(operator)):
        if operator.at(example.opset).removed:
            continue  # a run refuses it, whatever its shapes
        for change, mutant in mutants(example):
            if zlib.crc32(f"{operator.name} {number} {change}".encode()) % SHARE[engine] == 0:
                yield f"example {number}, {change}", mutant


def attempted(work, *arguments, **options):
    """The error that `work` raises, or None."""
    try:
        with np.errstate(all="ignore"):
            work(*arguments, **options)
    except SabirError as error:
        return error
    return None


def foreign(error):
    """The message of an error that numpy or Python raised and Sabir passed on, or None."""
    cause = error
    while isinstance(cause, SabirError) and isinstance(cause.__cause__, ACCIDENTS):
        cause = cause.__cause__
    if cause is None or isinstance(cause, SabirError) or str(cause) not in str(error):
        return None
    place = traceback.extract_tb(cause.__traceback__)[-1]
    own = linecache.getline(place.filename, place.lineno).lstrip().startswith("raise ")
    return None if own and "sabir" in place.filename else str(error)


@pytest.mark.parametrize("operator", ROOMS)
def test_inference_and_runs_refuse_the_same_shapes_in_the_same_terms(operator, engine):
    name = f"{operator.domain}.{operator.name}".removeprefix(".")
    for change, mutant in sampled(operator, engine):
        model, feeds = model_of(operator, mutant)
        ran = attempted(run, model, feeds, engine)
        by_shape = attempted(inferred, model, feeds, known=False)
        by_contents = attempted(inferred, model, feeds, known=True)

        for error in filter(None, (ran, by_shape, by_contents)):
            assert foreign(error) is None, change
        if name not in DECLARED:
            assert by_shape is None or ran is not None, f"{change}: a run takes what inference refuses"
        if name not in BY_CONTENTS:
            assert ran is None or by_contents is not None, f"{change}: inference misses: {ran}"


def test_the_sample_has_refusals_of_all_kinds(engine):
    counts = {True: 0, False: 0}
    for operator in OPERATORS:
        if operator.name in {"Slice", "Conv", "MatMul", "LayerNormalization"}:
            for _, mutant in sampled(operator, engine):
                model, feeds = model_of(operator, mutant)
                counts[attempted(run, model, feeds, engine) is None] += 1
    assert min(counts.values()) > 300 / SHARE[engine]


def test_what_is_set_apart_names_rooms():
    assert NAMED.keys() >= {*BY_CONTENTS, *DECLARED}


# ---------------------------------------------------------------- what was found in other projects' models

F, I = np.float32, np.int64  # ruff: ignore[ambiguous-variable-name]  the two types of this table


def call(op, *inputs, opset=21, outputs=1, **attributes):
    """The model of one node on arrays of these shapes, and its feeds; no type is declared of its output."""
    b = Builder(opset, check=False)
    feeds = {f"i{n}": x for n, x in enumerate(inputs) if x is not None}
    values = [None if x is None else b.input(f"i{n}", _kind(x)) for n, x in enumerate(inputs)]
    made = b.op(op, *values, outputs=outputs, **attributes)
    for value in made if isinstance(made, tuple) else (made,):
        b.output(value)
    return Model(b.graph, b.opsets, 10), feeds


def _kind(x):
    return tensor_type(np.asarray(x).dtype, np.shape(x))


def ones(*shape, dtype=F):
    return np.ones(shape, dtype)


WRONG = {
    "a scalar start": (call("Slice", ones(3), I(0), ones(1, dtype=I)), "`starts` must be 1-D, and has the shape []"),
    "a shape of rank 2": (call("Reshape", ones(6), np.array([[2, 3]])), "`shape` must be 1-D, and has the shape [1,2]"),
    "Expand by a matrix": (call("Expand", ones(3), ones(2, 3, dtype=I)), "`shape` must be 1-D, and has the shape [2,3]"),
    "a scalar k": (call("TopK", ones(3), I(1), outputs=2), "`K` must have the shape [1], and has []"),
    "three limits": (call("Clip", ones(3), ones(3)), "`min` must be a scalar, and has the shape [3]"),
    "a scale of 2 for 3": (
        call("LayerNormalization", ones(2, 3), ones(2)),
        "`Scale` of the shape [2] does not broadcast to [2,3]",
    ),
    "5 scales of 1 channel": (
        call("BatchNormalization", ones(2, 1, 3), *[ones(5)] * 4),
        "channels: 1 and 5 must be equal",
    ),
    "a bias for 4 filters": (
        call("Conv", ones(1, 1, 5), ones(4, 1, 2), ones(1)),
        "`B` must have the shape [4], and has [1]",
    ),
    "labels of one item": (
        call("NegativeLogLikelihoodLoss", ones(2, 3), np.zeros(1, I)),
        "`the labels` must have the shape [2], and has [1]",
    ),
    "labels of one item, scores": (
        call("SoftmaxCrossEntropyLoss", ones(2, 3), np.zeros(1, I)),
        "`the labels` must have the shape [2], and has [1]",
    ),
    "a matrix product": (
        call("MatMul", ones(2, 3), ones(2, 3)),
        "the inner dimensions of a matrix product: 3 and 2 must be equal",
    ),
    "a sum": (call("Add", ones(2, 3), ones(2)), "dimensions 3 and 2 do not broadcast"),
    "a product of integers": (call("MatMulInteger", ones(2, 3, dtype=np.uint8), ones(2, 3, dtype=np.uint8)),
                              "the inner dimensions of a matrix product: 3 and 2 must be equal"),
    "a mask of another length": (
        call("Attention", *[ones(1, 1, 2, 1)] * 3, ones(3, 2), opset=23),
        "`attn_mask` of the shape [3,2] does not broadcast to [1,1,2,2]",
    ),
    "a zero point for one scale of two": (
        call("DequantizeLinear", ones(2, 2, dtype=np.int8), ones(2), np.int8(0)),
        "`the zero point` must have the shape of `the scale`, [2], and has []",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_shape_is_refused_by_the_checker_by_inference_and_by_a_run(wrong, engine):
    (model, feeds), message = WRONG[wrong]

    with pytest.raises(EvaluationError) as ran:
        run(model, feeds, engine)
    inference = Inference(model)
    inference.run()
    with pytest.raises(InferenceError) as strict:
        sabir.infer(model, strict=True)

    assert message in str(ran.value)
    assert [message in f.message for f in inference.diagnostics] == [True]
    assert message in str(strict.value)
    assert any(f.severity == "error" and message in f.message for f in findings(model))


def test_a_run_shows_types_as_the_standard_writes_them(engine):
    model, feeds = call("Add", ones(2, 3), ones(2))

    with pytest.raises(EvaluationError, match=r"on \(float\[2,3\], float\[2\]\): dimensions 3 and 2"):
        run(model, feeds, engine)


LENIENT = {  # what the text calls a scalar may come as 1-D of one element, whose meaning is clear
    "Clip": (ones(3), 2 * ones(1)),
    "CumSum": (ones(2, 3), np.array([1])),
    "Trilu": (ones(3, 3), np.array([1])),
    "Dropout": (ones(3), np.array([0.5], F)),
    "Range": (np.array([0], F), np.array([3], F), np.array([1], F)),
    "OneHot": (np.array([1]), np.array([3]), np.array([0, 1], F)),
    "HannWindow": (np.array([3]),),
    "NonMaxSuppression": (ones(1, 1, 4), ones(1, 1, 1), np.array([1]), np.array([0.5], F), np.array([0], F)),
    "Pad": (ones(3), np.array([1, 1]), np.array([2], F)),
    "QuantizeLinear": (F(3), ones(1), np.array([0], np.int8)),
}


@pytest.mark.parametrize("op", [*LENIENT])
def test_one_element_is_accepted_as_a_scalar(op, engine):
    inputs = LENIENT[op]
    first = 0 if op in {"Range", "HannWindow"} else 1
    plain = [x.reshape(()) if n >= first and x.shape == (1,) else x for n, x in enumerate(inputs)]

    got, expected = (run(*call(op, *operands), engine) for operands in (inputs, plain))

    np.testing.assert_array_equal(got[0], expected[0])


def test_a_scalar_is_an_axis_of_unsqueeze(engine):
    (got,) = run(*call("Unsqueeze", ones(2, 3), I(1)), engine)

    assert got.shape == (2, 1, 3)
    with pytest.raises(EvaluationError, match=r"`axes` must be 1-D, and has the shape \[\]"):
        run(*call("Squeeze", ones(2, 1), I(1)), engine)


def test_a_condition_of_any_rank_decides(engine):
    then = "a () => (float y) { y = Constant <value = float {1.0}> () }"
    b = Builder(21, check=False)
    graphs = [parse_graph(then.replace("1.0", number)) for number in ("1.0", "2.0")]
    b.output(b.If(b.input("c", "bool", [1, 1]), then_branch=graphs[0], else_branch=graphs[1]))
    model = Model(b.graph, b.opsets, 10)

    assert run(model, {"c": np.array([[False]])}, engine) == [2]


def test_a_product_over_no_elements_of_a_stack_is_zero(engine):
    (got,) = run(*call("MatMul", ones(1, 2, 0), ones(0, 3)), engine)

    np.testing.assert_array_equal(got, np.zeros((1, 2, 3), F))


def test_no_extreme_of_nothing_but_an_empty_answer_for_no_rows(engine):
    (got,) = run(*call("ArgMax", ones(0, 0), axis=1, keepdims=0), engine)

    assert got.shape == (0,)
    with pytest.raises(EvaluationError, match="axis 1 has no elements, and none of them is an extreme"):
        run(*call("ArgMax", ones(2, 0), axis=1), engine)


def test_an_invalid_limit_or_index_has_a_plain_message(engine):
    caches = ones(3, 1), ones(3, 1)

    with pytest.raises(EvaluationError, match="`position_ids` must be from 0 to 2"):
        run(*call("RotaryEmbedding", ones(1, 1, 2, 2), *caches, np.array([[0, 3]]), opset=23), engine)
    with pytest.raises(EvaluationError, match="`condition` selects index 2 of 2"):
        run(*call("Compress", ones(2), np.array([False, False, True])), engine)
    (got,) = run(*call("Compress", ones(2), np.array([False, True, False])), engine)
    assert got.tolist() == [1]


def test_a_session_explains_with_what_it_was_fed():
    model, feeds = call("Slice", ones(3), np.array([0, 1]), np.array([3, 3]))

    with pytest.raises(EvaluationError) as error:
        Runner(model).run(feeds)

    assert "outside [-1, 0] of a tensor of rank 1" in str(error.value)
