"""Libraries: the machine code of kernels, loaded into this process."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import UnsupportedError
from sabir.compilation.disk import cache
from sabir.compilation.native._facts import facts
from sabir.compilation.native._llvm import LOCK, llvm
from sabir.compilation.native._placing import Image, can_place, code_at, image_of, placed
from sabir.compilation.native._target import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from sabir.compilation.native._early import EarlyKernels
    from sabir.compilation.native._target import Target

KIND = "objects"


class Source(NamedTuple):
    """The name of a kernel, which determines its text, and a function for the text, called on a cache miss.

    >>> from sabir.compilation.native import Library, Source, host
    >>> nothing = Source('nothing', lambda: 'define void @kernel() { ret void }')
    >>> len(Library.load([nothing], host()).addresses)
    1
    """

    name: str
    text: Callable[[], str]


_NOTHING = b"\xc3"  # the x86-64 instruction `ret`
_FORMAT = "3"  # version of the compilation of texts to objects
_FROM_NAME = "name: "  # no LLVM module begins with this


class _Group:
    """Machine code that was loaded together; `free` is called when the last of its kernels is dropped."""

    def __init__(self, free: Callable[[], object]) -> None:
        # not freed at exit: threads may still run the code
        weakref.finalize(self, free).atexit = False


class _Code:
    """One kernel in memory; `entry` is the offset of its function in its image, None if it has no image."""

    def __init__(self, address: int, group: _Group, entry: int | None = None, size: int = 0) -> None:
        self.address, self._group = address, group
        self._entry, self._size = entry, size

    @property
    def image(self) -> Image | None:
        if self._entry is None:
            return None
        return Image(code_at(self.address - self._entry, self._size), self._entry)


class Library:
    """The machine code of some kernels; dropping the last reference frees it.

    `addresses` has the address of the function of each text, in order, and `keys` the cache key of its
    machine code. `compiled` is the number of texts that were compiled: neither loaded nor in the cache.
    """

    def __init__(self, codes: Sequence[_Code], keys: Sequence[bytes], compiled: int) -> None:
        self._codes, self.keys = tuple(codes), tuple(keys)
        self.addresses = [code.address for code in codes]
        self.compiled = compiled

    def images(self) -> dict[bytes, Image]:
        """Return the images by key of the kernels that have images."""
        found = {key: code.image for key, code in zip(self.keys, self._codes, strict=True)}
        return {key: image for key, image in found.items() if image is not None}

    @classmethod
    def load(
        cls,
        texts: Sequence[str | Source | bytes],
        target: Target,
        *,
        images: Mapping[bytes, Image] | None = None,
        progress: Callable[[int, int], None] | None = None,
        early: EarlyKernels | None = None,
    ) -> Self:
        """Load kernels for this processor: code in memory, code in the cache, or newly compiled code.

        Each text is an LLVM module with one function, `@kernel`, that calls intrinsics only. The name of a
        Source must determine its text. A text may also be a key of an earlier library; `images` has images of
        kernels by key. `progress` is called with the numbers of finished texts and of all texts. `early` has
        kernels whose compilation has started. Several threads may load at the same time.

        Raises UnsupportedError if a text is invalid or uses features that the processor lacks, and
        LookupError for a key whose code is no longer in the cache.

        >>> from sabir.compilation.native import Library, host
        >>> library = Library.load(['define void @kernel() { ret void }'], host())
        >>> len(library.addresses)
        1
        """
        keys = [text if isinstance(text, bytes) else key_of(text, target) for text in texts]
        at_hand: Mapping[bytes, Image] = images if images is not None and can_place() else {}
        codes: dict[bytes, _Code] = {}  # referenced here, so that no other thread frees the code
        found: dict[bytes, bytes | Image] = {}
        missing: dict[bytes, str | Source | bytes] = {}
        with LOCK:  # waits for texts that another thread is compiling
            for key, text in zip(keys, texts, strict=True):
                if key in codes or key in found or key in missing:
                    continue
                code = _LOADED.get(key)
                image = (at_hand.get(key) or _cached(key)) if code is None else None
                if code is not None:
                    codes[key] = code
                elif image is not None:
                    found[key] = image
                else:
                    missing[key] = text
            done = len(keys) - len(missing)
            if progress is not None:
                for number in range(done):
                    progress(number + 1, len(keys))
            for key, image in _compiled(missing, target, early):
                found[key] = image
                done += 1
                if progress is not None:
                    progress(done, len(keys))
        try:
            codes |= _link(found, target)
        except _LinkError:  # the cache has an invalid object
            by_key = dict(zip(keys, texts, strict=True))
            missing = {key: by_key[key] for key in found}
            codes |= _link(dict(_compiled(missing, target)), target)
        return cls([codes[key] for key in keys], keys, len(missing))


def compiled_objects(sources: Sequence[Source], target: Target) -> list[bytes]:
    """Return the object file of each kernel for a processor, which may differ from this machine's.

    Objects come from the cache or are compiled. Raises UnsupportedError if a text is invalid, or uses
    features that the processor lacks.

    >>> from sabir.compilation.native import Source, compiled_objects, target_named
    >>> nothing = Source('nothing', lambda: 'define void @kernel() { ret void }')
    >>> compiled_objects([nothing], target_named('aarch64'))[0][1:4]
    b'ELF'
    """
    keys = [key_of(source, target) for source in sources]
    with LOCK:
        by_key = dict(zip(keys, sources, strict=True))
        found = {key: image for key in by_key if (image := _cached(key)) is not None}
        missing = {key: source for key, source in by_key.items() if key not in found}
        found |= dict(_compiled(missing, target))
    return [found[key] for key in keys]


def require_loading(target: Target) -> None:
    """Raise UnsupportedError if the system forbids the execution of generated code."""
    made = placed([Image(_NOTHING, 0)]) if can_place() else None
    if made is None:
        Library.load(["define void @kernel() { ret void }"], target)
    else:
        made[0].free()


class _LinkError(UnsupportedError):
    """Objects that cannot be loaded."""


_LOADED: weakref.WeakValueDictionary[bytes, _Code] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()  # for unique names of linked libraries


def key_of(text: str | Source, target: Target) -> bytes:
    """Return the cache key of a text's object: a digest of all that the object depends on."""
    said = text if isinstance(text, str) else f"{_FROM_NAME}{text.name}"
    parts = (_FORMAT, facts().versions, target.triple, target.cpu, target.features, said)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def symbol_of(key: bytes) -> str:
    """Return the name of a kernel's function in its object; unique, so objects can be linked together."""
    return f"kernel_{key.hex()}"


