"""Cases of whole models, which programs add by `expect`; Sabir has none of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.compat.onnx.backend.test.case._examples import ATOL, RTOL
from sabir.compat.onnx.backend.test.case.test_case import TestCase

if TYPE_CHECKING:
    from collections.abc import Sequence

_added: dict[str, TestCase] = {}


def expect(model: Any, inputs: Sequence[Any], outputs: Sequence[Any], name: str | None = None) -> None:
    """Add a case: a model with its inputs and outputs; the name is `test_` and that of the graph by default.

    Raises ValueError for a name that another case has.
    """
    name = name or f"test_{model.graph.name}"
    if name in _added:
        raise ValueError(f"another case has the name {name!r}; give this one its own")
    _added[name] = TestCase(
        name=name,
        model_name=model.graph.name,
        url=None,
        model_dir=None,
        model=model,
        data_sets=[(inputs, outputs)],
        kind="simple",
        rtol=RTOL,
        atol=ATOL,
    )


def collect_testcases() -> list[TestCase]:
    """Return the cases that `expect` added."""
    return list(_added.values())


__all__ = ["collect_testcases", "expect"]
