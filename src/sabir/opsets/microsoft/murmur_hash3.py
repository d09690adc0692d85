"""MurmurHash3: hashes of 32 bits, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.text.patterns import as_bytes
from sabir.opsets.typing import Array
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, tensors

murmur_hash3 = Operator(
    "MurmurHash3",
    domain="com.microsoft",
    summary="The hash MurmurHash3_x86_32 of the bytes of each element, of strings in UTF-8.",
)

T1 = Constraint("T1", STRING, tensors("int32", "uint32", "int64", "uint64", "float", "double"))
T2 = Constraint("T2", tensors("uint32", "int32"))

v1 = murmur_hash3.first(
    1,
    inputs=[Input("X", T1, "A tensor of any shape.")],
    outputs=[Output("Y", T2, "The input's shape.")],
    attributes=[
        Attribute("positive", "int", "1: the hashes are uint32, otherwise int32.", default=1),
        Attribute("seed", "int", "The state before the first byte, modulo 2^32.", default=0),
    ],
)

_WORD = 4  # bytes
_FIRST, _SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)  # factors of the words
_FACTOR, _TERM = np.uint32(5), np.uint32(0xE6546B64)
_MIXING = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1))  # shifts and factors of the last step

v1.absent("lower", "a hash is of bytes; kernels compute numbers, no texts")
v1.absent("gradient", "the results are integers")


@v1.infer
def infer(x: TensorType, /, *, positive: int) -> TensorType:
    return TensorType(element("uint32" if positive == 1 else "int32"), x.shape)


@v1.evaluate
def evaluate(x: Array, /, *, positive: int, seed: int) -> Array:
    start = np.uint32(seed % (1 << 32))
    if x.dtype.kind != "O":
        little = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False)
        hashes = _hashes(little.reshape(-1, 1).view(np.uint8), start)
    else:
        hashes = _of_texts([as_bytes(word) for word in x.ravel().tolist()], start)
    return hashes.view(np.uint32 if positive == 1 else np.int32).reshape(x.shape)


def _of_texts(texts: list[bytes], seed: np.uint32) -> Array:
    """Return the hashes of texts; those of one length are computed together."""
    hashes: Array = np.empty(len(texts), np.uint32)
    lengths = np.array([len(text) for text in texts], np.int64)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        joined = b"".join(texts[place] for place in places.tolist())
        hashes[places] = _hashes(np.frombuffer(joined, np.uint8).reshape(len(places), length), seed)
    return hashes


def _hashes(rows: Array, seed: np.uint32) -> Array:
    """Return the hashes of rows of bytes."""
    count, length = rows.shape
    whole = length - length % _WORD
    words: Array = np.ascontiguousarray(rows[:, :whole]).view("<u4").reshape(count, whole // _WORD)
    h = np.full(count, seed, np.uint32)
    for n in range(words.shape[1]):
        h = _rotated(h ^ _mixed(words[:, n]), 13) * _FACTOR + _TERM
    if whole < length:
        tail: Array = np.zeros((count, _WORD), np.uint8)
        tail[:, : length - whole] = rows[:, whole:]
        rest: Array = tail.view("<u4").reshape(count)
        h ^= _mixed(rest)
    h ^= np.uint32(length % (1 << 32))
    for shift, factor in _MIXING:
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return h


def _mixed(k: Array) -> Array:
    return _rotated(k * _FIRST, 15) * _SECOND


def _rotated(x: Array, count: int) -> Array:
    return (x << np.uint32(count)) | (x >> np.uint32(32 - count))


@murmur_hash3.examples
def examples() -> Iterator[Example]:
    published = np.array([-156908512, 0], np.int32)  # of "foo", in the documentation of the package mmh3
    yield Example(1, ["foo", ""], positive=0, expect=[published])
    yield Example(1, ["foo", ""], expect=[published.view(np.uint32)])
    for kind in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
        x = np.array([[3, 4], [0, 1]], kind)
        yield Example(1, x)
        yield Example(1, x, positive=0, seed=7)
    texts = [["é", "a", "ab"], ["abc", "abcd", "abcdefghi"]]
    yield Example(1, texts, positive=0, seed=42)
    yield Example(1, texts, seed=-1)
    yield Example(1, ["", "a"], seed=(1 << 32) + 5)
    yield Example(1, np.array([-0.0, 0.0, np.nan], np.float32))
    yield Example(1, np.array(3, np.int32), positive=5)
    yield Example(1, np.zeros((0, 2), np.int64), expect=[np.zeros((0, 2), np.uint32)])
    yield Example(1, np.zeros(0, object), expect=[np.zeros(0, np.uint32)])
