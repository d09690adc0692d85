# ruff: file-ignore[banned-api]  onnx.defs is the oracle of the published facts
"""Each declared version against what the standard publishes."""

import re

import numpy as np
import onnx
import pytest
from onnx import defs

from support.rooms import VERSIONS

PUBLISHED = {(s.domain, s.name, s.since_version): s for s in defs.get_all_schemas_with_history()}
KINDS = {"type_proto": "type", "type_protos": "types"}
MAP = re.compile(r"map\((\w+),tensor\((\w+)\)\)")  # onnx spells it without tensor() in type constraints
DIFFERENTIABLE = {"Differentiable": True, "NonDifferentiable": False}


def published(version):
    return PUBLISHED[version.operator.domain, version.operator.name, version.since]


@pytest.mark.parametrize("version", VERSIONS)
def test_history_is_complete(version):
    operator = version.operator
    expected = sorted(since for d, n, since in PUBLISHED if (d, n) == (operator.domain, operator.name))
    assert [v.since for v in operator.versions] == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_ports(version):
    schema = published(version)
    for ours, theirs in ((version.inputs, schema.inputs), (version.outputs, schema.outputs)):
        assert [p.name for p in ours] == [p.name for p in theirs]
        for port, fact in zip(ours, theirs, strict=True):
            option = fact.option.name
            assert (port.optional, port.variadic) == (option == "Optional", option == "Variadic")
            if port.variadic:
                assert port.minimum == fact.min_arity
                assert port.heterogeneous == (not fact.is_homogeneous)
            assert port.allowed == {MAP.sub(r"map(\1, \2)", t) for t in fact.types}
            assert (port.type if isinstance(port.type, str) else port.type.name) == fact.type_str
            stated = DIFFERENTIABLE.get(fact.differentiation_category.name)
            # the standard says it from some version on; what it says of a port holds for all of them
            assert stated is None or port.differentiable == stated


@pytest.mark.parametrize("version", VERSIONS)
def test_constraints(version):
    facts = {c.type_param_str: set(c.allowed_type_strs) for c in published(version).type_constraints}
    used = {p.type_str for p in (*published(version).inputs, *published(version).outputs)}
    assert {n: set(c.allowed) for n, c in version.constraints.items()} == {
        n: f for n, f in facts.items() if n in used
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_attributes(version):
    facts = published(version).attributes
    assert {a.name for a in version.attributes} == set(facts)
    for attribute in version.attributes:
        fact = facts[attribute.name]
        kind = str(fact.type).rsplit(".", maxsplit=1)[-1].lower()
        assert attribute.type == KINDS.get(kind, kind)
        assert attribute.required == fact.required
        assert plain(attribute.default) == default_of(fact)


@pytest.mark.parametrize("version", VERSIONS)
def test_deprecation(version):
    assert version.deprecated == published(version).deprecated


@pytest.mark.parametrize("version", VERSIONS)
def test_status(version):
    level = published(version).support_level
    assert version.status == ("experimental" if level.name == "EXPERIMENTAL" else "stable")


def default_of(fact):
    if not fact.default_value.type:
        return None
    return plain(onnx.helper.get_attribute_value(fact.default_value))


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return float(np.float32(value))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


FUNCTIONS = {key for key, s in PUBLISHED.items() if s.has_function or s.has_context_dependent_function}


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_have_a_body(version):
    key = version.operator.domain, version.operator.name, version.since
    if key in FUNCTIONS:
        assert version.find("body") is not None or version.why_absent("body")


def test_the_counts_of_the_standard():
    domains = [version.values[0].operator.domain for version in VERSIONS]
    assert {d: domains.count(d) for d in set(domains)} == {
        "": 629, "ai.onnx.ml": 25, "ai.onnx.preview.training": 4, "ai.onnx.preview": 1,
    }  # fmt: skip
    assert len({(v.values[0].operator.domain, v.values[0].operator.name) for v in VERSIONS}) == 227
