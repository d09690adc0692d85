"""A subgraph gets as many inputs as it takes, but for those that have a default."""

import numpy as np
import pytest

import sabir
from sabir.base import CheckError, EvaluationError

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
TOO_MANY = {
    "If": "g (bool c, float[N] x) => (float[N] y) { y = If <"
    "then_branch = a (float[N] k) => (float[N] r) { r = Identity (x) },"
    " else_branch = b () => (float[N] q) { q = Relu (x) }> (c) }",
    "Loop": "g (bool c, float[N] x) => (float[N] y) { n = Constant <value_int = 1> () y = Loop <body ="
    " b (int64 i, bool k, float[N] p, float[N] extra) => (bool k2, float[N] r)"
    " { k2 = Identity (k) r = Relu (p) }> (n, c, x) }",
    "SequenceMap": "g (bool c, float[N] x) => (seq(float[N]) y) { s = SequenceConstruct (x) y = SequenceMap <body ="
    " b (float[n] p, float[n] extra) => (float[n] z) { z = Identity (p) }> (s) }",
}
WITH_DEFAULT = (
    "g (bool c, float[N] x) => (float[N] y) { n = Constant <value_int = 2> () y = Loop <body ="
    " b (int64 i, bool k, float[N] p, float extra) => (bool k2, float[N] r) <float extra = {3}>"
    " { k2 = Identity (k) r = Add (p, extra) }> (n, c, x) }"
)
FEEDS = {"c": np.bool_(1), "x": np.float32([1, 2])}


@pytest.mark.parametrize("op", TOO_MANY)
def test_an_input_that_nobody_gives_is_an_error(op):
    model = sabir.parse(HEAD + TOO_MANY[op])
    with pytest.raises(CheckError, match="takes . inputs, and gets ."):
        sabir.check(model)
    with pytest.raises(
        EvaluationError, match=f"{op} with output 'y': the subgraph '.' takes . inputs, and gets ."
    ):
        sabir.evaluate(model, FEEDS)


def test_an_input_with_a_default_may_be_left_out():
    model = sabir.parse(HEAD + WITH_DEFAULT)
    sabir.check(model, select=["TYPE"])
    assert sabir.evaluate(model, FEEDS)["y"].tolist() == [7, 8]
