"""Models in 16-bit floats: what is narrow, where values are cast, and what stays."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.ir import verify
from sabir.quantization import quantize_and_report

RNG = np.random.default_rng(0)


def network():
    """A product whose sum overflows float16 in `square`, between two that do not."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 16])
    w = b.initializer("w", RNG.standard_normal((16, 16)).astype(np.float32))
    h = b.MatMul(x, w, name="first")
    square = b.Mul(b.Mul(h, 300.0, name="scaled"), b.Mul(h, 300.0), name="square")
    b.output(b.MatMul(b.Sqrt(square, name="root"), w, name="last"), "y")
    return b.model()


def feeds():
    return {"x": RNG.standard_normal((4, 16)).astype(np.float32)}


def reports(model, *arguments, **options):
    found = quantize_and_report(model, *arguments, **options)
    verify(found.model)
    sabir.check(found.model)
    return found.model, {node.name: node for node in found.nodes}


def test_nodes_that_overflow_stay_wide():
    model, given = network(), feeds()
    wanted = sabir.Session(model).run(given)["y"]
    narrow, nodes = reports(model, "float16")
    assert all(node.to == "float16" for node in nodes.values())
    assert not np.isfinite(sabir.Session(narrow).run(given)["y"]).all()

    found, nodes = reports(model, "float16", calibration=[given])

    assert (nodes["first"].to, nodes["last"].to) == ("float16", "float16")
    assert "and float16 ends at 6.55e+04" in nodes["square"].reason
    got = sabir.Session(found).run(given)["y"]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, atol=0.01 * np.abs(wanted).max())
    peer = onnxruntime.InferenceSession(sabir.dumps(found)).run(None, given)[0]
    np.testing.assert_allclose(np.asarray(peer), got, atol=0.01 * np.abs(wanted).max())


def test_bfloat16_has_the_range_of_float32():
    model, given = network(), feeds()
    wanted = sabir.Session(model).run(given)["y"]
    found, nodes = reports(model, "bfloat16", calibration=[given])
    assert all(node.to == "bfloat16" for node in nodes.values())
    np.testing.assert_allclose(sabir.Session(found).run(given)["y"], wanted, atol=0.05 * np.abs(wanted).max())


def test_weights_are_stored_once_in_the_type_of_their_readers():
    model = network()
    narrow, _ = reports(model, "float16")
    assert str(narrow.graph.initializers["w"].element) == "float16"
    both, _ = reports(model, "float16", exclude=["first"])
    kinds = {v.name: str(t.element) for v, t in both.graph.initializers.items() if v.name.startswith("w")}
    assert kinds == {"w": "float", "w_float16": "float16"}


def test_inputs_and_outputs_change_on_request_only():
    model = network()
    kept, _ = reports(model, "float16")
    assert [str(v.type) for v in (*kept.graph.inputs, *kept.graph.outputs)] == ["float[N,16]"] * 2
    changed, _ = reports(model, "float16", keep_io=False)
    assert [str(v.type) for v in (*changed.graph.inputs, *changed.graph.outputs)] == ["float16[N,16]"] * 2
    assert [v.name for v in (*changed.graph.inputs, *changed.graph.outputs)] == ["x", "y"]
    assert "Cast" not in {node.op for node in changed.graph}
    wide_end, _ = reports(model, "float16", keep_io=False, exclude=["last"])
    assert str(wide_end.graph.outputs[0].type) == "float16[N,16]"
    assert wide_end.graph.outputs[0].node.op == "Cast"


def test_subgraphs_and_functions_read_what_they_declare():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[2] x, bool c) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
      [sum] a = Add (x, w)
      y = If (c) <then_branch = then () => (float[2] p) { p = Mul (a, w) },
                  else_branch = other () => (float[2] q) { q = Identity (a) }>
      u = f.apply (a)
      z = Add (u, a)
    }
    <domain: "f", opset_import: ["" : 21]> apply (x) => (y) { y = Neg (x) }""")
    given = {"x": np.float32([1, 3]), "c": np.bool_(1)}
    report = quantize_and_report(model, "float16")
    found = report.model
    verify(found)
    sabir.check(found)
    assert [node.reason for node in report.nodes if node.op in {"If", "Mul", "Identity", "apply"}] == [
        "it has a subgraph, or is in a subgraph or a function",
        "it has a subgraph, or is in a subgraph or a function",
        "it has a subgraph, or is in a subgraph or a function",
        "it calls a function, or an operator that is not known",
    ]
    assert found.graph.node("sum").output.element.name == "float16"
    wanted = sabir.Session(model).run(given)
    got = sabir.Session(found).run(given)
    assert {name: value.tolist() for name, value in got.items()} == {n: v.tolist() for n, v in wanted.items()}


def test_options_of_integers_are_refused():
    for options, message in (
        ({"to": "float16", "weights_only": True}, "float16 has no scales"),
        ({"to": "bfloat16", "symmetric": True}, "bfloat16 has no scales"),
        ({"to": "int8", "keep_io": False}, "is for 16-bit floats"),
    ):
        with pytest.raises(sabir.UnsupportedError, match=message):
            sabir.quantize(network(), **options)
    with pytest.raises(sabir.base.NotFoundError, match="is it 'first'"):
        sabir.quantize(network(), "float16", exclude=["frist"])
