"""The schedule of a model: calls over slots, plans, and facts that outlive the model."""

import gc

import pytest

import sabir
from sabir.base import SchemaError
from sabir.ir import Graph, Node, Value
from sabir.opsets import STANDARD
from sabir.scheduling import (
    ABSENT,
    FunctionCall,
    InvalidCall,
    OperatorCall,
    ScheduledSubgraph,
    make_plan,
    schedule,
)
from sabir.schema import Version

HEAD = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>\n'


def program_of(text):
    return schedule(sabir.parse(HEAD + text), STANDARD).program


def slots(program):
    return {v.name: v.slot for v in program.values}


def planned(program, *names):
    plan = make_plan(program, [slots(program)[n] for n in names])
    by_slot = {slot: name for name, slot in slots(program).items()}
    return [
        (program.calls[place].version.operator.name, sorted(by_slot[s] for s in dead))
        for place, dead in plan.steps
    ]


def test_calls_are_in_topological_order_over_slots():
    result = schedule(
        sabir.parse(HEAD + "g (float[N] x) => (float[N] y) { y = Neg (t) t = Relu (x) }"), STANDARD
    )
    program = result.program
    assert result.notes == ("the nodes of the graph 'g' are not in topological order",)
    relu, neg = program.calls
    assert [str(c.version) for c in (relu, neg)] == ["Relu:14", "Neg:13"]
    place = slots(program)
    assert (relu.inputs, relu.outputs) == ((place["x"],), (place["t"],))
    assert (neg.inputs, neg.outputs) == ((place["t"],), (place["y"],))
    assert program.producers == {place["t"]: 0, place["y"]: 1}
    assert [(v.name, str(v.type), v.slot) for v in program.inputs] == [("x", "float[N]", place["x"])]
    assert [(v.name, str(v.type), v.slot) for v in program.outputs] == [("y", "float[N]", place["y"])]
    assert program.size == len(place) + 1


def test_an_operand_left_out_is_absent_and_attributes_are_values():
    program = program_of(
        "g (float[N] x, float m) => (y) { y = Clip (x, , m) z = LeakyRelu <alpha = 0.5> (x) }"
    )
    clip, leaky = program.calls
    assert clip.inputs[1] == ABSENT
    assert leaky.attributes == {"alpha": 0.5}
    assert leaky.named == (True,)


def test_a_plan_has_the_needed_calls_and_the_last_use_of_each_slot():
    program = program_of("g (float[N] x) => (y, z) { a = Relu (x) b = Neg (a) y = Abs (b) z = Exp (a) }")
    assert planned(program, "y") == [("Relu", []), ("Neg", ["a"]), ("Abs", ["b"])]
    assert planned(program, "y", "z") == [("Relu", []), ("Neg", []), ("Abs", ["b"]), ("Exp", ["a"])]
    assert planned(program, "x") == []


def test_constants_keep_their_tensors_and_defaults_have_the_slot_of_their_input():
    program = program_of(
        "g (float[2] x, float[2] w = {1, 2}) => (y) <float[2] c = {3, 4}> { y = Sum (x, w, c) }"
    )
    place = slots(program)
    assert {slot: t.array().tolist() for slot, t in program.constants.items()} == {
        place["w"]: [1, 2],
        place["c"]: [3, 4],
    }
    assert program.inputs[1].slot == place["w"]


LOOP = """g (int64 n, float[2] x, float[2] unused) => (y) {
    c = Constant <value = bool {1}> ()
    y = Loop (n, c, x) <body = body (int64 i, bool k, float[2] a) => (bool k2, float[2] b) {
        k2 = Identity (k) b = Add (a, x) dropped = Add (a, unused) }> }"""


def test_a_subgraph_captures_only_what_its_plan_reads():
    program = program_of(LOOP)
    loop = program.calls[1]
    body = loop.attributes["body"]
    assert isinstance(body, ScheduledSubgraph)
    assert body.captured == loop.captures == (slots(program)["x"],)
    assert len(body.program.captures) == 2
    assert body.plan.captures == (body.program.captures[0],)
    assert body.plan.cost == 2
    assert loop.cost == 3
    assert body.input_counts == range(3, 4)
    assert body.types is None  # declared completely


def test_only_subgraphs_with_inputs_and_undeclared_outputs_infer_types():
    loop = program_of(LOOP.replace("float[2] b)", "b)")).calls[1]
    assert loop.attributes["body"].types is not None
    text = """g (bool c, float[N] x) => (z) {
        z = If (c) <then_branch = t () => (v) { v = Neg (x) }, else_branch = e () => (v) { v = Abs (x) }> }"""
    branches = program_of(text).calls[0].attributes
    assert [b.types for b in branches.values()] == [None, None]


