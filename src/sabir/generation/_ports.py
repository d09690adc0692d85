"""What the inputs and outputs of a decoder mean: by their names, then by their types and shapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from sabir.base import UnsupportedError, listed_names
from sabir.generation._cache import CacheEntry
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from sabir.evaluation import ModelPort

Role: TypeAlias = Literal[
    "ids", "mask", "positions", "cache_positions", "use_cache", "past_length", "total_length", "kept_logits",
    "states", "states_mask",
]  # fmt: skip
"""What an input is fed: the new tokens, which positions exist, the numbers of the new positions, …"""

FILLED = "past_length"
"""The input that `with_cache_buffers` adds."""

ROLES: dict[str, Role] = {
    "input_ids": "ids", "decoder_input_ids": "ids",
    "attention_mask": "mask", "decoder_attention_mask": "mask",
    "position_ids": "positions", "decoder_position_ids": "positions",
    "cache_position": "cache_positions",
    "use_cache_branch": "use_cache", "use_cache": "use_cache",
    "past_sequence_length": "past_length", FILLED: "past_length",
    "total_sequence_length": "total_length",
    "num_logits_to_keep": "kept_logits", "logits_to_keep": "kept_logits",
    "encoder_hidden_states": "states", "encoder_outputs": "states", "encoder_attention_mask": "states_mask",
}  # fmt: skip

_LOGITS = ("logits", "lm_logits", "scores")
_MATRIX, _LOGITS_RANKS = 2, (2, 3)
# the words of a name that tell an input of a cache from its output
_DIRECTIONS = re.compile(r"past|present|in|input|out|output|old|new|updated|cache|caches")
_CROSS = {"encoder", "cross"}
# the axis of the positions by rank, if the declared shapes do not show it; rank 5 has keys and values first
_POSITIONS_BY_RANK = {3: 1, 4: 2, 5: 3}
_PAIRED = 5


class Input(NamedTuple):
    """An input with what it is fed."""

    name: str
    role: Role
    dtype: np.dtype[Any]
    rank: int


class Ports(NamedTuple):
    """The inputs of a decoder: those of its cache and the others; and its output with the logits."""

    inputs: tuple[Input, ...]
    pasts: tuple[str, ...]
    logits: str
    vocabulary: int | None
    takes_one_token: bool

    def named(self, role: Role) -> str | None:
        """Return the name of the input with this role."""
        return next((i.name for i in self.inputs if i.role == role), None)


def read_ports(
    inputs: Sequence[ModelPort], outputs: Sequence[ModelPort], pasts: Iterable[str], roles: Mapping[str, Role]
) -> Ports:
    """Return what the inputs mean; `pasts` names those of the cache, `roles` those with a known meaning.

    Raises UnsupportedError for inputs that are not understood, and where no output has logits.
    """
    cached = set(pasts)
    others = [p for p in inputs if p.name not in cached]
    roles = {**roles, **_lone_ids(others, roles)}
    unknown = [p.name for p in others if p.name not in roles and not p.optional]
    if unknown:
        raise UnsupportedError(
            f"the decoder has inputs whose meaning is not known: {listed_names(unknown)}; the known names"
            f" are {', '.join(ROLES)}; inputs of a cache are named with `cache={{'past': 'present'}}`"
        )
    found = [
        Input(p.name, roles[p.name], _tensor(p).element.dtype, len(p.shape or ()))
        for p in others
        if p.name in roles
    ]
    ids = next((p for p in others if roles.get(p.name) == "ids"), None)
    if ids is None:
        raise UnsupportedError(
            f"the decoder has no input of token ids; its inputs are {listed_names([p.name for p in inputs])}"
        )
    logits = _logits(outputs)
    vocabulary = (logits.shape or (None,))[-1]
    return Ports(
        tuple(found),
        tuple(p.name for p in inputs if p.name in cached),
        logits.name,
        vocabulary if isinstance(vocabulary, int) else None,
        takes_one_token=(ids.shape or (None,))[-1] == 1,
    )


def _lone_ids(inputs: Sequence[ModelPort], roles: Mapping[str, Role]) -> dict[str, Role]:
    """Return the one matrix of integers without a known name as the ids, if no input is named so."""
    if any(roles.get(p.name) == "ids" for p in inputs):
        return {}
    found = [
        p.name
        for p in inputs
        if p.name not in roles
        and isinstance(p.type, TensorType)
        and p.type.element.name in {"int64", "int32"}
        and p.shape is not None
        and len(p.shape) == _MATRIX
    ]
    return {found[0]: "ids"} if len(found) == 1 else {}


def _tensor(port: ModelPort) -> TensorType:
    if not isinstance(port.type, TensorType):
        raise UnsupportedError(f"the decoder's {port.name!r} must be a tensor; it is {port.type}")
    return port.type


def _logits(outputs: Sequence[ModelPort]) -> ModelPort:
    named = next((p for name in _LOGITS for p in outputs if p.name == name), None)
    if named is not None:
        return named
    if outputs and isinstance(outputs[0].type, TensorType) and outputs[0].type.element.name in _FLOATS:
        rank = None if outputs[0].shape is None else len(outputs[0].shape)
        if rank is None or rank in _LOGITS_RANKS:
            return outputs[0]
    raise UnsupportedError(
        f"the decoder has no output with logits: one named {', '.join(_LOGITS)}, or a first output of floats"
        f" with rank 2 or 3; its outputs are {listed_names([p.name for p in outputs])}"
    )


_FLOATS = {"float", "float16", "bfloat16", "double"}


# pairs


def pair_cache(
    inputs: Sequence[ModelPort], outputs: Sequence[ModelPort], roles: Mapping[str, Role]
) -> dict[str, str]:
    """Return the inputs of the cache with the outputs that are their next values.

    They are paired by names that differ only in words such as past and present, else by type and shape in
    their order. An input of a cross-attention, whose values stay, may have no output: its partner is "".
    """
    candidates = [p for p in inputs if p.name not in roles and _can_be_cached(p)]
    by_key = {cache_key(p.name): p.name for p in outputs}
    named = {p.name: by_key.get(cache_key(p.name), "") for p in candidates if cache_key(p.name)}
    pairs = {past: present for past, present in named.items() if present or is_cross(past)}
    if pairs:
        return pairs
    free = [p for p in outputs if _can_be_cached(p)]
    for port in candidates:
        partner = next((p for p in free if _same_kind(port, p)), None)
        if partner is None:
            return {}
        free.remove(partner)
        pairs[port.name] = partner.name
    return pairs


def cache_key(name: str) -> tuple[str, ...]:
    """Return what the names of an input of a cache and of its output have in common."""
    words = re.findall(r"[a-z]+|\d+", name.lower().replace("key_values", " "))
    if not any(_DIRECTIONS.fullmatch(w) for w in words):
        return ()
    return tuple(sorted(w.removesuffix("s") for w in words if not _DIRECTIONS.fullmatch(w))) or ("",)


def is_cross(name: str) -> bool:
    """Return whether an input of a cache contains what a cross-attention reads of the encoder."""
    return not _CROSS.isdisjoint(re.findall(r"[a-z]+", name.lower()))


def _can_be_cached(port: ModelPort) -> bool:
    rank = len(port.shape) if port.shape is not None else 0
    return isinstance(port.type, TensorType) and rank > _MATRIX


def _same_kind(a: ModelPort, b: ModelPort) -> bool:
    first, second = a.shape or (), b.shape or ()
    return (
        _tensor(a).element == _tensor(b).element
        and len(first) == len(second)
        and all(
            x == y for x, y in zip(first, second, strict=True) if isinstance(x, int) and isinstance(y, int)
        )
    )


# shapes


class Sizes(NamedTuple):
    """Sizes of the keys and values that a configuration states, where the shapes of the model do not."""

    heads: int | None = None
    head: int | None = None


def cache_entry(past: ModelPort, present: ModelPort | None, batch: object, sizes: Sizes) -> CacheEntry:
    """Return how an input of the cache passes from run to run; `batch` is the dimension of the ids' rows.

    Raises UnsupportedError where its axes or sizes do not follow from the declared shapes or the
    configuration.
    """
    shape = past.shape or ()
    fixed = is_cross(past.name)
    batch_axis = next((i for i, d in enumerate(shape) if d == batch and not isinstance(d, int)), None)
    if batch_axis is None:
        batch_axis = 1 if len(shape) == _PAIRED else 0
    positions = _positions_axis(past, present, batch_axis, fixed=fixed)
    known: list[int] = []
    for axis, dim in enumerate(shape):
        if axis == batch_axis:
            known.append(1)
        elif axis == positions:
            known.append(0)
        else:
            stated = sizes.head if axis == len(shape) - 1 else sizes.heads
            size = dim if isinstance(dim, int) else stated
            if size is None:
                raise UnsupportedError(
                    f"the size of axis {axis} of {past.name!r}, {past.type}, is not known: declare it, as"
                    f" with `sabir.set_dims(model, {{{str(dim)!r}: 64}})`"
                )
            known.append(size)
    name = "" if present is None else present.name
    return CacheEntry(
        past.name, name, _tensor(past).element.dtype, tuple(known), batch_axis, positions, fixed
    )


def _positions_axis(past: ModelPort, present: ModelPort | None, batch: int, *, fixed: bool) -> int | None:
    shape = past.shape or ()
    after = () if present is None else present.shape or ()
    unknown = [i for i, d in enumerate(shape) if i != batch and not isinstance(d, int)]
    if not unknown:
        return None
    usual = _POSITIONS_BY_RANK.get(len(shape))
    growing = [i for i in unknown if len(after) == len(shape) and shape[i] != after[i]]
    if len(growing) == 1 and not fixed:
        return growing[0]
    if usual in unknown:
        return usual
    if len(unknown) == 1:
        return unknown[0]
    raise UnsupportedError(f"which axis of {past.name!r}, {past.type}, has the positions is not known")
