"""Inputs and attributes that the searches for sequences of tokens share, and their type rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from sabir.base import InferenceError, UnsupportedError
from sabir.ir import TensorType
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_one, check_rank, check_shape, type_of
from sabir.schema import Attribute, Constraint, Input, Output, at_least, tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim, Type
    from sabir.opsets.typing import Array, Subgraph

X = TypeVar("X")

TOKENS = Constraint("I", tensors("int32"))
_NUMBER = "a tensor of one element"
ALONE = "Models with an encoder (`model_type` 1 and 2), which onnxruntime refuses here too."

ATTRIBUTES = (
    Attribute(
        "decoder",
        "graph",
        "Its inputs are tokens, positions and an attention mask, int32 [batch, sequence], and for each layer "
        "the past keys and values, [2, batch, heads, past, size]; its outputs are logits, [batch, sequence, "
        "vocabulary], and for each layer all keys and values. After an encoder its inputs are tokens, the "
        "mask of T5, the hidden states if it reads them, and [batch, heads, past, size] for each layer: keys "
        "and values of tokens, and then those of the encoder.",
        required=True,
    ),
    Attribute("init_decoder", "graph", "A decoder for the prompt alone; the same one by default."),
    Attribute(
        "encoder",
        "graph",
        "Its inputs are the prompt, the mask of T5, and the first tokens; its outputs are logits, hidden "
        "states, and for each layer the keys and values of the tokens, and then those of the prompt. T5's "
        "may have no input of first tokens, and then only the last of these outputs.",
    ),
    Attribute("eos_token_id", "int", "The token at the end of a sequence.", required=True),
    Attribute("pad_token_id", "int", "The token after the end of a sequence.", required=True),
    Attribute("decoder_start_token_id", "int", "The first token after an encoder.", default=-1),
    Attribute(
        "no_repeat_ngram_size",
        "int",
        "The size of the n-grams that occur only once; 0 for no limit.",
        default=0,
        values=at_least(0),
    ),
    Attribute(
        "vocab_size", "int", "How many of the logits count; all of them if it is not positive.", default=-1
    ),
)


def model_type(default: int) -> Attribute:
    """Return the attribute that says what the subgraphs are."""
    return Attribute(
        "model_type", "int", "0: a decoder; 1: an encoder and a decoder; 2: Whisper.", default=default
    )


def prompt(of: Constraint) -> Input:
    """Return the input of the prompt."""
    return Input(
        "input_ids",
        of,
        "The tokens of the prompts, [batch, sequence], padded in front.",
        differentiable=False,
        to_subgraph=True,
    )


def length(name: str, description: str, *, optional: bool = False) -> Input:
    """Return an input of one integer."""
    return Input(name, TOKENS, description, optional=optional, differentiable=False)


MAX_LENGTH = length("max_length", f"The length of the results, {_NUMBER}.")
MIN_LENGTH = length("min_length", f"The length before which no sequence ends, {_NUMBER}.", optional=True)
ATTENTION_MASK = Input(
    "attention_mask",
    TOKENS,
    "1 for the tokens of the prompts that count, [batch, sequence]; those that are no padding by default.",
    optional=True,
    differentiable=False,
    to_subgraph=True,
)


def repetition_penalty(of: Constraint) -> Input:
    """Return the input of the penalty of tokens that a sequence has already."""
    return Input(
        "repetition_penalty",
        of,
        f"Divides positive scores of tokens that a sequence has, and multiplies negative ones; {_NUMBER}.",
        optional=True,
        differentiable=False,
    )


def masks(of: Constraint) -> tuple[Input, Input]:
    """Return the inputs of the masks of the vocabulary."""
    return (
        Input(
            "vocab_mask", of, "0 for tokens that are never generated, [vocabulary].", optional=True,
            differentiable=False,
        ),
        Input(
            "prefix_vocab_mask",
            of,
            "0 for tokens that are not generated first, [batch, vocabulary].",
            optional=True,
            differentiable=False,
        ),
    )  # fmt: skip


def inputs(penalty: Constraint) -> tuple[Input, ...]:
    """Return the inputs of a search that follows one sequence for each prompt, in the order of `Prompts`."""
    return (
        prompt(TOKENS),
        MAX_LENGTH,
        MIN_LENGTH,
        repetition_penalty(penalty),
        *masks(TOKENS),
        ATTENTION_MASK,
    )


FOLLOWED = Output(
    "sequences",
    TOKENS,
    "The sequences, [batch, max_length]; the token at the end of a sequence and all after it are "
    "`pad_token_id`.",
)


def check_model(name: str, kind: int) -> None:
    """Raise UnsupportedError for a model with an encoder."""
    if kind != 0:
        raise UnsupportedError(f"{name} generates with decoders (model_type 0), and model_type is {kind}")


class Prompts(NamedTuple, Generic[X]):
    """The inputs that all searches have."""

    ids: X
    longest: X
    shortest: X | None = None
    penalty: X | None = None
    vocab_mask: X | None = None
    prefix_mask: X | None = None
    mask: X | None = None


def infer(
    prompts: Prompts[TensorType],
    vocab_size: int,
    graphs: Sequence[Subgraph[Type | None] | None],
    begin: TensorType | None = None,
    **ones: TensorType | None,
) -> tuple[Dim, Dim, Dim]:
    """Return the batch, the length of the results and the size of the vocabulary; infer the graphs.

    The last of the graphs is the decoder. `begin` and `ones` are those of `check`. Raises InferenceError for
    shapes that do not fit.
    """
    logits: Type | None = None
    for graph in graphs:
        if graph is not None:
            (logits, *_) = graph(*graph.inputs)
    shape = logits.shape if isinstance(logits, TensorType) else None
    vocabulary = vocab_size if vocab_size > 0 else shape[-1] if shape else None
    return *check(prompts, vocabulary, begin, **ones), vocabulary


def check(
    prompts: Prompts[TensorType],
    vocabulary: Dim,
    begin: TensorType | None = None,
    **ones: TensorType | None,
) -> tuple[Dim, Dim]:
    """Return the batch and the length of the results.

    `begin` is the type of the tokens that the results begin with, [batch, sequence], where these are not the
    prompts; prompts of floats are features, [batch, size, frames]. `ones` has further inputs of one element.
    Raises InferenceError for shapes that do not fit.
    """
    check_rank("input_ids", prompts.ids, 3 if prompts.ids.element.is_float else 2)
    numbers = {
        "max_length": prompts.longest,
        "min_length": prompts.shortest,
        "repetition_penalty": prompts.penalty,
        **ones,
    }
    for name, kind in numbers.items():
        check_one(name, kind)
    batch, *sizes = prompts.ids.shape or (None, None)
    check_shape("vocab_mask", prompts.vocab_mask, vocabulary)
    check_shape("prefix_vocab_mask", prompts.prefix_mask, batch, vocabulary)
    check_shape("attention_mask", prompts.mask, batch, sizes[-1])
    check_shape("decoder_input_ids", begin, batch, None)
    sequence = (begin or prompts.ids).shape
    count = sequence[1] if sequence else None
    known = contents.ints(prompts.longest.known)
    length = known[0] if known else None
    if isinstance(count, int) and (count < 1 or (length is not None and length <= count)):
        raise InferenceError(f"prompts of {count} tokens cannot be continued to `max_length` {length}")
    return batch, length


def check_arrays(prompts: Prompts[Array], begin: TensorType | None = None, **ones: Array | None) -> None:
    """Raise InferenceError for arrays whose shapes do not fit; `begin` is that of `check`."""
    kinds = [None if x is None else type_of(x) for x in prompts[2:]]
    others = {name: None if x is None else type_of(x) for name, x in ones.items()}
    check(Prompts(type_of(prompts.ids), type_of(prompts.longest), *kinds), None, begin, **others)
