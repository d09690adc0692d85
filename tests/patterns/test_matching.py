"""What patterns match: operands, choices, attributes, readers, several outputs."""

import numpy as np
import pytest

import sabir
from sabir.base import ParseError, SchemaError
from sabir.ir import verify
from sabir.patterns import ApplyRules, Pattern, RewriteRule
from sabir.schema import Unconvertible


def model_of(nodes, ports="(float[N,4] x) => (y)", more="", opset=24):
    return sabir.parse(f'<ir_version: 10, opset_import: ["" : {opset}]> g {ports} {more} {{ {nodes} }}')


def ops(model):
    return [node.op for node in model.graph if node.op != "Constant"]


def applied(rule, model):
    """Return how often a rule applies; the model that it makes is valid, and computes the same."""
    found = sabir.rewrite(model, [rule], explain=True)
    verify(found.model)
    return found.applied.get(rule.name, 0), found.model


SWISH = RewriteRule("swish", "y = Mul (x, Sigmoid (x))", "y = Swish (x)")


@pytest.mark.parametrize("operands", ["x, s", "s, x"])
def test_operands_of_commutative_operators_come_in_either_order(operands):
    count, found = applied(SWISH, model_of(f"s = Sigmoid (x) y = Mul ({operands})"))
    assert count == 1
    assert ops(found) == ["Swish"]


def test_every_order_of_nested_commutative_operators_is_tried():
    rule = RewriteRule("r", "Add (Mul (a, b), Mul (a, c))", "Mul (a, Add (b, c))")
    for left in ("x, u", "u, x"):
        for right in ("x, v", "v, x"):
            model = model_of(f"u = Neg (x) v = Abs (x) p = Mul ({left}) q = Mul ({right}) y = Add (p, q)")
            count, found = applied(rule, model)
            assert count == 1
            assert sorted(ops(found)) == ["Abs", "Add", "Mul", "Neg"]


def test_operands_of_other_operators_have_one_order():
    rule = RewriteRule("r", "Sub (x, Neg (z))", "Add (x, z)")
    assert applied(rule, model_of("n = Neg (x) y = Sub (x, n)"))[0] == 1
    assert applied(rule, model_of("n = Neg (x) y = Sub (n, x)"))[0] == 0


def test_a_name_stands_for_one_value():
    model = model_of("n = Neg (x) s = Sigmoid (n) y = Mul (x, s)")
    assert applied(SWISH, model)[0] == 0


def test_equal_constants_are_one_value():
    rule = RewriteRule("r", "Div (Mul (x, $c), $c)", "x")
    constants = "<float a = {2}, float b = {2}, float c = {3}>"
    assert applied(rule, model_of("p = Mul (x, a) q = Div (p, b) y = Relu (q)", more=constants))[0] == 1
    assert applied(rule, model_of("p = Mul (x, a) q = Div (p, c) y = Relu (q)", more=constants))[0] == 0


def test_constants_are_initializers_and_nodes_but_no_defaults_of_inputs():
    rule = RewriteRule("r", "Mul (x, $c)", "Div (x, c)", ["value(c) == 1"])
    assert applied(rule, model_of("y = Mul (x, c)", more="<float c = {1}>"))[0] == 1
    assert applied(rule, model_of("c = Constant <value_float = 1.0> () y = Mul (x, c)"))[0] == 1
    ports = "(float[N,4] x, float c = {1}) => (y)"
    assert applied(rule, model_of("y = Mul (x, c)", ports))[0] == 0


@pytest.mark.parametrize(
    ("literal", "constant", "matches"),
    [
        ("value_float = 0.70710677", "float c = {0.70710678}", 1),
        ("value_float = 0.70710677", "float[1,1] c = {0.70710678}", 1),
        ("value_float = 0.70710677", "float c = {0.7071}", 0),
        ("value_float = 0.1", "double c = {0.1}", 1),
        ("value_ints = [1, 2]", "int64[2] c = {1, 2}", 1),
        ("value_ints = [1, 2]", "int64[1,2] c = {1, 2}", 0),
        ("value_float = 1.0", "float[4] c = {1, 1, 1, 1}", 0),
    ],
)
def test_literals_match_constants_of_the_same_elements(literal, constant, matches):
    rule = RewriteRule("r", f"c = Constant <{literal}> () y = Min (x, c)", "Relu (x)")
    kind = constant.split()[0].split("[")[0]
    model = model_of("y = Min (x, c)", f"({kind}[2,2] x) => (y)", f"<{constant}>")
    assert len(ApplyRules([rule]).applied) == 0
    applying = ApplyRules([rule])
    applying.run(model)
    assert len(applying.applied) == matches


