"""Rules, files of rules, why a rule leaves a node alone, and proofs."""

import pytest

import sabir
from sabir.base import FileError, ParseError, SchemaError
from sabir.optimization import explain_node, prove
from sabir.patterns import RewriteRule, load_rules, parse_rules

SWISH = """[[rule]]
name = "swish"
says = "x * Sigmoid(x) = Swish(x)"
pattern = "y = Mul (x, Sigmoid (x))"
replacement = "y = Swish (x)"
where = "rank(x) == 2"
examples = ["s = Sigmoid (x) y = Mul (x, s)"]
near_misses = ["n = Neg (x) s = Sigmoid (n) y = Mul (x, s)"]
"""
MODEL = sabir.parse("""<ir_version: 10, opset_import: ["" : 24]>
g (float[N,4] x) => (float[N,4] y) { [sig] s = Sigmoid (x)  [mul] m = Mul (x, s)  [out] y = Tanh (m) }""")


def test_a_file_of_rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(SWISH)
    (rule,) = load_rules(path)
    assert (rule.name, rule.says, rule.exact) == ("swish", "x * Sigmoid(x) = Swish(x)", False)
    prove(rule)
    for rules in (path, str(path), rule, [rule]):
        assert [node.op for node in sabir.rewrite(MODEL, rules).graph] == ["Swish", "Tanh"]
    assert [node.op for node in MODEL.graph] == ["Sigmoid", "Mul", "Tanh"]


def test_alternatives_and_imports():
    (rule,) = parse_rules("""[[rule]]
    name = "gelu"
    pattern = ["Mul (x, Sigmoid (x))", "y = Mul (Sigmoid (x), Identity (x))"]
    replacement = "acme.Silu (x)"
    imports = {acme = 3}
    shared = true
    """)
    found = sabir.rewrite(MODEL, rule)  # not compared: the operator is not known
    assert found.opsets == {"": 24, "acme": 3}
    assert [node.op for node in found.graph] == ["Silu", "Tanh"]


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("[[rule]", ParseError, "no TOML"),
        ("a = " + "[" * 5000, ParseError, "nested more than 100 deep"),
        ("rule = 3", SchemaError, r"`\[\[rule\]\]`"),
        ("[rule]\nname = 'a'", SchemaError, r"`\[\[rule\]\]`"),
        ("rule = [3]", SchemaError, r"`\[\[rule\]\]`"),
        ("[[rules]]", SchemaError, "'rules'"),
        (SWISH.replace("where", "whre"), SchemaError, "rule 1, 'swish' has a field 'whre'.*is it 'where'"),
        (SWISH.replace('replacement = "y = Swish (x)"', ""), SchemaError, "has no 'replacement'"),
        (SWISH.replace("name =", "#"), SchemaError, "rule 1 has no 'name'"),
        (SWISH.replace('"swish"', "3"), SchemaError, "name must be a text"),
        (SWISH.replace('"swish"', '""'), SchemaError, "needs a name"),
        (f"{SWISH}exact = 3", SchemaError, "must be true or false"),
        (f"{SWISH}since = 0", SchemaError, "the number of an operator set"),
        (f"{SWISH}imports = 3", SchemaError, "must be a table"),
        (f"{SWISH}{SWISH}", SchemaError, "two rules have the name 'swish'"),
        (SWISH.replace("Mul (x", "Mul (x x"), ParseError, "rule 1, 'swish': line 1, column 12: expected"),
        (SWISH.replace('"y = Swish (x)"', '"y = Swish (z)"'), SchemaError, "no value 'z'"),
        (SWISH.replace('"y = Swish (x)"', '""'), SchemaError, "replaces nothing"),
        (SWISH.replace('"y = Swish (x)"', '"Swish? (x)"'), SchemaError, "not in a replacement"),
        (SWISH.replace('"y = Swish (x)"', '"Elu <alpha: float = @a> (x)"'), SchemaError, "no attribute 'a'"),
        (SWISH.replace("rank(x)", "rank(s)"), SchemaError, "no value 's'"),
    ],
)
def test_what_is_no_file_of_rules(text, error, problem):
    with pytest.raises(error, match=problem):
        parse_rules(text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match="cannot be read: No such file"):
        load_rules(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ParseError, match="byte 8 is not UTF-8"):
        load_rules(tmp_path / "bytes.toml")
    (tmp_path / "wrong.toml").write_text("rule = 3")
    with pytest.raises(SchemaError, match="wrong.toml"):
        sabir.rewrite(MODEL, tmp_path / "wrong.toml")


