"""Gradients compared with central differences, and models with gradients run by Sabir and by onnxruntime."""

from __future__ import annotations

import functools
import itertools
import os
import re

import numpy as np
import onnxruntime

import sabir
from sabir.base import SchemaError, UnsupportedError
from sabir.differentiation import differentiate
from sabir.elements import DOUBLE, FLOAT, element
from sabir.ir import verify
from sabir.opsets import STANDARD
from sabir.schema import Example
from support.rooms import EXAMPLES, model_of

ROOMS = sorted({str(o.name) for o in STANDARD if not o.domain and o.versions[-1].find("gradient")})
LEAST_OPSET, NEWEST_OF_ONNXRUNTIME = 18, 23
LARGEST = 256  # elements of an input; larger examples are about rounding
# examples of a room: PyTorch's recorded gradients cover the usual ones; `SABIR_EXAMPLES=1000` takes all
MOST = int(os.environ.get("SABIR_EXAMPLES", "4"))
SMALL = 64  # up to so many elements the whole Jacobian is compared
STEP, DIRECTIONS, DRAWS = 1e-3, 3, 5
SINGLE = {"CausalConvWithState", "DequantizeLinear", "LinearAttention", "QuantizeLinear", "RotaryEmbedding"}
"""Operators that take no double precision."""
IN_FLOAT = {"LayerNormalization", *SINGLE}
"""Operators that compute in single precision."""
SEED = "seed"
COMPUTED_IN = {"stash_type", "softmax_precision"}  # attributes with the type of intermediate results