def test_a_value_inside_must_have_no_other_reader_unless_the_rule_is_shared():
    model = model_of("s = Sigmoid (x) m = Mul (x, s) y = Add (m, s)")
    assert applied(SWISH, model)[0] == 0
    shared = RewriteRule("swish", "y = Mul (x, Sigmoid (x))", "y = Swish (x)", shared=True)
    count, found = applied(shared, model)
    assert count == 1
    assert sorted(ops(found)) == ["Add", "Sigmoid", "Swish"]
    of_graph = model_of("s = Sigmoid (x) y = Mul (x, s)", "(float[N,4] x) => (y, s)")
    assert applied(SWISH, of_graph)[0] == 0


def test_readers_inside_of_the_match_are_no_others():
    rule = RewriteRule("r", "e = Exp (x) y = Mul (e, e)", "Exp (Add (x, x))")
    assert applied(rule, model_of("e = Exp (x) y = Mul (e, e)"))[0] == 1


def test_a_subgraph_is_another_reader():
    nodes = """s = Sigmoid (x) m = Mul (x, s) c = Constant <value = bool {1}> ()
    y = If (c) <then_branch = t () => (a) { a = Neg (s) }, else_branch = e () => (b) { b = Neg (m) }>"""
    assert applied(SWISH, model_of(nodes))[0] == 0


