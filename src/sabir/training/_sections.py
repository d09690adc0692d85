"""An algorithm that runs in sections, so that some results are known before the others are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.ir import Array, Graph, Node, Value
    from sabir.training._parts import RunnablePart

_SIZES = frozenset({"Shape", "Size"})


class Wanted(NamedTuple):
    """What one section returns: values by name, and updates of the state, as a `Part` has them."""

    outputs: tuple[str, ...]
    updates: Mapping[str, str]


class _Section(NamedTuple):
    """A section, the values that it returns for later ones or the caller, and what it returns late.

    `late` are updates that an earlier section has computed already.
    """

    part: RunnablePart | None
    outputs: tuple[str, ...]
    late: Mapping[str, str]


class Sections:
    """A part that computes some results after the others, in as many sections as results are asked for.

    Each section computes what its results need and no earlier section has computed; it reads the rest as
    feeds. Sizes of tensors are computed again in each section that reads them, so that shapes are known
    without a run. A single section is the part itself.
    """

    def __init__(self, whole: RunnablePart, wanted: Sequence[Wanted]) -> None:
        """Divide a part whose derivatives can be written out; raises what that raises."""
        self._whole = whole
        divided = _Division(whole.prepared.model.graph, wanted)
        self._sections = [self._section(divided, number, one) for number, one in enumerate(wanted)]
        self._wanted = wanted

    def run(
        self,
        feeds: Mapping[str, Any],
        state: Mapping[str, Array],
        path: tuple[int, ...],
        done: Callable[[Mapping[str, Any], dict[str, Array]], None],
    ) -> None:
        """Run all sections; `done` gets the outputs and the updates of each. Raises as `run`."""
        if len(self._wanted) == 1:
            done(*self._whole.run(feeds, state, self._wanted[0].outputs, path))
            return
        known: dict[str, Any] = {**feeds, **self._whole.keys(path)}
        for section, wanted in zip(self._sections, self._wanted, strict=True):
            updates: dict[str, Array] = {}
            if section.part is not None:
                found, updates = section.part.run(known, state, section.outputs, path)
                known |= found
            for name, value in section.late.items():
                updates[name] = known[value]
            results = {n: known[n] if n in known else state[n] for n in wanted.outputs}
            done(results, updates)

    def reads(self, number: int) -> frozenset[str]:
        """Return the names of what a section reads; of a single one that is not looked at."""
        part = self._sections[number].part
        return frozenset() if part is None else frozenset(value.name for value in part.inputs)

    def _section(self, divided: _Division, number: int, wanted: Wanted) -> _Section:
        own = {n: v for n, v in wanted.updates.items() if divided.section_of(v) == number}
        late = {n: v for n, v in wanted.updates.items() if n not in own}
        outputs = divided.outputs(number)
        if len(divided.wanted) == 1 or not (own or outputs):
            return _Section(None, outputs, late)
        return _Section(self._whole.section(divided.inputs(number, own), outputs, own), outputs, late)


class _Division:
    """Which section computes each node of a graph."""

    def __init__(self, graph: Graph, wanted: Sequence[Wanted]) -> None:
        self.wanted = wanted
        self._values = {v.name: v for v in graph.defined()}
        self._again = _computed_again(graph)
        self._section: dict[Node, int] = {}
        self._reads: list[dict[Value, None]] = []
        for number, one in enumerate(wanted):
            self._reads.append(self._assign(number, (*one.outputs, *one.updates.values())))
        self._read_later = self._crossing()

    def section_of(self, name: str) -> int | None:
        """Return the section that computes a value, None for what no node computes."""
        node = self._values[name].node
        return None if node is None else self._section[node]

    def inputs(self, number: int, updates: Mapping[str, str]) -> list[str]:
        """Return the inputs of the graph, and the values of earlier sections, that a section reads."""
        again = self._recomputed((*updates.values(), *self.outputs(number)), number)
        read = dict.fromkeys((*self._reads[number], *again))
        return [v.name for v in read if self._is_fed(v, number)]

    def outputs(self, number: int) -> tuple[str, ...]:
        """Return what a section computes for later ones and for the caller."""
        asked = [name for one in self.wanted for name in one.outputs if self.section_of(name) == number]
        late = [
            name
            for one in self.wanted[number + 1 :]
            for name in one.updates.values()
            if self.section_of(name) == number
        ]
        return tuple(dict.fromkeys((*asked, *late, *self._read_later.get(number, ()))))

    def _assign(self, number: int, names: Iterable[str]) -> dict[Value, None]:
        """Let a section compute what values need and no other computes; return what its nodes read."""
        pending = [self._values[name].node for name in names]
        read: dict[Value, None] = {}
        while pending:
            node = pending.pop()
            if node is None or node in self._section:
                continue
            self._section[node] = number
            for value in node.reads():
                read[value] = None
                pending.append(value.node)
        return read

    def _recomputed(self, names: Iterable[str], number: int) -> dict[Value, None]:
        """Return what the nodes read that a section computes again for its own nodes."""
        pending = [v.node for v in (*self._reads[number], *(self._values[n] for n in names))]
        seen: set[Node] = set()
        read: dict[Value, None] = {}
        while pending:
            node = pending.pop()
            if node is None or node in seen or node not in self._again:
                continue
            seen.add(node)
            for value in node.reads():
                read[value] = None
                pending.append(value.node)
        return read

    def _is_fed(self, value: Value, number: int) -> bool:
        if value.node is None:
            return value.is_input
        return self._section.get(value.node, number) < number and value.node not in self._again

    def _crossing(self) -> dict[int, list[str]]:
        """Return the values that later sections read, by the section that computes them."""
        found: dict[int, dict[str, None]] = {}
        for number in range(len(self.wanted)):
            for value in (*self._reads[number], *self._recomputed((), number)):
                if value.node is not None and self._is_fed(value, number):
                    found.setdefault(self._section[value.node], {})[value.name] = None
        return {number: list(names) for number, names in found.items()}


def _computed_again(graph: Graph) -> set[Node]:
    """Return the nodes that each section computes for itself: constants, sizes, and what follows of both."""
    found: set[Node] = set()
    for node in graph.sorted_nodes():
        reads = list(node.reads())
        if node.graphs or any(v is None for v in node.outputs):
            continue
        known = all(v.node in found if v.node is not None else not v.is_input for v in reads)
        if node.op in _SIZES or known:
            found.add(node)
    return found


__all__ = ["Sections", "Wanted"]
