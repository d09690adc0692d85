"""Machine code without LLVM: images of objects, and what is remembered of the machine."""

import struct

import numpy as np
import pytest

from sabir.compilation.native import Library, _facts, _objects, _placing, host
from sabir.compilation.native._compile import object_of
from sabir.compilation.native._elf import sections_of
from sabir.compilation.native._placing import image_of

pytestmark = pytest.mark.skipif(not _placing.can_place(), reason="images run on x86-64 processors with Linux")
ARANGE = np.arange(64, dtype=np.float32)


def test_an_image_has_the_code_of_its_object_and_runs(scaled, run):
    data = object_of(scaled(3), "k", host())
    image = image_of(data, "k")
    assert image.code[image.entry :][:4] in data
    assert np.array_equal(run(Library.load([scaled(3)], host())), 3 * ARANGE)


def test_images_of_a_library_are_loaded_without_the_cache(scaled, run, monkeypatch):
    library = Library.load([scaled(2), scaled(5)], host())
    keys, images = library.keys, library.images()
    assert list(images) == list(keys)
    monkeypatch.setenv("SABIR_CACHE", "off")
    monkeypatch.setattr(_objects, "_LOADED", {})
    again = Library.load(keys, host(), images=images)
    assert again.compiled == 0
    assert set(again.addresses).isdisjoint(library.addresses)
    assert np.array_equal(run(again, 1), 5 * ARANGE)
    with pytest.raises(LookupError, match="in the cache no more"):
        Library.load([bytes(32)], host(), images=images)


def test_no_damaged_object_has_an_image_outside_of_its_bytes(scaled):
    whole = object_of(scaled(2), "k", host())
    with pytest.raises(ValueError, match="does not have its function"):
        image_of(whole, "other")
    for length in range(0, len(whole), 7):
        with pytest.raises(ValueError, match="object"):
            image_of(whole[:length], "k")
    for at in range(0, len(whole), 3):
        data = bytearray(whole)
        data[at] ^= 0xFF
        try:
            image = image_of(bytes(data), "k")
        except ValueError:
            continue
        assert 0 <= image.entry < len(image.code) <= 2 * len(whole)


def test_other_references_are_left_to_llvm(scaled, load, run, monkeypatch):
    """A reference that is no distance makes the object one for LLVM's linker."""
    data = bytearray(object_of(scaled(3), "k", host()))
    sections = list(sections_of(bytes(data)))
    table = next(s for s in sections if s.kind == 4 and sections[s.info].flags & 4)  # of what is executed
    (info,) = struct.unpack_from("<Q", data, table.offset + 8)
    struct.pack_into("<Q", data, table.offset + 8, info & ~0xFFFFFFFF | 9)
    with pytest.raises(ValueError, match="a reference that an image cannot have"):
        image_of(bytes(data), "k")
    monkeypatch.setattr(_placing, "_DISTANCES", frozenset())
    library = load(scaled(3))
    assert library.images() == {}
    assert np.array_equal(run(library), 3 * ARANGE)


def test_a_system_that_executes_no_new_memory_links_by_llvm(scaled, load, run, monkeypatch):
    monkeypatch.setattr(_objects, "placed", lambda _: None)
    library = load(scaled(2))
    assert library.images() == {}
    assert np.array_equal(run(library), 2 * ARANGE)


def test_kernels_of_the_cache_need_no_llvm(scaled, output):
    code = f"""
import sys
from sabir.compilation.native import Library, host
print(Library.load([{scaled(2)!r}], host()).compiled, "llvmlite" in sys.modules)
"""
    assert [output(code), output(code)] == ["1 True\n", "0 False\n"]


@pytest.fixture
def facts():
    """What a new process finds."""

    def again():
        _facts.facts.cache_clear()
        return _facts.facts()

    yield again
    _facts.facts.cache_clear()


def test_what_llvm_says_is_found_again(facts, the_cache, monkeypatch):
    asked = facts()
    monkeypatch.setattr(_facts, "llvm", None)  # it is not asked again
    assert facts() == asked
    assert [e.kind for e in the_cache.entries()] == ["machines"]


def test_another_processor_is_asked_about(facts, the_cache, monkeypatch, tmp_path):
    facts()
    other = tmp_path / "cpuinfo"
    for text in ("flags : avx2 fma\n\nflags : other\n", "flags : avx2\n", "flags : avx2\ncpu MHz : 1\n"):
        other.write_text(text, encoding="ascii")
        monkeypatch.setattr(_facts, "_PROCESSOR", other)
        facts()
    assert len(the_cache.entries()) == 3  # the clock makes no other processor
    monkeypatch.setattr(_facts, "_PROCESSOR", tmp_path / "none")
    facts()
    assert len(the_cache.entries()) == 3


@pytest.mark.parametrize("data", [b"", b"{}", b"[1, 2, 3, 4]", b'["a", "b", {"c": 1}, "d"]', b"\xff"])
def test_entries_that_say_nothing_of_a_machine(facts, the_cache, data):
    asked = facts()
    (entry,) = the_cache.entries()
    assert the_cache.put("machines", bytes.fromhex(entry.name.split(".")[0]), data)
    assert facts() == asked
