"""The cache on disk."""

import contextlib
import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sabir.base import FileError, SabirError, SabirWarning
from sabir.compilation.disk import Cache, cache
from sabir.compilation.disk import folder as _cache
from sabir.compilation.disk.entries import HEADER_SIZE
from sabir.compilation.disk.places import place, unsafe
from sabir.compilation.native import Library, host
from sabir.files import MappedFile, NewFile

KEY, OTHER = bytes(range(32)), bytes(32)
LARGE = bytes(range(256)) * (1 << 13)  # 2 MiB
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and owners are those of POSIX")


def file_of(folder, kind="plans", key=KEY):
    return folder / kind / f"{key.hex()}.sabir"


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def aged(path, seconds):
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


@contextlib.contextmanager
def warned(match):
    """Expect one warning, however often what is in the block is done."""
    with pytest.warns(SabirWarning, match=match) as found:
        yield
    assert len(found) == 1


@pytest.mark.parametrize("data", [b"", b"x", bytes(1000), LARGE])
def test_what_was_put_is_found(data, the_cache, folder):
    assert the_cache.get("plans", KEY) is None
    assert the_cache.put("plans", KEY, data)
    for found in (the_cache.get("plans", KEY), Cache(folder).get("plans", KEY, verify=True)):
        assert found == data
        assert found.readonly
        assert not len(data) or np.asarray(found).ctypes.data % 64 == 0
    assert the_cache.get("plans", OTHER) is None
    assert the_cache.get("weights", KEY) is None
    assert the_cache.put("plans", KEY, memoryview(b"new"))
    assert the_cache.get("plans", KEY) == b"new"
    assert [(e.kind, e.size) for e in the_cache.entries()] == [("plans", HEADER_SIZE + 3)]


def test_only_the_user_can_read_and_write_it(the_cache, folder):
    the_cache.put("plans", KEY, b"data")
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (folder, folder / "plans", file_of(folder))]
    assert os.name != "posix" or modes == [0o700, 0o700, 0o600]
    assert names_in(folder / "plans") == [file_of(folder).name]


def test_kinds_and_keys():
    for kind in ("", "Plans", "../x", "a/b", "x" * 21, "a.b"):
        with pytest.raises(SabirError, match="is no kind of entry"):
            Cache(None).get(kind, KEY)
    with pytest.raises(SabirError, match="digest of 32 bytes, and this has 31"):
        Cache(None).put("plans", KEY[:31], b"")


def test_large_data_is_mapped_and_verified_on_request(the_cache, folder):
    the_cache.put("weights", KEY, LARGE)
    found = the_cache.get("weights", KEY)
    assert isinstance(found.obj, MappedFile)
    with file_of(folder, "weights").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\0")
    assert the_cache.get("weights", KEY) is not None
    assert the_cache.get("weights", KEY, verify=True) is None
    assert not file_of(folder, "weights").exists()
    assert len(found) == len(LARGE)  # a map outlives the name of its file


def test_large_data_that_is_cut_is_not_found(the_cache, folder):
    the_cache.put("weights", KEY, LARGE)
    os.truncate(file_of(folder, "weights"), 1 << 20)
    assert the_cache.get("weights", KEY) is None


@POSIX
def test_folders_that_others_may_write_to_are_refused(folder, scaled, load):
    folder.mkdir()
    for mode in (0o770, 0o707, 0o1777):
        folder.chmod(mode)
        with warned(f"others may write to it .mode {mode:o}"):
            assert not Cache(folder).put("plans", KEY, b"data")
            assert [load(scaled(2)).compiled for _ in range(2)] == [1, 1]
            assert Cache(folder).entries() == []
    assert not list(folder.glob("**/*.*"))


@POSIX
def test_the_folder_of_a_kind_must_be_safe_too(the_cache, folder):
    the_cache.put("plans", KEY, b"data")
    (folder / "plans").chmod(0o777)
    with warned("others may write to it"):
        assert the_cache.get("plans", KEY) is None


