"""Operators that onnxruntime 1.32 adds, beside what its CPU provider computed of the rooms' examples."""

import json
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.opsets import STANDARD
from sabir.schema import Example
from support.rooms import answers_of, examples_of, model_of

RECORD = json.loads((Path(__file__).parent / "onnxruntime-1.32.json").read_text("utf-8"))
"""The outputs of each example, by operator; None where its Python package takes no such arrays."""
LOGITS = np.array([[0.5, -1, 2, 0.25]], np.float32)


@pytest.mark.parametrize("name", RECORD)
def test_it_computes_the_same(name, engine):
    operator = STANDARD.find("com.microsoft", name)
    examples = examples_of(operator)
    assert len(examples) == len(RECORD[name])
    for example, outputs in zip(examples, RECORD[name], strict=True):
        for ours, theirs in zip(answers_of(operator, example, engine), outputs or [], strict=False):
            values = np.reshape(np.array(theirs, np.float64), ours.shape)
            np.testing.assert_allclose(
                ours.astype(np.float64), values, rtol=1e-3 if ours.itemsize < 4 else 1e-5, atol=1e-6
            )


def routed(outputs, inputs="x, b", **attributes):
    text = ", ".join(f"{name} = {value}" for name, value in {"top_k": 1, **attributes}.items())
    results = ", ".join(f"float[t,4] {name}" for name in outputs.split(", ") if name)
    return sabir.parse(
        f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>'
        f"g (float[t,4] x, float[4] b, float[4,4] w) => ({results}) {{"
        f"{outputs} = com.microsoft.MoEGroupRouter <{text}> ({inputs}) }}"
    )


def test_all_scores_of_a_router(engine):
    bias, weights = np.array([1, 0, -1, 0], np.float32), 2 * np.eye(4, dtype=np.float32)[::-1]
    feeds = {"x": LOGITS, "b": bias, "w": weights}
    sigmoids = 1 / (1 + np.exp(-LOGITS))
    found = sabir.Session(routed(", s, p"), engine=engine).run(feeds)
    np.testing.assert_allclose(found["p"], sigmoids, rtol=1e-6)
    np.testing.assert_allclose(found["s"], sigmoids + bias, rtol=1e-6)
    found = sabir.Session(routed(", s, p", "x, b, w"), engine=engine).run(feeds)
    np.testing.assert_allclose(found["p"], 1 / (1 + np.exp(-2 * LOGITS[:, ::-1])), rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (routed("p, s"), "the outputs must be `router_probs`, or both"),
        (routed(", s, p", n_group=2), "`selection_scores` are of one group of experts, and `n_group` is 2"),
        (routed("p", "x, b, w"), "`projection_weight` needs the outputs"),
        (routed("p", n_group=3), "4 experts cannot be 3 groups of one size, of which 1 are chosen"),
        (routed("p", n_group=2, topk_group=3), "2 groups of one size, of which 3 are chosen"),
    ],
)
def test_routers_are_refused(model, message):
    feeds = {"x": LOGITS, "b": LOGITS[0], "w": np.eye(4, dtype=np.float32)}
    with pytest.raises(sabir.SabirError, match=message):
        sabir.evaluate(model, feeds)


F = np.float32
SEQUENCE, FILTERS = np.ones((1, 2, 3), F), np.ones((2, 1, 2), F)


def called(call, feeds):
    """The first result of a call of the domain."""
    kinds = {"float32": "float", "int32": "int32"}
    ports = ", ".join(f"{kinds[x.dtype.name]}[{','.join(map(str, x.shape))}] {n}" for n, x in feeds.items())
    model = sabir.parse(
        f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> g ({ports}) => (y) {{ {call} }}'
    )
    return sabir.evaluate(model, feeds)["y"]


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("input_channel_offset = 1", "CausalConvWithState needs `input_channel_offset` 0, and has 1"),
        ("input_channels = 1", "CausalConvWithState needs `input_channels` 0, and has 1"),
        ("state_channels_last = 1", "CausalConvWithState needs `state_channels_last` -1, and has 1"),
        ("state_length = 4", "CausalConvWithState needs `state_length` 0, and has 4"),
        ("state_update_capacity = 1", "CausalConvWithState needs `state_update_capacity` 0, and has 1"),
    ],
)
def test_what_only_cuda_computes_of_convolutions_is_refused(attribute, message):
    with pytest.raises(sabir.SabirError, match=message):
        called(
            f"y, s = com.microsoft.CausalConvWithState <{attribute}> (x, w)", {"x": SEQUENCE, "w": FILTERS}
        )


def test_gates_are_not_projected():
    feeds = {"x": SEQUENCE, "w": np.ones((3, 1), F)}
    with pytest.raises(sabir.SabirError, match="GatedAdd does not compute its gates"):
        called("y = com.microsoft.GatedAdd (x, x, x, w)", feeds)


ATTENTION = {
    "q": np.array([[[1, 2, 3, 4]]], F),
    "past": np.zeros((1, 1, 1, 4), F),
    "length": np.int32([1]),
    "total": np.int32(2),
    "g": np.array([1, 0.5, 2, 1], F),
}


def attended(epsilons, lengths=""):
    call = "y = com.microsoft.GroupQueryAttention <num_heads = 1, kv_num_heads = 1, {}> (q, q, q, past, past, {}g, g{})"
    return called(call.format(epsilons, "length, total" + "," * 8, lengths), ATTENTION)


