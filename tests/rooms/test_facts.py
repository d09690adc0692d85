"""Each declared version against the published signature, as the records in this folder have it."""

import json
from pathlib import Path

import numpy as np

from support.cases import each_of
from support.rooms import VERSIONS


def recorded(record):
    """What a record has of each version, with the sets of types instead of their numbers."""
    told = json.loads((Path(__file__).parent / record).read_text(encoding="utf-8"))
    types = [set(kinds) for kinds in told["type sets"]]
    found = {}
    for key, facts in told["versions"].items():
        domain, name, since = key.rsplit("/", 2)
        for port in (*facts["inputs"], *facts["outputs"]):
            port["types"] = types[port["types"]]
        facts["constraints"] = {n: types[number] for n, number in facts["constraints"].items()}
        found["" if domain == "ai.onnx" else domain, name, int(since)] = facts
    return found


# onnxruntime-extensions publishes no schemas: its library checks calls when they run
UNRECORDED = {"ai.onnx.contrib"}
RECORDED = [v for v in VERSIONS if v.values[0].operator.domain not in UNRECORDED]
STANDARD_ONLY = recorded("standard.json")
ADDED = recorded("onnxruntime.json") | recorded("experiments.json")
PUBLISHED = STANDARD_ONLY | ADDED


def published(version):
    return PUBLISHED[version_key(version)]


def version_key(version):
    return version.operator.domain, version.operator.name, version.since


@each_of("version", RECORDED)
def test_history_is_complete(version):
    operator = version.operator
    standard = {since for d, n, since in STANDARD_ONLY if (d, n) == (operator.domain, operator.name)}
    added = {since for d, n, since in ADDED if (d, n) == (operator.domain, operator.name)}
    declared = {v.since for v in operator.versions}
    expected = sorted(standard | (added & declared if standard else added))
    assert version.unpublished == (not version.operator.domain and version_key(version) in ADDED)
    assert [v.since for v in operator.versions] == expected, (
        "the room declares other versions than the standard"
    )


@each_of("version", RECORDED)
def test_ports(version):
    facts = published(version)
    for ours, theirs in ((version.inputs, facts["inputs"]), (version.outputs, facts["outputs"])):
        assert [p.name for p in ours] == [p["name"] for p in theirs]
        for port, fact in zip(ours, theirs, strict=True):
            assert port.optional == fact.get("optional", False)
            variadic = {"minimum": port.minimum, "heterogeneous": port.heterogeneous}
            assert (variadic if port.variadic else None) == fact.get("variadic")
            assert port.allowed == fact["types"]
            assert (port.type if isinstance(port.type, str) else port.type.name) == fact["type"]
            # the standard states it from some version on; what it states about a port applies to all of them
            assert fact["differentiable"] in {None, port.differentiable}, f"{port.name}: differentiable="


@each_of("version", RECORDED)
def test_constraints(version):
    facts = published(version)
    used = {port["type"] for port in (*facts["inputs"], *facts["outputs"])}
    expected = {name: types for name, types in facts["constraints"].items() if name in used}
    assert {name: set(c.allowed) for name, c in version.constraints.items()} == expected


@each_of("version", RECORDED)
def test_attributes(version):
    facts = published(version)["attributes"]
    assert {a.name for a in version.attributes} == set(facts)
    for attribute in version.attributes:
        fact = facts[attribute.name]
        assert attribute.type == fact["type"]
        assert attribute.required == fact.get("required", False)
        assert plain(attribute.default) == plain(fact.get("default"))


@each_of("version", RECORDED)
def test_status(version):
    facts = published(version)
    assert version.deprecated == facts["deprecated"]
    assert version.status == ("experimental" if facts["experimental"] else "stable")


def plain(value):
    if isinstance(value, float):
        return float(np.float32(value))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


@each_of("version", RECORDED)
def test_functions_have_a_body(version):
    if published(version)["function"]:
        assert version.find("body") is not None or version.why_absent("body")


def test_every_operator_of_the_standard_has_a_room():
    declared = {(v.values[0].operator.domain, v.values[0].operator.name) for v in VERSIONS}
    missing = sorted({(domain, name) for domain, name, _ in STANDARD_ONLY} - declared)
    assert not missing, "write the rooms (CONTRIBUTING.md, An operator)"


def test_the_counts_of_the_standard():
    standard = [v for v in VERSIONS if version_key(v.values[0]) in STANDARD_ONLY]
    domains = [version.values[0].operator.domain for version in standard]
    assert {d: domains.count(d) for d in set(domains)} == {
        "": 629, "ai.onnx.ml": 25, "ai.onnx.preview.training": 4, "ai.onnx.preview": 1,
    }  # fmt: skip
    assert len({(v.values[0].operator.domain, v.values[0].operator.name) for v in standard}) == 227
