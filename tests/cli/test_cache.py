"""`sabir cache`."""

import json
import os

import pytest

from sabir.compilation.disk import cache

KEY, OTHER = bytes(range(32)), bytes(32)


pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "cache"
    monkeypatch.setenv("SABIR_CACHE", str(place))
    monkeypatch.setenv("SABIR_CACHE_SIZE", "3MiB")
    return place


@pytest.fixture
def full(folder):
    """A cache with two plans and one object."""
    for kind, key in (("plans", KEY), ("plans", OTHER), ("objects", KEY)):
        cache().put(kind, key, bytes(1000))
    return folder


@pytest.mark.parametrize("words", [("cache",), ("cache", "show")])
def test_what_it_contains(cli, full, words):
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    first, *rows = out.splitlines()
    assert first == f"{full}: 3 entries, 3.3 KiB, of 3.0 MiB"
    assert [row.split() for row in rows] == [["objects", "1", "1.1", "KiB"], ["plans", "2", "2.2", "KiB"]]
    code, out, err = cli(*words, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "folder": str(full), "limit": 3 << 20,
        "kinds": {"objects": {"entries": 1, "bytes": 1128}, "plans": {"entries": 2, "bytes": 2256}},
    }  # fmt: skip


def test_an_empty_cache(cli, folder):
    assert cli("cache").out == f"{folder}: 0 entries, 0 bytes, of 3.0 MiB\n"
    assert cli("cache", "clear").out == "removed 0 entries, 0 bytes\n"
    assert cli("cache", "verify").out == "no entry is damaged\n"
    assert not folder.exists()


def test_no_cache(cli, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", "off")
    assert cli("cache").out == "the cache is off\n"
    assert json.loads(cli("cache", "show", "--json").out) == {"folder": None, "limit": 3 << 20, "kinds": {}}


def test_damaged_entries(cli, full):
    assert cli("cache", "verify") == (0, "no entry is damaged\n", "")
    name = f"{KEY.hex()}.sabir"
    os.truncate(full / "objects" / name, 900)
    code, out, err = cli("cache", "verify")
    assert (code, err) == (1, "")
    assert out == f"objects/{name}: it is truncated\n1 entry damaged\n"
    code, out, _ = cli("cache", "verify", "--json")
    assert code == 1
    assert json.loads(out) == [{"kind": "objects", "name": name, "problem": "it is truncated"}]


@pytest.mark.usefixtures("full")
def test_clear(cli):
    assert cli("cache", "clear") == (0, "removed 3 entries, 3.3 KiB\n", "")
    assert cache().entries() == []
    assert json.loads(cli("cache", "clear", "--json").out) == {"entries": 0, "bytes": 0}


def test_wrong_use(fails):
    assert fails("cache", "--json", "verify") == "write --json after the command: sabir cache verify --json"


@pytest.mark.filterwarnings("always")
@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_folder_that_is_not_used(cli, full):
    full.chmod(0o777)
    code, out, err = cli("cache")
    assert (code, out) == (0, f"{full}: 0 entries, 0 bytes, of 3.0 MiB\n")
    assert err.startswith(
        f"warning: compiled models are not cached in {full}: others may write to it (mode 777)"
    )