FUNCTIONS = """g (float[N] x) => (y, z, w) { y = d.f (x) z = d.f (y) w = d.f <p = 2.0> (x) }
<domain: "d", opset_import: ["" : 21]> f <p: float = 1.0> (a) => (b) { b = LeakyRelu <alpha: float = @p> (a) }"""


def test_equal_calls_of_a_function_share_its_schedule():
    first, second, other = program_of(FUNCTIONS).calls
    assert isinstance(first, FunctionCall)
    assert first.function is second.function
    assert first.function is not other.function
    assert [c.function.program.calls[0].attributes for c in (first, other)] == [
        {"alpha": 1.0},
        {"alpha": 2.0},
    ]
    assert first.cost == 2


def test_a_call_that_lacks_an_operand_of_its_function_says_so():
    text = """g (float[N] x) => (y) { y = d.f (x) }
    <domain: "d", opset_import: ["" : 21]> f (a, b) => (c) { c = Add (a, b) }"""
    add = program_of(text).calls[0].function.program.calls[0]
    assert "and the call of the function leaves 'b' out" in add.problem


def test_an_invalid_call_fails_the_plans_that_need_it():
    program = program_of("g (float[N] x) => (y) { y = Relu (x) w = Rleu (x) v = Relu <a = 1> (x) }")
    relu, wrong, attribute = program.calls
    assert isinstance(relu, OperatorCall)
    assert isinstance(wrong, InvalidCall)
    assert isinstance(attribute, InvalidCall)
    assert planned(program, "y") == [("Relu", [])]
    with pytest.raises(SchemaError, match="Rleu with output 'w': .* is it 'Relu'"):
        planned(program, "w")
    with pytest.raises(SchemaError, match="Relu with output 'v': Relu:14 has no attribute 'a'"):
        planned(program, "v")


def test_a_constant_of_a_type_that_its_version_refuses_fails_the_plan():
    text = '<ir_version: 10, opset_import: ["" : 8]> g () => (y) { y = Constant <value = bfloat16 {1}> () }'
    program = schedule(sabir.parse(text), STANDARD).program
    with pytest.raises(SchemaError, match="Constant with output 'y': .*does not admit tensor.bfloat16."):
        make_plan(program, [program.outputs[0].slot])


def test_values_that_nothing_defines_are_refused():
    model = sabir.parse(HEAD + "g (float[N] x) => (y) { y = Relu (x) }")
    model.graph.outputs[0] = sabir.ir.Value("q")
    with pytest.raises(SchemaError, match="'q' is read, but nothing defines it"):
        schedule(model, STANDARD)


def test_a_model_without_the_import_that_it_needs_gets_a_note():
    model = sabir.parse('<ir_version: 10, opset_import: ["d" : 1]> g (float[N] x) => (y) { y = Relu (x) }')
    assert schedule(model, STANDARD).notes == (
        "the model uses Relu without importing ai.onnx; opset 22 is assumed",
    )


@pytest.mark.parametrize("ir_version", [1, 2])
def test_before_there_were_imports_no_note_asks_for_one(ir_version):
    model = sabir.parse('<ir_version: 3, opset_import: ["" : 1]> g (float[N] x) => (y) { y = Relu (x) }')
    model.ir_version, model.opsets = ir_version, {}
    assert schedule(model, STANDARD).notes == ()
    assert not [f for f in sabir.findings(model) if "import" in f.message]


def test_a_schedule_keeps_neither_graph_nor_edits():
    model = sabir.parse(HEAD + LOOP)
    program = schedule(model, STANDARD).program
    next(iter(model.graph)).op = "Nonsense"
    assert str(program.calls[0].version) == "Constant:21"
    seen, pending = set(), [program]
    while pending:
        found = pending.pop()
        assert not isinstance(found, (Graph, Node, Value))
        if id(found) not in seen and not isinstance(found, (Version, type)):
            seen.add(id(found))
            pending += gc.get_referents(found)
    assert len(seen) > 50


def test_types_of_a_subgraph_follow_from_inputs_and_captured_values():
    text = LOOP.replace("float[2] b)", "b)").replace("float[2] a)", "a)").replace("float[2] x,", "x,")
    types = program_of(text).calls[1].attributes["body"].types
    of = sabir.ir.tensor_type
    found = types.infer((of("int64", []), of("bool", []), of("float", [3])), (of("float", [1]),))
    assert [str(t) for t in found] == ["bool", "float[3]"]
    assert types.infer((of("int64", []), of("bool", []), of("float", [3])), (of("double", [1]),))[1] is None
