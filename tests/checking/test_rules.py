"""Each invalid example violates its own rule and no other; a valid one violates none."""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sabir
from sabir.base import NotFoundError
from sabir.checking import GROUPS, RULES, chosen, laws
from sabir.checking._rule import SetTexts, Wire
from support.cases import each_of
from support.findings import FINDINGS, differences, findings_of, findings_record, source_of

QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}  # as a text editor has them
CASES = [(r.id, kind, i) for r in RULES for kind in ("bad", "good") for i in range(len(getattr(r, kind)))]
BINDING = re.compile(
    r"\b(must|shall|should|required?|requires|recommend\w*|mandat\w*|only|unique|distinct|restricted|cannot|illegal"
    r"|legal|invalid|valid|reserved|discarded|not allowed|not supported|may not|errors?|expected|one or more)\b",
    re.IGNORECASE,
)
SPEC = Path(os.environ.get("SABIR_SPEC", Path(__file__).parents[3] / "shared" / "spec"))
UNRESOLVED = {
    ("FUNC004", 1): "an attribute without a default is a name, and no object",
    ("FUNC009", 1): "an output without a name is no value",
    ("FUNC009", 2): "an attribute without a default is a name, and no object",
    ("FUNC011", 0): "an attribute without a default is a name, and no object",
}
"""Examples with a finding whose location has no object, by rule and index, with the reason."""


@each_of("name, kind, index", CASES)
def test_the_examples_of_a_rule(name, kind, index):
    rule = RULES.find(name)
    assert rule is not None
    rules = {f.rule for f in findings_of(rule, getattr(rule, kind)[index])}
    assert rules == ({name} if kind == "bad" else set())


def test_the_findings_of_the_examples_are_recorded():
    assert not differences(FINDINGS, findings_record())


def test_the_differences_from_a_record_are_shown(tmp_path):
    record = tmp_path / "record.txt"
    record.write_text("A example 0\n  graph: error: old\n", encoding="utf-8")
    assert not differences(record, "A example 0\n  graph: error: old\n")
    shown = differences(record, "A example 0\n  graph: error: new\n")
    assert "-  graph: error: old" in shown
    assert "+  graph: error: new" in shown
    assert "tools/write_findings.py" in shown


@each_of("name, index", [(r.id, i) for r in RULES for i in range(len(r.bad))])
def test_the_location_of_a_finding_leads_to_an_object(name, index):
    rule = RULES.find(name)
    example = rule.bad[index]
    source = source_of(example)
    locations = [f.location for f in findings_of(rule, example)]
    if isinstance(example, SetTexts):
        documents = dict[int | None, Any](enumerate(source))  # pyright: ignore[reportArgumentType] - a list here
        places = [(documents[at.steps[0].place], at) for at in locations]
        assert all(sabir.ir.resolve(document, at) is not None for document, at in places)
    elif isinstance(example, Wire):  # TEXT001, which no model object can have
        assert [str(at) for at in locations] == ["model"]
    elif (name, index) in UNRESOLVED:
        with pytest.raises(NotFoundError):
            [sabir.ir.resolve(source, at) for at in locations]
    else:
        assert all(sabir.ir.resolve(source, at) is not None for at in locations)


def test_the_id_of_a_rule_is_permanent():
    """Users ignore rules by id: ids are added, and none is renamed or used for another rule."""
    known = (Path(__file__).parent / "ids.txt").read_text().split()
    assert {r.id for r in RULES} - {*known} == set(), "append the new ids to tests/checking/ids.txt"
    assert {*known} - {r.id for r in RULES} == set(), "an id is never removed or renamed"
    assert len(known) == len({*known})


@each_of("rule", [pytest.param(r, id=r.id) for r in RULES])
def test_a_rule_is_documented(rule):
    assert re.fullmatch(r"[A-Z0-9]+[A-Z]\d{3}|TEXT001|UTF8\d{3}", rule.id)
    assert rule.law.endswith((".", ")"))
    assert rule.explanation.endswith(".")
    demoted = "MUST" in rule.law and rule.severity == "warning" and "SHOULD" not in rule.law
    assert rule.note or not demoted, "a MUST that is only a warning needs a reason"


