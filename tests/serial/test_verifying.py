"""What is wrong with external data is told, tensor by tensor, without reading it."""

import os

import numpy as np
import pytest

import sabir
from sabir.base import ExternalDataError
from sabir.ir import all_tensors
from sabir.serial import external_problems
from support.externals import contents, everywhere, message_in, model_of, tensor_messages

A = np.arange(1000, dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    """A model of three tensors of 4000 bytes, at 0, 4096 and 8192."""
    sabir.save(model_of(a=A, b=A + 1, c=A + 2), tmp_path / "m.onnx", external="w", checksum=True)
    return tmp_path / "m.onnx"


def change(path, which, **entries):
    """Write other entries for one tensor; None takes one away."""
    message = message_in(path)
    tensor = message.graph.initializer[which]
    found = {e.key: e.value for e in tensor.external_data} | entries
    del tensor.external_data[:]
    for key, value in found.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(message.SerializeToString())


def problems(path, **options):
    return [(p.kind, str(p.where), p.message) for p in external_problems(sabir.load(path), **options)]


def test_nothing_is_wrong_with_what_was_saved(path):
    assert problems(path, checksums=True) == []
    assert contents(sabir.load(path, verify=True))[2][0] == 2


def test_a_file_that_is_missing_is_a_problem_of_each_tensor(path):
    (path.parent / "w").unlink()
    found = problems(path)
    assert [kind for kind, *_ in found] == ["data"] * 3
    assert [where for _, where, _ in found] == [f"graph/initializer {name!r}" for name in "abc"]
    with pytest.raises(ExternalDataError, match=r"graph/initializer 'a': external data 'w' .* no such file"):
        sabir.load(path, verify=True)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": 8193}, "needs bytes 8193 to 12193, and the file has 12192"),
        ({"offset": 10**18}, "and the file has 12192"),
        ({"length": 3999}, "`length` is 3999"),
        ({"length": "4_000"}, "must be a number"),
        ({"location": "../w"}, "must stay in the model's folder"),
        ({"location": "v"}, "there is no such file"),
        ({"location": None}, "must have 1 to"),
    ],
)
def test_one_tensor_is_at_fault(path, entries, message):
    change(path, 2, **entries)
    ((kind, where, told),) = problems(path)
    assert (kind, where) == ("data", "graph/initializer 'c'")
    assert message in told
    with pytest.raises(ExternalDataError, match="graph/initializer 'c': "):
        sabir.load(path, verify=True)


def test_a_digest_that_does_not_fit(path):
    data = bytearray((path.parent / "w").read_bytes())
    data[5000] ^= 1
    (path.parent / "w").write_bytes(data)
    assert problems(path) == []
    assert [kind for kind, *_ in problems(path, checksums=True)] == ["checksum"] * 3
    with pytest.raises(
        ExternalDataError, match=r"the SHA1 digest of 'w' is [0-9a-f]{40}, not '[0-9a-f]{40}'"
    ):
        sabir.load(path, verify=True)


@pytest.mark.parametrize(("digest", "right"), [(None, True), ("", False), ("x", False), ("0" * 40, False)])
def test_only_a_digest_that_is_told_is_compared(path, digest, right):
    change(path, 1, checksum=digest)
    assert (problems(path, checksums=True) == []) == right


def test_a_digest_in_capitals_is_the_same(path):
    told = sabir.load(path).graph.initializers
    digest = next(iter(told.values())).entries["checksum"]
    change(path, 0, checksum=digest.upper())
    assert problems(path, checksums=True) == []


def test_ranges_that_overlap_in_part_are_told(path):
    change(path, 1, offset=3000, checksum=None)
    ((kind, where, told),) = problems(path)
    assert (kind, where) == ("overlap", "graph/initializer 'b'")
    assert told == "its data, bytes 3000 to 7000, overlaps that of graph/initializer 'a', which ends at 4000"
    sabir.load(path, verify=True)  # odd, but all data is there


def test_ranges_that_are_the_same_are_shared(path):
    change(path, 1, offset=0)
    assert problems(path) == []


def test_overlaps_are_found_under_every_name_of_a_file(path):
    (path.parent / "link").symlink_to("w")
    change(path, 1, location="link", offset=1000)
    assert [kind for kind, *_ in problems(path)] == ["overlap"]


def test_every_tensor_is_looked_at(tmp_path):
    sabir.save(everywhere(), tmp_path / "m.onnx", external="w")
    os.truncate(tmp_path / "w", 0)
    model = sabir.load(tmp_path / "m.onnx")
    found = [p.where for p in external_problems(model)]
    assert found == [where for _, where, _ in all_tensors(model)]
    assert len(set(found)) == len(found) == len(list(tensor_messages(message_in(tmp_path / "m.onnx"))))


def test_a_model_without_a_folder(path):
    model = sabir.loads(path.read_bytes())
    assert [kind for kind, *_ in external_problems(model)] == ["data"] * 3
    with pytest.raises(ExternalDataError, match="pass the `folder`"):
        sabir.loads(path.read_bytes(), verify=True)
    assert sabir.loads(path.read_bytes(), folder=path.parent, verify=True)