def test_outputs_of_replacements_are_those_of_the_pattern():
    with pytest.raises(SchemaError, match="does not compute 'b'"):
        RewriteRule("r", "a = Neg (x)  b = Abs (x)", "a = Neg (x)")
    with pytest.raises(SchemaError, match="must have the same outputs"):
        RewriteRule("r", ["a = Neg (x)  b = Abs (x)", "Neg (x)"], "a = Neg (x)  b = Neg (a)")
    with pytest.raises(SchemaError, match="has no pattern"):
        RewriteRule("r", [], "Neg (x)")


def test_why_a_rule_leaves_a_node_alone():
    (rule,) = parse_rules(SWISH.replace("== 2", "== 3"))
    for node in ("sig", "s", "mul"):
        (refusal,) = explain_node(MODEL, rule, node)
        assert refusal.node.name == "mul"
        assert refusal.reason == "the condition rank(x) == 3 does not hold: rank(x) is 2"
    (refusal,) = explain_node(MODEL, rule, "out")
    assert refusal.reason == "no Mul, in which its pattern ends, follows the node"
    (refusal,) = explain_node(MODEL, parse_rules(SWISH), "sig")
    assert not refusal.reason
    assert [node.op for node in MODEL.graph] == ["Sigmoid", "Mul", "Tanh"]
    with pytest.raises(sabir.base.NotFoundError, match="is it 'sig'"):
        explain_node(MODEL, rule, "sg")


def test_a_replacement_that_the_operator_set_lacks_is_explained():
    (rule,) = parse_rules(SWISH)
    old = sabir.parse(sabir.text(MODEL).replace(": 24]", ": 17]"))
    (refusal,) = explain_node(old, rule, "mul")
    assert "ai.onnx.Swish came with opset 24, but opset 17 is imported" in refusal.reason
    needing = RewriteRule("r", "Mul (x, Sigmoid (x))", "Swish (x)", since=24)
    (refusal,) = explain_node(old, needing, "mul")
    assert refusal.reason == "the replacement needs operator set 24, the model imports 17"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "has no example"),
        ({"examples": ["y = Relu (x)"]}, "example 1: the rule leaves it alone"),
        (
            {"examples": ["a = Neg (x) y = Neg (a)"], "near_misses": ["a = Neg (x) y = Neg (a)"]},
            "near miss 1: the rule changes",
        ),
    ],
)
def test_rules_that_nothing_proves(fields, problem):
    rule = RewriteRule("r", "Neg (Neg (x))", "Identity (x)", shared=True, **fields)
    with pytest.raises(sabir.SabirError, match=problem):
        prove(rule)


@pytest.mark.parametrize(
    ("pattern", "replacement", "exact", "problem"),
    [
        ("Relu (x)", "Abs (x)", False, "differs by 1"),
        ("Neg (x)", "Sub (Constant <value_float = 0.0> (), x)", True, "differs"),  # the sign of zero
        ("Neg (x)", "Neg (Identity (x))", False, "have replaced 100 others"),
    ],
)
def test_proofs_that_fail(pattern, replacement, exact, problem):
    op = pattern.split()[0]
    rule = RewriteRule("r", pattern, replacement, exact=exact, examples=[f"y = {op} (x)"])
    with pytest.raises(sabir.SabirError, match=problem):
        prove(rule)


def test_an_example_may_be_a_whole_model():
    text = """<ir_version: 10, opset_import: ["" : 24]> g (float[2,N,8] x, int64[1] n) => (float[2,N,8] y)
    { s = Sigmoid (x) y = Mul (s, x) }"""
    prove(RewriteRule("r", "Mul (x, Sigmoid (x))", "Swish (x)", examples=[text]))


def test_rules_that_undo_one_another_end():
    rules = [RewriteRule("a", "Neg (x)", "Mul (x, Constant <value_float = -1.0> ())"),
             RewriteRule("b", "Mul (x, $c)", "Neg (x)", ["value(c) == -1"])]  # fmt: skip
    model = sabir.parse('<ir_version: 10, opset_import: ["" : 24]> g (float[2] x) => (y) { y = Neg (x) }')
    with pytest.raises(SchemaError, match="have replaced"):
        sabir.rewrite(model, rules)
