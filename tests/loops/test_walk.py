"""Operands, rewriting and verification of every kind of expression."""

import doctest
from dataclasses import fields

import numpy as np
import pytest

from sabir import loops
from sabir.compilation.fusion.views import Copy
from sabir.ir import symbol
from sabir.loops import walk
from sabir.loops.walk import InvalidExpression, postorder, rebuilt, rewrite, structure, verify

X = loops.Stored("float", (4, 6), 1)
Y = loops.Stored("float", (6, 3), 2)
IMAGE = loops.Stored("float", (1, 8, 8, 4), 3)
INDICES = loops.Stored("int64", (2,), 4)
MARKS = loops.Stored("bool", (6,), 5)
N = symbol("N")


def body():
    states = (loops.StepState("float", (5, 2, 3)),)
    after = (loops.apply("add", states[0], loops.StepOperand("float", (5, 2, 3), 0)),)
    return loops.StepBody(states, after, ())


def boxes_and_scores():
    return loops.Stored("float", (2, 5, 4)), loops.Stored("float", (2, 2, 5))


def kinds():
    """One sound expression of each kind."""
    f64, u32 = (loops.Stored(e, (4, 6)) for e in ("double", "uint32"))
    steps = [loops.Stored("float", s) for s in ((1, 2, 3, 1, 4), (1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 4, 5))]
    windows = loops.windows(IMAGE, (1, 2), (3, 3), (6, 6), (1, 1), (1, 1))
    initial, bound = loops.Stored("float", (2, 3)), loops.Stored("float", (5, 2, 3))
    yield from (X, loops.number("float", 2), loops.Extent("int64", (), N), loops.Count("int64", (3, 4), 1))
    yield from (loops.apply("add", X, 1), loops.reduce("sum", X, [1]), loops.cumulate("sum", X, 0))
    yield from (loops.best(X, 1, 2, largest=True), loops.Couple("double", (4, 4), f64, 3, 0.1))
    yield from (loops.contract(X, Y), windows, loops.slide("max", windows, 2), loops.permute(X, (1, 0)))
    yield from (loops.reshape(X, (24,)), loops.expand(X, (2, 4, 6)), loops.narrow(X, 1, 2, 3))
    yield from (loops.Take("float", (2, 6), X, INDICES, 0), loops.join([X, X], 1))
    yield from (loops.scatter(X, loops.cast(X, "int64"), X, 1), loops.pad(X, (1, 0), (0, 2), 7))
    yield from (loops.StepState("float", (5, 2)), loops.StepOperand("float", (5, 2), 1))
    yield loops.Recur("float", (2, 3), body(), (initial, bound))
    yield loops.Descend(
        "double", (4, 1), u32, "sum", loops.Stored("uint32", (9,)), loops.Stored("int32", (2, 8)), f64
    )
    yield loops.MatrixSteps("float", (1, 2, 7, 5), *steps)
    yield loops.PoolRegions("float", (2, 3, 3, 4), "max", (3, 3), IMAGE, INDICES)
    yield from (
        loops.TruePlaces("int64", (7,), MARKS),
        loops.Distinct("int64", (7,), INDICES, ascending=True),
    )
    one = loops.Stored("float", (1,))
    yield loops.Suppress(
        "int64", (37,), *boxes_and_scores(), loops.Stored("int64", (1,)), one, one, centred=False, bound=3
    )
    yield Copy("float", (4, 6), X)
    yield loops.filtered(windows, loops.Stored("float", (6, 2, 3, 3)), 2)


KINDS = {type(x).__name__: x for x in kinds()}


def subclasses(kind):
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_there_is_an_example_of_each_kind():
    named = {k.__name__ for k in subclasses(loops.Expression) if k.__module__.startswith("sabir.")}
    assert named == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_operands_follow_from_the_fields(name):
    x = KINDS[name]
    held = [getattr(x, f.name) for f in fields(x) if f.metadata.get("operand", True)]
    flat = [o for v in held for o in (v if isinstance(v, tuple) else (v,)) if isinstance(o, loops.Expression)]
    assert list(x.operands) == flat
    same = x.with_operands(x.operands)
    assert type(same) is type(x)
    assert structure(same) == structure(x) or isinstance(x, (loops.Stored, loops.Recur))
    others = [loops.Stored(o.element, o.shape, 9) for o in x.operands]
    assert list(x.with_operands(others).operands) == others


@pytest.mark.parametrize("name", KINDS)
def test_sound_expressions_have_no_violations(name):
    verify([KINDS[name]])


def test_another_number_of_operands():
    with pytest.raises(ValueError, match=r"Permute has 1 operands, and 2 were passed"):
        loops.permute(X, (1, 0)).with_operands([X, X])


