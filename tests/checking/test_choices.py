"""Values of attributes that an operator version does not admit: where they stand, and once each."""

import numpy as np
import pytest

import sabir
from sabir.syntax import parse

FUNCTIONS = '<ir_version: 10, opset_import: ["" : 20, "d" : 1]>\n'


def errors(model, **options):
    found = sabir.findings(parse(model) if isinstance(model, str) else model, **options)
    return [(f.rule, str(f.location)) for f in found if f.severity == "error"]


GELU = '<domain: "d", opset_import: ["" : 20]>\nf <k> (a) => (b) { b = Gelu<approximate: string = @k>(a) }'


def test_a_reference_is_checked_at_each_call_site():
    calls = "g (float[2] x) => (float[2] y) { t = d.f<k = {0}>(x) y = d.f<k = {1}>(t) }"
    good = FUNCTIONS + calls.replace("{0}", '"tanh"').replace("{1}", '"none"') + "\n" + GELU
    bad = FUNCTIONS + calls.replace("{0}", '"tanh"').replace("{1}", '"tahn"') + "\n" + GELU
    assert errors(good) == []
    ((rule, where),) = errors(bad)
    assert rule == "ATTR009"
    assert "node[1]" in where
    with pytest.raises(
        sabir.SchemaError, match="'approximate' is 'tahn', and must be none or tanh; is it 'tanh'"
    ):
        sabir.Session(parse(bad))


def test_a_reference_through_two_functions():
    outer = '<domain: "d", opset_import: ["" : 20, "d" : 1]>\nh <k> (a) => (b) { b = d.f<k: string = @k>(a) }'
    head = FUNCTIONS + 'g (float[2] x) => (float[2] y) { y = d.h<k = "wrong">(x) }\n'
    assert [rule for rule, _ in errors(head + outer + "\n" + GELU)] == ["ATTR009"]


def test_the_default_of_a_function_applies_if_the_call_omits_it():
    function = GELU.replace("f <k>", 'f <k: string = "wrong">')
    assert [
        r for r, _ in errors(FUNCTIONS + "g (float[2] x) => (float[2] y) { y = d.f(x) }\n" + function)
    ] == ["ATTR009"]
    called = 'g (float[2] x) => (float[2] y) { y = d.f<k = "tanh">(x) }\n'
    assert errors(FUNCTIONS + called + function) == []


def test_a_value_in_a_function_is_one_finding_however_often_it_is_called():
    body = '<domain: "d", opset_import: ["" : 20]>\nf (a) => (b) { b = Gelu<approximate = "wrong">(a) }'
    calls = FUNCTIONS + "g (float[2] x) => (float[2] y) { s = d.f(x) t = d.f(s) y = d.f(t) }\n"
    assert [r for r, _ in errors(calls + body)] == ["ATTR009"]
    never = FUNCTIONS + "g (float[2] x) => (float[2] y) { y = Neg(x) }\n"
    assert [r for r, _ in errors(never + body)] == ["ATTR009"]


def test_a_value_in_a_branch_is_one_finding():
    graph = (
        "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = a () => (float[2] p)"
        ' { p = Gelu<approximate = "wrong">(x) }, else_branch = b () => (float[2] q) { q = Neg(x) }> }'
    )
    ((rule, where),) = errors('<ir_version: 10, opset_import: ["" : 20]>\n' + graph)
    assert rule == "ATTR009"
    assert "then_branch" in where


def test_without_types_only_literal_values_are_checked():
    bad = FUNCTIONS + 'g (float[2] x) => (float[2] y) { y = d.f<k = "wrong">(x) }\n' + GELU
    assert errors(bad, types=False) == []
    direct = (
        '<ir_version: 10, opset_import: ["" : 20]>\ng (float[2] x) => (y) { y = Gelu<approximate = "w">(x) }'
    )
    assert [r for r, _ in errors(direct, types=False)][:1] == ["ATTR009"]


def test_what_depends_on_more_than_one_attribute_or_input():
    head = '<ir_version: 10, opset_import: ["" : {}]>\ng (float[1,1,4,4] x{}) => (float[N,C,H,W] y) {{ {} }}'
    scales = "s = Constant <value = float[4] {1, 1, 2, 2}> () "
    sizes = "z = Constant <value = int64[4] {1, 1, 8, 8}> () "
    nothing = "e = Constant <value = float[0] {}> () "
    both = head.format(13, "", f'{scales}{sizes}y = Resize (x, "", s, z)')
    assert errors(both) == [("TYPE001", "graph/node[2] 'Resize'")]
    assert errors(head.format(13, "", f'{sizes}{nothing}y = Resize (x, "", e, z)')) == []
    blurred = head.format(18, "", f'{scales}y = Resize<mode = "nearest", antialias = 1>(x, "", s)')
    assert errors(blurred) == [("TYPE001", "graph/node[1] 'Resize'")]


@pytest.mark.parametrize("name", ["scan_input_directions", "scan_output_directions"])
def test_a_scan_says_a_direction_for_each(name):
    graph = "g (float[3,2] x) => (float[3,2] y) {{ y = Scan <num_scan_inputs = 1, {} = [{}], body = b"
    graph += " (float[2] r) => (float[2] o) {{ o = Neg (r) }}> (x) }}"
    model = '<ir_version: 8, opset_import: ["" : 17]>\n' + graph
    assert errors(model.format(name, "1")) == []
    assert [r for r, _ in errors(model.format(name, "1, 0"))] == ["TYPE001"]
    assert [r for r, _ in errors(model.format(name, "2"))] == ["ATTR009"]


def test_the_hint_names_the_page():
    model = (
        '<ir_version: 8, opset_import: ["" : 17]>\ng (float[N] x) => (float[N] y) { y = Cast<to = 17>(x) }'
    )
    (finding,) = [f for f in sabir.findings(parse(model)) if f.rule == "ATTR009"]
    assert finding.hint == "`sabir op Cast --opset 13` lists the values"


def test_what_runs_still_runs():
    graph = "g (float[T,N,I] x, float[1,H,I] w, float[1,H,H] r) => (float[T,1,N,H] y)"
    graph += ' { y = RNN<activations = ["relu"], hidden_size = 1>(x, w, r) }'
    model = parse('<ir_version: 8, opset_import: ["" : 17]>\n' + graph)
    one = np.ones((1, 1, 1), np.float32)
    assert sabir.evaluate(model, {"x": one, "w": one, "r": one})["y"] == np.float32([[[[1]]]])
    assert [f.severity for f in sabir.findings(model, select=["ATTR010"])] == ["warning"]
