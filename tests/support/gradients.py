"""Gradients compared with central differences, and models with gradients run by Sabir and by onnxruntime."""

from __future__ import annotations

import re

import numpy as np
import onnxruntime

import sabir
from sabir.differentiation import differentiate
from sabir.ir import verify
from sabir.opsets import STANDARD
from sabir.schema import Example
from support.rooms import EXAMPLES

ROOMS = sorted({str(o.name) for o in STANDARD if not o.domain and o.versions[-1].find("gradient")})
LEAST_OPSET, NEWEST_OF_ONNXRUNTIME = 18, 23
SMALL = 64  # up to so many elements the whole Jacobian is compared
STEP, DIRECTIONS, DRAWS = 1e-3, 3, 5
SEED = "seed"


def float_examples(name):
    """The different examples of a room with floating-point inputs, in double precision.

    Each is at the first operator set from 18 on that has it: a gradient holds for the later ones too.
    """
    found = {}
    for operator, example in (p.values for p in EXAMPLES):
        opset = max(example.opset, LEAST_OPSET)
        if operator.name != name or operator.domain or operator.at(example.opset) is not operator.at(opset):
            continue
        inputs = [doubled(x) for x in example.inputs]
        if not any(is_float(x) for x in inputs):
            continue
        attributes = {
            key: re.sub(r"\bfloat\b", "double", value) if isinstance(value, str) else value
            for key, value in example.attributes.items()
        }
        key = repr((
            [(np.asarray(x).dtype, np.asarray(x).tolist()) for x in inputs],
            attributes,
            example.outputs,
        ))
        found.setdefault(key, Example(opset, *inputs, outputs=example.outputs, **attributes))
    return list(found.values())


def is_float(x):
    return x is not None and not isinstance(x, (list, dict)) and np.asarray(x).dtype == np.float64


def doubled(x):
    """A floating-point array in double precision, with finite numbers in the place of infinities and NaN."""
    if isinstance(x, (list, dict)) or x is None or np.asarray(x).dtype.kind not in "fV":
        return x
    wide = np.asarray(x).astype(np.float64)
    finite = wide[np.isfinite(wide)]
    return np.where(np.isfinite(wide), wide, finite[0] if finite.size else 0.5)


