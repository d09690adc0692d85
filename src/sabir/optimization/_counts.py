"""What a model consists of: its nodes by operator, parameters, bytes and multiply-adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.inference import Inference, SizedCall, multiply_adds
from sabir.ir import Tensor, canonical_domain, total
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir import Dim, Graph, Model, Node, Type, Value
    from sabir.schema import Registry

_COUNTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class Counts:
    """Nodes by operator, in subgraphs too; elements and bytes of the constants; multiply-adds of a run.

    `multiply_adds` are those of convolutions and matrix products in the main graph, a number or an
    expression of the model's dimension variables; None where the size of one of them is not known.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1,2,3,4,5,6}> { y = MatMul (x, w) }''')
    >>> counts = count(model)
    >>> counts.nodes, counts.parameters, counts.bytes, print(counts.multiply_adds)
    6*N
    (1, 6, 24, None)
    """

    operators: Mapping[str, int] = field(default_factory=dict[str, int])
    parameters: int = 0
    bytes: int = 0
    multiply_adds: Dim = 0

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(self.operators.values())


def count(model: Model, *, registry: Registry = STANDARD) -> Counts:
    """Return what a model consists of; data is not read."""
    operators: Counter[str] = Counter()
    tensors: dict[int, Tensor] = {}
    for graph in model.graphs():
        for inner in graph.scopes():
            operators.update(map(_label, inner))
            tensors.update((id(t), t) for t in _constants(inner))
    parameters = sum(t.size for t in tensors.values())
    inference = Inference(model, registry=registry)
    inference.run()
    work = total(_multiply_adds(node, inference.types) for node in model.graph)
    return Counts(dict(operators.most_common()), parameters, sum(t.nbytes for t in tensors.values()), work)


def _label(node: Node) -> str:
    domain = canonical_domain(node.domain)
    return f"{domain}.{node.op}" if domain else node.op


def _constants(graph: Graph) -> Iterable[Tensor]:
    yield from (t for t in graph.initializers.values() if isinstance(t, Tensor))
    for node in graph:
        yield from (a.value for a in node.attributes.values() if isinstance(a.value, Tensor))


def _multiply_adds(node: Node, types: Mapping[Value, Type]) -> Dim:
    """Return the multiply-adds of a convolution or a matrix product, 0 of other calls."""
    if canonical_domain(node.domain) or node.op not in _COUNTED:
        return 0
    inputs, outputs = ([v and types.get(v) for v in values] for values in (node.inputs, node.outputs))
    return multiply_adds(SizedCall.of(node, inputs, outputs))
