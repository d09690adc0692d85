"""Libraries: the machine code of kernels, loaded into this process."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import UnsupportedError
from sabir.compilation.native._cache import cache
from sabir.compilation.native._facts import facts
from sabir.compilation.native._llvm import LOCK, llvm
from sabir.compilation.native._placing import Image, can_place, code_at, image_of, placed
from sabir.compilation.native._target import Host, host, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from sabir.compilation.native._early import EarlyKernels

KIND = "objects"


class Source(NamedTuple):
    """The text of a kernel, and a shorter text that it follows from: only a kernel to compile has it written.

    >>> from sabir.compilation.native import Library, Source
    >>> len(Library.load([Source('nothing', lambda: 'define void @kernel() { ret void }')]).addresses)
    1
    """

    name: str
    text: Callable[[], str]


_NOTHING = b"\xc3"  # the instruction of x86-64 that returns
_FORMAT = "3"  # another number for another way to make objects from texts
_FROM_NAME = "name: "  # no text of a module begins so


class _Group:
    """The machine code that was loaded at once, until the last of its kernels is dropped."""

    def __init__(self, free: Callable[[], object]) -> None:
        # not at exit: threads may still run the code
        weakref.finalize(self, free).atexit = False


class _Code:
    """One kernel in memory; `entry` is the place of its function in its image, None if it has no image."""

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

    `addresses` has the address of each text's function, in order, and `keys` what names its machine code in
    the cache; `compiled` is how many of the texts were compiled, and neither loaded already nor read from the
    cache.
    """

    def __init__(self, codes: Sequence[_Code], keys: Sequence[bytes], compiled: int) -> None:
        self._codes, self.keys = tuple(codes), tuple(keys)
        self.addresses = [code.address for code in codes]
        self.compiled = compiled

    def images(self) -> dict[bytes, Image]:
        """Return the images of the kernels by their keys, so far as they have images."""
        found = {key: code.image for key, code in zip(self.keys, self._codes, strict=True)}
        return {key: image for key, image in found.items() if image is not None}

    @classmethod
    def load(
        cls,
        texts: Sequence[str | Source | bytes],
        *,
        images: Mapping[bytes, Image] | None = None,
        progress: Callable[[int, int], None] | None = None,
        early: EarlyKernels | None = None,
    ) -> Self:
        """Load the code of kernels: what the process has already, what the cache has, and the rest compiled.

        Each text is an LLVM module with one function, `@kernel`, that calls intrinsics only. The name of a
        Source must say all that its text depends on. In place of a text may be the key that an earlier
        library had for it; `images` has images of kernels by their keys. `progress` is called with the number
        of texts that are done and of all. `early` has kernels that were begun. Several threads may load at
        once.

        Raises UnsupportedError where this machine is not supported, or a text is not valid or needs what the
        processor lacks, and LookupError for a key whose code is in the cache no more.

        >>> from sabir.compilation.native import Library
        >>> library = Library.load(['define void @kernel() { ret void }'])
        >>> len(library.addresses)
        1
        """
        target = host()
        keys = [text if isinstance(text, bytes) else key_of(text, target) for text in texts]
        at_hand: Mapping[bytes, Image] = images if images is not None and can_place() else {}
        codes: dict[bytes, _Code] = {}  # held here, so that no other thread frees what was found
        found: dict[bytes, bytes | Image] = {}
        missing: dict[bytes, str | Source | bytes] = {}
        with LOCK:  # texts that another thread is compiling are waited for
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
            for key, image in _compiled(missing, early):
                found[key] = image
                done += 1
                if progress is not None:
                    progress(done, len(keys))
        try:
            codes |= _link(found, target)
        except _LinkError:  # an entry of the cache that is no object of ours
            by_key = dict(zip(keys, texts, strict=True))
            missing = {key: by_key[key] for key in found}
            codes |= _link(dict(_compiled(missing)), target)
        return cls([codes[key] for key in keys], keys, len(missing))


def require_loading() -> None:
    """Raise UnsupportedError where the system does not let a process execute code that it has made."""
    made = placed([Image(_NOTHING, 0)]) if can_place() else None
    if made is None:
        Library.load(["define void @kernel() { ret void }"])
    else:
        made[0].free()


class _LinkError(UnsupportedError):
    """Objects that cannot be loaded."""


_LOADED: weakref.WeakValueDictionary[bytes, _Code] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()  # the linker takes no name twice


def key_of(text: str | Source, target: Host) -> bytes:
    """Return the name of a text's object: it depends on all that the object depends on."""
    said = text if isinstance(text, str) else f"{_FROM_NAME}{text.name}"
    parts = (_FORMAT, facts().versions, target.triple, target.cpu, target.features, said)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def symbol_of(key: bytes) -> str:
    """Return the name of a kernel's function in its object: objects that are linked at once share no name."""
    return f"kernel_{key.hex()}"


def is_compiled(source: Source) -> bool:
    """Return whether a kernel is loaded or in the cache, for this machine."""
    return is_made(key_of(source, host()))


def _cached(key: bytes) -> bytes | None:
    found = cache().get(KIND, key, verify=True)
    return None if found is None else bytes(found)


def is_made(key: bytes) -> bool:
    """Return whether a kernel is loaded or in the cache."""
    return key in _LOADED or _cached(key) is not None


def _compiled(
    texts: Mapping[bytes, str | Source | bytes], early: EarlyKernels | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Compile texts, and keep their objects in the cache; raises LookupError for a key without a text."""
    if not texts and early is None:
        return
    # ruff: ignore[import-outside-top-level]  a process that finds all kernels compiles none
    from sabir.compilation.native._emitting import objects_of

    by_symbol = {symbol_of(key): key for key in texts}
    begun = set[str]() if early is None else early.symbols
    written = [(symbol, _writer(texts[key])) for symbol, key in by_symbol.items() if symbol not in begun]
    with contextlib.closing(objects_of(written, None if early is None else early.taken())) as made:
        for symbol, image in made:
            if symbol not in by_symbol:  # it was begun, and then another process put it into the cache
                continue
            cache().put(KIND, by_symbol[symbol], image)
            yield by_symbol[symbol], image


def _writer(text: str | Source | bytes) -> Callable[[], str]:
    """Return what writes a text."""
    match text:
        case str():
            return lambda: text
        case Source():
            return text.text
        case bytes():
            raise LookupError("the machine code of a kernel is in the cache no more")


def _link(found: Mapping[bytes, bytes | Image], target: Host) -> dict[bytes, _Code]:
    """Load objects and images at once, which is faster than one after the other; raises _LinkError."""
    with LOCK:
        # another thread may have been faster
        codes = {key: code for key in found if (code := _LOADED.get(key)) is not None}
        missing = {key: each for key, each in found.items() if key not in codes}
        if missing:
            made = _placed(missing) or _linked(missing, target)
            _LOADED.update(made)
            codes |= made
        return codes


def _placed(found: Mapping[bytes, bytes | Image]) -> dict[bytes, _Code] | None:
    """Place images in memory; None where that takes a linker."""
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


def _linked(found: Mapping[bytes, bytes | Image], target: Host) -> dict[bytes, _Code]:
    """Load objects by the linker of LLVM."""
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
def _linker(target: Host) -> Any:
    """Return the linker of the process."""
    return llvm().create_lljit_compiler(machine(target), use_jit_link=True, suppress_errors=True)


def _drop(tracker: Any) -> None:
    with LOCK:
        tracker.close()
