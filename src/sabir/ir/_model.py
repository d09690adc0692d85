"""Models: a main graph with opset imports, functions and training information."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import hinted, hints, legible, quote
from sabir.ir._clone import clone_function, clone_model, clone_training
from sabir.ir._finding import named
from sabir.ir._graph import Graph
from sabir.ir._imports import canonical_domain, find_opset
from sabir.ir._listing import Listed
from sabir.ir._model_version import ModelVersion
from sabir.ir._releases import newest_opset_of_ir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sabir.ir._attributes import Attribute
    from sabir.ir._devices import DeviceConfiguration
    from sabir.ir._residue import Residue
    from sabir.ir._value import Value

FunctionKey = tuple[str, str, str]


@hints(
    inputs="the inputs are those of the body: function.graph.inputs",
    outputs="the outputs are those of the body: function.graph.outputs",
    node="the nodes are those of the body: function.graph",
    nodes="the nodes are those of the body: function.graph",
    opset_import=hinted("opsets"),
    opset_imports=hinted("opsets"),
    doc_string=hinted("doc"),
    metadata_props=hinted("metadata"),
)
@dataclass(eq=False, slots=True, repr=False)
class Function(Listed):
    """A model-local operator, defined by its body.

    `attributes` maps each attribute name to its default, or to None where it has none. The body's
    `graph.inputs` and `graph.outputs` are the function's, matched to a call by position.

    >>> function = sabir.syntax.parse_function('''<domain: "d", opset_import: ["" : 21]>
    ... twice (x) => (y) { y = Add (x, x) }''')
    >>> function.key, len(function.graph)
    (('d', 'twice', ''), 1)
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
        """The names by which a node calls it: domain, name and overload."""
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

    def __copy__(self) -> Function:
        return clone_function(self)


@dataclass(eq=False, slots=True, repr=False)
class TrainingInfo:
    """How a model is trained: two graphs, and the state values that their outputs update."""

    initialization: Graph | None = None
    algorithm: Graph | None = None
    initialization_binding: list[tuple[Value, Value]] = field(default_factory=list["tuple[Value, Value]"])
    update_binding: list[tuple[Value, Value]] = field(default_factory=list["tuple[Value, Value]"])
    residue: Residue | None = None

    def __copy__(self) -> TrainingInfo:
        return clone_training(self)

    def __repr__(self) -> str:
        graphs = {"initialization": self.initialization, "algorithm": self.algorithm}
        shown = ", ".join(f"{name} {len(graph)} nodes" for name, graph in graphs.items() if graph is not None)
        return f"<TrainingInfo: {shown or 'no graphs'}>"


@hints(
    opset_import=hinted("opsets"),
    opset_imports=hinted("opsets"),
    opset_version="model.opset(domain) returns the version of a domain",
    doc_string=hinted("doc"),
    metadata_props=hinted("metadata"),
    model_version=hinted("version"),
    training_info=hinted("training"),
    configuration=hinted("devices"),
    nodes="the nodes are those of a graph: iterate model.graph",
    inputs="the inputs are those of the main graph: model.graph.inputs",
    outputs="the outputs are those of the main graph: model.graph.outputs",
    initializers="the initializers are those of the main graph: model.graph.initializers",
    SerializeToString="sabir.dumps returns the bytes of a model",
    save="sabir.save writes a model to a file",
)
@dataclass(eq=False, slots=True, repr=False)
class Model(Listed):
    """A main graph with opset imports, functions, training information and metadata.

    `path` is the file that it was loaded from, whose folder contains the external data. A model can be
    copied (`clone`, `copy`, `deepcopy`: the copies share tensors and types, which are immutable) and pickled:
    then the data of mapped and external tensors is read into the pickle, which needs no file. `version` is
    the number of the field `model_version`, and `semver` the semantic version that it means.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.ir_version, model.opsets, len(model.graph)
    (10, {'': 21}, 1)
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

    @property
    def semver(self) -> ModelVersion | None:
        """The semantic version that `version` means, or None where that is a simple number.

        Assign a `ModelVersion` to change `version`. Raises SchemaError where `version` is not a signed 64-bit
        number, and TypeError where something else is assigned.
        """
        return None if ModelVersion.is_simple(self.version) else ModelVersion.unpack(self.version)

    @semver.setter
    def semver(self, version: ModelVersion) -> None:
        if not isinstance(version, ModelVersion):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped code
            raise TypeError(
                f"semver must be a ModelVersion, as ModelVersion.parse returns it, and is {quote(version)}; "
                "a simple number is assigned to model.version"
            )
        self.version = version.packed

    def opset(self, domain: str = "") -> int | None:
        """Return the version of a domain that applies; `""` and `"ai.onnx"` are the same one.

        Of several imports the highest applies. Every model imports the default domain: where it does not
        state the version, the newest one that came with its IR version applies.
        """
        found = find_opset(self.opsets, domain)
        return (
            newest_opset_of_ir(self.ir_version) if found is None and not canonical_domain(domain) else found
        )

    def state(self) -> frozenset[Value]:
        """Return the values that training initializes or updates, which no engine may treat as constants."""
        return frozenset(
            key for t in self.training for key, _ in (*t.initialization_binding, *t.update_binding)
        )

    def training_reads(self) -> Iterator[Value]:
        """Yield the values that training refers to by name, in its graphs and in its bindings."""
        for training in self.training:
            for graph in (training.initialization, training.algorithm):
                yield from graph.captures() if graph is not None else ()
            for pairs in (training.initialization_binding, training.update_binding):
                yield from (value for pair in pairs for value in pair)

    def functions_by_key(self) -> dict[FunctionKey, Function]:
        """Return the functions by their keys."""
        return {f.key: f for f in self.functions}

    def graphs(self) -> Iterator[Graph]:
        """The root graphs: the main graph, the training graphs and the function bodies."""
        yield self.graph
        for training in self.training:
            yield from (g for g in (training.initialization, training.algorithm) if g is not None)
        for function in self.functions:
            yield function.graph

    def function(self, name: str) -> Function:
        """Return the function of a name; raises NotFoundError, a KeyError, where none or several have it."""
        return named(name, self.functions, "function", repr(self))

    def clone(self) -> Model:
        """Return a copy that shares no graph, node or value with this model, and all tensors and types."""
        return clone_model(self)

    __copy__ = clone

    def __repr__(self) -> str:
        opsets = ", ".join(f"{d or 'ai.onnx'} {v}" for d, v in self.opsets.items())
        nodes = f"{len(self.graph)} nodes"
        return legible(f"<Model {self.graph.name!r}: {nodes}, IR {self.ir_version}, {opsets}>")


def check_is_model(model: object) -> None:
    """Raise TypeError for anything but a model: a path, or nothing.

    >>> check_is_model('model.onnx')
    Traceback (most recent call last):
        ...
    TypeError: a sabir.Model is expected, not a str; sabir.load reads one from a file
    """
    if not isinstance(model, Model):
        found = type(model).__name__
        raise TypeError(f"a sabir.Model is expected, not a {found}; sabir.load reads one from a file")
