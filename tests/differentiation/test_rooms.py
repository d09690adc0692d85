"""The gradients of all rooms that have one: their examples in double precision, against central differences."""

import inspect

import numpy as np
import pytest

import sabir
from sabir.base import SchemaError, UnsupportedError
from sabir.ir import TensorType, tensor_type
from sabir.opsets import STANDARD
from sabir.schema import Example
from support.gradients import (
    ROOMS,
    SEED,
    check,
    differentiable_operators,
    float_examples,
    gradient_model,
    is_float,
)
from support.rooms import model_of

# its branches capture, and containers have no differences of their own; tests of subgraphs and loops have them
WITHOUT_FLOAT_INPUTS = {"If"}
WITHOUT_ONNXRUNTIME = {"Loop"}  # it wants the condition to be a scalar; tests of loops compare with it
CONTAINERS = {
    "ConcatFromSequence", "Optional", "OptionalGetElement", "SequenceAt", "SequenceConstruct", "SequenceErase",
    "SequenceInsert", "SequenceMap", "SplitToSequence",
}  # fmt: skip
SUBJECTS = sorted(set(ROOMS) - CONTAINERS)
CALLS = [
    pytest.param(STANDARD.find("", name), example, id=f"{name}-{example.opset}-{i}")
    for name in SUBJECTS
    for i, example in enumerate(float_examples(name))
]


def differentiable(operator, example):
    """The inputs of the example's model that have a gradient."""
    version = operator.at(example.opset)
    ports = [*version.inputs, *[version.inputs[-1]] * len(example.inputs)]
    pairs = enumerate(zip(example.inputs, ports, strict=False))
    return [f"i{i}" for i, (x, port) in pairs if is_float(x) and port.differentiable is not False]


def call(operator, example):
    """A model of the example, its feeds, and pairs of an output with the inputs that it depends on."""
    model, feeds = model_of(operator, example)
    wrt, pairs = differentiable(operator, example), []
    for output in model.graph.outputs:
        if output.type.element.is_float:
            reach = [n for n in wrt if depends(model, output.name, n)]
            pairs.append((output.name, reach))
    return model, feeds, pairs


def depends(model, of, name):
    try:
        gradient_model(model, of, [name])
    except SchemaError as error:
        assert f"does not depend on '{name}'" in str(error)
        return False
    return True


def test_the_rooms():
    assert {"MatMul", "Softmax", "If", "Scan"} <= set(ROOMS)
    assert set(SUBJECTS) - {p.values[0].name for p in CALLS} == WITHOUT_FLOAT_INPUTS
    for name in ROOMS:  # the gradient is written once, for operator set 18, and holds from there on
        versions = STANDARD.find("", name).versions
        assert [v for v in versions if "gradient" in v.behaviours] == [STANDARD.find("", name).at(18)]


@pytest.mark.parametrize(("operator", "example"), CALLS)
def test_gradients_equal_central_differences(operator, example):
    model, feeds, pairs = call(operator, example)
    for of, wrt in pairs:
        if not np.isfinite(sabir.evaluate(model, feeds)[of]).all():
            feeds = {
                n: np.where(x == 0, 1.5, x) if is_float(x) else x for n, x in feeds.items()
            }  # a division
        check(model, feeds, of, wrt)


@pytest.mark.parametrize("name", sorted(set(SUBJECTS) - WITHOUT_FLOAT_INPUTS - WITHOUT_ONNXRUNTIME))
def test_onnxruntime_computes_the_same(name):
    """It need not run every example; of each room it runs one."""
    for example in float_examples(name):
        model, feeds, pairs = call(STANDARD.find("", name), example)
        finite = {n: np.where(x == 0, 1.5, x) if is_float(x) else x for n, x in feeds.items()}
        if all(check(model, finite, of, wrt)[2] for of, wrt in pairs):
            return
    pytest.fail(f"onnxruntime runs no example of {name}")


@pytest.mark.parametrize("name", sorted(set(SUBJECTS) - WITHOUT_FLOAT_INPUTS))
def test_a_gradient_holds_at_the_newest_operator_set(name):
    example = float_examples(name)[0]
    newest = Example(
        STANDARD.newest_opset(""), *example.inputs, outputs=example.outputs, **example.attributes
    )
    older, now = (call(STANDARD.find("", name), e) for e in (example, newest))
    for pair in now[2]:
        results = sabir.evaluate(*seeded(*now[:2], *pair))
        for key, value in sabir.evaluate(*seeded(*older[:2], *pair)).items():
            np.testing.assert_array_equal(results[key], value)


@pytest.mark.parametrize(("operator", "example"), CALLS)
@pytest.mark.parametrize("shapes", ["symbols", "unknown ranks"])
def test_gradients_with_shapes_that_only_a_run_knows(operator, example, shapes):
    model, feeds, pairs = call(operator, example)
    expected = [sabir.evaluate(*seeded(model, feeds, *pair)) for pair in pairs]
    for value in model.graph.inputs:
        if is_float(feeds[value.name]):
            dims = [f"{value.name}_{i}" for i in range(feeds[value.name].ndim)]
            value.type = (
                TensorType(value.type.element) if shapes == "unknown ranks" else tensor_type("double", dims)
            )
    for value in model.graph.outputs:
        value.type = tensor_type(value.type.element)
    for pair, results in zip(pairs, expected, strict=True):
        try:
            found, all_feeds = seeded(model, feeds, *pair, checked=False)  # it misses declared shapes
        except UnsupportedError as error:
            assert "needs the rank of" in str(error)
            assert shapes == "unknown ranks"
            continue
        for name, value in sabir.evaluate(found, all_feeds).items():
            np.testing.assert_allclose(value, results[name], rtol=1e-12, atol=1e-12)


def seeded(model, feeds, of, wrt, *, checked=True):
    shape = sabir.evaluate(model, feeds)[of].shape
    return gradient_model(model, of, wrt, checked=checked), {
        **feeds,
        SEED: np.random.default_rng(7).standard_normal(shape),
    }


@pytest.mark.parametrize(("operator", "example"), CALLS)
def test_every_operator_in_a_gradient_has_a_gradient(operator, example):
    model, _, pairs = call(operator, example)
    for of, wrt in pairs:
        used = differentiable_operators(gradient_model(model, of, wrt))
        assert used <= set(ROOMS), used - set(ROOMS)


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_gradient_of_a_gradient_exists(name):
    """A gradient is linear in the gradient that it takes, so it has a derivative by that."""
    for example in float_examples(name)[:3]:
        model, feeds, pairs = call(STANDARD.find("", name), example)
        for of, wrt in pairs:
            found, all_feeds = seeded(model, feeds, of, wrt)
            if all(np.isfinite(v).all() for v in sabir.evaluate(found, all_feeds).values()):
                for x in wrt:
                    twice = gradient_model(found, f"d_{of}_d_{x}", [SEED], seed="weights")
                    weights = np.random.default_rng(3).standard_normal(feeds[x].shape)
                    sabir.evaluate(twice, {**all_feeds, "weights": weights})


@pytest.mark.parametrize("name", ROOMS)
def test_the_signature_of_a_gradient(name):
    """It takes the builder, then the operator's inputs, and attributes by keyword."""
    version = STANDARD.find("", name).versions[-1]
    parameters = [*inspect.signature(version.find("gradient")).parameters.values()]
    assert parameters[0].name == "g"
    inputs = [p for p in parameters[1:] if p.kind in {p.POSITIONAL_ONLY, p.VAR_POSITIONAL}]
    assert len(inputs) == len(version.inputs)
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert keywords <= {a.name for a in version.attributes}