def test_absent_operands_stay_absent():
    windows = loops.windows(IMAGE, (1, 2), (3, 3), (6, 6), (1, 1), (1, 1))
    assert loops.slide("max", windows, 2).with_operands([windows]).operands == (windows,)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (loops.Map("float", (4, 6), "add", (X,)), "add of 1 operands"),
        (loops.Map("float", (4, 6), "add", (X, Y)), "does not broadcast"),
        (loops.Map("float", (4, 6), "lt", (X, X)), "lt of float is bool"),
        (loops.Map("float", (4, 6), "where", (X, X, X)), "a condition is bool"),
        (loops.Reduce("float", (4, 6), "sum", X, (1,)), "the shape would be (4, 1)"),
        (loops.Reduce("float", (4, 1), "argmax", X, (1,)), "another element type"),
        (loops.Reduce("float", (4, 1), "sum", X, (2,)), "axes (2,) of rank 2"),
        (loops.Contract("float", (4, 3), X, X, 1, 1), "the depths (6,) and (4,) differ"),
        (loops.Contract("int32", (4, 3), X, Y, 1, 1), "the operands are float and float"),
        (loops.Contract("float", (4, 3), X, Y, 1, 1, b_zero=X), "a zero point (4, 6) does not broadcast to (6, 3)"),
        (loops.Contract("float", (4, 3), X, Y, 1, 1, packs=2), "2 integers in an element of float, with scales or without"),
        (loops.Contract("float", (4, 3), X, Y, 1, 1, a_scale=X), "an operand whose blocks have scales needs sums, and weights with scales"),
        (loops.Contract("float", (4, 3), X, Y, 1, 1, Y), "a zero point (6, 3) does not broadcast to (4, 6)"),
        (loops.Permute("float", (6, 4), X, (1, 1)), "no order of 2 axes"),
        (loops.Reshape("float", (5,), X), "24 elements as (5,)"),
        (loops.Expand("float", (2, 6), X), "does not broadcast"),
        (loops.Slice("float", (4, 6), X, (1, 0), (1, 1)), "elements 1 to 4 of 4 along axis 0"),
        (loops.Slice("float", (4, 6), X, (0, 4), (1, -1)), "elements 4 to -1 of 6 along axis 1"),
        (loops.Take("float", (4, 3), X, INDICES, 1), "the shape would be (4, 2)"),
        (loops.Join("float", (9, 6), (X, X), 0), "the parts have 8 elements along axis 0"),
        (loops.Pad("float", (4, 6), X, (1, 0)), "1 elements before 4 exceed 4"),
        (loops.Windows("float", (1, 7, 8, 4, 3), IMAGE, (1,), (1,), (1,)), "windows reach 9 of 8"),
        (loops.Number("float", (1,), 2), "a number has no axes"),
        (loops.Stored("float", (3,), array=np.zeros(4)), "the array has the shape (4,)"),
        (loops.Stored("string", (3,)), "kernels do not know the element type"),
        (loops.Stored("float", (-1,)), "a size is negative"),
        (loops.Recur("float", (2, 3), body(), (X,)), "an initial state has the shape (4, 6)"),
    ],
)  # fmt: skip
def test_violations(bad, message):
    with pytest.raises(InvalidExpression) as error:
        verify([loops.reshape(bad, bad.shape)])
    assert message in str(error.value)


def test_sizes_that_a_guard_makes_equal_are_no_violation():
    verify([loops.Map("float", (N, 6), "add", (loops.Stored("float", (symbol("M"), 6)), X))])


def test_postorder_yields_operands_first_and_each_once():
    x = loops.apply("mul", X, X)
    y = loops.apply("add", x, loops.apply("neg", x))
    found = list(postorder([y, x]))
    assert found[-1] is y
    assert len(found) == len(set(found)) == 4
    assert list(postorder([y], {x})) == [found[-2], y]


def test_postorder_of_a_deep_chain_needs_no_recursion():
    x = X
    for _ in range(5000):
        x = loops.apply("neg", x)
    assert sum(1 for _ in postorder([x])) == 5001


def test_rewriting_keeps_what_no_rule_changes():
    x = loops.apply("neg", X)
    assert rewrite({7: x}, lambda _x, _new: None) == {7: x}
    found = rewrite({7: x}, lambda e, _new: Y if e is X else None)[7]
    assert found.operands == (Y,)
    assert rebuilt(x, {X: X}) is x


def test_the_first_rule_that_applies_wins():
    one, two = loops.number("float", 1), loops.number("float", 2)
    rules = [lambda e, _new, y=y: y if e is X else None for y in (one, two)]
    assert walk.rewrite({0: X}, *rules) == {0: one}


def test_the_examples_of_the_docstrings():
    assert doctest.testmod(walk, optionflags=doctest.ELLIPSIS).failed == 0
