"""Rules until none applies, passes, and dead nodes."""

import pytest

import sabir
from sabir.base import LimitError, Limits, SchemaError, run_with_limits
from sabir.ir import Annotation, Node, verify
from sabir.opsets import STANDARD
from sabir.rewriting import DeadNodes, Rewriter, apply_rules, remove_dead_nodes, run_passes
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

HEAD = '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\n'


def parsed(text):
    return sabir.parse(HEAD + text)


def ops(model):
    return [n.op for root in model.graphs() for n in root.all_nodes()]


def test_rules_apply_to_what_they_make_and_to_its_readers():
    model = parsed("g (float[2] x) => (float[2] y) { a = Abs(x)  b = Neg(a)  y = Neg(b) }")
    rewriter, visited = Rewriter(model), []

    def spell_out(node):
        visited.append(node.op)
        if node.op == "Abs":
            return rewriter.replace(node, lambda b: b.Neg(b.Neg(node.inputs[0])))
        return None

    def cancel(node):
        inner = node.inputs[0].node if node.inputs else None
        if node.op == "Neg" and inner is not None and inner.op == "Neg":
            return rewriter.replace(node, lambda _: inner.inputs[0])
        return None

    assert apply_rules(model, spell_out, cancel)
    verify(model)
    assert remove_dead_nodes(model) == 2
    verify(model)
    assert ops(model) == ["Identity"]
    assert not apply_rules(model, spell_out, cancel)
    assert visited[:2] == ["Abs", "Neg"]


