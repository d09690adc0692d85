"""One case: a model, and what it computes of what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class TestCase:
    """A case of an engine: in memory (`model`, `data_sets`), in a folder (`model_dir`), or at a `url`.

    `data_sets` are pairs of the inputs and the outputs, in the order of the graph. `kind` is the name of the
    set that the case belongs to: `node`, `simple`, `real`, …; `rtol` and `atol` say how near results must be.
    """

    name: str
    model_name: str
    url: str | None
    model_dir: str | None
    model: Any
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]] | None
    kind: str
    rtol: float
    atol: float
    # pytest collects no class that says so
    __test__: bool = False


__all__ = ["TestCase"]
