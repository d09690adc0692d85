"""Connections between the workers of a group: arrays of bytes under numbers, over TCP."""

from __future__ import annotations

import contextlib
import hmac
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array

Address: TypeAlias = tuple[str, int]

_HELLO = struct.Struct("<Q")  # the number of the worker, after the token
_HEAD = struct.Struct("<QQ")  # the number of a message, and its size in bytes
_TIMEOUT = 60.0  # seconds in which all workers of a group have connected
_GREETING = 5.0  # seconds in which one that connects shows the token


class PeerLost(ConnectionError):
    """Another worker of the group ended, or closed its connections.

    >>> issubclass(PeerLost, ConnectionError)
    True
    """


class Listener:
    """A port at which a worker waits for the others of its group.

    >>> listener = Listener('127.0.0.1')
    >>> listener.address[0]
    '127.0.0.1'
    >>> listener.close()
    """

    def __init__(self, host: str) -> None:
        """Choose a free port of an address of this machine."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family)
        self.address: Address = self._socket.getsockname()[:2]

    def accept(self, token: bytes, deadline: float) -> tuple[int, socket.socket]:
        """Return the number of the next worker that connects and knows the token, and the connection."""
        while True:
            self._socket.settimeout(_left(deadline))
            connection, _ = self._socket.accept()
            try:
                connection.settimeout(min(_GREETING, _left(deadline)))
                shown = _read(connection, len(token) + _HELLO.size)
            except OSError:
                connection.close()
                continue
            if hmac.compare_digest(shown[: len(token)], token):
                return _HELLO.unpack(shown[len(token) :])[0], connection
            connection.close()

    def close(self) -> None:
        """Close the port; connections stay."""
        self._socket.close()


class Peers:
    """The connections of worker number `rank` with all others of its group.

    A thread for each connection receives what comes, so a sender never waits for a receiver that sends.
    Whoever connects shows the `token` of the group, which only its members know.

    >>> alone = Peers(0, {})
    >>> alone.count, alone.sent
    (1, 0)
    """

    def __init__(self, rank: int, connections: dict[int, socket.socket]) -> None:
        """Take the connections by the numbers of the others."""
        self.rank, self.count = rank, len(connections) + 1
        self.sent = self.received = 0
        """The bytes of arrays that were sent and received."""
        self._connections = connections
        self._arrived: dict[tuple[int, int], Array] = {}
        self._lost: str | None = None
        self._changed = threading.Condition()
        for peer, connection in connections.items():
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._receive, args=(peer, connection), daemon=True).start()

    @classmethod
    def joined(cls, rank: int, listener: Listener, addresses: Sequence[Address], token: bytes) -> Peers:
        """Connect with all others: to those before this one, and as they come, from those after it.

        Raises PeerLost where one does not come within a minute.
        """
        deadline = time.monotonic() + _TIMEOUT
        found: dict[int, socket.socket] = {}
        try:
            for peer, address in enumerate(addresses[:rank]):
                found[peer] = socket.create_connection(address, _left(deadline))
                found[peer].sendall(token + _HELLO.pack(rank))
            while len(found) < len(addresses) - 1:
                peer, connection = listener.accept(token, deadline)
                found[peer] = connection
        except OSError as error:
            for connection in found.values():
                connection.close()
            raise PeerLost(f"worker {rank} cannot connect with the others: {error}") from error
        return cls(rank, found)

    def send(self, peer: int, number: int, array: Array) -> None:
        """Send the bytes of a contiguous array; raises PeerLost."""
        data = memoryview(array.reshape(-1).view(np.uint8).data)
        try:
            self._connections[peer].sendall(_HEAD.pack(number, len(data)))
            self._connections[peer].sendall(data)
        except OSError as error:
            raise PeerLost(f"worker {peer} is lost: {error}") from error
        self.sent += len(data)

    def take(self, peer: int, number: int) -> Array:
        """Return the bytes of a message, when it has come; raises PeerLost."""
        key = peer, number
        with self._changed:
            self._changed.wait_for(lambda: key in self._arrived or self._lost is not None)
            if key in self._arrived:
                return self._arrived.pop(key)
            raise PeerLost(self._lost)

    def close(self) -> None:
        """Close all connections; who waits for a message is told that its sender is lost."""
        self._end("the connections are closed")
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _receive(self, peer: int, connection: socket.socket) -> None:
        try:
            while True:
                self._receive_one(peer, connection)
        except OSError as error:
            self._end(f"worker {peer} is lost: {error}")

    def _receive_one(self, peer: int, connection: socket.socket) -> None:
        number, size = _HEAD.unpack(_read(connection, _HEAD.size))
        data = np.empty(size, np.uint8)
        _read_into(connection, memoryview(data.data))
        with self._changed:
            self._arrived[peer, number] = data
            self.received += size
            self._changed.notify_all()

    def _end(self, reason: str) -> None:
        with self._changed:
            self._lost = self._lost or reason
            self._changed.notify_all()


def _left(deadline: float) -> float:
    """Return the seconds to a deadline; raises TimeoutError after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    _read_into(connection, memoryview(data))
    return bytes(data)


def _read_into(connection: socket.socket, view: memoryview) -> None:
    """Fill a view with bytes of a connection; raises OSError where it ends before."""
    while view:
        count = connection.recv_into(view)
        if not count:
            raise ConnectionResetError("the connection ended")
        view = view[count:]


__all__ = ["Address", "Listener", "PeerLost", "Peers"]
