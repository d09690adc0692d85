"""Fusion: which expressions become one kernel, and what stays apart."""

import pytest

from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.fusion.families import Families, Family
from sabir.compilation.fusion.grouping import Grouping
from sabir.compilation.fusion.groups import Group
from sabir.loops import Contract, Reduce, Stored
from support.middle import Middle


def groups(text, **sizes):
    return Middle(text, **sizes).groups()


def test_maps_of_one_shape_are_one_kernel():
    text = "g (float[N,8] x, float[8] b) => (float[N,8] y) { s = Add (x, b) r = Relu (s) y = Mul (r, x) }"
    assert groups(text, N=3) == ["nest: add max mul"]


def test_a_softmax_is_one_kernel():
    assert groups("g (float[N,8] x) => (float[N,8] y) { y = Softmax (x) }", N=3) == [
        "nest: max sub exp sum reciprocal mul"
    ]


def test_folds_along_other_axes_are_apart():
    text = """g (float[N,8] x) => (float[N,8] y) <int64[1] rows = {0}, int64[1] columns = {1}> {
      a = ReduceMax (x, columns)
      b = ReduceMax (x, rows)
      s = Add (a, b)
      y = Sub (x, s)
    }"""
    first, second = groups(text, N=3)
    assert {first, second} == {"nest: max", "nest: max add sub"}


def test_maps_behind_a_product_are_its_epilogue():
    text = "g (float[N,8] x, float[8,4] w, float[4] b) => (float[N,4] y) { h = MatMul (x, w) s = Add (h, b) y = Relu (s) }"
    assert groups(text, N=3) == ["product: contract add max"]


def test_a_map_of_another_shape_is_no_epilogue():
    text = (
        "g (float[1,8] x, float[8,4] w, float[5,4] z) => (float[5,4] y) { h = MatMul (x, w) y = Add (h, z) }"
    )
    assert groups(text) == ["product: contract", "nest: add"]


def test_what_a_later_group_must_wait_for_is_no_part_of_it():
    """The sum of a column needs all rows of the Softmax: its kernel cannot go on with the same rows."""
    text = """g (float[N,8] x) => (float[N,8] y) <int64[1] rows = {0}> {
      p = Softmax (x)
      s = ReduceSum (p, rows)
      y = Div (p, s)
    }"""
    assert groups(text, N=3) == ["nest: max sub exp sum reciprocal mul", "nest: sum div"]


def test_groups_stay_small():
    lines = " ".join(f"a{n} = Erf (a{n - 1})" for n in range(1, 60))
    found = groups(f"g (float[N] a0) => (float[N] a59) {{ {lines} }}", N=3)
    assert [line.count("erf") for line in found] == [48, 11]


def test_rows_that_are_taken_join_the_maps_behind_them():
    text = "g (float[V,8] t, int64[N] i) => (float[N,8] y) { a = Gather (t, i) y = Relu (a) }"
    assert groups(text, V=9, N=3) == ["nest: take max"]


def test_evaluated_calls_are_groups():
    middle = Middle("g (float[N,4] x) => (float[K,N] y) { f = Unique <axis = 1> (x) y = Transpose (f) }", N=3)
    assert [g.kind for g in middle.grouping.groups] == ["evaluate", "nest"]
    evaluated, nest = middle.grouping.groups
    assert nest.after == 1 << evaluated.number


def test_what_is_stored():
    middle = Middle("g (float[N,8] x) => (float[N,8] y, float[N,8] z) { y = Relu (x) z = Exp (y) }", N=3)
    assert set(middle.grouping.stored) == {middle["y"], middle["z"]}
    assert middle.group("y") is middle.group("z")


def test_an_input_that_is_an_output_is_copied():
    assert groups("g (float[N] x) => (float[N] y) { y = Identity (x) }", N=3) == ["nest: copy"]


def test_a_group_does_not_wait_for_itself():
    middle = Middle("g (float[N,8] x) => (float[N,8] y) { y = Softmax (x) }", N=3)
    grouping = middle.grouping
    (group,) = grouping.groups
    later = grouping.new_group("nest")
    grouping.depend(later, [group])
    assert later.after == 1
    assert not grouping.allowed(group, [later])
    assert grouping.allowed(later, [group])


def test_all_that_wait_for_a_group_wait_for_what_it_waits_for():
    middle = Middle("g (float[N] x) => (float[N] y) { y = Neg (x) }", N=3)
    grouping = middle.grouping
    a, b, c = (grouping.new_group("nest") for _ in range(3))
    grouping.depend(c, [b])
    grouping.depend(b, [a])
    assert c.after == 1 << a.number | 1 << b.number


# ---------------------------------------------------------------- families


class Claims:
    """Families that note what they are asked."""

    def __init__(self, *, accepts):
        self.asked = []

        def claim(_, x):
            self.asked.append(f"claim {type(x).__name__}")
            return accepts

        def group(_, x):
            self.asked.append(f"group {type(x).__name__}")

        def plan(_, group):
            self.asked.append(f"plan {group.kind}")

        def schedule(_, groups):
            return (g for g in groups if g.kind != "attention")

        self.families = Families([
            Family("product", plan, (Contract,), group, closed=False, epilogue=True, row_major=True),
            Family(
                "attention",
                plan,
                claims=(Contract,),
                claim=claim,
                schedule=schedule,
                scheduled=frozenset({"attention"}),
            ),
        ])


A, B = Stored("float", (2, 3), 1), Stored("float", (3, 4), 2)
PRODUCT = Contract("float", (2, 4), A, B, 1, 1)


def test_a_family_that_claims_an_expression_is_asked_first():
    for accepts, asked in ((True, ["claim Contract"]), (False, ["claim Contract", "group Contract"])):
        claims = Claims(accepts=accepts)
        assert claims.families.group(None, PRODUCT)
        assert claims.asked == asked


def test_an_expression_of_no_family():
    assert not Claims(accepts=True).families.group(None, Reduce("float", (2, 1), "sum", A, (1,)))


def test_what_families_declare_of_groups():
    families = Claims(accepts=True).families
    assert not families.is_closed(Group("product", 0))
    assert families.is_closed(Group("attention", 0))
    assert families.is_closed(Group("windows", 0))  # unknown
    assert families.has_epilogue(Group("product", 0))
    assert not families.has_epilogue(Group("attention", 0))
    assert families.row_major == (Contract,)


def test_scheduling_leaves_out_what_a_family_plans_together():
    claims = Claims(accepts=True)
    groups = [Group("product", 0), Group("attention", 1), Group("product", 2)]
    left = list(claims.families.scheduled(None, groups))
    assert left == [groups[0], groups[2]]
    for group in left:
        claims.families.plan(None, group)
    assert claims.asked == ["plan product", "plan product"]
    assert list(claims.families.scheduled(None, groups[::2])) == groups[::2]


def test_a_family_that_plans_no_single_groups():
    families = Families([Family("bands")])
    with pytest.raises(TypeError, match="the family bands plans no single groups"):
        families.plan(None, Group("bands", 0))


def test_grouping_asks_the_families_of_its_target():
    middle = Middle("g (float[N,8] x, float[8,4] w) => (float[N,4] y) { y = MatMul (x, w) }", N=3)
    claims = Claims(accepts=True)
    Grouping(middle.lowered, claims.families, HEURISTICS)._visit([middle["y"]])
    assert claims.asked == ["claim Contract"]
