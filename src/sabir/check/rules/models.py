"""Models: versions, imports, and what each version of the format knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import Location, quote
from sabir.check._examples import GOOD, HEAD, RELU, X, Y, in_graph, in_model
from sabir.check._rule import Problem, Textproto, Wire, rule
from sabir.check._survey import parts_of_type
from sabir.ir import (
    NEWEST_IR,
    MapType,
    OptionalType,
    SequenceType,
    canonical_domain,
    first_ir_of,
    newest_opset,
)
from sabir.proto import FunctionProto, ModelProto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.check._survey import FunctionSite, GraphSite, Survey

_GRAPH = f'graph {{ {RELU} name: "g" {X} {Y} }}'
_FIRST_SEQUENCE, _FIRST_SPARSE, _FIRST_OPTIONAL, _FIRST_METADATA = 6, 6, 8, 10
_NEWEST_IN_GRAPHS = 11
# labels as of the domain name system or of a Java package; the first is a top-level domain, of letters alone
_DOMAIN = re.compile(r"[a-z]{2,63}(\.(?!.{0,62}-(\.|\Z))\w[\w-]{0,62})+", re.IGNORECASE | re.ASCII)


def _here(step: str = "", *, name: str = "") -> Location:
    return Location().at(step, name=name) if step else Location()


@rule(
    "MODEL001",
    "For example, the ModelProto.ir_version property MUST be present in every model.",
    source="versioning.txt",
    over="model",
    bad=Textproto(f'opset_import {{ domain: "" version: 17 }} {_GRAPH}'),
    good=GOOD,
)
def states_ir_version(survey: Survey) -> Iterator[Problem]:
    """The model says which version of the format it is written in."""
    if not survey.model.ir_version:
        hint = f"set it; the newest is {NEWEST_IR}"
        yield Problem("the model states no ir_version", _here(), hint)


@rule(
    "MODEL002",
    "Each model MUST explicitly name the operator sets that it relies on for its functionality.",
    source="ir.txt",
    over="model",
    since=3,
    bad=Textproto('ir_version: 8 graph { name: "g" }  functions { name: "f" domain: "d" }'),
    good=GOOD,
)
def imports_operator_sets(survey: Survey) -> Iterator[Problem]:
    """The model imports an operator set."""
    if not survey.model.opsets:
        yield Problem("the model imports no operator set", _here(), 'add an opset_import such as "" : 21')


@rule(
    "MODEL003",
    "Once all output parameters have been written to by a graph execution, the execution is complete.",
    source="ir.txt",
    over="model",
    severity="warning",
    note="the text asks for no output, but such a model computes nothing",
    bad=HEAD + "g (float[N] x) => () { y = Relu(x) }",
    good=GOOD,
)
def has_outputs(survey: Survey) -> Iterator[Problem]:
    """A model has an output, or is a library of functions."""
    if not survey.model.graph.outputs and not survey.model.functions:
        yield Problem("the graph has no outputs", _here("graph"), "a model must compute something")


@rule(
    "MODEL004",
    "Each model defines the imported operator sets by their domains.",
    source="ir.txt",
    over="model",
    bad=in_model(f"opset_import {{ version: 18 }} {_GRAPH}"),
    good=GOOD,
)
def imports_once(survey: Survey) -> Iterator[Problem]:
    """Each domain is imported once; `""` and `"ai.onnx"` are one domain."""
    model = survey.model
    again = ModelProto.FromString(model.residue.wire).opset_import if model.residue else ()
    yield from _twice([*model.opsets, *(e.domain for e in again)], _here())
    for site in survey.functions:
        residue = site.function.residue
        more = FunctionProto.FromString(residue.wire).opset_import if residue else ()
        yield from _twice([*site.function.opsets, *(e.domain for e in more)], site.where)


def _twice(domains: list[str], where: Location) -> Iterator[Problem]:
    seen: set[str] = set()
    for domain in map(canonical_domain, domains):
        if domain in seen:
            yield Problem(
                f"the operator set of {quote(domain or 'ai.onnx')} is imported twice",
                where.at("opset_import", name=domain or "ai.onnx"),
                "keep one of them",
            )
        seen.add(domain)


@rule(
    "MODEL005",
    "The valid IR versions are defined by the onnx.Version enumeration in onnx.proto.",
    source="ir.txt",
    over="model",
    bad=(
        in_model(_GRAPH, ir_version=NEWEST_IR + 1),
        in_model(_GRAPH, ir_version=-1),
    ),
    good=GOOD,
)
def known_ir_version(survey: Survey) -> Iterator[Problem]:
    """The ir_version is one that was published."""
    version = survey.model.ir_version
    if version and not 1 <= version <= NEWEST_IR:
        yield Problem(f"ir_version {version} is not in the standard", _here(), f"they are 1 to {NEWEST_IR}")


@rule(
    "MODEL006",
    "An operator set represents a specific version of a domain, indicated by a pair (domain, version).",
    source="versioning.txt",
    over="model",
    bad=in_model(_GRAPH, opset=999),
    good=GOOD,
)
def known_opset(survey: Survey) -> Iterator[Problem]:
    """The version imported of a standard domain was published; that of any other domain is at least 1."""
    yield from _unpublished(survey.model.opsets, _here())
    for site in survey.functions:
        yield from _unpublished(site.function.opsets, site.where)


def _unpublished(opsets: dict[str, int], where: Location) -> Iterator[Problem]:
    for domain, version in opsets.items():
        newest = newest_opset(domain)
        if version < 1 or (newest is not None and version > newest):
            yield Problem(
                f"version {version} of {quote(domain or 'ai.onnx')} is not in the standard",
                where.at("opset_import", name=domain or "ai.onnx"),
                f"they are 1 to {newest}" if newest else "a version is at least 1",
            )


@rule(
    "MODEL007",
    "New IR and operator versions are released as part of ONNX releases, which have their own"
    " versioning scheme.",
    source="versioning.txt",
    over="model",
    severity="warning",
    note="the table of releases informs, and many a tool has written such a pair",
    since=3,
    bad='<ir_version: 3, opset_import: ["" : 21]>\ng (float[N] x) => (float[N] y) { y = Relu(x) }',
    good=GOOD,
)
def opset_of_its_time(survey: Survey) -> Iterator[Problem]:
    """An operator set came out with the model's IR version or an earlier one (the table of releases)."""
    model = survey.model
    for domain, version in model.opsets.items():
        newest, needed = newest_opset(domain), first_ir_of(domain, version)
        if needed is not None and newest is not None and 0 < model.ir_version < needed and version <= newest:
            yield Problem(
                f"opset {version} of {domain or 'ai.onnx'} came with IR {needed}; the model is of"
                f" IR {model.ir_version}",
                Location().at("opset_import", name=domain or "ai.onnx"),
                f"raise ir_version to {needed}",
            )


