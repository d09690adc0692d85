"""The door to files beside a model: what it opens, and what it does not."""

import os
import threading
from pathlib import Path

import pytest

from sabir.base import ExternalDataError
from sabir.files import open_inside, parts_of


def read(folder, location, **others):
    descriptor = open_inside(folder, location, **others)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


@pytest.fixture
def folder(tmp_path):
    """A model's folder, with a secret beside it."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "w.bin").write_bytes(b"weights")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "w.bin").write_bytes(b"secret")
    return made


@pytest.mark.parametrize(
    "name", ["w..v1.bin", "a b.bin", "gewichte-ü.bin", "weights:0.bin", "重み.bin", "..bin", "a.", "x" * 255]
)
def test_odd_names_are_legal(folder, name):
    (folder / name).write_bytes(b"odd")
    assert read(folder, name) == b"odd"
    assert read(folder, f"./{name}") == b"odd"


def test_a_file_in_a_folder_below(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "w.bin").write_bytes(b"deep")
    assert read(folder, "a/b/w.bin") == read(folder, "a//./b/w.bin") == b"deep"


@pytest.mark.parametrize(
    "location",
    [
        "", ".", "/", "./", "..", "../w.bin", "a/../w.bin", "w.bin/..", "/etc/passwd", "//host/share/w.bin",
        "C:w.bin", "c:/w.bin", "C:\\w.bin", "\\\\host\\share\\w.bin", "a\\..\\w.bin", "w.bin\0", "\0",
        "w\n.bin", "w\x7f.bin", "w\x9b.bin", "x" * 4097, "a/" * 2048 + "a",
        "w.bin/", "w.bin//", "w.bin/.", "w.bin/./", "./w.bin/", "a/", "a/.",
    ],
)  # fmt: skip
def test_locations_that_may_lead_elsewhere_are_refused(folder, location):
    with pytest.raises(ExternalDataError, match="the location"):
        parts_of(location)
    with pytest.raises(ExternalDataError, match="the location"):
        open_inside(folder, location)


@pytest.mark.parametrize("location", ["w.bin ", " w.bin", "w.bin.", "w.bin /w.bin", "W.BIN"])
def test_a_name_is_never_trimmed_to_that_of_another_file(folder, location):
    with pytest.raises(ExternalDataError, match="there is no such file"):
        open_inside(folder, location)


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("w.bin.", "dots and spaces"), ("w.bin ", "dots and spaces"), ("a. /w.bin", "dots and spaces"),
        ("...", "dots and spaces"), ("nul", "a device"), ("NUL.txt", "a device"), ("a/Con", "a device"),
        ("con/w.bin", "a device"), ("com1", "a device"), ("lpt9.data", "a device"), ("COM¹.x", "a device"),
        ("aux .data", "a device"), ("conin$", "a device"), ("w.bin:stream", "a colon"), ("ab:w.bin", "a colon"),
    ],
)  # fmt: skip
def test_what_windows_reads_as_something_else_is_refused_there_alone(location, problem):
    assert parts_of(location, windows=False) == location.split("/")
    with pytest.raises(ExternalDataError, match=problem):
        parts_of(location, windows=True)


@pytest.mark.parametrize("location", ["console", "nul_", "com", "com10", "a.nul", "w..v1.bin", " w", "a/b"])
def test_what_only_looks_like_a_device_is_a_name(location):
    assert parts_of(location, windows=True) == location.split("/")


@pytest.mark.parametrize("location", ["file:///etc/passwd", "~/w.bin", "$HOME/w.bin", "%2e%2e/w.bin", "*"])
def test_what_only_looks_like_a_way_out_is_a_name(folder, location):
    with pytest.raises(ExternalDataError, match="there is no such file"):
        open_inside(folder, location)


@pytest.mark.parametrize("location", ["\ud800", "x" * 300])
def test_names_that_the_system_cannot_have_are_refused(folder, location):
    with pytest.raises(ExternalDataError):
        open_inside(folder, location)


@pytest.mark.parametrize(
    "leads",
    [
        "../secret/w.bin", "/etc/passwd", "../model/../secret/w.bin", "../../{parent}/secret/w.bin",
        "{secret}/w.bin", "/proc/self/environ", "/dev/zero", ".", "..", "/", "../modelx", "link",
    ],
)  # fmt: skip
def test_links_that_lead_out_or_nowhere_are_refused(folder, leads):
    target = leads.format(parent=folder.parent.name, secret=folder.parent / "secret")
    (folder / "link").symlink_to(target)
    with pytest.raises(ExternalDataError):
        open_inside(folder, "link")


@pytest.mark.parametrize("leads", ["../secret", "/etc", "/", ".."])
def test_a_folder_that_is_a_link_out_is_refused(folder, leads):
    (folder / "inner").symlink_to(leads)
    for rest in ("w.bin", "passwd", "secret/w.bin", "etc/passwd"):
        with pytest.raises(ExternalDataError):
            open_inside(folder, f"inner/{rest}")


def test_links_that_stay_in_the_folder_are_followed(folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "up").symlink_to("../w.bin")
    (folder / "plain").symlink_to("w.bin")
    (folder / "absolute").symlink_to(folder / "w.bin")
    (folder / "chain").symlink_to("inner/up")
    (folder / "same").symlink_to(".")
    (folder / "through").symlink_to("inner")
    for location in ("inner/up", "plain", "absolute", "chain", "same/w.bin", "through/up", "same/same/plain"):
        assert read(folder, location) == b"weights"


def test_a_chain_of_links_has_an_end(folder):
    before = "w.bin"
    for number in range(9):
        (folder / f"l{number}").symlink_to(before)
        before = f"l{number}"
    assert read(folder, "l7") == b"weights"
    with pytest.raises(ExternalDataError, match="more than 8 symbolic links"):
        open_inside(folder, "l8")
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    with pytest.raises(ExternalDataError, match="more than 8 symbolic links"):
        open_inside(folder, "a")


def test_a_chain_that_ends_outside_is_refused(folder):
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("../secret/w.bin")
    with pytest.raises(ExternalDataError, match="leads out"):
        open_inside(folder, "a")


def test_links_may_end_where_the_model_file_itself_lies(folder):
    """The layout of the Hugging Face cache: snapshots of links to files that are named by their digests."""
    blobs, snapshot = folder.parent / "blobs", folder.parent / "snapshots" / "1f2e"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "abc").write_bytes(b"blob")
    (snapshot / "model.onnx_data").symlink_to("../../blobs/abc")
    assert read(snapshot, "model.onnx_data", real=blobs) == b"blob"
    with pytest.raises(ExternalDataError, match="leads out"):
        open_inside(snapshot, "model.onnx_data")
    (snapshot / "other").symlink_to("../../secret/w.bin")
    with pytest.raises(ExternalDataError, match="leads out"):
        open_inside(snapshot, "other", real=blobs)
    (blobs / "hop").symlink_to("../secret/w.bin")
    (snapshot / "hop").symlink_to("../../blobs/hop")
    with pytest.raises(ExternalDataError, match="leads out"):
        open_inside(snapshot, "hop", real=blobs)


def test_the_way_to_the_folder_may_have_links(folder):
    alias = folder.parent / "alias"
    alias.symlink_to("model")
    assert read(alias, "w.bin") == b"weights"
    (folder / "absolute").symlink_to(alias / "w.bin")
    assert read(alias, "absolute") == b"weights"


@pytest.mark.parametrize("kind", ["hard link", "pipe", "directory", "device", "socket"])
def test_only_files_with_one_name_are_opened(folder, kind):
    target = folder / "it"
    match kind:
        case "hard link":
            os.link(folder.parent / "secret" / "w.bin", target)
        case "pipe":
            os.mkfifo(target)
        case "directory":
            target.mkdir()
        case "device":
            target.symlink_to("/dev/zero")
        case "socket":
            os.mknod(target, 0o140666)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ExternalDataError, match="'it'"):
        open_inside(folder, "it")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_is_no_folder(folder):
    with pytest.raises(ExternalDataError, match="[Nn]ot a directory"):
        open_inside(folder, "w.bin/x")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ExternalDataError, match="there is no such file"):
        open_inside(tmp_path / "nowhere", "w.bin")


def test_nobody_wins_a_race_between_the_look_and_the_opening(folder):
    """A name that turns from a file into a link out and back, all the time."""
    inner = folder / "inner"
    inner.mkdir()
    (inner / "w.bin").write_bytes(b"weights")
    for name, leads in (("inner.link", "../secret"), ("file.link", "../../secret/w.bin")):
        (folder / name).symlink_to(leads)
    stop = threading.Event()

    def swap(name, spare):
        while not stop.is_set():
            (folder / name).rename(folder / f"{spare}.old")
            (folder / spare).rename(folder / name)
            (folder / name).rename(folder / spare)
            (folder / f"{spare}.old").rename(folder / name)

    thread = threading.Thread(target=swap, args=("inner", "inner.link"))
    thread.start()
    outcomes = set()
    try:
        for _ in range(3000):
            try:
                outcomes.add(read(folder, "inner/w.bin"))
            except ExternalDataError:
                outcomes.add("refused")
    finally:
        stop.set()
        thread.join()
    assert outcomes <= {b"weights", "refused"}
    assert b"weights" in outcomes


def test_systems_that_hold_no_folders_open_keep_the_same_rules(folder, monkeypatch):
    monkeypatch.setattr("sabir.files._folders._CAN_KEEP_OPEN", False)
    assert read(folder, "w.bin") == b"weights"
    (folder / "plain").symlink_to("w.bin")
    assert read(folder, "plain") == b"weights"
    (folder / "out").symlink_to("../secret/w.bin")
    (folder / "inner").symlink_to("../secret")
    os.mkfifo(folder / "pipe")
    os.link(folder / "w.bin", folder / "hard")
    for location in ("out", "inner/w.bin", "pipe", "hard", "nothing", ".."):
        with pytest.raises(ExternalDataError):
            open_inside(folder, location)
