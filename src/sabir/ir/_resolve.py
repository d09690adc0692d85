"""From a location to the object of a model that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import Location, NotFoundError
from sabir.ir._attributes import Attribute
from sabir.ir._devices import NodeDevice
from sabir.ir._graph import Graph
from sabir.ir._imports import canonical_domain
from sabir.ir._model import Function, Model, TrainingInfo
from sabir.ir._node import Node
from sabir.ir._operator_set import OperatorSet
from sabir.ir._places import TENSORS
from sabir.ir._tensors import SparseTensor, WireTensor
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.base import Step


def resolve(model: Model | OperatorSet, location: Location) -> Any:
    """Return the object of a model or an operator set at a location, as a finding or `walk` reports it.

    Beside the objects of `walk` these are the outputs of graphs and the operands of nodes (values), bindings
    of training, quantization annotations, device configurations and shardings, the version of an opset import
    and the text of a metadata entry. In an inferred call, `function 'f'` after a node is what it calls.

    An index says which object is meant; a name beside it must be the object's name, else the model was edited
    since. Raises NotFoundError, a KeyError, where there is no such object, or a name without an index fits
    several.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> where, node = next(iter(walk(model, Node)))
    >>> resolve(model, where) is node
    True
    """
    found: Any = model
    for place, step in enumerate(location.steps):
        try:
            found = _inside(found, step, model)
        except NotFoundError as error:
            outer = Location(location.steps[:place])
            raise NotFoundError(
                f"{location}: {error}" if place == 0 else f"{location}: in {outer}, {error}"
            ) from None
    return found


def _inside(owner: Any, step: Step, model: Model | OperatorSet) -> Any:
    """Return what a step leads to from an object."""
    for class_, steps in _STEPS.items():
        if isinstance(owner, class_) and step.kind in steps:
            return steps[step.kind](owner, step)
    match owner:
        case Node() if step.kind == "function":
            return _callee(owner, step, model)
        case Function():
            return _inside(owner.graph, step, model)
        case Attribute(type="graph", value=Graph()):
            return _inside(owner.value, step, model)
        case Attribute(type="sparse_tensor", value=SparseTensor()):
            return _inside(owner.value, step, model)
        case Attribute(type="tensor") if owner.value is not None:
            return _inside(owner.value, step, model)
        case Value() if owner.constant is not None:
            return _inside(owner.constant, step, model)
        case _:
            raise NotFoundError(f"{owner!r} has no {step.kind!r}")


def _listed(objects: Iterable[Any], step: Step, name: Callable[[Any], str] = lambda one: one.name) -> Any:
    """Return the object with the index of a step, or the only one with its name."""
    items: Sequence[Any] = list(objects)
    if step.place is None:
        found = [one for one in items if one is not None and name(one) == step.name]
        if len(found) == 1:
            return found[0]
        raise NotFoundError(f"{step} fits {len(found)} objects" if found else f"there is no {step}")
    if not 0 <= step.place < len(items) or items[step.place] is None:
        raise NotFoundError(f"there is no {step}")
    one = items[step.place]
    if step.name and name(one) != step.name:
        called = Location().at(step.kind, index=step.place, name=name(one))
        raise NotFoundError(f"there is no {step}, but {called}: the model was edited since")
    return one


def _keyed(mapping: Mapping[str, Any] | None, step: Step) -> Any:
    found = (mapping or {}).get(step.name)
    if found is None:
        raise NotFoundError(f"there is no {step}")
    return found


def _present(found: Any, step: Step) -> Any:
    if found is None:
        raise NotFoundError(f"there is no {step}")
    return found


def _named_node(node: Node) -> str:
    return node.name or node.op


def _value_info(graph: Graph, step: Step) -> Value:
    """Return the value that an entry of value_info describes, by its position in the file or its name."""
    values = dict.fromkeys((*graph.defined(), *graph.orphan_value_info))
    if step.place is not None:
        at_index = [v for v in values if v.value_info_index == step.place]
        return _listed(at_index, step._replace(place=0))
    try:
        return _listed(graph.defined(), step)
    except NotFoundError:
        return _listed(values, step)


def _callee(node: Node, step: Step, model: Model | OperatorSet) -> Function:
    key = canonical_domain(node.domain), node.op, node.overload
    called = [function for function in model.functions if function.key == key]
    return _listed(called, step)


def _set(operator_set: OperatorSet, step: Step) -> OperatorSet:
    """Return the operator set itself: its place among several is not known here."""
    if step.name and step.name != operator_set.label:
        raise NotFoundError(f"there is no {step}, but {operator_set.label!r}")
    return operator_set


def _import(owner: Model | Function, step: Step) -> Any:
    """Return the version of an import; `ai.onnx` is also the name of the empty domain."""
    if not step.name:
        return owner.opsets
    spellings = (step.name, canonical_domain(step.name))
    return _present(next((owner.opsets[d] for d in spellings if d in owner.opsets), None), step)


def _tensor_metadata(tensor: WireTensor, step: Step) -> Any:
    return _keyed({entry.key: entry.value for entry in tensor.proto.metadata_props}, step)


def _value_metadata(value: Value, step: Step) -> Any:
    """Return an entry of a value, or of the tensor of an initializer, which has the same location."""
    if step.name not in (value.metadata or {}) and isinstance(value.constant, WireTensor):
        return _tensor_metadata(value.constant, step)
    return _keyed(value.metadata, step)


def _bindings(pairs: Sequence[tuple[Value, Value]], step: Step) -> Any:
    """Return a binding, a pair of values; a location has the name of either."""
    return _listed(
        pairs, step, lambda pair: next((v.name for v in pair if v.name == step.name), pair[0].name)
    )


def _sequence_of(types: frozenset[str]) -> Callable[[Attribute, Step], Any]:
    def find(attribute: Attribute, step: Step) -> Any:
        if attribute.type not in types or attribute.value is None:
            raise NotFoundError(f"{attribute!r} has no {step.kind}")
        if not attribute.type.endswith("s"):
            if step.place is None:
                return attribute.value
            raise NotFoundError(f"{attribute!r} has one {step.kind}, and no list of them")
        return _listed(attribute.value, step, lambda _: "")

    return find


_STEPS: dict[type, dict[str, Callable[[Any, Step], Any]]] = {
    Model: {
        "graph": lambda o, _: o.graph,
        "training_info": lambda o, s: _listed(o.training, s, lambda _: ""),
        "function": lambda o, s: _listed(o.functions, s),
        "configuration": lambda o, s: _listed(o.devices, s),
        "opset_import": _import,
        "metadata": lambda o, s: _keyed(o.metadata, s),
    },
    OperatorSet: {
        "operator_set": _set,
        "operator": lambda o, s: _listed(o.operators, s),
        "function": lambda o, s: _listed(o.functions, s),
    },
    TrainingInfo: {
        "initialization": lambda o, s: _present(o.initialization, s),
        "algorithm": lambda o, s: _present(o.algorithm, s),
        "initialization_binding": lambda o, s: _bindings(o.initialization_binding, s),
        "update_binding": lambda o, s: _bindings(o.update_binding, s),
    },
    Function: {
        "graph": lambda o, _: o.graph,
        "attribute": lambda o, s: _keyed(o.attributes, s),
        "opset_import": _import,
    },
    Graph: {
        "input": lambda o, s: _listed(o.inputs, s),
        "output": lambda o, s: _listed(o.outputs, s),
        "initializer": lambda o, s: _listed(o.initializers, s),
        "node": lambda o, s: _listed(o, s, _named_node),
        "value_info": _value_info,
        "quantization_annotation": lambda o, s: _listed(o.annotations, s, lambda a: a.value.name),
        "metadata": lambda o, s: _keyed(o.metadata, s),
    },
    Node: {
        "attribute": lambda o, s: _keyed(o.attributes, s),
        "input": lambda o, s: _listed(o.inputs, s),
        "output": lambda o, s: _listed(o.outputs, s),
        "device": lambda o, s: _listed(o.devices, s, lambda d: d.configuration),
        "metadata": lambda o, s: _keyed(o.metadata, s),
    },
    Attribute: {
        "graph": _sequence_of(frozenset({"graph", "graphs"})),
        "tensor": _sequence_of(TENSORS),
    },
    Value: {
        "metadata": _value_metadata,
        "tensor": lambda o, s: _present(o.constant, s),
    },
    NodeDevice: {"sharding": lambda o, s: _listed(o.shardings, s)},
    SparseTensor: {"values": lambda o, _: o.values, "indices": lambda o, _: o.indices},
    WireTensor: {"metadata": _tensor_metadata},
}
