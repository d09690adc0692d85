"""Which worker steps which parameters, so that each keeps the moments of its own alone (ZeRO, stage 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import UnsupportedError, listed_names, quote
from sabir.inference import infer
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sabir.ir import Array, Graph, Node, Value
    from sabir.training._parts import RunnablePart

_SEVERAL = 2
_MOST = 4  # names in a message


class Shared(NamedTuple):
    """A scalar that one worker computes of its gradients and others read, such as a sum of squares."""

    name: str
    owner: int
    kind: TensorType


class Ownership:
    """How workers divide an algorithm that applies gradients.

    Variables of the state that are computed with each other, as a parameter with its gradient and its
    moments, have one owner; owners have about as many bytes of gradients. A scalar is no tie: the owner
    computes it, and all others get it, so the norm over all gradients is the same number as without
    division. Scalars that depend on other shared ones come in a later round.
    """

    def __init__(
        self,
        part: RunnablePart,
        gradients: Collection[str],
        state: Mapping[str, Array],
        kept: Collection[str],
        workers: int,
    ) -> None:
        """Divide the algorithm `part` that reads `gradients`, variables of the state.

        `kept` are the variables that all workers have, whoever computes them. Raises UnsupportedError where
        the algorithm computes with all gradients together.
        """
        model = infer(part.prepared.model, registry=part.registry)
        self._updates, self._kept = part.updates, kept
        self._values = {v.name: v for v in model.graph.defined()}
        divided = {name for name in (*part.updates, *gradients) if state[name].ndim}
        self._groups = _Groups(model.graph, divided, gradients, part.updates)
        tied = self._groups.of(gradients)
        if len(tied) < _SEVERAL <= len(gradients):
            raise UnsupportedError(
                f"the optimizer cannot be divided among workers: {self._groups.tie} computes with several "
                f"gradients together ({listed_names(gradients, _MOST)}); leave out shard_optimizer"
            )
        self.owners = _balanced(self._groups.members(divided), gradients, state, workers)
        """The worker that steps a variable, by its name; all workers step the others."""
        self.rounds = self._rounds()
        """The shared scalars, by the round in which they are exchanged."""

    def updates_of(self, worker: int, groups: Sequence[Collection[str]]) -> list[dict[str, str]]:
        """Return the updates that a worker computes, as `Part` has them, one after the other.

        First come those of some variables, and of what is computed with them, for each group of these; then
        the others.
        """
        left = {n: v for n, v in self._updates.items() if self.owners.get(n, worker) == worker}
        found: list[dict[str, str]] = []
        for names in groups:
            roots = self._groups.of(names)
            found.append({n: v for n, v in left.items() if self._groups.of([n]) & roots})
            left = {n: v for n, v in left.items() if n not in found[-1]}
        return [*found, left]

    def inputs(self, worker: int, names: Iterable[str], known: Collection[str] = ()) -> list[str]:
        """Return the inputs of the graph, and the values of `known`, from which a worker computes values.

        Raises UnsupportedError where that needs what another worker has.
        """
        found: dict[str, None] = {}
        seen: set[Value] = set()
        pending = [self._values[name] for name in names]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.name in known:
                found[value.name] = None
            elif value.node is None:
                self._require_own(worker, value)
                if value.is_input:
                    found[value.name] = None
            else:
                pending += value.node.reads()
        return list(found)

    def _require_own(self, worker: int, value: Value) -> None:
        owner = self.owners.get(value.name, worker)
        if owner != worker and value.name not in self._kept:
            raise UnsupportedError(
                f"this needs the state variable {quote(value.name)}, which worker {owner} alone has while "
                "the optimizer is divided; read it from session.state"
            )

    def _rounds(self) -> list[list[Shared]]:
        """Return the scalars that are read outside of their group, each after those that it depends on.

        Their owner computes them too before it steps anything.
        """
        pending = [(self._group_of(name), self._values[value]) for name, value in self._updates.items()]
        found: dict[Value, set[Value]] = {}
        while pending:
            for value in self._foreign(*pending.pop()):
                if value not in found:
                    group = self._groups.root(self._groups.scalars[value])
                    found[value] = self._foreign(group, value)
                    pending.append((group, value))
        level: dict[Value, int] = {}
        for value in self._values.values():  # in the order of the graph, so each after what it depends on
            if value in found:
                level[value] = 1 + max((level[other] for other in found[value]), default=-1)
        rounds: list[list[Shared]] = [[] for _ in range(1 + max(level.values(), default=-1))]
        for value, place in level.items():
            kind, group = value.type, self._groups.root(self._groups.scalars[value])
            if isinstance(kind, TensorType):
                rounds[place].append(Shared(value.name, self.owners[group], kind))
        return rounds

    def _group_of(self, name: str) -> str | None:
        """Return the group of a variable, None for one that all workers step."""
        return self._groups.root(name) if name in self.owners else None

    def _foreign(self, group: str | None, value: Value) -> set[Value]:
        """Return the scalars of other groups from which a value of one, or of none, is computed."""
        found: set[Value] = set()
        seen: set[Value] = set()
        pending = [value]
        while pending:
            read = pending.pop()
            if read in seen or read.node is None:
                continue
            seen.add(read)
            scalar = self._groups.scalars.get(read)
            if scalar is not None and self._groups.root(scalar) != group:
                found.add(read)
            else:
                pending += read.node.reads()
        return found


class _Groups:
    """Variables of the state that nodes compute with each other, other than through scalars."""

    def __init__(
        self,
        graph: Graph,
        divided: Collection[str],
        gradients: Collection[str],
        updates: Mapping[str, str],
    ) -> None:
        self._parents = {name: name for name in divided}
        self._gradients = set(gradients)  # and the representatives of groups that have some
        self.scalars: dict[Value, str] = {}
        """The scalars that are computed of divided variables, with one of these."""
        self.tie = ""
        """The first node that computes with several gradients."""
        self._of = {v: v.name for v in graph.inputs if v.name in self._parents}
        needed = _needed(graph.value(output).node for output in updates.values())
        for node in graph.sorted_nodes():
            if node in needed:
                self._visit(node)
        for name, output in updates.items():
            root = self._of.get(graph.value(output))
            if name in self._parents and root is not None:
                self._join([name, root])

    def root(self, name: str) -> str:
        """Return the variable that represents the group of one."""
        while self._parents[name] != name:
            self._parents[name] = self._parents[self._parents[name]]
            name = self._parents[name]
        return name

    def of(self, names: Iterable[str]) -> set[str]:
        """Return the groups of some variables, without those of scalars."""
        return {self.root(name) for name in names if name in self._parents}

    def members(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return the variables of each group."""
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(self.root(name), []).append(name)
        return found

    def _visit(self, node: Node) -> None:
        roots = list(dict.fromkeys(self.root(self._of[v]) for v in node.reads() if v in self._of))
        if not roots:
            return
        if len(roots) > 1:
            if not self.tie and len(self._gradients.intersection(roots)) > 1:
                self.tie = f"the node {quote(node.name or node.op)}"
            self._join(roots)
        for value in (v for v in node.outputs if v is not None):
            if isinstance(value.type, TensorType) and value.type.shape == ():
                self.scalars[value] = roots[0]
            else:
                self._of[value] = roots[0]

    def _join(self, names: list[str]) -> None:
        first = self.root(names[0])
        for other in map(self.root, names[1:]):
            self._parents[other] = first
            if other in self._gradients:
                self._gradients.add(first)


def _needed(nodes: Iterable[Node | None]) -> set[Node]:
    """Return nodes, and those that they depend on."""
    found: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node is not None and node not in found:
            found.add(node)
            pending += [value.node for value in node.reads()]
    return found


def _balanced(
    groups: Mapping[str, list[str]], gradients: Collection[str], state: Mapping[str, Array], workers: int
) -> dict[str, int]:
    """Return the owner of each variable: the largest group first goes to the worker that has least."""
    sizes = {
        root: (sum(state[n].nbytes for n in names if n in gradients), sum(state[n].nbytes for n in names))
        for root, names in groups.items()
    }
    loads = [(0, 0)] * workers
    owners: dict[str, int] = {}
    for root in sorted(groups, key=lambda r: (*(-size for size in sizes[r]), r)):
        worker = min(range(workers), key=lambda w: (loads[w], w))
        loads[worker] = (loads[worker][0] + sizes[root][0], loads[worker][1] + sizes[root][1])
        owners.update(dict.fromkeys(groups[root], worker))
    return owners


__all__ = ["Ownership", "Shared"]