def is_compiled(source: Source, target: Target) -> bool:
    """Return whether a kernel for a processor is loaded or in the cache."""
    return is_made(key_of(source, target))


def _cached(key: bytes) -> bytes | None:
    found = cache().get(KIND, key, verify=True)
    return None if found is None else bytes(found)


def is_made(key: bytes) -> bool:
    """Return whether a kernel is loaded or in the cache."""
    return key in _LOADED or cache().has(KIND, key)


def _compiled(
    texts: Mapping[bytes, str | Source | bytes], target: Target, early: EarlyKernels | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Compile texts, cache and yield (key, object) of each; raises LookupError for a key without a text."""
    if not texts and early is None:
        return
    # ruff: ignore[import-outside-top-level]  a process that finds all kernels compiles none
    from sabir.compilation.native._emitting import objects_of

    by_symbol = {symbol_of(key): key for key in texts}
    begun = set[str]() if early is None else early.symbols
    written = [(symbol, _writer(texts[key])) for symbol, key in by_symbol.items() if symbol not in begun]
    with contextlib.closing(objects_of(written, target, None if early is None else early.taken())) as made:
        for symbol, image in made:
            if symbol not in by_symbol:  # it was started early, and then another process cached it
                continue
            cache().put(KIND, by_symbol[symbol], image)
            yield by_symbol[symbol], image


def _writer(text: str | Source | bytes) -> Callable[[], str]:
    """Return the function that returns a text; raises LookupError for a key."""
    match text:
        case str():
            return lambda: text
        case Source():
            return text.text
        case bytes():
            raise LookupError("the machine code of a kernel is in the cache no more")


def _link(found: Mapping[bytes, bytes | Image], target: Target) -> dict[bytes, _Code]:
    """Load objects and images together, which is faster than one by one; raises _LinkError."""
    with LOCK:
        # another thread may have loaded some
        codes = {key: code for key in found if (code := _LOADED.get(key)) is not None}
        missing = {key: each for key, each in found.items() if key not in codes}
        if missing:
            made = _placed(missing) or _linked(missing, target)
            _LOADED.update(made)
            codes |= made
        return codes


def _placed(found: Mapping[bytes, bytes | Image]) -> dict[bytes, _Code] | None:
    """Load images without LLVM; return None if that is not possible, and the linker is needed."""
    if not can_place():
        return None
    try:
        images = [x if isinstance(x, Image) else image_of(x, symbol_of(key)) for key, x in found.items()]
    except ValueError:
        return None
    made = placed(images)
    if made is None:
        return None
    memory, starts = made
    group = _Group(memory.free)
    rows = zip(found, images, starts, strict=True)
    return {
        key: _Code(start + image.entry, group, image.entry, len(image.code)) for key, image, start in rows
    }


def _linked(found: Mapping[bytes, bytes | Image], target: Target) -> dict[bytes, _Code]:
    """Load objects with LLVM's linker; raises _LinkError."""
    library = llvm().JITLibraryBuilder()
    for key, each in found.items():
        if isinstance(each, Image):
            raise _LinkError("the system does not execute the machine code of kernels")
        library.add_object_img(each).export_symbol(symbol_of(key))
    try:
        tracker = library.link(_linker(target), f"kernels{next(_NUMBERS)}")
    except RuntimeError as error:
        raise _LinkError(f"the machine code of kernels cannot be loaded: {error}") from error
    group = _Group(functools.partial(_drop, tracker))
    return {key: _Code(tracker[symbol_of(key)], group) for key in found}


@functools.cache
def _linker(target: Target) -> Any:
    """Return the linker of the process for a target."""
    return llvm().create_lljit_compiler(machine(target), use_jit_link=True, suppress_errors=True)


def _drop(tracker: Any) -> None:
    with LOCK:
        tracker.close()
