"""Kernels as machine code: compiled, found in the cache, loaded, shared and freed."""

import gc
import operator
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from sabir.base import UnsupportedError
from sabir.compilation.native import Library, _objects, disassemble, host, optimized
from sabir.compilation.native._compile import object_of
from sabir.compilation.native._elf import undefined_symbols

ARANGE = np.arange(64, dtype=np.float32)
EMPTY = "define void @kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread) { ret void }"


def test_kernels_run_and_equal_texts_are_compiled_once(scaled, run):
    steps = []
    library = Library.load(
        [scaled(2), scaled(3), scaled(2)], host(), progress=lambda *step: steps.append(step)
    )
    assert library.compiled == 2
    assert library.addresses[0] == library.addresses[2] != library.addresses[1]
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert np.array_equal(run(library, 0), 2 * ARANGE)
    assert np.array_equal(run(library, 1), 3 * ARANGE)


def test_no_texts():
    assert Library.load([], host()).addresses == []


def test_code_is_shared_by_libraries_and_freed_with_the_last(scaled, run):
    first = Library.load([scaled(2), scaled(3)], host())
    second = Library.load([scaled(3), scaled(4)], host())
    assert second.compiled == 1
    assert second.addresses[0] == first.addresses[1]
    del first
    gc.collect()
    assert len(_objects._LOADED) == 2
    assert np.array_equal(run(second, 0), 3 * ARANGE)
    del second
    gc.collect()
    assert not _objects._LOADED


