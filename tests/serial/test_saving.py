"""Saving: whole or not at all, without copies, and of any size."""

import mmap
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import sabir
from sabir.base import FileError, WireError
from sabir.elements import pack
from sabir.files import replace_file
from sabir.ir import Function, Graph, Node, Tensor
from sabir.proto import BulkWriter
from sabir.serial._tensors import TensorWriter
from sabir.serial._writer import ModelWriter


def model_of(*arrays):
    b = sabir.Builder(21)
    b.output(b.Concat(*(b.initializer("w", a) for a in arrays), axis=0), "y", "float", [None])
    return b.model()


def test_arrays_come_back(tmp_path):
    big, small = np.arange(100_000, dtype=np.float32), np.array([1.5], np.float32)
    sabir.save(model_of(big, small), tmp_path / "m.onnx")
    again = [t.array() for t in sabir.load(tmp_path / "m.onnx").graph.initializers.values()]
    np.testing.assert_array_equal(again[0], big)
    np.testing.assert_array_equal(again[1], small)
    assert not again[0].flags.owndata  # it lies in the mapped file


def test_saving_over_the_file_that_is_mapped(tmp_path):
    path = tmp_path / "m.onnx"
    data = np.arange(100_000, dtype=np.float32)
    sabir.save(model_of(data), path)
    model = sabir.load(path)
    sabir.save(model, path)
    np.testing.assert_array_equal(next(iter(model.graph.initializers.values())).array(), data)
    np.testing.assert_array_equal(next(iter(sabir.load(path).graph.initializers.values())).array(), data)


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, error):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")

    def chunks():
        yield b"new"
        raise error

    with pytest.raises((FileError, KeyboardInterrupt)):
        replace_file(path, chunks())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_saving_into_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="there is no folder"):
        sabir.save(model_of(np.zeros(1, np.float32)), tmp_path / "nowhere" / "m.onnx")


def test_permissions_stay(tmp_path):
    path = tmp_path / "m.onnx"
    sabir.save(model_of(np.zeros(1, np.float32)), path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o640)
    sabir.save(model_of(np.zeros(2, np.float32)), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


class HoleTensor(Tensor):
    """Gigabytes of zeros that take no memory."""

    __slots__ = ("_map", "_size")

    def __init__(self, path, size):
        with path.open("wb") as file:
            file.truncate(size * 4)
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._size = size

    def array(self):
        return np.frombuffer(self._map, np.float32)

    @property
    def element(self):
        return sabir.ir.tensor_type("float").element

    @property
    def shape(self):
        return (self._size,)

    def raw(self):
        return pack(self.element, self.array())


def test_more_than_two_gigabytes_in_one_file(tmp_path):
    """The file is made sparse, so that the test costs time of its structure, not of its bytes."""
    size = 600 * 2**20  # elements, 2.4 GB
    hole = HoleTensor(tmp_path / "hole", size)
    model = model_of(np.ones(4, np.float32))
    big = model.graph.initializers
    big[next(iter(big))] = hole
    sparse = tmp_path / "big.onnx"
    write_sparse(sparse, chunks_of(model))
    assert sparse.stat().st_size > 2**31

    code = textwrap.dedent(
        f"""
        import resource, sabir
        from sabir.proto import BulkWriter
        from sabir.serial._tensors import TensorWriter
        from sabir.serial._writer import ModelWriter
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        model = sabir.load({str(sparse)!r})
        (tensor,) = model.graph.initializers.values()
        array = tensor.array()
        assert array.shape == ({size},) and array[-1] == 0
        bulk = BulkWriter()
        message = ModelWriter(TensorWriter(bulk, keeps_external=lambda _: False)).model(model)
        assert sum(map(len, bulk.chunks(message))) == {sparse.stat().st_size}
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    )
    # ruff: ignore[subprocess-without-shell-equals-true]  our own code; a fresh process, to see what it takes
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20_000  # KiB


def chunks_of(model):
    bulk = BulkWriter()
    return bulk.chunks(ModelWriter(TensorWriter(bulk, keeps_external=lambda _: False)).model(model))


def write_sparse(path, chunks):
    with path.open("wb") as file:
        for chunk in chunks:
            if len(chunk) > 2**20:
                file.seek(len(chunk), 1)
            else:
                file.write(chunk)


def test_an_initializer_of_a_function_has_no_place_in_a_file():
    b = sabir.Builder(21, opsets={"d": 1})
    body = Graph("F")
    one = body.add_initializer("one", np.float32(1))
    body.outputs.append(body.append(Node("Relu", [one])).output)
    b.output(b.op("F", domain="d"), "y", "float", [])
    with pytest.raises(WireError, match="has the initializer 'one', and a function can have none"):
        sabir.dumps(b.model(functions=[Function("F", "d", graph=body, opsets={"": 21})]))


@pytest.mark.parametrize("kind", ["protobuf", "textproto", "json"])
@pytest.mark.parametrize("entries", [{"k": "\udcff"}, {"\udcff": "v"}, {"k": 1}])
def test_metadata_that_is_no_text_is_refused(kind, entries):
    model = sabir.Model(metadata=entries)
    with pytest.raises(WireError, match="the metadata entry .* cannot be written"):
        sabir.dumps(model, format=kind)
