# ruff: file-ignore[banned-api]  the official cases and the light models are onnx's
"""Conversion proved by execution: a model converted to another opset computes what it computed before."""

from __future__ import annotations

import functools
import pathlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import sabir
from sabir.inference import infer
from sabir.ir import TensorType
from sabir.opsets import STANDARD
from support.rooms import EXAMPLES, OPERATORS, model_of, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.schema import Operator

LEAST = 1e-6  # the tolerance, where an example does not ask for more
OFFICIAL = {"float16": 2e-3, "bfloat16": 2**-6}  # that of the official cases with results of such types
MOST_ELEMENTS = 1024  # of a constant that a graph states rather than takes as an input
CONVERTED = ("", "ai.onnx.ml")  # the domains that have more than one version


class Case(NamedTuple):
    """A model of which the calls of a domain are converted, and feeds for it."""

    name: str
    model: sabir.Model
    feeds: dict[str, Any]
    domain: str
    tolerance: float

    @property
    def opset(self) -> int:
        """The version that the model has of the domain."""
        return next(v for d, v in self.model.opsets.items() if sabir.ir.canonical_domain(d) == self.domain)


# where cases come from


def example_cases(operator: Operator) -> Iterator[Case]:
    """The examples of a room, in both variants of each."""
    for parameter in _examples()[operator]:
        _, example = parameter.values
        model, feeds = model_of(operator, example)
        tolerance = max(example.tolerance, LEAST)
        yield from variants(Case(parameter.id, model, feeds, operator.domain, tolerance))


def room_cases(operator: Operator) -> Iterator[Case]:
    """The examples of a room that any run computes alike: not those of an operator that draws random numbers."""
    if operator.domain in CONVERTED and not operator.random:
        yield from example_cases(operator)


@functools.cache
def _examples() -> dict[Operator, list[Any]]:
    found: dict[Operator, list[Any]] = {o: [] for o in OPERATORS}
    for parameter in EXAMPLES:
        found[parameter.values[0]].append(parameter)
    return found


@functools.cache
def official() -> list[Any]:
    """The official node cases that have data and draw no random numbers."""
    from support.values import repeatable_cases  # ruff: ignore[import-outside-top-level]  rooms need no onnx

    return repeatable_cases()


def official_cases(case: Any) -> Iterator[Case]:
    """An official case for each domain that its nodes call and that has several versions, in both variants."""
    for domain in CONVERTED:
        model = sabir.loads(case.model.SerializeToString())
        called = {sabir.ir.canonical_domain(n.domain) for n in model.graph.all_nodes()}
        if domain in called:
            results = [_array(x) for x in case.data_sets[0][1]]
            names = {x.dtype.name for x in results if isinstance(x, np.ndarray)}
            tolerance = max((OFFICIAL.get(name, 1e-5) for name in names), default=1e-5)
            yield from variants(Case(case.name, model, _official_feeds(case, model), domain, tolerance))


def _official_feeds(case: Any, model: sabir.Model) -> dict[str, Any]:
    ports = [v for v in model.graph.inputs if v not in model.graph.initializers]
    return {p.name: _array(x) for p, x in zip(ports, case.data_sets[0][0], strict=True)}


def _array(x: Any) -> Any:
    from onnx import TensorProto, numpy_helper  # ruff: ignore[import-outside-top-level]  rooms need no onnx

    return numpy_helper.to_array(x) if isinstance(x, TensorProto) else x


