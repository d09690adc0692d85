"""A decoder and its cache as one function: tokens in, the logits of the next ones out; and encoders."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import FeedError, SchemaError, UnsupportedError, listed_names
from sabir.evaluation import ModelPort
from sabir.generation._cache import Cache
from sabir.generation._cache_buffers import with_cache_buffers
from sabir.generation._ports import FILLED, cache_entry, cache_key, is_cross, pair_cache, read_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.generation._cache import CacheEntry
    from sabir.generation._configuration import Configuration
    from sabir.generation._ports import Input, Ports, Role
    from sabir.generation._sampling import Scores
    from sabir.ir import Array, Model
    from sabir.runtime import Session

CHUNK = 512
"""The most tokens of one run: the logits of all of them are in memory at once."""


_FEATURES = ("input_features", "input_values", "pixel_values", "audio_features")
"""The names of an encoder's input of sound or images."""


class Buffered(NamedTuple):
    """A decoder that writes its cache into buffers, with the inputs and outputs that it had before.

    `pairs` maps each output of the cache to its input.
    """

    model: Model
    pairs: Mapping[str, str]
    inputs: Sequence[ModelPort]
    outputs: Sequence[ModelPort]

    def session(self, make: Callable[..., Session]) -> Session:
        """Return the session, made by a function with the arguments of `sabir.Session`."""
        sizes = [value.name for value in self.model.graph.inputs if value.name == FILLED]
        return make(self.model, caches=self.pairs, sizes=sizes)


def with_buffers(
    model: Model, configuration: Configuration, cache: Mapping[str, str] | None
) -> Buffered | None:
    """Return a decoder whose steps write new positions only, or None if its cache does not permit that."""
    inputs = [ModelPort(v.name, v.type, v.constant is not None) for v in model.graph.inputs]
    outputs = [ModelPort(v.name, v.type) for v in model.graph.outputs if v is not None]
    by_name, results = {p.name: p for p in inputs}, {p.name: p for p in outputs}
    pairs = _pairs(by_name, results, configuration, cache)
    entries = _entries(pairs, by_name, results, configuration)
    growing = {e.present: e.past for e in entries if e.grows}
    if not growing:
        return None
    try:
        return Buffered(with_cache_buffers(model, growing, length=FILLED), growing, inputs, outputs)
    except (SchemaError, UnsupportedError):
        return None  # the cache is read or joined in another way, so each step copies it


class _Part:
    """A session of the decoder with what its inputs mean."""

    def __init__(
        self,
        session: Session,
        cache: Mapping[str, str],
        roles: Mapping[str, Role],
        *,
        in_place: bool = False,
    ) -> None:
        self.session, self._in_place = session, in_place
        known = {p.name for p in session.inputs}
        self.ports: Ports = read_ports(
            session.inputs, session.outputs, [past for past in cache if past in known], roles
        )
        outputs = {p.name for p in session.outputs}
        presents = [present for present in cache.values() if present in outputs]
        self._requested = None if len(presents) + 1 == len(outputs) else [self.ports.logits, *presents]

    def run(self, cache: Cache, ids: Sequence[Sequence[int]], *, keep: bool) -> Scores:
        """Compute further positions; returns the logits of the last one: [rows, vocabulary].

        The cache takes the results with `keep`; without it `ids` are all tokens from the first on.
        """
        new = np.asarray(ids, np.int64)
        out = cache.reserve(new.shape[1]) if self._in_place else None
        provided = cache.feeds(in_place=self._in_place)
        feeds: dict[str, Any] = {past: provided[past] for past in self.ports.pasts}
        for port in self.ports.inputs:
            feeds[port.name] = _shaped(_value(port, cache, new, keep=keep), port)
        results = self.session.run(feeds, self._requested, out=out)
        logits: Array = results[self.ports.logits]
        if keep:
            cache.take(results, ids)
        last: Array = logits[:, -1] if logits.ndim == 3 else logits  # ruff: ignore[magic-value-comparison]  [rows, positions, vocabulary]
        return last.astype(np.float32, copy=False)


