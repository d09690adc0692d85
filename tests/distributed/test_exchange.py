"""What workers compute together over their connections, in threads of this process."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import ml_dtypes
import numpy as np
import pytest

from sabir.distributed import Exchange, Listener, PeerLost, Peers, even_ranges

TOKEN = b"t" * 32


def joined(count, pool):
    """Return the connections of so many workers."""
    listeners = [Listener("127.0.0.1") for _ in range(count)]
    addresses = [listener.address for listener in listeners]
    found = pool.map(lambda rank: Peers.joined(rank, listeners[rank], addresses, TOKEN), range(count))
    try:
        return list(found)
    finally:
        for listener in listeners:
            listener.close()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_means_and_parts_of_all(dtype):
    rng, count = np.random.default_rng(1), 3
    arrays = [rng.standard_normal(70_000).astype(dtype) for _ in range(count)]
    shares, ranges = [0.5, 0.0, 0.5], [(0, 40_000), (40_000, 40_000), (40_000, 70_000)]
    expected = (arrays[0].astype(np.float64) * 0.5 + arrays[2].astype(np.float64) * 0.5).astype(dtype)
    with ThreadPoolExecutor(count) as pool:
        peers = joined(count, pool)

        def work(rank):
            exchange, array = Exchange(peers[rank]), arrays[rank].copy()
            exchange.mean(array, ranges, shares)
            exchange.gather(array, ranges)
            owned = {"a": (0, np.full((2, 1), rank, np.int64)), "b": (2, np.asarray(rank > 1))}
            return array, exchange.shared(owned)

        for array, shared in pool.map(work, range(count)):
            assert np.array_equal(array, expected)
            assert shared["a"].tolist() == [[0], [0]]
            assert shared["b"].dtype == bool
            assert shared["b"].item() is True
        size = np.dtype(dtype).itemsize
        # one without a share sends and owns nothing, and gets both ranges
        assert (peers[1].sent, peers[1].received) == (0, 70_000 * size + 17)
        # its range for the other's sums, and sums for the two others
        assert peers[0].sent == (30_000 + 2 * 40_000) * size + 2 * 16
        for one in peers:
            one.close()


def test_ranges_have_all_elements():
    for size in (0, 1, 5, 64):
        ranges = even_ranges(size, 4)
        assert [place for begin, end in ranges for place in range(begin, end)] == list(range(size))
        assert all(size // 4 <= end - begin <= size // 4 + 1 for begin, end in ranges)


def test_a_stranger_is_turned_away():
    with ThreadPoolExecutor(2) as pool, closing(Listener("127.0.0.1")) as listener:
        joining = pool.submit(Peers.joined, 0, listener, [listener.address, ("", 0)], TOKEN)
        with socket.create_connection(listener.address) as stranger:
            stranger.sendall(b"x" * 32 + bytes(8))
            assert stranger.recv(1) == b""
        with socket.create_connection(listener.address) as member:
            member.sendall(TOKEN + (1).to_bytes(8, "little"))
            with closing(joining.result()) as peers:
                assert peers.count == 2


def send_until_it_fails(peers):
    """Send arrays of which the first may still find room."""
    for number in range(100):
        peers.send(1, number, np.zeros(1 << 16))
        time.sleep(0.01)


def test_who_waits_for_a_lost_worker_is_told():
    with ThreadPoolExecutor(2) as pool:
        one, other = joined(2, pool)
        waiting = pool.submit(one.take, 1, 1)
        other.close()
        with pytest.raises(PeerLost, match="worker 1 is lost"):
            waiting.result()
        with pytest.raises(PeerLost, match="worker 1 is lost"):
            send_until_it_fails(one)
        one.close()
    with closing(Listener("127.0.0.1")) as listener, pytest.raises(PeerLost, match="cannot connect"):
        Peers.joined(1, listener, [("127.0.0.1", 1), ("", 0)], TOKEN)
