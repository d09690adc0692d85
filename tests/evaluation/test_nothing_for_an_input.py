"""A function that is called without an input: who needs it in the body says so."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError

HEAD = '<ir_version: 10, opset_import: ["": 17, "ai.onnx.preview.training": 1, "d": 1]>\n'
SUBGRAPH = "body = b (float[2] s) => (float[2] t) { t = Identity (s) }"
BRANCHES = """then_branch = a () => (float[2] p) { p = Identity (x) },
    else_branch = b () => (float[2] q) { q = Neg (x) }"""
BODIES = {
    "LSTM:14 requires the input 'R'": "y = LSTM (x, x, missing)",
    "GRU:14 requires the input 'X'": "y = GRU (missing, x, x)",
    "RNN:14 requires the input 'W'": "y = RNN (x, missing, x)",
    "STFT:17 requires the input 'signal'": "one = Constant <value_int = 1> () y = STFT (missing, one, x)",
    "Scan:16 requires the input 'initial_state_and_scan_inputs'": f"y = Scan <num_scan_inputs = 1, {SUBGRAPH}> (missing)",
    "SequenceMap:17 requires the input 'input_sequence'": f"y = SequenceMap <{SUBGRAPH}> (missing)",
    "If:16 requires the input 'cond'": f"y = If <{BRANCHES}> (missing)",
    "Relu:14 requires the input 'X'": "y = Relu (missing)",
    "Concat:13 requires the input 'inputs'": "y = Concat <axis = 0> (x, missing)",
}


@pytest.mark.parametrize("told", BODIES)
def test_an_input_that_the_body_needs(told):
    text = f"""{HEAD}g (float[2] x) => (y) {{ y = d.f (x) }}
    <domain: "d", opset_import: ["": 17, "ai.onnx.preview.training": 1]>
    f (x, missing) => (y) {{ {BODIES[told]} }}"""
    with pytest.raises(
        EvaluationError, match=f"{told.partition(' requires')[0]} requires the input .* leaves 'missing' out"
    ):
        sabir.evaluate(sabir.parse(text), {"x": np.float32([1, 2])})


def test_an_input_that_the_body_can_do_without():
    text = f"""{HEAD}g (float[2] x) => (y) {{ y = d.f (x) }}
    <domain: "d", opset_import: ["": 17]>
    f (x, missing) => (y) {{ y = Clip (x, missing, missing) }}"""
    found = sabir.evaluate(sabir.parse(text), {"x": np.float32([1, 2])})["y"]
    assert found.tolist() == [1, 2]


def test_an_empty_optional_goes_where_optionals_go():
    text = f"""{HEAD}g (optional(float[2]) x, int64 m) => (bool y, bool z) {{
        a = Identity (x)  y = OptionalHasElement (a)
        b = Loop <body = b (int64 i, bool c, optional(float[2]) s) => (bool c, optional(float[2]) s) {{}}> (m, "", x)
        z = OptionalHasElement (b)
    }}"""
    found = sabir.evaluate(sabir.parse(text), {"x": None, "m": np.array(2)})
    assert [v.tolist() for v in found.values()] == [False, False]
