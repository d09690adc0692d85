"""The cache: rows, positions and padding of its arrays."""

import numpy as np

from sabir.generation._cache import Cache, CacheEntry
from sabir.generation._ports import cache_key, is_cross

KEY = CacheEntry("past", "present", np.dtype(np.float32), (1, 2, 0, 3), 0, 2)
PAIR = CacheEntry("pair", "new_pair", np.dtype(np.float32), (2, 1, 2, 0, 3), 1, 3)
STATE = CacheEntry("state", "new_state", np.dtype(np.float32), (1, 4), 0, None)
CROSS = CacheEntry("cross", "cross_out", np.dtype(np.float32), (1, 2, 0, 3), 0, 2, fixed=True)


def grown(tokens, entries=(KEY, PAIR)):
    """A cache of one row whose keys are the tokens."""
    cache = Cache(entries)
    key = np.broadcast_to(np.array(tokens, np.float32)[:, None], (1, 2, len(tokens), 3))
    results = {
        "present": key,
        "new_pair": np.stack([key, -key]),
        "new_state": np.ones((1, 4)),
        "cross_out": np.ones((1, 2, 5, 3)),
    }
    cache.take(results, [tokens])
    return cache


def keys(cache):
    """The keys of all rows, and those of the pairs, which must be the same."""
    found = cache.feeds()["past"][:, 0, :, 0]
    np.testing.assert_array_equal(found, cache.feeds()["pair"][0, :, 0, :, 0])
    return found.tolist()


def test_an_empty_cache_has_no_positions():
    feeds = Cache([KEY, PAIR, STATE], rows=3).feeds()
    assert {name: a.shape for name, a in feeds.items()} == {
        "past": (3, 2, 0, 3),
        "pair": (2, 3, 2, 0, 3),
        "state": (3, 4),
    }


def test_truncate_and_fork():
    cache = grown([5, 6, 7])
    other = cache.fork()
    cache.truncate(1)
    assert (keys(cache), cache.tokens, cache.width) == ([[5]], [[5]], 1)
    assert (keys(other), other.tokens, other.width) == ([[5, 6, 7]], [[5, 6, 7]], 3)
    assert cache.can_truncate
    assert not grown([5], (KEY, STATE)).can_truncate
    assert grown([5], (KEY, CROSS)).can_truncate


def test_rows_are_stacked_on_either_side():
    rows = [grown([5, 6, 7]), grown([8])]
    left, right = Cache.stack(rows, "left"), Cache.stack(rows, "right")
    assert keys(left) == [[5, 6, 7], [0, 0, 8]]
    assert keys(right) == [[5, 6, 7], [8, 0, 0]]
    assert left.mask(1).astype(int).tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    assert right.mask(1).astype(int).tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    for stacked in (left, right):
        assert keys(stacked.row(1)) == [[8]]
        assert keys(stacked.row(0)) == [[5, 6, 7]]
        stacked.select([1, 1])
        assert (keys(stacked), stacked.width, stacked.tokens) == ([[8], [8]], 1, [[8], [8]])


def test_buffers_have_room_and_are_written_by_one_cache():
    cache = grown([5, 6, 7])
    buffers = cache.reserve(2)
    assert {name: a.shape for name, a in buffers.items()} == {
        "present": (1, 2, 64, 3),
        "new_pair": (2, 1, 2, 64, 3),
    }
    assert cache.feeds(in_place=True)["past"] is buffers["present"]
    assert keys(cache) == [[5, 6, 7]]
    buffers["present"][:, :, 3] = buffers["new_pair"][0, :, :, 3] = 8
    cache.take(buffers, [[8]])
    assert keys(cache) == [[5, 6, 7, 8]]
    assert cache.reserve(60)["present"] is buffers["present"]
    other = cache.fork()
    other.truncate(2)
    assert other.reserve(1)["present"] is not buffers["present"]
    assert (keys(other), keys(cache)) == ([[5, 6]], [[5, 6, 7, 8]])
    assert cache.reserve(61)["present"].shape == (1, 2, 128, 3)
    cache.select([0, 0])
    assert keys(cache) == [[5, 6, 7, 8]] * 2


def test_what_a_cross_attention_reads_stays():
    cache = grown([5], (KEY, CROSS))
    first = cache.feeds()["cross"]
    cache.take({"present": np.zeros((1, 2, 2, 3)), "cross_out": np.zeros((0, 2, 1, 3))}, [[6]])
    assert cache.feeds()["cross"] is first
    cache.truncate(1)
    assert cache.feeds()["cross"].shape == (1, 2, 5, 3)


def test_names_of_one_tensor_have_one_key():
    for past, present in (
        ("past_key_values.3.key", "present.3.key"),
        ("past_key_values.3.decoder.value", "present.3.decoder.value"),
        ("past_key_3", "present_key_3"),
        ("past_3", "present_3"),
        ("past_conv.3", "present_conv.3"),
        ("past_key_self_3", "present_key_self_3"),
        ("cache_keys_3", "new_cache_key_3"),
    ):
        assert cache_key(past) == cache_key(present) != ()
    assert cache_key("past_key_values.3.key") != cache_key("present.3.value")
    assert cache_key("past_key_values.3.key") != cache_key("present.13.key")
    assert cache_key("logits") == ()
    assert is_cross("past_key_values.3.encoder.key")
    assert is_cross("past_key_cross_3")
    assert not is_cross("past_key_values.3.decoder.key")
