"""Networks as PyTorch exports them, by default and as advised: the losses are those that PyTorch has.

`tools/record_exports.py` writes the files and the losses of 200 steps, of which the first 40 are compared here, on the
interpreter; SABIR_EXPORTS=200 compares all.
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.base import NotFoundError, SabirWarning, UnsupportedError
from sabir.training import SGD, AdamW, CrossEntropy, Tied, Untied, prepare, training_plan
from support import exported

FOLDER = Path(__file__).with_name("exports")
RECORDED = json.loads((FOLDER / "curves.json").read_text())
STEPS = int(os.environ.get("SABIR_EXPORTS", "40"))
OPTIMIZERS = {"sgd": SGD, "adamw": AdamW}
# what the exporter computes away by default, and the warning that says so
LOST = {
    "cnn.dynamo": "folded 2 BatchNormalizations .*bn1.*dynamo=True, optimize=False",
    "cnn.script": "weights of 2 convolutions .*conv1.*TrainingMode.TRAINING, do_constant_folding=False",
    "vit.dynamo": "'exp': not trained, as the exporter computed it.*optimize=False",
}
CASES = [
    (f"{network}.{kind}", "sgd" if kind.endswith("kept") else "adamw")
    for network in exported.NETWORKS
    for kind in ("dynamo", "dynamo-kept", "script", "script-kept")
    if f"{network}.{kind}" not in LOST
]


def load(file):
    return sabir.load(FOLDER / f"{file}.onnx")


def losses(model, network, steps, **options):
    session = sabir.TrainingSession(prepare(model, CrossEntropy(axis=-1), **options), engine="reference")
    return [
        float(session.step({"x": x, "label": y}, 0, outputs="loss")["loss"])
        for x, y in exported.batches(network, steps)
    ]


@pytest.mark.parametrize(("file", "optimizer"), CASES)
def test_losses_are_those_of_pytorch(file, optimizer):
    network, every = file.partition(".")[0], RECORDED["every"]
    expected = RECORDED["losses"][f"{network} {optimizer}"]["float"]
    found = losses(load(file), network, STEPS, optimizer=OPTIMIZERS[optimizer](exported.RATES[optimizer]))
    np.testing.assert_allclose(found[every - 1 :: every], expected[: STEPS // every], rtol=0, atol=1e-5)


@pytest.mark.parametrize("file", LOST)
def test_what_an_exporter_computed_away_is_a_warning(file):
    with pytest.warns(SabirWarning, match=LOST[file]) as caught:
        prepare(load(file))
    assert len(caught) == 1
    kept = load(file.replace(".dynamo", ".dynamo-kept").replace(".script", ".script-kept"))
    assert training_plan(kept).warnings == ()


def test_the_plan_of_a_language_model():
    for file in ("lm.dynamo", "lm.script"):
        plan = training_plan(load(file))
        named = {d.name: d for d in plan.decisions}
        assert named["positions"].action == "left"
        assert "sines and cosines" in named["positions"].reason
        mask = next(d for d in plan.decisions if d.name in {"alias", "blocks.0.mask"})
        assert (mask.action, "mask" in mask.reason or "name" in mask.reason) == ("left", True)
        assert [(t.transposed, t.name in named, t.other in named) for t in plan.tied] == [(True, True, False)]
        assert len(plan.untied) == 2
        layers = {u.name.rpartition(".")[2]: {u.name, *u.others} for u in plan.untied}
        expected = {"blocks.0.ln1", "blocks.0.ln2", "blocks.1.ln1", "blocks.1.ln2", "ln"}
        assert layers == {part: {f"{name}.{part}" for name in expected} for part in ("weight", "bias")}
        assert not any(d.dubious for d in plan.decisions)
    kept = training_plan(load("lm.dynamo-kept"))
    assert (kept.tied, kept.untied) == ((), ())
    # 12 parameters of each block, two of the last normalization, and the embedding
    assert len(kept.trained) == len(training_plan(load("lm.script")).trained) == 27


def test_the_plan_of_networks_with_statistics_and_scalars():
    plan = training_plan(load("mlp.script"))
    actions = {d.name: d.action for d in plan.decisions}
    assert actions["input_mean"] == actions["input_std"] == "left"
    assert actions["act.weight"] == "trained"
    assert Untied("norm1.weight", ("norm2.weight",)) in plan.untied
    plan = training_plan(load("vit.script"))
    assert {"cls_token", "pos_embed", "logit_scale"} <= set(plan.trained)
    plan = training_plan(load("cnn.script-kept"))
    assert "bn1.weight" in plan.trained
    assert "running variance" in next(d for d in plan.decisions if d.name == "bn1.running_var").reason


def test_a_trained_model_has_the_tied_weight_once():
    model = prepare(load("lm.dynamo"), CrossEntropy(axis=-1), optimizer=SGD(0.1))
    session = sabir.TrainingSession(model, engine="reference")
    x, y = exported.batches("lm", 1)[0]
    session.step({"x": x, "label": y}, outputs=())
    network = session.export()
    assert sum(v.shape in {(12, 8), (8, 12)} for v in network.graph.initializers) == 1
    scores = sabir.Session(network, engine="reference").run({"x": x})
    np.testing.assert_array_equal(next(iter(scores.values())), next(iter(session.run({"x": x}).values())))


# by hand


def recorded(node, module, classes, call, rule=""):
    """Give a node the metadata of PyTorch's exporter."""
    node.metadata = {
        "pkg.torch.onnx.name_scopes": str(["", module, "call"]),
        "pkg.torch.onnx.class_hierarchy": str(["Net", classes]),
        "pkg.torch.onnx.fx_node": f"%call : [num_users=1] = call_function[target=x](args = ({call}), kwargs = {{}})",
        **({"pkg.onnxscript.rewriter.rule_name": rule} if rule else {}),
    }


