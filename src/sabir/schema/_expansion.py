"""The size that a graph would have with its functions inlined, counted without inlining them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sabir.base import SchemaError, check_nodes
from sabir.ir import canonical_domain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Function, FunctionKey, Graph
    from sabir.schema._scope import Scope


def check_expansion(graphs: Iterable[Graph], scope: Scope) -> None:
    """Raise LimitError where graphs with their functions inlined have more nodes than the limit `nodes`.

    Functions that call functions can turn few nodes into very many; the nodes of the file are not limited.
    Raises SchemaError for a function that calls itself.
    """
    if not scope.functions:
        return
    own = 0
    calls: Counter[FunctionKey] = Counter()
    for graph in graphs:
        count, called = _counted(graph, scope)
        own += count
        calls += called
    sizes, in_functions = _sizes(calls, scope)
    needed = own + sum((sizes[key] - 1) * times for key, times in calls.items())
    check_nodes(needed, own + in_functions)


def _counted(graph: Graph, scope: Scope) -> tuple[int, Counter[FunctionKey]]:
    """Return how many nodes a graph and its subgraphs have, and which functions they call."""
    count = 0
    called: Counter[FunctionKey] = Counter()
    for node in graph.all_nodes():
        count += 1
        key = (canonical_domain(node.domain), node.op, node.overload)
        if key in scope.functions:
            called[key] += 1
    return count, called


def _sizes(start: Iterable[FunctionKey], scope: Scope) -> tuple[dict[FunctionKey, int], int]:
    """Return how many nodes a call of each function becomes, and how many all bodies have."""
    bodies: dict[FunctionKey, tuple[int, Counter[FunctionKey]]] = {}
    sizes: dict[FunctionKey, int] = {}
    pending = list(start)
    while pending:
        key = pending[-1]
        if key in sizes:
            pending.pop()
        elif key in bodies:  # everything that it calls has been looked at since
            count, called = bodies[key]
            open_call = next((k for k in called if k not in sizes), None)
            if open_call is not None:
                raise SchemaError(f"{_named(open_call, scope)!r} calls itself")
            sizes[key] = count + sum((sizes[k] - 1) * times for k, times in called.items())
            pending.pop()
        else:
            bodies[key] = _counted(scope.functions[key].graph, scope)
            pending += [k for k in bodies[key][1] if k not in sizes]
    return sizes, sum(count for count, _ in bodies.values())


def _named(key: FunctionKey, scope: Scope) -> Function:
    return scope.functions[key]
