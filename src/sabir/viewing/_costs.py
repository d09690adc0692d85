"""What nodes cost, as numbers of a page; the call of a function costs what its body does."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.debugging import node_costs
from sabir.ir import Expr
from sabir.viewing._texts import TEXT, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.inference import Inference
    from sabir.ir import Dim, Node, Value

_KEYS = ("params", "madds")


def add_costs(entry: dict[str, Any], node: Node, inference: Inference, counted: set[Value]) -> None:
    """Add the parameters and multiply-adds of a node to its entry; `counted` has the parameters before it."""
    costs = node_costs(node, inference, counted).costs
    for key, number in zip(_KEYS, (costs.parameters, costs.multiply_adds), strict=True):
        if number is None:
            entry[f"{key}Text"] = "?"
        elif number:
            entry[key] = _amount(number)
            if not isinstance(number, int):
                entry[f"{key}Text"] = shortened(str(number), TEXT)


def add_costs_of_calls(nodes: Iterable[dict[str, Any]], roots: Sequence[int]) -> None:
    """Add to each call of a function what its body costs, the bodies that it calls first.

    `roots` has the graph of a function, or the main graph, around each graph. Functions that call each other
    in a cycle, which the checker reports, have no costs.
    """
    bodies: dict[int, list[dict[str, Any]]] = {graph: [] for graph in roots}
    for entry in nodes:
        bodies[roots[entry["graph"]]].append(entry)
    calls = {graph: {e["function"] for e in body if "function" in e} for graph, body in bodies.items()}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError:
        return
    totals: dict[int, dict[str, float]] = {}
    for graph in order:
        for entry in bodies[graph]:
            if "function" in entry:
                entry.update(totals[entry["function"]])
        totals[graph] = {key: _total(bodies[graph], key) for key in _KEYS}


def _total(entries: Iterable[Mapping[str, Any]], key: str) -> float:
    return sum(entry.get(key, 0.0) for entry in entries)


def _amount(number: Dim) -> float:
    """Return a number of the page: a polynomial counts each dimension variable as 1."""
    if isinstance(number, Expr):
        number = number.substitute(dict.fromkeys(number.symbols, 1))
    return float(number) if isinstance(number, int) and np.isfinite(float(number)) else 0.0
