"""A file is replaced whole or not at all, whatever happens on the way."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from sabir.base import FileError
from sabir.files import LazyBytes, replace_file, writable


def in_a_process(code, *arguments, **options):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own code, which is ended or limited from outside
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, **options)


def test_chunks_of_every_kind_are_written_in_order(tmp_path):
    told = []
    large = bytes(range(256)) * 8192
    chunks = [b"a", memoryview(b"bc"), large, b"", LazyBytes(4, lambda: iter((b"de", b"fg"))), b"h"]
    replace_file(tmp_path / "f", chunks, written=told.append)
    assert (tmp_path / "f").read_bytes() == b"abc" + large + b"defgh"
    assert sum(told) == len(large) + 8
    assert len(told) > 4


@pytest.mark.parametrize("size", [3, 5])
def test_a_stream_of_another_length_is_an_error(tmp_path, size):
    with pytest.raises(FileError, match=f"{size} bytes were expected, and 4 read"):
        replace_file(tmp_path / "f", [LazyBytes(size, lambda: iter((b"abcd",)))])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path, error, old):
    path = tmp_path / "f"
    if old is not None:
        path.write_bytes(old)

    def chunks():
        yield bytes(1 << 20)
        raise error

    with pytest.raises((FileError, KeyboardInterrupt, MemoryError)):
        replace_file(path, chunks())
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if old is None else [old])


def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    code = """
        import resource, sys
        from pathlib import Path
        from sabir.base import FileError
        from sabir.files import replace_file
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            replace_file(Path(sys.argv[1]), [bytes(1000)] * 1000)
        except FileError as error:
            print(error)
    """
    process = in_a_process(code, tmp_path / "f")
    told, _ = process.communicate()
    assert process.returncode == 0
    assert "too large" in told
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    code = """
        import sys, time
        from pathlib import Path
        from sabir.files import replace_file
        def chunks():
            yield bytes(1 << 20)
            yield bytes(1 << 20)
            print("writing", flush=True)
            time.sleep(60)
        replace_file(Path(sys.argv[1]), chunks())
    """
    process = in_a_process(code, tmp_path / "f")
    assert process.stdout.readline() == "writing\n"
    process.kill()
    process.communicate()
    assert (tmp_path / "f").read_bytes() == b"old"
    (litter,) = {p.name for p in tmp_path.iterdir()} - {"f"}
    assert litter.startswith(".f.")  # hidden, and named after the file


def test_an_interrupt_leaves_no_litter(tmp_path):
    code = """
        import sys, time
        from pathlib import Path
        from sabir.files import replace_file
        def chunks():
            yield bytes(1 << 20)
            print("writing", flush=True)
            time.sleep(60)
        try:
            replace_file(Path(sys.argv[1]), chunks())
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = in_a_process(code, tmp_path / "f")
    assert process.stdout.readline() == "writing\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0] == "interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["directory", "pipe", "device", "link to a directory", "loop"])
def test_what_is_no_file_is_not_replaced(tmp_path, kind):
    path = tmp_path / "f"
    match kind:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/null")
        case "link to a directory":
            path.symlink_to(tmp_path)
        case "loop":
            path.symlink_to(path)
    before = path.lstat()
    with pytest.raises(FileError):
        replace_file(path, [b"new"])
    assert os.path.samestat(path.lstat(), before)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("path", "message"), [("a\0b", "null"), ("nowhere/f", "no folder"), ("/f/g", "no folder")]
)
def test_a_path_that_cannot_be(tmp_path, path, message):
    with pytest.raises(FileError, match=message):
        writable(tmp_path / path)


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"old")
    (tmp_path / "link").symlink_to("a/f")
    (tmp_path / "new").symlink_to("a/g")
    replace_file(tmp_path / "link", [b"new"])
    replace_file(tmp_path / "new", [b"newer"])
    assert (tmp_path / "link").readlink() == Path("a/f")
    assert {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()} == {"f": b"new", "g": b"newer"}


def test_another_name_of_the_file_keeps_the_old_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    os.link(tmp_path / "f", tmp_path / "g")
    replace_file(tmp_path / "f", [b"new"])
    assert (tmp_path / "g").read_bytes() == b"old"


def test_permissions_are_those_of_the_old_file_or_the_usual_ones(tmp_path):
    path = tmp_path / "f"
    mask = os.umask(0o027)
    try:
        replace_file(path, [b"1"])
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    replace_file(path, [b"2"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can become a user without rights")
def test_a_folder_that_may_not_be_written():
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "f"
        path.write_bytes(b"old")
        Path(name).chmod(0o555)
        os.seteuid(65534)
        try:
            with pytest.raises(FileError, match="permission denied; the old file, if any, is as it was"):
                replace_file(path, [b"new"])
        finally:
            os.seteuid(0)
        assert path.read_bytes() == b"old"
        assert list(Path(name).iterdir()) == [path]


def test_a_long_name_has_room_for_its_temporary_one(tmp_path):
    replace_file(tmp_path / ("x" * 255), [b"new"])
    replace_file(tmp_path / ("\N{MOUSE}" * 63), [b"new"])
    assert sorted(len(p.name) for p in tmp_path.iterdir()) == [63, 255]
