"""GroupQueryAttention in native code: every example as kernels, for a number of keys that a plan knows."""

import numpy as np
import pytest

from sabir.compilation import Compiled
from sabir.compilation.frontend.lowering import lower
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.frontend.prepare import prepare
from sabir.evaluation import Runner
from sabir.ir import Builder
from sabir.opsets import STANDARD
from support.rooms import attributes_of, type_of

OPERATOR = STANDARD.find("com.microsoft", "GroupQueryAttention")
EXAMPLES = list(OPERATOR.all_examples())
TOTAL = 6  # the operand `total_sequence_length`
REFUSED = {
    "a cache that drops the keys before the window has no kernel",
    "whether there are new keys is known at run time only",
}


def model_of(example):
    """A model of the call and its feeds; the number of keys is a constant."""
    b = Builder(21, opsets={"com.microsoft": 1})
    operands, feeds = [], {}
    for place, x in enumerate(example.inputs):
        if x is None:
            operands.append(None)
        elif place == TOTAL:
            operands.append(b.initializer("total", np.int32(x)))
        else:
            array = np.asarray(x, np.int32) if isinstance(x, list) else np.asarray(x)
            operands.append(b.input(f"x{place}", type_of(array)))
            feeds[f"x{place}"] = array
    attributes = attributes_of(OPERATOR.at(1), example)
    made = b.op(OPERATOR.name, *operands, domain="com.microsoft", outputs=example.outputs, **attributes)
    for place, value in enumerate(made if isinstance(made, tuple) else (made,)):
        b.output(value, f"y{place}")
    return b.model(), feeds


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_kernels_compute_what_the_interpreter_does(number):
    example = EXAMPLES[number]
    model, feeds = model_of(example)
    pattern, sizes = pattern_of([v.type for v in model.graph.inputs], [*feeds.values()])
    found = lower(prepare(model, pattern, sizes, STANDARD, newer_opsets=False), sizes)
    assert {step.reason for step in found.evaluated.values()} <= REFUSED

    expected, results = Runner(model).run(feeds), Compiled(model).run(feeds)

    tolerance = 2e-2 if next(iter(expected.values())).dtype.itemsize < 4 else 2e-5
    for name, y in expected.items():
        a, b = (t.astype(np.float32) for t in (y, results[name]))
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