def gradient_model(model, of, wrt, *, seed=SEED, checked=True):
    """The model with gradients, valid by its links, by its declared types and by the checker."""
    found = differentiate(model, of, wrt, seed=seed, names={name: f"d_{of}_d_{name}" for name in wrt})
    verify(found)
    if checked:
        sabir.check(found)
    for name, output in zip(wrt, list(found.graph.outputs)[-len(wrt) :], strict=True):
        assert output.name == f"d_{of}_d_{name}"
        assert output.type.element == model.graph.value(name).type.element
    return found


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(sabir.dumps(model), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def runs_alike(model, feeds):
    """Whether onnxruntime runs a model without gradients, and computes the same."""
    if model.opset() > NEWEST_OF_ONNXRUNTIME:
        return False
    try:
        theirs = by_onnxruntime(model, feeds)
    except Exception:  # ruff: ignore[blind-except]  its errors have no common base
        return False
    ours = sabir.evaluate(model, feeds)
    return all(theirs[n].shape == x.shape and np.allclose(theirs[n], x, rtol=1e-9) for n, x in ours.items())


def check(model, feeds, of, wrt, *, compare=True):
    """Compare the gradients with differences, and with onnxruntime's where it runs the model.

    Return the model with gradients, its feeds, and whether onnxruntime ran it.
    """
    random = np.random.default_rng(len(of) + sum(x.size for x in feeds.values()))
    feeds = smooth(model, feeds, of, wrt, random)
    y = sabir.evaluate(model, feeds)[of]
    assert np.isfinite(y).all()
    found = gradient_model(model, of, wrt)
    seed = random.standard_normal(y.shape)
    results = sabir.evaluate(found, {**feeds, SEED: seed})
    for name in wrt:
        gradient = results[f"d_{of}_d_{name}"]
        assert (gradient.shape, gradient.dtype) == (feeds[name].shape, feeds[name].dtype)
        if y.size <= SMALL and feeds[name].size <= SMALL:
            _compare_jacobian(model, found, feeds, of, name)
        else:
            _compare_directions(model, feeds, of, name, (seed, gradient), random)
    runs = compare and runs_alike(model, feeds)
    if runs:
        for name, theirs in by_onnxruntime(found, {**feeds, SEED: seed}).items():
            np.testing.assert_allclose(
                np.asarray(theirs), np.asarray(results[name]), rtol=1e-9, atol=1e-11, err_msg=name
            )
    return found, {**feeds, SEED: seed}, runs


def smooth(model, feeds, of, wrt, random):
    """The feeds, jittered while one-sided differences disagree: the function has a kink there."""
    for _ in range(DRAWS):
        if all(_is_smooth(model, feeds, of, name, random) for name in wrt):
            return feeds
        feeds = {n: x + random.uniform(-0.1, 0.1, x.shape) if n in wrt else x for n, x in feeds.items()}
    raise AssertionError("the function is not smooth near these feeds")


def _is_smooth(model, feeds, of, name, random):
    direction = random.uniform(0.5, 1, feeds[name].shape)
    at, after, before = (_moved(model, feeds, of, name, s * direction) for s in (0, STEP, -STEP))
    return np.allclose(after - at, at - before, rtol=0.05, atol=0.05 * STEP * (1 + np.abs(at)))


def _moved(model, feeds, of, name, change):
    return sabir.evaluate(model, {**feeds, name: feeds[name] + change}, outputs=[of])[of]


def _difference(model, feeds, of, name, direction):
    """The directional derivative, from central differences with a step and with half of it."""
    wide, narrow = (
        (_moved(model, feeds, of, name, h * direction) - _moved(model, feeds, of, name, -h * direction))
        / (2 * h)
        for h in (STEP, STEP / 2)
    )
    return (4 * narrow - wide) / 3


def _compare_jacobian(model, found, feeds, of, name):
    shape = sabir.evaluate(model, feeds, outputs=[of])[of].shape
    units = unit_arrays(shape)
    key = f"d_{of}_d_{name}"
    rows = [sabir.evaluate(found, {**feeds, SEED: unit}, outputs=[key])[key].ravel() for unit in units]
    steps = unit_arrays(feeds[name].shape)
    columns = [_difference(model, feeds, of, name, step).ravel() for step in steps]
    size = (len(units), len(steps))
    _assert_close(np.array(rows).reshape(size), np.array(columns).reshape(size[::-1]).T)


def unit_arrays(shape):
    """One array for each element, which is 1 there and 0 elsewhere."""
    size = int(np.prod(shape))
    return np.eye(size).reshape(size, *shape)


def _compare_directions(model, feeds, of, name, seeded, random):
    seed, gradient = seeded
    for _ in range(DIRECTIONS):
        direction = random.standard_normal(feeds[name].shape)
        numeric = (seed * _difference(model, feeds, of, name, direction)).sum()
        _assert_close(np.array([(gradient * direction).sum()]), np.array([numeric]))


def _assert_close(analytic, numeric):
    scale = np.abs(numeric).max(initial=1.0)
    bound = 1e-6 * (np.abs(analytic) + np.abs(numeric)) + 1e-8 * scale
    assert (np.abs(analytic - numeric) <= bound).all(), f"{analytic}\n{numeric}"


def differentiable_operators(model):
    """The operators of a model that compute floating-point numbers from others."""
    nodes = [n for n in model.graph.all_nodes() if any(map(_has_floats, n.outputs))]
    return {n.op for n in nodes if n.graphs or any(map(_has_floats, n.inputs))}


def _has_floats(value):
    return value is not None and value.element is not None and value.element.is_float
