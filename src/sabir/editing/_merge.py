"""Two models joined: outputs of the first become inputs of the second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import (
    NotFoundError,
    SchemaError,
    listed_names,
    quote,
    run_with_limits,
    suggest,
)
from sabir.editing._aligning import aligned
from sabir.editing._functions import join_functions
from sabir.editing._merged_dims import join_dims
from sabir.editing._merged_names import MergedNames, Prefixes, Renaming
from sabir.editing._merged_parts import join_devices, join_texts
from sabir.editing._naming import NamingAttributes
from sabir.ir import (
    Model,
    Node,
    Value,
    check_is_model,
    least_ir,
)
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.base import Limits
    from sabir.ir import Graph, NodeDevice
    from sabir.schema import Registry

Connections = Mapping[str, "str | Iterable[str]"]


@dataclass(frozen=True)
class Merging:
    """A merged model, and what was done for it.

    `connected` are the pairs of an output of the first model and an input of the second. `renamed` are the
    names that clashed or got a prefix. `converted` has, for the models 0 and 1, the versions of operator sets
    that they were converted to.
    """

    model: Model
    connected: tuple[tuple[str, str], ...]
    renamed: tuple[Renaming, ...]
    converted: tuple[Mapping[str, int], Mapping[str, int]]


def merge(
    a: Model,
    b: Model,
    connect: Connections | None = None,
    prefix: Prefixes | None = None,
    *,
    keep_outputs: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return one model that computes `a`, and then `b` with outputs of `a` as inputs.

    `connect` maps outputs of `a` to inputs of `b`, one or several each; by default ports of equal names are
    connected. With `{}` the models are side by side. Inputs of both that are not connected are inputs of the
    result, and so are outputs; a connected output of `a` is one only if `keep_outputs` names it.

    The model with the older operator sets or IR version is converted. Names of values, nodes, functions and
    device configurations that both models have become unique: inputs and outputs keep theirs, the first model
    before the second. With `prefix`, a pair, all names of values and nodes of each model get a prefix.
    Dimension variables of `b` become those of `a` where connected ports say so, and are renamed where the
    names alone are equal. Functions, metadata, training information, quantization annotations and device
    configurations of both stay; tensors are shared.

    Raises NotFoundError, a KeyError, for a port that the model does not have, SchemaError where types of
    connected ports contradict each other, ConversionError where a model cannot be converted, LimitError.

    >>> a = sabir.parse('''<ir_version: 8, opset_import: ["" : 17]>
    ... g (float[N,3] x) => (float[N,3] y) { y = Relu (x) }''')
    >>> b = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... h (float[M,3] x) => (float[M,3] y) { y = Softmax (x) }''')
    >>> model = sabir.merge(a, b, {'y': 'x'})
    >>> [node.op for node in model.graph], model.opsets, str(model.graph.outputs[0].type)
    (['Relu', 'Softmax'], {'': 21}, 'float[N,3]')
    """
    return merge_and_report(
        a, b, connect, prefix, keep_outputs=keep_outputs, registry=registry, limits=limits
    ).model


