"""Initializers that an exporter stored once for several layers, and parameters that it stored twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import NotFoundError, UnsupportedError, listed_names, quote, suggest
from sabir.ir import FreshNames, Node, Tensor, Value
from sabir.training._exported import (
    advice,
    kind_of,
    module_of,
    name_of,
    original_name,
    parameters_read,
    same_module,
)
from sabir.training._value_names import is_generated, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Graph, Model
    from sabir.training._roles import Role, Roles

_MATRIX = 2
_MOST = 5
_PARTS = {"scale": "weight", "shift": "bias", "slope": "weight"}  # as modules of PyTorch name them


@dataclass(frozen=True, slots=True)
class Untied:
    """An initializer that several layers shared, and the names of those that other layers have instead.

    >>> Untied('norm1.weight', ('norm2.weight',)).others
    ('norm2.weight',)
    """

    name: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tied:
    """A parameter, and an initializer that has become a copy of it, or with `transposed` its transpose.

    >>> Tied('embedding.weight', 'val_77', transposed=True).name
    'embedding.weight'
    """

    name: str
    other: str
    transposed: bool


def untie(model: Model, roles: Roles) -> list[Untied]:
    """Give each layer initializers of its own where an exporter has stored equal ones once.

    What a layer had is what the records of the exporter say. Where there are none, scales, shifts and biases
    of which all elements are equal, as those of new layers, belong to one layer each.
    """
    names = FreshNames.beside([model.graph])
    found: dict[str, list[str]] = {}
    for node in list(model.graph):
        value = _copied(node, roles)
        if value is not None:
            found.setdefault(value.name, []).append(_replace_copy(model.graph, node, value))
    for value, data in list(model.graph.initializers.items()):
        if not isinstance(data, Tensor) or not data.element.is_float or value.is_input:
            continue
        for owner, readers in _groups(value, data, roles)[1:]:
            own = model.graph.add_initializer(names.fresh(owner), data)
            for node, slot in readers:
                node.inputs[slot] = own
            found.setdefault(value.name, []).append(own.name)
    return [Untied(name, tuple(others)) for name, others in found.items()]


def _copied(node: Node, roles: Roles) -> Value | None:
    """Return the initializer that a node copies for another layer, as TorchScript does; else None."""
    if node.op != "Identity" or node.inputs[0] is None or node.outputs[0] is None:
        return None
    value, copy = node.inputs[0], node.outputs[0]
    data = value.constant
    if not isinstance(data, Tensor) or not data.element.is_float or value.is_input or copy.is_output:
        return None
    is_shared = any(user is not node for user, _ in value.uses)
    is_parameter = any(role.kind == "parameter" for role in roles.of_use(value, node, 0))
    return value if is_shared and is_parameter and verdict(copy.name) == "parameter" else None


def _replace_copy(graph: Graph, node: Node, value: Value) -> str:
    """Put an initializer in the place of a node that copies one; return its name."""
    (copy,), data = node.outputs, value.constant
    name = "" if copy is None else copy.name
    own = Value(name)
    graph.set_initializer(own, data)
    if copy is not None:
        copy.replace_with(own)
    graph.erase(node)
    return name


def _groups(value: Value, data: Tensor, roles: Roles) -> list[tuple[str, list[tuple[Node, int]]]]:
    """Return the names of the parameters that an initializer is, and who reads each; its own first."""
    readers = [(user, slot) for user, slot in value.uses if isinstance(user, Node)]
    taken = [(n, s, r) for n, s in readers for r in roles.of_use(value, n, s)[:1] if r.kind == "parameter"]
    alone = [(value.name, readers)]
    if len(taken) <= 1 or kind_of(value) not in {None, "PARAMETER"}:
        return alone
    owners = {(n, s): _owner(value, n, role) for n, s, role in taken}
    is_recorded = all(parameters_read(node) for node, _, _ in taken)
    if not is_recorded and not _is_uniform(data):
        return alone
    if all(owner is None for owner in owners.values()):
        if any(role.part not in {"scale", "shift", "bias"} for _, _, role in taken):
            return alone
        layers: dict[object, list[tuple[Node, int]]] = {}
        for node, slot, _ in taken:
            layers.setdefault(_layer(node), []).append((node, slot))
        return [(value.name, nodes) for nodes in layers.values()]
    groups: dict[str, list[tuple[Node, int]]] = {}
    first_owner = value.name if value.name in owners.values() else next(o for o in owners.values() if o)
    for reader in readers:
        groups.setdefault(owners.get(reader) or first_owner, []).append(reader)
    return [(first_owner, groups.pop(first_owner)), *groups.items()]


def _owner(value: Value, node: Node, role: Role) -> str | None:
    """Return the name of the parameter that a node reads where it reads a value, None if unknown."""
    parent, _, last = value.name.rpartition(".")
    part = _PARTS.get(role.part, role.part) if is_generated(value.name) else last
    module, read = module_of(node), parameters_read(node)
    if original_name(value) in read:
        return value.name
    if read:
        ours = [name for name in read if name.endswith(f"_{part}")]
        if len(ours) != 1:
            return None
        return name_of(ours[0], node, part)
    if not module or not parent:
        return None
    if same_module(module, parent) or f"{parent}.".startswith(f"{module}."):
        return value.name
    return f"{module}.{part}"


def _layer(node: Node) -> object:
    """Return what all calls of a layer without a name have in common: its parameters, or the call."""
    return tuple(node.inputs[1:]) if node.op == "BatchNormalization" else node


def _is_uniform(data: Tensor) -> bool:
    """Return whether all elements of a tensor are equal."""
    array = data.array()
    return array.size > 0 and bool((array == array.reshape(-1)[0]).all())


def shared_weights(model: Model, roles: Roles) -> list[str]:
    """Return sentences about weights of layers that an exporter may have stored once because they were equal.

    Such are weights without a name of their own that products of several modules read.
    """
    found: list[str] = []
    for value, data in model.graph.initializers.items():
        if not isinstance(data, Tensor) or not data.element.is_float or not is_generated(value.name):
            continue
        read = {module_of(r.node): parameters_read(r.node) for r in roles.of(value) if r.part == "weight"}
        if len(read) > 1 and None not in read and not any(read.values()):
            found.append(
                f"{listed_names(sorted(m or '' for m in read), _MOST)} share the weight {quote(value.name)}, "
                "which is trained as one parameter; if they only begin with equal weights, export with "
                f"{advice(model)}"
            )
    return found


def tie_named(model: Model, pairs: Iterable[tuple[str, str]]) -> list[Tied]:
    """Make one parameter of each pair of initializers, which have equal elements, also transposed.

    Raises NotFoundError for a name that no initializer has, UnsupportedError for other elements.
    """
    found: list[Tied] = []
    for name, other in pairs:
        value, copy = (_initializer(model.graph, n) for n in (name, other))
        transposed = None if value is copy else _is_transposed(value, copy)
        if transposed is None:
            raise UnsupportedError(
                f"{quote(name)} and {quote(other)} are to be one parameter, but the elements of one are "
                "neither those of the other nor of its transpose"
            )
        found.append(_tie(model.graph, value, copy, transposed=transposed))
    return found


def tie_found(model: Model, roles: Roles) -> tuple[list[Tied], list[str]]:
    """Make one parameter of an embedding and the equal weight of a product, if the records say so.

    Returns what was tied, and sentences about pairs of equal elements that nothing else is known of.
    """
    tied: list[Tied] = []
    warnings: list[str] = []
    for table, weight in _equal_pairs(model.graph, roles):
        transposed = _is_transposed(table, weight)
        if transposed is None or weight not in model.graph.initializers:
            continue
        readers = [user for user, _ in weight.uses if isinstance(user, Node)]
        is_recorded = any(original_name(table) in parameters_read(node) for node in readers)
        if is_recorded or is_generated(weight.name):
            tied.append(_tie(model.graph, table, weight, transposed=transposed))
        else:
            warnings.append(
                f"the embedding {quote(table.name)} and the weight {quote(weight.name)} have equal elements "
                "and are trained apart; if they are one parameter, pass "
                f"tie=[({table.name!r}, {weight.name!r})]"
            )
    return tied, warnings


def _equal_pairs(graph: Graph, roles: Roles) -> Iterator[tuple[Value, Value]]:
    """Yield the tables that are looked up in, each with the weights of products that may be the same."""
    matrices = [
        (v, {role.node.op for role in roles.of(v) if role.kind == "parameter"})
        for v, data in list(graph.initializers.items())
        if isinstance(data, Tensor) and data.element.is_float and len(data.shape) == _MATRIX
    ]
    for table, readers in matrices:
        if "Gather" not in readers or table not in graph.initializers:
            continue
        for weight, others in matrices:
            if weight is not table and others and "Gather" not in others:
                yield table, weight


def _is_transposed(value: Value, copy: Value) -> bool | None:
    """Return False for equal elements, True for those of the transpose, None for others."""
    one, other = value.constant, copy.constant
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.element is not other.element:
        return None
    if one.shape not in {other.shape, other.shape[::-1]} or _is_uniform(one):
        return None
    array, copied = one.array(), other.array()
    if one.shape == other.shape and np.array_equal(array, copied):
        return False
    return True if one.shape == other.shape[::-1] and np.array_equal(array.T, copied) else None


def _tie(graph: Graph, value: Value, copy: Value, *, transposed: bool) -> Tied:
    """Let a value take the place of an equal one."""
    name, kind = copy.name, copy.type
    graph.set_initializer(copy, None)
    if not transposed:
        copy.replace_with(value)
    else:
        axes = range(len(value.shape or ()))
        node = Node("Transpose", [value], [Value(name, kind)], {"perm": [*reversed(axes)]})
        graph.prepend(node)
        copy.replace_with(node.output)
    return Tied(value.name, name, transposed)


def _initializer(graph: Graph, name: str) -> Value:
    found = next((v for v in graph.initializers if v.name == name), None)
    if found is None:
        known = [v.name for v in graph.initializers]
        raise NotFoundError(f"the model has no initializer {quote(name)}{suggest(name, known)}")
    return found


__all__ = ["Tied", "Untied", "tie_found", "tie_named", "untie"]
