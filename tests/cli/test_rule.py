import pytest

from sabir.checking import GROUPS, RULES, Repairable, rule_page
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS
from support.cases import each_of

REPAIRABLE = Repairable(REPAIRS, UNSAFE_REPAIRS)


def test_every_rule_is_listed_with_its_severity(cli):
    code, out, err = cli("rule")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == [r.id for r in RULES]
    listed = dict(line.split(maxsplit=1) for line in lines)
    assert listed["GRAPH001"].startswith("error  ")
    assert listed["NODE007"].startswith("warning  ")
    assert listed["NAME001"].startswith("warning, style  ")
    assert listed["GRAPH014"].startswith("warning, style  ")
    assert listed["DATA007"].startswith("warning, pedantic  ")
    assert listed["GRAPH014"].endswith(RULES.find("GRAPH014").explanation)


def test_the_beginning_of_an_id_lists_those_rules(cli):
    lines = cli("rule", "NAME").out.splitlines()
    assert [line.split()[0] for line in lines] == [r.id for r in RULES if r.id.startswith("NAME")]


@pytest.mark.parametrize("group", list(GROUPS))
def test_a_group_lists_its_rules(cli, group):
    lines = cli("rule", group).out.splitlines()
    assert [line.split()[0] for line in lines] == [r.id for r in RULES if r.group == group]


@each_of("rule", [pytest.param(r, id=r.id) for r in RULES])
def test_a_rule_is_explained(cli, rule):
    code, out, err = cli("rule", rule.id)
    assert (code, err) == (0, "")
    assert out == rule_page(rule, REPAIRABLE)
    assert out.startswith(f"# {rule.id}\n\n> {rule.law}\n")
    assert rule.explanation in out
    assert rule.note in out


def test_several_rules_at_once(cli):
    out = cli("rule", "GRAPH001", "NODE001").out
    assert out == "".join(rule_page(RULES.find(name), REPAIRABLE) for name in ("GRAPH001", "NODE001"))


@pytest.mark.parametrize(
    ("rule", "suggestion"),
    [("GRAPH0004", "is it 'GRAPH004'?"), ("node001", "is it 'NODE001'?"), ("styl", "is it 'style'?")],
)
def test_an_unknown_rule(cli, rule, suggestion):
    code, out, err = cli("rule", rule)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: there is no rule '{rule}'")
    assert suggestion in err
