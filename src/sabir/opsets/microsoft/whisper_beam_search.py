"""WhisperBeamSearch: texts of sounds, the most probable ones of several that a decoder generates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import FLOAT
from sabir.ir import TensorType
from sabir.opsets.families.generation import beam_calls, ports
from sabir.opsets.families.generation.generation_examples import FROM_SOUND, SOUNDS, changed, one, reading
from sabir.opsets.families.generation.timestamps import Timestamps
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.opsets.typing import Array
    from sabir.schema import Call

whisper_beam_search = Operator(
    "WhisperBeamSearch",
    domain="com.microsoft",
    summary="The texts of sounds: the most probable sequences of Whisper's decoder that a beam search finds.",
    lacks=(
        beam_calls.LACKS,
        "`cross_qk` with `cross_qk_layer_head` and `extra_decoding_ids`, and `non_speech_probs`.",
    ),
)

_TOKENS = {
    "translate_token_id": "The token of a translation.",
    "transcribe_token_id": "The token of a transcription.",
    "start_of_lm_token_id": "The token of a text without a sound.",
    "no_speech_token_id": "The token of a sound without speech.",
    "no_timestamps_token_id": "The token of a text without times.",
    "beginning_timestamp_token_id": "The first token of a time.",
}
V = Constraint("V", tensors("float"))

v1 = whisper_beam_search.first(
    1,
    inputs=[
        *beam_calls.INPUTS,
        Input(
            "cross_qk_layer_head",
            beam_calls.I,
            "Layers and heads whose scores `cross_qk` has, [count, 2].",
            optional=True,
            differentiable=False,
        ),
        Input(
            "extra_decoding_ids",
            beam_calls.I,
            "Tokens after `decoder_input_ids`, [batch, extra], for which `cross_qk` has scores.",
            optional=True,
            differentiable=False,
        ),
        Input(
            "temperature",
            beam_calls.T,
            "Divides logarithms of probabilities, a tensor of one element.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[
        *beam_calls.OUTPUTS,
        Output(
            "cross_qk",
            V,
            "Scores of the attention to the sound, [batch, num_return_sequences, count, length, frames].",
            optional=True,
        ),
        Output("non_speech_probs", beam_calls.T, "Probabilities of no speech, [batch].", optional=True),
    ],
    attributes=[
        *ports.ATTRIBUTES,
        ports.model_type(beam_calls.WHISPER),
        beam_calls.EARLY,
        Attribute("decoder_output_cross_qk", "int", "1: `cross_qk` is computed."),
        *(Attribute(name, "int", text) for name, text in _TOKENS.items()),
    ],
)

v1.absent("lower", "its decoder is a plan of its own, which runs for each token")
v1.absent("gradient", "the sequences are searched, which has no derivative")

_COMPUTED = 3  # outputs


@v1.infer
def infer(*inputs: Any, **attributes: Any) -> tuple[TensorType, ...]:
    given: beam_calls.Inputs[TensorType] = beam_calls.Inputs(*inputs)
    found = beam_calls.infer("WhisperBeamSearch", given, **attributes)
    batch = (given.ids.shape or (None,))[0]
    return *found, TensorType(FLOAT, (batch, None, None, None, None)), TensorType(found[1].element, (batch,))


@v1.evaluate
def evaluate(
    *inputs: Any,
    call: Call,
    decoder_output_cross_qk: int | None,
    **attributes: Any,
) -> tuple[Array | None, ...]:
    given: beam_calls.Inputs[Array] = beam_calls.Inputs(*inputs)
    if (
        decoder_output_cross_qk
        or any(call.outputs[_COMPUTED:])
        or given.layer_heads is not None
        or given.extra_ids is not None
    ):
        raise UnsupportedError(
            "WhisperBeamSearch does not compute `cross_qk` and `non_speech_probs`: leave them out, and the "
            "inputs `cross_qk_layer_head` and `extra_decoding_ids`"
        )
    ids = {name: attributes.pop(name) for name in _TOKENS}
    stamps = _stamps(ids, attributes["eos_token_id"], attributes["decoder_start_token_id"])
    found = beam_calls.evaluate("WhisperBeamSearch", given, call, stamps, **attributes)
    return *found, None, None


def _stamps(ids: dict[str, int | None], end: int, start: int) -> Timestamps | None:
    first = ids["beginning_timestamp_token_id"]
    if first is None:
        return None
    known = {name: -1 if token is None else token for name, token in ids.items()}
    return Timestamps(
        end,
        start,
        known["translate_token_id"],
        known["transcribe_token_id"],
        known["start_of_lm_token_id"],
        known["no_timestamps_token_id"],
        first,
    )


@whisper_beam_search.examples
def examples() -> Iterator[Example]:
    """Sequences by onnxruntime."""
    f = np.float32
    sounds = changed(**FROM_SOUND, decoder=reading(mask=False))
    beams = one(1), one(3), one(2), one(1, f), one(1, f)
    yield Example(1, SOUNDS, [6], *beams, **sounds, outputs=2)
    allowed = [1, 0, 1, 1, 1, 1, 0, 1]
    yield Example(1, SOUNDS, [7], *beams, allowed, None, None, [[1, 3], [4, 2]], **sounds)
    stamped = changed(
        **FROM_SOUND,
        decoder=reading(mask=False),
        no_timestamps_token_id=3,
        start_of_lm_token_id=7,
        translate_token_id=4,
        transcribe_token_id=0,
    )
    single, stamps = SOUNDS[:1], (None, None, None, None, one(1), None, None, one(1.5, f))
    yield Example(1, single, [9], *beams, *stamps, **stamped, beginning_timestamp_token_id=4, outputs=2)
    yield Example(1, single, [9], *beams, *stamps, **stamped, beginning_timestamp_token_id=5, outputs=2)
    begun = None, None, None, [[5]], one(1)
    yield Example(1, single, [8], *beams, *begun, **stamped, beginning_timestamp_token_id=6)
