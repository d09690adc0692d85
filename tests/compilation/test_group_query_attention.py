"""GroupQueryAttention in native code: every example as kernels, for a number of keys that a plan knows."""

import numpy as np
import pytest

import sabir
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
    "the numbers of queries are known at run time only",
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


WINDOW, ROOM = 5, 12
WINDOWED = f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[1,Q,8] q, float[1,Q,4] k, float[1,1,{ROOM},4] past, int32[1] n, bool[T] keys, float[1,1,Q,T] bias) => (y, z) {{
    none = Constant <value = int64[0] {{}}> ()
    count = Shape (keys)
    narrow = Cast <to = 6> (count)
    total = Reshape (narrow, none)
    y, z = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1, local_window_size = {WINDOW}>
        (q, k, k, past, past, n, total, , , , BIAS)
}}"""


def windowed(queries, total, rng, ends=None):
    return {
        "q": rng.standard_normal((1, queries, 8)).astype(np.float32),
        "k": rng.standard_normal((1, queries, 4)).astype(np.float32),
        "past": rng.standard_normal((1, 1, ROOM, 4)).astype(np.float32),
        "n": np.int32([(ends or total) - 1]),
        "keys": np.zeros(total, bool),
        "bias": rng.standard_normal((1, 1, queries, total)).astype(np.float32),
    }


@pytest.mark.parametrize("bias", ["", "bias"])
@pytest.mark.parametrize("queries", [1, 2])
def test_only_the_rows_of_a_window_are_read(queries, bias):
    rng = np.random.default_rng(queries)
    model = sabir.parse(WINDOWED.replace("BIAS", bias))
    engine, runner, reach = Compiled(model), Runner(model), WINDOW + queries - 1
    for total in (queries + 1, reach - 1, reach, reach + 1, ROOM):
        feeds = windowed(queries, total, rng)
        expected = runner.run(feeds)
        for name, y in engine.run(feeds).items():
            np.testing.assert_allclose(y, expected[name], rtol=1e-5, atol=1e-6)
        listing = "\n".join(engine.compile(feeds).listing("loops"))
        assert ("starts=[0,0,T-" in listing) == (total >= reach)


def test_fewer_keys_than_their_greatest_number_are_computed_too():
    rng = np.random.default_rng(7)
    model = sabir.parse(WINDOWED.replace("BIAS", ""))
    feeds = windowed(1, ROOM, rng, ends=4)
    for name, y in Compiled(model).run(feeds).items():
        np.testing.assert_allclose(y, Runner(model).run(feeds)[name], rtol=1e-5, atol=1e-6)
