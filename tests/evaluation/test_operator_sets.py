# ruff: file-ignore[banned-api]  onnx and onnxruntime are the oracles
"""Which version of an operator a model means, and which models no run takes."""

import itertools

import numpy as np
import onnx
import onnx.parser
import onnx.printer
import onnxruntime
import pytest

import sabir
from sabir.checking import findings
from sabir.evaluation import Runner
from sabir.inference import Inference
from sabir.ir import bound_opsets, find_opset
from sabir.opsets import STANDARD
from sabir.proto import ModelProto
from sabir.repairing import fix_in_place
from sabir.schema import BFLOAT16, FLOATS, Constraint, Input, Operator, Output, Registry, Scope
from support.messages import wire_of

# what the models lack is reported by a warning as they run
pytestmark = pytest.mark.filterwarnings("ignore::sabir.SabirWarning")

X = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
SOFTMAX = "g (float[2,2,3] x) => (float[2,2,3] y) { y = Softmax<axis = 1>(x) }"
FORMATS = ["protobuf", "textproto", "json", "onnxtxt"]
ORDERS = [
    [("", 12), ("", 13)],
    [("", 13), ("", 12)],
    [("", 12), ("ai.onnx.ml", 2), ("", 13)],
    [("", 13), ("ai.onnx.ml", 2), ("", 12), ("ai.onnx.ml", 3)],
    [("ai.onnx", 12), ("", 13)],
    [("", 12), ("ai.onnx", 13)],
    [("", 12), ("ai.onnx", 13), ("", 11), ("ai.onnx", 13)],
]


def importing(imports, graph=SOFTMAX, ir_version=8):
    """A message, its imports one by one."""
    message = ModelProto.FromString(sabir.dumps(sabir.parse(f"<ir_version: {ir_version}> {graph}")))
    del message.opset_import[:]
    for domain, version in imports:
        message.opset_import.add(domain=domain, version=version)
    return message


def loaded(message):
    return sabir.loads(message.SerializeToString())


def run(model, x=X):
    return Runner(model).run({"x": x})["y"]


def softmax(opset):
    return run(loaded(importing([("", opset)])))


def imports_of(message):
    return [(entry.domain, entry.version) for entry in message.opset_import]


# several imports of one domain


def test_the_two_versions_differ():
    assert np.abs(softmax(12) - softmax(13)).max() > 0.1


@pytest.mark.parametrize("imports", ORDERS)
@pytest.mark.parametrize("form", FORMATS)
def test_the_highest_binds_and_every_import_is_saved(imports, form):
    message = importing(imports)
    model = loaded(message)
    again = sabir.loads(sabir.dumps(model, format=form), format=form)
    for one in (model, again):
        assert one.opset() == one.opset("ai.onnx") == find_opset(one.opsets, "") == 13
        assert Scope.of(one, STANDARD).opset("ai.onnx") == 13
        assert wire_of(ModelProto.FromString(sabir.dumps(one))) == wire_of(message)
        np.testing.assert_array_equal(run(one), softmax(13))


@pytest.mark.parametrize("imports", ORDERS[::2][:2])
def test_onnxruntime_binds_the_highest_where_it_comes_last(imports):
    """The comment on `ModelProto.opset_import` says the highest; onnxruntime takes whichever comes last."""
    data = importing(imports).SerializeToString()
    found = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]
    np.testing.assert_allclose(np.asarray(found), run(sabir.loads(data)), rtol=1e-5)


def test_inference_and_inlining_bind_the_highest():
    graph = (
        "g (float[2,2,3] x) => (float[A,B,C] y) { s = Constant<value_ints = [0, 2]>()  y = Unsqueeze(x, s) }"
    )
    graph = graph.replace("float[A,B,C]", "float[A,B,C,D,E]")
    model = loaded(importing([("", 12), ("", 13)], graph))  # the axes became an input with 13
    inference = Inference(model)
    inference.run()
    assert str(inference.types[model.graph.outputs[0]]) == "float[1,2,1,2,3]"
    body = loaded(importing([("", 13), ("", 17)], "g (float[N] x) => (float[N] y) { y = HardSwish(x) }"))
    inlined = sabir.inline(body, operators=True)
    assert run(inlined, np.float32([3])).tolist() == [3]
    assert {n.op for n in inlined.graph} != {"HardSwish"}