def test_every_sentence_has_rules_or_a_reason():
    for law in laws():
        assert bool(law.rules) != bool(law.reason), law.sentence
        for name in law.rules:
            assert RULES.find(name), (name, law.sentence)
    assert Counter(bool(law.rules) for law in laws()) == {True: 87, False: 58}


@pytest.mark.skipif(not SPEC.is_dir(), reason="the texts of the specification are not beside the checkout")
def test_no_sentence_is_left_out():
    listed = {(s, _plain(law.sentence)) for law in laws() for s in law.sources}
    there = {
        (path.name, _plain(sentence))
        for path in SPEC.glob("*.txt")
        for line in path.read_text("utf-8").splitlines()
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*_(])", line)
        if BINDING.search(sentence)
    }
    assert there == listed


@pytest.mark.skipif(not SPEC.is_dir(), reason="the texts of the specification are not beside the checkout")
@pytest.mark.parametrize("rule", [r for r in RULES if r.source.endswith(".txt")], ids=lambda r: r.id)
def test_the_law_of_a_rule_is_quoted(rule):
    text = " ".join(map(_plain, (SPEC / rule.source).read_text("utf-8").splitlines()))
    dashes = str.maketrans({0x2013: "-"})
    assert _plain(rule.law).removesuffix(".").lower() in text.translate(dashes).lower()


def _plain(sentence):
    """A sentence without markup, list numbers and typographic quotes."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("_Graph_", "Graph")
    text = re.sub(r"[`*|]", "", text.translate(QUOTES))
    return re.sub(r"\s+", " ", re.sub(r"^\s*(\d+\.|•)\s+", "", text)).strip()


def test_rules_are_chosen_by_id_or_its_beginning():
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17]>\ng (float[N] x) => (float[N] y) { y = Add(x, q) }'
    )
    assert [f.rule for f in sabir.findings(model)] == ["GRAPH005"]
    assert not list(sabir.findings(model, ignore=["GRAPH"]))
    assert not list(sabir.findings(model, select=["NODE"]))
    assert [f.rule for f in sabir.findings(model, select=["GRAPH"])] == ["GRAPH005"]
    assert [f.rule for f in sabir.findings(model, select=["GRAPH014"])] == ["GRAPH014"]
    assert {f.rule for f in sabir.findings(model, strict=True)} == {"GRAPH005", "GRAPH014", "MODEL009"}
    assert {r.id for r in chosen(["NODE001", "style"])} == {"NODE001"} | {
        r.id for r in RULES if r.group == "style"
    }
    assert {r.id for r in chosen(["NAME"])} == {
        r.id for r in RULES if r.id.startswith("NAME")
    }  # all of style
    assert {r.id for r in chosen(strict=True, ignore=["style"])} == {
        r.id for r in RULES if r.group != "style"
    }
    assert chosen(iter(["GRAPH001"])) == [RULES.find("GRAPH001")]
    assert chosen(iter([])) == [r for r in RULES if not r.group]
    with pytest.raises(sabir.SchemaError, match="no rule 'styles'; is it 'style'"):
        chosen(["styles"])
    with pytest.raises(sabir.SchemaError, match="no rule 'GRAPH04'; is it 'GRAPH"):
        list(sabir.findings(model, select=["GRAPH04"]))


def test_names_and_style_are_checked_only_on_request():
    for rule in RULES:
        assert rule.group in {"", *GROUPS}
        assert not rule.group or rule.severity == "warning"
    assert {r.group for r in RULES if r.id.startswith("NAME")} == {"style"}


def test_strict_makes_warnings_count():
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17]>\ng (float[N] "x.1") => (float[N] y) { y = Relu("x.1") }'
    )
    sabir.check(model)
    with pytest.raises(sabir.CheckError, match="NAME001"):
        sabir.check(model, strict=True)


def test_findings_come_in_reading_order():
    text = '<ir_version: 8, opset_import: ["" : 17]>\ng (float[N] x) => (float[N] y, float[N] z) {'
    model = sabir.parse(text + " a = Reluu(x)  b = Relu(x, x)  y = Add(b, ghost)  c = Softmax<ax = 1>(x) }")
    places = [str(f.location) for f in sabir.findings(model)]
    assert places == [
        "graph/node[0] 'Reluu'",
        "graph/node[1] 'Relu'",
        "graph/node[2] 'Add'/input[1] 'ghost'",
        "graph/node[3] 'Softmax'",
        "graph/output[1] 'z'",
    ]
