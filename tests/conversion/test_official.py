"""Official node cases in other opsets: the same values, here and by onnxruntime.

`tools/conversions.py` converts all official cases to all opsets.
"""

import functools

import onnxruntime
import pytest

import sabir
from support.conversions import Proof, official, official_cases
from support.oracles import RUNTIME_IR, _differ

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sabir.SabirWarning")

SHARE, PARTS = 16, 10
TARGETS = {"": (8, 13, 18, 28), "ai.onnx.ml": (1, 3, 5)}
BY_RUNTIME = range(7, 27)  # the opsets that onnxruntime supports


@functools.cache
def sampled():
    """One official case in SHARE, in all its variants; one operator has its cases side by side."""
    return [variant for case in official()[::SHARE] for variant in official_cases(case)]


@pytest.mark.parametrize("part", range(PARTS))
def test_official_cases_compute_the_same(part):
    for case in sampled()[part::PARTS]:
        proof = Proof(case)
        for target in TARGETS[case.domain]:
            if target != case.opset:
                proof.to(target)


def by_onnxruntime(model, feeds):
    """The results of onnxruntime, or None where it has no kernel for a call."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    model.ir_version = min(model.ir_version, RUNTIME_IR)
    try:
        session = onnxruntime.InferenceSession(
            sabir.dumps(model), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, feeds)
    except Exception:  # ruff: ignore[blind-except]  its errors have no common base; all mean the same here
        return None


def test_onnxruntime_computes_the_same():
    compared = 0
    for case in sampled()[::3]:
        for target in set(TARGETS[case.domain]) & {*BY_RUNTIME} - {case.opset}:
            proof = Proof(case)
            got = proof.to(target)
            theirs = by_onnxruntime(got, case.feeds) if isinstance(got, sabir.Model) else None
            if theirs is None:
                continue
            compared += 1
            for ours, other in zip(proof.expected, theirs, strict=True):
                problem = _differ(ours, other, max(case.tolerance, 1e-4), random=False)
                assert problem is None, f"{case.name} {case.opset} → {target}: {problem}"
    assert compared > 80