@rule(
    "MODEL008",
    "Each model defines the imported operator sets by their domains.",
    source="ir.txt",
    over="model",
    until=2,
    bad=in_model(_GRAPH, ir_version=2, opset=1),
    good=Textproto(f"ir_version: 2 {_GRAPH}"),
)
def no_imports_before_them(survey: Survey) -> Iterator[Problem]:
    """Before IR 3 there were no imports, so the model has none."""
    if survey.model.ir_version > 0 and survey.model.opsets:
        yield Problem("imports came with IR 3", _here("opset_import"), "raise ir_version to 3 or more")


@rule(
    "MODEL009",
    "Models MUST specify a domain and use reverse domain names based on the responsible organization's"
    " identity, the same convention that is used for naming Java packages.",
    source="ir.txt",
    over="model",
    severity="warning",
    pedantic=True,
    note="no exporter does it",
    bad=GOOD,
    good=in_model(f'domain: "org.example" {_GRAPH}'),
)
def has_a_domain(survey: Survey) -> Iterator[Problem]:
    """The model names a domain such as `org.example`."""
    if not _DOMAIN.fullmatch(survey.model.domain):
        shown = (
            f"{quote(survey.model.domain)} is no reverse domain name" if survey.model.domain else "no domain"
        )
        yield Problem(shown, _here(), "name one such as 'org.example'")


@rule(
    "MODEL010",
    "Operator sets other than the default operator set MUST specify a domain and SHOULD use reverse domain"
    " names based on the responsible organization's identity, the same convention that is used for"
    " naming Java"
    " packages.",
    source="ir.txt",
    over="model",
    severity="warning",
    pedantic=True,
    bad='<ir_version: 8, opset_import: ["" : 17, "custom" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = Relu(x) }",
    good='<ir_version: 8, opset_import: ["" : 17, "org.example" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = Relu(x) }",
)
def reversed_domains(survey: Survey) -> Iterator[Problem]:
    """An imported domain reads like `org.example`."""
    for domain in survey.model.opsets:
        if domain and not _DOMAIN.fullmatch(domain):
            where = _here("opset_import", name=domain)
            yield Problem(
                f"{quote(domain)} is no reverse domain name", where, "name one such as 'org.example'"
            )


