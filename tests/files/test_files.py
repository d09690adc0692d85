"""Reading files: small ones into memory, large ones mapped, and none that can end the process."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.base import FileError
from sabir.files import MappedFile, map_file, pieces_of, untruncated

LARGE = 9 << 20  # mapped; smaller files are read


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def sparse(path, size=LARGE):
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_small_file_is_read_and_a_large_one_mapped(tmp_path):
    (tmp_path / "small").write_bytes(b"abc")
    assert map_file(tmp_path / "small").obj == b"abc"
    assert isinstance(map_file(sparse(tmp_path / "large")).obj, MappedFile)
    assert map_file(tmp_path / "large", mapped=False).obj == bytes(LARGE)
    (tmp_path / "empty").write_bytes(b"")
    assert len(map_file(tmp_path / "empty")) == 0


def test_a_map_tells_that_its_file_was_cut_short(tmp_path):
    path = sparse(tmp_path / "large")
    data = map_file(path)
    assert untruncated(data[5:9]) == bytes(4)
    os.truncate(path, LARGE - 1)
    with pytest.raises(
        FileError, match=rf"the file had {LARGE} bytes when it was opened, and now has {LARGE - 1}"
    ):
        untruncated(data[5:9])
    assert b"".join(data.obj.pieces(0, LARGE - 1)) == bytes(LARGE - 1)
    with pytest.raises(FileError, match=f"the file ends at byte {LARGE - 1}, and must have {LARGE}"):
        list(data.obj.pieces(0, LARGE))


def test_a_map_lets_go_of_its_file(tmp_path):
    before = open_files()
    data = map_file(sparse(tmp_path / "large"))
    assert open_files() == before + 2
    del data
    assert open_files() == before


def test_pieces_are_small(tmp_path):
    path = sparse(tmp_path / "large")
    descriptor = os.open(path, os.O_RDONLY)
    sizes = [len(piece) for piece in pieces_of(descriptor, 10, 5 << 20, "it")]
    os.close(descriptor)
    assert sum(sizes) == 5 << 20
    assert max(sizes) <= 1 << 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "there is no such file"),
        (Path.mkdir, "this is a directory"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.symlink_to(path), "[Ss]ymbolic"),
    ],
    ids=["nothing", "directory", "pipe", "device", "loop"],
)
def test_what_is_no_file_is_refused(tmp_path, make, message):
    path = tmp_path / "it"
    make(path)
    with pytest.raises(FileError, match=message):
        map_file(path)


def test_a_path_that_no_system_has_is_refused():
    with pytest.raises(FileError, match="null"):
        map_file(Path("a\0b"))


SHRINKING = """
    import os, sys
    import numpy as np
    import sabir
    from sabir.base import SabirError
    path, kept = sys.argv[1:]
    model = sabir.load(path, mapped=kept == "mapped")
    tensor = next(iter(model.graph.initializers.values()))
    held = tensor.array() if kept == "read" else None
    os.truncate(path, 4096)
    if held is not None:
        assert held.sum() == held.size
    for ask in (lambda: tensor.array().sum(), lambda: sabir.save(model, path + ".new", format="protobuf"), lambda: sabir.dumps(model)):
        try:
            ask()
            print("right")
        except SabirError as error:
            print(type(error).__name__)
    print(sorted(os.listdir(os.path.dirname(path))))
"""


@pytest.mark.parametrize(("how", "told"), [("mapped", ["FileError"] * 3), ("read", ["right"] * 3)])
def test_a_model_file_that_shrinks_ends_no_process(tmp_path, how, told):
    b = sabir.Builder(21)
    b.output(b.Relu(b.initializer("w", np.ones(3 << 20, np.float32))), "y")
    path = tmp_path / "m.onnx"
    sabir.save(b.model(), path)
    code = [sys.executable, "-c", textwrap.dedent(SHRINKING), str(path), how]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own code, which may end its process
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode != -signal.SIGBUS
    *answers, files = done.stdout.splitlines()
    assert answers == told, done.stderr
    assert files == ("['m.onnx']" if how == "mapped" else "['m.onnx', 'm.onnx.new']")
