"""Calls of the operators that search with beams: their inputs, outputs and meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import FLOAT, INT32
from sabir.ir import TensorType, sub
from sabir.opsets.families.generation import beams, following, ports, processors
from sabir.opsets.families.generation.decoders import Decoder
from sabir.opsets.families.generation.encoders import EncoderDecoder
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import as_number, check_rank, type_of
from sabir.schema import Attribute, Constraint, Input, Output, tensors

if TYPE_CHECKING:
    from sabir.ir import Dim, Type
    from sabir.opsets.families.generation.timestamps import Timestamps
    from sabir.opsets.typing import Array, Subgraph
    from sabir.schema import Call

X = TypeVar("X")

T = Constraint("T", tensors("float", "float16"))
F = Constraint("F", tensors("float", "int32", "float16"))
I = ports.TOKENS  # ruff: ignore[ambiguous-variable-name]  the published name
M = Constraint("M", tensors("int32"))

LACKS = "Decoders whose past and present share a buffer."

DECODER, T5, WHISPER = range(3)
"""What `model_type` says: a decoder alone, an encoder of tokens, an encoder of features."""

INPUTS = (
    ports.prompt(F),
    ports.MAX_LENGTH,
    ports.MIN_LENGTH,
    ports.length("num_beams", "The number of sequences that are continued, a tensor of one element."),
    ports.length(
        "num_return_sequences",
        "How many of them are returned, a tensor of one element up to `num_beams`.",
    ),
    Input(
        "length_penalty",
        T,
        "A score is the logarithm of a probability divided by the length to this power, 1 by default.",
        optional=True,
        differentiable=False,
    ),
    ports.repetition_penalty(T),
    *ports.masks(M),
    ports.ATTENTION_MASK,
    Input(
        "decoder_input_ids",
        I,
        "The first tokens after an encoder of features, [batch, initial_sequence]; `decoder_start_token_id` "
        "by default.",
        optional=True,
        differentiable=False,
    ),
    ports.length("logits_processor", "A number: 0, or 1 for Whisper's timestamps.", optional=True),
)
OUTPUTS = (
    Output("sequences", I, "The sequences, [batch, num_return_sequences, max_length], padded at the end."),
    Output("sequences_scores", T, "Their scores, [batch, num_return_sequences], falling.", optional=True),
    Output(
        "scores",
        T,
        "The sum of logarithms of probabilities for each next token of each step, "
        "[max_length - sequence, batch, num_beams, vocabulary]; 0 for steps after the last.",
        optional=True,
    ),
)
EARLY = Attribute(
    "early_stopping",
    "int",
    "1: a search ends with `num_beams` complete sequences; 0: when no other can be better.",
    default=0,
)
_SCORES = 2  # the output


class Inputs(NamedTuple, Generic[X]):
    """The inputs of a call; the last three are Whisper's."""

    ids: X
    longest: X
    shortest: X | None
    num_beams: X
    returned: X
    length_penalty: X | None = None
    penalty: X | None = None
    vocab_mask: X | None = None
    prefix_mask: X | None = None
    mask: X | None = None
    decoder_ids: X | None = None
    processor: X | None = None
    layer_heads: X | None = None
    extra_ids: X | None = None
    temperature: X | None = None

    def prompts(self) -> ports.Prompts[X]:
        """Return the inputs that all searches have."""
        return ports.Prompts(
            self.ids,
            self.longest,
            self.shortest,
            self.penalty,
            self.vocab_mask,
            self.prefix_mask,
            self.mask,
        )

    def ones(self) -> dict[str, X | None]:
        """Return the other inputs of one element."""
        return {
            "num_beams": self.num_beams,
            "num_return_sequences": self.returned,
            "length_penalty": self.length_penalty,
            "logits_processor": self.processor,
            "temperature": self.temperature,
        }


def infer(
    name: str,
    given: Inputs[TensorType],
    *,
    decoder: Subgraph[Type | None],
    init_decoder: Subgraph[Type | None] | None,
    encoder: Subgraph[Type | None] | None,
    model_type: int,
    vocab_size: int,
    **_: Any,
) -> tuple[TensorType, TensorType, TensorType]:
    """Return the types of the sequences, of their scores and of those of all steps.

    Raises InferenceError for shapes that do not fit, UnsupportedError for calls that are not computed.
    """
    check_rank("decoder_input_ids", given.decoder_ids, 2)
    kind = model_type
    _check(name, given.ids, given.decoder_ids, given.processor, encoder, kind)
    begin = None if kind == DECODER else _begin(given)
    batch, length, vocabulary = ports.infer(
        given.prompts(), vocab_size, (init_decoder, decoder), begin, **given.ones()
    )
    if encoder is not None and begin is not None:
        mask = [] if kind == WHISPER else [TensorType(INT32, given.ids.shape)]
        encoder(*[given.ids, *mask, begin][: len(encoder.inputs)])
    count, width = _known(given.returned), _known(given.num_beams)
    start = begin or given.ids
    steps = sub(length, start.shape[1]) if start.shape else None
    scores = next((x.element for x in (given.length_penalty, given.penalty) if x is not None), FLOAT)
    return (
        TensorType(given.longest.element, (batch, count, length)),
        TensorType(scores, (batch, count)),
        TensorType(scores, (steps, batch, width, vocabulary)),
    )


def _begin(given: Inputs[TensorType]) -> TensorType:
    """Return the type of the tokens that sequences after an encoder begin with."""
    if given.decoder_ids is not None:
        return given.decoder_ids
    return TensorType(INT32, ((given.ids.shape or (None,))[0], 1))


