"""What `sabir show` counts: nodes, parameters, bytes. No tensor is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import SabirError
from sabir.ir import ExternalTensor, Node, SparseTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Constant, Function, Graph, Model, Tensor


@dataclass
class Stored:
    """Some tensors: how many, with how many elements, in how many bytes."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0

    def add(self, constant: Constant) -> None:
        """Count one more."""
        parts = (constant.values, constant.indices) if isinstance(constant, SparseTensor) else (constant,)
        self.tensors += 1
        self.elements += max(0, parts[0].size)
        self.bytes += sum(map(_bytes_of, parts))


@dataclass
class Facts:
    """The counts of a model; `operators` has the most used first, `external` is by file."""

    nodes: int = 0
    operators: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    parameters: Stored = field(default_factory=Stored)
    external: dict[str, Stored] = field(default_factory=dict[str, Stored])


def facts_of(model: Model) -> Facts:
    """Return the counts of a model: the nodes of its graph, the parameters of all its graphs."""
    facts = Facts()
    kinds = Counter(operator_name(node) for node in model.graph.all_nodes())
    facts.nodes = kinds.total()
    facts.operators = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
    for constant in _initializers(model):
        facts.parameters.add(constant)
        if isinstance(constant, ExternalTensor):
            location = constant.entries.get("location", "")
            facts.external.setdefault(location, Stored()).add(constant)
    return facts


def operator_name(callee: Node | Function) -> str:
    """Return what a node calls, or a function is called by: `Conv`, `ai.onnx.ml.Scaler`."""
    name = callee.op if isinstance(callee, Node) else callee.name
    domain = "" if callee.domain in {"", "ai.onnx"} else f"{callee.domain}."
    return f"{domain}{name}{f':{callee.overload}' if callee.overload else ''}"


def nested(graph: Graph) -> Iterator[tuple[str, int, Node]]:
    """Yield each node of a graph and of those inside it: its place (`3.then_branch.0`), its depth, itself."""
    pending = [(f"{place}", 0, node) for place, node in _backwards(graph)]
    while pending:
        place, depth, node = pending.pop()
        yield place, depth, node
        for label, inner in reversed(subgraphs(node)):
            pending += [(f"{place}.{label}.{at}", depth + 1, below) for at, below in _backwards(inner)]


def subgraphs(node: Node) -> list[tuple[str, Graph]]:
    """Return the graphs among a node's attributes, each with its label."""
    found: list[tuple[str, Graph]] = []
    for name, attribute in node.attributes.items():
        many = len(attribute.graphs) > 1
        found += [(f"{name}[{at}]" if many else name, graph) for at, graph in enumerate(attribute.graphs)]
    return found


def _backwards(graph: Graph) -> list[tuple[int, Node]]:
    return list(enumerate(graph))[::-1]


def _initializers(model: Model) -> Iterator[Constant]:
    for graph in model.graphs():
        for scope in graph.scopes():
            yield from scope.initializers.values()


def _bytes_of(tensor: Tensor) -> int:
    try:
        return max(0, tensor.nbytes)
    except (SabirError, ValueError):  # strings that are none, and other faults that `sabir check` tells of
        return 0