def test_rules_apply_in_subgraphs_and_functions():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 24, "f" : 1]>
    g (float[2,4] x, bool c) => (y) {
      z = f.silu (x)
      y = If (c) <then_branch = t () => (a) { s = Sigmoid (z)  a = Mul (s, z) },
                  else_branch = e () => (b) { b = Neg (z) }>
    }
    <domain: "f", opset_import: ["" : 24]> silu (p) => (r) { q = Sigmoid (p)  r = Mul (p, q) }""")
    count, found = applied(SWISH, model)
    assert count == 2
    assert [node.op for node in found.functions[0].graph] == ["Swish"]


@pytest.mark.parametrize(
    ("nodes", "bits"),
    [
        ("c = Cast <to = 11> (x) n = Neg (c) y = Exp (n)", "Exp Cast"),
        ("n = Neg (x) y = Exp (n)", "Exp"),
    ],
)
def test_an_optional_call_may_be_missing(nodes, bits):
    rule = RewriteRule("r", "y = Exp (Neg (c = Cast? (x)))", "y = Reciprocal (Exp (c))")
    count, found = applied(rule, model_of(nodes))
    assert count == 1
    assert set(bits.split()) <= set(ops(found))
    assert "Reciprocal" in ops(found)


def test_an_optional_call_is_one_of_two_readers():
    rule = RewriteRule("r", "c = Cast? (x) y = Mul (c, Sigmoid (c))", "y = Swish (c)")
    for nodes in ("s = Sigmoid (x) y = Mul (x, s)", "c = Cast <to = 11> (x) s = Sigmoid (c) y = Mul (s, c)"):
        assert applied(rule, model_of(nodes))[0] == 1


def test_an_operand_that_may_be_left_out():
    rule = RewriteRule(
        "r", "y = Relu (Conv (x, $w, $b?))", "y = Clip (Conv (x, w, b), Constant <value_float = 0.0> ())"
    )
    ports, more = "(float[1,2,3,3] x) => (y)", "<float[1,2,1,1] w = {1, -2}, float[1] b = {3}>"
    for operands in ("x, w", "x, w, b"):
        count, found = applied(rule, model_of(f"c = Conv ({operands}) y = Relu (c)", ports, more))
        assert count == 1
        assert len(found.graph[0].inputs) == len(operands.split(","))


def test_all_further_operands():
    rule = RewriteRule("r", "y = Relu (Concat <axis: int = @a> (x, *rest))", "y = Concat <axis: int = @a> (Relu (x), *rest)",
                       ["count(rest) == 2"])  # fmt: skip
    relus = "p = Relu (x) q = Relu (x)"
    assert applied(rule, model_of(f"{relus} c = Concat <axis = 1> (x, p, q) y = Relu (c)"))[0] == 1
    assert applied(rule, model_of(f"{relus} c = Concat <axis = 1> (x, p) y = Relu (c)"))[0] == 0


def test_attributes_have_the_value_of_the_pattern_or_its_name():
    fixed = RewriteRule("r", "Transpose <perm = [1, 0]> (x)", "Transpose (x)", ["rank(x) == 2"])
    applying = ApplyRules([fixed])
    for perm, matches in (("[1, 0]", 1), ("[0, 1]", 0)):
        model = model_of(f"t = Transpose <perm = {perm}> (x) y = Relu (t)")
        try:
            applying.run(model)
        except SchemaError as error:  # the replacement has the default, which is the same permutation
            assert matches, error
        assert (len(applying.applied) > 0) == bool(matches)

    named = RewriteRule(
        "r", "Transpose <perm: ints = @p> (Transpose <perm: ints = @p> (x))", "x", ["p == [1, 0]"]
    )
    twice = "t = Transpose <perm = {}> (x) u = Transpose <perm = {}> (t) y = Relu (u)"
    assert applied(named, model_of(twice.format("[1, 0]", "[1, 0]")))[0] == 1
    assert applied(named, model_of(twice.format("[1, 0]", "[0, 1]")))[0] == 0


def test_a_default_is_the_value_of_an_attribute_that_is_left_out():
    rule = RewriteRule("r", "Softmax <axis = -1> (x)", "Exp (LogSoftmax <axis = -1> (x))")
    assert applied(rule, model_of("y = Softmax (x)"))[0] == 1
    assert applied(rule, model_of("y = Softmax <axis = 0> (x)"))[0] == 0


def test_several_outputs_are_replaced_at_once():
    rule = RewriteRule(
        "r", "a = MatMul (x, $v)  b = MatMul (x, $w)",
        "c = Concat <axis = 1> (v, w)  p = MatMul (x, c)  a, b = Split <axis = 1, num_outputs = 2> (p)",
        ["shape(v) == shape(w)"],
    )  # fmt: skip
    more = "<float[4,2] v = {1,2,3,4,5,6,7,8}, float[4,2] w = {8,7,6,5,4,3,2,1}>"
    model = model_of("p = MatMul (x, v) n = Neg (p) q = MatMul (x, w) y = Add (n, q)", more=more)
    count, found = applied(rule, model)
    assert count == 1
    assert ops(found) == ["MatMul", "Split", "Neg", "Add"]
    np.testing.assert_allclose(
        *(sabir.evaluate(m, {"x": np.eye(4, dtype=np.float32)})["y"] for m in (model, found))
    )


def test_outputs_that_depend_on_each_other_are_not_joined():
    rule = RewriteRule("r", "a = Exp (x)  b = Mul (x, z)", "a = Exp (x)  b = Mul (z, x)")
    model = model_of("e = Exp (x) n = Neg (e) y = Mul (x, n)")
    (refusal,) = [r for r in sabir.rewrite(model, rule, explain=True).refusals if r.matched == 2]
    assert "depends on Exp 'e'" in refusal.reason


def test_an_operator_of_another_domain_is_imported():
    rule = RewriteRule("r", "y = Mul (x, Sigmoid (x))", "y = com.microsoft.QuickGelu <alpha = 1.0> (x)")
    model = model_of("s = Sigmoid (x) y = Mul (x, s)", "(float[N,4] x) => (float[N,4] y)", opset=17)
    count, found = applied(rule, model)
    assert count == 1
    assert found.opsets == {"": 17, "com.microsoft": 1}
    sabir.check(found)


def test_patterns_are_python_functions_too():
    def pattern(b, x, scale):
        return b.Mul(b.optional("Cast", x), b.Sigmoid(b.Mul(x, scale)))

    def build(b, m):
        if m.rank("x") != 2:
            raise Unconvertible("x is no matrix")
        return b.Mul(m["x"], b.Sigmoid(b.Mul(m["scale"], m["x"])))

    rule = RewriteRule("r", pattern, build, [lambda m: m.has("scale")])
    model = model_of("c = Constant <value_float = 2.0> () p = Mul (x, c) s = Sigmoid (p) y = Mul (x, s)")
    with pytest.raises(SchemaError, match="replaced"):
        sabir.rewrite(model, rule)  # it replaces what it makes

    def to_swish(b, x):
        return b.Mul(x, b.Sigmoid(b.Mul(x, 1.0)))

    swish = RewriteRule("r", to_swish, lambda b, m: b.Swish(m["x"]))
    count, found = applied(
        swish, model_of("c = Constant <value_float = 1.0> () p = Mul (x, c) s = Sigmoid (p) y = Mul (x, s)")
    )
    assert count == 1
    assert ops(found) == ["Swish"]


def test_a_mistake_in_a_function_of_a_rule_is_raised():
    rule = RewriteRule("r", "Relu (x)", lambda b, m: b.Relu(m["nothing"]))
    with pytest.raises(KeyError, match="nothing"):
        sabir.rewrite(model_of("y = Relu (x)"), rule)


def test_a_replacement_of_another_type_is_refused():
    rule = RewriteRule("r", "y = Relu (x)", "y = Transpose (x)")
    model = model_of("y = Relu (x)", "(float[2,4] x) => (y)")
    (refusal,) = sabir.rewrite(model, rule, explain=True).refusals
    assert refusal.reason == "the replacement: it computes float[4,2], the pattern float[2,4]"
    cast = RewriteRule("r", "y = Relu (x)", "y = Cast <to = 11> (x)")
    assert applied(cast, model)[0] == 0


def test_a_wrong_rule_is_found_by_the_verification():
    rule = RewriteRule("wrong", "y = Relu (x)", "y = Abs (x)")
    with pytest.raises(sabir.EvaluationError, match="differs by .* after the rules 'wrong'"):
        sabir.rewrite(model_of("y = Relu (x)"), rule)
    assert ops(sabir.rewrite(model_of("y = Relu (x)"), rule, verify=False)) == ["Abs"]


@pytest.mark.parametrize(
    "text", ["Relu(", "Relu(x", "Relu(x))", "Relu[x]", "a = ", "a = b = Relu (x)", "$x", "y = Relu (x) <axis"]
)
def test_what_is_no_text_of_a_pattern(text):
    with pytest.raises(ParseError, match="line 1, column"):
        Pattern.parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must have a call"),
        ("x", "has calls alone"),
        ("Relu? (x)", "may not be optional"),
        ("y = Neg (Relu? ())", "must have one output and an operand"),
        ("Concat (*a, x)", "may only be at the last operand"),
        ("a = Relu (x)  b = Relu (z)", "share no value"),
        ("Mul ($x, x)", "different marks"),
        ("x = Relu (x)", "already has a meaning"),
        ("a = Neg (x)  a = Relu (a)", "already has a meaning"),
        ("a, b = Split (x)  c = Relu (a)", "may not be read inside"),
        ("Cast <to: int = @x> (x)", "names a value and an attribute"),
        ('Add (x, Constant <value_string = "a"> ())', "of numbers"),
        ("If (c) <then_branch = t () => (a) { a = Relu (x) }>", "has a subgraph"),
    ],
)
def test_what_is_no_pattern(text, problem):
    with pytest.raises(SchemaError, match=problem):
        Pattern.parse(text)


def test_a_pattern_of_many_choices_ends():
    pattern, nodes = "a", "n0 = Identity (x) "
    for level in range(6):
        pattern = f"Add ({pattern}, {pattern})"
        nodes += f"n{level + 1} = Add (n{level}, n{level}) "
    rule = RewriteRule("r", pattern.replace("a", "Neg (a)", 1), "a")
    (refusal,) = sabir.optimization.explain_node(model_of(f"{nodes} y = Relu (n6)"), rule, "n6")
    assert refusal.reason
    assert refusal.matched == 6


def test_a_long_pattern():
    def chain(length):
        return " ".join(f"n{i + 1} = Neg (n{i})" for i in range(length))

    rule = RewriteRule("r", chain(100), "n0")
    assert applied(rule, model_of(f"n0 = Abs (x) {chain(100)} y = Relu (n100)"))[0] == 1
    with pytest.raises(SchemaError, match="more than 100 calls"):
        RewriteRule("r", chain(101), "n0")


def test_an_empty_set_of_rules_changes_nothing():
    model = model_of("y = Relu (x)")
    assert sabir.dumps(sabir.rewrite(model, [])) == sabir.dumps(model)
