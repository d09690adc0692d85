"""Every example of every room through onnxruntime too, where it has a kernel for the call."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from support.engines import ENGINES
from support.oracles import RUNTIME_OPSET, by_onnxruntime, cells, crashes, difference, spans
from support.rooms import EXAMPLES, answers_of

pytest.importorskip("onnxruntime")

NAN = "onnxruntime's order of comparisons loses a NaN; the reference implementation (numpy) passes it on"
WRAPS = "an integer overflows: onnxruntime reduces through another type, here the type wraps as numpy's do"
ENDS = "the reference implementation keeps infinities where a bound is absent; onnxruntime's are finite"
ZERO_POINT = "int32 has no zero point but 0; with another, here the difference is taken without wrapping"
EMPTY_AXES = "no axes are given, which is not the same as not given: nothing is squeezed"
CANCELS = "the variance of large numbers: onnxruntime subtracts squares, which cancel"
STILL = "a variance of zero: the epsilon in the operator's function body makes 0, onnxruntime divides by 0"
BASE = "base values are added to every target, also where no leaf of the row has it"
REPEATED = "of a repeated key the last counts in the reference implementation, the first in onnxruntime"
ONE_EMPTY = "between delimiters there is one empty string in an empty one, as numpy splits"
SCALAR = "a scalar has no axis, so its indices have 0 rows; the operator's text says so"
# the calls that onnxruntime answers otherwise than the standard does, by operator and opset
REASONS = {
    "AffineGrid": ("the one pixel of an axis is at its start, as in the reference; there at its end", 20),
    "ArgMax": (NAN, 12, 13),
    "ArgMin": (NAN, 12, 13),
    "Attention": ("masked scores are -inf by the function body; onnxruntime's are the lowest number", 23),
    "BatchNormalization": ("saved_var is a variance by its name; onnxruntime gives its inverse root", 7, 9),
    "Clip": (ENDS, 11, 12, 13),
    "DequantizeLinear": (ZERO_POINT, 10, 13, 19, 21, 23, 24, 25),
    "DynamicQuantizeLinear": ("the function body divides the range, 0 or NaN too; there it is mended", 11),
    "GlobalMaxPool": (NAN, 1, 22),
    "GroupNormalization": (CANCELS, 18, 21),
    "Hardmax": (NAN, 13),
    "LogSoftmax": (NAN, 13),
    "MaxPool": (NAN, 10),
    "MaxRoiPool": (NAN, 1),
    "MaxUnpool": ("places count in what was pooled; onnxruntime counts in output_shape", 9, 11, 22),
    "MeanVarianceNormalization": (STILL, 1, 9, 13),
    "NonMaxSuppression": ("boxes that score less than the threshold go, by the text: one at it stays", 11),
    "NonZero": (SCALAR, 9, 13),
    "OneHot": ("before opset 11 a negative index is out of range, a row of off values", 9),
    "QuantizeLinear": ("the quotient is rounded to `precision`; onnxruntime ignores it", 23, 24, 25),
    "ReduceL1": (WRAPS, 18),
    "ReduceMax": (NAN, 13, 20),
    "ReduceMean": ("the mean of nothing is undefined by the text; 0 / 0 here, 0 there", 18),
    "ReduceMin": (NAN, 13, 20),
    "ReduceProd": (WRAPS, 18),
    "ReduceSum": (WRAPS, 13),
    "ReduceSumSquare": (WRAPS, 18),
    "Shrink": ("large integers keep their digits here; onnxruntime goes through float", 9),
    "Sign": (NAN, 9, 13),
    "SplitToSequence": ("keepdims is ignored where split is given; the operator's text says so", 11, 24),
    "Squeeze": (EMPTY_AXES, 1, 11, 13),
    "StringSplit": (ONE_EMPTY, 20),
    "TopK": (NAN, 11),
    "Unique": (NAN, 11),
    "ai.onnx.ml.LabelEncoder": (REPEATED, 2, 4),
    "ai.onnx.ml.LinearRegressor": ("onnxruntime ignores post_transform where there is one target", 1),
    "ai.onnx.ml.Normalizer": ("doubles are normalized as doubles; onnxruntime's overflow as floats", 1),
    "ai.onnx.ml.TreeEnsemble": ("1 is SOFTMAX and 2 LOGISTIC by the text; onnxruntime has them swapped", 5),
    "ai.onnx.ml.TreeEnsembleClassifier": ("the label is that of the highest score; there of a sign", 1, 3),
    "ai.onnx.ml.TreeEnsembleRegressor": (BASE, 1, 3),
    "com.microsoft.Unique": ("NaN equals NaN, as in Unique of the standard; there each is unique", 1),
    "com.microsoft.Sampling": ("`filtered_logits` is a declared output; onnxruntime leaves it empty", 1),
    "com.microsoft.CDist": ("distances of close rows: onnxruntime subtracts squared norms, which cancel", 1),
    "com.microsoft.MatMulBnb4": ("with transB=0 it is a product by W; onnxruntime reads W in other sizes", 1),
    "com.microsoft.MoE": ("halves are multiplied as floats; with k=1, onnxruntime adds biases alone", 1),
    "com.microsoft.QMoE": (
        "`normalize_routing_weights` is 0 by default; there weights are always divided",
        1,
    ),
    "com.microsoft.MatMulNBits": ("g_idx is the block of a zero point too; packed ones are others there", 1),
}
DECIDED = {(name, opset): reason for name, (reason, *opsets) in REASONS.items() for opset in opsets}
DOCUMENT = Path(__file__).parents[2] / "docs" / "oracles.md"


@pytest.fixture(scope="module")
def written():
    return cells(DOCUMENT.read_text("utf-8"))


def groups():
    """The examples by operator, each with its number among all that the room has."""
    for operator, params in itertools.groupby(EXAMPLES, key=lambda p: p.values[0]):
        name = f"{operator.domain}.{operator.name}".removeprefix(".")
        yield pytest.param(name, [(int(p.id.rpartition("-")[2]), *p.values) for p in params], id=name)


@pytest.mark.parametrize(("name", "calls"), list(groups()))
def test_onnxruntime_computes_the_same(name, calls, written):
    theirs = {number: by_onnxruntime(operator, example) for number, operator, example in calls}
    for engine in ENGINES:
        compared(name, calls, theirs, written, engine)


def compared(name, calls, theirs, written, engine):
    """Compare what an engine computes of an operator's examples with what onnxruntime does."""
    found, agreed = {}, {}
    for number, operator, example in calls:
        if theirs[number] is None:  # outside its reach
            continue
        with np.errstate(all="ignore"):
            ours = answers_of(operator, example, engine)
        told = difference(ours, theirs[number], example, operator)
        if told:
            found.setdefault((name, example.opset), []).append(f"example {number} ({engine}): {told}")
        else:
            agreed.setdefault(operator.at(example.opset).since, []).append(number)

    assert not {key: told for key, told in found.items() if key not in DECIDED}
    assert found.keys() == {key for key in DECIDED if key[0] == name}, "an entry is not needed"
    operator = calls[0][1]
    stated = {since: w[1] for (*key, since), w in written.items() if key == [operator.domain, operator.name]}
    assert stated == {v.since: spans(agreed.get(v.since, [])) for v in operator.versions}, (
        "run tools/write_oracles.py"
    )


def test_decisions_name_operators():
    assert {name for name, _ in DECIDED} <= {p.id for p in groups()}
    assert all(opset <= RUNTIME_OPSET or "." in name for name, opset in DECIDED)


def test_what_crashes_it_is_kept_to_a_few():
    assert sum(bool(crashes(*p.values)) for p in EXAMPLES) <= 60
