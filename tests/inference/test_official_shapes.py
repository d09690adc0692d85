# ruff: file-ignore[banned-api]  the official cases and the second evaluator are onnx's
"""Shapes of the official node cases: none is wrong, and what is left open cannot be known from the model."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx.backend.test.loader import load_node_model_tests
from onnx.reference import ReferenceEvaluator

from support.shapes import IMPRECISE, page, shape_of, survey

DOCUMENT = Path(__file__).parents[2] / "docs" / "inference.md"
LEAST = 1982  # outputs all of whose dimensions are numbers

# cases for which onnx's reference evaluator answers otherwise
APART = {
    "test_image_decoder_": "it fails on what is no image, for which the standard wants no pixels",
    "test_range_": "it stacks the scalars of the loop in Range's function body as rows of one",
}


def test_no_shape_is_wrong():
    assert survey().wrong == []


def test_no_fewer_shapes_are_known():
    assert survey().static >= LEAST
    assert survey().static > survey().of_onnx


def test_what_is_open_depends_on_what_is_fed():
    assert [o for o in survey().opened if not o.excused and o.operator not in IMPRECISE] == []


def test_every_open_dimension_is_seen_with_two_sizes():
    assert [o for o in survey().opened if not o.tight and o.operator not in IMPRECISE] == []


def test_the_document_is_current():
    assert page(survey()) == DOCUMENT.read_text("utf-8"), "run tools/write_inference.py"


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases are computed here, divisions by zero among them
        return {case.name: case for case in load_node_model_tests()}


def shapes_by_onnx(case, output):
    """The shapes that onnx's reference evaluator gives an output on other contents, None where it fails."""
    names = [v.name for v in case.model.graph.input]
    own = dict(zip(names, case.data_sets[0][0], strict=True))
    runner, place = (
        ReferenceEvaluator(case.model),
        [v.name for v in case.model.graph.output].index(output.output),
    )
    for others in output.witnesses:
        try:
            with np.errstate(all="ignore"):
                yield shape_of(runner.run(None, {**own, **others})[place])
        except Exception:  # ruff: ignore[blind-except]  its errors have no common base
            yield None


def test_the_reference_evaluator_gives_the_other_shapes_too(cases):
    apart = {o.case for o in survey().opened if [*shapes_by_onnx(cases[o.case], o)] != o.shapes[1:]}
    assert [c for c in apart if not c.startswith(tuple(APART))] == []
    assert {start for start in APART if any(c.startswith(start) for c in apart)} == APART.keys()