_FUNCTION = (
    '<ir_version: {ir_version}, opset_import: ["" : {opset}, "d" : 1]>\n'
    "g (float[N] x) => (float[N] y) {{ y = d.f(x) }}\n"
    '<domain: "d", opset_import: ["" : {opset}]>\nf (a) => (b) {{ b = Relu(a) }}'
)
_NEED_IR = (
    "Breaking changes to the format or semantics of the ONNX specification require an increment of the"
    " version."
)


@rule(
    "MODEL011",
    _NEED_IR,
    source="versioning.txt",
    over="model",
    bad=(
        _FUNCTION.format(ir_version=7, opset=14),
        in_graph(f'{RELU} name: "g" {X} {Y} metadata_props {{ key: "k" value: "v" }}', ir_version=9),
        '<ir_version: 7, opset_import: ["" : 14]>\ng (optional(float[N]) x) => (optional(float[N]) x) { }',
    ),
    good=_FUNCTION.format(ir_version=8, opset=15),
    severity="warning",
    note="a reader of that version skips what it does not know; where the meaning needs it, it will fail",
)
def fields_of_its_time(survey: Survey) -> Iterator[Problem]:
    """A model uses only what its IR version had: functions came with IR 8, metadata on graphs with 10, ..."""
    version = survey.model.ir_version
    for what, since, where in _newer_things(survey):
        if 0 < version < since:
            hint = f"raise ir_version to {since}"
            yield Problem(f"{what} came with IR {since}; the model is of IR {version}", where, hint)


def _newer_things(survey: Survey) -> Iterator[tuple[str, int, Location]]:
    model = survey.model
    if model.training:
        yield "training_info", 7, _here("training_info")
    if model.devices:
        yield "device configurations", 11, _here("configuration")
    for function in survey.functions:
        yield from _newer_in_function(function)
    version = model.ir_version
    if 0 < version < _NEWEST_IN_GRAPHS:
        for site in survey.graphs:
            yield from _newer_in_graph(site)
    if 0 < version < _FIRST_METADATA:
        for tensor in survey.tensors:
            if tensor.proto is not None and len(tensor.proto.metadata_props):
                yield "metadata_props of a tensor", _FIRST_METADATA, tensor.where
    if 0 < version < _FIRST_OPTIONAL:
        yield from _newer_types(survey)
    if 0 < version < _FIRST_SPARSE:
        yield from (("sparse tensors", _FIRST_SPARSE, site.where) for site in survey.sparse)


def _newer_in_function(site: FunctionSite) -> Iterator[tuple[str, int, Location]]:
    function = site.function
    yield "functions", 8, site.where
    if any(a is not None for a in function.attributes.values()):
        yield "defaults of a function's attributes", 9, site.where
    if function.overload:
        yield "overloads", 10, site.where
    if function.metadata:
        yield "metadata_props of a function", _FIRST_METADATA, site.where
    if any(v.info is not None for v in (*site.body.values, *function.graph.stale)):
        yield "value_info of a function", _FIRST_METADATA, site.where


def _newer_types(survey: Survey) -> Iterator[tuple[str, int, Location]]:
    """Containers; sequences and maps were the ML variant's from the first."""
    is_ml = any(domain == "ai.onnx.ml" for domain in survey.model.opsets)
    for site in survey.types:
        kinds = [type(part) for part in parts_of_type(site.type)]
        if OptionalType in kinds:
            yield "optional types", _FIRST_OPTIONAL, site.where
        elif not is_ml and (SequenceType in kinds or MapType in kinds):
            yield "sequences and maps", _FIRST_SEQUENCE, site.where


def _newer_in_graph(site: GraphSite) -> Iterator[tuple[str, int, Location]]:
    if site.graph.metadata:
        yield "metadata_props of a graph", _FIRST_METADATA, site.where
    if site.graph.annotations:
        yield "quantization annotations", 5, site.where
    for value in site.values:
        if value.metadata:
            yield "metadata_props of a value", _FIRST_METADATA, site.at_value(value)
    for index, node in enumerate(site.nodes):
        if node.overload:
            yield "overloads", 10, site.at_node(index)
        if node.metadata:
            yield "metadata_props of a node", _FIRST_METADATA, site.at_node(index)
        if node.devices:
            yield "device configurations", 11, site.at_node(index)


@rule(
    "TEXT001",
    "All strings are encoded using UTF-8.",
    source="ir.txt",
    over="model",
    bad=Wire(b"\x08\x08\x12\x01\xff:\x05\x12\x03\xe9t\xe9B\x02\x10\x11"),
    good=GOOD,
)
def text_is_utf8(_: Survey) -> Iterator[Problem]:
    """Names and documentation are UTF-8; a file that breaks this is told of as it is read."""
    yield from ()