def _check(name: str, ids: TensorType, begin: object, processor: object, encoder: object, kind: int) -> None:
    """Raise UnsupportedError for a call that no model of its kind makes."""
    if kind not in {DECODER, T5, WHISPER}:
        raise UnsupportedError(f"{name} has no `model_type` {kind}: 0, 1 and 2 are a decoder, T5 and Whisper")
    tokens = ids.element is INT32
    if kind == DECODER and not tokens:
        raise UnsupportedError(f"{name} takes prompts that are no tokens only with an encoder")
    if kind == DECODER and (begin is not None or processor is not None):
        raise UnsupportedError(
            f"{name} takes `decoder_input_ids` and `logits_processor` only with an encoder"
        )
    if kind == DECODER:
        return
    if encoder is None:
        raise UnsupportedError(f"{name} with `model_type` {kind} needs the attribute `encoder`")
    if tokens != (kind == T5):
        raise UnsupportedError(f"{name} reads tokens with `model_type` 1, and features with 2")
    if kind == T5 and begin is not None:
        raise UnsupportedError(f"{name} takes `decoder_input_ids` only with `model_type` 2")


def _known(number: TensorType) -> Dim:
    known = contents.ints(number.known)
    return known[0] if known else None


def evaluate(
    name: str,
    given: Inputs[Array],
    call: Call,
    stamps: Timestamps | None = None,
    *,
    decoder: Subgraph[Array],
    init_decoder: Subgraph[Array] | None,
    encoder: Subgraph[Array] | None,
    model_type: int,
    **attributes: Any,
) -> tuple[Array, Array, Array | None]:
    """Return the sequences, their scores and those of all steps, where the call has this output.

    `stamps` are the rules for `logits_processor` 1. Raises UnsupportedError and ValueError for calls that are
    not computed, EvaluationError for graphs that do not fit each other.
    """
    kind, pad = model_type, attributes["pad_token_id"]
    _check(name, type_of(given.ids), given.decoder_ids, given.processor, encoder, kind)
    ids = given.ids if kind == DECODER else _first_tokens(given, attributes["decoder_start_token_id"])
    ports.check_arrays(given.prompts(), None if kind == DECODER else type_of(ids), **given.ones())
    settings = _settings(
        given, early=attributes["early_stopping"] != 0, pad=pad, vocabulary=attributes["vocab_size"]
    )
    width = settings.beams
    rules = processors.of_prompts(
        given.prompts(),
        end=attributes["eos_token_id"],
        ngram=attributes["no_repeat_ngram_size"],
        copies=width,
    )
    if given.temperature is not None:
        rules = replace(rules, temperature=float(as_number("temperature", given.temperature)))
    if given.processor is not None and int(as_number("logits_processor", given.processor)) != 0:
        rules = replace(rules, timestamps=_stamps(name, stamps))
    found = beams.searched(
        _decoder(decoder, init_decoder, ids, given.mask, pad, width)
        if encoder is None or kind == DECODER
        else _after(encoder, decoder, given, ids, pad, width),
        rules,
        settings,
        ids,
        following.length_of(ids, given.longest),
        with_steps=len(call.outputs) > _SCORES and call.outputs[_SCORES],
    )
    penalties = [x.dtype for x in (given.length_penalty, given.penalty) if x is not None]
    element = penalties[0] if penalties else np.dtype(np.float32)
    steps = None if found.steps is None else found.steps.astype(element, copy=False)
    return found.sequences, found.scores.astype(element, copy=False), steps


def _first_tokens(given: Inputs[Array], start: int) -> Array:
    if given.decoder_ids is not None:
        return given.decoder_ids
    if start < 0:
        raise ValueError("`decoder_start_token_id`, the first token after an encoder, is not given")
    return np.full((len(given.ids), 1), start, np.int32)


def _stamps(name: str, stamps: Timestamps | None) -> Timestamps:
    if stamps is None:
        raise UnsupportedError(
            f"{name} has no attributes for the tokens of timestamps: `logits_processor` 1 needs "
            "WhisperBeamSearch with `beginning_timestamp_token_id`"
        )
    return stamps


def _decoder(
    graph: Subgraph[Array],
    first: Subgraph[Array] | None,
    ids: Array,
    mask: Array | None,
    pad: int,
    width: int,
) -> Decoder:
    masks = None if mask is None else np.repeat(mask, width, axis=0)
    return Decoder(graph, first, np.repeat(ids, width, axis=0), masks, pad)


def _after(
    encoder: Subgraph[Array],
    decoder: Subgraph[Array],
    given: Inputs[Array],
    ids: Array,
    pad: int,
    width: int,
) -> EncoderDecoder:
    if given.ids.dtype != np.int32:
        return EncoderDecoder(encoder, decoder, [given.ids], ids, None, width)
    mask = given.mask
    if mask is None:  # T5's texts may end with padding that counts; that in front does not
        mask = (np.cumsum(given.ids != pad, axis=1) > 0).astype(np.int32)
    return EncoderDecoder(encoder, decoder, [given.ids, mask], ids, mask, width)


def _settings(given: Inputs[Array], *, early: bool, pad: int, vocabulary: int) -> beams.Settings:
    width = int(as_number("num_beams", given.num_beams))
    kept = int(as_number("num_return_sequences", given.returned))
    if not 1 <= kept <= width:
        raise ValueError(f"`num_return_sequences` is {kept}, and must be in [1, {width}], up to `num_beams`")
    power = given.length_penalty
    penalty = 1.0 if power is None else float(as_number("length_penalty", power))
    return beams.Settings(width, kept, penalty, early, pad, vocabulary)
