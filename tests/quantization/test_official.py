"""The official models, quantized: they are valid, keep their inputs and outputs, and compute nearly the same."""

import warnings

import numpy as np

import sabir
from sabir.ir import TensorType, verify
from sabir.quantization import quantize_and_report
from support.cases import each_of
from support.official import cases, feeds_of, first_operator

# where a small change of an operand changes a result as a whole, or where results of float16 are infinite
_JUMPS = {
    "Ceil",
    "Floor",
    "Round",
    "Mod",
    "TopK",
    "MaxPool",
    "Unique",
    "Sign",
    "MaxUnpool",
    "GridSample",
    "Resize",
}
_WEIGHTED = {"MatMul", "Gemm", "Conv"}


def has_tensors(case):
    """Return whether a case has tensors alone, and numbers that float16 can tell apart."""
    values = [v for inputs, _ in case.data_sets for v in inputs]
    kinds = {v.type.WhichOneof("value") for v in (*case.model.graph.input, *case.model.graph.output)}
    is_tensor = kinds == {"tensor_type"} and all(
        hasattr(v, "dims") or isinstance(v, np.ndarray) for v in values
    )
    return is_tensor and "large_number" not in case.name  # such as 10000 and 10003


def wanted(what):
    return lambda case: has_tensors(case) and what(case.model.graph)


def has_float(graph):
    """Return whether a case has float32, and is not one that is written out as nodes of other cases."""
    return not graph.name.endswith("_expanded") and any(
        v.type.tensor_type.elem_type == 1 for v in (*graph.input, *graph.output)
    )


def has_weights(graph):
    (*_, node) = graph.node
    return len(graph.node) == 1 and node.op_type in _WEIGHTED and has_float(graph)


@each_of("case", cases(wanted(has_float), share=3), group=first_operator)
def test_models_in_16_bits(case):
    model = sabir.loads(case.model.SerializeToString())
    feeds = feeds_of(model, case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sabir.evaluate(model, feeds)
        found = quantize_and_report(model, "float16", calibration=[feeds])
        verify(found.model)
        errors = {f.rule for f in sabir.findings(found.model) if f.severity == "error"}
        assert not errors or errors <= {f.rule for f in sabir.findings(model) if f.severity == "error"}
        got = sabir.evaluate(found.model, feeds)
    types = [[(v.name, str(v.type)) for v in m.graph.inputs] for m in (model, found.model)]
    assert types[0] == types[1]
    assert list(got) == list(expected)
    random = any(n.op.startswith(("Random", "Bernoulli", "Multinomial", "Dropout")) for n in model.graph)
    for name, value in expected.items():
        assert got[name].dtype == value.dtype
        assert got[name].shape == value.shape or random
        if value.dtype == np.float32 and not random and not _JUMPS & {n.op for n in model.graph}:
            finite = np.isfinite(value)
            scale = max(1.0, float(np.abs(value[finite]).max(initial=0)))
            np.testing.assert_allclose(got[name], value, atol=0.03 * scale, rtol=0.03)


@each_of("case", cases(wanted(has_weights)), group=first_operator)
def test_products_with_weights_in_integers(case):
    model = sabir.loads(case.model.SerializeToString())
    feeds = feeds_of(model, case)
    weights = model.graph.inputs[1]
    kind = weights.type
    data = feeds.pop(weights.name)
    model.graph.inputs.remove(weights)
    model.graph.set_initializer(weights, data)
    assert isinstance(kind, TensorType)
    expected = sabir.evaluate(model, feeds)
    for options in (
        {},
        {"calibration": [feeds]},
        {"weights_only": True, "block": 0},
        {"to": "int4", "block": 8},
    ):
        found = quantize_and_report(model, **options)
        verify(found.model)
        sabir.check(found.model)
        got = sabir.evaluate(found.model, feeds)
        for name, value in expected.items():
            assert got[name].dtype == value.dtype
            scale = max(1.0, float(np.abs(value).max(initial=0)))
            np.testing.assert_allclose(got[name], value, atol=(0.25 if "to" in options else 0.05) * scale)
            if found.nodes[0].shift is not None:  # the biases are corrected for these feeds
                axis = 1 if model.graph[0].op == "Conv" else value.ndim - 1
                others = tuple(a for a in range(value.ndim) if a != axis)
                np.testing.assert_allclose(got[name].mean(others), value.mean(others), atol=1e-3 * scale)
