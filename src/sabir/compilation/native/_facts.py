"""LLVM's description of this machine, in the cache: a process with all kernels cached does not load LLVM."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple, cast

from sabir.compilation.disk import cache
from sabir.compilation.native._llvm import LOCK, llvm, versions

_KIND = "machines"
_FORMAT = "1"  # version of the format of the entry
_PROCESSOR = Path("/proc/cpuinfo")
_HEAD = 1 << 14  # bytes that describe the first processor
_DESCRIBING = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
)  # fmt: skip
_FILES = ("binding/libllvmlite.so", "_version.py")


class Facts(NamedTuple):
    """LLVM's description: the target triple, the name and features of the processor, and LLVM's versions."""

    triple: str
    cpu: str
    features: dict[str, bool]
    versions: str


@functools.cache
def facts() -> Facts:
    """Return LLVM's description of this machine; raises UnsupportedError if LLVM is missing."""
    key = _key()
    data = None if key is None else cache().get(_KIND, key, verify=True)
    found = None if data is None else _read(bytes(data))
    if found is not None:
        return found
    with LOCK:
        features: dict[str, bool] = dict(llvm().get_host_cpu_features())
        asked = Facts(llvm().get_default_triple(), llvm().get_host_cpu_name(), features, versions())
    if key is not None:
        cache().put(_KIND, key, json.dumps(asked).encode())
    return asked


def _read(data: bytes) -> Facts | None:
    """Return the facts in a cache entry; None if the entry is invalid."""
    try:
        triple, cpu, features, said = json.loads(data)
    except ValueError:
        return None
    texts = all(isinstance(text, str) for text in (triple, cpu, said))
    if not texts or not isinstance(features, dict):
        return None
    known = cast("dict[Any, Any]", features)
    if not all(isinstance(has, bool) for has in known.values()):
        return None
    return Facts(triple, cpu, known, said)


def _key() -> bytes | None:
    """Return the cache key, a digest of the processor and LLVM's files; None without these or a cache."""
    if sys.platform != "linux" or cache().folder is None:
        return None
    try:
        spec = importlib.util.find_spec("llvmlite")
    except (ImportError, ValueError):  # another module of that name
        return None
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    try:
        with _PROCESSOR.open("rb") as file:
            head = file.read(_HEAD).split(b"\n\n")[0].decode("utf-8", "replace")
        found = [(package / name).stat() for name in _FILES]
    except OSError:
        return None
    lines = [line for line in head.splitlines() if line.partition(":")[0].strip() in _DESCRIBING]
    files = [f"{status.st_size} {status.st_mtime_ns} {status.st_ino}" for status in found]
    return hashlib.sha256("\n".join((_FORMAT, str(package), *files, *lines)).encode()).digest()