@POSIX
def test_links_are_refused(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    assert Cache(real).put("plans", KEY, b"data")
    link.symlink_to(real)
    with warned("it is a link; name the folder that it leads to"):
        assert Cache(link).get("plans", KEY) is None
    (real / "weights").symlink_to(real / "plans")
    with pytest.warns(SabirWarning):
        assert Cache(real).get("weights", KEY) is None


@POSIX
@pytest.mark.parametrize("spoil", ["mode", "link", "owner"])
def test_entries_that_others_may_have_written_are_ignored_with_a_warning(
    the_cache, folder, spoil, monkeypatch
):
    the_cache.put("plans", KEY, b"data")
    (path,) = (folder / "plans").glob("*.sabir")
    if spoil == "mode":
        path.chmod(0o666)
    elif spoil == "link":
        os.link(path, folder / "another")
    else:
        real = os.fstat

        def of_another(descriptor):
            found = real(descriptor)
            return os.stat_result((*found[:4], 12345, *found[5:])) if stat.S_ISREG(found.st_mode) else found

        monkeypatch.setattr(_cache.os, "fstat", of_another)
    with warned(f"the entry .*{path.name} of the cache is not used: .*(others may|names|another user)"):
        assert the_cache.get("plans", KEY) is None
    assert path.exists()
    monkeypatch.undo()
    assert the_cache.put("plans", KEY, b"new")
    assert bytes(the_cache.get("plans", KEY)) == b"new"


def test_a_folder_whose_name_is_too_long_is_a_warning(tmp_path):
    with warned("name too long"):
        assert Cache(tmp_path / ("x" * 300)).get("plans", KEY) is None


@POSIX
def test_owners(monkeypatch):
    def owned(user, mode=stat.S_IFDIR | 0o755):
        return unsafe(os.stat_result((mode, 0, 0, 1, user, 0, 0, 0, 0, 0)))

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not owned(1000)
    assert not owned(0)
    assert owned(1001) == "it belongs to another user (number 1001)"
    assert owned(1000, stat.S_IFREG | 0o600) == "it is not a folder"


def test_a_file_in_place_of_the_folder(folder):
    folder.write_bytes(b"")
    with warned("it is not a folder"):
        assert not Cache(folder).put("plans", KEY, b"data")
        assert Cache(folder).get("plans", KEY) is None


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "")])
def test_a_disk_that_cannot_be_written(error, folder, scaled, load, run, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(NewFile, "take", fail)
    with warned("compiled models are not cached in .*: (No space left on device|permission denied)"):
        for _ in range(2):
            library = load(scaled(2))
            assert library.compiled == 1
            assert run(library)[1] == 2
            del library
    assert names_in(folder / "objects") == []


def test_a_folder_that_cannot_be_made(folder, monkeypatch):
    def fail(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", fail)
    with warned("Read-only file system"):
        assert not Cache(folder).put("plans", KEY, b"data")


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the size of files stands for a full disk")
def test_a_write_that_stops_half_way(output, folder):
    out = output("""
import resource, signal, warnings
from sabir.compilation.disk import cache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    print(cache().put("weights", bytes(32), bytes(1 << 20)), cache().put("plans", bytes(32), b"small"))
    print([str(w.message).split(": ")[1] for w in found])
""")
    assert out == "False True\n['File too large. Set SABIR_CACHE to another folder, or to off']\n"
    assert names_in(folder / "weights") == []


def test_an_interrupted_write_leaves_the_old_entry(the_cache, folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    the_cache.put("plans", KEY, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(NewFile, "take", interrupt)
        with pytest.raises(KeyboardInterrupt):
            the_cache.put("plans", KEY, b"new")
    assert the_cache.get("plans", KEY) == b"old"
    assert names_in(folder / "plans") == [file_of(folder).name]


def test_the_entries_used_last_are_kept(folder):
    small = Cache(folder, 10_000)
    keys = [bytes([i]) * 32 for i in range(30)]
    for number, key in enumerate(keys):
        assert small.put("plans", key, bytes(900))
        aged(file_of(folder, key=key), 3600 * (100 - number))
        assert sum(e.size for e in small.entries()) <= 10_000
        assert small.get("plans", keys[0]) is not None  # in use, so it stays
    kept = [e.name[:2] for e in small.entries()]
    assert "00" in kept
    assert "1d" in kept
    assert "01" not in kept
    assert not small.put("plans", KEY, bytes(10_000))
    assert small.get("plans", KEY) is None


def test_many_processes_are_bounded_together(folder):
    caches = [Cache(folder, 10_000) for _ in range(3)]
    for number in range(60):
        caches[number % 3].put("plans", bytes([number]) * 32, bytes(900))
    assert sum(e.size for e in caches[0].entries()) <= 12_000


def test_the_number_of_entries_is_bounded(folder, monkeypatch):
    monkeypatch.setattr("sabir.compilation.disk.folder._MOST", 10)
    for number in range(30):
        Cache(folder).put("plans", bytes([number]) * 32, b"")
    assert len(Cache(folder).entries()) <= 11


def test_a_use_is_noted_once_a_day(the_cache, folder):
    the_cache.put("plans", KEY, b"data")
    for hours, moved in ((1, False), (30, True)):
        aged(file_of(folder), 3600 * hours)
        before = file_of(folder).stat().st_mtime
        the_cache.get("plans", KEY)
        assert (file_of(folder).stat().st_mtime > before) is moved


def test_files_of_interrupted_processes_are_removed_after_an_hour(the_cache, folder):
    the_cache.put("plans", KEY, b"data")
    old, new = (folder / "plans" / f".abc.{digit * 16}.tmp" for digit in "01")
    for path in (old, new):
        path.write_bytes(b"half")
    aged(old, 7200)
    Cache(folder).put("plans", OTHER, b"data")
    assert (old.exists(), new.exists()) == (False, True)


def test_clear_removes_entries_only(the_cache, folder):
    for kind in ("plans", "objects"):
        the_cache.put(kind, KEY, b"data")
    for name in ("notes.txt", "plans/README", f"plans/{'0' * 64}"):
        (folder / name).write_text("mine", encoding="ascii")
    assert sorted(e.kind for e in the_cache.clear()) == ["objects", "plans"]
    assert the_cache.entries() == the_cache.clear() == []
    assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == ["0" * 64, "README", "notes.txt"]


def test_an_entry_that_cannot_be_removed(the_cache, folder):
    file_of(folder).mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "plans").chmod(0o700)
    with pytest.raises(FileError, match="cannot be removed"):
        the_cache.clear()


def test_problems_are_listed(the_cache, folder):
    the_cache.put("plans", KEY, b"data")
    the_cache.put("weights", KEY, LARGE)
    the_cache.put("weights", OTHER, LARGE)
    assert list(the_cache.problems()) == []
    os.truncate(file_of(folder), 50)
    with file_of(folder, "weights").open("r+b") as file:
        file.seek(5000)
        file.write(b"??")
    assert {(e.kind, problem) for e, problem in the_cache.problems()} == {
        ("plans", "it is truncated, or not a file"), ("weights", "its data is corrupt"),
    }  # fmt: skip


# ---------------------------------------------------------------- the environment


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("SABIR_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert place() == (tmp_path / ".cache" / "sabir", 1 << 30)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification of XDG says to ignore
    assert place().folder == tmp_path / ".cache" / "sabir"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert place().folder == tmp_path / "xdg" / "sabir"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert place().folder == tmp_path / "Library" / "Caches" / "sabir"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert place().folder == tmp_path / "local" / "sabir"
    monkeypatch.delenv("LOCALAPPDATA")
    assert place().folder == tmp_path / "AppData" / "Local" / "sabir"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SABIR_CACHE", "here")
    assert place().folder == tmp_path / "here"
    for off in ("off", "OFF"):
        monkeypatch.setenv("SABIR_CACHE", off)
        assert cache().folder is None
        assert not cache().put("plans", KEY, b"data")


def test_without_a_home(monkeypatch):
    def fail():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.delenv("SABIR_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with warned("there is no home folder; set SABIR_CACHE"):
        assert cache().folder is None
        assert Library.load(["define void @kernel() { ret void }"], host()).compiled == 1
    monkeypatch.setenv("SABIR_CACHE", "~nobody-of-this-name/cache")
    assert cache().folder is None


def test_sizes(monkeypatch):
    for text, size in (
        ("1000", 1000),
        ("500M", 500 << 20),
        ("2GiB", 2 << 30),
        ("3 kb", 3 << 10),
        ("1T", 1 << 40),
        ("0", 0),
    ):
        monkeypatch.setenv("SABIR_CACHE_SIZE", text)
        assert cache().limit == size
    for text in ("much", "-1", "1.5G", "9" * 30):
        monkeypatch.setenv("SABIR_CACHE_SIZE", text)
        with warned("SABIR_CACHE_SIZE is .*, which is no size such as 500M or 2GiB"):
            assert cache().limit == 1 << 30
            assert cache().limit == 1 << 30
