"""Operators of other domains, written in operators of the standard."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.base import ConversionError
from sabir.inlining import inline_domains

QUICK = "com.microsoft.QuickGelu <alpha = 0.5> (x)"


def model_of(opset, body, functions="", imports='"com.microsoft" : 1'):
    return sabir.parse(
        f'<ir_version: 8, opset_import: ["" : {opset}, {imports}]>\n'
        f"main (float[N] x) => (float[N] y) {{ {body} }}\n{functions}"
    )


@pytest.mark.parametrize("opset", [7, 13, 18, 21])
def test_onnxruntime_computes_the_same_of_the_result(opset):
    model = model_of(opset, f"t = {QUICK}  y = Relu (t)")
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    expected = sabir.evaluate(model, {"x": x})["y"]

    found = inline_domains(model)

    assert found.replaced == {"com.microsoft.QuickGelu:1": 1}
    assert found.opset == (18 if opset < 18 else None)
    assert list(found.model.opsets) == [""]
    assert model.opsets == {"": opset, "com.microsoft": 1}
    sabir.check(found.model)
    session = onnxruntime.InferenceSession(sabir.dumps(found.model), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(np.asarray(session.run(None, {"x": x})[0]), expected, rtol=1e-6, atol=1e-6)


def test_calls_in_branches_and_functions_are_replaced():
    branches = (
        "c = Constant <value = bool {1}> ()  y = If (c) <then_branch = t () => (float[N] p) "
        f"{{ p = {QUICK} }}, else_branch = e () => (float[N] q) {{ q = d.F (x) }}>"
    )
    function = f'<domain: "d", opset_import: ["" : 18, "com.microsoft" : 1]> F (x) => (b) {{ b = {QUICK} }}'
    model = model_of(18, branches, function, '"com.microsoft" : 1, "d" : 1')

    found = inline_domains(model)

    assert {n.domain for g in found.model.graphs() for n in g} == {""}
    assert found.replaced == {"com.microsoft.QuickGelu:1": 2}
    x = np.float32([1, -2])
    np.testing.assert_array_equal(
        sabir.evaluate(found.model, {"x": x})["y"], sabir.evaluate(model, {"x": x})["y"]
    )


def test_only_the_domains_that_are_named():
    model = model_of(18, f"t = {QUICK}  y = org.acme.Own (t)", imports='"com.microsoft" : 1, "org.acme" : 1')
    found = inline_domains(model, ["com.microsoft"])
    assert [n.op for n in found.model.graph] == ["Mul", "Sigmoid", "Mul", "Own"]
    assert set(found.model.opsets) == {"", "org.acme"}
    with pytest.raises(ConversionError, match=r"1 call cannot .*\n.*org\.acme\.Own: it is not an operator"):
        inline_domains(model)
