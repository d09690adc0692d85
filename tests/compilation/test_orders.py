"""Results that are transposed and flattened: a kernel writes them in that order, or they are copied to it."""

import numpy as np
import pytest

from sabir.base import SabirError
from sabir.compilation import Compiled
from sabir.evaluation import Runner
from sabir.ir import Model, minimum_ir
from sabir.reference import example_call
from sabir.schema import Example, Operator
from sabir.syntax import parse
from support.rooms import OPERATORS, answers_of, examples_of

LEAST_OPSET = 5  # of an example of this domain, for Reshape
FLOATS = (np.float32, np.float64)
HEAD = '<ir_version: 10, opset_import: ["" : 22, "ai.onnx.ml" : 5]>'
# kernels that write row by row, with results of several elements along each axis
ROW_BY_ROW = {
    "regions": """g (float[1, 3, 6, 8] x, float[2, 4] boxes) => (y) { items = Constant <value_ints = [0, 0]> ()
        r = RoiAlign <output_height = 2, output_width = 4> (x, boxes, items)  f = Flatten (r)  y = Neg (f) }""",
    "whole regions": """g (float[1, 3, 6, 8] x, float[2, 5] rois) => (y) {
        r = MaxRoiPool <pooled_shape = [2, 4]> (x, rois)  f = Flatten (r)  y = Neg (f) }""",
    "trees": """g (double[3, 2] x) => (y) {
        s = ai.onnx.ml.TreeEnsemble <n_targets = 2, aggregate_function = 1, tree_roots = [0], nodes_modes = uint8[1] {0},
            nodes_splits = double[1] {0.5}, nodes_featureids = [0], nodes_truenodeids = [0], nodes_trueleafs = [1],
            nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = [0, 1], leaf_weights = double[2] {3, 5}> (x)
        t = Transpose (s)  k = Constant <value_ints = [-1]> ()  f = Reshape (t, k)  y = Neg (f) }""",
}


def feeds_of(model: Model) -> dict:
    rng = np.random.default_rng(0)
    feeds = {
        v.name: rng.random([int(d) for d in v.type.shape], v.type.element.dtype) for v in model.graph.inputs
    }
    if "boxes" in feeds:
        feeds["boxes"] = np.float32([[0, 1, 5, 5], [2, 0, 7, 3]])
    if "rois" in feeds:
        feeds["rois"] = np.float32([[0, 0, 1, 5, 5], [0, 2, 0, 7, 3]])
    return feeds


def compare(model: Model, feeds: dict) -> None:
    expected = Runner(model).run(feeds)
    for name, found in Compiled(model).run(feeds).items():
        np.testing.assert_allclose(found, expected[name], 1e-3, 1e-4)


@pytest.mark.parametrize("text", ROW_BY_ROW.values(), ids=ROW_BY_ROW)
def test_kernels_that_write_row_by_row(text):
    model = parse(f"{HEAD} {text}")
    compare(model, feeds_of(model))


def flattened(operator: Operator, example: Example, ranks: list[int]) -> tuple[Model, dict]:
    """The model of an example whose tensors of several axes are transposed, flattened and negated."""
    b, made, feeds = example_call(operator, example)
    for i, (value, rank) in enumerate(zip(made, ranks, strict=True)):
        if rank > 1:
            turned = b.op("Transpose", value, perm=list(reversed(range(rank))))
            flat = (
                b.op("Flatten", turned)
                if rank > 2
                else b.op("Reshape", turned, b.initializer("flat", np.array([-1])))
            )
            b.output(b.op("Neg", flat), f"o{i}")
    return b.model(ir_version=minimum_ir(max(example.opset, 21))), feeds


def chosen(operator: Operator) -> tuple[Example, list[int]] | None:
    """The example of the newest version whose results have most axes of several numbers, and their ranks."""
    best, found = 0, None
    for example in examples_of(operator):
        newest = operator.versions[-1]
        if newest.removed or operator.at(example.opset) is not newest or example.opset < LEAST_OPSET:
            continue
        try:
            results = answers_of(operator, example, "reference")
        except SabirError:  # an example of an error
            continue
        ranks = [x.ndim if isinstance(x, np.ndarray) and x.dtype in FLOATS else 0 for x in results]
        several = max(
            (sum(n > 1 for n in x.shape) for x, rank in zip(results, ranks, strict=True) if rank > 1),
            default=0,
        )
        if several > best:
            best, found = several, (example, ranks)
    return found


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: f"{o.domain}.{o.name}".removeprefix("."))
def test_every_operator(operator):
    found = chosen(operator)
    if found is not None and not operator.random:
        compare(*flattened(operator, *found))
