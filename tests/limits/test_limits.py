"""The table of bounds: each has a name, a default, and a way past it."""

import threading

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.base import (
    DEFAULT_LIMITS,
    NO_LIMITS,
    LimitError,
    SabirError,
    budget,
    check_constant,
    check_depth,
    check_elements,
    check_nodes,
    check_time,
    limits_in_force,
    quote,
    run_with_limits,
    spend_iteration,
    spend_work,
)

SPENDING = {
    "constant_bytes": (Limits(constant_bytes=10), lambda: check_constant(11)),
    "elements": (Limits(elements=10), lambda: check_elements(11)),
    "nodes": (Limits(nodes=10), lambda: check_nodes(11)),
    "depth": (Limits(depth=10), lambda: check_depth(11)),
    "iterations": (Limits(iterations=0), spend_iteration),
    "seconds": (Limits(seconds=-1), check_time),
    "memory": (Limits(memory=10), lambda: budget().allocate(11)),
    "work": (Limits(work=10), lambda: spend_work(11)),
}


def test_every_bound_is_spent_somewhere():
    assert set(SPENDING) == set(Limits._fields)


@pytest.mark.parametrize("name", SPENDING)
def test_an_error_names_the_bound_and_how_to_raise_it(name):
    limits, spend = SPENDING[name]
    with pytest.raises(LimitError, match=rf"raise it with `sabir.Limits\({name}=[\d.]+\)`") as caught:
        run_with_limits(limits, spend)
    assert caught.value.limit == name
    assert isinstance(caught.value, SabirError)
    run_with_limits(limits._replace(**{name: None}), spend)


def test_defaults_hold_where_nothing_is_said():
    assert limits_in_force() is DEFAULT_LIMITS
    assert Limits() == DEFAULT_LIMITS
    assert set(NO_LIMITS) == {None}
    with pytest.raises(LimitError):
        check_elements(1 << 40)


def test_limits_given_inside_replace_those_outside_and_none_keeps_them():
    outer, inner = Limits(nodes=1), Limits(nodes=2)

    def nested():
        return [
            run_with_limits(None, limits_in_force),
            run_with_limits(inner, limits_in_force),
            limits_in_force(),
        ]

    assert run_with_limits(outer, nested) == [outer, inner, outer]
    assert limits_in_force() is DEFAULT_LIMITS


def test_what_is_given_is_never_too_much():
    limits = Limits(elements=10, constant_bytes=10, nodes=10)
    run_with_limits(limits, check_elements, 20, 20)
    run_with_limits(limits, check_constant, 20, 20)
    run_with_limits(limits, check_nodes, 20, 20)


def test_memory_and_work_grow_with_what_a_run_is_given():
    def spending():
        present = budget()
        present.raise_for(1000)
        check_elements(32_000)
        with pytest.raises(LimitError, match="32,001 elements"):
            check_elements(32_001)
        present.allocate(256_000)
        with pytest.raises(LimitError, match="256,001 bytes"):
            present.allocate(1)
        spend_work(32 * 1024 * 1000 - 256_001)
        with pytest.raises(LimitError):
            spend_work(1)

    run_with_limits(Limits(elements=0, memory=0, work=0), spending)


def test_a_number_past_all_bounds_makes_a_short_message():
    with pytest.raises(LimitError) as caught:
        check_elements(10**100_000)
    assert len(str(caught.value)) < 300


def test_a_long_message_is_cut_in_the_middle():
    error = SabirError(f"what {'a' * 10_000} how").located("where")
    assert len(str(error)) <= 2000
    assert str(error).startswith("where: what aaa")
    assert str(error).endswith("aaa how")
    assert len(quote("a" * 10_000)) < 250


def test_each_thread_has_limits_of_its_own():
    found = []

    def asked():
        thread = threading.Thread(target=lambda: found.append(limits_in_force()))
        thread.start()
        thread.join()

    run_with_limits(Limits(nodes=1), asked)
    assert found == [DEFAULT_LIMITS]


MODEL = """<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[m] y) {
    k = Constant <value = int64[1] {1000}> ()  z = ConstantOfShape (k)  y = Concat <axis = 0> (x, z)
}"""
X = {"x": np.ones(3, np.float32)}


def test_a_session_holds_each_run_to_its_limits():
    session = sabir.Session(sabir.parse(MODEL), limits=Limits(work=3000))
    for _ in range(5):  # each run begins anew
        assert session.run(X)["y"].shape == (1003,)
    with pytest.raises(LimitError, match="ConstantOfShape"):
        sabir.Session(sabir.parse(MODEL), limits=Limits(elements=50)).run(X)


def test_what_dies_in_a_run_is_held_no_more():
    chain = "  ".join(f"a{k + 1} = Neg (a{k})" for k in range(50))
    model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[m] y) {{
        k = Constant <value = int64[1] {{1000}}> ()  a0 = ConstantOfShape (k)  {chain}  y = Add (a50, x)
    }}""")
    x = {"x": np.ones(1, np.float32)}
    assert sabir.evaluate(model, x, limits=Limits(memory=12_000))["y"].shape == (1000,)
    with pytest.raises(LimitError, match="memory"):
        sabir.evaluate(model, x, limits=Limits(memory=6000))


def test_the_values_of_a_function_and_of_a_branch_are_counted():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (bool[1] c, float[1] x) => (float[m] y) {
        z = If (c) <then_branch = t () => (float[k] u) { u = d.F (x) }, else_branch = e () => (float[k] v) { v = Neg (x) }>
        y = Neg (z)
    }
    <domain: "d", opset_import: ["" : 21]> F (a) => (b) {
        k = Constant <value = int64[1] {1000}> ()  z = ConstantOfShape (k)  b = Add (a, z)
    }""")
    feeds = {"c": np.array([True]), "x": np.ones(1, np.float32)}
    assert sabir.evaluate(model, feeds)["y"].shape == (1000,)
    with pytest.raises(LimitError, match="If.*F.*Add.*memory"):
        sabir.evaluate(model, feeds, limits=Limits(memory=6000))


def test_constants_in_attributes_count_as_given():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g () => (float[m] y) {
        k = Constant <value_ints = [1, 2, 3, 4, 5, 6, 7, 8, 9]> ()  y = Cast <to = 1> (k)
    }""")
    assert sabir.evaluate(model, {}, limits=Limits(memory=0, work=0))["y"].shape == (9,)
