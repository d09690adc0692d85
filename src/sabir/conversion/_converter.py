"""The conversion of a model in place: each graph, domain by domain, one operator set version at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import ACCIDENTS, LimitError, SabirError, check_nodes, check_time
from sabir.conversion._boundaries import Boundary, boundary_of
from sabir.conversion._bridging import bridge
from sabir.conversion._heirs import Estate, drop_defaults, inherit
from sabir.conversion._roots import Root, roots_of
from sabir.conversion._tidying import Constants, share, typed_inside
from sabir.ir import FreshNames, Graph, canonical_domain
from sabir.rewriting import Rewriter, enclosing, remove_released
from sabir.schema import Unconvertible, admits, port_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sabir.ir import Model, Node, Value
    from sabir.schema import Operator, Registry, Version


class Refused(NamedTuple):
    """A node that cannot be converted: the version that it calls, as text, and the reason."""

    node: Node
    operator: str
    reason: str


class Converter:
    """Converts one model in place, as far as it can; `refused` lists the nodes that stand in the way.

    `opsets` are the target versions by canonical domain. `origins` maps each new node to the node of the
    model as it was that it comes from; with `cast` element types that an older version does not admit are
    bridged by casts. `steps` counts how many calls of each version were rewritten for which other one.
    """

    def __init__(
        self, model: Model, registry: Registry, opsets: Mapping[str, int], *, cast: bool = False
    ) -> None:
        self.model, self.registry, self.opsets, self.cast = model, registry, dict(opsets), cast
        self.refused: list[Refused] = []
        self.origins: dict[Node, Node] = {}
        self.steps: Counter[tuple[str, str]] = Counter()
        self._rewriter = Rewriter(model, registry=registry)
        self._node_names = FreshNames(n.name for g in model.graphs() for n in g.all_nodes())
        self._present = {n for g in model.graphs() for n in g.all_nodes()}
        self._functions = model.functions_by_key()
        self._boundaries: dict[tuple[Operator, int, bool], Boundary] = {}
        self._made: dict[Node, None] = {}
        self._stuck: set[Node] = set()  # that are refused, or contain such a node
        self._widened: set[Node] = set()  # with the casts around them
        self._constants: dict[Value, None] = {}  # that the conversion made
        self._values: set[Value] = set()  # other new ones
        self._old: set[Value] = {
            v for g in model.graphs() for inner in g.scopes() for v in inner.initializers
        }
        self._released: list[Value] = []

    # the whole model

    def run(self) -> None:
        """Convert every graph; the imports follow."""
        graphs = [inner for root in self.model.graphs() for inner in root.scopes()]
        typed = {graph for graph in graphs if typed_inside(graph)}
        for root in roots_of(self.model):
            for domain, version in self.opsets.items():
                if domain in root.opsets:
                    self._convert(root, domain, version)
            if self._made:
                self._tidy(root)
        for value in self._values:
            if value.home is not None and value.home not in typed:
                value.type = None  # as the graph declares no types inside
        self._import()
        remove_released(self.model, self._released, registry=self.registry)

    def _import(self) -> None:
        """State the target versions among the imports, under the names that these have."""
        model, functions = self.model, self.model.functions
        for imports in (model.opsets, *(f.opsets for f in functions)):
            for domain in imports:
                imports[domain] = self.opsets.get(canonical_domain(domain), imports[domain])
        for domain, version in self.opsets.items():
            if not any(canonical_domain(d) == domain for d in model.opsets) and not domain:
                model.opsets[domain] = version

    def _tidy(self, root: Root) -> None:
        """Fold what the adapters computed of constants, and let the constants be few and well named."""
        rewriter, scope = self._rewriter, self._rewriter.scope_of(root.graph, root.opsets)
        constants = Constants(rewriter.names, as_nodes=root.function is not None)
        for node in [n for n in self._made if root.has(n)]:
            operands = [v for v in node.inputs if v is not None]
            if all(v is None or v in self._values for v in node.outputs):
                made = constants.fold(node, rewriter.inference.types)
                self._constants.update(dict.fromkeys(made))
                self._released += operands if made else ()
        self._made.clear()
        share(self._constants)
        constants.name(self._constants, scope)
        self._released += self._constants
        self._constants.clear()

    # one root graph

    def _convert(self, root: Root, domain: str, target: int) -> None:
        if root.opsets[domain] != target:
            self._refuse_unknown(root, domain)
        while (since := self._next(root, domain, target)) is not None:
            check_time()
            if target < since:
                self._down(root, domain, since)
            else:
                self._up(root, domain, since)
        root.opsets = {**root.opsets, domain: target}

    def _next(self, root: Root, domain: str, target: int) -> int | None:
        """Return the next version on the way to a target with which an operator changed that a node calls."""
        current = root.opsets[domain]
        low, high = sorted((current, target))
        operators = [self.registry.find(domain, name) for name in root.names(domain)]
        between = {v.since for o in operators if o is not None for v in o.versions if low < v.since <= high}
        return (min if target > current else max)(between, default=None)

    def _refuse_unknown(self, root: Root, domain: str) -> None:
        """Refuse the nodes that call what the version they are written for does not have."""
        version = root.opsets[domain]
        for name in root.names(domain):
            operator = self.registry.find(domain, name)
            found = None if operator is None else operator.find(version)
            if found is not None and not found.removed:
                continue
            if self.registry.declaration(domain, name, version) is not None:
                continue
            for node in self._calls(root, domain, name):
                shown = str(found or f"{domain or 'ai.onnx'}.{name}")
                if found is not None:
                    reason = f"the operator was removed with opset {found.since}"
                elif operator is not None:
                    reason = f"opset {version} does not have it; it came with {operator.versions[0].since}"
                else:
                    reason = "it is no operator that Sabir knows"
                self._refuse(root, node, shown, reason)

    def _up(self, root: Root, domain: str, since: int) -> None:
        after = {**root.opsets, domain: since}
        for node, boundary in self._crossing(root, domain, since, downward=False):
            if root.has(node):
                self._cross(root, node, boundary, after)
        root.opsets = after

    def _down(self, root: Root, domain: str, since: int) -> None:
        root.opsets = {**root.opsets, domain: since}  # what is between has not changed
        after = {**root.opsets, domain: since - 1}
        pending = True
        while pending:  # a body may call another operator that the older set does not have either
            check_time()
            pending = [
                (node, boundary)
                for node, boundary in self._crossing(root, domain, since, downward=True)
                if boundary.target is None
            ]
            for node, boundary in pending:
                if root.has(node):
                    self._cross(root, node, boundary, root.opsets)
        for node, boundary in self._crossing(root, domain, since, downward=True):
            if root.has(node):
                self._cross(root, node, boundary, after)
        root.opsets = after

    def _crossing(
        self, root: Root, domain: str, since: int, *, downward: bool
    ) -> list[tuple[Node, Boundary]]:
        """Return the calls of operators that have a version `since`, those inside other nodes first."""
        found: list[tuple[Node, Boundary]] = []
        for name in root.names(domain):
            operator = self.registry.find(domain, name)
            if operator is None or operator.at(max(since, operator.versions[0].since)).since != since:
                continue
            boundary = self._boundary(operator, since, downward=downward)
            if not boundary.is_free:
                found += [(node, boundary) for node in self._calls(root, domain, name)]
        return sorted(found, key=lambda item: -_depth(item[0]) if item[0].graphs else -1 << 31)

    def _calls(self, root: Root, domain: str, name: str) -> Iterator[Node]:
        """Yield the nodes that call an operator and not a function of that name."""
        documented = self.registry.declaration(domain, name, root.opsets.get(domain)) is not None
        for node in root.calls(domain, name) if not documented else ():
            if (domain, name, node.overload) not in self._functions:
                yield node

    def _boundary(self, operator: Operator, since: int, *, downward: bool) -> Boundary:
        key = operator, since, downward
        found = self._boundaries.get(key)
        if found is None:
            found = self._boundaries[key] = boundary_of(operator, since, downward=downward)
        return found

    # one node

    def _cross(self, root: Root, node: Node, boundary: Boundary, opsets: dict[str, int]) -> None:
        """Rewrite a call for the other side of a boundary, or refuse it."""
        try:
            self._rewrite(root, node, boundary, opsets)
        except LimitError:
            raise
        except (SabirError, *ACCIDENTS) as error:
            if not self._bridged(root, node, boundary, opsets):
                reason = str(error) if isinstance(error, SabirError) else f"its adapter fails: {error!r}"
                self._refuse(root, node, str(boundary.source), reason)

    def _rewrite(self, root: Root, node: Node, boundary: Boundary, opsets: dict[str, int]) -> None:
        source, target = boundary.source, boundary.target
        if boundary.refusal:
            raise Unconvertible(boundary.refusal)
        if boundary.adapter is None:
            self._keep(node, boundary)
            return
        estate = Estate.of(node)
        operands = node.reads()
        nodes = self._rewriter.apply(node, boundary.adapter, since=source.since, opsets=opsets)
        self._settle(root, node, nodes, estate, operands, opsets)
        self.steps[str(source), "older operators" if target is None else str(target)] += 1

    def _keep(self, node: Node, boundary: Boundary) -> None:
        """Let a node be the same call of the other version; raises Unconvertible."""
        source, target = boundary.source, boundary.target
        downward = target is not None and target.since < source.since
        types = self._rewriter.inference.types_of(node) if downward else [None] * len(node.inputs)
        signatures = [None if t is None else t.signature for t in types]
        kept = boundary.same_call(node.attributes, signatures, len(node.outputs))
        if downward and target is not None:
            self._check_results(node, target)
        if kept.keys() != node.attributes.keys():
            node.attributes = kept

    def _check_results(self, node: Node, target: Version) -> None:
        for place, value in enumerate(node.outputs):
            kind = None if value is None else self._rewriter.inference.type_of(value)
            port = port_at(target.outputs, place)
            if kind is not None and not admits(port, kind.signature):
                raise Unconvertible(f"{target} does not admit {kind.signature} for {port.name!r}")

    def _bridged(self, root: Root, node: Node, boundary: Boundary, opsets: dict[str, int]) -> bool:
        """Put casts around a call, and let it cross so; return whether it could."""
        source, target = boundary.source, boundary.target
        if not self.cast or target is None or target.since > source.since or node in self._widened:
            return False
        estate, operands = Estate.of(node), [v for v in node.inputs if v is not None]
        types = self._rewriter.inference.types_of(node)
        try:
            nodes = self._rewriter.replace(
                node, lambda b: bridge(b, node, source, target, types), opsets=root.opsets
            )
        except LimitError:
            raise
        except SabirError:
            return False
        self._settle(root, node, nodes, estate, operands, root.opsets)
        self._widened.update(nodes)
        self.steps[str(source), f"{source} between casts"] += 1
        for new in nodes:
            operator = self.registry.find(new.domain, new.op)
            if operator is not None and operator.domain == source.operator.domain:
                version = operator.find(source.since)
                if version is not None and version.since == source.since:
                    self._cross(root, new, self._boundary(operator, version.since, downward=True), opsets)
        return True

    def _settle(
        self, root: Root, node: Node, nodes: list[Node], estate: Estate, operands: Iterable[Value],
        opsets: Mapping[str, int],
    ) -> None:  # fmt: skip
        """Make new nodes part of the graph: named, recorded, to be converted further."""
        check_nodes(len(self._made))
        origin = self.origins.get(node, node)
        root.drop(node)
        inherit(estate, nodes, self._node_names)
        for new in nodes:
            while new.inputs and new.inputs[-1] is None:
                del new.inputs[-1]
            version = self.registry.find_version(new.domain, new.op, opsets.get(canonical_domain(new.domain)))
            if version is not None:
                drop_defaults(estate, new, version)
        nested = [n for new in nodes for graph in new.graphs for n in graph.all_nodes()]
        root.add((*nodes, *nested))
        self._made.update(dict.fromkeys(nodes))
        self.origins.update(dict.fromkeys(nodes, origin))
        for inner in nested:
            if inner not in self._present:
                self.origins.setdefault(inner, origin)
        before = {*estate.outputs, *operands}
        self._values.update(v for n in nodes for v in n.outputs if v is not None and v not in before)
        self._released += operands
        for value in {v for n in nodes for v in n.inputs if v is not None and v not in before}:
            is_node = value.node is not None and value.node.op == "Constant" and value.node not in self._made
            if is_node or (isinstance(value.source, Graph) and value not in self._old and not value.is_input):
                self._constants[value] = None

    def _refuse(self, root: Root, node: Node, operator: str, reason: str) -> None:
        """Record that a node cannot be converted, but not if that follows from a node inside it."""
        if not any(inner in self._stuck for graph in node.graphs for inner in graph.all_nodes()):
            self.refused.append(Refused(node, operator, reason))
        self._stuck.add(node)
        root.drop(node)


def _depth(node: Node) -> int:
    return sum(1 for _ in enclosing(node.graph))
