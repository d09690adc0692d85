"""The gradients of all rooms that have one: their examples in double precision, against central differences."""

import inspect
from itertools import starmap

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.differentiation import differentiate
from sabir.ir import TensorType, tensor_type
from sabir.opsets import STANDARD
from sabir.schema import Example
from support.cases import each_of
from support.gradients import (
    IN_FLOAT,
    LEAST_OPSET,
    ROOMS,
    SEED,
    SINGLE,
    Case,
    case_of,
    cases_of,
    check,
    check_twice,
    computed,
    differentiable_operators,
    fed,
    float_examples,
    gradient_model,
    is_float,
    runs_alike,
    runs_in_float,
    shared_gradient_model,
)

CONTAINERS = {  # they have no differences of their own; tests of sequences and loops have them
    "ConcatFromSequence", "Optional", "OptionalGetElement", "SequenceAt", "SequenceConstruct", "SequenceErase",
    "SequenceInsert", "SequenceMap", "SplitToSequence",
}  # fmt: skip
WITHOUT_FLOAT_INPUTS = {"If", *CONTAINERS}  # branches capture; tests of subgraphs have them
NOT_IN_ONNXRUNTIME = {
    "Attention",
    "Celu",
    "CumProd",
    "Dropout",
    "Loop",  # it wants the condition to be a scalar; tests of loops compare with it
    "RMSNormalization",
    "SwiGLU",
    "Swish",
    "TensorScatter",
}  # random, or newer than it
NOT_IN_FLOAT16 = {"Range"}  # before operator set 27
NAMES = sorted(set(ROOMS) - WITHOUT_FLOAT_INPUTS - SINGLE)
CALLS = [
    pytest.param(name, i, id=f"{name}-{e.opset}-{i}")
    for name in NAMES
    for i, e in enumerate(float_examples(name))
]


def by_name(name, _):
    return name


def seeded(case, of, wrt):
    """The model with gradients and its feeds."""
    shape = computed(case.model, case.feeds)[of].shape
    seed = np.random.default_rng(7).standard_normal(shape)
    found = shared_gradient_model(case.model, of, tuple(wrt))
    return found, fed(found, {**case.feeds, SEED: seed})


def test_the_rooms():
    assert {"MatMul", "Softmax", "If", "Scan"} <= set(ROOMS)
    for name in ROOMS:  # the gradient is written once, for operator set 18 or the first that has the operator
        operator = STANDARD.find("", name)
        newer = [v.since for v in operator.versions if "gradient" in v.behaviours]
        assert newer[0] == operator.at(max(LEAST_OPSET, operator.versions[0].since)).since


@each_of("name, place", CALLS, group=by_name)
def test_gradients_equal_central_differences(name, place):
    case = case_of(name, place)
    for of, wrt in case.pairs:
        check(case.model, case.feeds, of, wrt, found=shared_gradient_model(case.model, of, tuple(wrt)))


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_IN_ONNXRUNTIME))
def test_onnxruntime_computes_the_same(name):
    """It need not run every example; of each room it runs one."""
    for case in cases_of(name):
        if runs_alike(case.model, case.feeds):
            for of, wrt in case.pairs:
                check(
                    case.model, case.feeds, of, wrt, found=shared_gradient_model(case.model, of, tuple(wrt))
                )
            return
    if any(map(runs_in_float, cases_of(name))):
        return
    pytest.fail(f"onnxruntime runs no example of {name}")


@each_of("name", NAMES)
def test_a_gradient_holds_at_the_newest_operator_set(name):
    operator = STANDARD.find("", name)
    example = float_examples(name)[0]
    newest = STANDARD.newest_opset("")
    if operator.at(newest).find("gradient") is operator.at(example.opset).find("gradient"):
        now = Case(operator, Example(newest, *example.inputs, outputs=example.outputs, **example.attributes))
        older = case_of(name, 0)
        for pair in older.pairs:
            results = sabir.evaluate(*seeded(now, *pair))
            for key, value in sabir.evaluate(*seeded(older, *pair)).items():
                np.testing.assert_allclose(results[key], value, rtol=1e-6, atol=1e-6)


@each_of("name, place", CALLS, group=by_name)
def test_gradients_with_shapes_that_only_a_run_knows(name, place):
    case = case_of(name, place)
    exact = [seeded(case, *pair) for pair in case.pairs]
    expected = list(starmap(computed, exact))
    for known in (True, False):
        model = with_open_shapes(case, ranks=known)
        for (of, wrt), (_, feeds), results in zip(case.pairs, exact, expected, strict=True):
            try:
                found = differentiate(model, of, wrt, seed=SEED, names={n: f"d_{of}_d_{n}" for n in wrt})
            except UnsupportedError as error:
                assert "needs the rank of" in str(error)
                assert not known
                continue
            for output, value in sabir.evaluate(found, feeds).items():
                np.testing.assert_allclose(value, results[output], rtol=1e-12, atol=1e-12)


def with_open_shapes(case, *, ranks):
    """The model with symbols for the sizes of its floating-point inputs, or without their ranks."""
    model = case.model.clone()
    for value in model.graph.inputs:
        x = case.feeds[value.name]
        if is_float(x):
            dims = [f"{value.name}_{i}" for i in range(x.ndim)]
            value.type = tensor_type("double", dims) if ranks else TensorType(value.type.element)
    for value in model.graph.outputs:
        value.type = tensor_type(value.type.element)
    return model


@each_of("name, place", CALLS, group=by_name)
def test_every_operator_in_a_gradient_has_a_gradient(name, place):
    case = case_of(name, place)
    for of, wrt in case.pairs:
        used = differentiable_operators(shared_gradient_model(case.model, of, tuple(wrt)))
        assert used <= set(ROOMS), used - set(ROOMS)


@pytest.mark.parametrize(
    "name", sorted(set(NAMES) - IN_FLOAT)
)  # single precision has no digits left for differences
def test_second_derivatives_equal_central_differences(name):
    case = next(cases_of(name))
    for of, wrt in case.pairs:
        check_twice(case.model, case.feeds, of, wrt)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float16, 0.1)])
@each_of("name", NAMES)
def test_gradients_of_narrower_types(name, dtype, tolerance):
    """They have the type of the input, and about the values of those in double precision."""
    if dtype is np.float16 and name in NOT_IN_FLOAT16:
        return
    case = next(cases_of(name))
    for of, wrt in case.pairs:
        found = gradient_model(case.narrowed(dtype), of, wrt)
        exact, all_feeds = seeded(case, of, wrt)
        results = sabir.evaluate(found, fed(found, all_feeds))
        for output, value in computed(exact, all_feeds).items():
            fits = np.abs(value) < np.finfo(dtype).max
            scale = tolerance * np.abs(value[fits]).max(initial=1)
            near = results[output].astype(np.float64)[fits]
            np.testing.assert_allclose(near, value[fits], rtol=tolerance, atol=scale)


@each_of("name", ROOMS)
def test_the_signature_of_a_gradient(name):
    """It takes the builder, then the operator's inputs, and attributes by keyword."""
    version = STANDARD.find("", name).versions[-1]
    parameters = [*inspect.signature(version.find("gradient")).parameters.values()]
    assert parameters[0].name == "g"
    inputs = [p for p in parameters[1:] if p.kind in {p.POSITIONAL_ONLY, p.VAR_POSITIONAL}]
    assert len(inputs) == len(version.inputs) or inputs[-1].kind is inspect.Parameter.VAR_POSITIONAL
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"call"}
    assert keywords <= {a.name for a in version.attributes}
