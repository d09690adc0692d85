"""The rules' document is up to date, and has every rule and every sentence."""

import re
from pathlib import Path

import pytest
from google.protobuf import text_format

import sabir
from sabir.checking import GROUPS, RULES, Repairable, laws, rule_page, rules_document
from sabir.checking._examples import build, build_sets
from sabir.checking._page import folded
from sabir.checking._rule import SetTexts, Textproto, Wire
from sabir.proto import ModelProto
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS
from support.cases import each_of

REPAIRABLE = Repairable(REPAIRS, UNSAFE_REPAIRS)
DOCUMENT = Path(__file__).parents[2] / "docs" / "rules.md"
EXAMPLES = [
    (rule.id, kind, place)
    for rule in RULES
    for kind in ("bad", "good")
    for place, example in enumerate(getattr(rule, kind))
    if not isinstance(example, Wire)
]


def meant(example):
    """What an example says: its message, as some refer to data that is not there, or its model's bytes."""
    if isinstance(example, SetTexts):
        return [operator_set.dumps() for operator_set in build_sets(example)]
    if isinstance(example, Textproto):
        return text_format.Parse(example, ModelProto())
    return sabir.dumps(build(example))


def test_the_document_is_up_to_date():
    assert DOCUMENT.read_text(encoding="utf-8") == rules_document(REPAIRABLE), "run tools/write_rules.py"


def test_every_sentence_is_in_the_document():
    table = rules_document(REPAIRABLE).split("## The rules")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(laws())
    for row, law in zip(rows, laws(), strict=True):
        assert all(f"[{rule}](#{rule.lower()})" in row for rule in law.rules)
        assert law.rules or law.reason in row.replace("\\", "")


def test_links_lead_to_rules():
    document = rules_document(REPAIRABLE)
    headings = set(re.findall(r"^### (\w+)$", document, re.MULTILINE))
    assert headings == {r.id for r in RULES}
    assert {target.upper() for target in re.findall(r"\(#(\w+)\)", document)} <= headings


@each_of("rule", [pytest.param(r, id=r.id) for r in RULES])
def test_the_page_of_a_rule(rule):
    page = rule_page(rule, REPAIRABLE)
    assert page.count("```") == 2 * (len(rule.bad) + len(rule.good))
    assert ("`sabir check --fix` repairs it" in page) == (rule.id in REPAIRS)
    assert (f"Only `sabir check --fix-unsafe {rule.id}` repairs" in page) == (rule.id in UNSAFE_REPAIRS)
    assert all(len(line) <= 110 for line in page.split("\nBad:")[1].splitlines())


def test_the_groups_are_in_the_introduction():
    introduction = rules_document(REPAIRABLE).split("## The sentences")[0]
    listed = {group: introduction.split(f"Group `{group}`")[1].split("\n")[0] for group in GROUPS}
    for rule in RULES:
        assert {group for group, line in listed.items() if f"[{rule.id}]" in line} == {rule.group} - {""}


def test_ir_versions_in_words():
    versions = {r.id: re.search(r"IR versions: (.*)", rule_page(r, REPAIRABLE))[1] for r in RULES}
    assert versions["GRAPH001"] == "all"
    assert versions["GRAPH012"] == "up to 3"
    assert versions["GRAPH013"] == "4 and later"


@each_of("rule, kind, place", EXAMPLES)
def test_a_folded_example_is_the_same_model(rule, kind, place):
    example = getattr(RULES.find(rule), kind)[place]
    shown = type(example)("\n".join(folded(example)))
    assert meant(shown) == meant(example)


def test_a_long_example_is_cut():
    assert "lines more" in rule_page(RULES.find("FUNC008"), REPAIRABLE)
