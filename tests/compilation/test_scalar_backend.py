"""The second backend runs the examples of rooms: as the interpreter does, and as native kernels do."""

import warnings

import numpy as np
import pytest

import sabir
from sabir import loops
from sabir.base import SabirWarning
from sabir.compilation import Compiled
from support.cases import each_of
from support.rooms import EXAMPLES, by_operator, model_of
from support.scalar import Computing, ScalarBackend


class Refused(Exception):
    """The backend has no plan."""


class Interpreter:
    """In the place of the interpreter."""

    def run(self, *_):
        raise Refused


def scalar(model, feeds):
    """The outputs by plain loops; raises Refused where the interpreter had to run."""
    made = Compiled(model, backend=ScalarBackend())

    made.__dict__["_runner"] = Interpreter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SabirWarning)
        try:
            return made.run(feeds)
        except Refused:
            assert made._plans.refusal() in {None, "UnsupportedError: the scalar backend evaluates no calls"}
            raise


def close(found, expected, name):
    assert found.shape == expected.shape, name
    assert found.dtype == expected.dtype, name
    if found.dtype.kind not in "fV":
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    wide = np.float64
    rough = {2: 4e-2, 1: 0.3}.get(found.dtype.itemsize, 3e-5 if found.dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(
        found.astype(wide), expected.astype(wide), rtol=rough, atol=rough, err_msg=name
    )


@each_of("operator, example", EXAMPLES, group=by_operator)
def test_examples(operator, example):
    if operator.random:
        return  # each engine draws other numbers
    model, feeds = model_of(operator, example)
    if not all(isinstance(x, np.ndarray) for x in feeds.values()):
        return
    try:
        found = scalar(model, feeds)
    except Refused:
        return
    expected = sabir.evaluate(model, feeds)
    native = Compiled(model).run(feeds)
    for name, value in found.items():
        close(np.asarray(value), np.asarray(expected[name]), f"{name} and the interpreter")
        close(np.asarray(value), np.asarray(native[name]), f"{name} and native kernels")


def test_there_is_a_loop_for_each_kind():
    kinds = {k.__name__ for k in _kinds(loops.Expression) if k.__module__.startswith("sabir.")}
    assert all(hasattr(Computing, f"_{k.lower()}") for k in kinds - {"StepState", "StepOperand"})


def _kinds(kind):
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def test_sizes_of_a_plan_are_symbols_here_too():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,4] x, float[4,M] w) => (float[N,M] y) { h = MatMul (x, w) y = Softmax (h) }""")
    made = Compiled(model, backend=ScalarBackend())
    made.__dict__["_runner"] = Interpreter()
    for n, m in ((2, 3), (5, 2)):
        feeds = {"x": np.float32(np.arange(4 * n)).reshape(n, 4) / 9, "w": np.ones((4, m), np.float32)}
        np.testing.assert_allclose(made.run(feeds)["y"], sabir.evaluate(model, feeds)["y"], rtol=1e-6)


def test_what_has_no_loop_is_left_to_the_interpreter():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (string[N] x) => (string[N] y) { y = StringConcat (x, x) }""")
    made = Compiled(model, backend=ScalarBackend())
    with pytest.warns(SabirWarning, match="the scalar backend evaluates no calls"):
        assert made.run({"x": np.array(["a", "b"])})["y"].tolist() == ["aa", "bb"]


def test_plans_of_another_backend_cannot_be_shown():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    with pytest.raises(sabir.UnsupportedError, match="plans of scalar cannot be shown"):
        Compiled(model, backend=ScalarBackend()).explain()
