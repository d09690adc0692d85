"""Opset imports of a model and its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import Location, quote
from sabir.checking._examples import GOOD, RELU, X, Y, in_model
from sabir.checking._rule import Problem, Textproto, rule
from sabir.checking.rules.models import DOMAIN
from sabir.ir import bound_opsets, canonical_domain, first_ir_of, newest_opset, unused_imports
from sabir.proto import FunctionProto, ModelProto
from sabir.schema import implicit_imports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sabir.checking._survey import Survey
    from sabir.schema import Registry

_GRAPH = f'graph {{ {RELU} name: "g" {X} {Y} }}'
_FUNCTION = (
    '<ir_version: 10, opset_import: ["" : 17, "d" : 1]>\ng (float[N] x) => (float[N] y) {{ y = d.f(x) }}\n'
    '<domain: "d", opset_import: [{imports}]>\nf (a) => (b) {{ b = Relu(a) }}'
)
NEWEST_OPSET = newest_opset("")
_BODY = "g (float[N] x) => (float[N] y) { y = Relu(x) }"


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
        binds = f'"" : {survey.model.opset() or NEWEST_OPSET}'
        yield Problem("the model imports no operator set", Location(), f"add an opset_import such as {binds}")


@rule(
    "MODEL004",
    "Of several imports of one domain, the one with the highest version applies.",
    source="onnx.proto",
    over="model",
    severity="warning",
    note="the meaning is defined, but a reader may use the last of the versions",
    bad=(
        in_model(f"opset_import {{ version: 18 }} {_GRAPH}"),
        f'<ir_version: 8, opset_import: ["" : 17, "ai.onnx" : 18]>\n{_BODY}',
        _FUNCTION.format(imports='"" : 17, "" : 16'),
    ),
    good=(
        GOOD,
        in_model(f"opset_import {{ version: 17 }} {_GRAPH}"),
        f'<ir_version: 8, opset_import: ["" : 17, "ai.onnx" : 17]>\n{_BODY}',
    ),
)
def imports_one_version(survey: Survey) -> Iterator[Problem]:
    """A domain is imported in one version; `""` and `"ai.onnx"` are one domain."""
    model = survey.model
    again = ModelProto.FromString(model.residue.wire).opset_import if model.residue else ()
    yield from _differing(model.opsets, again, Location())
    for site in survey.functions:
        residue = site.function.residue
        more = FunctionProto.FromString(residue.wire).opset_import if residue else ()
        yield from _differing(site.function.opsets, more, site.where)


def _differing(opsets: Mapping[str, int], again: Iterable[Any], where: Location) -> Iterator[Problem]:
    versions: dict[str, set[int]] = {}
    for domain, version in (*opsets.items(), *((e.domain, e.version) for e in again)):
        versions.setdefault(canonical_domain(domain), set()).add(version)
    for domain, highest in bound_opsets(opsets).items():
        if len(versions[domain]) > 1:
            listed = ", ".join(map(str, sorted(versions[domain])))
            yield Problem(
                f"{quote(domain or 'ai.onnx')} is imported in several versions, {listed}; {highest} applies",
                where.at("opset_import", name=domain or "ai.onnx"),
                f"import only version {highest}",
            )


@rule(
    "MODEL006",
    "An operator set represents a specific version of a domain, indicated by a pair (domain, version).",
    source="versioning.txt",
    over="model",
    bad=in_model(_GRAPH, opset=999),
    good=GOOD,
)
def known_opset(survey: Survey) -> Iterator[Problem]:
    """The imported version of a standard domain was published; that of another domain is at least 1."""
    yield from _unpublished(survey.model.opsets, survey.registry, Location())
    for site in survey.functions:
        yield from _unpublished(site.function.opsets, survey.registry, site.where)


def _unpublished(opsets: Mapping[str, int], registry: Registry, where: Location) -> Iterator[Problem]:
    for domain, version in opsets.items():
        newest = registry.newest_opset(domain)
        if version < 1 or (newest is not None and version > newest):
            unknown = "not in the standard" if newest_opset(domain) is not None else "unknown"
            yield Problem(
                f"version {version} of {quote(domain or 'ai.onnx')} is {unknown}",
                where.at("opset_import", name=domain or "ai.onnx"),
                f"its versions are 1 to {newest}" if newest else "a version is at least 1",
            )


@rule(
    "MODEL007",
    "New IR and operator versions are released as part of ONNX releases, which have their own"
    " versioning scheme.",
    source="versioning.txt",
    over="model",
    severity="warning",
    group="pedantic",
    note="the table of releases is informative, and onnxruntime's optimiser and quantiser write such pairs",
    since=3,
    bad='<ir_version: 3, opset_import: ["" : 21]>\ng (float[N] x) => (float[N] y) { y = Relu(x) }',
    good=GOOD,
)
def opset_of_its_time(survey: Survey) -> Iterator[Problem]:
    """An operator set was released with the model's IR version or an earlier one (the table of releases)."""
    model, unused = survey.model, unused_imports(survey.model)
    for domain, version in model.opsets.items():
        newest, needed = newest_opset(domain), first_ir_of(domain, version)
        if needed is not None and newest is not None and 0 < model.ir_version < needed and version <= newest:
            hint = "drop the unused import"
            yield Problem(
                f"opset {version} of {domain or 'ai.onnx'} came with IR {needed}; the model has"
                f" IR {model.ir_version}",
                Location().at("opset_import", name=domain or "ai.onnx"),
                hint if domain in unused else f"raise ir_version to {needed}",
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
    """A model before IR 3 has no imports."""
    if survey.model.ir_version > 0 and survey.model.opsets:
        yield Problem(
            f"opset imports came with IR 3; the model has IR {survey.model.ir_version}",
            Location().at("opset_import"),
            "raise ir_version to 3 or more",
        )


@rule(
    "MODEL010",
    "Operator sets other than the default operator set MUST specify a domain and SHOULD use reverse domain"
    " names based on the responsible organization's identity, the same convention that is used for"
    " naming Java"
    " packages.",
    source="ir.txt",
    over="model",
    severity="warning",
    group="style",
    bad='<ir_version: 8, opset_import: ["" : 17, "custom" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = Relu(x) }",
    good='<ir_version: 8, opset_import: ["" : 17, "org.example" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = Relu(x) }",
)
def reversed_domains(survey: Survey) -> Iterator[Problem]:
    """An imported domain is a reverse domain name such as `org.example`."""
    for domain in survey.model.opsets:
        if domain and not DOMAIN.fullmatch(domain):
            where = Location().at("opset_import", name=domain)
            yield Problem(
                f"{quote(domain)} is not a reverse domain name", where, "use one such as 'org.example'"
            )


@rule(
    "MODEL012",
    "All models implicitly import the default ONNX operator set.",
    source="ir.txt",
    over="model",
    severity="warning",
    since=3,
    note="the sentence does not say which version: Sabir takes the newest that the model's IR version"
    " carried; another reader may take another",
    bad=f'<ir_version: 8, opset_import: ["ai.onnx.ml" : 2]>\n{_BODY}',
    good=GOOD,
)
def imports_the_default_domain(survey: Survey) -> Iterator[Problem]:
    """A model that calls operators of the default domain imports it."""
    for function, node, version in implicit_imports(survey.model):
        if function is None and survey.model.opsets:  # MODEL002 reports a model without imports
            message = f"the model calls {quote(node.op)} and does not import the default domain"
            hint = f'add the opset_import "" : {version}'
            yield Problem(f"{message}; opset {version} applies", Location(), hint)
