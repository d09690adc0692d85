"""A decoder that reads what an encoder made of the input: two subgraphs, as of T5 and Whisper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError, UnsupportedError
from sabir.ir import TensorType
from sabir.opsets.families.generation.decoders import nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.opsets.typing import Array, Subgraph

_STATES = 3  # the rank of the encoder's hidden states
_LEAD = ()  # keys and values are tensors of their own
_LOGITS_RANK = 3
_KEYS = 4  # tensors of a layer: keys and values of the tokens, and of what the encoder read
_OWN = 2  # of them those of the tokens
_BEFORE = 2  # results of an encoder before the keys: logits and hidden states


class EncoderDecoder:
    """Sequences that a decoder continues token by token, `beams` of them for each row that the encoder reads.

    `fed` are the inputs of the encoder but the first tokens, which are `tokens`, [batch, sequence]; `mask` is
    the input of both graphs that says what counts in what the encoder reads, None for a model without one. An
    encoder that returns keys and values alone leaves the first tokens to the decoder.
    """

    def __init__(
        self,
        encoder: Subgraph[Array],
        decoder: Subgraph[Array],
        fed: Sequence[Array],
        tokens: Array,
        mask: Array | None,
        beams: int,
    ) -> None:
        self._encoder, self._decoder = encoder, decoder
        self._fed, self._beams = fed, beams
        self._first = tokens
        self._tokens = np.repeat(tokens, beams, axis=0)
        self._before = () if mask is None else (np.repeat(mask, beams, axis=0),)
        self._whole = _reads_all(decoder)
        self._past: tuple[Array, ...] = ()
        self._read: tuple[Array, ...] = ()

    def start(self) -> Array:
        """Return the logits of the tokens after the first ones, [batch * beams, vocabulary]."""
        with_tokens = len(self._encoder.inputs) > len(self._fed)
        fed = (*self._fed, self._first) if with_tokens else tuple(self._fed)
        results = self._encoder(*fed)
        states, layers = self._layout()
        wanted = _KEYS * layers + _BEFORE if with_tokens else (_KEYS - _OWN) * layers
        if len(results) != wanted:
            raise EvaluationError(
                f"before a decoder of {layers} layers an encoder must have {wanted} results, and this one "
                f"has {len(results)}"
            )
        if not with_tokens:
            self._read = self._repeated(results)
            self._past = tuple(nothing(kind, len(self._tokens), _LEAD) for kind in self._own_types(layers))
            return self._run(self._tokens)
        logits, hidden, *caches = results
        if states:
            self._before = (*self._before, *self._repeated([hidden]))
        self._past = self._repeated(caches[: _OWN * layers])
        self._read = self._repeated(caches[_OWN * layers :])
        return np.repeat(_last(logits), self._beams, axis=0)

    def step(self, tokens: Array) -> Array:
        """Append a token to each sequence, and return the logits of the tokens after it."""
        column = tokens[:, None].astype(np.int32)
        self._tokens = np.concatenate([self._tokens, column], axis=1)
        return self._run(self._tokens if self._whole else column)

    def reorder(self, rows: Array) -> None:
        """Replace each sequence by the one with a number; both must be of the same row of the encoder."""
        self._tokens = self._tokens[rows]
        self._past = tuple(past[rows] for past in self._past)

    def _repeated(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(np.repeat(x, self._beams, axis=0) for x in arrays)

    def _layout(self) -> tuple[bool, int]:
        """Return whether the decoder reads hidden states, and how many layers it has."""
        kinds = self._decoder.inputs
        lead = 1 + len(self._before)
        states = len(kinds) > lead and _rank(kinds[lead]) == _STATES
        layers, rest = divmod(len(kinds) - lead - states, _KEYS)
        if rest or layers < 1:
            raise UnsupportedError(
                f"a decoder after an encoder has {_KEYS} inputs for each layer, after tokens, mask and "
                f"hidden states, and this one has {len(kinds)} inputs; a past and present that share a "
                "buffer are not supported"
            )
        return states, layers

    def _own_types(self, layers: int) -> tuple[object, ...]:
        lead = len(self._decoder.inputs) - _KEYS * layers
        return self._decoder.inputs[lead : lead + _OWN * layers]

    def _run(self, ids: Array) -> Array:
        results = self._decoder(ids.astype(np.int32), *self._before, *self._past, *self._read)
        if len(results) != len(self._past) + 1:
            raise EvaluationError(
                f"a decoder must return logits and {len(self._past)} tensors of keys and values, and it "
                f"returns {len(results)} tensors"
            )
        self._past = results[1:]
        return _last(results[0])


def _reads_all(decoder: Subgraph[Array]) -> bool:
    """Whether a decoder reads all tokens in each step: its input is not declared as one token."""
    kind = decoder.inputs[0]
    return not (isinstance(kind, TensorType) and kind.shape is not None and kind.shape[-1] == 1)


def _last(logits: Array) -> Array:
    if logits.ndim != _LOGITS_RANK:
        raise EvaluationError(
            f"logits must have the shape [batch, sequence, vocabulary], and theirs is {list(logits.shape)}"
        )
    return logits[:, -1].astype(np.float32)


def _rank(kind: object) -> int | None:
    return len(kind.shape) if isinstance(kind, TensorType) and kind.shape is not None else None
