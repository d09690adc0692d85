"""`convert`: a copy of a model in other versions of the operator sets and of the format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import (
    ConversionError,
    Limits,
    Location,
    Refusal,
    counted,
    run_with_limits,
    without_collector,
)
from sabir.conversion._converter import Converter, Refused
from sabir.conversion._initializers import list_initializers, must_list_initializers
from sabir.conversion._roots import roots_of
from sabir.conversion._targets import choose_ir_version, targets_of
from sabir.ir import Function, Model, Node, canonical_domain, places
from sabir.opsets import STANDARD
from sabir.rewriting import InlineFunctions, paired
from sabir.schema import Registry, Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_UNDEFINED = "the target version has no such operator, and no document has a body for it"


@dataclass(frozen=True)
class Conversion:
    """A converted model, and what was done to it.

    `steps` has the number of calls of each operator version that were rewritten, and for what; `inlined` are
    the functions whose calls were replaced, because only the types or attributes of a call determine what
    their bodies become.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 12]>
    ... g (float[N] x) => (float y) { y = ReduceSum <axes = [0], keepdims = 0> (x) }''')
    >>> conversion = convert_and_report(model, opset=13)
    >>> conversion.steps
    {('ReduceSum:11', 'ReduceSum:13'): 1}
    """

    model: Model
    steps: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    inlined: tuple[str, ...] = ()


def convert(
    model: Model,
    opset: int | None = None,
    *,
    opsets: Mapping[str, int] | None = None,
    ir_version: int | None = None,
    cast: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model for other versions of the operator sets; the copies share all tensors.

    `opset` is the version of the default domain, `opsets` are those of others; a domain that is not mentioned
    keeps its version, and one that the model does not import is left out. All graphs are converted, those of
    functions and of training too. Calls that changed between the versions are rewritten; one that the
    target does not have is written out by its function body. Names of inputs, outputs and values, texts,
    metadata and annotations stay.

    The IR version is raised as far as the result needs it, or set to `ir_version`. With `cast`, a call with
    an element type that the older version does not admit is made in a wider type, between two casts.

    Raises ConversionError, with every node that cannot be expressed and the reason, if there is one;
    UnsupportedError for versions that are not known, SchemaError for invalid calls of functions, LimitError.
    Source: versioning.txt, "Operator versioning".

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 12]>
    ... g (float[N] x) => (float y) { y = ReduceSum <axes = [0], keepdims = 0> (x) }''')
    >>> newer = sabir.convert(model, opset=13)
    >>> newer.opsets, [value.name for value in newer.graph.initializers]
    ({'': 13}, ['axes'])
    """
    return convert_and_report(
        model, opset, opsets=opsets, ir_version=ir_version, cast=cast, registry=registry, limits=limits
    ).model


def convert_and_report(
    model: Model,
    opset: int | None = None,
    *,
    opsets: Mapping[str, int] | None = None,
    ir_version: int | None = None,
    cast: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Conversion:
    """Convert a model as `convert` does, and report what was done.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 12]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> convert_and_report(model, opset=13).model.opsets
    {'': 13}
    """
    targets = targets_of(opset, opsets, registry)

    def run() -> Conversion:
        Scope.of(model, registry)  # raises for a version that is not known
        found = _converted(model, targets, registry, cast=cast)
        if must_list_initializers(found.model, ir_version):
            list_initializers(found.model)
        choose_ir_version(found.model, ir_version, registry)
        return found

    with without_collector():  # hardly any node becomes garbage
        return run_with_limits(limits, run)


def convert_in_place(model: Model, opsets: Mapping[str, int], registry: Registry = STANDARD) -> None:
    """Convert the graphs of a model without functions; raises as `convert`, with the model half converted.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 12]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> convert_in_place(model, {'': 13})
    >>> model.opsets
    {'': 13}
    """
    before = model.clone()
    origins = dict(_pairs(model, before))
    refused = [Refused(c.node, c.operator, _UNDEFINED) for c in _outdated_calls(model, registry, opsets)]
    converter = Converter(model, registry, opsets)
    converter.run()
    refused += converter.refused
    if refused:
        raise _error(before, refused, converter, origins, opsets)


def _converted(model: Model, targets: Mapping[str, int], registry: Registry, *, cast: bool) -> Conversion:
    """Convert a copy; a function whose body cannot be converted for all calls is converted for each."""
    outdated = list(_outdated_calls(model, registry, targets))
    undefined = [Refused(c.node, c.operator, _UNDEFINED) for c in outdated if c.function is None]
    documented = {c.function: None for c in outdated if c.function is not None}
    inlined: list[Function] = []
    while True:
        copy = model.clone()
        origins = dict(_pairs(copy, model))
        copies = dict(zip(model.functions, copy.functions, strict=True))
        _inline(copy, [*documented, *(copies[f] for f in inlined)], origins, registry)
        converter = Converter(copy, registry, targets, cast=cast)
        converter.run()
        if not converter.refused and not undefined:
            names = tuple(_label(f) for f in (*documented, *inlined))
            return Conversion(copy, dict(converter.steps), names)
        more = _called_generically(converter.refused, converter, origins, model, inlined)
        if not more:
            raise _error(model, [*undefined, *converter.refused], converter, origins, targets)
        inlined += more


def _inline(
    model: Model, functions: Collection[Function], origins: dict[Node, Node], registry: Registry
) -> None:
    """Replace the calls of functions; `origins` maps the new nodes too."""
    if not functions:
        return
    copied: dict[Node, Node] = {}

    def convert_body(body: Model, opsets: Mapping[str, int]) -> None:
        convert_in_place(body, opsets, registry)

    InlineFunctions(registry, only=functions, convert=convert_body, origins=copied).run(model)
    origins.update((new, origins.get(old, old)) for new, old in copied.items())


def _called_generically(
    refused: Iterable[Refused], converter: Converter, origins: Mapping[Node, Node], model: Model,
    inlined: Collection[Function],
) -> list[Function]:  # fmt: skip
    """Return the functions that are called and whose bodies have refused nodes, unless inlined already."""
    called = {(n.domain, n.op, n.overload) for g in model.graphs() for n in g.all_nodes()}
    bodies = {n: f for f in model.functions for n in f.graph.all_nodes()}
    found: dict[Function, None] = {}
    for item in refused:
        node = origins.get(converter.origins.get(item.node, item.node))
        function = None if node is None else bodies.get(node)
        if function is not None and function not in inlined and function.key in called:
            found[function] = None
    return list(found)


def _error(
    model: Model, refused: Iterable[Refused], converter: Converter, origins: Mapping[Node, Node],
    targets: Mapping[str, int],
) -> ConversionError:  # fmt: skip
    """Return the error about the refused nodes, with their locations in the model as it was."""
    found = [
        (origins.get(converter.origins.get(r.node, r.node), r.node), r.operator, r.reason) for r in refused
    ]
    wanted = {node for node, *_ in found}
    where = {p.object: p.location for p in places(model, Node) if p.object in wanted}
    refusals = {Refusal(where.get(node, Location()), operator, reason) for node, operator, reason in found}
    asked = " and ".join(f"opset {v} of {d or 'ai.onnx'}" for d, v in targets.items())
    count = len({r.where for r in refusals})
    has = f"{counted(count, 'node')} {'has' if count == 1 else 'have'} no equivalent in {asked}:"
    return ConversionError(has, sorted(refusals, key=lambda r: r.where.order))


def _pairs(copy: Model, model: Model) -> Iterable[tuple[Node, Node]]:
    """Yield the nodes of a copy with those that they are copies of."""
    for one, other in zip(copy.graphs(), model.graphs(), strict=True):
        for new, old in zip(one, other, strict=True):
            yield from paired(new, old)


def _label(function: Function) -> str:
    return ".".join(filter(None, (function.domain, function.name)))


class _OutdatedCall(NamedTuple):
    """A call of a documented operator that the target version does not have, or has with another meaning.

    `function` is its body, None where the document has none; `operator` the version, as text.
    """

    node: Node
    operator: str
    function: Function | None


def _outdated_calls(model: Model, registry: Registry, opsets: Mapping[str, int]) -> Iterator[_OutdatedCall]:
    """Yield the calls of documented operators that do not mean the same in these versions of their sets."""
    if not registry.operator_sets:
        return
    scope = Scope.of(model, registry)
    for root in roots_of(model):
        inner = scope if root.function is None else scope.of_body(root.function)
        for node in root.graph.all_nodes():
            domain = canonical_domain(node.domain)
            before = inner.declaration(node) if domain in opsets else None
            if before is None:
                continue
            after = registry.declaration(domain, node.op, opsets[domain])
            if after is None or after.entry.since != before.entry.since:
                yield _OutdatedCall(node, str(before), inner.function_of(node))
