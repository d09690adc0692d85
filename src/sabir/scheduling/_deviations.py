"""Deviations from the standard that files in use contain, and that other runtimes accept.

A run that is not strict reads such a file as it is meant, with a warning for each deviation; the checker
reports them as errors, and a strict run fails as they demand.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from sabir.base import ACCIDENTS, SabirError, UnsupportedError, legible, quote
from sabir.inference import Inference, contradiction
from sabir.ir import (
    ArrayTensor,
    FreshNames,
    Graph,
    Tensor,
    TensorType,
    bound_opsets,
    canonical_domain,
    find_opset,
    newest_opset,
    opsets_of_ir,
)
from sabir.scheduling._labels import label_of
from sabir.schema import Call, Scope, as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.ir import Array, AttributeType, Function, Model, Node, Type, Value
    from sabir.schema import Registry, Version

_READ_AS = {"float": "int", "floats": "ints"}  # integers that are read as floats


class Deviation(NamedTuple):
    """One deviation: what it is and how it is read, and the change that makes the model say so."""

    message: str
    repair: Callable[[], None]


def as_meant(model: Model, registry: Registry) -> tuple[Model, tuple[str, ...]]:
    """Return a model without the deviations that runs accept, and sentences about these.

    A model without deviations is returned itself, any other one as a repaired copy.

    >>> from sabir.opsets import STANDARD
    >>> model = sabir.parse('''<ir_version: 8, opset_import: ["" : 17]>
    ... g (float[2,3] x) => (float[2,1] y) <int64 a = {1}> { y = ReduceSum (x, a) }''')
    >>> print(as_meant(model, STANDARD)[1][0])
    ReduceSum with output 'y': `axes` is a scalar, and is read as a list of one axis
    """
    if next(_Search(model, registry).run(), None) is None:
        return model, ()
    copy = model.clone()
    found: list[str] = []
    for search in (_Search(copy, registry).imports, _Search(copy, registry).run):  # imports decide versions
        for deviation in list(search()):
            deviation.repair()
            found.append(legible(deviation.message))
    return copy, tuple(found)


class _Watched(NamedTuple):
    """What a version is searched for: float attributes, attributes and operands that list axes.

    `is_source` is whether it computes a constant from attributes alone.
    """

    version: Version
    floats: tuple[str, ...]
    axes_attributes: tuple[str, ...]
    axes_operands: tuple[int, ...]
    is_source: bool


class _Search:
    """A search for the deviations of one model."""

    def __init__(self, model: Model, registry: Registry) -> None:
        self._model, self._registry = model, registry
        self._bodies = {function.graph: function for function in model.functions}
        self._watched: dict[tuple[Scope, str, str], _Watched | None] = {}

    def run(self) -> Iterator[Deviation]:
        """Yield all deviations; the repair of one invalidates no other."""
        yield from self.imports()
        scope = Scope.of(self._model, self._registry, newer_opsets=True)
        for root in self._model.graphs():
            function = self._bodies.get(root)
            inner = scope if function is None else scope.of_body(function)
            for graph in root.scopes():
                yield from _declared_initializers(graph)
                for node in graph:
                    watched = self._watched_of(node, inner)
                    if watched is not None:
                        yield from self._of_node(node, watched, inner)

    # the imports

    def imports(self) -> Iterator[Deviation]:
        """Yield the domains of the standard that are called and not imported; the default one is implicit."""
        roots = [graph for graph in self._model.graphs() if graph not in self._bodies]
        yield from self._missing_imports(self._model, "the model", roots)
        for graph, function in self._bodies.items():
            yield from self._missing_imports(function, f"the function {quote(function.name)}", [graph])

    def _missing_imports(self, owner: Model | Function, what: str, roots: list[Graph]) -> Iterator[Deviation]:
        missing: dict[str, str] = {}
        functions = self._model.functions_by_key()
        for node in (n for root in roots for n in root.all_nodes() if n.domain):
            domain = canonical_domain(node.domain)
            if not domain or domain in missing or find_opset(owner.opsets, domain) is not None:
                continue
            known = newest_opset(domain) is not None and self._registry.find(domain, node.op) is not None
            if known and (domain, node.op, node.overload) not in functions:
                missing[domain] = node.op
        for domain, op in missing.items():
            version = self._assumed(domain)
            if self._registry.find_version(domain, op, version) is not None and version is not None:
                message = f"{what} calls {op} without importing {domain}; opset {version} is assumed"
                yield Deviation(message, functools.partial(owner.opsets.__setitem__, domain, version))

    def _assumed(self, domain: str) -> int | None:
        """Return the version of a domain that the model imports, or the newest of its IR version."""
        imported = bound_opsets(self._model.opsets).get(domain)
        if imported is not None:
            return imported
        try:
            return opsets_of_ir(self._model.ir_version).get(domain)
        except UnsupportedError:
            return None

    # the nodes

    def _watched_of(self, node: Node, scope: Scope) -> _Watched | None:
        key = (scope, node.domain, node.op)
        if key not in self._watched:
            version = scope.version(node)
            self._watched[key] = None if version is None else _watch(version)
        found = self._watched[key]
        return None if found is None or scope.function_of(node) is not None else found

    def _of_node(self, node: Node, watched: _Watched, scope: Scope) -> Iterator[Deviation]:
        for name in watched.floats:
            yield from _integers_as_floats(node, name, watched.version.formal.attributes[name].type)
        for name in watched.axes_attributes:
            attribute = node.attributes.get(name)
            if attribute is not None and attribute.type == "ints" and attribute.value and not attribute.ref:
                read = self._distinct(attribute.value, node)
                if len(read) < len(attribute.value):
                    change = functools.partial(
                        node.attributes.__setitem__, name, replace(attribute, value=tuple(read))
                    )
                    yield Deviation(_twice(node, attribute.value, read), change)
        for place in watched.axes_operands:
            yield from self._of_operand(node, place, scope)
        if watched.is_source:
            yield from _declared_source(node, watched.version)

    def _of_operand(self, node: Node, place: int, scope: Scope) -> Iterator[Deviation]:
        value = node.inputs[place] if place < len(node.inputs) else None
        array = None if value is None else _constant(value, scope)
        if value is None or array is None or array.ndim > 1 or array.dtype.kind != "i":
            return
        listed: list[int] = array.reshape(-1).tolist()
        read = self._distinct(listed, node)
        messages = [_twice(node, listed, read)] if len(read) < len(listed) else []
        if not array.ndim:
            messages = [f"{label_of(node)}: `axes` is a scalar, and is read as a list of one axis"]
        for message in messages:
            axes = ArrayTensor(np.array(read, np.int64))
            yield Deviation(message, functools.partial(self._replace_operand, node, place, value.name, axes))

    def _replace_operand(self, node: Node, place: int, name: str, axes: Tensor) -> None:
        if node.graph is not None:
            node.inputs[place] = node.graph.add_initializer(self._names.fresh(name), axes)

    @functools.cached_property
    def _names(self) -> FreshNames:
        return FreshNames.beside(self._model.graphs())

    def _distinct(self, axes: Sequence[int], node: Node) -> list[int]:
        """Return axes of the first operand of a node, those that are listed again left out."""
        if len(axes) < 2:  # ruff: ignore[magic-value-comparison]  one axis is no list with repetitions
            return list(axes)
        rank = self._rank(node) if min(axes) < 0 <= max(axes) else None
        found: dict[int, int] = {}
        for axis in axes:
            found.setdefault(axis + rank if rank is not None and -rank <= axis < 0 else axis, axis)
        return list(found.values())

    def _rank(self, node: Node) -> int | None:
        value = node.inputs[0] if node.inputs else None
        if value is None:
            return None
        kind = value.type
        if not isinstance(kind, TensorType) or kind.rank is None:
            kind = self._types.get(value)
        return kind.rank if isinstance(kind, TensorType) else None

    @functools.cached_property
    def _types(self) -> Mapping[Value, Type]:
        inference = Inference(self._model, registry=self._registry)
        inference.run()
        return inference.types


def _watch(version: Version) -> _Watched | None:
    attributes = version.formal.attributes.values()
    watched = _Watched(
        version,
        tuple(a.name for a in attributes if a.type in _READ_AS),
        tuple(a.name for a in attributes if a.lists_axes),
        tuple(place for place, port in enumerate(version.inputs) if port.lists_axes),
        is_source=not version.inputs and not version.operator.random,
    )
    return watched if any(watched[1:]) else None


def _integers_as_floats(node: Node, name: str, wanted: AttributeType) -> Iterator[Deviation]:
    attribute = node.attributes.get(name)
    if attribute is None or attribute.ref or attribute.type != _READ_AS[wanted] or attribute.value is None:
        return
    numbers = attribute.value
    value = float(numbers) if wanted == "float" else tuple(map(float, numbers))
    message = f"{label_of(node)}: attribute {quote(name)} is {attribute.type}, and is read as {wanted}"
    new = replace(attribute, type=wanted, value=value)
    yield Deviation(message, functools.partial(node.attributes.__setitem__, name, new))


def _twice(node: Node, listed: Sequence[int], read: Sequence[int]) -> str:
    axes = f"axes {list(listed)} name one axis twice, and are read as {list(read)}"
    return f"{label_of(node)}: {axes}"


def _declared_initializers(graph: Graph) -> Iterator[Deviation]:
    """Yield the initializers whose declared types contradict their data."""
    for value, data in graph.initializers.items():
        if isinstance(data, Tensor) and value.type is not None and not value.is_input:
            yield from _contradicted(value, data.type)


def _declared_source(node: Node, version: Version) -> Iterator[Deviation]:
    """Yield the constant that a node computes, if its declared type contradicts it."""
    value = node.outputs[0] if len(node.outputs) == 1 else None
    if value is None or value.type is None or any(a.ref for a in node.attributes.values()):
        return
    binding = version.binding("infer")
    try:
        (kind,) = as_results(binding((), binding.arguments(node.attributes), Call((True,), version.since)))
    except (SabirError, *ACCIDENTS):  # the run reports it
        return
    yield from _contradicted(value, kind)


def _contradicted(value: Value, actual: Type) -> Iterator[Deviation]:
    if any(isinstance(use.user, Graph) for use in value.uses):
        return  # the types of outputs are compared with the results of runs
    problem = contradiction(value.type, actual)
    if problem:
        message = f"the constant {quote(value.name)} is {problem}; the declaration is ignored"
        yield Deviation(message, functools.partial(setattr, value, "type", None))


def _constant(value: Value, scope: Scope) -> Array | None:
    """Return a constant tensor: an initializer that is no input, or the result of a node without any."""
    try:
        if isinstance(value.constant, Tensor):
            return None if value.is_input else value.constant.array()
        result = None if value.node is None else _computed(value.node, scope)
    except (SabirError, *ACCIDENTS):  # the run reports it
        return None
    return cast("Array", result) if isinstance(result, np.ndarray) else None


def _computed(node: Node, scope: Scope) -> object:
    """Return what a node without operands computes, None for any other node."""
    version = None if node.inputs or len(node.outputs) != 1 else scope.version(node)
    if version is None or version.operator.random:
        return None
    binding = version.binding("evaluate")
    return as_results(binding((), binding.arguments(node.attributes), Call((True,), version.since)))[0]