def test_in_a_function_the_highest_of_its_imports_binds():
    text = (
        '<ir_version: 10, opset_import: ["" : 13, "d" : 1]> g (float[2,2,3] x) => (float[2,2,3] y) { y = d.f(x) }'
        '<domain: "d", opset_import: ["" : 12, "ai.onnx" : 13, "" : 11]> f (a) => (b) { b = Softmax<axis = 1>(a) }'
    )
    model = sabir.parse(text)
    for one in (model, sabir.loads(sabir.dumps(model)), sabir.parse(sabir.text(model))):
        assert imports_of(ModelProto.FromString(sabir.dumps(one)).functions[0]) == [
            ("", 12), ("ai.onnx", 13), ("", 11),
        ]  # fmt: skip
        np.testing.assert_array_equal(run(one), softmax(13))
    assert [f.rule for f in findings(model)] == ["MODEL004"]
    np.testing.assert_array_equal(run(sabir.inline(model)), softmax(13))


def test_an_edit_is_not_undone_by_the_imports_beside_it():
    for form in FORMATS:
        model = loaded(importing([("", 12), ("", 13), ("ai.onnx.ml", 1), ("ai.onnx.ml", 2)]))
        model.opsets[""] = 11
        del model.opsets["ai.onnx.ml"]
        again = sabir.loads(sabir.dumps(model, format=form), format=form)
        assert (again.opset(), again.opset("ai.onnx.ml")) == (11, None)
        np.testing.assert_array_equal(run(again), softmax(11))


@pytest.mark.parametrize(
    "imports", [*ORDERS, [("", 13), ("", 13)], [("", 13), ("ai.onnx.ml", 1), ("ai.onnx.ml", 1)]]
)
def test_what_onnx_prints_of_such_models_is_read(imports):
    message = importing(imports)
    theirs = onnx.printer.to_text(onnx.ModelProto.FromString(message.SerializeToString()))
    model = sabir.parse(theirs)
    assert imports_of(ModelProto.FromString(sabir.dumps(model))) == imports
    ours = onnx.parser.parse_model(sabir.text(model))
    assert [(entry.domain, entry.version) for entry in ours.opset_import] == imports


@pytest.mark.parametrize(
    "imports",
    [
        [("", 13), ("", 13)],
        [("", 13), ("ai.onnx", 13)],
        [("", 13), ("ai.onnx.ml", 1), ("ai.onnx.ml", 1), ("ai.onnx.ml", 1)],
    ],
)
def test_identical_imports_are_no_finding(imports):
    message = importing(imports)
    model = loaded(message)
    assert list(findings(model)) == []
    assert fix_in_place(model) == []
    assert wire_of(ModelProto.FromString(sabir.dumps(model))) == wire_of(message)


@pytest.mark.parametrize("imports", ORDERS)
def test_the_repair_keeps_the_version_that_binds(imports):
    model = loaded(importing(imports))
    found = [(f.rule, f.severity) for f in findings(model)]
    assert {*found} == {("MODEL004", "warning")}
    before = run(model)
    repairs = fix_in_place(model, select=["MODEL004"])
    assert "version 13 remains" in repairs[0].message
    assert list(findings(model)) == []
    again = sabir.loads(sabir.dumps(model))
    assert len(imports_of(ModelProto.FromString(sabir.dumps(model)))) == len(bound_opsets(model.opsets))
    for one in (model, again):
        np.testing.assert_array_equal(run(one), before)


# versions that are not known


@pytest.mark.parametrize(
    ("imports", "told"),
    [
        ([("", 999)], "opset 999 of 'ai.onnx' is not known; the newest known one is 28"),
        ([("", 13), ("ai.onnx", 29)], "opset 29 of 'ai.onnx'"),
        ([("", 13), ("ai.onnx.ml", 6)], "opset 6 of 'ai.onnx.ml' is not known; the newest known one is 5"),
    ],
)
def test_a_version_that_nobody_published_is_not_run(imports, told):
    model = loaded(importing(imports))
    for refuse in (
        lambda: Runner(model),
        lambda: sabir.Session(model),
        lambda: sabir.evaluate(model, {"x": X}),
    ):
        with pytest.raises(sabir.UnsupportedError, match=told):
            refuse()
    with pytest.raises(sabir.UnsupportedError, match=told):
        model = sabir.inline(model, operators=True)
    with pytest.raises(sabir.InferenceError, match=told):
        sabir.infer(model, strict=True)
    assert [f.rule for f in findings(model, ignore=["MODEL004"])] == ["MODEL006"]
    assert str(sabir.infer(model).graph.outputs[0].type) == "float[2,2,3]"