def test_heads_of_queries_and_keys_have_epsilons():
    """The past key scores 0 and has no value, so the result is a part of the value, by the score of its own key."""

    def part(query, key):
        x = ATTENTION["q"][0, 0].astype(float)
        rows = [x / np.sqrt((x * x).mean() + epsilon) * ATTENTION["g"] for epsilon in (query, key)]
        return x / (1 + np.exp(-rows[0] @ rows[1] / 2))

    np.testing.assert_allclose(attended("qk_norm_epsilon = 20.0")[0, 0], part(20, 20), rtol=1e-6)
    apart = attended("qk_norm_epsilon = 20.0, q_norm_epsilon = 50.0")
    np.testing.assert_allclose(apart[0, 0], part(50, 20), rtol=1e-6)
    apart = attended("q_norm_epsilon = 50.0, k_norm_epsilon = 100.0")
    np.testing.assert_allclose(apart[0, 0], part(50, 100), rtol=1e-6)


def padded(lengths=(2, 3), keys=(5, 7), rows=8, cache="past, past"):
    """Two items of three rows of queries, of which `lengths` are none of padding, after a cache."""
    drawn = np.random.default_rng(0).standard_normal
    feeds = {"q": drawn((2, 3, 8)), "k": drawn((2, 3, 4)), "past": drawn((2, 1, rows, 4))}
    feeds = {name: x.astype(F) for name, x in feeds.items()}
    feeds |= {"ends": np.array([n - 1 for n in keys], np.int32), "total": np.array(max(keys), np.int32)}
    feeds["own"] = np.array(lengths, np.int32)
    call = (
        "y, c, d = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1>"
        f"(q, k, k, {cache}, ends, total,,,,,,,,,, {{}})"
    )
    return call, feeds


def test_queries_that_are_padded_at_the_end_attend_as_if_alone():
    call, feeds = padded()
    found = called(call.format("own"), feeds)
    for item, (own, end) in enumerate(zip((2, 3), (5, 7), strict=True)):
        alone = {n: feeds[n][item : item + 1] for n in ("q", "k", "past", "ends", "own")}
        alone |= {n: alone[n][:, :own] for n in ("q", "k")} | {"total": np.int32(end)}
        np.testing.assert_allclose(
            found[item, :own], called(call.format("").replace(",,,,,,,,,, ", ""), alone)[0], rtol=1e-6
        )
    assert not found[0, 2:].any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": (4, 3)}, r"`query_seqlens` must be from 0 to \[3, 3\], and is \[4, 3\]"),
        ({"lengths": (-1, 3)}, r"`query_seqlens` must be from 0"),
        ({"lengths": (2, 3), "keys": (1, 7)}, r"`query_seqlens` must be from 0 to \[1, 3\]"),
        ({"lengths": (2,)}, "`query_seqlens` must have the shape"),
        ({"keys": (5, 8), "rows": 5, "lengths": (2, 2)}, r"leaves \[3, 6\] keys to a cache of 5 rows"),
        ({"keys": (5, 8), "lengths": (2, 2)}, "a cache of 8 rows has no room for 3 rows after 6 keys"),
        ({"cache": ","}, "`query_seqlens` needs a cache"),
    ],
)
def test_lengths_of_queries_that_fit_no_cache_are_refused(changes, message):
    call, feeds = padded(**changes)
    with pytest.raises(sabir.SabirError, match=message):
        called(call.format("own"), feeds)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quant_type": "wfp4afp8"}, "QMoE lacks activations of 8-bit floats"),
        ({"block_size": 16}, "`quant_type` fp4 needs 4 bits and `block_size` 32"),
        ({"quant_type": "nvfp4", "block_size": 16}, "`quant_type` nvfp4 needs `fc1_scales` of float8e4m3fn"),
        ({4: None}, "`quant_type` fp4 needs `fc1_scales` of float8e8m0"),
        ({12: np.zeros((2, 64, 1), np.uint8)}, "floats have no `fc1_zero_points`"),
        ({16: np.ones(3, F)}, "`fc1_global_scale` must have the shape"),
    ],
)
def test_mixtures_of_small_floats_that_are_refused(changes, message):
    """Changes of a call, by attribute, or by the number of an input from 1 on."""
    call = small_floats("fp4")
    inputs = [changes.get(number, x) for number, x in enumerate(call.inputs, 1)]  # ruff: ignore[reimplemented-starmap]  clearer
    attributes = call.attributes | {name: value for name, value in changes.items() if isinstance(name, str)}
    with pytest.raises(sabir.SabirError, match=message):
        mixed(inputs, attributes)


def test_scales_of_experts_that_nvfp4_needs():
    call = small_floats("nvfp4")
    with pytest.raises(sabir.SabirError, match="`quant_type` nvfp4 needs `fc1_global_scale`"):
        mixed(call.inputs[:9], call.attributes)


MIXTURE = STANDARD.find("com.microsoft", "QMoE")


def small_floats(kind):
    return next(e for e in examples_of(MIXTURE) if e.attributes.get("quant_type") == kind)


def mixed(inputs, attributes):
    return sabir.evaluate(*model_of(MIXTURE, Example(1, *inputs, **attributes)))
