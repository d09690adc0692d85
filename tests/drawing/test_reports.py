"""Tables of what other packages report."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.quantization import quantize_and_report
from support.markup import cells

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x) => (float[N,1] y, float[N,K] z) <float[2,1] w = {1, 2}> {
    ["/block/product"] h = MatMul (x, w)  y = Relu (h)  z = Unique <axis = 1> (h) }"""
FEEDS = {"x": np.ones((4, 2), np.float32)}


@pytest.fixture(scope="module")
def model():
    return sabir.parse(TEXT)


@pytest.fixture(scope="module")
def compiled(model):
    found = Compiled(model)
    found.compile(FEEDS)
    return found


def test_an_explanation(compiled):
    shown = compiled.explain()
    rows = cells(shown._repr_html_())
    assert rows[0] == ["", "kernel", "nodes", "decisions"]
    assert [row[2] for row in rows[1 : 1 + len(shown.kernels)]] == [
        ", ".join(kernel.nodes) for kernel in shown.kernels
    ]
    assert rows[-1] == [shown.evaluated[0].node, shown.evaluated[0].reason]


def test_a_profile_has_the_slowest_first(compiled):
    profile = compiled.profile(FEEDS, runs=1)
    rows = cells(profile._repr_html_())
    slowest = max(profile.timings, key=lambda t: t.seconds)
    assert rows[0] == ["", "time", "share", "GFLOP/s", "GB/s", "kind", "nodes"]
    assert rows[1][0] == str(profile.timings.index(slowest) + 1)
    assert rows[1][6] == ", ".join(slowest.nodes)


def test_a_comparison(model):
    other = model.clone()
    other.graph.outputs[0].name = "<b>"
    found = sabir.compare(model, other)
    shown = found._repr_html_()
    assert cells(shown)[1:] == [[c.bump or "none", c.kind, str(c.location), c.message] for c in found.changes]
    assert "the version must increase MAJOR" in shown


def test_a_summary(model):
    assert cells(sabir.summary(model)._repr_html_()) == [
        ["layer", "nodes", "parameters", "multiply-adds", "activations", "memory"],
        ["total", "3", "2", "2*N", "12*N", "28*N+8"],
        ["block", "1", "2", "2*N", "4*N", "12*N+8"],
    ]


def test_a_trace(model):
    feeds = {"x": [[1.0, -2.0], [np.nan, np.inf]]}
    rows = {row[0]: row[1:] for row in cells(sabir.trace(model, feeds)._repr_html_())}
    assert rows["x"] == ["float[2,2]", "", "-2", "1", "-0.5", "1", "1"]
    assert rows["h"][1] == "MatMul '/block/product'"
    stopped = sabir.trace(model, feeds, stop_at_nan=True)._repr_html_()
    assert "stopped at x" in stopped


def test_runs_that_part(model):
    other = model.clone()
    other.graph[1].op = "Neg"
    shown = sabir.compare_runs(
        model, other, FEEDS, engines=("reference", "reference"), bisect=True
    )._repr_html_()
    assert cells(shown)[1] == ["y", "6", "2", "4 of 4 elements differ by more than the tolerance"]
    assert "reference and reference: different" in shown
    assert "the runs part at y and y" in shown


def test_a_quantization(model):
    shown = quantize_and_report(model, weights_only=True, block=0)._repr_html_()
    assert "1 of 1 node quantized" in shown
    assert cells(shown)[1][:3] == ["/block/product", "MatMul", "int8"]
