"""Layers over a page: what runs, the compiler and another model say about nodes."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled, Profile, Roofline, Timing
from sabir.debugging import RunPair
from sabir.viewing import decision_layer, difference_layer, error_layer, page_of, time_layer, trace_layer

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'


@pytest.fixture(scope="module")
def model():
    return sabir.parse(f"{HEAD} {{ a = Sqrt (x)  b = Neg (a)  y = Exp (b) }}")


@pytest.fixture(scope="module")
def page(model):
    return page_of(model)


LABELS = "Sqrt with output 'a'", "Neg with output 'b'", "Exp with output 'y'"


def test_the_time_of_a_kernel_is_shared(page):
    timings = (
        Timing("nest", LABELS[:2], 4e-6, 16, 16),
        Timing("evaluated", LABELS[2:], 2e-6, 0, 8),
        Timing("pack", ("something else",), 1e-6, 0, 8),
    )
    layer = time_layer(page, Profile(timings, 9e-6, 5), Roofline(1e9, 8e6))
    assert layer.values == {0: 2e-6, 1: 2e-6, 2: 2e-6}
    assert layer.groups == [[0, 1]]
    assert layer.notes[0] == [
        "a kernel of kind nest: 4 us for 2 nodes together, 50% of the limit of the machine"
    ]
    assert layer.notes[2] == ["evaluated: 2 us"]
    assert layer.lines == [
        "9 us a run, median of 5; one by one 7 us",
        "1 us in kernels of nodes that the model does not have as they are",
    ]


def test_what_the_compiler_made(model, page):
    compiled = Compiled(model)
    layer = decision_layer(page, compiled.compile({"x": np.ones(4, np.float32)}).explain())
    assert {layer.classes[int(number)] for number in layer.values.values()} == {"fused with other nodes"}
    assert layer.groups == [[0, 1, 2]]
    assert layer.notes[0][0] == "a kernel of kind nest"


def test_evaluated_nodes_have_the_reason():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]>'
        "g (float[4,2] x) => (float[4,M] y) { y = Unique <axis = 1> (x) }"
    )
    plan = Compiled(model).compile({"x": np.ones((4, 2), np.float32)}).explain()
    layer = decision_layer(page_of(model), plan)
    assert layer.classes[int(layer.values[0])] == "evaluated"
    assert layer.notes[0][0].startswith("evaluated: ")


def test_values_of_a_run(model, page):
    layer = trace_layer(page, sabir.trace(model, {"x": np.float32([4, -1, np.inf])}))
    assert [layer.classes[int(layer.values[n])] for n in range(3)] == ["with NaNs"] * 3
    assert layer.notes[0] == ["a: float[3], 2 to 2, mean 2, 1 NaN, 1 infinite"]
    finite = trace_layer(page, sabir.trace(model, {"x": np.float32([4, 1])}))
    assert [finite.classes[int(n)] for n in finite.values.values()] == ["finite"] * 3
    infinite = trace_layer(page, sabir.trace(model, {"x": np.float32([np.inf])}))
    assert infinite.classes[int(infinite.values[0])] == "with infinite elements"


def test_errors_of_another_model(model, page):
    other = sabir.parse(
        f"{HEAD} <float half = {{0.5}}> {{ s = Sqrt (x)  a = Mul (s, half)  b = Neg (a)  y = Exp (b) }}"
    )
    errors = RunPair(model, other, engines=("reference", "reference")).errors({"x": np.float32([9, 16])})
    layer = error_layer(page, errors)
    assert layer.values[0] == pytest.approx(0.5)
    exact, got = np.exp([-3.0, -4.0]), np.exp([-1.5, -2.0])
    assert layer.values[2] == pytest.approx(np.linalg.norm(exact - got) / np.linalg.norm(exact), rel=1e-5)
    assert layer.lines[0].startswith("3 values compared")


def test_errors_of_zeros_are_infinite_and_not_shown():
    one, other = (sabir.parse(f"{HEAD} <float w = {{{number}}}> {{ y = Mul (x, w) }}") for number in (0, 1))
    errors = RunPair(one, other, engines=("reference", "reference")).errors({"x": np.float32([-1])})
    assert [error for _, error in errors] == [np.inf]
    assert error_layer(page_of(one), errors).as_json()["values"] == {}


def test_values_of_other_shapes_have_no_error():
    one = sabir.parse(f"{HEAD} {{ y = Relu (x) }}")
    other = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[1,N] y) <int64 a = {0}> { y = Unsqueeze (x, a) }'
    )
    assert not RunPair(one, other, engines=("reference", "reference")).errors({"x": np.float32([1])})


def test_what_differs():
    new = sabir.parse(f"{HEAD} {{ a = Sqrt (x)  b = LeakyRelu <alpha = 0.5> (a)  y = Exp (b) }}")
    newer = sabir.parse(f"{HEAD} {{ a = Sqrt (x)  b = LeakyRelu <alpha = 0.25> (a)  y = Exp (b) }}")
    page = page_of(new, beside=newer)
    layer = difference_layer(page, new, newer)
    classes = {
        (node.op, is_new): layer.classes[int(layer.values[page.numbers[node]])]
        for is_new, graph in ((False, new.graph), (True, newer.graph))
        for node in graph
    }
    assert classes["LeakyRelu", False] == classes["LeakyRelu", True] == "changed"
    assert classes["Sqrt", False] == classes["Exp", True] == "equal"
    assert layer.notes[page.numbers[newer.graph[1]]] == ["attribute 'alpha' of LeakyRelu was 0.5 and is 0.25"]


def test_nodes_of_one_model_only(model):
    new = sabir.parse(f"{HEAD} {{ a = Sqrt (x)  y = Exp (a) }}")
    page = page_of(model, beside=new)
    layer = difference_layer(page, model, new)
    alone = [node.op for node in model.graph if layer.values[page.numbers[node]] == 2]
    assert alone == ["Neg"]
    assert any("Neg" in line for line in layer.lines)


def test_changed_weights_are_at_their_readers():
    old, new = (sabir.parse(f"{HEAD} <float[1] w = {{{number}}}> {{ y = Add (x, w) }}") for number in (1, 2))
    page = page_of(old, beside=new)
    layer = difference_layer(page, old, new)
    assert [layer.classes[int(n)] for n in layer.values.values()] == ["changed", "changed"]