def merge_and_report(
    a: Model,
    b: Model,
    connect: Connections | None = None,
    prefix: Prefixes | None = None,
    *,
    keep_outputs: Iterable[str] = (),
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Merging:
    """Merge models as `merge` does, and report what was done.

    >>> a = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> merging = merge_and_report(a, a, {'y': 'x'})
    >>> [(r.kind, r.old, r.new) for r in merging.renamed]
    [('value', 'y', 'y_1')]
    """
    check_is_model(a)
    check_is_model(b)
    pairs = _connections(a, b, connect)
    kept = _kept(keep_outputs, pairs)
    _require_no_state(b, [taken for _, taken in pairs])
    return run_with_limits(limits, lambda: _merged(a, b, pairs, prefix or (None, None), kept, registry))


# the arguments


def _connections(a: Model, b: Model, connect: Connections | None) -> list[tuple[str, str]]:
    """Return the pairs of an output of `a` and an input of `b`; raises NotFoundError or SchemaError."""
    outputs = [v.name for v in a.graph.outputs if v is not None]
    inputs = [v.name for v in b.graph.inputs]
    if connect is None:
        pairs = [(name, name) for name in outputs if name in inputs]
        if not pairs:
            raise SchemaError(
                f"no output of the first model ({listed_names(outputs)}) has the name of an input of the "
                f"second ({listed_names(inputs)}); name the ports to connect"
            )
        return pairs
    pairs = [
        (made, taken)
        for made, several in connect.items()
        for taken in ([several] if isinstance(several, str) else several)
    ]
    for made, taken in pairs:
        _require(made, outputs, "the first model has no output")
        _require(taken, inputs, "the second model has no input")
    repeated = next((t for i, (_, t) in enumerate(pairs) if t in [other for _, other in pairs[:i]]), None)
    if repeated is not None:
        raise SchemaError(f"the input {quote(repeated)} of the second model is connected twice")
    return pairs


def _require(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        near = suggest(name, known) or f"; it has {listed_names(known)}"
        raise NotFoundError(f"{what} {quote(name)}{near}")


def _kept(keep_outputs: Iterable[str], pairs: list[tuple[str, str]]) -> set[str]:
    kept = {keep_outputs} if isinstance(keep_outputs, str) else set(keep_outputs)
    for name in sorted(kept):
        _require(
            name, [made for made, _ in pairs], "to keep: no connected output of the first model is named"
        )
    return kept


def _require_no_state(b: Model, taken: Collection[str]) -> None:
    """Raise SchemaError where training of the second model updates an input that becomes a computed value."""
    state = next((value.name for value in b.state() if value.is_input and value.name in taken), None)
    if state is not None:
        raise SchemaError(
            f"the input {quote(state)} of the second model is state that its training information updates, "
            "and a computed value cannot be"
        )


# the merge


def _merged(
    a: Model,
    b: Model,
    pairs: list[tuple[str, str]],
    prefix: Prefixes,
    kept: set[str],
    registry: Registry,
) -> Merging:
    first, second, converted = aligned(a, b, registry)
    ports = [(_output(first, made), _input(second, taken)) for made, taken in pairs]
    renamed = [*join_dims(first, second, ports), *join_devices(first, second)]
    renamed += join_functions(first, second, lambda name: f"{prefix[1] or ''}{name}")
    naming = [NamingAttributes(model, registry) for model in (first, second)]
    sources = {taken: made for made, taken in ports}
    _copy_passed_inputs(second.graph, sources)
    names = MergedNames(first, second, prefix, sources)
    join_texts(first, second)
    _join_graphs(first.graph, second.graph, sources, kept)
    first.training += second.training
    second.training = []
    renamed += names.put(first)
    for attributes in naming:
        attributes.write(sources)
    first.ir_version = max(first.ir_version, least_ir(first))
    return Merging(first, tuple(pairs), tuple(renamed), converted)


def _output(model: Model, name: str) -> Value:
    return next(v for v in model.graph.outputs if v is not None and v.name == name)


def _input(model: Model, name: str) -> Value:
    return next(v for v in model.graph.inputs if v.name == name)


# the graphs


def _join_graphs(first: Graph, second: Graph, sources: Mapping[Value, Value], kept: set[str]) -> None:
    """Move all that the second graph has to the first, with values of the first for the connected inputs."""
    _join_descriptions(first, second, sources)
    _drop_outputs(first, {made for made in sources.values() if made.name not in kept})
    inputs = [value for value in second.inputs if value not in sources]
    data = [(value, tensor) for value, tensor in second.initializers.items() if value not in sources]
    outputs, infos, shift = list(second.outputs), second.output_infos, len(first.outputs)
    second.output_infos = {}
    second.initializers.clear()
    del second.inputs[:]
    for taken, made in sources.items():
        taken.replace_with(made)
    first.inputs.extend(inputs)
    for value, tensor in data:
        first.set_initializer(value, tensor)
    for node in list(second):
        second.detach(node)
        first.append(node)
        node.devices = tuple(_with_values(device, sources) for device in node.devices)
    del second.outputs[:]
    first.outputs.extend(outputs)
    first.output_infos.update({slot + shift: info for slot, info in infos.items()})


def _copy_passed_inputs(graph: Graph, connected: Collection[Value]) -> None:
    """Make each output that is a connected input a copy, which keeps the name of the output."""
    copies: dict[Value, Value] = {}
    for slot, value in enumerate(graph.outputs):
        if value is not None and value in connected:
            if value not in copies:
                copies[value] = Value(value.name, value.type)
                graph.append(Node("Identity", [value], [copies[value]]))
            graph.outputs[slot] = copies[value]
            graph.output_infos.pop(slot, None)


def _drop_outputs(graph: Graph, dropped: Collection[Value]) -> None:
    """Take values out of the outputs of a graph; the others keep their descriptions."""
    left = [(slot, value) for slot, value in enumerate(graph.outputs) if value not in dropped]
    infos = graph.output_infos
    graph.output_infos = {new: infos[old] for new, (old, _) in enumerate(left) if old in infos}
    graph.outputs = [value for _, value in left]


def _join_descriptions(first: Graph, second: Graph, sources: Mapping[Value, Value]) -> None:
    """Add the annotations and descriptions of a second graph; an annotation of the first comes before."""
    annotated = {annotation.value for annotation in first.annotations}
    moved = [
        annotation._replace(
            value=sources.get(annotation.value, annotation.value),
            parameters=tuple((key, sources.get(v, v)) for key, v in annotation.parameters),
        )
        for annotation in second.annotations
    ]
    first.annotations += tuple(annotation for annotation in moved if annotation.value not in annotated)
    first.orphan_value_info += second.orphan_value_info
    first.clashes.update(second.clashes)
    places_of = [v.value_info_index for v in first.defined() if v.value_info_index is not None]
    shift = max(places_of, default=-1) + 1
    for value in (*second.defined(), *second.orphan_value_info):
        if value.value_info_index is not None:
            value.value_info_index += shift


def _with_values(device: NodeDevice, sources: Mapping[Value, Value]) -> NodeDevice:
    return device._replace(
        shardings=tuple(
            s if s.value is None else s._replace(value=sources.get(s.value, s.value))
            for s in device.shardings
        )
    )
