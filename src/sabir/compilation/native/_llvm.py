"""LLVM, loaded on first use, and the lock that is held while it runs."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from sabir.base import UnsupportedError

_OLDEST = 20  # LLVM's major version: older ones do not read the constants that the emitter writes

# Held while LLVM runs: a fork while llvmlite's own lock is taken would leave it locked in the child forever.
LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


@functools.cache
def llvm() -> Any:
    """Return `llvmlite.binding`, initialized to compile for this machine.

    Raises UnsupportedError if it is missing, does not load or is too old.
    """
    try:
        # ruff: ignore[import-outside-top-level]  50 ms and 80 MB that only compiled models need
        from llvmlite import binding  # pyright: ignore[reportMissingTypeStubs] - it has no types
    except (ImportError, OSError) as error:
        raise UnsupportedError(
            f"compiled models need llvmlite, which cannot be imported: {error}; install it with "
            "`pip install llvmlite`, or choose another engine"
        ) from error
    found: Any = binding
    major: int = found.llvm_version_info[0]
    if major < _OLDEST:
        raise UnsupportedError(
            f"compiled models need LLVM {_OLDEST} or newer, and the installed llvmlite has {major}: "
            "`pip install --upgrade llvmlite`"
        )
    with LOCK:
        found.initialize_native_target()
        found.initialize_native_asmprinter()
    return found


@functools.cache
def prepare_all() -> None:
    """Initialize LLVM for other processors than this one; raises what `llvm` raises."""
    binding = llvm()
    with LOCK:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()


@functools.cache
def versions() -> str:
    """Return the versions of LLVM and of llvmlite, for cache keys: machine code depends on them."""
    # ruff: ignore[import-outside-top-level]  as above
    import llvmlite  # pyright: ignore[reportMissingTypeStubs] - it has no types

    package: Any = llvmlite
    return f"{'.'.join(map(str, llvm().llvm_version_info))} {package.__version__}"
