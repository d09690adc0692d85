"""`TextGenerator`: a language model that continues text."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from sabir.base import FeedError, UnsupportedError
from sabir.generation._configuration import Configuration, find_files, read_configuration
from sabir.generation._decoder import Decoder, Encoder, with_buffers
from sabir.generation._rewriting import merged_branches, with_all_positions
from sabir.generation._running import Row, Run
from sabir.generation._text_pieces import TextPieces
from sabir.generation._tokenizer import ChatTemplate, encoded, read_tokenizer
from sabir.ir import Model
from sabir.runtime import Session, why_not_compiled
from sabir.serial import load

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias, Unpack

    from sabir.generation._cache import Cache, Padding
    from sabir.generation._configuration import Files
    from sabir.generation._results import Generation
    from sabir.generation._settings import Options, Settings
    from sabir.generation._tokenizer import Tokenizer
    from sabir.ir import Array

    Prompt: TypeAlias = str | Sequence[int] | Array

_ONE_LENGTH = "GroupQueryAttention"  # it has the positions of each row from the front, and none between


class TextGenerator:
    """A language model that continues prompts: greedily, by sampling, or by beam search.

    `model` is a folder of onnxruntime-genai's builder, of Optimum, or with one .onnx file and a
    `config.json`; or a model, or the path of one. A folder has the tokenizer, the chat template, the
    context length, the ids that end a text, and the defaults of the options; keywords replace them.

    `cache` maps each input of the model's cache to the output that is its next value; without it they are
    found by their names, such as `past_key_values.0.key` and `present.0.key`, else by their shapes.
    `tokenizer` is an object with `encode` and `decode`; without any, prompts and results are ids.
    `context_length` is the number of tokens that prompt and answer may have, and `stop_ids` end an answer.
    `engine` and `threads` are those of `sabir.Session`.

    The cache of the last call stays: a prompt that begins with the same tokens is only computed from the
    first different one on. One thread at a time may use a generator.

    >>> b = sabir.Builder(21)
    >>> ids = b.input('input_ids', 'int64', ['batch', 'sequence'])
    >>> after = np.float32([[0, 9, 0, 0], [0, 0, 9, 0], [0, 0, 0, 9], [9, 0, 0, 0]])  # 1 follows 0
    >>> _ = b.output(b.Gather(b.initializer('after', after), ids), 'logits')
    >>> generator = sabir.TextGenerator(b.model())
    >>> generator.generate([2, 3], max_new_tokens=4).ids
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str],
        *,
        cache: Mapping[str, str] | None = None,
        tokenizer: Tokenizer | None = None,
        context_length: int | None = None,
        stop_ids: Iterable[int] | None = None,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        threads: int | None = None,
    ) -> None:
        """Load a model.

        Raises FileError for a folder without a model or with an invalid configuration, UnsupportedError for
        inputs that are not understood and packages that are missing, and what `sabir.Session` raises.
        """
        configuration, template, encoder = Configuration(), None, None

        def session(source: Model | Path, **options: Any) -> Session:
            return Session(source, engine=engine, threads=threads, **options)

        if isinstance(model, Model) or Path(model).is_file():
            self._source: Model | Path = model if isinstance(model, Model) else Path(model)
            first = later = self._source
        else:
            folder = Path(model)
            files, configuration = find_files(folder), read_configuration(folder)
            template = ChatTemplate.read(folder)
            tokenizer = read_tokenizer(folder) if tokenizer is None else tokenizer
            first, later = _decoders(files)
            encoder = None if files.encoder is None else Encoder(session(files.encoder))
            self._source = files.later
        self._configuration = configuration
        self._template, self._encoder = template, encoder
        buffered = None
        if engine != "reference" and not why_not_compiled():  # the interpreter would copy whole buffers
            buffered = with_buffers(later if isinstance(later, Model) else load(later), configuration, cache)
        following = session(later) if buffered is None else buffered.session(session)
        beginning = following if first is later else session(first)
        self._decoder = Decoder(beginning, following, configuration, cache, buffered)
        if encoder is not None and not self._decoder.reads_encoder:
            raise UnsupportedError(
                f"{model!s}: there is an encoder, and no input of the decoder for its results"
            )
        self._kept: list[Cache] = []
        self.tokenizer: Tokenizer | None = tokenizer
        """What turns text into ids; None if there is none."""
        self.context_length = configuration.context_length if context_length is None else context_length
        """How many tokens a prompt and its answer may have together; None if that is not known."""
        self.defaults: Settings = configuration.settings
        """The values of the options that a call does not pass."""
        if stop_ids is not None:
            self.defaults = replace(self.defaults, stop_ids=frozenset(stop_ids))

    @property
    def vocabulary_size(self) -> int | None:
        """How many tokens the model knows; None if that is not known."""
        return self._decoder.vocabulary

    @overload
    def generate(self, prompt: str, **options: Unpack[Options]) -> Generation: ...

    @overload
    def generate(
        self, prompt: list[str] | tuple[str, ...] | Sequence[Sequence[int]], **options: Unpack[Options]
    ) -> list[Generation]: ...

    @overload
    def generate(self, prompt: Sequence[int], **options: Unpack[Options]) -> Generation: ...

    @overload
    def generate(
        self,
        prompt: Prompt | Sequence[Prompt] | None = None,
        *,
        features: Array,
        **options: Unpack[Options],
    ) -> list[Generation]: ...

    @overload
    def generate(self, prompt: Array, **options: Unpack[Options]) -> Generation | list[Generation]: ...

    def generate(
        self,
        prompt: Prompt | Sequence[Prompt] | None = None,
        *,
        features: Array | None = None,
        **options: Unpack[Options],
    ) -> Generation | list[Generation]:
        """Continue a prompt, or each prompt of a batch: texts, or sequences of token ids.

        For a model with an encoder the prompt is what the encoder reads. Where it reads features of sound
        or images, these are `features`, with the rows of the batch on axis 0, and `prompt` is the beginning
        of the answer, by default the one that the folder states.

        Options, each with a default of the folder: `max_new_tokens` (256); `temperature`, `top_k`, `top_p`
        and `min_p`, of which any makes it sample, unless the temperature is 0; `seed`, which makes the
        draws repeatable; `repetition_penalty`; `no_repeat_ngram_size`; `min_new_tokens`; `stop`, texts and
        ids that end an answer; `num_beams`, `length_penalty` and `early_stopping` for beam search;
        `on_token`, which is called with the number of the row and each token. An interrupt (Ctrl-C) ends
        the call, which returns what was generated until then, with the `finish_reason` "interrupted".

        Raises FeedError for an invalid prompt, UnsupportedError for an invalid option, and what a run of the
        model raises.
        """
        settings = self.defaults.with_options(options)
        run = self._run(prompt, features, settings)
        steps = run.tokens() if settings.num_beams == 1 else run.search()
        with contextlib.suppress(KeyboardInterrupt), contextlib.closing(steps):
            for row, token in steps:
                if settings.on_token is not None:
                    settings.on_token(row, token)
        results = run.results()
        return results if features is not None or _is_batch(prompt) else results[0]

    def stream(
        self, prompt: Prompt | None = None, *, features: Array | None = None, **options: Unpack[Options]
    ) -> Iterator[int]:
        """Return the tokens that continue one prompt as they are generated; see `generate`.

        `pieces` turns them into text. Raises UnsupportedError for beam search, which knows its first token
        last.
        """
        settings = self.defaults.with_options(options)
        if settings.num_beams > 1:
            raise UnsupportedError("beam search has no tokens before its end: use `generate`, or num_beams=1")
        if _is_batch(prompt) or (features is not None and len(features) != 1):
            raise FeedError("a stream continues one prompt; `generate` continues a batch")
        return _tokens(self._run(prompt, features, settings))

    def pieces(self, tokens: Iterable[int], stop: Sequence[str] = ()) -> Iterator[str]:
        """Return the text of tokens as they come, in pieces that never end within a character.

        The text ends before the first of the strings `stop`. Raises UnsupportedError without a tokenizer.
        """
        pieces = TextPieces(self._require_tokenizer(), stop)
        for token in tokens:
            if token in self.defaults.stop_ids:
                continue
            if text := pieces.push(token):
                yield text
            if pieces.is_stopped:
                return
        if text := pieces.rest():
            yield text

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Unpack[Options]) -> Generation:
        """Answer the last of the messages, which have a `role` and a `content`; see `generate` for options.

        Raises UnsupportedError for a folder without a chat template, and FeedError for messages that it
        refuses.
        """
        return self.generate(self.chat_ids(messages), **options)

    def chat_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return the prompt for a conversation by the folder's chat template; raises as `chat`."""
        if self._template is None:
            raise UnsupportedError(
                "there is no chat template: the folder needs a chat_template.jinja, or `chat_template` in its"
                " tokenizer_config.json"
            )
        return encoded(self._require_tokenizer(), self._template.text(messages), special=False)

    @overload
    def logits(self, prompt: str | Sequence[int]) -> Array: ...

    @overload
    def logits(self, prompt: Sequence[str] | Sequence[Sequence[int]] | Array) -> Array: ...

    def logits(self, prompt: Prompt | Sequence[Prompt]) -> Array:
        """Return the logits after the last token: float32[vocabulary], of a batch float32[rows, vocabulary].

        For a model with an encoder they are those of the first token of the answer. Raises FeedError for an
        invalid prompt.
        """
        settings = self.defaults.with_options({"max_new_tokens": 1, "num_beams": 1})
        found = self._run(prompt, None, settings, for_logits=True).logits()
        return np.stack(found) if _is_batch(prompt) else found[0]

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, with the special tokens that begin one."""
        return encoded(self._require_tokenizer(), text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, without special tokens if the tokenizer is that of a folder."""
        return self._require_tokenizer().decode(ids)

    def reset(self) -> None:
        """Forget the cache of the last call, and give back its memory."""
        self._kept.clear()

    # prompts

    def _run(
        self, prompt: Any, features: Array | None, settings: Settings, *, for_logits: bool = False
    ) -> Run:
        if settings.stop_strings:
            self._require_tokenizer()
        context = None
        lengths: list[int] | None = None
        if self._encoder is None:
            if features is not None:
                raise FeedError("the model has no encoder, and reads no features")
            prompts = [self._ids(p) for p in _rows(prompt)]
        else:
            prompts, context, lengths = self._encoded(self._encoder, prompt, features)
        text = self.tokenizer
        limit = None if self.context_length is None else self.context_length
        rows = [
            Row(i, p, settings, None if limit is None or for_logits else limit - len(p), text)
            for i, p in enumerate(prompts)
        ]
        for row, length in zip(rows, lengths or (), strict=False):
            row.prompt_tokens = length
        padding = self._padding if context is None and len({len(p) for p in prompts}) > 1 else None
        return Run(self._decoder, rows, self._kept, padding, context)

    def _encoded(
        self, encoder: Encoder, prompt: Any, features: Array | None
    ) -> tuple[list[list[int]], dict[str, Array], list[int] | None]:
        """Return the beginnings of the answers, what the encoder computed, and the lengths of the prompts."""
        start = list(self._configuration.decoder_start)
        sources = self._decoder.sources
        if features is None:
            if not start:
                raise UnsupportedError("the folder does not state `decoder_start_token_id`")
            if encoder.takes_features:
                raise FeedError("the encoder reads features, not tokens: pass `features=`")
            read = [self._ids(p) for p in _rows(prompt)]
            pad = self._configuration.pad or 0
            return [start] * len(read), encoder.of_tokens(read, pad, sources), [len(r) for r in read]
        context = encoder.of_features(np.asarray(features), sources)
        beginning = self._ids(prompt) if prompt is not None else start
        if not beginning:
            raise UnsupportedError("the folder does not state `decoder_start_token_id`; pass a prompt")
        return [beginning] * len(features), context, None

    def _ids(self, prompt: Any) -> list[int]:
        """Return a prompt as valid token ids; raises FeedError."""
        ids = self.encode(prompt) if isinstance(prompt, str) else _integers(prompt)
        if not ids and self._configuration.bos is not None:
            ids = [self._configuration.bos]
        if not ids:
            raise FeedError("the prompt has no token; it needs at least one")
        size = self._decoder.vocabulary
        wrong = next((i for i in ids if i < 0 or (size is not None and i >= size)), None)
        if wrong is not None:
            known = "" if size is None else f"; the model knows the ids 0 to {size - 1}"
            raise FeedError(f"{wrong} is no token id{known}")
        if self.context_length is not None and len(ids) > self.context_length:
            raise FeedError(
                f"the prompt has {len(ids)} tokens, and the model's context length is {self.context_length}"
            )
        return ids

    @cached_property
    def _padding(self) -> Padding | None:
        """Where rows of unequal length are padded; None if the model cannot tell padding from tokens."""
        if not (self._decoder.has_cache and self._decoder.has_mask):
            return None
        model = self._source if isinstance(self._source, Model) else load(self._source)
        if any(node.op == _ONE_LENGTH for node in model.graph.all_nodes()):
            return "right"
        return "left" if self._decoder.has_positions else None

    def _require_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise UnsupportedError(
                "there is no tokenizer, so prompts and results are token ids: the folder has neither"
                " tokenizer.json nor tokenizer.model; pass `tokenizer=`"
            )
        return self.tokenizer

    def __repr__(self) -> str:
        return f"<TextGenerator of {self._source!s}>"


def _decoders(files: Files) -> tuple[Model | Path, Model | Path]:
    """Return the models of the first positions and of the later ones, one object if they are the same."""
    merged = merged_branches(files.first) if "merged" in files.first.name else None
    if merged is not None:
        return merged
    first = with_all_positions(files.first) if files.has_windows else files.first
    return first, first if files.later == files.first else files.later


def _tokens(run: Run) -> Iterator[int]:
    with contextlib.closing(run.tokens()) as steps:
        for _, token in steps:
            yield token


def _is_batch(prompt: Any) -> bool:
    if isinstance(prompt, str) or prompt is None:
        return False
    if isinstance(prompt, np.ndarray):
        return cast("Array", prompt).ndim > 1
    items: Sequence[Any] = prompt
    return len(items) > 0 and not isinstance(items[0], (int, float, np.number))


def _rows(prompt: Any) -> list[Any]:
    if prompt is None:
        raise FeedError("there is no prompt")
    return list(prompt) if _is_batch(prompt) else [prompt]


def _integers(prompt: Any) -> list[int]:
    array = np.asarray(prompt)
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise FeedError(f"a prompt is a text, or a sequence of token ids; got {prompt!r}")
    return array.tolist()
