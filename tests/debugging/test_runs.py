"""`compare_runs`: how the results of two runs differ, and where they part."""

import numpy as np
import pytest

import sabir
from sabir.debugging import RunPair, difference

HEADER = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'


def model_of(body, header=HEADER):
    return sabir.parse(f"{header} {{ {body} }}")


FEEDS = {"x": np.float32([1, -2, 3])}
CHAIN = "a = Neg (x)  b = Relu (a)  c = Exp (b)  y = Sin (c)"


def test_engines_agree():
    found = sabir.compare_runs(model_of(CHAIN), None, FEEDS, bisect=True)
    assert found.engines == ("compiled", "reference")
    assert found.equal
    assert (found.parting, found.compared) == (None, 4)


def test_the_first_different_value_is_found_with_its_operands():
    other = model_of("v = Neg (x)  w = LeakyRelu (v)  z = Exp (w)  y = Sin (z)")
    found = sabir.compare_runs(model_of(CHAIN), other, [[1, -2, 3]], bisect=True)
    assert not found.equal
    # operators that differ do not correspond: the first value that does comes after them
    assert found.parting.names == ("c", "z")
    assert found.parting.nodes == ("Exp with output 'c'", "Exp with output 'z'")
    assert not found.parting.alone
    named = sabir.compare_runs(model_of(CHAIN), model_of(CHAIN.replace("Relu", "Abs")), FEEDS, bisect=True)
    assert named.parting.names == ("b", "b")
    assert [(d.name, d.problem) for d in named.parting.operands] == [("a", "")]
    assert named.parting.difference.largest == 3


def test_a_changed_weight_is_found():
    b = sabir.Builder(21)
    x = b.MatMul(b.input("x", "float", [2, 3]), b.initializer("w", np.ones((3, 3), np.float32)), name="one")
    b.output(b.Relu(b.MatMul(x, b.initializer("v", np.ones((3, 3), np.float32)), name="two")), "y")
    model = b.model()
    other = model.clone()
    other.graph.initializers["v"] = np.full((3, 3), 1.5, np.float32)
    found = sabir.compare_runs(model, other, [np.ones((2, 3), np.float32)], bisect=True)
    assert found.parting.nodes[0] == "MatMul 'two'"


def test_floats_of_other_widths_are_compared():
    half = model_of(
        "h = Cast <to = 10> (x)  a = Neg (h)  b = Relu (a)  k = Exp (b)  c = Cast <to = 1> (k)  y = Sin (c)"
    )
    found = sabir.compare_runs(model_of(CHAIN), half, FEEDS, bisect=True, rtol=1e-2)
    assert (found.equal, found.parting) == (True, None)
    tight = sabir.compare_runs(model_of(CHAIN), half, FEEDS, bisect=True, rtol=1e-7, atol=0)
    assert tight.parting.names == ("c", "c")


def test_a_difference_of_fused_kernels_is_found_by_halves(monkeypatch):
    """A compiled run that goes wrong from `b` on, but not where all values are requested."""
    pair = RunPair(model_of(CHAIN))
    run = pair._sessions[0].run

    def faulty(feeds, outputs=None):
        results = run(feeds, outputs)
        wrong = outputs is None or (len(outputs) == 1 and outputs[0] in {"b", "c", "y"})
        return {name: value + 1 for name, value in results.items()} if wrong else results

    monkeypatch.setattr(pair._sessions[0], "run", faulty)
    parting, compared = pair.part(FEEDS)
    assert (parting.names[0], parting.alone, compared) == ("b", True, 4)


def test_outputs_are_matched_by_name_or_as_the_only_ones():
    other = sabir.parse(HEADER.replace("float[N] y", "float[N] z") + "{ z = Neg (x) }")
    assert sabir.compare_runs(model_of("y = Neg (x)"), other, FEEDS).equal
    two = sabir.parse(HEADER.replace("float[N] y", "float[N] y, float[N] z") + "{ y = Neg (x)  z = Abs (x) }")
    found = sabir.compare_runs(two, model_of("y = Neg (x)"), FEEDS)
    assert [(d.name, d.problem) for d in found.outputs] == [
        ("y", ""),
        ("z", "the second model has no such output"),
    ]


def test_an_input_of_the_second_model_alone_is_an_error():
    other = sabir.parse(HEADER.replace("x)", "w)") + "{ y = Neg (w) }")
    with pytest.raises(sabir.FeedError, match="the second model has the input 'w'"):
        sabir.compare_runs(model_of("y = Neg (x)"), other, FEEDS)


def test_differences_of_values():
    one = np.float32([1, np.nan, np.inf])
    assert difference("y", one, one.copy(), 0, 0) == ("y", 0, 0, "")
    assert difference("y", one, one.astype(np.float64), 0, 0).problem == "float32[3], expected float64[3]"
    assert difference("y", [one], [one, one], 0, 0).problem == "the keys or the number of items differ"
    assert difference("y", {"a": 1.0}, {"a": 2.0}, 0, 0).problem == (
        "y['a']: 1 of 1 elements differ by more than the tolerance"
    )
    assert difference("y", one, None, 0, 0).problem == "there is a value, and none is expected"
    assert difference("y", np.array(["a"]), np.array(["b"]), 0, 0).problem == "1 elements differ"
