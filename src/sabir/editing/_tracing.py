"""The nodes that values depend on, back to cuts, inputs and constants, with the path to each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote
from sabir.ir import Graph, canonical_domain
from sabir.rewriting import enclosing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from sabir.ir import Model, Node, Value
    from sabir.schema import Registry

_MOST_STEPS = 8  # of a path that a message shows


@dataclass
class Trace:
    """What some values of a graph depend on.

    `nodes` compute them, `cuts` are the values at which the walk was told to end, `constants` are
    initializers. `inputs` are inputs of the graph, and values that a graph around it computes. `readers` has
    for each value the one, nearer to the values asked for, through which it was reached first.
    """

    nodes: set[Node] = field(default_factory=set["Node"])
    cuts: dict[Value, None] = field(default_factory=dict["Value", None])
    inputs: dict[Value, None] = field(default_factory=dict["Value", None])
    constants: dict[Value, None] = field(default_factory=dict["Value", None])
    readers: dict[Value, Value | None] = field(default_factory=dict["Value", "Value | None"])

    def path(self, value: Value) -> str:
        """Return a shortest path from a value that was asked for to one that it depends on."""
        steps: list[str] = []
        step: Value | None = value
        while step is not None:
            steps.append(step.name or "(unnamed)")
            step = self.readers[step]
        if len(steps) > _MOST_STEPS:
            half = _MOST_STEPS // 2
            steps[half:-half] = [f"({len(steps) - 2 * half} more)"]
        return " <- ".join(reversed(steps))


def trace(
    graph: Graph,
    values: Iterable[Value | None],
    *,
    cuts: Collection[Value] = (),
    constants: Collection[Node] = (),
) -> Trace:
    """Return what values of a graph depend on; `constants` are nodes of graphs around it that belong to them.

    Raises SchemaError where a node reads a value that nothing defines.
    """
    found = Trace(readers={value: None for value in values if value is not None})
    pending = deque(found.readers)
    while pending:
        value = pending.popleft()
        node = value.node
        if value in cuts:
            found.cuts[value] = None
        elif node is None:
            (found.inputs if value.is_input else found.constants)[value] = None
        elif node.graph is not graph and node not in constants:
            found.inputs[value] = None
        elif node not in found.nodes:
            found.nodes.add(node)
            for read in reads(node):
                if read not in found.readers:
                    found.readers[read] = value
                    pending.append(read)
    return found


def reads(node: Node) -> Iterator[Value]:
    """Yield the values that a node and its subgraphs read, without those that the subgraphs define.

    Raises SchemaError for a value that nothing defines.
    """
    scopes = [scope for inner in node.graphs for scope in inner.scopes()]
    inside = set(map(id, scopes))
    inner_reads = (v for s in scopes for v in (*(v for n in s for v in n.inputs), *s.outputs))
    for value in (*node.inputs, *inner_reads):
        if value is None:
            continue
        if value.source is None:
            raise SchemaError(f"{node!r} reads {quote(value.name)}, which nothing defines")
        if id(value.home) not in inside:
            yield value


def constant_nodes(model: Model, graph: Graph, registry: Registry) -> set[Node]:
    """Return the nodes of a graph and of those around it that compute the same in every run.

    They read only initializers and each other, and draw no random numbers. A node with a subgraph, a call of
    a function and a call of an unknown operator are not among them.
    """
    state, functions = model.state(), model.functions_by_key()
    found: set[Node] = set()

    def is_constant(value: Value | None) -> bool:
        if value is None or value.node in found:
            return True
        return isinstance(value.source, Graph) and not value.is_input and value not in state

    def is_fixed(node: Node) -> bool:
        domain = canonical_domain(node.domain)
        if node.graphs or (domain, node.op, node.overload) in functions:
            return False
        version = registry.find_version(domain, node.op, model.opset(domain))
        return version is not None and not version.operator.random

    for outer in reversed(list(enclosing(graph))):
        found.update(
            node for node in outer.sorted_nodes() if all(map(is_constant, node.inputs)) and is_fixed(node)
        )
    return found
