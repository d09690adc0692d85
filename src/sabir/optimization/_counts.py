"""What a model consists of: its nodes by operator, parameters, bytes and multiply-adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.inference import Inference
from sabir.ir import Tensor, TensorType, canonical_domain, exact_quotient, mul, product, total
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir import Dim, Graph, Model, Node, Type, Value
    from sabir.schema import Registry

_PORTS = 3  # two operands and a result


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
    if canonical_domain(node.domain) or node.op not in {"Conv", "ConvTranspose", "Gemm", "MatMul"}:
        return 0
    kinds = [types.get(v) for v in _ports(node)]
    shapes = [kind.shape for kind in kinds if isinstance(kind, TensorType) and kind.shape is not None]
    if len(shapes) < _PORTS or not shapes[0]:
        return None
    a, b, y = shapes
    match node.op:
        case "Conv":
            return mul(product(y), product(b[1:]))
        case "ConvTranspose":
            return mul(product(a), product(b[1:]))
        case "Gemm":
            return mul(product(y), exact_quotient(product(b), y[-1] if y else 1))
        case _:
            return mul(product(y), a[-1])


def _ports(node: Node) -> Iterable[Value]:
    return [v for v in (*node.inputs[:2], node.outputs[0]) if v is not None]
