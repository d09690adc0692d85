"""Every example of every room through onnxruntime too, where it has a kernel for the call."""

import itertools

import numpy as np
import pytest

from support.oracles import RUNTIME_OPSET, by_onnxruntime, crashes, difference
from support.rooms import EXAMPLES, model_of, run

pytest.importorskip("onnxruntime")

NAN = "onnxruntime's order of comparisons loses a NaN; the reference implementation (numpy) passes it on"
WRAPS = "an integer overflows: onnxruntime reduces through another type, here the type wraps as numpy's do"
BODY = "the operator's function body in the standard decides, and "
# (operator, opset) of the calls that onnxruntime answers otherwise than the standard does
DECIDED = {}


def groups():
    """The examples, by operator."""
    for operator, params in itertools.groupby(EXAMPLES, key=lambda p: p.values[0]):
        name = f"{operator.domain}.{operator.name}".removeprefix(".")
        yield pytest.param(name, [p.values for p in params], id=name)


@pytest.mark.parametrize(("name", "calls"), groups())
def test_onnxruntime_computes_the_same(name, calls):
    found = {}
    for number, (operator, example) in enumerate(calls):
        theirs = by_onnxruntime(operator, example)
        if theirs is None:  # outside its reach
            continue
        with np.errstate(all="ignore"):
            ours = run(*model_of(operator, example))
        told = difference(ours, theirs, example, operator)
        if told:
            found.setdefault((name, example.opset), []).append(f"example {number}: {told}")

    assert not {key: told for key, told in found.items() if key not in DECIDED}
    assert found.keys() == {key for key in DECIDED if key[0] == name}, "an entry is not needed"


def test_decisions_name_operators():
    assert {name for name, _ in DECIDED} <= {p.id for p in groups()}
    assert all(opset <= RUNTIME_OPSET or "." in name for name, opset in DECIDED)


def test_what_crashes_it_is_kept_to_a_few():
    assert sum(bool(crashes(*p.values)) for p in EXAMPLES) < 30
