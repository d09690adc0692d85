"""Which calls of elementwise operators, reductions and normalisations leave native code, and why."""

import numpy as np
import pytest

from sabir.base import EvaluationError
from sabir.compilation.frontend.lowering import lower
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.frontend.prepare import prepare
from sabir.elements import element
from sabir.ir import Builder, TensorType, minimum_ir, parse_dim
from sabir.loops import ELEMENTS
from sabir.opsets import STANDARD
from sabir.runtime import Session
from sabir.syntax import parse
from support.rooms import attributes_of, type_of

ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
    CastLike Ceil Celu Clip Cos Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid
    HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or Pow PRelu
    Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh
    ThresholdedRelu Where Xor
"""
REDUCTIONS = """
    ArgMax ArgMin GlobalAveragePool GlobalLpPool GlobalMaxPool Hardmax LogSoftmax ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax
"""
NORMALISATIONS = """
    BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LpNormalization LRN
    MeanVarianceNormalization RMSNormalization
"""
ELSEWHERE = {
    "Pow": {"an exponent of integers is no known number from 0 to 8"},
}


def is_native(x):
    """Whether kernels compute with the element type of an operand."""
    return x is None or (
        not isinstance(x, (list, dict))
        and np.asarray(x).dtype.kind != "O"
        and element(np.asarray(x).dtype).name in ELEMENTS
    )


def named(kind):
    """The type with a symbol for each size above 1, one for equal sizes."""
    return TensorType(kind.element, tuple(d if d < 2 else parse_dim(f"n{d}") for d in kind.shape))


def model_of(operator, example, symbols):
    """A model of the call and its feeds; axes and modes are constants, without symbols all but the first."""
    b = Builder(example.opset)
    operands, feeds = [], []
    by_contents = not symbols or operator.name == "Dropout" or operator.name.startswith("Reduce")
    for place, x in enumerate(example.inputs):
        if x is None or (place and by_contents):
            operands.append(None if x is None else b.initializer(f"c{place}", np.asarray(x)))
            continue
        kind = type_of(x)
        operands.append(b.input(f"x{place}", named(kind) if symbols else kind))
        feeds.append(np.asarray(x))
    version = operator.at(example.opset)
    made = b.op(operator.name, *operands, outputs=example.outputs, **attributes_of(version, example))
    for place, value in enumerate(made if isinstance(made, tuple) else (made,)):
        b.output(value, f"y{place}")
    return b.model(ir_version=minimum_ir(max(example.opset, 21))), feeds


def reasons(model, feeds):
    """Why calls of a model are evaluated on arrays."""
    pattern, sizes = pattern_of([v.type for v in model.graph.inputs], feeds)
    prepared = prepare(model, pattern, sizes, STANDARD, newer_opsets=False)
    found = lower(prepared, sizes)
    return {step.reason for step in found.evaluated.values()}


@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize("name", f"{ELEMENTWISE} {REDUCTIONS} {NORMALISATIONS}".split())
def test_all_examples_become_kernels_but_those_with_a_reason(name, symbols):
    operator = STANDARD.find("", name)
    ends = {operator.versions[0].since, operator.versions[-1].since}
    examples = [
        e
        for e in operator.all_examples()
        if not operator.at(e.opset).removed
        and all(map(is_native, e.inputs))
        and (not symbols or e.opset in ends)
    ]

    found = set().union(*(reasons(*model_of(operator, e, symbols)) for e in examples))

    assert examples
    kept = {r for r in found if not r.startswith("kernels do not compute with ")}  # which attributes ask for
    assert kept == ELSEWHERE.get(name, set())


def both(text, *feeds):
    """What the compiled engine and the reference say of each feeds: outputs, or the message of an error."""
    model = parse(text)
    for feed in feeds:
        found = []
        for engine in ("compiled", "reference"):
            try:
                found.append(Session(model, engine=engine).run(feed)["y"].tolist())
            except EvaluationError as error:
                found.append(str(error))
        yield found


def test_a_search_along_an_axis_that_a_run_makes_empty_is_an_error_of_the_run():
    x = np.float32([[1, 5, 2], [7, 0, 9]])
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[N,M] x, int64[1] end) => (int64[N,1] y) {
            start = Constant <value_ints = [0]> ()
            axes = Constant <value_ints = [1]> ()
            part = Slice (x, start, end, axes)
            y = ArgMax <axis = 1> (part)
        }
    """

    (three, _), (none, message) = both(text, *({"x": x, "end": np.array([n])} for n in (3, 0)))

    assert three == [[1], [2]]
    assert "axis 1 has no elements" in none
    assert none == message


def test_operands_that_no_longer_fit_are_an_error_of_the_run():
    x = np.array([[1, 5, 2], [7, 0, 9]], np.float32)
    text = """
        <ir_version: 10, opset_import: ["" : 6]>
        g (float[N,M] x, float[K] b) => (float[N,M] y) { y = Add <broadcast = 1> (x, b) }
    """

    fits, single, (none, message) = both(text, *({"x": x, "b": x[0, :n]} for n in (3, 1, 2)))

    assert fits[0] == [[2, 10, 4], [8, 5, 11]]
    assert single[0] == [[2, 6, 3], [8, 1, 10]]
    assert "does not fit" in none
    assert none == message


def test_equal_elements_have_no_variance():
    x = np.full((2, 3, 50, 7), 0.1, np.float32)
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[N,C,H,W] x) => (float[N,C,H,W] y) { y = MeanVarianceNormalization (x) }
    """

    y = Session(parse(text), engine="compiled").run({"x": x})["y"]

    assert not y.any()


@pytest.mark.parametrize("call", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_labels_that_are_no_class(call):
    """A label is never counted from the end; one that is ignored may be anything."""
    model = parse(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] x, int64[N] t) => (float y) {{
        y = {call}<ignore_index = -5, reduction = "sum">(x, t) }}"""
    )
    session = Session(model, engine="compiled")
    x = np.zeros((2, 3), np.float32)
    assert not session.run({"x": x, "t": np.array([-5, -5])})["y"]
    assert not session.explain({"x": x.shape, "t": [2]}).evaluated
    for label in (-1, 3):
        with pytest.raises(EvaluationError, match=r"a label is outside \[0, 2\]"):
            session.run({"x": x, "t": np.array([0, label])})
