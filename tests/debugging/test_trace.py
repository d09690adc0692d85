"""`trace`: what each value of a run was."""

import numpy as np
import pytest

import sabir

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) <float[1] w = {0.5}> {
  s = Sub (x, w)
  [root] r = Sqrt (s)
  i = Reciprocal (r)
  y = Relu (i)
}"""


def test_every_value_is_described_in_order():
    found = sabir.trace(sabir.parse(MODEL), {"x": np.float32([0.5, 1.5])})
    assert [v.name for v in found.values] == ["w", "x", "s", "r", "i", "y"]
    by_name = {v.name: v for v in found.values}
    assert not by_name["x"].node
    assert by_name["r"].node == "Sqrt 'root'"
    assert by_name["s"].type == "float[2]"
    assert by_name["s"].statistics[:3] == (0, 1, 0.5)
    assert (by_name["i"].infinities, by_name["i"].nans, by_name["i"].statistics.maximum) == (1, 0, 1)
    assert found.nan is None
    assert "i: float[2], 1 to 1, mean 1, 1 infinite" in str(found)


def test_a_run_stops_at_the_first_nan():
    found = sabir.trace(sabir.parse(MODEL), [[0.0, 1.5]], stop_at_nan=True)
    assert found.values[-1].name == "r"
    assert (found.nan.value.node, found.nan.value.nans) == ("Sqrt 'root'", 1)
    assert [(v.name, v.statistics.minimum) for v in found.nan.operands] == [("s", -0.5)]


def test_a_nan_of_an_input_or_weight_has_no_operands():
    model = sabir.parse(MODEL)
    found = sabir.trace(model, [[np.nan, 1.5]], stop_at_nan=True)
    assert (found.nan.value.name, found.nan.operands) == ("x", ())
    model.graph.initializers["w"] = np.float32([np.nan])
    assert sabir.trace(model, [[1.0, 1.5]], stop_at_nan=True).nan.value.name == "w"


def test_operands_of_subgraphs_are_named():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[1] x) => (float[1] y) {
  y = If (c) <then_branch = a () => (float[1] s) { s = Sqrt (x) },
              else_branch = b () => (float[1] t) { t = Neg (x) }>
}""")
    found = sabir.trace(model, {"c": True, "x": [-1.0]}, stop_at_nan=True)
    assert [v.name for v in found.nan.operands] == ["c", "x"]


def test_values_are_seen_as_they_are_computed():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x, int64[1] to) => (float[?] y) { n = Neg (x)  y = Reshape (n, to) }""")
    seen = {}
    with pytest.raises(sabir.EvaluationError, match="Reshape"):
        sabir.trace(
            model, [[1.0, 2.0], [5]], observe=lambda value, array: seen.update({value.name: array.copy()})
        )
    assert seen["n"].tolist() == [-1, -2]


def test_values_that_are_no_numbers_have_a_type():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (string[2] x) => (seq(string[2]) s, string[2] y) { s = SequenceConstruct (x)  y = Identity (x) }""")
    found = sabir.trace(model, [["a", "b"]])
    assert [(v.type, v.statistics) for v in found.values] == [
        ("string[2]", None),
        ("sequence of 1", None),
        ("string[2]", None),
    ]


def test_results_that_nothing_reads_are_left_out():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[2] a) { a, b = Split <num_outputs = 2> (x)  unread = Neg (x) }""")
    assert [v.name for v in sabir.trace(model, [np.zeros(4, np.float32)]).values] == ["x", "a"]
