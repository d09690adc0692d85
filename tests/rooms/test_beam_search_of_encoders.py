"""What searches over a model with an encoder refuse, with the reason."""

import re

import numpy as np
import pytest

import sabir
from sabir.opsets.families.generation.generation_examples import (
    DECODER,
    ENCODER,
    LISTENER,
    PROMPTS,
    SOUNDS,
    reading,
)

KINDS = {"int32": "int32", "float32": "float", "float16": "float16"}
TEXT = {"model_type": 1, "encoder": ENCODER, "decoder": reading(mask=True), "decoder_start_token_id": 1}
SOUND = {"model_type": 2, "encoder": LISTENER, "decoder": reading(mask=False), "decoder_start_token_id": 1}
WIDTH = np.int32([2])


def searched(feeds, attributes, operator="BeamSearch", outputs="y"):
    """The sequences that a search finds; `feeds` has None for inputs that are left out."""
    feeds = [None if x is None else np.asarray(x) for x in feeds]
    given = {f"i{n}": x for n, x in enumerate(feeds) if x is not None}
    ports = ", ".join(f"{KINDS[x.dtype.name]}[{','.join(map(str, x.shape))}] {n}" for n, x in given.items())
    names = ", ".join("" if x is None else f"i{n}" for n, x in enumerate(feeds))
    written = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    model = sabir.parse(
        f'<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> g ({ports}) => (int32[a,b,c] y) {{\n'
        f"{outputs} = com.microsoft.{operator} <eos_token_id = 2, pad_token_id = 0, {written}> ({names}) }}"
    )
    return sabir.evaluate(model, given)["y"]


def fed(ids, *more, length=6):
    """The inputs of a search: what it begins with, the lengths and beams, and those after `num_return_sequences`."""
    return [ids, np.int32([length]), None, WIDTH, WIDTH, *more]


def without(attributes, *names):
    return {name: value for name, value in attributes.items() if name not in names}


REFUSED = [
    (
        PROMPTS,
        {**TEXT, "model_type": 3},
        "BeamSearch has no `model_type` 3: 0, 1 and 2 are a decoder, T5 and",
    ),
    (PROMPTS, without(TEXT, "encoder"), "BeamSearch with `model_type` 1 needs the attribute `encoder`"),
    (SOUNDS, TEXT, "BeamSearch reads tokens with `model_type` 1, and features with 2"),
    (PROMPTS, SOUND, "BeamSearch reads tokens with `model_type` 1, and features with 2"),
    (SOUNDS, {"decoder": DECODER}, "BeamSearch takes prompts that are no tokens only with an encoder"),
    (PROMPTS, without(TEXT, "decoder_start_token_id"), "`decoder_start_token_id`, the first token after an"),
    (
        PROMPTS,
        {**TEXT, "decoder": DECODER},
        "a decoder after an encoder has 4 inputs for each layer, after tokens",
    ),
    (
        SOUNDS,
        {**SOUND, "encoder": LISTENER.replace("=> (float[b,n,8] logits, ", "=> (")},
        "must have 6 results",
    ),
]


@pytest.mark.parametrize(("ids", "attributes", "message"), REFUSED)
def test_calls_are_refused(ids, attributes, message):
    with pytest.raises(sabir.SabirError, match=re.escape(message)):
        searched(fed(ids), attributes)


def test_first_tokens_belong_to_features():
    more = (None, None, None, None, None, PROMPTS)
    with pytest.raises(sabir.SabirError, match="takes `decoder_input_ids` only with `model_type` 2"):
        searched(fed(PROMPTS, *more), TEXT)
    with pytest.raises(
        sabir.SabirError, match="`decoder_input_ids` and `logits_processor` only with an encoder"
    ):
        searched(fed(PROMPTS, *more), {"decoder": DECODER})
    with pytest.raises(sabir.SabirError, match="`max_length` is 3, and the prompts have 3 tokens already"):
        searched(fed(SOUNDS, *more, length=3), SOUND)


def test_timestamps_need_their_tokens():
    more = (*(None,) * 6, np.int32([1]))
    for operator in ("BeamSearch", "WhisperBeamSearch"):
        with pytest.raises(sabir.SabirError, match=f"{operator} .* tokens of timestamps"):
            searched(fed(SOUNDS, *more), SOUND, operator)


def test_scores_of_the_attention_are_refused():
    with pytest.raises(sabir.SabirError, match="WhisperBeamSearch does not compute `cross_qk`"):
        searched(fed(SOUNDS), SOUND, "WhisperBeamSearch", outputs="y, , , scores")
    with pytest.raises(sabir.SabirError, match="WhisperBeamSearch does not compute `cross_qk`"):
        searched(fed(SOUNDS, *(None,) * 8, PROMPTS[:, :1]), SOUND, "WhisperBeamSearch")


def test_one_more_token_is_that_of_the_encoder():
    """onnxruntime runs a decoder without inputs then."""
    longer, shorter = (searched(fed(PROMPTS, length=n), TEXT) for n in (3, 2))
    assert shorter.shape == (2, 2, 2)
    assert shorter[:, 0, 1].tolist() == [
        4,
        5,
    ]  # the greatest products of the mean of the words by the weights
    assert longer.shape == (2, 2, 3)


def test_padding_in_front_does_not_count():
    padded = np.int32([[0, 0, 4, 0]])
    found = searched(fed(padded), TEXT)
    np.testing.assert_array_equal(found, searched(fed(padded, *(None,) * 4, np.int32([[0, 0, 1, 1]])), TEXT))
