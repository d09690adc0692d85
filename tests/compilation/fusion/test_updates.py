"""Optimizers: a step of a parameter and its state is one nest, apart from the product of the gradient."""

from sabir.compilation.fusion.updates import absorb, candidates, is_update
from support.middle import Middle

STEP = """g (float[8,4] x, float[8,6] d, float[4,6] w, float[4,6] m) => (float[4,6] w1, float[4,6] m1) <float rate = {0.1}> {
  t = Transpose (x)
  g = MatMul (t, d)
  decay = Mul (m, rate)
  m1 = Add (decay, g)
  step = Mul (m1, rate)
  w1 = Sub (w, step)
}"""
LAYER = """g (float[8,4] x, float[4,6] w, float[8,6] r) => (float[8,6] y) {
  h = MatMul (x, w)
  s = Add (h, r)
  y = Relu (s)
}"""


def test_an_optimizer_is_one_nest_behind_the_product():
    middle = Middle(STEP)
    assert set(middle.groups()) == {"product: contract", "nest: mul add mul sub"}
    assert is_update(middle.grouping, middle.group("g"))
    assert middle.grouping.updates[middle.group("g")] is True


def test_a_layer_with_one_output_is_no_optimizer():
    middle = Middle(LAYER)
    assert middle.groups() == ["product: contract add max"]
    assert not is_update(middle.grouping, middle.group("h"))


def test_only_a_product_has_an_optimizer_behind_it():
    middle = Middle("g (float[N] x) => (float[N] y) { y = Neg (x) }", N=2)
    assert not is_update(middle.grouping, middle.group("y"))


def test_a_nest_absorbs_loose_nests_of_its_space():
    text = "g (float[N] a, float[N] b) => (float[N] y) { e = Exp (a) f = Neg (b) y = Add (e, f) }"
    middle = Middle(text, N=5)
    (found,) = middle.groups()
    assert sorted(found.split()) == ["add", "exp", "neg", "nest:"]


def test_what_a_nest_does_not_absorb():
    text = "g (float[N] a, float[M] b) => (float[N] y, float[M] z) { y = Exp (a) z = Neg (b) }"
    middle = Middle(text, N=5, M=6)
    first, second = middle.grouping.groups
    absorb(middle.grouping, first, [second], 8)  # another space
    assert second.members
    second.space = first.space
    absorb(middle.grouping, first, [second], 1)  # too many members
    assert second.members
    absorb(middle.grouping, first, [second, first], 8)
    assert (second.kind, second.members) == ("gone", [])
    assert middle.group("z") is first


def test_the_last_group_of_an_operand_is_tried_first():
    middle = Middle(LAYER)
    grouping = middle.grouping
    later = grouping.new_group("nest")
    grouping.depend(later, [middle.group("h")])
    grouping.of[middle["s"]] = later
    assert candidates(grouping, middle["y"], [middle["h"], middle["s"]]) == [later, middle.group("h")]
