"""The examples of Sabir's operators as cases of one node.

An example has outputs that were computed outside of Sabir. The name of a case has the operator, the opset and
the number of the example: `test_det_11_0`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.compat.onnx.backend.test.case.test_case import TestCase
from sabir.opsets import STANDARD
from sabir.reference import example_model
from sabir.serial import to_proto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.schema import Example, Operator

RTOL, ATOL = 1e-3, 1e-7
_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def node_cases(op_type: str | None = None) -> list[TestCase]:
    """Return the cases of all operators of the standard, or of those of one name."""
    return [
        case for operator in _operators() if op_type in {None, operator.name} for case in _cases_of(operator)
    ]


def _operators() -> list[Operator]:
    """Return the operators of the standard whose results follow from their inputs, by domain and name."""
    found = (o for o in STANDARD if o.domain in _DOMAINS and not o.random)
    return sorted(found, key=lambda o: (o.domain, o.name))


def _cases_of(operator: Operator) -> Iterator[TestCase]:
    prefix = "_".join(["test", *operator.domain.split(".")] if operator.domain else ["test"])
    for number, example in enumerate(_examples_of(operator)):
        if operator.at(example.opset).removed or len(example.expect or ()) != example.outputs:
            continue
        word = _WORD.sub("_", operator.name).lower()
        yield _case(f"{prefix}_{word}_{example.opset}_{number}", operator, example)


@functools.cache
def _examples_of(operator: Operator) -> list[Example]:
    return operator.all_examples()


def _case(name: str, operator: Operator, example: Example) -> TestCase:
    model, feeds = example_model(operator, example)
    model.graph.name = name
    expected = [_value(value) for value in example.expect or ()]
    return TestCase(
        name=name,
        model_name=name,
        url=None,
        model_dir=None,
        model=to_proto(model),
        data_sets=[(list(feeds.values()), expected)],
        kind="node",
        rtol=max(RTOL, example.tolerance),
        atol=max(ATOL, example.tolerance),
    )


def _value(value: Any) -> Any:
    """Return an output as an array, but for sequences, maps and empty optionals."""
    return cast("Any", value) if value is None or isinstance(value, (list, dict)) else np.asarray(value)
