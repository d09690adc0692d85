# ruff: file-ignore[banned-api]  onnx is the oracle
"""Values in files of one message: onnx reads what is written, and what onnx writes is read."""

import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper as helper

from sabir.elements import element
from sabir.ir import MapType, OptionalType, SequenceType, tensor_type
from sabir.serial import load_value, save_value

FLOATS, ANY = tensor_type("float", ["N"]), tensor_type("float")
ONE, TWO = np.float32([1]), np.float32([2, 3])
BF = np.array([1.5, -2], ml_dtypes.bfloat16)
TEXTS = np.array(["a", "é"], object)
TENSORS = [
    ONE,
    np.float32(1),
    np.int64([[1, 2]]),
    BF,
    TEXTS,
    np.array([1, 2, 3], ml_dtypes.int4),
    np.ones((2, 0)),
]
KEYED = MapType(element("int64"), tensor_type("float", []))


def read(message, path):
    return message.FromString(path.read_bytes())


def equal(got, wanted):
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(equal, got, wanted))
    if isinstance(wanted, dict):
        return list(got) == list(wanted) and all(map(equal, got.values(), wanted.values()))
    if wanted is None:
        return got is None
    got, wanted = np.asarray(got), np.asarray(wanted)
    return got.shape == wanted.shape and got.dtype == wanted.dtype and got.tolist() == wanted.tolist()


@pytest.mark.parametrize("array", TENSORS, ids=lambda a: str(a.dtype))
def test_a_tensor(array, tmp_path):
    assert save_value(array, tmp_path / "v.pb", name="y") == "TensorProto"
    message = read(onnx.TensorProto, tmp_path / "v.pb")
    assert message.name == "y"
    assert equal(helper.to_array(message).astype(array.dtype), array)
    (tmp_path / "w.pb").write_bytes(helper.from_array(array).SerializeToString())
    assert equal(load_value(tmp_path / "w.pb", tensor_type(element(array.dtype))), array)


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ([ONE, TWO], SequenceType(FLOATS)),
        ([BF, BF], SequenceType(tensor_type("bfloat16"))),
        ([TEXTS], SequenceType(tensor_type("string"))),
        ([], SequenceType(FLOATS)),
        ([[ONE], [TWO, ONE]], SequenceType(SequenceType(FLOATS))),
    ],
)
def test_a_sequence(items, kind, tmp_path):
    assert save_value(items, tmp_path / "v.pb", kind, name="s") == "SequenceProto"
    message = read(onnx.SequenceProto, tmp_path / "v.pb")
    assert message.name == "s"
    assert equal(helper.to_list(message), items)
    (tmp_path / "w.pb").write_bytes(helper.from_list(items).SerializeToString())
    assert equal(load_value(tmp_path / "w.pb", kind), items)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ({1: np.float32(0.5), -2: np.float32(2)}, KEYED),
        ({"a": np.float32(1), "é": np.float32(2)}, MapType(element("string"), tensor_type("float", []))),
    ],
)
def test_a_map(table, kind, tmp_path):
    assert save_value(table, tmp_path / "v.pb", kind) == "MapProto"
    written = read(onnx.MapProto, tmp_path / "v.pb")
    assert written.key_type == kind.key.number
    found = [k.decode() for k in written.string_keys] or list(written.keys)
    assert equal(dict(zip(found, helper.to_list(written.values), strict=True)), table)
    if kind is KEYED:  # onnx gives texts as keys to a field of bytes, which protobuf refuses
        theirs = helper.from_dict({np.int64(k): np.asarray(v) for k, v in table.items()})
        (tmp_path / "w.pb").write_bytes(theirs.SerializeToString())
        assert equal(load_value(tmp_path / "w.pb", kind), table)


def test_python_numbers_in_a_map_have_the_declared_type(tmp_path):
    save_value({1: 0.5}, tmp_path / "v.pb", KEYED)
    assert equal(load_value(tmp_path / "v.pb", KEYED), {1: np.float32(0.5)})


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, OptionalType(ANY)), (ONE, OptionalType(ANY)), ([ONE, TWO], OptionalType(SequenceType(FLOATS)))],
)
def test_an_optional(value, kind, tmp_path):
    assert save_value(value, tmp_path / "v.pb", kind) == "OptionalProto"
    assert equal(helper.to_optional(read(onnx.OptionalProto, tmp_path / "v.pb")), value)
    (tmp_path / "w.pb").write_bytes(helper.from_optional(value).SerializeToString())
    assert equal(load_value(tmp_path / "w.pb", kind), value)


def test_large_data_is_written_from_where_it_lies(tmp_path):
    large = np.arange(1 << 20, dtype=np.float32)
    save_value([large, large + 1], tmp_path / "v.pb", SequenceType(FLOATS))
    assert equal(load_value(tmp_path / "v.pb", SequenceType(FLOATS)), [large, large + 1])


def test_the_values_of_the_official_suite_are_read(tmp_path):
    """Each input and output of the cases with sequences, optionals and maps, as onnx writes it."""
    from onnx.backend.test.loader import load_model_tests  # ruff: ignore[import-outside-top-level]  slow

    writers = {"sequence_type": helper.from_list, "optional_type": helper.from_optional}
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases are computed here, divisions by zero among them
        cases = load_model_tests(kind="node")
    for case in cases:
        for inputs, outputs in case.data_sets or ():
            ports = zip(
                (*case.model.graph.input, *case.model.graph.output), (*inputs, *outputs), strict=False
            )
            for port, value in ports:
                word = port.type.WhichOneof("value")
                if word in writers and not (word == "optional_type" and value is None):
                    count += 1
                    (tmp_path / "v.pb").write_bytes(writers[word](value).SerializeToString())
                    kind = SequenceType(None) if word == "sequence_type" else OptionalType(None)
                    assert equal(load_value(tmp_path / "v.pb", kind), value), case.name
    assert count > 20