def test_whoever_insists_gets_the_newest_known_version():
    model = loaded(importing([("", 999)]))
    scope = Scope.of(model, STANDARD, newer_opsets=True)
    version = scope.callee(next(iter(model.graph)))
    assert str(version) == "Softmax:13"


def test_a_function_of_an_unknown_version_is_refused_where_it_is_called():
    text = (
        '<ir_version: 10, opset_import: ["" : 13, "d" : 1]> g (float[2] x) => (float[2] y) {{ y = {call}(x) }}'
        '<domain: "d", opset_import: ["" : 99]> f (a) => (b) {{ b = Neg(a) }}'
    )
    model = sabir.parse(text.format(call="d.f"))
    with pytest.raises(sabir.UnsupportedError, match="opset 99"):
        Runner(model)
    assert [f.rule for f in findings(model)] == ["MODEL006"]
    assert run(sabir.parse(text.format(call="Relu")), np.float32([-1, 1])).tolist() == [0, 1]


def ramp():
    operator = Operator("Ramp", "org.acme", summary="The positive part.")
    kind = Constraint("T", FLOATS)
    first = operator.first(1, inputs=[Input("x", kind)], outputs=[Output("y", kind)])
    first.widen(3, T=BFLOAT16)
    first.infer(lambda x: x)
    first.evaluate(lambda x: np.maximum(x, 0))
    return operator


def test_an_own_registry_knows_its_newest_version():
    text = '<ir_version: 10, opset_import: ["" : 13, "org.acme" : {version}]> g (float[2] x) => (float[2] y)'
    text += " {{ y = org.acme.Ramp(x) }}"
    open_ended = STANDARD.with_operators(ramp())
    bounded = STANDARD.with_operators(ramp(), opsets={"org.acme": 3})
    assert (open_ended.newest_opset("org.acme"), bounded.newest_opset("org.acme")) == (None, 3)
    assert bounded.newest_opset("ai.onnx") == STANDARD.newest_opset("") == 28
    for version in (1, 3, 9):
        model = sabir.parse(text.format(version=version))
        assert Runner(model, open_ended).run({"x": np.float32([-1, 2])})["y"].tolist() == [0, 2]
    with pytest.raises(
        sabir.UnsupportedError, match="opset 9 of 'org.acme' is not known; the newest known one is 3"
    ):
        Runner(model, bounded)
    assert [f.rule for f in findings(model, registry=bounded)] == ["MODEL006"]
    assert list(findings(model, registry=open_ended)) == []
    assert (
        str(Scope.of(model, bounded, newer_opsets=True).callee(next(iter(model.graph)))) == "org.acme.Ramp:3"
    )
    later = bounded.with_operators(opsets={"org.acme": 9})
    assert Runner(model, later).run({"x": np.float32([-1, 2])})["y"].tolist() == [0, 2]


def test_an_own_registry_may_bound_a_standard_domain():
    registry = Registry({"": STANDARD._rooms[""]}, opsets={"ai.onnx": 12})
    with pytest.raises(sabir.UnsupportedError, match="the newest known one is 12"):
        Runner(loaded(importing([("", 13)])), registry)


# operators that were removed

REMOVED = [
    ("Scatter(x, i, x)", "", 10, 11, "ScatterElements"),
    ("Upsample(x, s)", "", 9, 10, "Resize"),
]