def test_biases_that_were_removed_are_restored():
    text = (
        HEAD
        + "g (float[N,2] x) => (float[N,3] y) <float[2,2] w1 = {1, 2, 3, 4}, float[3,2] w2 = {1, 2, 3, 4, 5, 6}> {"
        " h = Gemm (x, w1)  y = Gemm <transB = 1> (h, w2) }"
    )
    model = sabir.parse(text)
    for node, module in zip(model.graph, ("a.FC", "b"), strict=True):
        call = f"%x, %p_{module.lower().replace('.', '_')}_weight, %p_{module.lower().replace('.', '_')}_bias"
        recorded(node, module, "torch.nn.modules.linear.Linear", call, "RemoveOptionalBiasFromGemm")
    plan = training_plan(model)
    assert plan.restored == ("a.FC.bias", "b.bias")
    assert {d.name: d.shape for d in plan.decisions} == {
        "w1": (2, 2),
        "w2": (3, 2),
        "a.FC.bias": (2,),
        "b.bias": (3,),
    }
    assert plan.trained == ("w1", "w2", "a.FC.bias", "b.bias")
    session = sabir.TrainingSession(prepare(model, "mse", optimizer=SGD(0.1)), engine="reference")
    session.step({"x": np.ones((1, 2), np.float32), "label": np.zeros((1, 3), np.float32)})
    assert (session.state["b.bias"] < 0).all()


def test_what_the_exporter_computed_of_parameters_is_told():
    text = (
        HEAD
        + "g (float[2,2] x) => (float[2,2] y) <float[2,2] mul = {1, 2, 3, 4}, float[2,2] embedding_1 = {1, 2, 3, 4}, float[2,2] t_1 = {1, 2, 3, 4}> {"
        " h = MatMul (x, mul)  k = Add (h, embedding_1)  y = MatMul (k, t_1) }"
    )
    model = sabir.parse(text)
    for node in model.graph:
        recorded(node, "m", "Net", ", ".join(f"%{v.name}" for v in node.inputs))
    plan = training_plan(model)
    found = {d.name: (d.action, d.dubious) for d in plan.decisions}
    assert found == {"mul": ("trained", True), "embedding_1": ("left", True), "t_1": ("trained", False)}
    how = "the exporter computed it, perhaps of parameters, which torch.onnx.export(model.train(), ..., dynamo=True, optimize=False) keeps"
    assert [w.partition("; trainable=")[0] for w in plan.warnings] == [
        f"'mul': trained as weight of MatMul; {how}", f"'embedding_1': not trained, as {how}",
    ]  # fmt: skip


def test_a_weight_that_layers_may_share_by_accident():
    text = (
        HEAD + 'g (float[N,2] x) => (float[N,2] y) <float[2,2] "onnx::MatMul_9" = {1, 2, 3, 4}> {'
        ' ["/a/fc/MatMul"] p = MatMul (x, "onnx::MatMul_9") ["/b/fc/MatMul"] y = MatMul (p, "onnx::MatMul_9") }'
    )
    plan = training_plan(sabir.parse(text))
    assert [w.partition(", which")[0] for w in plan.warnings] == [
        "'a.fc', 'b.fc' share the weight 'onnx::MatMul_9'"
    ]


