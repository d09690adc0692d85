"""Libraries: the machine code of kernels, loaded into this process."""

from __future__ import annotations

import functools
import hashlib
import itertools
import weakref
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError
from sabir.compilation.native._cache import cache
from sabir.compilation.native._compile import object_of
from sabir.compilation.native._llvm import LOCK, llvm, versions
from sabir.compilation.native._target import Host, host, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

KIND = "objects"
_FORMAT = "1"  # another number for another way to make objects from texts
_ENTRY = "kernel"  # the one function of a text


class _Code:
    """One kernel in memory, until the last library that has it is dropped."""

    def __init__(self, tracker: Any) -> None:
        self.address: int = tracker[_ENTRY]
        # not at exit: threads may still run the code
        weakref.finalize(self, _drop, tracker).atexit = False


class Library:
    """The machine code of some kernels; dropping the last reference frees it.

    `addresses` has the address of each text's function, in order; `compiled` is how many of the texts were
    compiled, and neither loaded already nor read from the cache.
    """

    def __init__(self, codes: Sequence[_Code], compiled: int) -> None:
        self._codes = tuple(codes)
        self.addresses = [code.address for code in codes]
        self.compiled = compiled

    @classmethod
    def load(cls, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None) -> Self:
        """Load the code of kernels: what the process has already, what the cache has, and the rest compiled.

        Each text is an LLVM module with a function `@kernel` that calls intrinsics only. `progress` is called
        with the number of texts that are loaded and of all. Several threads may load at once.

        Raises UnsupportedError where this machine is not supported, or a text is not valid or needs what the
        processor lacks.

        >>> from sabir.compilation.native import Library
        >>> library = Library.load(['define void @kernel() { ret void }'])
        >>> len(library.addresses)
        1
        """
        target = host()
        codes: list[_Code] = []
        compiled = 0
        for text in texts:
            code, is_new = _load(text, target)
            codes.append(code)
            compiled += is_new
            if progress is not None:
                progress(len(codes), len(texts))
        return cls(codes, compiled)


_LOADED: weakref.WeakValueDictionary[bytes, _Code] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()  # the linker takes no name twice


def _load(text: str, target: Host) -> tuple[_Code, bool]:
    """Return the code of a text, and whether it was compiled."""
    key = _key(text, target)
    with LOCK:  # a text that another thread is compiling is waited for
        code = _LOADED.get(key)
        if code is not None:
            return code, False
        code = _cached(key, target)
        if code is not None:
            return code, False
        image = object_of(text)
        code = _link(image, key, target)
    cache().put(KIND, key, image)
    return code, True


def _key(text: str, target: Host) -> bytes:
    """Return the name of a text's object: it depends on all that the object depends on."""
    parts = (_FORMAT, versions(), target.triple, target.cpu, target.features, text)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def _cached(key: bytes, target: Host) -> _Code | None:
    found = cache().get(KIND, key, verify=True)
    if found is None:
        return None
    try:
        return _link(bytes(found), key, target)
    except UnsupportedError:
        return None  # no object of ours: it is replaced


def _link(image: bytes, key: bytes, target: Host) -> _Code:
    library = llvm().JITLibraryBuilder().add_object_img(image).export_symbol(_ENTRY)
    try:
        code = _Code(library.link(_linker(target), f"kernel{next(_NUMBERS)}"))
    except RuntimeError as error:
        raise UnsupportedError(f"the machine code of a kernel cannot be loaded: {error}") from error
    _LOADED[key] = code
    return code


@functools.cache
def _linker(target: Host) -> Any:
    """Return the linker of the process."""
    return llvm().create_lljit_compiler(machine(target), use_jit_link=True, suppress_errors=True)


def _drop(tracker: Any) -> None:
    with LOCK:
        tracker.close()
