"""TfIdfVectorizer: counts of n-grams."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.indexing.lookups import numbers_of, places
from sabir.opsets.families.shapes.sizes import allotted, set_aside, spend_operations
from sabir.opsets.typing import Array, Floats
from sabir.schema import (
    STRING,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    bound_once,
    one_of,
    tensors,
)

tf_idf_vectorizer = Operator(
    "TfIdfVectorizer",
    summary="The number of occurrences of each n-gram of a pool in each row, with adjacent or evenly "
    "spaced items, weighted by `mode`.",
)

T = Constraint("T", STRING, tensors("int32", "int64"))
T1 = Constraint("T1", tensors("float"))

_MODE = "TF: counts; IDF: weights of the n-grams that occur; TFIDF: counts times weights."
_SKIPS = "The maximum of items skipped between neighbours of an n-gram."

v9 = tf_idf_vectorizer.first(
    9,
    inputs=[Input("X", T, "Items, shape [C] or [N, C].", differentiable=False)],
    outputs=[Output("Y", T1, "Shape [K] or [N, K], K the greatest column + 1.", differentiable=False)],
    attributes=[
        Attribute("mode", "string", _MODE, required=True, values=one_of("TF", "IDF", "TFIDF")),
        Attribute("ngram_indexes", "ints", "The column of each n-gram.", required=True, values=at_least(0)),
        Attribute("weights", "floats", "The weight of each n-gram of the pool; 1 if absent."),
        Attribute("ngram_counts", "ints", "The starts of the 1-grams, 2-grams, ... in it.", required=True),
        Attribute("pool_int64s", "ints", "The n-grams' items, 1-grams first, if they are integers."),
        Attribute("pool_strings", "strings", "The n-grams' items, if they are strings."),
        Attribute("max_skip_count", "int", _SKIPS, required=True, values=at_least(0)),
        Attribute("min_gram_length", "int", "The minimum of n.", required=True, values=at_least(1)),
        Attribute("max_gram_length", "int", "The maximum of n.", required=True),
    ],
)

_FOLLOWED = 80  # bytes, about, of an item while its n-grams are searched
_TURNS = 16  # array operations for the n-grams of one length and distance


class _TreeLevel(NamedTuple):
    """One level of the tree of n-grams: the next node for a node and an item, and the n-gram ending there."""

    codes: Array  # node * vocabulary + item, sorted
    grams: Array  # for each, the n-gram that ends there, or -1


v9.absent("lower", "n-grams are looked up in a table of texts, or of numbers of any length")
v9.absent("downgrade", "no older operator counts sequences of elements")


@v9.infer
def infer(x: TensorType, /, *, ngram_indexes: Sequence[int]) -> TensorType:
    if not ngram_indexes:
        raise InferenceError("`ngram_indexes` is empty, and the output would have no columns")
    if x.shape is None:
        return TensorType(element("float"))
    if len(x.shape) not in {1, 2}:
        raise InferenceError(f"{x} must have shape [C] or [N, C]")
    return TensorType(element("float"), (*x.shape[:-1], max(ngram_indexes) + 1))


def _counting(
    *, mode: str, ngram_indexes: Sequence[int], weights: Floats, **attributes: Any
) -> Callable[[Array], Array]:
    """Return the function of the items; the tree of the n-grams is made once."""
    columns, factors = np.array(ngram_indexes, np.int64), np.array(weights or [1.0], np.float32)
    if not len(columns):
        raise ValueError("`ngram_indexes` is empty, and the output would have no columns")
    if weights and len(weights) != len(columns):
        raise ValueError(f"there are {len(weights)} weights for {len(columns)} n-grams")
    pool, width = _Pool(len(columns), **attributes), int(columns.max()) + 1
    are_distinct = len(np.unique(columns)) == len(columns)

    def counted(x: Array) -> Array:
        if x.ndim not in {1, 2}:
            raise ValueError(f"shape {list(x.shape)} must be [C] or [N, C]")
        counts = pool.counts(x if x.ndim > 1 else x[None])
        if mode == "IDF":
            counts = np.minimum(counts, 1)
        values = counts if mode == "TF" else counts * factors
        y = np.zeros(allotted((len(counts), width), np.dtype(np.float32), counts.size), np.float32)
        if are_distinct:
            y[:, columns] = values
        else:
            np.add.at(y.T, columns, values.T.astype(np.float32))
        return y.reshape(*x.shape[:-1], width)

    return counted


@v9.evaluate
@bound_once(_counting)
def evaluate(x: Array, /, **attributes: Any) -> Array:
    return _counting(**attributes)(x)


class _Pool:
    """The n-grams of a pool, which is looked up in each row."""

    def __init__(
        self, grams: int, *, ngram_counts: Sequence[int], max_skip_count: int, **attributes: Any
    ) -> None:
        """Take the number of n-grams, and the attributes of the call; raises ValueError for other numbers."""
        least, most = attributes["min_gram_length"], attributes["max_gram_length"]
        texts: Sequence[str] | None = attributes["pool_strings"]
        if not least <= most <= len(ngram_counts):
            raise ValueError("n-grams need min_gram_length <= max_gram_length <= len(ngram_counts)")
        self._items: Array = np.array(texts or attributes["pool_int64s"] or (), object if texts else np.int64)
        items = places(self._items, self._items)  # equal items by one number
        self._levels = _levels(items, [*ngram_counts, len(items)], least, most, grams)
        self._places = {text: place for place, text in enumerate(texts or ())}
        self._grams, self._most_skipped = grams, max_skip_count
        self._single: Array | None = None  # the n-gram of each item, if all n-grams have one item
        if len(self._levels) == 1:
            self._single = np.full(len(items) + 1, grams)  # and of an item that is not in the pool
            self._single[self._levels[0].codes] = self._levels[0].grams
            self._single[self._single < 0] = grams

    def counts(self, x: Array) -> Array:
        """Return the number of occurrences of each n-gram in each row."""
        numbers, grams = self._numbers(x), self._grams
        check_elements(len(x) * grams, x.size, what="the counts", width=2 * np.dtype(np.int64).itemsize)
        set_aside(numbers.size, _FOLLOWED, "the n-grams")
        count = len(x) * grams
        if self._single is not None:
            found = self._single[numbers]
            if len(x) > 1:
                found += np.arange(0, len(x) * (grams + 1), grams + 1)[:, None]
            whole = np.bincount(found.ravel(), minlength=len(x) * (grams + 1))
            return whole.reshape(len(x), grams + 1)[:, :grams]
        total, turns = np.zeros(count, np.int64), _TURNS * len(self._levels)
        for apart in range(1, min(self._most_skipped + 1, max(1, x.shape[1] - 1)) + 1):
            spend_operations(turns, 2 * total.nbytes + turns * numbers.nbytes)
            for gram, row in _found(numbers, self._levels, apart, len(self._items)):
                total += np.bincount(row * grams + gram, minlength=count)
        return total.reshape(len(x), grams)

    def _numbers(self, x: Array) -> Array:
        """Return the place of each item in the pool, -1 for other items."""
        if (x.dtype.kind == "O") != (self._items.dtype.kind == "O"):
            raise ValueError(f"a pool of {self._items.dtype} does not fit items of {x.dtype}")
        if x.dtype.kind != "O":
            return places(x.astype(np.int64) if x.dtype == np.int32 else x, self._items)
        return numbers_of(x, self._places, -1)


def _levels(items: Array, starts: Sequence[int], least: int, most: int, grams: int) -> list[_TreeLevel]:
    """Return the tree of the n-grams of at most `most` items, level by level."""
    if any(a > b for a, b in itertools.pairwise(starts)) or starts[0] < 0:
        raise ValueError(f"ngram_counts {list(starts[:-1])} do not divide a pool of {len(items)} items")
    parts = [items[a:b] for a, b in itertools.pairwise(starts)]
    if any(len(part) % n for n, part in enumerate(parts, 1)):
        raise ValueError("a part of the pool does not consist of whole n-grams")
    tables = [part.reshape(-1, n) for n, part in enumerate(parts, 1)]
    numbers = np.split(np.arange(sum(map(len, tables))), np.cumsum([len(t) for t in tables])[:-1])
    if len(numbers) and sum(map(len, tables)) > grams:
        raise ValueError(f"the pool has more n-grams than the {grams} of ngram_indexes")
    nodes = [np.zeros(len(t), np.int64) for t in tables]
    levels: list[_TreeLevel] = []
    for depth in range(most):
        deep = [nodes[n] * len(items) + tables[n][:, depth] for n in range(depth, most)]
        codes = np.unique(np.concatenate(deep))
        for n, code in zip(range(depth, most), deep, strict=True):
            nodes[n] = np.searchsorted(codes, code)
        ends = np.full(len(codes), -1)
        if len(np.unique(nodes[depth])) < len(nodes[depth]):
            raise ValueError(f"the pool has a {depth + 1}-gram twice")
        if depth + 1 >= least:
            ends[nodes[depth]] = numbers[depth]
        levels.append(_TreeLevel(codes, ends))
    return levels


def _found(
    numbers: Array, levels: Sequence[_TreeLevel], apart: int, vocabulary: int
) -> Iterator[tuple[Array, Array]]:
    """Yield for each n the n-grams of the pool with a distance of `apart` between items, and their rows."""
    row, start = np.nonzero(numbers >= 0)
    node = np.zeros(len(row), np.int64)
    for depth, level in enumerate(levels):
        at = start + depth * apart
        inside = np.flatnonzero(at < numbers.shape[1])
        row, start, node = row[inside], start[inside], node[inside]
        item = numbers[row, at[inside]]
        code = node * vocabulary + item
        node = np.searchsorted(level.codes, code).clip(max=max(0, len(level.codes) - 1))
        if not len(level.codes):
            return
        follows = np.flatnonzero((item >= 0) & (level.codes[node] == code))
        row, start, node = row[follows], start[follows], node[follows]
        gram = level.grams[node]
        if apart == 1 or depth > 0:  # a single item has no distance
            yield gram[gram >= 0], row[gram >= 0]


@tf_idf_vectorizer.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
    standard: dict[str, Any] = {  # the standard's tests
        "mode": "TF",
        "ngram_counts": [0, 4],
        "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
        "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
        "max_gram_length": 2,
    }
    both = [[0, 3, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 1, 1]]
    pairs = [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 1]]
    far = [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]]
    yield Example(9, x, **standard, min_gram_length=2, max_skip_count=0, expect=[pairs])
    yield Example(9, x, **standard, min_gram_length=2, max_skip_count=5, expect=[far])
    yield Example(9, x, **standard, min_gram_length=1, max_skip_count=5, expect=[both])
    yield Example(
        9, x[1].astype(np.int32), **standard, min_gram_length=1, max_skip_count=1 << 40, expect=[both[1]]
    )
    yield Example(9, x[:, :0], **standard, min_gram_length=1, max_skip_count=1, expect=[np.zeros((2, 7), f)])
    words = [["a", "b", "a", "b", "z"]]
    weighted: dict[str, Any] = {
        "pool_strings": ["b", "a", "a", "b", "a", "b", "a"],
        "ngram_counts": [0, 2, 4],
        "ngram_indexes": [3, 0, 1, 2],
        "weights": [2.0, 3, 5, 7],
        "min_gram_length": 1,
        "max_gram_length": 3,
        "max_skip_count": 0,
    }
    # b and a twice, ab twice, aba once; the weights belong to the n-grams, not to the columns
    counts = {"TF": [2, 2, 1, 2], "IDF": [3, 5, 7, 2], "TFIDF": [6, 10, 7, 4]}
    for mode, row in counts.items():
        yield Example(9, words, **weighted, mode=mode, expect=[[row]])