@functools.cache
def float_examples(name):
    """Different examples of a room with floating-point inputs, in double precision, spread over all of them.

    Each is at the first operator set from 18 on that has it: a gradient holds for the later ones too.
    """
    found = {}
    for operator, example in (p.values for p in EXAMPLES):
        if operator.name != name or operator.domain:
            continue
        opset = max(example.opset, LEAST_OPSET)
        version = operator.at(opset)
        if operator.at(example.opset) is not version or version.removed or version.find("gradient") is None:
            continue
        inputs = [in_type(x) for x in example.inputs]
        if not any(is_float(x) for x in inputs) or not admits(version, inputs):
            continue
        if any(x.size > LARGEST for x in inputs if is_float(x)):
            continue
        attributes = {
            key: re.sub(r"\bfloat\b", "double", value) if isinstance(value, str) else value
            for key, value in example.attributes.items()
        }
        names = {a.name for a in version.attributes}
        stash = FLOAT if name in IN_FLOAT else DOUBLE
        attributes |= dict.fromkeys(names & COMPUTED_IN, stash.number)
        if "to" in names:
            if not element(attributes["to"]).is_float:
                continue
            attributes["to"] = DOUBLE.number
        if "seed" in names:
            attributes.setdefault("seed", 3)  # the same random numbers in each run
        key = repr((
            [(np.asarray(x).dtype, np.asarray(x).tolist()) for x in inputs],
            attributes,
            example.outputs,
        ))
        found.setdefault(key, Example(opset, *inputs, outputs=example.outputs, **attributes))
    examples = list(found.values())
    return examples[:: max(1, -(-len(examples) // MOST))]


def admits(version, inputs):
    """Whether a version takes the inputs that are in double precision."""
    ports = [*version.inputs, *[version.inputs[-1]] * len(inputs)]
    return all(
        "tensor(double)" in getattr(port.type, "allowed", [port.type])
        for x, port in zip(inputs, ports, strict=False)
        if is_float(x)
    )


def is_float(x):
    return x is not None and not isinstance(x, (list, dict)) and np.asarray(x).dtype == np.float64


def in_type(x, dtype=np.float64):
    """A floating-point array in another type, with finite numbers in the place of infinities and NaN."""
    if isinstance(x, (list, dict)) or x is None or np.asarray(x).dtype.kind not in "fV":
        return x
    with np.errstate(over="ignore"):
        wide = np.asarray(x).astype(dtype)
    finite = wide[np.isfinite(wide)]
    return np.where(np.isfinite(wide), wide, finite[0] if finite.size else dtype(0.5))


class Case:
    """A model of an example, feeds at which its outputs are finite, and the inputs on which each depends."""

    def __init__(self, operator, example):
        self.operator, self.example = operator, example
        self.model, self.feeds = model_of(operator, example)
        version = operator.at(example.opset)
        ports = [*version.inputs, *[version.inputs[-1]] * len(example.inputs)]
        pairs = [
            (f"i{i}", p) for i, (x, p) in enumerate(zip(example.inputs, ports, strict=False)) if is_float(x)
        ]
        self.pairs = []
        for i, output in enumerate(self.model.graph.outputs):
            must = version.outputs[min(i, len(version.outputs) - 1)].differentiable
            if output.type.element.is_float:
                wrt = [
                    n for n, p in pairs if depends(self.model, output.name, n, must=must and p.differentiable)
                ]
                self.pairs += [(output.name, wrt)] if wrt else []
        feeds = in_domain(self.model, off_steps(operator, self.feeds), self.pairs)
        if feeds is None:  # not a number by definition, such as a mean of nothing
            self.pairs = []
        else:
            self.feeds = feeds

    def narrowed(self, dtype):
        """A model of the same call with floating-point numbers of another type."""
        name, number = element(dtype).name, element(dtype).number
        attributes = dict(self.example.attributes)
        for key, value in attributes.items():
            if isinstance(value, str):
                attributes[key] = re.sub(r"\bdouble\b", name, value)
            elif key == "to" and value == DOUBLE.number:
                attributes[key] = number
        attributes |= dict.fromkeys(attributes.keys() & COMPUTED_IN, FLOAT.number)
        inputs = [in_type(x, dtype) for x in self.example.inputs]
        example = Example(self.example.opset, *inputs, outputs=self.example.outputs, **attributes)
        return model_of(self.operator, example)[0]


@functools.cache
def case_of(name, place):
    """The case of an example of a room, made once."""
    return Case(STANDARD.find("", name), float_examples(name)[place])


def cases_of(name):
    """The cases of a room that have gradients, as they are asked for."""
    cases = (case_of(name, i) for i in range(len(float_examples(name))))
    return (case for case in cases if case.pairs)


def depends(model, of, name, *, must=False):
    """Whether gradients of an output pass to an input; where the standard says so, they must."""
    try:
        differentiate(model, of, [name], strict=True)
    except SchemaError as error:
        assert f"does not depend on '{name}'" in str(error)
        return False
    except UnsupportedError as error:
        assert "it ends at" in str(error)
        assert not must
        return False
    return True


def reaching(model, of, names):
    """The inputs among some to which gradients of an output pass."""
    left = list(names)
    while left:
        try:
            differentiate(model, of, left, strict=True)
        except SchemaError as error:
            unrelated = [n for n in left if f"does not depend on {n!r}" in str(error)]
            assert unrelated, error
            left = [n for n in left if n not in unrelated]
        except UnsupportedError:
            return [n for n in left if depends(model, of, n)]
        else:
            break
    return left


def in_domain(model, feeds, pairs):
    """The feeds, moved to where the outputs are finite, also nearby: zeros, then all numbers; None if nowhere."""
    wrt = {n for _, names in pairs for n in names}
    if not any(feeds[n].size for n in wrt):
        return feeds
    candidates = [feeds, off_zero(feeds, wrt)]
    candidates += [{n: move(x) if n in wrt else x for n, x in feeds.items()} for move in (inside, above)]
    for moved in candidates:
        if all(_is_finite(model, moved, of, names) for of, names in pairs):
            return moved
    return None


def off_steps(operator, feeds):
    """The feeds, away from where an operator jumps, which differences of one direction need not find."""
    if operator.name == "Range":  # the same count for limits nearby
        return {**feeds, "i1": feeds["i1"] - feeds["i2"] / 2}
    if operator.name == "TopK":  # the same order, without ties
        ranks = np.argsort(np.argsort(feeds["i0"], axis=None, kind="stable"), kind="stable")
        return {**feeds, "i0": ranks.reshape(feeds["i0"].shape) / 10}
    return feeds


def off_zero(feeds, wrt):
    """The feeds with another number in the place of 0."""
    return {n: np.where(x == 0, 1.5, x) if n in wrt else x for n, x in feeds.items()}


def inside(x):
    """Numbers between 0 and 1, different ones for different numbers."""
    return 0.5 + 0.3 * np.sin(x + np.arange(x.size).reshape(x.shape))


def above(x):
    """Numbers between 1 and 2."""
    return inside(x) + 1


def _is_finite(model, feeds, of, wrt):
    moved = ({n: x + change if n in wrt else x for n, x in feeds.items()} for change in (0, 0.05, -0.05))
    return all(np.isfinite(computed(model, f, [of])[of]).all() for f in moved)


@functools.cache
def shared_gradient_model(model, of, wrt):
    """`gradient_model`, made once for all tests, which must leave it as it is."""
    return gradient_model(model, of, list(wrt))


def gradient_model(model, of, wrt, *, seed=SEED, checked=True):
    """The model with gradients, valid by its links, by its declared types and by the checker."""
    found = differentiate(model, of, wrt, seed=seed, names={name: f"d_{of}_d_{name}" for name in wrt})
    verify(found)
    if checked and not any(map(deprecated, found.graph.all_nodes(), itertools.repeat(found.opset()))):
        sabir.check(found)
    for name, output in zip(wrt, list(found.graph.outputs)[-len(wrt) :], strict=True):
        assert output.name == f"d_{of}_d_{name}"
        assert output.type.element == model.graph.value(name).type.element
    return found


def deprecated(node, opset):
    operator = STANDARD.find(node.domain, node.op)
    return operator is not None and operator.at(opset).deprecated


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(sabir.dumps(model), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def runs_alike(model, feeds, tolerance=1e-9):
    """Whether onnxruntime runs a model without gradients, and computes the same."""
    operators = [STANDARD.find(n.domain, n.op) for n in model.graph.all_nodes()]
    if model.opset() > NEWEST_OF_ONNXRUNTIME or any(o is not None and o.random for o in operators):
        return False
    try:
        theirs = by_onnxruntime(model, feeds)
    except Exception:  # ruff: ignore[blind-except]  its errors have no common base
        return False
    ours = computed(model, feeds)
    return all(
        theirs[n].shape == x.shape and np.allclose(theirs[n], x, rtol=tolerance, atol=tolerance / 100)
        for n, x in ours.items()
    )


def compare_with_onnxruntime(model, feeds, results, tolerance=1e-9):
    for name, theirs in by_onnxruntime(model, feeds).items():
        np.testing.assert_allclose(
            np.asarray(theirs), np.asarray(results[name]), rtol=tolerance, atol=tolerance / 100, err_msg=name
        )


def runs_in_float(case):
    """Compare single precision with onnxruntime's, which lacks many operators in double; whether it ran."""
    model = case.narrowed(np.float32)
    feeds = {n: in_type(x, np.float32) for n, x in case.feeds.items()}
    if not runs_alike(model, feeds, 1e-4):
        return False
    for of, wrt in case.pairs:
        found = gradient_model(model, of, wrt)
        seed = np.ones(sabir.evaluate(model, feeds)[of].shape, np.float32)
        all_feeds = {**feeds, SEED: seed}
        compare_with_onnxruntime(found, all_feeds, sabir.evaluate(found, all_feeds), 1e-4)
    return True


def check(model, feeds, of, wrt, *, compare=True, found=None):
    """Compare the gradients with differences, and with onnxruntime's where it runs the model and `compare`.

    `found` is the model with gradients, if it is made already. Return the model with gradients, its feeds, and whether onnxruntime ran it.
    """
    random = np.random.default_rng(len(of) + sum(x.size for x in feeds.values()))
    feeds = smooth(model, feeds, of, wrt, random)
    found = gradient_model(model, of, wrt) if found is None else found
    all_feeds, results = _compare(model, found, feeds, (of, wrt), random)
    runs = (
        compare and all(x.size for x in feeds.values()) and runs_alike(model, feeds)
    )  # its Expand ignores 0
    if runs:
        compare_with_onnxruntime(found, all_feeds, results, 1e-9 if exact(model) is model else 1e-6)
    return found, all_feeds, runs


def check_twice(model, feeds, of, wrt):
    """Compare the derivatives of the gradients with differences, in random directions."""
    random = np.random.default_rng(1)
    once = gradient_model(model, of, wrt, seed="first")
    feeds = smooth(model, feeds, of, wrt, random)
    seed = random.standard_normal(computed(model, feeds, [of])[of].shape)
    feeds = fed(once, {**feeds, "first": seed})
    for name in wrt:
        gradient = f"d_{of}_d_{name}"
        reach = reaching(once, gradient, [*wrt, "first"])
        if reach and _is_finite(once, feeds, gradient, reach):
            near = smooth(once, feeds, gradient, reach, random)
            found = gradient_model(once, gradient, reach)
            _compare(once, found, near, (gradient, reach), random, small=0)


def fed(model, feeds):
    """The feeds in the types that a model declares."""
    return {n: in_type(x, model.graph.value(n).type.element.dtype.type) for n, x in feeds.items()}


def _compare(model, found, feeds, pair, random, small=SMALL):
    """Compare gradients with differences; return the feeds of the model with gradients, and its results."""
    of, wrt = pair
    y = computed(model, feeds, [of])[of]
    assert np.isfinite(y).all() or not any(feeds[n].size for n in wrt)
    all_feeds = fed(found, {**feeds, SEED: random.standard_normal(y.shape)})
    results = computed(found, all_feeds)
    for name in wrt:
        gradient = results[f"d_{of}_d_{name}"]
        assert (gradient.shape, gradient.dtype) == (feeds[name].shape, feeds[name].dtype)
        if y.size <= small and feeds[name].size <= small:
            _compare_jacobian(model, found, feeds, of, name)
        else:
            _compare_directions(model, feeds, of, name, (all_feeds[SEED], gradient), random)
    return all_feeds, results


def smooth(model, feeds, of, wrt, random):
    """The feeds, jittered while differences disagree: the function has a kink there, or is steep at 0."""
    found = feeds
    for draw in range(DRAWS):
        if all(_is_smooth(model, found, of, n, random) for n in wrt if found[n].size):
            return found
        base, width = (feeds, 0.1) if draw < DRAWS // 2 else (off_zero(feeds, wrt), 0.5)
        found = {n: x + random.uniform(-width, width, x.shape) if n in wrt else x for n, x in base.items()}
    raise AssertionError("the function is not smooth near these feeds")


def _is_smooth(model, feeds, of, name, random):
    shape = feeds[name].shape
    for direction in (random.uniform(0.5, 1, shape), random.standard_normal(shape)):
        at, after, before = (_moved(model, feeds, of, name, s * direction) for s in (0, STEP, -STEP))
        if not np.allclose(after - at, at - before, rtol=0.02, atol=0.02 * STEP):
            return False
    wide, narrow = _differences(model, feeds, of, name, direction)
    return np.allclose(wide, narrow, rtol=1e-5, atol=1e-5 * np.abs(narrow).max(initial=1))


def _moved(model, feeds, of, name, change):
    return computed(exact(model), {**feeds, name: feeds[name] + change}, [of])[of]


def computed(model, feeds, outputs=None):
    """What a model computes, which must stay as it is."""
    return prepared(model).run(feeds, outputs)


@functools.lru_cache(maxsize=8)
def prepared(model):
    """A session of the reference engine: differences ask for many runs of one model."""
    return sabir.Session(model, engine="reference")


@functools.cache
def exact(model):
    """The model in double precision also where an operator computes in single precision: by its body."""
    if IN_FLOAT.isdisjoint(n.op for n in model.graph.all_nodes()):
        return model
    written = sabir.text(sabir.inline(model.clone(), operators=True))
    written = written.replace("ConstantOfShape (", "ConstantOfShape <value: tensor = double[1] {0}> (")
    return sabir.parse(re.sub(r"\bto: int = 1\b", "to: int = 11", re.sub(r"\bfloat\b", "double", written)))


def differences_in_double(model, feeds, of, name, direction):
    """The directional derivative of a model in single precision, in double precision."""
    wide = {n: x.astype(np.float64) if x.dtype == np.float32 else x for n, x in feeds.items()}
    return _difference(model, wide, of, name, direction)


def _differences(model, feeds, of, name, direction):
    """The central differences with a step and with half of it."""
    return [
        (_moved(model, feeds, of, name, h * direction) - _moved(model, feeds, of, name, -h * direction))
        / (2 * h)
        for h in (STEP, STEP / 2)
    ]


def _difference(model, feeds, of, name, direction):
    """The directional derivative, without the error of second order."""
    wide, narrow = _differences(model, feeds, of, name, direction)
    return (4 * narrow - wide) / 3


def _compare_jacobian(model, found, feeds, of, name):
    shape = computed(model, feeds, [of])[of].shape
    units = unit_arrays(shape)
    key = f"d_{of}_d_{name}"
    given = fed(found, {**feeds, SEED: units[0]}) if len(units) else {}
    rows = [
        computed(found, {**given, SEED: unit.astype(given[SEED].dtype)}, [key])[key].ravel() for unit in units
    ]
    steps = unit_arrays(feeds[name].shape)
    columns = [_difference(model, feeds, of, name, step).ravel() for step in steps]
    size = (len(units), len(steps))
    _assert_close(model, np.array(rows).reshape(size), np.array(columns).reshape(size[::-1]).T)


def unit_arrays(shape):
    """One array for each element, which is 1 there and 0 elsewhere."""
    size = int(np.prod(shape))
    return np.eye(size).reshape(size, *shape)


def _compare_directions(model, feeds, of, name, seeded, random):
    seed, gradient = seeded
    for _ in range(DIRECTIONS):
        direction = random.standard_normal(feeds[name].shape)
        numeric = (seed * _difference(model, feeds, of, name, direction)).sum()
        _assert_close(model, np.array([(gradient * direction).sum()]), np.array([numeric]))


def _assert_close(model, analytic, numeric):
    scale = np.abs(numeric).max(initial=1.0)
    close, closest = (1e-6, 1e-8) if exact(model) is model else (1e-4, 1e-3)
    bound = close * (np.abs(analytic) + np.abs(numeric)) + closest * scale
    assert (np.abs(analytic - numeric) <= bound).all(), f"{analytic}\n{numeric}"


def differentiable_operators(model):
    """The operators of a model that compute floating-point numbers from others."""
    nodes = [n for n in model.graph.all_nodes() if any(map(_has_floats, n.outputs))]
    return {n.op for n in nodes if n.graphs or any(map(_has_floats, n.inputs))}


def _has_floats(value):
    return value is not None and value.element is not None and value.element.is_float
