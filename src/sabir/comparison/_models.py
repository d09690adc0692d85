"""Changes of what a model declares beside its graphs: imports, functions, training, documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Location, quote
from sabir.comparison._changes import Change
from sabir.comparison._ports import compare_ports, inputs_of, outputs_of
from sabir.ir import bound_opsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sabir.comparison._graphs import GraphComparer
    from sabir.ir import Function, Graph, Model, TrainingInfo

_IMAGE = "Image."  # metadata that the standard defines: what the elements of an image input mean
_ROOT = Location()
_GRAPH = _ROOT.at("graph")


def header_changes(old: Model, new: Model) -> Iterator[Change]:
    """Yield the changes of the fields of a model beside its graphs."""
    if old.ir_version != new.ir_version:
        message = f"the IR version was {old.ir_version} and is {new.ir_version}"
        yield Change("ir-version-changed", message, _ROOT, _ROOT)
    yield from _imports(old, new)
    fields = [
        ("name-changed", "the domain", old.domain, new.domain, _ROOT),
        ("name-changed", "the name of the graph", old.graph.name, new.graph.name, _GRAPH),
        ("producer-changed", "the name of the producer", old.producer_name, new.producer_name, _ROOT),
        (
            "producer-changed",
            "the version of the producer",
            old.producer_version,
            new.producer_version,
            _ROOT,
        ),
    ]
    for kind, what, before, after, where in fields:
        if before != after:
            yield Change(kind, f"{what} was {quote(before)} and is {quote(after)}", where, where)
    for where, before, after in ((_ROOT, old.doc, new.doc), (_GRAPH, old.graph.doc, new.graph.doc)):
        if before != after:
            yield Change("documentation-changed", "another doc string", where, where)
    yield from _metadata(old.metadata or {}, new.metadata or {}, _ROOT)
    yield from _metadata(old.graph.metadata or {}, new.graph.metadata or {}, _GRAPH)
    if [d[:3] for d in old.devices] != [d[:3] for d in new.devices]:
        yield Change("devices-changed", "other device configurations", _ROOT, _ROOT)


def _imports(old: Model, new: Model) -> Iterator[Change]:
    before, after = (bound_opsets(m.opsets, m.opset()) for m in (old, new))
    for domain in dict.fromkeys((*before, *after)):
        was, now = before.get(domain), after.get(domain)
        if was == now:
            continue
        where = _ROOT.at("opset_import", name=domain or "ai.onnx")
        shown = f"the operator set was {was} and is {now}"
        if was is None or now is None:
            shown = (
                f"version {now} is imported now" if was is None else f"version {was} is no longer imported"
            )
        yield Change(
            "import-changed", shown, where if was is not None else None, where if now is not None else None
        )


def _metadata(old: Mapping[str, str], new: Mapping[str, str], where: Location) -> Iterator[Change]:
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        kind = "metadata-changed"
        if key.startswith(_IMAGE):
            kind = "meaning-declared" if was is None or now is None else "meaning-changed"
        shown = [quote(text) if text is not None else "absent" for text in (was, now)]
        place = where.at("metadata", name=key)
        yield Change(kind, f"the value was {shown[0]} and is {shown[1]}", place, place)


def function_changes(comparer: GraphComparer) -> Iterator[Change]:
    """Yield the changes of functions, matched by domain, name and overload."""
    old, new = comparer.old, comparer.new
    before, after = old.model.functions_by_key(), new.model.functions_by_key()
    places = [
        {f.key: _ROOT.at("function", index=i, name=f.name) for i, f in enumerate(side.model.functions)}
        for side in (old, new)
    ]
    for key in dict.fromkeys((*before, *after)):
        here, there = places[0].get(key), places[1].get(key)
        if here is None or there is None:
            kind, verb = ("function-added", "is new") if here is None else ("function-removed", "is gone")
            yield Change(kind, f"the function {quote(key[1])} {verb}", here, there)
        elif old.functions[key] != new.functions[key]:
            yield from _signature(before[key], after[key], here, there, comparer)
            bodies = before[key].graph, after[key].graph
            inputs = zip(bodies[0].inputs, bodies[1].inputs, strict=False)
            yield from comparer.graphs(
                *bodies, inputs, zip(bodies[0].outputs, bodies[1].outputs, strict=False)
            )


def _signature(
    old: Function, new: Function, here: Location, there: Location, comparer: GraphComparer
) -> Iterator[Change]:
    counts = [(len(f.graph.inputs), len(f.graph.outputs)) for f in (old, new)]
    defaults = comparer.old.defaults[old.key], comparer.new.defaults[new.key]
    for what, differ in (
        ("inputs or outputs", counts[0] != counts[1]),
        ("attributes", defaults[0] != defaults[1]),
    ):
        if differ:
            yield Change("function-changed", f"the function {quote(new.name)} has other {what}", here, there)


def training_changes(comparer: GraphComparer) -> Iterator[Change]:
    """Yield the changes of training information, matched by position."""
    old, new = comparer.old.model, comparer.new.model
    for index in range(max(len(old.training), len(new.training))):
        where = _ROOT.at("training_info", index=index)
        if index >= len(old.training):
            yield Change("training-added", "the training information is new", None, where)
        elif index >= len(new.training):
            yield Change("training-removed", "the training information is gone", where, None)
        else:
            yield from _training(old.training[index], new.training[index], where, comparer)


def _training(
    old: TrainingInfo, new: TrainingInfo, where: Location, comparer: GraphComparer
) -> Iterator[Change]:
    for step, here, there in (
        ("initialization", old.initialization, new.initialization),
        ("algorithm", old.algorithm, new.algorithm),
    ):
        place = where.at(step)
        if here is not None and there is not None:
            yield from root_changes(here, there, place, comparer)
        elif here is not there:
            message = f"the {step} {'is gone' if there is None else 'is new'}"
            yield Change("training-changed", message, place, place)
    keys = comparer.alignment.key_of_old, comparer.alignment.key_of_new
    for what, before, after in (
        ("initialization", old.initialization_binding, new.initialization_binding),
        ("update", old.update_binding, new.update_binding),
    ):
        # a state variable is known by its name: two of them may have equal contents
        bound = [
            {(state.name, key(value)) for state, value in pairs}
            for key, pairs in zip(keys, (before, after), strict=True)
        ]
        if bound[0] != bound[1]:
            yield Change("training-changed", f"other {what} bindings", where, where)


def root_changes(old: Graph, new: Graph, where: Location, comparer: GraphComparer) -> Iterator[Change]:
    """Yield the changes of two main graphs, or of two steps of training: their interfaces and contents."""
    versions = comparer.old.model.ir_version, comparer.new.model.ir_version
    inputs = inputs_of(old, where, versions[0]), inputs_of(new, where, versions[1])
    outputs = outputs_of(old, where), outputs_of(new, where)
    yield from compare_ports(inputs, outputs)
    names = [(name, name) for name in inputs[0] if name in inputs[1]]
    # nodes that read a renamed input are the same nodes
    others = [[name for name in ports if name not in inputs[1 - i]] for i, ports in enumerate(inputs)]
    names += zip(*others, strict=False)
    pairs = [(inputs[0][here].value, inputs[1][there].value) for here, there in names]
    kept = [(port.value, outputs[1][name].value) for name, port in outputs[0].items() if name in outputs[1]]
    yield from comparer.graphs(old, new, pairs, kept)
