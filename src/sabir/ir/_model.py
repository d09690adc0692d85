"""Functions, training and the model that holds it all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import legible
from sabir.ir._graph import Graph, Value
from sabir.ir._imports import canonical_domain, find_opset
from sabir.ir._listing import Listed
from sabir.ir._releases import newest_opset_of_ir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sabir.ir._attributes import Attribute
    from sabir.ir._devices import DeviceConfiguration
    from sabir.ir._residue import Residue

FunctionKey = tuple[str, str, str]


@dataclass(eq=False, slots=True)
class Function(Listed):
    """An operator defined by a graph of nodes.

    `attributes` maps each attribute name to its default, or to None where it has none. The body's
    `graph.inputs` and `graph.outputs` are the function's, matched to a call by position.
    """

    name: str
    domain: str = ""
    overload: str = ""
    graph: Graph = field(default_factory=Graph)
    attributes: dict[str, Attribute | None] = field(default_factory=dict[str, "Attribute | None"])
    opsets: dict[str, int] = field(default_factory=dict[str, int])
    residue: Residue | None = None

    @property
    def key(self) -> FunctionKey:
        """What a call names: domain, name and overload."""
        return canonical_domain(self.domain), self.name, self.overload

    @property
    def doc(self) -> str:
        """The doc string."""
        return self.graph.doc

    @property
    def metadata(self) -> dict[str, str] | None:
        """Named texts, or None."""
        return self.graph.metadata

    def __repr__(self) -> str:
        return legible(f"<Function {'.'.join(filter(None, (self.domain, self.name)))}>")


@dataclass(eq=False, slots=True)
class TrainingInfo:
    """How a model is trained: two graphs, and the state values that their outputs become."""

    initialization: Graph | None = None
    algorithm: Graph | None = None
    initialization_binding: list[tuple[Value, Value]] = field(default_factory=list[tuple[Value, Value]])
    update_binding: list[tuple[Value, Value]] = field(default_factory=list[tuple[Value, Value]])
    residue: Residue | None = None


@dataclass(eq=False, slots=True)
class Model(Listed):
    """A graph with the versions it is written in, its functions, training and metadata.

    `path` is the file it was loaded from, in whose folder external data lies.
    """

    graph: Graph = field(default_factory=Graph)
    opsets: dict[str, int] = field(default_factory=dict[str, int])
    ir_version: int = 10
    functions: list[Function] = field(default_factory=list[Function])
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    version: int = 0
    doc: str = ""
    metadata: dict[str, str] | None = None
    training: list[TrainingInfo] = field(default_factory=list[TrainingInfo])
    devices: list[DeviceConfiguration] = field(default_factory=list["DeviceConfiguration"])
    residue: Residue | None = None
    path: Path | None = None

    def opset(self, domain: str = "") -> int | None:
        """Return the version that binds of a domain; `""` and `"ai.onnx"` are one.

        Of several imports the highest binds. Every model imports the default domain: where it does not say
        the version, the newest one that its IR version carried binds.
        """
        found = find_opset(self.opsets, domain)
        return (
            newest_opset_of_ir(self.ir_version) if found is None and not canonical_domain(domain) else found
        )

    def state(self) -> frozenset[Value]:
        """Return the values that training initializes or updates: no step may take them as constants."""
        return frozenset(
            key for t in self.training for key, _ in (*t.initialization_binding, *t.update_binding)
        )

    def training_reads(self) -> Iterator[Value]:
        """Yield the values that training refers to by name: in its graphs, and in its bindings."""
        for training in self.training:
            for graph in (training.initialization, training.algorithm):
                yield from graph.captures() if graph is not None else ()
            for pairs in (training.initialization_binding, training.update_binding):
                yield from (value for pair in pairs for value in pair)

    def functions_by_key(self) -> dict[FunctionKey, Function]:
        """Return the functions by what a call names."""
        return {f.key: f for f in self.functions}

    def graphs(self) -> Iterator[Graph]:
        """The main graph, the training graphs and the function bodies; subgraphs are inside them."""
        yield self.graph
        for training in self.training:
            yield from (g for g in (training.initialization, training.algorithm) if g is not None)
        for function in self.functions:
            yield function.graph

    def __repr__(self) -> str:
        opsets = ", ".join(f"{d or 'ai.onnx'} {v}" for d, v in self.opsets.items())
        nodes = f"{len(self.graph)} nodes"
        return legible(f"<Model {self.graph.name!r}: {nodes}, IR {self.ir_version}, {opsets}>")
