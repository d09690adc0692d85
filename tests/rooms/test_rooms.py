"""Every room's examples prove every behaviour in the room."""

import inspect
import zlib

import numpy as np
import pytest

from sabir.base import InferenceError
from sabir.inference import infer
from sabir.ir import Expr, TensorType
from sabir.schema import ADAPTERS, Unconvertible
from support.cases import each_of
from support.rooms import (
    BODIES,
    EXAMPLES,
    OPERATORS,
    VERSIONS,
    answers_of,
    bindings,
    by_operator,
    examples_of,
    inferred,
    run,
    shared_model_of,
    type_of,
    written,
)

# kernels of what adapters and bodies make take their time to compile: one example in so many is run in them
ADAPTED, EXPANDED = 8, 3


def skips(engine, operator, example, share):
    """Whether the compiled engine leaves out an example: it runs one in `share`, always the same ones."""
    number = next(i for i, each in enumerate(examples_of(operator)) if each is example)
    return engine == "compiled" and zlib.crc32(f"{operator.name} {number}".encode()) % share != 0


def same(got, expected, tolerance):
    if expected is None:  # an optional that holds nothing
        assert got is None
        return
    if isinstance(expected, list):
        assert isinstance(got, list)
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(g, e, tolerance)
        return
    if isinstance(expected, dict):
        assert isinstance(got, dict)
        assert list(got) == list(expected)
        for key, value in expected.items():
            same(np.asarray(got[key]), value, tolerance)
        return
    expected = np.asarray(expected)
    assert isinstance(got, np.ndarray)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.dtype.kind in "iubO":
        assert got.tolist() == expected.tolist()
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)


@each_of("operator, example", EXAMPLES, group=by_operator)
def test_evaluation_gives_what_the_oracle_gave(operator, example, engine):
    got = answers_of(operator, example, engine)

    assert len(got) == example.outputs
    for value in got:
        assert value is None or isinstance(value, (np.ndarray, list, dict))
    for value, expected in zip(got, example.expect or (), strict=False):
        same(value, expected, example.tolerance)


def agree(told, item, tolerance):
    """Whether contents that inference knows are what an engine computed: numpy and kernels round floats apart."""
    if not isinstance(told, float):
        return told == item
    return np.isclose(item, told, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("known", [False, True])
@each_of("operator, example", EXAMPLES, group=by_operator)
def test_inference_agrees_with_evaluation(operator, example, known, engine):
    model, feeds = shared_model_of(operator, example)
    got = answers_of(operator, example, engine)

    types = inferred(model, feeds, known=known)

    for kind, value in zip(types, got, strict=True):
        if not isinstance(kind, TensorType):
            continue
        actual = type_of(value, known=True)
        assert kind.element == actual.element
        if kind.shape is not None:
            assert len(kind.shape) == len(actual.shape)
            assert all(d is None or d == a for d, a in zip(kind.shape, actual.shape, strict=True))
        for told, item in zip(kind.known, actual.known, strict=True) if kind.known is not None else ():
            assert told is None or agree(told, item, example.tolerance)


@each_of("operator, example", EXAMPLES, group=by_operator)
def test_symbolic_shapes_hold_for_the_real_sizes(operator, example):
    model, feeds = shared_model_of(operator, example)
    got = answers_of(operator, example)

    types = inferred(model, feeds, known=True, symbolic=True)

    for kind, value in zip(types, got, strict=True):
        if isinstance(kind, TensorType) and kind.shape is not None:
            sizes = [d.substitute(bindings(feeds)) if isinstance(d, Expr) else d for d in kind.shape]
            assert len(sizes) == value.ndim
            assert all(s is None or s == a for s, a in zip(sizes, value.shape, strict=True))


@each_of("operator, example", EXAMPLES, group=by_operator)
def test_inference_without_shapes_does_not_fail(operator, example):
    model, feeds = shared_model_of(operator, example)

    types = inferred(model, feeds, known=False, drop_shapes=True)

    for kind, value in zip(types, answers_of(operator, example), strict=True):
        if isinstance(kind, TensorType) and kind.element.number:
            assert kind.element == type_of(value).element


@each_of("version", VERSIONS)
def test_every_version_has_an_example_and_the_required_behaviours(version):
    if not version.deprecated and version.find("evaluate") is not None:
        assert any(version.operator.at(e.opset) is version for e in examples_of(version.operator))
    for name in ("infer", "evaluate"):
        assert version.find(name) is not None or version.why_absent(name), f"{version}: {name}"
    for name in ADAPTERS:
        if version.previous is not None and not version.deprecated:
            assert version.find(name) is not None or version.why_absent(name), f"{version}: {name}"


@each_of("version", VERSIONS)
def test_functions_have_the_signature_of_their_operator(version):
    for name in ("infer", "evaluate"):
        function = version.find(name)
        if function is None:
            continue
        parameters = list(inspect.signature(function).parameters.values())
        positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
        rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"call"}
        attributes = {a.name for a in version.attributes}
        if name == "evaluate":
            single = [i for i in version.inputs if not i.variadic]
            assert rest or len(positional) >= len(single), f"{version} {name} takes too few inputs"
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                missing = {a.name for a in version.attributes if not a.legacy} - keywords
                assert not missing, f"{version} {name} ignores {missing}"
        required = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty} - {
            "call"
        }
        assert required <= attributes, f"{version} {name} takes {required - attributes}"


@each_of("version", VERSIONS)
def test_every_version_and_port_is_described(version):
    assert version.operator.summary
    assert version.changes
    newest = version.operator.versions[-1]
    for part in (*newest.inputs, *newest.outputs, *(a for a in newest.attributes if not a.legacy)):
        assert part.doc, f"{newest}: {part.name} has no clause"


@pytest.mark.parametrize("direction", ["upgrade", "downgrade"])
@each_of("operator, example", EXAMPLES, group=by_operator)
def test_adapters_keep_the_value(operator, example, direction, engine):
    here = operator.at(example.opset)
    later = [v for v in operator.versions if v.since > here.since]
    boundary = (later[0] if later else None) if direction == "upgrade" else (here if here.previous else None)
    if boundary is None or direction not in boundary.behaviours or operator.random:
        return  # nothing to cross: the history ends here, or the absence is declared and tested as such
    if skips(engine, operator, example, ADAPTED):
        return
    target = boundary.since if direction == "upgrade" else boundary.since - 1
    expected = answers_of(operator, example, engine)

    try:
        model, feeds = written(boundary.behaviours[direction], example, here, target)
        infer(model, strict=True)
    except Unconvertible as reason:
        assert str(reason)
        return
    except InferenceError as reason:
        # an adapter need not know the types of the older version: whoever runs it infers what it makes
        assert direction == "downgrade"
        assert "does not admit" in str(reason)
        return

    for got, wanted in zip(run(model, feeds, engine), expected, strict=True):
        same(got, wanted, max(example.tolerance, 1e-6))


@each_of("operator, example", BODIES, group=by_operator)
def test_bodies_equal_evaluation(operator, example, engine):
    if skips(engine, operator, example, EXPANDED):
        return
    here = operator.at(example.opset)
    expected = answers_of(operator, example, engine)

    try:
        model, feeds = written(here.find("body"), example, here, here.since)
    except Unconvertible as reason:
        assert operator.domain  # the standard's bodies are complete
        assert str(reason)
        return

    infer(model, strict=True)  # its nodes take the types that they are given
    for got, wanted in zip(run(model, feeds, engine), expected, strict=True):
        same(got, wanted, max(example.tolerance, 1e-6))


def test_there_are_rooms():
    assert len(OPERATORS) >= 5
