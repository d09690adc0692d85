"""The counts that `sabir show` reports: nodes, parameters, bytes. No tensor is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import SabirError
from sabir.ir import ExternalTensor, ModelVersion, Node, SparseTensor, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Constant, Function, Graph, Model, Tensor


@dataclass
class TensorTotals:
    """The totals of some tensors: how many, their elements, their bytes."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0

    def add(self, constant: Constant) -> None:
        """Add the counts of one constant."""
        parts = (constant.values, constant.indices) if isinstance(constant, SparseTensor) else (constant,)
        self.tensors += 1
        self.elements += max(0, parts[0].size)
        self.bytes += sum(map(_bytes_of, parts))


@dataclass
class Facts:
    """The counts of a model; `operators` lists the most frequent first, `external` is by file."""

    nodes: int = 0
    operators: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    parameters: TensorTotals = field(default_factory=TensorTotals)
    external: dict[str, TensorTotals] = field(default_factory=dict[str, TensorTotals])


def facts_of(model: Model) -> Facts:
    """Return the counts of a model: the nodes of the main graph, the parameters of all graphs."""
    facts = Facts()
    kinds = Counter(operator_name(node) for node in model.graph.all_nodes())
    facts.nodes = kinds.total()
    facts.operators = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
    for _, constant in initializers(model):
        facts.parameters.add(constant)
        if isinstance(constant, ExternalTensor):
            location = constant.entries.get("location", "")
            facts.external.setdefault(location, TensorTotals()).add(constant)
    return facts


def semver_text(number: int) -> str | None:
    """Return the semantic version that the number of a model's version means, None for a simple number."""
    return None if ModelVersion.is_simple(number) else str(ModelVersion.unpack(number))


def version_text(number: int) -> str:
    """Return the version of a model as a person reads it: `1.2.345 (281483566645593)`, or a simple number."""
    semver = semver_text(number)
    return str(number) if semver is None else f"{semver} ({number})"


def operator_name(callee: Node | Function) -> str:
    """Return the full name of the operator or function: `Conv`, `ai.onnx.ml.Scaler`."""
    name = callee.op if isinstance(callee, Node) else callee.name
    domain = canonical_domain(callee.domain)
    return f"{domain}{'.' if domain else ''}{name}{f':{callee.overload}' if callee.overload else ''}"


def nested(graph: Graph) -> Iterator[tuple[str, int, Node]]:
    """Yield each node of a graph and of its subgraphs: its path (`3.then_branch.0`), its depth, the node."""
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


def initializers(model: Model) -> Iterator[tuple[str, Constant]]:
    """Yield each initializer of all graphs of a model, with its name."""
    for graph in model.graphs():
        for scope in graph.scopes():
            for value, data in scope.initializers.items():
                yield value.name, data


def _bytes_of(tensor: Tensor) -> int:
    try:
        return max(0, tensor.nbytes)
    except (SabirError, ValueError):  # `sabir check` reports what is wrong with the tensor
        return 0