def light_models() -> list[pathlib.Path]:
    """The files of the light models in the onnx wheel, all of opset 9."""
    import onnx  # ruff: ignore[import-outside-top-level]  rooms need no onnx

    return sorted((pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


def light_case(path: pathlib.Path) -> Case:
    """A light model with the input that the official runner makes: a ramp from 0 to 1."""
    model = sabir.load(path)
    (port,) = [v for v in model.graph.inputs if v not in model.graph.initializers]
    shape = tuple(int(d) for d in port.type.shape)
    size = int(np.prod(shape))
    ramp = (np.arange(size).astype(np.float32) / size).reshape(shape)
    return Case(path.stem, model, {port.name: ramp}, "", 1e-4)


def variants(case: Case) -> Iterator[Case]:
    """A case, and again with its small operands of rank 0 and 1 as initializers, where it has any."""
    yield case
    constants = {name: x for name, x in case.feeds.items() if _is_small(case.model.graph.value(name).type, x)}
    if not constants:
        return
    model = case.model.clone()
    model.ir_version = max(model.ir_version, 4)  # before, initializers are inputs
    for name, array in constants.items():
        value = model.graph.value(name)
        model.graph.inputs.remove(value)
        model.graph.set_initializer(value, array)
    feeds = {name: x for name, x in case.feeds.items() if name not in constants}
    yield case._replace(name=f"{case.name} of constants", model=model, feeds=feeds)


def _is_small(kind: object, x: object) -> bool:
    return (
        isinstance(kind, TensorType) and isinstance(x, np.ndarray) and x.ndim <= 1 and x.size <= MOST_ELEMENTS
    )


# the proof


def targets(domain: str, here: int) -> list[int]:
    """Every version of a domain but the one that a model has."""
    newest = STANDARD.newest_opset(domain)
    return [version for version in range(1, newest + 1) if version != here]


class Proof:
    """Converts one case to other versions, and raises AssertionError where a result is not equivalent.

    Results that differ in nothing but the imported version, and bind the same operator versions, are proved
    once.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.expected = run(case.model, case.feeds)
        self._errors = errors_of(case.model)
        self._proved: set[Any] = set()

    def to(self, version: int) -> sabir.Model | sabir.ConversionError:
        """Return the proved result for a version, or the error that names what stands in the way."""
        case = self.case
        got = converted(case.model, case.domain, version)
        if isinstance(got, sabir.Model):
            key = _key(got)
            if key not in self._proved:
                assert_same_values(got, case.feeds, self.expected, case.tolerance)
                assert_no_more_errors(got, self._errors)
                self._proved.add(key)
        return got


def converted(model: sabir.Model, domain: str, version: int) -> sabir.Model | sabir.ConversionError:
    """The model in another version of a domain, or the error that names what stands in the way."""
    try:
        return sabir.convert(model, opsets={domain: version})
    except sabir.ConversionError as error:
        assert error.refusals, error
        assert all(r.reason and r.operator and r.where.steps for r in error.refusals), error
        return error


def _key(model: sabir.Model) -> Any:
    """What a model computes: its bytes without the imports, and the operator versions that its nodes bind."""
    bare = sabir.ir.Model(model.graph, {}, ir_version=14, functions=list(model.functions))
    versions = {
        (n.domain, n.op, STANDARD.find_version(n.domain, n.op, model.opset(n.domain)))
        for n in model.graph.all_nodes()
    }
    return sabir.dumps(bare), frozenset(versions)


def errors_of(model: sabir.Model) -> frozenset[str]:
    """The rules that a model violates, without warnings."""
    return frozenset(f.rule for f in sabir.findings(model) if f.severity == "error")


def assert_no_more_errors(model: sabir.Model, before: frozenset[str]) -> None:
    """The checker finds no error that it did not find before the conversion."""
    found = [f for f in sabir.findings(model) if f.severity == "error" and f.rule not in before]
    assert not found, "; ".join(map(str, found))


def assert_same_values(model: sabir.Model, feeds: dict, expected: list, tolerance: float) -> None:
    """The model is valid and computes the expected values."""
    infer(model.clone(), strict=True)
    got = run(model, feeds)
    assert len(got) == len(expected), f"{len(got)} outputs, not {len(expected)}"
    for value, wanted in zip(got, expected, strict=True):
        assert_equal(value, wanted, tolerance)


def assert_equal(got: object, expected: object, tolerance: float) -> None:
    """Equal types, shapes and elements, floats within a tolerance."""
    if expected is None:
        assert got is None, f"{got}, not None"
    elif isinstance(expected, list):
        assert isinstance(got, list), f"{type(got).__name__}, not a sequence"
        assert len(got) == len(expected), f"{len(got)} items, not {len(expected)}"
        for g, e in zip(got, expected, strict=True):
            assert_equal(g, e, tolerance)
    elif isinstance(expected, dict):
        assert isinstance(got, dict), f"{type(got).__name__}, not a map"
        assert list(got) == list(expected), f"keys {list(got)}, not {list(expected)}"
        for key, value in expected.items():
            assert_equal(got[key], value, tolerance)
    else:
        _assert_equal_arrays(np.asarray(got), np.asarray(expected), tolerance)


def _assert_equal_arrays(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert got.dtype == expected.dtype, f"{got.dtype}, not {expected.dtype}"
    assert got.shape == expected.shape, f"shape {got.shape}, not {expected.shape}"
    if expected.dtype.kind in "iubOU":
        assert got.tolist() == expected.tolist(), f"{got.ravel()[:8]}, not {expected.ravel()[:8]}"
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
