"""What keeps a consumer from reading a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.base import Location, SchemaError, counted, legible, quote
from sabir.consumers._added import FIRST_MINOR
from sabir.ir import Function
from sabir.schema import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.consumers._calls import Calls, Importer
    from sabir.consumers._consumer import Consumer
    from sabir.consumers._format import FeatureUse
    from sabir.ir import Node

ObstacleKind = Literal["ir_version", "feature", "import", "unknown", "operator", "domain", "invalid"]


class Obstacle(NamedTuple):
    """One thing that keeps a consumer from reading a model: why, where, and the node if it is one.

    The kinds are: `ir_version`, the declared one is too new; `feature`, a feature of the format came later;
    `import`, an imported version is too new; `unknown`, it is too new, and Sabir does not know its operators;
    `operator`, a node uses a version that the consumer lacks; `domain`, the consumer has no operators of a
    domain; `invalid`, there is no such operator.
    If all obstacles are of the kinds `ir_version` and `import`, the model only has to state lower versions.

    >>> model = sabir.parse('''<ir_version: 8, opset_import: ["" : 17]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> for obstacle in sabir.requirements(model).obstacles(Consumer('edge', {'': 14}, ir_version=8)):
    ...     print(obstacle)
    opset_import 'ai.onnx': the model imports opset 17 of ai.onnx, and edge has up to 14; every operator ...
    """

    kind: ObstacleKind
    sentence: str
    location: Location
    node: Node | None = None

    def __str__(self) -> str:
        return legible(f"{self.location}: {self.sentence}")


def obstacles_of(
    ir_version: int, features: Iterable[FeatureUse], importers: Sequence[Importer], consumer: Consumer
) -> Iterator[Obstacle]:
    """Yield the obstacles: of the format, of the imports, then of the nodes."""
    newer = [feature for feature in features if feature.since > consumer.ir_version]
    if ir_version > consumer.ir_version:
        yield Obstacle("ir_version", _about_ir(ir_version, newer, consumer), Location())
    for feature in newer:
        came = f"{feature.name} came with IR version {feature.since}"
        places = f", in {counted(feature.uses, 'place')}" if feature.uses > 1 else ""
        sentence = f"{came}, and {consumer.name} reads up to {consumer.ir_version}{places}"
        yield Obstacle("feature", sentence, feature.location, feature.node)
    for importer in importers:
        yield from _of_imports(importer, consumer)
    for importer in importers:
        for calls in importer.calls.values():
            yield from _of_calls(calls, importer, consumer)


def _about_ir(ir_version: int, newer: Sequence[FeatureUse], consumer: Consumer) -> str:
    reads = f"the model has IR version {ir_version}, and {consumer.name} reads up to {consumer.ir_version}"
    if newer:
        return f"{reads}; {counted(len(newer), 'feature')} of the format that it uses came later"
    lower = f"set `ir_version` to {consumer.ir_version}"
    return f"{reads}; it uses no feature of the format that came later: {lower}"


def _of_imports(importer: Importer, consumer: Consumer) -> Iterator[Obstacle]:
    for domain, version, called in importer.imports():
        newest = consumer.opsets.get(domain)
        if newest is None or version <= newest:
            continue
        shown = domain or "ai.onnx"
        where = importer.where.at("opset_import", name=shown)
        has = f"{importer.label} imports opset {version} of {shown}, and {consumer.name} has up to {newest}"
        operators = [calls for calls in called if not isinstance(calls.callee, Function)]
        unknown = _why_unknown(domain, importer) if operators else ""
        about = unknown or _about_import(operators, newest, has_functions=len(operators) < len(called))
        yield Obstacle("unknown" if unknown else "import", f"{has}; {about}", where)


def _why_unknown(domain: str, importer: Importer) -> str:
    """Return why Sabir cannot compare the operators of an import with older ones; nothing if it can."""
    if domain in importer.scope.newer():
        return "Sabir does not know this opset, and cannot say what changed"
    if not importer.scope.registry.has_domain(domain):
        return "Sabir does not know the operators of this domain, and cannot say what changed"
    return ""


def _about_import(called: Sequence[Calls], newest: int, *, has_functions: bool) -> str:
    if not called and has_functions:
        return f"nodes call only functions of the model in it: import opset {newest}"
    if not called:
        return "no node calls anything of it: remove the import"
    count = sum(len(calls.places) for calls in called if _is_in_the_way(calls, newest))
    if not count:
        return (
            f"every operator that it calls is the same in opset {newest}: `sabir.convert` lowers the import"
        )
    verb = "uses a version" if count == 1 else "use versions"
    return f"{counted(count, 'node')} {verb} that opset {newest} does not have"


def _is_in_the_way(calls: Calls, newest: int) -> bool:
    return not isinstance(calls.callee, Version) or calls.callee.since > newest


def _of_calls(calls: Calls, importer: Importer, consumer: Consumer) -> Iterator[Obstacle]:
    found = _about_calls(calls, importer, consumer)
    if found is not None:
        kind, sentence = found
        for place in calls.places:
            yield Obstacle(kind, sentence, place.location, place.object)


def _about_calls(calls: Calls, importer: Importer, consumer: Consumer) -> tuple[ObstacleKind, str] | None:
    """Return why a consumer does not have what nodes call, None if it has it, or may have it."""
    callee, domain = calls.callee, calls.domain
    if isinstance(callee, Function):
        return None
    scope, newest = importer.scope, consumer.opsets.get(domain)
    judged = scope.opset(domain) is None or scope.registry.has_domain(domain)
    if isinstance(callee, SchemaError) and judged:
        return "invalid", str(callee)
    if newest is None:
        return "domain", f"{consumer.name} has no operators of {quote(domain or 'ai.onnx')}; {_called(calls)}"
    if isinstance(callee, Version) and callee.since > newest:
        return "operator", _about_version(callee, newest, consumer)
    if isinstance(callee, Version) and callee.is_added and not _has_added(callee, consumer):
        return "operator", _about_added(callee, consumer)
    return None


def _has_added(version: Version, consumer: Consumer) -> bool:
    operator = version.operator
    return consumer.added is None or (operator.domain, operator.name) in consumer.added


def _about_added(version: Version, consumer: Consumer) -> str:
    first = FIRST_MINOR.get((version.operator.domain, version.operator.name))
    since = "" if first is None else f" from onnxruntime-1.{first} on"
    return f"{version} is no operator of the standard, and {consumer.name} lacks it; it is known{since}"


def _called(calls: Calls) -> str:
    node: Node = calls.places[0].object
    name = str(calls.callee) if isinstance(calls.callee, Version) else f"{node.domain}.{node.op}"
    return f"the node calls {name}"


def _about_version(version: Version, newest: int, consumer: Consumer) -> str:
    operator = version.operator
    older = operator.find(newest)
    has = f"no {operator.name}" if older is None else str(older)
    domain = operator.domain or "ai.onnx"
    return (
        f"{version} is newer than opset {newest} of {domain}, the newest of {consumer.name}, which has {has}"
    )
