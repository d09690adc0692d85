"""Models: versions, and the features of each IR version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.base import Location, quote
from sabir.checking._examples import GOOD, HEAD, RELU, X, Y, in_graph, in_model
from sabir.checking._rule import Problem, Textproto, Wire, rule
from sabir.ir import (
    DEVICES,
    NEWEST_IN_GRAPHS,
    NEWEST_IR,
    OPTIONALS,
    SPARSE,
    TRAINING,
    VALUE_INFO,
    features_of_function,
    features_of_graph,
    features_of_node,
    features_of_tensor,
    features_of_type,
    features_of_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import FunctionSite, GraphSite, Survey
    from sabir.ir import Feature

_GRAPH = f'graph {{ {RELU} name: "g" {X} {Y} }}'
# labels as in domain names or Java packages; the first is a top-level domain, letters only
DOMAIN = re.compile(r"[a-z]{2,63}(\.(?!.{0,62}-(\.|\Z))\w[\w-]{0,62})+", re.IGNORECASE | re.ASCII)


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
    """The model states its IR version."""
    if not survey.model.ir_version:
        hint = f"set it; the newest is {NEWEST_IR}"
        yield Problem("the model states no ir_version", _here(), hint)


@rule(
    "MODEL003",
    "Once all output parameters have been written to by a graph execution, the execution is complete.",
    source="ir.txt",
    over="model",
    severity="warning",
    note="the text does not require an output, but such a model computes nothing",
    bad=HEAD + "g (float[N] x) => () { y = Relu(x) }",
    good=GOOD,
)
def has_outputs(survey: Survey) -> Iterator[Problem]:
    """A model has an output, or is a library of functions."""
    if not survey.model.graph.outputs and not survey.model.functions:
        yield Problem("the graph has no outputs", _here("graph"), "add an output")


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
    """The ir_version is a published one."""
    version = survey.model.ir_version
    if version and not 1 <= version <= NEWEST_IR:
        yield Problem(
            f"ir_version {version} is not in the standard", _here(), f"the versions are 1 to {NEWEST_IR}"
        )


@rule(
    "MODEL009",
    "Models MUST specify a domain and use reverse domain names based on the responsible organization's"
    " identity, the same convention that is used for naming Java packages.",
    source="ir.txt",
    over="model",
    severity="warning",
    group="style",
    note="no exporter does it",
    bad=GOOD,
    good=in_model(f'domain: "org.example" {_GRAPH}'),
)
def has_a_domain(survey: Survey) -> Iterator[Problem]:
    """The model names a domain such as `org.example`."""
    if not DOMAIN.fullmatch(survey.model.domain):
        shown = (
            f"{quote(survey.model.domain)} is not a reverse domain name"
            if survey.model.domain
            else "the model has no domain"
        )
        yield Problem(shown, _here(), "name one such as 'org.example'")


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
    note="a reader of that version ignores unknown fields, and fails if it needs them",
)
def fields_of_its_time(survey: Survey) -> Iterator[Problem]:
    """A model uses only features of its IR version: functions need IR 8, metadata of graphs IR 10, ..."""
    version = survey.model.ir_version
    for (what, since), where in _newer_things(survey):
        if 0 < version < since:
            hint = f"raise ir_version to {since}"
            yield Problem(f"{what} came with IR {since}; the model has IR {version}", where, hint)


def _newer_things(survey: Survey) -> Iterator[tuple[Feature, Location]]:
    model = survey.model
    if model.training:
        yield TRAINING, _here("training_info")
    if model.devices:
        yield DEVICES, _here("configuration")
    for function in survey.functions:
        yield from _newer_in_function(function)
    if 0 < model.ir_version < NEWEST_IN_GRAPHS:
        for site in survey.graphs:
            yield from _newer_in_graph(site)
        for tensor in survey.tensors:
            yield from ((feature, tensor.where) for feature in features_of_tensor(tensor.tensor))
    if 0 < model.ir_version < OPTIONALS.since:
        is_ml = any(domain == "ai.onnx.ml" for domain in model.opsets)
        for kind in survey.types:
            used = list(features_of_type(kind.type, is_ml=is_ml))
            if used:
                yield max(used, key=lambda feature: feature.since), kind.where
    if 0 < model.ir_version < SPARSE.since:
        yield from ((SPARSE, site.where) for site in survey.sparse)


def _newer_in_function(site: FunctionSite) -> Iterator[tuple[Feature, Location]]:
    function = site.function
    yield from ((feature, site.where) for feature in features_of_function(function))
    if any(v.value_info_index is not None for v in (*site.body.values, *function.graph.orphan_value_info)):
        yield VALUE_INFO, site.where


def _newer_in_graph(site: GraphSite) -> Iterator[tuple[Feature, Location]]:
    yield from ((feature, site.where) for feature in features_of_graph(site.graph))
    for value in site.values:
        if value.metadata:
            yield from ((feature, site.at_value(value)) for feature in features_of_value(value))
    for index, node in enumerate(site.nodes):
        if node.overload or node.metadata or node.devices:
            yield from ((feature, site.at_node(index)) for feature in features_of_node(node))


@rule(
    "TEXT001",
    "All strings are encoded using UTF-8.",
    source="ir.txt",
    over="model",
    bad=Wire(b"\x08\x08\x12\x01\xff:\x05\x12\x03\xe9t\xe9B\x02\x10\x11"),
    good=GOOD,
)
def text_is_utf8(_: Survey) -> Iterator[Problem]:
    """Names and documentation are UTF-8; the reader reports a violation."""
    yield from ()