@pytest.mark.parametrize(("call", "domain", "last", "removed", "instead"), REMOVED)
def test_a_removed_operator_is_refused(call, domain, last, removed, instead):
    graph = f"g (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[A,B,C,D] y) <float[4] s = {{1, 1, 2, 2}}> {{ y = {call} }}"
    assert Runner(loaded(importing([(domain, last)], graph)))
    for opset in (removed, 17):
        model = loaded(importing([(domain, opset)], graph))
        told = f"was removed from ai.onnx with opset {removed}, and the model imports {opset}. .*{instead}"
        with pytest.raises(sabir.SchemaError, match=told):
            Runner(model)
        assert [f.rule for f in findings(model)] == ["NODE005"]


def test_a_removed_operator_of_another_domain_is_refused():
    version = STANDARD.find_version("ai.onnx.ml", "TreeEnsembleRegressor", 5)
    assert version is not None
    assert version.deprecated
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["ai.onnx.ml" : 5, "" : 21]> g (float[1,1] x) => (float[1,1] y)'
        " { y = ai.onnx.ml.TreeEnsembleRegressor(x) }"
    )
    with pytest.raises(
        sabir.SchemaError, match=r"from ai\.onnx\.ml with opset 5.*TreeEnsemble takes its place"
    ):
        Runner(model)


def test_a_version_that_was_deprecated_in_its_place_runs():
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[1,2,2] x, float[2] s, float[2] b) => (float[1,2,2] y)'
        " { y = GroupNormalization<num_groups = 2>(x, s, b) }"
    )
    x = np.float32([[[1, 3], [5, 9]]])
    found = Runner(model).run({"x": x, "s": np.float32([1, 2]), "b": np.float32([0, 1])})["y"]
    np.testing.assert_allclose(found, [[[-1, 1], [-1, 3]]], atol=1e-3)


def test_a_removed_operator_in_a_body_is_refused():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 17]> g (bool c, float[2] x, int64[2] i) => (float[2] y) {'
        " y = If(c) <then_branch = a () => (float[2] t) { t = Scatter(x, i, x) },"
        " else_branch = b () => (float[2] u) { u = Neg(x) }> }"
    )
    with pytest.raises(sabir.SchemaError, match="Scatter was removed"):
        Runner(model)


# the default domain, which every model imports

RELU = "g (float[N] x) => (float[N] y) { y = Relu(x) }"
NEWEST = {3: 8, 4: 9, 5: 10, 6: 11, 7: 14, 8: 18, 9: 20, 10: 22, 11: 23, 12: 24, 13: 27, 14: 28}


@pytest.mark.parametrize(("ir_version", "newest"), NEWEST.items())
def test_the_newest_version_that_the_ir_version_carried_binds(ir_version, newest):
    model = loaded(importing([("ai.onnx.ml", 1)], SOFTMAX, ir_version))
    assert (model.opset(), model.opsets) == (newest, {"ai.onnx.ml": 1})
    np.testing.assert_array_equal(run(model), softmax(newest))
    assert str(sabir.infer(loaded(importing([("ai.onnx.ml", 1)], SOFTMAX, ir_version))).graph.outputs[0].type)
    assert [(f.rule, f.severity) for f in findings(model)] == [("MODEL012", "warning")]
    (repair,) = fix_in_place(model)
    assert (repair.rule, model.opsets[""]) == ("MODEL012", newest)
    assert list(findings(model)) == []
    np.testing.assert_array_equal(run(sabir.loads(sabir.dumps(model))), softmax(newest))


def test_a_model_that_calls_no_operator_of_the_default_domain_need_not_import_it():
    graph = "g (float[1,2] x) => (float[1,2] y) { y = ai.onnx.ml.Binarizer(x) }"
    model = loaded(importing([("ai.onnx.ml", 1)], graph))
    assert list(findings(model)) == []
    assert fix_in_place(model) == []


@pytest.mark.parametrize("place", ["branch", "training"])
def test_calls_in_inner_graphs_and_training_count(place):
    texts = {
        "branch": "g (bool c, float[1,2] x) => (float[1,2] y) { y = my.If(c) <then_branch = a () => (float[1,2] t)"
        " { t = Neg(x) }> }",
        "training": "g (float[1,2] x) => (float[1,2] y) <float[1] w = {1}> { y = ai.onnx.ml.Binarizer(x) }"
        '@training {algorithm: a () => (float[1] n) { n = Neg(w) }, update_binding: ["w": "n"]}',
    }
    model = sabir.parse(f'<ir_version: 8, opset_import: ["ai.onnx.ml" : 1, "my" : 1]> {texts[place]}')
    assert "MODEL012" in [f.rule for f in findings(model)]


