"""Libraries: the machine code of kernels, loaded into this process."""

from __future__ import annotations

import functools
import hashlib
import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import UnsupportedError
from sabir.compilation.native._cache import cache
from sabir.compilation.native._compile import object_of
from sabir.compilation.native._llvm import LOCK, llvm, versions
from sabir.compilation.native._target import Host, host, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

KIND = "objects"


class Source(NamedTuple):
    """The text of a kernel, and a shorter text that it follows from: only a kernel to compile has it written.

    >>> from sabir.compilation.native import Library, Source
    >>> len(Library.load([Source('nothing', lambda: 'define void @kernel() { ret void }')]).addresses)
    1
    """

    name: str
    text: Callable[[], str]


_FORMAT = "1"  # another number for another way to make objects from texts
_FROM_NAME = "name: "  # no text of a module begins so


class _Group:
    """The machine code that was linked at once, until the last of its kernels is dropped."""

    def __init__(self, tracker: Any) -> None:
        # not at exit: threads may still run the code
        weakref.finalize(self, _drop, tracker).atexit = False


class _Code:
    """One kernel in memory."""

    def __init__(self, address: int, group: _Group) -> None:
        self.address, self._group = address, group


class Library:
    """The machine code of some kernels; dropping the last reference frees it.

    `addresses` has the address of each text's function, in order, and `keys` what names its machine code in
    the cache; `compiled` is how many of the texts were compiled, and neither loaded already nor read from the
    cache.
    """

    def __init__(self, codes: Sequence[_Code], keys: Sequence[bytes], compiled: int) -> None:
        self._codes, self.keys = tuple(codes), tuple(keys)
        self.addresses = [code.address for code in codes]
        self.compiled = compiled

    @classmethod
    def load(
        cls, texts: Sequence[str | Source | bytes], *, progress: Callable[[int, int], None] | None = None
    ) -> Self:
        """Load the code of kernels: what the process has already, what the cache has, and the rest compiled.

        Each text is an LLVM module with one function, `@kernel`, that calls intrinsics only. The name of a
        Source must say all that its text depends on. In place of a text may be the key that an earlier
        library had for it. `progress` is called with the number of texts that are done and of all. Several
        threads may load at once.

        Raises UnsupportedError where this machine is not supported, or a text is not valid or needs what the
        processor lacks, and LookupError for a key whose code is in the cache no more.

        >>> from sabir.compilation.native import Library
        >>> library = Library.load(['define void @kernel() { ret void }'])
        >>> len(library.addresses)
        1
        """
        target = host()
        keys = [text if isinstance(text, bytes) else _key(text, target) for text in texts]
        codes: dict[bytes, _Code] = {}  # held here, so that no other thread frees what was found
        images: dict[bytes, bytes] = {}
        compiled = 0
        for done, (key, text) in enumerate(zip(keys, texts, strict=True), start=1):
            if key not in codes and key not in images:
                with LOCK:  # a text that another thread is compiling is waited for
                    code = _LOADED.get(key)
                    image = _cached(key) if code is None else None
                    if code is not None:
                        codes[key] = code
                    else:
                        images[key] = _compiled(key, text) if image is None else image
                        compiled += image is None
            if progress is not None:
                progress(done, len(texts))
        try:
            codes |= _link(images, target)
        except _LinkError:  # an entry of the cache that is no object of ours
            by_key = dict(zip(keys, texts, strict=True))
            images = {key: _compiled(key, by_key[key]) for key in images}
            codes |= _link(images, target)
            compiled = len(images)
        return cls([codes[key] for key in keys], keys, compiled)


class _LinkError(UnsupportedError):
    """Objects that cannot be loaded."""


_LOADED: weakref.WeakValueDictionary[bytes, _Code] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()  # the linker takes no name twice


def _key(text: str | Source, target: Host) -> bytes:
    """Return the name of a text's object: it depends on all that the object depends on."""
    said = text if isinstance(text, str) else f"{_FROM_NAME}{text.name}"
    parts = (_FORMAT, versions(), target.triple, target.cpu, target.features, said)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def _symbol(key: bytes) -> str:
    """Return the name of a kernel's function in its object: objects that are linked at once share no name."""
    return f"kernel_{key.hex()}"


def _cached(key: bytes) -> bytes | None:
    found = cache().get(KIND, key, verify=True)
    return None if found is None else bytes(found)


def _compiled(key: bytes, text: str | Source | bytes) -> bytes:
    match text:
        case bytes():
            raise LookupError("the machine code of a kernel is in the cache no more")
        case str():
            image = object_of(text, _symbol(key))
        case Source():
            image = object_of(text.text(), _symbol(key))
    cache().put(KIND, key, image)
    return image


def _link(images: Mapping[bytes, bytes], target: Host) -> dict[bytes, _Code]:
    """Load objects at once, which takes a fifth of the time of one after the other; raises _LinkError."""
    with LOCK:
        # another thread may have been faster
        codes = {key: code for key in images if (code := _LOADED.get(key)) is not None}
        missing = [key for key in images if key not in codes]
        if not missing:
            return codes
        library = llvm().JITLibraryBuilder()
        for key in missing:
            library.add_object_img(images[key]).export_symbol(_symbol(key))
        try:
            tracker = library.link(_linker(target), f"kernels{next(_NUMBERS)}")
        except RuntimeError as error:
            raise _LinkError(f"the machine code of kernels cannot be loaded: {error}") from error
        group = _Group(tracker)
        for key in missing:
            codes[key] = _LOADED[key] = _Code(tracker[_symbol(key)], group)
        return codes


@functools.cache
def _linker(target: Host) -> Any:
    """Return the linker of the process."""
    return llvm().create_lljit_compiler(machine(target), use_jit_link=True, suppress_errors=True)


def _drop(tracker: Any) -> None:
    with LOCK:
        tracker.close()