def test_tables_of_positions_and_normalizations_by_groups():
    angles = np.arange(4)[:, None] * np.array([1, 0.1, 0.01])
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 4, 4, 3])
    h = b.Add(b.Mul(x, b.initializer("c", np.cos(angles)[None].astype(np.float32))), 1.0)
    h = b.Mul(b.Relu(h), b.initializer("s", np.sin(angles)[None].astype(np.float32)))
    ones, zeros = (b.initializer(n, np.full(2, v, np.float32)) for n, v in (("i1", 1), ("i0", 0)))
    h = b.InstanceNormalization(b.Reshape(h, [0, 2, -1]), ones, zeros)
    h = b.Mul(b.Reshape(h, [-1, 4, 4, 3]), b.initializer("t7", np.full((4, 1, 1), 2, np.float32)))
    b.output(b.Add(h, b.initializer("t8", np.full((4, 1, 1), 2, np.float32))), "y")
    found = {d.name: d.action for d in training_plan(b.model()).decisions}
    assert {n: found[n] for n in ("c", "s", "i1", "i0", "t7", "t8")} == {
        "c": "left", "s": "left", "i1": "left", "i0": "left", "t7": "trained", "t8": "trained",
    }  # fmt: skip


HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
LM = (
    HEAD
    + "g (int64[N] x) => (float[N,3] y) <float[3,2] words = {1, 2, 3, 4, 5, 6}, float[2,3] head = {1, 3, 5, 2, 4, 6}> {"
    " h = Gather (words, x)  y = MatMul (h, head) }"
)


def test_equal_weights_with_names_are_tied_on_request():
    model = sabir.parse(LM)
    with pytest.warns(SabirWarning, match=re.escape("tie=[('words', 'head')]")):
        assert len(prepare(model).training[0].update_binding) == 2 + 2 * 3
    plan = training_plan(model, tie=[("words", "head")])
    assert plan.tied == (Tied("words", "head", transposed=True),)
    assert (plan.trained, plan.warnings) == (("words",), ())
    session = sabir.TrainingSession(
        prepare(model, tie=[("words", "head")], optimizer=SGD(0.5)), engine="reference"
    )
    before = session.run({"x": [0, 2]})["y"]
    np.testing.assert_array_equal(before, sabir.Session(model).run({"x": np.array([0, 2])})["y"])
    session.step({"x": [0, 2], "label": [1, 1]})
    words = session.state["words"]
    np.testing.assert_allclose(session.run({"x": [0, 1]})["y"], words[:2] @ words.T, rtol=1e-6)
    with pytest.raises(NotFoundError, match="no initializer 'heat'; is it 'head'"):
        prepare(model, tie=[("words", "heat")])
    model.graph.initializers["head"] = np.ones((2, 3), np.float32)
    with pytest.raises(UnsupportedError, match="'words' and 'head' are to be one parameter"):
        prepare(model, tie=[("words", "head")])


def test_equal_scales_without_names_belong_to_one_normalization_each():
    text = (
        HEAD
        + "g (float[N,2] x) => (float[N,2] y) <float[2] one = {1, 1}, float[2] zero = {0, 0}, float[2,2] w = {1, 2, 3, 4}> {"
        " a = LayerNormalization (x, one, zero)  b = MatMul (a, w)  y = LayerNormalization (b, one, zero) }"
    )
    plan = training_plan(sabir.parse(text))
    assert plan.untied == (Untied("one", ("one_1",)), Untied("zero", ("zero_1",)))
    # other elements are those of one parameter
    assert training_plan(sabir.parse(text.replace("{1, 1}", "{1, 2}"))).untied == (
        Untied("zero", ("zero_1",)),
    )


def test_layers_are_told_apart_by_the_names_of_nodes():
    """As TorchScript writes them, after a tool has removed its Identity nodes."""
    text = (
        HEAD
        + 'g (float[N,2] x) => (float[N,2] y) <float[2] "a.norm.weight" = {1, 1}, float[2,2] "a.fc.weight" = {1, 2, 3, 4}> {'
        ' ["/a/norm/LayerNormalization"] p = LayerNormalization (x, "a.norm.weight")'
        ' ["/a/norm_1/LayerNormalization"] q = LayerNormalization (p, "a.norm.weight")'
        ' ["/a/fc/MatMul"] r = MatMul (q, "a.fc.weight") ["/b/fc/MatMul"] s = MatMul (r, "a.fc.weight")'
        ' ["/b/norm/LayerNormalization"] y = LayerNormalization (s, "a.norm.weight") }'
    )
    plan = training_plan(sabir.parse(text))
    assert plan.untied == (Untied("a.norm.weight", ("b.norm.weight",)),)
    found = {d.name: d.reason for d in plan.decisions}
    assert found["a.fc.weight"] == "weight of MatMul; 2 nodes read it"


