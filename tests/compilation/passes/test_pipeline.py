"""The passes: golden listings before and after each, values that stay, verification, and passes left out.

A file of `golden` has the form of `support.golden`: a model, and listings of its tensor expressions after
lowering and after passes.
"""

from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir import loops
from sabir.compilation import PASSES, Compiled, Settings
from sabir.compilation.backends.cpu.passes import PIPELINE
from sabir.compilation.inspect.listing import after_pass
from sabir.compilation.passes import Pass, run_pipeline
from sabir.compilation.plan.layout import RunSizes
from support.golden import check, read

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))
ALL = frozenset(PASSES)
OPTIONAL = [each.name for each in PIPELINE if not each.required]


def compiled(path, settings):
    golden = read(path)
    model = golden.model()
    return Compiled(model, settings=settings), golden.feeds(model)


def listing(plan, name):
    if name == "lowering":
        return "\n".join(after_pass(plan._whole(), RunSizes(plan.sizes), PASSES[-1], ALL))
    return "\n".join(plan.listing(name))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_golden_listings(path):
    made, feeds = compiled(path, Settings())
    plan = made.compile(feeds)
    check(path, lambda name: listing(plan, name))


def test_each_pass_has_a_golden_listing():
    assert {p.stem for p in GOLDEN} >= set(PASSES)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
@pytest.mark.parametrize("left_out", [*OPTIONAL, "all"])
def test_a_plan_without_a_pass_computes_the_same(path, left_out):
    without = frozenset(OPTIONAL if left_out == "all" else [left_out])
    made, feeds = compiled(path, Settings(without=without))
    usual, _ = compiled(path, Settings())
    for name, found in made.run(feeds).items():
        np.testing.assert_allclose(found, usual.run(feeds)[name], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(
            found, sabir.evaluate(read(path).model(), feeds)[name], rtol=1e-4, atol=1e-5
        )


def test_a_pass_that_is_left_out_changes_nothing():
    x = {0: loops.apply("neg", loops.Stored("float", (2,), 1))}
    assert run_pipeline(x, PIPELINE, ALL) == x


def test_the_expressions_after_a_pass_are_verified():
    def broken(_):
        return {0: loops.Reshape("float", (3,), loops.Stored("float", (2,), 1))}

    with pytest.raises(loops.walk.InvalidExpression, match=r"after the pass broken: Reshape float\(3,\)"):
        run_pipeline({0: loops.Stored("float", (2,), 1)}, [*PIPELINE, Pass("broken", broken, lambda _: True)], verify=True)


def test_what_lowering_leaves_is_verified():
    bad = {0: loops.Permute("float", (2, 3), loops.Stored("float", (2, 3), 1), (1, 0))}
    with pytest.raises(loops.walk.InvalidExpression, match="after lowering: Permute"):
        run_pipeline(bad, PIPELINE, verify=True)


def test_an_unknown_pass():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    with pytest.raises(
        sabir.UnsupportedError, match="there is no pass 'inline'; the passes are convolution-algorithms"
    ):
        Compiled(model, settings=Settings(without=frozenset(["inline"])))


def test_a_required_pass_cannot_be_left_out():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    with pytest.raises(sabir.UnsupportedError, match="'convolution-algorithms' is required"):
        Compiled(model, settings=Settings(without=frozenset(["convolution-algorithms"])))