def test_texts_that_clash(monkeypatch):
    monkeypatch.setattr(_objects, "can_place", lambda: False)
    texts = [f"{EMPTY}\n@shared = global i64 {number}" for number in (1, 2)]
    with pytest.raises(UnsupportedError, match="cannot be loaded: .*[Dd]uplicate"):
        Library.load(texts, host())
    assert [Library.load([text], host()).compiled for text in texts] == [0, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the memory of a process in a file")
def test_freed_code_leaves_no_memory(scaled):
    def executable():  # bytes, as the system makes one line of neighbours
        with Path("/proc/self/maps").open(encoding="ascii") as file:
            ranges = [line.split()[0].split("-") for line in file if "r-xp 00000000 00:00 0" in line]
        return sum(int(end, 16) - int(start, 16) for start, end in ranges)

    Library.load([scaled(2)], host())  # the linker keeps some memory of its own
    gc.collect()
    before = executable()
    library = Library.load([scaled(factor) for factor in range(8)], host())
    during = executable()
    del library
    gc.collect()
    assert during > before
    assert executable() == before


def test_the_cache_is_used_by_the_next_process(scaled, load, run, output):
    texts = [scaled(2), scaled(3)]
    code = (
        f"from sabir.compilation.native import Library, host; print(Library.load({texts!r}, host()).compiled)"
    )
    assert [output(code), output(code)] == ["2\n", "0\n"]
    library = load(*texts)
    assert library.compiled == 0
    assert np.array_equal(run(library, 1), 3 * ARANGE)


def test_without_a_cache(scaled, load, monkeypatch, folder):
    monkeypatch.setenv("SABIR_CACHE", "off")
    assert [load(scaled(2)).compiled for _ in range(2)] == [1, 1]
    assert not folder.exists()


def test_processes_that_compile_the_same_at_once(scaled, script, the_cache):
    code = f"from sabir.compilation.native import Library, host; Library.load({[scaled(i) for i in range(8)]!r}, host())"
    processes = [script(code) for _ in range(3)]
    assert [process.communicate(timeout=60) for process in processes] == [("", "")] * 3
    assert [process.returncode for process in processes] == [0] * 3
    assert [e.kind for e in the_cache.entries() if e.kind != "machines"] == ["objects"] * 8
    assert not list(the_cache.problems())


def test_threads_that_load_at_once(scaled):
    texts, libraries = [scaled(i) for i in range(6)], []
    threads = [
        threading.Thread(target=lambda: libraries.append(Library.load(texts, host()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(library.compiled for library in libraries) == 6
    assert len({tuple(library.addresses) for library in libraries}) == 1


def test_a_fork_during_compilation(scaled, output):
    code = f"""
import os, threading, warnings
from sabir.compilation.native import Library, host
texts = {[scaled(i) for i in range(40)]!r}
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside threads
thread = threading.Thread(target=Library.load, args=(texts, host()))
thread.start()
codes = []
for text in texts[:4]:
    child = os.fork()
    if not child:
        os._exit(0 if len(Library.load([text], host()).addresses) == 1 else 1)
    codes.append(os.waitpid(child, 0)[1])
thread.join()
print(codes)
"""
    if hasattr(os, "fork"):
        assert output(code) == "[0, 0, 0, 0]\n"


def test_a_process_ends_while_code_runs(output):
    endless = EMPTY.replace("ret void", "\nbr label %again\nagain: br label %again\n")
    output(f"""
import ctypes, threading, time
from sabir.compilation.native import Library, host
library = Library.load([{endless!r}], host())
function = ctypes.CFUNCTYPE(None)(library.addresses[0])
threading.Thread(target=function, daemon=True).start()
time.sleep(0.05)
""")


def test_objects_are_the_same_bytes_everywhere(scaled, load, entry, output, tmp_path):
    load(scaled(2))
    assert object_of(scaled(2), "k", host()) == object_of(scaled(2), "k", host())
    code = f"from sabir.compilation.native import Library, host; Library.load([{scaled(2)!r}], host())"
    output(code, SABIR_CACHE=str(tmp_path / "other"), PYTHONHASHSEED="7")
    assert (tmp_path / "other" / "objects" / entry().name).read_bytes() == entry().read_bytes()


UNDEFINED = {
    "expf": "%x = load float, ptr %args\n%r = call float @llvm.exp.f32(float %x)\nstore float %r, ptr %args\n"
    "ret void }\ndeclare float @llvm.exp.f32(float)",
    "memset": "call void @llvm.memset.p0.i64(ptr %args, i8 0, i64 9999, i1 false)\nret void }\n"
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "printf": "call void @printf()\nret void }\ndeclare void @printf()",
    "environ": "store i64 0, ptr @environ\nret void }\n@environ = external global i64",
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_symbols_outside_are_refused_by_name(name, the_cache):
    text = EMPTY.replace("ret void }", f"\n{UNDEFINED[name]}")
    with pytest.raises(UnsupportedError, match=f"a kernel calls '{name}', which its machine code does not"):
        Library.load([text], host())
    assert not [e for e in the_cache.entries() if e.kind == "objects"]


INVALID = {
    "garbage": "not valid LLVM IR",
    "": "has no function @kernel",
    EMPTY.replace("kernel", "other"): "has no function @kernel",
    EMPTY.replace("ret void", "%x = add i64 1, %y\n ret void"): "use of undefined value '%y'",
    "define i64 @kernel(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i64 1, 2\n br label %b\nb:\n ret i64 %x\n}":
        "does not dominate",
    EMPTY.replace("ret void", 'call void asm sideeffect "nonsense", ""()\n ret void'): "contains assembly",
    'module asm "nonsense"\n' + EMPTY: "contains assembly",
    EMPTY + "\0 more": "null character",
    EMPTY + "; \udc80": "not valid LLVM IR",
    EMPTY.replace("ret void", "call void @llvm.aarch64.isb(i32 15)\n ret void")
    + "\ndeclare void @llvm.aarch64.isb(i32)": r"llvm\.aarch64\.isb, which the processor",
    EMPTY.replace("ret void", "call void @llvm.x86.nonsense()\n ret void")
    + "\ndeclare void @llvm.x86.nonsense()": r"llvm\.x86\.nonsense, which the processor",
}  # fmt: skip


@pytest.mark.parametrize("text", INVALID)
def test_texts_that_cannot_be_compiled(text):
    with pytest.raises(UnsupportedError, match=INVALID[text]):
        Library.load([text], host())


def test_the_word_of_assembly_in_names_is_no_assembly():
    Library.load([EMPTY.replace("ret void", "%asm = add i64 1, 1\n ret void")], host())


def flipped(at):
    def flip(data):
        data = bytearray(data)
        data[at] ^= 1
        return bytes(data)

    return flip


DAMAGES = {
    "empty": operator.itemgetter(slice(0)),
    "header cut": operator.itemgetter(slice(100)),
    "data cut": operator.itemgetter(slice(-1)),
    "longer": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"hello\n" * len(data),
    **{f"byte {at}": flipped(at) for at in (0, 8, 12, 40, 64, 75, 128, 300, -1)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_compiled_again(damage, scaled, load, run, entry):
    load(scaled(2))
    whole = entry().read_bytes()
    entry().write_bytes(DAMAGES[damage](whole))
    library = load(scaled(2))
    assert library.compiled == 1
    assert np.array_equal(run(library), 2 * ARANGE)
    assert entry().read_bytes() == whole


def test_an_entry_of_another_kernel_is_not_used(scaled, load, run, entry):
    load(scaled(3))
    other = entry().read_bytes()
    entry().unlink()
    load(scaled(2))
    entry().write_bytes(other)
    library = load(scaled(2))
    assert library.compiled == 1
    assert np.array_equal(run(library), 2 * ARANGE)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has pipes with a name")
def test_an_entry_that_is_no_file_is_replaced(scaled, load, entry, tmp_path):
    load(scaled(2))
    whole, path = entry().read_bytes(), entry()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(whole)
    for make in (lambda: path.symlink_to(elsewhere), lambda: os.mkfifo(path)):
        path.unlink()
        make()
        assert load(scaled(2)).compiled == 1
        assert path.is_file()
        assert not path.is_symlink()


@pytest.mark.parametrize("image", [b"", b"garbage", b"\x7fELF" + bytes(400)])
def test_valid_entries_that_contain_no_object(image, scaled, load, entry, the_cache):
    load(scaled(2))
    key = bytes.fromhex(entry().stem)
    whole = entry().read_bytes()
    assert the_cache.put("objects", key, image)
    assert load(scaled(2)).compiled == 1
    assert entry().read_bytes() == whole


def test_damaged_objects_raise(scaled):
    whole = object_of(scaled(2), "k", host())
    assert undefined_symbols(whole) == []
    for length in range(0, len(whole), 5):
        with pytest.raises(ValueError, match="object"):
            undefined_symbols(whole[:length])
    for at in range(64):  # the header; any other byte may be data
        try:
            undefined_symbols(flipped(at)(whole))
        except ValueError as error:
            assert "object" in str(error)
    for image in (whole[: len(whole) // 2], b"garbage"):
        with pytest.raises(UnsupportedError, match="cannot be loaded"):
            _objects._link({bytes(32): image}, host())


def test_the_text_of_code(scaled):
    assembly, ir = disassemble(scaled(2), host()), optimized(scaled(2), host())
    assert "kernel:" in assembly
    assert "ret" in assembly
    assert "alloca" in scaled(2)
    assert "alloca" not in ir
    assert "define void @kernel" in ir
    with pytest.raises(UnsupportedError, match="not valid LLVM IR"):
        disassemble("garbage", host())
    with pytest.raises(UnsupportedError, match="not valid LLVM IR"):
        optimized("garbage", host())