def test_roles_are_found_through_functions_and_constant_expressions():
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[N,2] x) => (float[N,2] y) <float[1,2] u = {1, 2}, float[1,2] v = {3, 4}, float[2] z = {0, 0}> {
        c = Concat <axis = 0> (u, v)  y = f.layer (x, c, z) }
    <domain: "f", opset_import: ["" : 21]> layer (a, m, n) => (r) { t = Transpose (m)  s = MatMul (a, t)  r = Add (s, n) }"""
    found = {d.name: d.reason for d in training_plan(sabir.parse(text)).decisions}
    assert found == {"u": "weight of MatMul", "v": "weight of MatMul", "z": "bias of a product"}


def decisions(body, constants, inputs="float[N,2] x", **options):
    text = f"{HEAD}g ({inputs}) => (float[N,2] y) <{constants}> {{ {body} }}"
    return {d.name: (d.action, d.reason) for d in training_plan(sabir.parse(text), **options).decisions}


def test_use_and_name_decide():
    found = decisions(
        "a = MatMul (x, q)  b = Add (a, z)  c = Mul (b, half)  d = Add (c, attn_mask)  e = Mul (d, gain)  y = Mul (e, logit_scale)",
        "float[2,2] q = {1, 2, 3, 4}, float[2] z = {0, 1}, float half = {0.5}, float[1,2] attn_mask = {3, 4}, float[2] gain = {1, 1},"
        " float logit_scale = {2}, float[2] unread = {1, 2}",
    )
    assert found == {
        "q": ("trained", "weight of MatMul"),
        "z": ("trained", "bias of a product"),
        "half": ("left", "a number for Mul"),
        "attn_mask": ("left", "its name says that it is a constant"),
        "gain": ("trained", "its name says that it is a parameter"),
        "logit_scale": ("trained", "its name says that it is a parameter"),
        "unread": ("left", "no gradient reaches it"),
    }
    # a normalization that is written out; epsilon and exponent are numbers
    found = decisions(
        "s = Mul (x, x)  m = ReduceMean (s, axes)  n = Add (m, c1)  r = Sqrt (n)  d = Div (x, r)  e = Mul (d, c2)  y = Add (e, c3)",
        "float c1 = {0.1}, float[2] c2 = {1, 1}, float[2] c3 = {0, 0}, int64[1] axes = {1}",
    )
    assert {name: action for name, (action, _) in found.items()} == {
        "c1": "left",
        "c2": "trained",
        "c3": "trained",
    }
    # constants of a quantization, and a table that a name says to be one
    found = decisions(
        "p = MatMul (x, inv_freq)  a = QuantizeLinear (p, s, t)  y = DequantizeLinear (a, s, t)",
        "float[2,2] inv_freq = {1, 2, 3, 4}, float s = {0.1}, uint8 t = {0}",
    )
    assert found["s"] == ("left", "scale of a quantization of QuantizeLinear")
    assert found["inv_freq"] == ("left", "its name says that it is a constant, though it is weight of MatMul")


def test_what_nothing_decides_is_left_with_a_warning():
    text = (
        HEAD
        + "g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[1,2] m = {3, 4}> { p = MatMul (x, w)  q = Relu (p)  y = Add (q, m) }"
    )
    model = sabir.parse(text)
    with pytest.warns(SabirWarning, match="'m': not trained, as neither use .Add reads it. nor name"):
        prepare(model, "mse")
    assert training_plan(model, trainable="*").trained == ("w", "m")
    assert training_plan(model, frozen="m").warnings == ()
    with pytest.raises(
        UnsupportedError, match="nothing to train: 'w' is frozen: its name matches frozen=; 'm' is frozen"
    ):
        prepare(model, "mse", frozen=["w", "m"])


def test_a_weight_in_a_constant_becomes_an_initializer():
    text = (
        HEAD
        + "g (float[N,2] x) => (float[N,2] y) { w = Constant <value = float[2,2] {1, 2, 3, 4}> ()  p = MatMul (x, w)"
        "  two = Constant <value = float {2}> ()  y = Mul (p, two) }"
    )
    model = sabir.parse(text)
    plan = training_plan(model)
    assert [(d.name, d.action, d.shape) for d in plan.decisions] == [("w", "trained", (2, 2))]
    assert len(model.graph.initializers) == 0
    session = sabir.TrainingSession(prepare(model, "mse", optimizer=SGD(0.1)))
    before = sabir.Session(model).run({"x": np.float32([[1, 2]])})["y"]
    np.testing.assert_array_equal(session.run({"x": np.float32([[1, 2]])})["y"], before)
    session.step({"x": np.float32([[1, 2]]), "label": before + 1})
    assert not np.array_equal(session.state["w"], [[1, 2], [3, 4]])