def test_nodes_of_branches_and_functions_are_visited_in_topological_order():
    model = parsed(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = a () => (float[2] p) { q = Neg(x)"
        " p = Abs(q) }, else_branch = b () => (float[2] r) { r = d.F(x) }> }\n"
        '<domain: "d", opset_import: ["" : 18]> F (u) => (v) { v = Exp(t)  t = Log(u) }'
    )
    visited = []
    assert not apply_rules(model, lambda node: visited.append(node.op))
    assert visited == ["If", "Neg", "Abs", "F", "Log", "Exp"]


def test_nodes_that_are_gone_are_not_visited():
    model = parsed(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = a () => (float[2] p) { p = Neg(x) },"
        " else_branch = b () => (float[2] r) { r = Abs(x) }> }"
    )
    rewriter, visited = Rewriter(model), []

    def drop(node):
        visited.append(node.op)
        return rewriter.replace(node, lambda b: b.Exp(model.graph.inputs[1])) if node.op == "If" else None

    assert apply_rules(model, drop)
    assert visited == ["If", "Exp"]


def test_rules_that_undo_one_another_are_an_error():
    model = parsed("g (float[2] x) => (float[2] y) { y = Abs(x) }")
    rewriter, other = Rewriter(model), {"Abs": "Neg", "Neg": "Abs"}
    with pytest.raises(SchemaError, match="have replaced 100 others before it"):
        apply_rules(model, lambda n: rewriter.replace(n, lambda b: b.op(other[n.op], n.inputs[0])))
    verify(model)


def test_growth_without_end_meets_the_limit():
    model = parsed("g (float[2] x) => (float[2] y) { y = Abs(x) }")
    rewriter = Rewriter(model)

    def grow(node):
        return rewriter.replace(node, lambda b: b.Abs(b.Abs(b.Abs(node.inputs[0]))))

    with pytest.raises(LimitError, match="52 nodes"):
        run_with_limits(Limits(nodes=50), apply_rules, model, grow)


def test_a_cycle_does_not_stop_the_rules():
    model = parsed("g (float[2] x) => (float[2] y) { y = Add(x, z)  z = Relu(y) }")
    visited = []
    apply_rules(model, lambda node: visited.append(node.op))
    assert visited == ["Add", "Relu"]


class Rename:
    name = "rename"

    def run(self, model):
        changed = model.graph.name != "renamed"
        model.graph.name = "renamed"
        return changed


def test_passes_report_what_changed_the_model():
    model = parsed("g (float[2] x) => (float[2] y) { dead = Exp(x)  y = Neg(x) }")
    seen = []
    assert run_passes(model, [Rename(), DeadNodes(), Rename()], after=lambda m: seen.append(ops(m))) == (
        "rename", "dead nodes",
    )  # fmt: skip
    assert seen == [["Exp", "Neg"], ["Neg"], ["Neg"]]
    assert run_passes(model, [DeadNodes(), Rename()], after=verify) == ()


def test_dead_nodes_go_with_what_they_alone_read_and_capture():
    model = parsed(
        "g (bool c, float[2] x) => (float[2] y) { only = Exp(x)  dead = If(c) <then_branch = a () => (float[2] p)"
        " { p = Neg(only) }, else_branch = b () => (float[2] r) { r = Abs(x)  unread = Log(x) }>  y = Neg(x) }"
    )
    assert remove_dead_nodes(model) == 5
    verify(model)
    assert ops(model) == ["Neg"]
    assert [u.user.op for u in model.graph.inputs[1].uses] == ["Neg"]


def test_dead_nodes_go_in_branches_and_functions():
    model = parsed(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = a () => (float[2] p) { q = Neg(x)"
        " p = Abs(x) }, else_branch = b () => (float[2] r) { r = d.F(x) }> }\n"
        '<domain: "d", opset_import: ["" : 18]> F (u) => (v) { v = Exp(u)  t = Log(u) }'
    )
    assert remove_dead_nodes(model) == 2
    verify(model)
    assert ops(model) == ["If", "F", "Abs", "Exp"] or sorted(ops(model)) == ["Abs", "Exp", "F", "If"]


def test_an_operator_that_is_not_known_may_have_an_effect():
    text = (
        "g (float[2] x) => (float[2] y) {{ t = Exp(x)  u = {}(t)  y = Neg(x) }}\n"
        '<domain: "d", opset_import: ["" : 18, "d" : 1]> F (u) => (v) {{ v = {}(u) }}'
    )
    assert remove_dead_nodes(parsed(text.format("d.Unknown", "Exp"))) == 0
    assert remove_dead_nodes(parsed(text.format("d.F", "d.Unknown"))) == 0
    assert remove_dead_nodes(parsed(text.format("d.F", "d.F"))) == 2
    assert remove_dead_nodes(parsed(text.format("d.F", "Exp"))) == 2
    known = Operator("Unknown", "d", summary="A thing.")
    floats = Constraint("T", FLOATS)
    known.first(1, inputs=[Input("x", floats)], outputs=[Output("y", floats)])
    assert (
        remove_dead_nodes(parsed(text.format("d.Unknown", "Exp")), registry=STANDARD.with_operators(known))
        == 2
    )


def test_what_training_annotations_and_attributes_refer_to_is_read():
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>\n'
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Mul(x, w)  b = Exp(x)  c = Log(x)  d = Abs(x)"
        "  y = Neg(x) }\n"
        '@training {algorithm: s () => (float[2] n) { n = ai.onnx.preview.training.Gradient<xs = ["w"], y = "a"> (w)'
        ' m = Add(n, b) }, update_binding: ["w": "n"]}'
    )
    c = next(n for n in model.graph if n.op == "Log").output
    model.graph.annotations = (Annotation(c, ()),)
    assert remove_dead_nodes(model) == 2  # `d`, and `m`, which alone reads `b`
    assert [n.op for n in model.graph] == ["Mul", "Exp", "Log", "Neg"]


def test_dead_nodes_of_a_cycle_stay():
    model = parsed("g (float[2] x) => (float[2] y) { a = Add(x, b)  b = Relu(a)  y = Neg(x)  z = Exp(x) }")
    assert remove_dead_nodes(model) == 1
    assert ops(model) == ["Add", "Relu", "Neg"]
    assert isinstance(next(iter(model.graph)), Node)