def _value(port: Input, cache: Cache, new: Array, *, keep: bool) -> Any:
    """Return what an input is fed."""
    count: int = new.shape[1]
    before = cache.lengths if keep else np.zeros(cache.rows, np.int64)
    width = cache.width if keep else 0
    match port.role:
        case "ids":
            return new
        case "mask":
            return cache.mask(count) if keep else np.ones_like(new)
        case "positions":
            return before[:, None] + np.arange(count)
        case "cache_positions":
            return width + np.arange(count)
        case "use_cache":
            return width > 0
        case "past_length":
            return width
        case "total_length":
            return width + count
        case "kept_logits":
            return 1
        case "states" | "states_mask":
            return cache.context[port.role]


def _shaped(value: Any, port: Input) -> Array:
    """Return a value in the element type of its input, a number in the rank of its input."""
    array: Array = np.asarray(value).astype(port.dtype, copy=False)
    return array.reshape((1,) * port.rank) if array.ndim == 0 else array


class Decoder:
    """Computes logits position by position, for several rows at a time.

    `first` runs the first positions and `later` the others; they can be the same session. A decoder without a
    cache computes all positions in each step.
    """

    def __init__(
        self,
        first: Session,
        later: Session,
        configuration: Configuration,
        cache: Mapping[str, str] | None = None,
        buffered: Buffered | None = None,
    ) -> None:
        """Take the sessions; `cache` has the inputs of the cache with their outputs, found if it is None.

        `buffered` is the model of the later positions, if it writes its cache into buffers. Raises
        UnsupportedError for inputs that are not understood.
        """
        before: Session | Buffered = later if buffered is None else buffered
        declared = [before] if first is later else [first, before]
        inputs = {p.name: p for each in declared for p in each.inputs}
        outputs = {p.name: p for each in reversed(declared) for p in each.outputs}
        pairs = _pairs(inputs, outputs, configuration, cache)
        self._entries = _entries(pairs, inputs, outputs, configuration)
        self._later = _Part(later, pairs, configuration.roles, in_place=buffered is not None)
        self._first = self._later if later is first else _Part(first, pairs, configuration.roles)
        self.has_cache = bool(self._later.ports.pasts)
        self.vocabulary = self._first.ports.vocabulary or configuration.vocabulary

    @property
    def has_positions(self) -> bool:
        """Whether each row's positions and mask are inputs, so that rows of unequal length fit in a batch."""
        return all(p.ports.named("positions") and p.ports.named("mask") for p in (self._first, self._later))

    @property
    def has_mask(self) -> bool:
        """Whether the mask of the positions is an input."""
        return all(p.ports.named("mask") is not None for p in (self._first, self._later))

    @property
    def reads_encoder(self) -> bool:
        """Whether an input takes what an encoder computes."""
        return self._first.ports.named("states") is not None or bool(self.sources)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the inputs of the cache that an encoder computes: no run of the decoder has them."""
        return tuple(e.past for e in self._entries if not e.present)

    def start(self, rows: int = 1, context: Mapping[str, Array] | None = None) -> Cache:
        """Return an empty cache; `context` is what the encoder computed."""
        return Cache(self._entries, rows, context)

    def step(self, cache: Cache, ids: Sequence[Sequence[int]]) -> Scores:
        """Compute equally many tokens of each row; returns the logits after the last: [rows, vocabulary]."""
        if not self.has_cache:
            return self._without_cache(cache, ids)
        logits, at, count = None, 0, len(ids[0])
        while at < count:
            part = self._later if cache.width else self._first
            size = 1 if part.ports.takes_one_token else CHUNK
            logits = part.run(cache, [row[at : at + size] for row in ids], keep=True)
            at += size
        if logits is None:
            raise FeedError("there is no token to compute")
        return logits

    def _without_cache(self, cache: Cache, ids: Sequence[Sequence[int]]) -> Scores:
        tokens = [[*old, *new] for old, new in zip(cache.tokens, ids, strict=True)]
        logits = self._first.run(cache, tokens, keep=False)
        cache.take({}, ids)
        return logits


def _pairs(
    inputs: Mapping[str, ModelPort],
    outputs: Mapping[str, ModelPort],
    configuration: Configuration,
    cache: Mapping[str, str] | None,
) -> dict[str, str]:
    """Return the inputs of the cache with their outputs, as the caller or the folder names them, or found."""
    if cache is None and configuration.cache is not None:
        cache = _numbered(configuration.cache, inputs)
    if cache is None:
        return pair_cache(list(inputs.values()), list(outputs.values()), configuration.roles)
    wrong = [past for past in cache if past not in inputs]
    wrong += [present for present in cache.values() if present and present not in outputs]
    if wrong:
        raise UnsupportedError(
            f"the cache names {listed_names(wrong)}, and the model has no such input or output: its inputs"
            f" are {listed_names(inputs)}, its outputs {listed_names(outputs)}"
        )
    return dict(cache)


def _numbered(patterns: Mapping[str, str], inputs: Mapping[str, ModelPort]) -> dict[str, str]:
    """Return the names of all layers for the patterns of a configuration."""
    pairs: dict[str, str] = {}
    for past, present in patterns.items():
        before, _, after = past.partition("%d")
        layer = re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")
        found = [match for name in inputs if (match := layer.fullmatch(name))]
        pairs |= {match[0]: present.replace("%d", match[1]) for match in found}
    return pairs


def _entries(
    pairs: Mapping[str, str],
    inputs: Mapping[str, ModelPort],
    outputs: Mapping[str, ModelPort],
    configuration: Configuration,
) -> list[CacheEntry]:
    ids = next((p for n, p in inputs.items() if configuration.roles.get(n) == "ids"), None)
    rows = ids.shape[0] if ids is not None and ids.shape else None
    return [
        cache_entry(inputs[past], outputs.get(present), rows, configuration.sizes)
        for past, present in pairs.items()
    ]


class Encoder:
    """The encoder of a model: from tokens, or from features of sound or of an image."""

    def __init__(self, session: Session) -> None:
        self._session = session
        inputs = session.inputs
        self._ids = next((p for p in inputs if p.name in {"input_ids", "encoder_input_ids"}), None)
        self._mask = next((p for p in inputs if p.name.endswith("attention_mask")), None)
        self._features = next((p for p in inputs if p.name in _FEATURES), None)
        known = {p.name for p in (self._ids, self._mask, self._features) if p is not None}
        unknown = [p.name for p in inputs if p.name not in known and not p.optional]
        if unknown or (self._ids is None and self._features is None):
            raise UnsupportedError(
                f"the encoder has inputs whose meaning is not known: {listed_names([p.name for p in inputs])}"
            )

    @property
    def takes_features(self) -> bool:
        """Whether it reads features and no tokens."""
        return self._features is not None

    def of_tokens(self, rows: Sequence[Sequence[int]], pad: int, sources: Sequence[str]) -> dict[str, Array]:
        """Return the context of the decoder for rows of tokens of any length."""
        if self._ids is None:
            raise FeedError("the encoder reads features, not tokens: pass `features=`")
        longest = max(map(len, rows))
        mask = np.array([[1] * len(r) + [0] * (longest - len(r)) for r in rows], np.int64)
        if self._mask is None and not mask.all():
            raise FeedError("the encoder has no mask, so the prompts of a batch must have the same length")
        ids = np.array([[*r, *[pad] * (longest - len(r))] for r in rows], np.int64)
        feeds = {self._ids.name: ids}
        if self._mask is not None:
            feeds[self._mask.name] = mask
        return self._context(feeds, mask, sources)

    def of_features(self, features: Array, sources: Sequence[str]) -> dict[str, Array]:
        """Return the context of the decoder for features, with the rows on axis 0."""
        if self._features is None:
            raise FeedError("the encoder reads tokens, not features: pass a prompt")
        return self._context({self._features.name: features}, None, sources)

    def _context(
        self, feeds: dict[str, Array], mask: Array | None, sources: Sequence[str]
    ) -> dict[str, Array]:
        results = self._session.run(feeds)
        by_key = {cache_key(name): name for name in results}
        context = {past: results[by_key[cache_key(past)]] for past in sources if cache_key(past) in by_key}
        states = next(n for n in results if n not in by_key.values() or not is_cross(n))
        context["states"] = results[states]
        context["states_mask"] = np.ones(results[states].shape[:2], np.int64) if mask is None else mask
        return context
