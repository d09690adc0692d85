"""What a model requires of a program that is to read and run it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import starmap
from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.consumers._calls import importers_of
from sabir.consumers._consumer import find_consumer
from sabir.consumers._format import format_of
from sabir.consumers._obstacles import obstacles_of
from sabir.ir import Function, first_ir_of, least_ir
from sabir.opsets import STANDARD
from sabir.schema import ElementTypes, Version, function_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.base import Location
    from sabir.consumers._calls import Calls, Importer
    from sabir.consumers._consumer import Consumer
    from sabir.consumers._format import FeatureUse
    from sabir.consumers._obstacles import Obstacle
    from sabir.elements import ElementType
    from sabir.ir import Model, Node
    from sabir.schema import Registry


@dataclass(frozen=True, slots=True)
class ImportUse:
    """An imported operator set of the model, or of `function`, and what the nodes need of it.

    `calls` and `function_calls` count the nodes that call operators and functions of the domain. `least` is
    the oldest version in which all called operators have the same versions; None if none is called, or if
    some are not known.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> found = requirements(model).imports[0]
    >>> found.version, found.least
    (21, 14)
    """

    domain: str
    version: int
    least: int | None
    calls: int
    function_calls: int
    function: Function | None = None


@dataclass(frozen=True, slots=True)
class OperatorUse:
    """An operator version, or a function of the model, and how many nodes call it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { z = Relu (x) y = Relu (z) }''')
    >>> use = requirements(model).operators[0]
    >>> use.name, use.calls
    ('Relu:14', 2)
    """

    callee: Version | Function
    calls: int

    @property
    def name(self) -> str:
        """The name of an operator version (`Relu:14`), or of a function as messages spell it."""
        return str(self.callee) if isinstance(self.callee, Version) else function_label(self.callee)


@dataclass(frozen=True, slots=True)
class UnknownUse:
    """What nodes call and Sabir does not know: why, how many nodes, the first of them and its location.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "org.acme" : 1]>
    ... g (float[N] x) => (float[N] y) { y = org.acme.Clip (x) }''')
    >>> use = requirements(model).unknown[0]
    >>> use.calls, use.message
    (1, "org.acme.Clip is not an operator that Sabir knows; ...
    """

    message: str
    calls: int
    location: Location
    node: Node


@dataclass(frozen=True, eq=False, slots=True)
class Requirements:
    """What a model requires of its reader, as it was when `requirements` was called.

    `ir_version` is the declared IR version, `least_ir` the oldest one that has all that the model imports and
    uses, and `least_ir_causes` names what needs that one. `features` lists the features of the format,
    `element_types` the element types of declared types, of tensors, and of attributes that name one.
    `operators` and `functions` are those that nodes call, the most frequent first.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> found = requirements(model)
    >>> found.ir_version, found.least_ir, found.least_ir_causes
    (10, 10, ('opset 21 of ai.onnx',))
    """

    ir_version: int
    least_ir: int
    least_ir_causes: tuple[str, ...]
    imports: tuple[ImportUse, ...]
    operators: tuple[OperatorUse, ...]
    functions: tuple[OperatorUse, ...]
    features: tuple[FeatureUse, ...]
    element_types: tuple[ElementType, ...]
    unknown: tuple[UnknownUse, ...]
    _importers: tuple[Importer, ...] = field(repr=False)

    def obstacles(self, consumer: Consumer | str) -> list[Obstacle]:
        """Return what keeps a consumer, or the known one of a name, from reading the model.

        The list is empty if nothing does. IR versions, features and versions of operators are compared; a
        consumer may still lack an operator's kernel for a type or a device. Raises UnsupportedError for an
        unknown name.

        >>> model = sabir.parse('''<ir_version: 8, opset_import: ["" : 17]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> requirements(model).obstacles('onnxruntime-1.12')
        []
        """
        target = find_consumer(consumer) if isinstance(consumer, str) else consumer
        return list(obstacles_of(self.ir_version, self.features, self._importers, target))


def requirements(model: Model, *, registry: Registry = STANDARD) -> Requirements:
    """Return what a model requires of a program that is to read it; the model is not changed.

    Subgraphs, functions with their own imports, and training graphs are included. Operators that `registry`
    does not have are listed as unknown.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Gelu (x) }''')
    >>> found = sabir.requirements(model)
    >>> found.operators[0].name, found.imports[0].least
    ('Gelu:20', 20)
    >>> print(found.obstacles('onnxruntime-1.14')[-1])
    graph/node[0] 'Gelu': Gelu:20 is newer than opset 18 of ai.onnx, the newest of onnxruntime-1.14, ...
    """
    importers = importers_of(model, registry)
    every = [calls for importer in importers for calls in importer.calls.values()]
    features, elements = format_of(model)
    least = least_ir(model)
    return Requirements(
        ir_version=model.ir_version,
        least_ir=least,
        least_ir_causes=tuple(_causes(least, importers, features)),
        imports=tuple(use for importer in importers for use in _imports(importer)),
        operators=_counted(c for c in every if isinstance(c.callee, Version)),
        functions=_counted(c for c in every if isinstance(c.callee, Function)),
        features=features,
        element_types=tuple(sorted({*elements, *_named_elements(every)}, key=lambda e: e.number)),
        unknown=tuple(_unknown(every)),
        _importers=tuple(importers),
    )


def _causes(least: int, importers: Iterable[Importer], features: Iterable[FeatureUse]) -> Iterator[str]:
    model = next(iter(importers))
    for domain, version in model.explicit.items():
        if first_ir_of(domain, version) == least:
            yield f"opset {version} of {domain or 'ai.onnx'}"
    yield from (feature.name for feature in features if feature.since == least)


def _imports(importer: Importer) -> Iterator[ImportUse]:
    newer = importer.scope.newer()
    for domain, version, called in importer.imports():
        functions = [calls for calls in called if isinstance(calls.callee, Function)]
        versions = [calls.callee for calls in called if isinstance(calls.callee, Version)]
        is_known = len(versions) + len(functions) == len(called) and domain not in newer
        least = max((v.since for v in versions), default=None) if is_known else None
        of_functions = sum(len(calls.places) for calls in functions)
        count = sum(len(calls.places) for calls in called) - of_functions
        yield ImportUse(domain, version, least, count, of_functions, importer.function)


def _counted(groups: Iterable[Calls]) -> tuple[OperatorUse, ...]:
    counts: Counter[Version | Function] = Counter()
    for calls in groups:
        if not isinstance(calls.callee, SchemaError):
            counts[calls.callee] += len(calls.places)
    uses = starmap(OperatorUse, counts.items())
    return tuple(sorted(uses, key=lambda use: (-use.calls, use.name)))


def _named_elements(groups: Iterable[Calls]) -> Iterator[ElementType]:
    """Yield the element types that attributes name, such as `to` of Cast."""
    for calls in groups:
        if not isinstance(calls.callee, Version):
            continue
        for formal in calls.callee.attributes:
            if not isinstance(formal.values, ElementTypes):
                continue
            for place in calls.places:
                actual = place.object.attributes.get(formal.name)
                named = None if actual is None or actual.ref else formal.values.element_of(actual.value)
                if named is not None:
                    yield named


def _unknown(groups: Iterable[Calls]) -> Iterator[UnknownUse]:
    for calls in groups:
        if isinstance(calls.callee, SchemaError):
            first = calls.places[0]
            yield UnknownUse(str(calls.callee), len(calls.places), first.location, first.object)
