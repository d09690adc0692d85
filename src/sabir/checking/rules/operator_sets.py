"""Documents of operator sets: each for itself, and the versions of one domain together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._rule import Problem, SetTexts, rule
from sabir.checking.rules.models import DOMAIN
from sabir.ir import MAGIC, NEWEST_IR, canonical_domain, newest_opset
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.checking._operator_sets import SetSite, SetSurvey

_IMMUTABLE = (
    "Subsequent versions of the operator set MUST NOT alter the signature or semantics of the operator once"
    " published as STABLE."
)
_FIRST_PUBLISHED = (
    "The version value MUST be the same value as the operator set version when the operator was first"
    " published."
)


def _entry(name: str = "FastConv", since: int = 1, status: str = "STABLE") -> str:
    return f'operator {{ op_type: "{name}" since_version: {since} status: {status} }}'


def _set(*parts: str, version: int = 3, domain: str = "com.acme") -> str:
    head = f'magic: "{MAGIC}" ir_version: 10 domain: "{domain}" opset_version: {version}'
    return "\n".join([head, *parts])


def _function(op: str = "Relu", *, domain: str = "com.acme", name: str = "FastConv") -> str:
    node = f'node {{ op_type: "{op}" input: "x" output: "y" }}'
    return (
        f'functions {{ domain: "{domain}" name: "{name}" input: "x" output: "y"\n'
        f"  {node} opset_import {{ version: 17 }} }}"
    )


def _several(*texts: str) -> SetTexts:
    return SetTexts("\n---\n".join(texts))


GOOD = SetTexts(_set(_entry(), _function()))


@rule(
    "OPSET001",
    "The value 'ONNXOPSET'.",
    source="ir.txt",
    over="operator set",
    bad=SetTexts(_set(_entry()).replace(f'magic: "{MAGIC}" ', "")),
    good=GOOD,
)
def begins_with_the_magic(site: SetSite) -> Iterator[Problem]:
    """An operator set has the magic `ONNXOPSET`; one with another magic cannot be read."""
    residue = site.operator_set.residue
    if residue is not None and "magic" in residue.absent:
        yield Problem("the operator set has no magic", site.where, f"add the field `magic`: {quote(MAGIC)}")


@rule(
    "OPSET002",
    "Operator sets other than the default operator set MUST specify a domain and SHOULD use reverse domain"
    " names based on the responsible organization's identity, the same convention that is used for"
    " naming Java packages.",
    source="ir.txt",
    over="operator set",
    bad=SetTexts(_set(_entry(), domain="")),
    good=(GOOD, SetTexts(_set(_entry("Relu", 13), domain="", version=13))),
)
def states_its_domain(site: SetSite) -> Iterator[Problem]:
    """An operator set without a domain has the operators of the default domain only."""
    own = site.operator_set
    if canonical_domain(own.domain) or own.version > (STANDARD.newest_opset("") or 0):
        return
    for index, entry in enumerate(own.operators):
        if entry.name and STANDARD.find("", entry.name) is None:
            message = f"{quote(entry.name)} is no operator of the default domain, and the set states no other"
            yield Problem(message, site.at_operator(index), "state the domain, such as 'org.example'")


@rule(
    "OPSET003",
    "Operator sets other than the default operator set MUST specify a domain and SHOULD use reverse domain"
    " names based on the responsible organization's identity, the same convention that is used for"
    " naming Java packages.",
    source="ir.txt",
    over="operator set",
    severity="warning",
    group="style",
    bad=SetTexts(_set(_entry(), domain="custom")),
    good=GOOD,
)
def reversed_domain(site: SetSite) -> Iterator[Problem]:
    """The domain of an operator set is a reverse domain name such as `org.example`."""
    domain = site.operator_set.domain
    if domain and not DOMAIN.fullmatch(domain):
        yield Problem(
            f"{quote(domain)} is not a reverse domain name", site.where, "use one such as 'org.example'"
        )


@rule(
    "OPSET004",
    "MUST be unique within the operator set's domain.",
    source="ir.txt",
    over="operator set",
    bad=(
        SetTexts(_set(_entry(), _entry(since=2))),
        SetTexts(_set("operator { since_version: 1 status: STABLE }")),
    ),
    good=GOOD,
)
def listed_once(site: SetSite) -> Iterator[Problem]:
    """Each operator of an operator set has a name, and is listed once."""
    seen: set[str] = set()
    for index, entry in enumerate(site.operator_set.operators):
        if not entry.name:
            yield Problem("an operator has no name", site.at_operator(index), "name it, or drop the entry")
        elif entry.name in seen:
            message = f"the operator {quote(entry.name)} is listed twice"
            yield Problem(message, site.at_operator(index), "keep the entry of its newest version")
        seen.add(entry.name)


@rule(
    "OPSET005",
    _FIRST_PUBLISHED,
    source="ir.txt",
    over="operator set",
    bad=(SetTexts(_set(_entry(since=4))), SetTexts(_set(_entry(since=0)))),
    good=GOOD,
)
def introduced_before(site: SetSite) -> Iterator[Problem]:
    """The since_version of an operator is at least 1, and at most the version of the operator set."""
    version = site.operator_set.version
    for index, entry in enumerate(site.operator_set.operators):
        if not 1 <= entry.since <= max(version, 1):
            message = f"the since_version of {quote(entry.name)} is {entry.since}"
            hint = (
                f"the versions of this operator set are 1 to {version}" if version > 0 else "it is at least 1"
            )
            yield Problem(message, site.at_operator(index), hint)


@rule(
    "OPSET006",
    "The 'status' property indicates whether the syntax, semantics, or presence of the operator is in an"
    " experimental or stable stage.",
    source="ir.txt",
    over="operator set",
    bad=SetTexts(_set('operator { op_type: "FastConv" since_version: 1 }')),
    good=GOOD,
    severity="warning",
    note="without a status an operator is experimental, the first value of the enumeration",
)
def has_a_status(site: SetSite) -> Iterator[Problem]:
    """Each operator has one of the two known statuses."""
    for index, entry in enumerate(site.operator_set.operators):
        if entry.residue is None or "status" not in entry.residue.absent or entry.status == "stable":
            continue
        message = f"{quote(entry.name)} has no status that is known; EXPERIMENTAL is assumed"
        yield Problem(message, site.at_operator(index), "use EXPERIMENTAL or STABLE")


@rule(
    "OPSET007",
    "The domain of the operator set. Must be unique among all sets.",
    source="ir.txt",
    over="operator set",
    bad=SetTexts(_set(_entry(), _function(domain="org.other"))),
    good=GOOD,
)
def functions_of_the_domain(site: SetSite) -> Iterator[Problem]:
    """The functions of an operator set belong to its domain."""
    domain = site.operator_set.domain
    for index, function in enumerate(site.operator_set.functions):
        if canonical_domain(function.domain) != canonical_domain(domain):
            message = f"the function belongs to {quote(function.domain)}, the operator set to {quote(domain)}"
            yield Problem(message, site.at_function(index), "no call reaches it: change its domain")


@rule(
    "OPSET008",
    "The operators contained in this operator set.",
    source="ir.txt",
    over="operator set",
    severity="warning",
    note="the text does not say whether a function needs an entry; only an entry has a version and a status",
    bad=SetTexts(_set(_function())),
    good=GOOD,
)
def functions_have_entries(site: SetSite) -> Iterator[Problem]:
    """A function of an operator set defines an operator that the set lists."""
    names = {entry.name for entry in site.operator_set.operators}
    for index, function in enumerate(site.operator_set.functions):
        if function.name and function.name not in names:
            message = (
                f"the function {quote(function.name)} has no entry, so its version and status are unknown"
            )
            yield Problem(message, site.at_function(index), "add an operator of its name")


@rule(
    "OPSET009",
    "The operator set version is a simple integer value that is monotonically increased as new versions of"
    " the operator set are published.",
    source="ir.txt",
    over="operator set",
    bad=(SetTexts(_set(version=0)), SetTexts(_set(version=-2))),
    good=GOOD,
)
def has_a_version(site: SetSite) -> Iterator[Problem]:
    """The version of an operator set is at least 1."""
    if site.operator_set.version < 1:
        message = f"the version of the operator set is {site.operator_set.version}"
        yield Problem(message, site.where, "a version is at least 1")


@rule(
    "OPSET010",
    "An operator set states the IR version that it is written for.",
    source="onnx.proto",
    over="operator set",
    bad=(
        SetTexts(_set(_entry()).replace("ir_version: 10 ", "")),
        SetTexts(_set(_entry()).replace("ir_version: 10 ", f"ir_version: {NEWEST_IR + 1} ")),
    ),
    good=GOOD,
)
def has_an_ir_version(site: SetSite) -> Iterator[Problem]:
    """The IR version of an operator set is a published one; its functions use what this version has."""
    version = site.operator_set.ir_version
    if version < 1:
        message = f"the IR version of the operator set is {version}"
        yield Problem(message, site.where, "state the IR version of its functions")
    elif version > NEWEST_IR:
        message = f"ir_version {version} is not in the standard"
        yield Problem(message, site.where, f"the versions are 1 to {NEWEST_IR}")


@rule(
    "OPSET011",
    "When the inventory of a given operator set changes either by addition, removal, or a change in semantics"
    " of a contained operator, its version MUST increase.",
    source="versioning.txt",
    over="operator sets",
    bad=(
        _several(_set(_entry()), _set(_entry(), _entry("New", 3))),
        _several(_set(_entry(), _function("Relu")), _set(_entry(), _function("Neg"))),
    ),
    good=(
        _several(_set(_entry()), _set(_entry())),
        _several(_set(_entry()), _set(_entry(), _entry("New", 4), version=4)),
    ),
)
def one_content_for_a_version(survey: SetSurvey) -> Iterator[Problem]:
    """Documents of one domain and version list and define the same operators."""
    for _, newer, changes in survey.histories:
        if changes.problem:
            yield Problem(changes.problem, newer.where, "raise the version of the changed operator set")


@rule(
    "OPSET012",
    _IMMUTABLE,
    source="ir.txt",
    over="operator sets",
    bad=(
        _several(_set(_entry(), _function("Relu")), _set(_entry(), _function("Neg"), version=4)),
        _several(_set(_entry()), _set(_entry(status="EXPERIMENTAL"), version=4)),
    ),
    good=(
        _several(_set(_entry(), _function("Relu")), _set(_entry(since=4), _function("Neg"), version=4)),
        _several(
            _set(_entry(status="EXPERIMENTAL"), _function("Relu")),
            _set(_entry(status="EXPERIMENTAL"), _function("Neg"), version=4),
        ),
    ),
)
def stable_operators_stay(survey: SetSurvey) -> Iterator[Problem]:
    """A stable operator stays the same in later versions, unless its since_version rises with the change."""
    for older, newer, changes in survey.histories:
        for change in changes.changes:
            if change.fault == "stable":
                hint = f"raise its since_version above {older.operator_set.version}, or undo the change"
                yield Problem(change.problem, _at(newer, change.name), hint)


@rule(
    "OPSET013",
    "since_version is the version of the operator set that introduced the operator.",
    source="versioning.txt",
    over="operator sets",
    bad=(
        _several(_set(_entry()), _set(_entry(), _entry("New", 2), version=4)),
        _several(_set(_entry(since=2)), _set(_entry(since=1), version=4)),
        _several(_set(_entry(since=1)), _set(_entry(since=2), version=4)),
    ),
    good=(
        _several(_set(_entry()), _set(_entry(), _entry("New", 4), version=4)),
        _several(_set(_entry(since=1)), _set(_entry(since=4), version=4)),
    ),
)
def introduced_when_it_says(survey: SetSurvey) -> Iterator[Problem]:
    """An operator is in each operator set from its since_version on, until it is removed or replaced."""
    for older, newer, changes in survey.histories:
        for change in changes.changes:
            if change.fault == "since":
                hint = f"a change after version {older.operator_set.version} has a since_version above it"
                yield Problem(change.problem, _at(newer, change.name), hint)


@rule(
    "OPSET014",
    _FIRST_PUBLISHED,
    source="ir.txt",
    over="operator set",
    bad=(
        SetTexts(_set(_entry("Relu", 6), domain="", version=13)),
        SetTexts(_set(_entry("Upsample", 9), domain="ai.onnx", version=13)),
        SetTexts(_set(_entry("Scaler", 1, "EXPERIMENTAL"), domain="ai.onnx.ml", version=3)),
    ),
    good=SetTexts(_set(_entry("Relu", 13), _entry("Conv", 11), domain="", version=13)),
)
def agrees_with_the_standard(site: SetSite) -> Iterator[Problem]:
    """An operator set of a domain of the standard lists operators as the standard has them in its version."""
    own = site.operator_set
    domain = canonical_domain(own.domain)
    newest = newest_opset(domain)
    if newest is None or not 1 <= own.version <= newest:
        return
    hint = "correct the entry, or state a domain of your own, such as 'org.example'"
    for index, entry in enumerate(own.operators):
        operator = STANDARD.find(domain, entry.name)
        if operator is None or not 1 <= entry.since <= own.version:
            continue  # other rules report these
        version = operator.find(own.version)
        if version is None or version.removed:
            message = f"opset {own.version} of {domain or 'ai.onnx'} has no operator {quote(entry.name)}"
        elif entry.since != version.since:
            message = f"the since_version of {quote(entry.name)} is {entry.since}; the standard has {version}"
        elif entry.status != version.status:
            message = f"{quote(entry.name)} is {entry.status}; the standard has it as {version.status}"
        else:
            continue
        yield Problem(message, site.at_operator(index), hint)


def _at(site: SetSite, name: str) -> Location:
    index = next(i for i, entry in enumerate(site.operator_set.operators) if entry.name == name)
    return site.at_operator(index)
