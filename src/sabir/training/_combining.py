"""The graphs of a training model as models: the state as inputs, what a binding assigns as outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import SchemaError, quote
from sabir.ir import FreshNames, Graph, Node, Tensor, Value, clone_graph
from sabir.rewriting import remove_unread
from sabir.training._optimizers import PREVIEW

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Sequence

    from sabir.ir import Array, Model, Type


class Part(NamedTuple):
    """One graph of a training model as a model of its own.

    `outputs` are the outputs of the graph that no binding names, in order. `updates` maps each name of a
    state variable to the name of the output that is assigned to it. `fed` are the inputs that are fed in
    every run and whose defaults are dropped: the state, and the keys of random numbers. `own` are the outputs
    of the algorithm itself, and `losses` the values that it differentiates.

    >>> Part(sabir.Model(), ('loss',), {'w': 'new_w'}, ('w',)).updates
    {'w': 'new_w'}
    """

    model: Model
    outputs: tuple[str, ...]
    updates: dict[str, str]
    fed: tuple[str, ...]
    own: frozenset[str] = frozenset()
    losses: tuple[str, ...] = ()


def state_of(model: Model) -> dict[str, Value]:
    """Return the state variables of a training model by name; no two have the same name in a valid model.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float y) <float w = {1}> { y = Neg (w) }
    ... @training {algorithm: a () => (float v) { v = Neg (w) }, update_binding: ["w": "v"]}''')
    >>> list(state_of(model))
    ['w']
    """
    found: dict[str, Value] = {}
    for training in model.training:
        for key, _ in (*training.initialization_binding, *training.update_binding):
            found.setdefault(key.name, key)
    return found


def initial_state(model: Model) -> dict[str, Array]:
    """Return copies of what a model initializes its state variables with."""
    return {
        name: key.constant.array().copy()
        for name, key in state_of(model).items()
        if isinstance(key.constant, Tensor)
    }


def inference_part(model: Model) -> Part:
    """Return the main graph with its state as inputs."""
    copy = replace(model, training=[]).clone()
    state = _make_inputs(copy.graph, _held_by(model, (model.graph,)))
    return Part(copy, _names(copy.graph.outputs), {}, state)


def step_part(model: Model, index: int) -> Part:
    """Return the combined graph of an algorithm: the main graph, then the algorithm.

    An update that is an input, or is assigned twice, is returned through an Identity, so that each update is
    an output of its own.
    """
    original = model.training[index]
    names = _held_by(model, (model.graph, original.algorithm))
    copy = replace(model, training=[original]).clone()
    (training,), copy.training = copy.training, []
    graph = copy.graph
    own: frozenset[str] = frozenset()
    losses: tuple[str, ...] = ()
    if training.algorithm is not None:
        own = frozenset(_names(training.algorithm.outputs))
        losses = _differentiated(training.algorithm)
        _append(training.algorithm, graph)
    assigned = {value for _, value in training.update_binding}
    outputs = _names(v for v in graph.outputs if v not in assigned)
    fed = _make_inputs(graph, names)
    return Part(copy, outputs, _updates(graph, training.update_binding), fed, own, losses)


def initialization_part(model: Model, index: int) -> Part | None:
    """Return an initialization as a model, whose inputs are the state that it reads; None where it is absent.

    Raises SchemaError where it reads another value of the main graph.
    """
    training = model.training[index]
    if training.initialization is None:
        return None
    state = state_of(model)
    read = _outside(training.initialization)
    other = next((v for v in read if v.name not in state), None)
    if other is not None:
        raise SchemaError(
            f"training_info[{index}]: the initialization reads {quote(other.name)}, which neither it nor a "
            "state variable defines"
        )
    inputs = {name: Value(name, _type(state[name])) for name in dict.fromkeys(v.name for v in read)}
    copies: dict[Value, Value | None] = {v: inputs[v.name] for v in read}
    graph = clone_graph(training.initialization, copies)
    graph.inputs.extend(inputs.values())
    copy = replace(model, graph=Graph(), training=[]).clone()
    copy.graph = graph
    bound = [(key, copies.get(value) or value) for key, value in training.initialization_binding]
    return Part(copy, (), _updates(graph, bound), ())


def pruned(part: Part, outputs: Sequence[str]) -> Model:
    """Return a copy of a part's model that computes some of its values and its updates, and nothing else.

    Inputs that are not read go too. Derivatives must be written out, as they name values that they do not
    read. Raises SchemaError for a name that no value has.
    """
    model = part.model.clone()
    graph = model.graph
    values = {v.name: v for v in graph.defined()}
    names = dict.fromkeys((*outputs, *part.updates.values()))
    graph.outputs = [values[name] for name in names]
    for name in part.fed:
        if values[name] in graph.initializers:
            graph.set_initializer(values[name], None)
    remove_unread(graph)
    graph.inputs = [v for v in graph.inputs if v.is_read]
    return model


def _differentiated(algorithm: Graph) -> tuple[str, ...]:
    """Return the names of the values whose first derivatives an algorithm computes."""
    gradients = [node for node in algorithm if node.op == "Gradient" and node.domain == PREVIEW]
    derivatives = {v.name for node in gradients for v in node.outputs if v is not None}
    targets = dict.fromkeys(node.attributes["y"].value for node in gradients if "y" in node.attributes)
    return tuple(name for name in targets if isinstance(name, str) and name not in derivatives)


def _append(algorithm: Graph, graph: Graph) -> None:
    """Move everything of an algorithm to the end of the main graph."""
    inputs, outputs, initializers = (
        list(algorithm.inputs),
        list(algorithm.outputs),
        dict(algorithm.initializers),
    )
    algorithm.outputs = []
    for value in initializers:
        algorithm.set_initializer(value, None)
    algorithm.inputs = []
    graph.inputs.extend(inputs)
    for value, data in initializers.items():
        graph.set_initializer(value, data)
    for node in list(algorithm):
        algorithm.detach(node)
        graph.append(node)
    graph.outputs.extend(outputs)
    graph.annotations = (*graph.annotations, *algorithm.annotations)


def _make_inputs(graph: Graph, names: Container[str]) -> tuple[str, ...]:
    """Make inputs of the initializers with the names of state variables, of their types; return their names.

    The contents stay as defaults until `pruned`, so that a derivative does not warn of a new input.
    """
    found = [v for v in graph.initializers if v.name in names]
    for value in found:
        if not value.is_input:
            value.type = _type(value)
            graph.inputs.append(value)
    return tuple(v.name for v in found)


def _updates(graph: Graph, bindings: Sequence[tuple[Value, Value]]) -> dict[str, str]:
    """Return the outputs of a graph that are assigned to state variables, by the names of these."""
    fresh = FreshNames(v.name for inner in graph.scopes() for v in inner.defined())
    found: dict[str, str] = {}
    for key, value in bindings:
        if value.node is None or value.name in found.values():
            copy = Value(fresh.fresh(f"next_{key.name}"))
            graph.append(Node("Identity", [value], [copy]))
            found[key.name] = copy.name
            graph.outputs.append(copy)
        else:
            found[key.name] = value.name
            if value not in graph.outputs:
                graph.outputs.append(value)
    return found


def _held_by(model: Model, graphs: Collection[Graph | None]) -> set[str]:
    """Return the names of the state variables that some graphs have as initializers."""
    return {name for name, value in state_of(model).items() if value.home in graphs}


def _outside(graph: Graph) -> dict[Value, None]:
    """Return the values that a graph and those inside it read and do not define."""
    inside = set(graph.scopes())
    read = (v for inner in inside for v in (*(v for node in inner for v in node.inputs), *inner.outputs))
    return {v: None for v in read if v is not None and v.home not in inside}


def _names(values: Iterable[Value | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.name for v in values if v is not None))


def _type(value: Value) -> Type | None:
    data = value.constant
    return data.type if isinstance(data, Tensor) and not value.is_input else value.type


__all__ = [
    "Part",
    "inference_part",
    "initial_state",
    "initialization_part",
    "pruned",
    "state_of",
    "step_part",
]