def test_a_model_without_any_import_is_an_error_and_has_one_meaning():
    model = loaded(importing([], SOFTMAX))
    assert [(f.rule, f.severity) for f in findings(model)] == [("MODEL002", "error")]
    before = run(model)
    np.testing.assert_array_equal(before, softmax(18))
    assert [r.rule for r in fix_in_place(model)] == ["MODEL002"]
    assert model.opsets == {"": 18}
    assert list(findings(model)) == []
    np.testing.assert_array_equal(run(model), before)


@pytest.mark.parametrize("ir_version", [0, 15, 99])
def test_an_unknown_ir_version_implies_no_opset(ir_version):
    model = loaded(importing([("ai.onnx.ml", 1)], RELU, ir_version))
    assert model.opset() is None
    with pytest.raises(sabir.SchemaError, match="no operator set of"):
        Runner(model, newer_opsets=True)


def test_before_imports_every_model_meant_the_first_version():
    for imports in ([], [("ai.onnx.ml", 1)]):
        assert loaded(importing(imports, RELU, 2)).opset() == 1


FUNCTION = (
    '<ir_version: 10, opset_import: [{model} "d" : 1]> g (float[2,2,3] x) => (float[2,2,3] y) {{ y = d.f(x) }}'
    '<domain: "d", opset_import: [{function}]> f (a) => (b) {{ b = Softmax<axis = 1>(a) }}'
)


@pytest.mark.parametrize(("stated", "bound"), [('"" : 12,', 12), ('"" : 13,', 13), ("", 22)])
def test_a_function_without_an_import_takes_the_models(stated, bound):
    model = sabir.parse(FUNCTION.format(model=stated, function=""))
    np.testing.assert_array_equal(run(model), softmax(bound))
    assert [(f.rule, f.severity) for f in findings(model)] == [("FUNC013", "error")]
    inlined = sabir.inline(sabir.parse(FUNCTION.format(model=stated, function="")))
    np.testing.assert_array_equal(run(inlined), softmax(bound))
    assert [r.rule for r in fix_in_place(model)] == ["FUNC013"]
    assert model.functions[0].opsets == {"": bound}
    assert list(findings(model)) == []
    np.testing.assert_array_equal(run(sabir.loads(sabir.dumps(model))), softmax(bound))


def test_inlining_does_not_bring_another_version_to_what_was_implied():
    text = FUNCTION.format(model="", function='"" : 12').replace(
        "y = d.f(x)", "t = d.f(x)  y = Softmax<axis = 1>(t)"
    )
    model = sabir.parse(text)
    before = run(model)
    model = sabir.inline(model)
    assert model.opsets[""] == 22  # the body is converted to it
    np.testing.assert_allclose(run(model), before, rtol=1e-6)
    only = sabir.inline(sabir.parse(FUNCTION.format(model="", function='"" : 12')))
    assert only.opsets[""] == 12
    np.testing.assert_array_equal(run(only), softmax(12))


def test_raising_the_ir_version_does_not_change_what_is_implied():
    text = (
        '<ir_version: 6, opset_import: ["ai.onnx.ml" : 1, "my" : 1]> g (float[2,2,3] x) => (float[2,2,3] y)'
        " { y = Softmax<axis = 1>(x) } @training {}"
    )
    model = sabir.parse(text)
    before = run(model)
    (repair,) = fix_in_place(model, select=["MODEL011"], unsafe=["MODEL011"])
    assert (model.ir_version, model.opsets[""]) == (7, 11)
    assert "imported version 11 of the default domain" in repair.message
    np.testing.assert_array_equal(run(model), before)


def test_every_order_of_three_imports_is_kept():
    for imports in itertools.product([("", 11), ("", 13), ("ai.onnx", 12), ("d", 1)], repeat=3):
        message = importing(imports)
        model = loaded(message)
        for form in FORMATS:
            again = sabir.loads(sabir.dumps(model, format=form), format=form)
            assert wire_of(ModelProto.FromString(sabir.dumps(again))) == wire_of(message)
