"""`compare` and `accepts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import Limits, Location, run_with_limits, without_collector
from sabir.comparison._changes import Change
from sabir.comparison._comparison import Comparison, Declared
from sabir.comparison._graphs import GraphComparer
from sabir.comparison._identity import Identities, Numbers, main_graphs
from sabir.comparison._models import function_changes, header_changes, root_changes, training_changes
from sabir.comparison._policy import BUMPS
from sabir.comparison._ports import compare_ports, inputs_of, outputs_of
from sabir.comparison._references import missing_operators
from sabir.comparison._versions import semantic, version_text
from sabir.ir import check_is_model
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Model
    from sabir.schema import Registry

_GRAPH = Location().at("graph")


def compare(
    old: Model, new: Model, *, registry: Registry = STANDARD, limits: Limits | None = None
) -> Comparison:
    """Return the changes between two models, and which increment of `model_version` they require.

    Inputs and outputs are compared by name, everything else by structure and contents: names of inner values,
    the order of nodes and the format of a file are no changes. POLICY and docs/versions.md list what each
    kind of change requires, and why. A call of an operator of `registry` is the same where only the import
    changed, and not the operator. All data is read, block by block; neither model is changed.

    Raises SchemaError for nodes or functions that read or call each other in a cycle, LimitError for graphs
    nested deeper than `limits.depth`, and ExternalDataError, FileError or WireError for data that cannot be
    read.

    >>> old = sabir.parse('''<ir_version: 10, opset_import: ["" : 21], model_version: 1>
    ... g (float[2] x) => (float[2] y) { y = Relu (x) }''')
    >>> new = sabir.parse('''<ir_version: 10, opset_import: ["" : 21], model_version: 2>
    ... g (float[N] x) => (float[N] y, float[N] z) { z = Neg (x)  y = Relu (x) }''')
    >>> comparison = sabir.compare(old, new)
    >>> comparison.required, comparison.is_enough
    ('minor', True)
    >>> print(comparison.reasons[0])
    graph/input[0] 'x': axis 0 was 2 and is N
    """
    for model in (old, new):
        check_is_model(model)
    changes = run_with_limits(limits, _changes, old, new, registry)
    return Comparison(tuple(changes), Declared(old.version, new.version))


def _changes(old: Model, new: Model, registry: Registry) -> list[Change]:
    with without_collector():  # tables of all nodes, which stay alive to the end
        return _found(old, new, registry)


def _found(old: Model, new: Model, registry: Registry) -> list[Change]:
    numbers = Numbers()
    comparer = GraphComparer(Identities(old, numbers, registry), Identities(new, numbers, registry))
    found = [
        *root_changes(old.graph, new.graph, _GRAPH, comparer),
        *function_changes(comparer),
        *training_changes(comparer),
        *comparer.summaries(),
        *header_changes(old, new),
    ]
    if not any(change.bump for change in found) and _computes(comparer.old) != _computes(comparer.new):
        found.append(Change("graph-changed", "the graph computes its outputs in another way", _GRAPH, _GRAPH))
    return sorted(found, key=_rank)


def _computes(model: Identities) -> object:
    """Return the identities of what a consumer runs."""
    return [
        (model.nodes_of(g), {v.name: model.of_value(v) for v in g.outputs if v is not None})
        for g in main_graphs(model.model)
    ]


def _rank(change: Change) -> int:
    """Return the sort key by what a change requires; changes of equal rank stay in reading order."""
    return len(BUMPS) if change.bump is None else BUMPS.index(change.bump)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Whether a consumer of an old model may take a new one: true where there is no reason against it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> bool(accepts(model, model))
    True
    """

    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return "\n".join(self.reasons) or "no breaking changes"


def accepts(
    old: Model, new: Model, *, registry: Registry = STANDARD, limits: Limits | None = None
) -> Acceptance:
    """Return whether a consumer that was written for one model may take another one; false has reasons.

    The standard says that it should, where the IR version, the versions of the operators and the model
    version have no breaking changes. Here that is: the IR version is not newer; the old imports have each
    operator in the same version, which is the import of its domain if `registry` does not have it; MAJOR is
    the same, where the versions are semantic; and no change of an input, an output or what they mean requires
    another MAJOR, whatever the versions declare. Nodes and weights are not compared.

    Raises LimitError for types nested too deep, and what `compare` raises for the default of an input that
    cannot be read.

    >>> old = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> new = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x, float[N] z) => (float[N] y) { y = Add (x, z) }''')
    >>> bool(sabir.accepts(new, old)), bool(sabir.accepts(old, new))
    (False, False)
    >>> print(sabir.accepts(old, new))
    graph/input[1] 'z': the input 'z' is new, and has no default
    """
    return Acceptance(tuple(run_with_limits(limits, lambda: list(_obstacles(old, new, registry)))))


def _obstacles(old: Model, new: Model, registry: Registry) -> Iterator[str]:
    if new.ir_version > old.ir_version:
        was = f"model: the IR version was {old.ir_version} and is {new.ir_version}"
        yield f"{was}; a newer one is a breaking change"
    yield from missing_operators(old, new, registry)
    before, after = semantic(old.version), semantic(new.version)
    if before is not None and (after is None or after.major != before.major):
        was = f"model: the version was {version_text(old.version)} and is {version_text(new.version)}"
        yield f"{was}; another MAJOR version declares a breaking change"
    inputs = inputs_of(old.graph, _GRAPH, old.ir_version), inputs_of(new.graph, _GRAPH, new.ir_version)
    outputs = outputs_of(old.graph, _GRAPH), outputs_of(new.graph, _GRAPH)
    changes = (*compare_ports(inputs, outputs), *header_changes(old, new))
    yield from (str(change) for change in changes if change.bump == "major")
