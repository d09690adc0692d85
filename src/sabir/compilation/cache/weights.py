"""Packed weights: constants packed into panels, in the order in which products read them.

All sessions of a process share the packed form of the same bytes. The packed form of a file is also stored on
disk, and mapped by later processes. Only bytes that cannot change are shared: those of a mapped file, and of
the `bytes` object that a model was loaded from. Small constants are identified by their contents.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ALIGNMENT
from sabir.compilation.cache.identities import identity_of
from sabir.compilation.disk import cache
from sabir.compilation.locks import ProcessLock
from sabir.compilation.plan.entries import Buffer, BufferNumber, Entry, Offset
from sabir.compilation.plan.layout import RunSizes, aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.compilation.plan.entries import Spec
    from sabir.ir import Array

KIND = "weights"
_FORMAT = "3"  # increased when the order of packed weights changes
_LEAST = 1 << 20  # bytes that are worth a file
_SMALL = 1 << 18  # bytes of a constant that is hashed faster than it is packed
_PAGE = 4096  # bytes that are added up to one number
_TRAILER = ALIGNMENT  # bytes at the end of a file, of which the first are the digest of all sums


class Packed:
    """The packed bytes of one constant. It keeps the constant alive, so that its address is not reused."""

    __slots__ = ("__weakref__", "array", "source")

    def __init__(self, array: Array, source: Array) -> None:
        self.array, self.source = array, source


class _PackingTask(NamedTuple):
    """One constant to pack: the entry that packs it, the constant, and the key of the result, if any."""

    entry: Entry
    source: Array
    key: bytes | None
    is_durable: bool


_SHARED: weakref.WeakValueDictionary[bytes, Packed] = weakref.WeakValueDictionary()
_LOCK = ProcessLock()


def packed_weights(
    entries: Sequence[Entry], constants: Mapping[int, Array], kernels: Mapping[Spec, bytes],
    pack: Callable[[Sequence[Entry], Mapping[Buffer, Array]], None],
) -> dict[Buffer, Packed]:  # fmt: skip
    """Return the result of each entry by its buffer; `pack` runs the entries whose results are not cached.

    `kernels` has the key of the machine code of each kernel.
    """
    tasks = [_task(entry, constants, kernels) for entry in entries]
    found: dict[Buffer, Packed] = {}
    missing: list[_PackingTask] = []
    for task in tasks:
        shared = _SHARED.get(task.key) if task.key else None
        if shared is None:
            missing.append(task)
        else:
            found[task.entry.writes[0]] = shared
    if not missing:
        return found
    lasting = [task for task in missing if task.is_durable]
    for tasks in (lasting, [task for task in missing if not task.is_durable]):
        for task, array in zip(tasks, _packed(tasks, pack), strict=True):
            packed = Packed(array, task.source)
            with _LOCK:  # another session may have packed the same constant meanwhile
                found[task.entry.writes[0]] = (
                    packed if task.key is None else _SHARED.setdefault(task.key, packed)
                )
    return found


def _packed(
    tasks: Sequence[_PackingTask], pack: Callable[[Sequence[Entry], Mapping[Buffer, Array]], None]
) -> list[Array]:
    """Return the packed bytes of each task, from the disk or packed now and written to the disk."""
    if not tasks:
        return []
    sizes = [RunSizes({})(task.entry.writes[0].size) for task in tasks]
    starts = np.cumsum([0, *(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]).tolist()
    key = _file_key(tasks) if starts[-1] >= _LEAST else None
    whole = None if key is None else _kept(key, starts[-1])
    if whole is not None:
        return [whole[start : start + size] for start, size in zip(starts, sizes, strict=False)]
    whole = aligned(starts[-1] + _TRAILER)
    parts = [whole[start : start + size] for start, size in zip(starts, sizes, strict=False)]
    entries = [task.entry for task in tasks]
    pack(entries, {entry.writes[0]: part for entry, part in zip(entries, parts, strict=True)})
    if key is not None:
        digest = _digest(whole[:-_TRAILER])
        whole[-_TRAILER:] = np.frombuffer(digest.ljust(_TRAILER, b"\0"), np.uint8)
    whole.flags.writeable = False
    if key is not None:
        # hundreds of megabytes take the disk a second: the session need not wait for it
        view: Any = whole
        threading.Thread(target=cache().put, args=(KIND, key, memoryview(view)), name="sabir-cache").start()
    return parts


def _kept(key: bytes, size: int) -> Array | None:
    """Return the packed bytes from the disk; None if there are none. A damaged file is removed."""
    data = cache().get(KIND, key)
    if data is None:
        return None
    whole: Array = np.frombuffer(data, np.uint8)
    if whole.size == size + _TRAILER and whole[size:].tobytes().startswith(_digest(whole[:size])):
        return whole[:size]
    del data, whole
    cache().drop(KIND, key)
    return None


def _digest(whole: Array) -> bytes:
    """Return the digest of the sums of all pages, at 30 GB/s; a digest of all bytes takes 15 times as long.

    It detects every flipped bit, and pages in another order. It does not protect against a program that may
    write files of this user.
    """
    ends = whole.size // _PAGE * _PAGE
    sums = np.add.reduce(whole[:ends].view(np.uint64).reshape(-1, _PAGE // 8), axis=1)
    return hashlib.sha256(sums.tobytes() + whole[ends:].tobytes()).digest()


# ---------------------------------------------------------------- keys


def _task(entry: Entry, constants: Mapping[int, Array], kernels: Mapping[Spec, bytes]) -> _PackingTask:
    source = constants[entry.buffers[0].slot]
    identity, is_durable = identity_of(source)
    if not is_durable and source.nbytes <= _SMALL:
        identity, is_durable = f"data {hashlib.sha256(source.tobytes()).hexdigest()}", True
    if identity is None:
        return _PackingTask(entry, source, None, is_durable=False)
    ((_, _, spec, arguments),) = entry.choices
    shown = [_shown(a) for a in arguments]
    read = f"{source.dtype.str} {source.shape} {source.strides} {identity}"
    text = f"{_FORMAT} {kernels[spec].hex()} {shown} {read}"
    return _PackingTask(entry, source, hashlib.sha256(text.encode()).digest(), is_durable)


def _shown(argument: Any) -> str:
    """Return the text of an argument, without the number of a buffer, which differs from plan to plan."""
    if isinstance(argument, BufferNumber):
        return "buffer"
    return str(argument.bytes) if isinstance(argument, Offset) else str(argument)


def _file_key(tasks: Sequence[_PackingTask]) -> bytes | None:
    """Return the key of a file with the results of all tasks; None if one has no durable key."""
    keys = [task.key for task in tasks if task.key is not None and task.is_durable]
    return hashlib.sha256(b"".join(keys)).digest() if len(keys) == len(tasks) else None


__all__ = ["Packed", "packed_weights"]
