"""The size that a graph would have with its functions inlined, counted without inlining them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sabir.base import SchemaError, check_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Function, Graph
    from sabir.schema._scope import Scope


def check_expansion(graphs: Iterable[Graph], scope: Scope) -> None:
    """Raise LimitError where graphs with their functions inlined have more nodes than the limit `nodes`.

    Functions that call functions can turn few nodes into very many; the nodes of the file are not limited.
    Raises SchemaError for a function that calls itself.
    """
    check_nodes(*expansion(graphs, scope))


def expansion(graphs: Iterable[Graph], scope: Scope) -> tuple[int, int]:
    """Return how many nodes graphs have with their functions inlined, and how many the file has for them.

    Both are 0 where no function can be called. Raises SchemaError for a function that calls itself.
    """
    if not scope.functions and not scope.registry.operator_sets:
        return 0, 0
    own = 0
    calls: Counter[Function] = Counter()
    for graph in graphs:
        count, called = _counted(graph, scope)
        own += count
        calls += called
    sizes, in_functions = _sizes(calls, scope)
    needed = own + sum((sizes[function] - 1) * times for function, times in calls.items())
    return needed, own + in_functions


def check_recursion(functions: Iterable[Function], scope: Scope) -> None:
    """Raise SchemaError for a function that calls itself, directly or through others."""
    _sizes(functions, scope)


def _counted(graph: Graph, scope: Scope) -> tuple[int, Counter[Function]]:
    """Return how many nodes a graph and its subgraphs have, and which functions they call."""
    count = 0
    called: Counter[Function] = Counter()
    for node in graph.all_nodes():
        count += 1
        function = scope.function_of(node)
        if function is not None:
            called[function] += 1
    return count, called


def _sizes(start: Iterable[Function], scope: Scope) -> tuple[dict[Function, int], int]:
    """Return how many nodes a call of each function becomes, and how many all bodies have."""
    bodies: dict[Function, tuple[int, Counter[Function]]] = {}
    sizes: dict[Function, int] = {}
    pending = list(start)
    while pending:
        function = pending[-1]
        if function in sizes:
            pending.pop()
        elif function in bodies:  # everything that it calls has been looked at since
            count, called = bodies[function]
            open_call = next((k for k in called if k not in sizes), None)
            if open_call is not None:
                raise SchemaError(f"{open_call!r} calls itself")
            sizes[function] = count + sum((sizes[k] - 1) * times for k, times in called.items())
            pending.pop()
        else:
            bodies[function] = _counted(function.graph, scope.of_body(function))
            pending += [k for k in bodies[function][1] if k not in sizes]
    return sizes, sum(count for count, _ in bodies.values())
