"""A budget of damage: the nodes that hurt the results most stay wide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.elements import BFLOAT16
from sabir.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.ir import Array, Model
    from sabir.quantization._report import Quantization
    from sabir.quantization._sources import Feeds
    from sabir.schema import Registry


class Damage:
    """The damage of models against a float model: how far their results are away, for some feeds."""

    def __init__(self, model: Model, feeds: Feeds, registry: Registry) -> None:
        self._registry = registry
        self._feeds = feeds
        self._wanted = self._results(model)

    def of(self, model: Model) -> float:
        """Return the root mean square of the difference of an output, relative to that of the output.

        Of several outputs it is the largest. A result that is infinite where the float model's is not counts
        as infinite damage.
        """
        found = self._results(model)
        return max((_relative(found[name], wanted) for name, wanted in self._wanted.items()), default=0.0)

    def _results(self, model: Model) -> dict[str, Array]:
        """Return all elements of each output of floats in all runs."""
        session = Session(model, registry=self._registry)
        parts: dict[str, list[Array]] = {}
        for feed in self._feeds:
            results: Mapping[str, Any] = session.run(feed)
            for name, result in results.items():
                if isinstance(result, np.ndarray) and _is_real(cast("Array", result)):
                    parts.setdefault(name, []).append(np.asarray(result, np.float64).ravel())
        return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _is_real(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype == BFLOAT16.dtype


def _relative(found: Array, wanted: Array) -> float:
    finite = np.isfinite(wanted)
    if found.shape != wanted.shape or not np.isfinite(found[finite]).all():
        return float("inf")
    lost = float(np.square(found[finite] - wanted[finite]).sum())
    total = float(np.square(wanted[finite]).sum())
    if not lost:
        return 0.0
    return (lost / total) ** 0.5 if total else float("inf")


def within_budget(
    make: Callable[[frozenset[str]], Quantization],
    damage: Damage,
    budget: float,
    progress: Callable[[int, int], None] | None,
) -> Quantization:
    """Return a quantization whose damage is at most the budget, with the damage of each node alone.

    `make` quantizes all nodes but those at some locations. The nodes that do most damage alone are left out,
    as few of them as suffice; `progress` is called with the number of nodes measured and of all.
    """
    whole = make(frozenset())
    quantized = [node.location for node in whole.nodes if node.is_quantized]
    alone: dict[str, float] = {}
    for count, location in enumerate(quantized, 1):
        alone[location] = damage.of(make(frozenset(quantized) - {location}).model)
        if progress is not None:
            progress(count, len(quantized))
    order = sorted(quantized, key=lambda location: -alone[location])
    few, enough = 0, len(order)
    while few < enough:
        middle = (few + enough) // 2
        if damage.of(make(frozenset(order[:middle])).model) <= budget:
            enough = middle
        else:
            few = middle + 1
    found = make(frozenset(order[:enough]))
    nodes = tuple(replace(node, damage=alone.get(node.location)) for node in found.nodes)
    return replace(found, nodes=nodes, damage=damage.of(found.model))
