"""Attention in blocks, against onnxruntime, and calls that contradict themselves."""

import itertools

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.ir import Builder, parse_dim
from sabir.opsets.families.attention import attentions
from sabir.syntax import parse_graph

FORMS = list(itertools.product((False, True), (False, True), (0, 3), ("none", "bool", "float")))


def some(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def model(feeds, outputs=1, opset=23, domain="", op="Attention", **attributes):
    names = ("Q", "K", "V", "mask", "past_key", "past_value", "filled")
    b = Builder(opset, opsets={domain: 1} if domain else None, check=False)
    last = max(names.index(n) for n in feeds) + 1
    inputs = [b.input(n, feeds[n].dtype, feeds[n].shape) if n in feeds else None for n in names[:last]]
    made = b.op(op, *inputs, outputs=outputs, domain=domain, **attributes)
    for i, value in enumerate(made if outputs > 1 else (made,)):
        b.output(value, f"o{i}", "float", [None] * 4 if i or feeds["Q"].ndim == 4 else [None] * 3)
    return b.model()


@pytest.mark.parametrize(("packed", "causal", "past", "mask"), FORMS)
def test_forms_against_onnxruntime(packed, causal, past, mask):
    rng = np.random.default_rng(FORMS.index((packed, causal, past, mask)))
    batch, heads, queries, keys, size, width = 2, 6, 3, 4, 5, 2
    feeds = {"Q": some(rng, batch, heads, queries, size)}
    feeds |= {"K": some(rng, batch, 2, keys, size), "V": some(rng, batch, 2, keys, width)}
    if packed:
        feeds = {n: x.swapaxes(1, 2).reshape(batch, x.shape[2], -1) for n, x in feeds.items()}
    if past:
        feeds |= {"past_key": some(rng, batch, 2, past, size), "past_value": some(rng, batch, 2, past, width)}
    if mask == "bool":  # each query sees the first key, since onnxruntime has no zeros for one that sees none
        feeds["mask"] = rng.random((batch, 1, queries, keys + past)) < 0.7
        feeds["mask"][..., 0] = True
    elif mask == "float":
        feeds["mask"] = some(rng, heads, queries, keys + past)
    attributes = {"q_num_heads": heads, "kv_num_heads": 2} if packed else {}
    for more in ({}, {"softcap": 2.0}, {"scale": 0.3}):
        made = model(feeds, 3 if past else 1, is_causal=int(causal), **attributes, **more)
        session = onnxruntime.InferenceSession(sabir.dumps(made), providers=["CPUExecutionProvider"])
        pairs = zip(sabir.evaluate(made, feeds).values(), session.run(None, feeds), strict=True)
        for got, expected in pairs:
            np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("block", [1, 7, 20, 60, 200])
def test_blocks_make_the_whole(monkeypatch, block):
    rng = np.random.default_rng(block)
    q, k, v = some(rng, 3, 4, 5, 2), some(rng, 3, 2, 6, 2), some(rng, 3, 2, 6, 3)
    masks = attentions.ScoreMasks(some(rng, 4, 5, 6), rng.random((3, 1, 5, 6)) < 0.5)
    stages = attentions.ScoreStages(0.7, 1.5, requested=attentions.PROBABILITIES)
    whole = attentions.attend(q, k, v, masks, stages)
    monkeypatch.setattr(attentions, "_BLOCK", block)

    for got, expected in zip(attentions.attend(q, k, v, masks, stages), whole, strict=True):
        assert got is not None
        assert expected is not None
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "names", "reason"),
    [
        ({"q_num_heads": 2, "kv_num_heads": 1}, "", "have an axis of heads"),
        ({"left_window_size": -2}, "", "-1 or more"),
        ({"qk_matmul_output_mode": 4}, "", "0, 1, 2 or 3"),
        ({"softmax_precision": 7}, "", "7 .int64., and must be"),
        ({}, "past_key", "together"),
        ({"outputs": 2}, "", "`present_key` and `present_value` must be present or absent together"),
        ({}, "past_key past_value filled", "an external cache"),
    ],
)
def test_contradictions(attributes, names, reason):
    kinds = {"past_key": np.float32, "past_value": np.float32, "filled": np.int64}
    feeds = {n: np.zeros((1, 1, 2, 2), np.float32) for n in "QKV"}
    feeds |= {n: np.zeros((1,) if n == "filled" else (1, 1, 2, 2), kinds[n]) for n in names.split()}
    made = model(feeds, opset=25, **attributes)

    with pytest.raises(sabir.SabirError, match=reason):
        sabir.evaluate(made, feeds)
    with pytest.raises(sabir.InferenceError, match=reason):
        sabir.infer(made, strict=True)


@pytest.mark.parametrize(
    "body",
    [
        "m (float[b,h,q,k] s) => (float[h,q,k] t) { i = Constant <value = int64 {0}> () t = Gather (s, i) }",
        "m (float[b,h,q,k] s) => (int64[b,h,q,k] t) { t = Cast <to = 7> (s) }",
    ],
)
def test_a_graph_of_flex_attention_keeps_the_type(body):
    feeds = {n: np.zeros((1, 1, 2, 2), np.float32) for n in "QKV"}
    for name in ("score_mod", "prob_mod"):
        made = model(
            feeds, opset=21, domain="ai.onnx.preview", op="FlexAttention", **{name: parse_graph(body)}
        )
        with pytest.raises(sabir.EvaluationError, match=name):
            sabir.evaluate(made, feeds)
        with pytest.raises(sabir.InferenceError, match=name):
            sabir.infer(made, strict=True)


def test_shapes_are_symbolic():
    b = Builder(23)
    wide, wider = parse_dim("4*d"), parse_dim("4*v")
    shapes = (("q", "new", wide), ("k", "t", wide), ("v", "t", wider))
    q, k, v = (b.input(name, "float", ["b", *shape]) for name, *shape in shapes)
    past = [b.input(f"past_{size}", "float", ["b", 4, "old", size]) for size in ("d", "v")]
    made = b.op("Attention", q, k, v, None, *past, outputs=4, q_num_heads=4, kv_num_heads=4)
    for value in made:
        b.output(value)

    assert [str(v.type) for v in sabir.infer(b.model()).graph.outputs] == [
        "float[b,new,4*v]",
        "float[b,4,old+t,d]",
        "float[b,4,old+t,v]",
        "float[b,4,new,old+t]",
    ]
