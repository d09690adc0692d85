"""Messages: those of helpers, numpy_helper and files are those that onnx makes."""

import copy
import errno
import io
import os
import pickle  # ruff: ignore[suspicious-pickle-import]  our own objects

import ml_dtypes
import numpy as np
import onnx  # ruff: ignore[banned-api]  the oracle
import pytest
from google.protobuf import text_format
from onnx import helper as theirs  # ruff: ignore[banned-api]  the oracle
from onnx import numpy_helper as their_arrays  # ruff: ignore[banned-api]  the oracle

from sabir.compat import onnx as compat
from sabir.compat.onnx import helper, numpy_helper
from support.cases import each_of

FLOAT, INT64 = compat.TensorProto.FLOAT, compat.TensorProto.INT64


def make_attribute_cases(h):
    tensor = h.make_tensor("t", FLOAT, [2], [1, 2])
    sparse = h.make_sparse_tensor(
        h.make_tensor("v", FLOAT, [1], [1.0]), h.make_tensor("i", INT64, [1], [1]), [3]
    )
    graph = h.make_graph([], "g", [], [])
    kind = h.make_tensor_type_proto(FLOAT, [2])
    values = [
        1, 2.5, "x", b"y", True, np.float32(2), np.int64(3), [1, 2], [1.5, 2], ["a", b"b"], np.arange(3), (1, 2.5),
        tensor, [tensor, tensor], sparse, [sparse], graph, [graph], kind, [kind],
    ]  # fmt: skip
    return [h.make_attribute(f"a{i}", value) for i, value in enumerate(values)]


def messages(h, n):
    yield from make_attribute_cases(h)
    yield h.make_attribute("empty", [], attr_type=7)
    yield h.make_attribute("doc", 1, doc_string="text")
    yield h.make_attribute_ref("r", 1)
    yield h.make_node(
        "Add", ["x", ""], ["y"], name="n", doc_string="d", domain="m", overload="o", b=1, a=[2.0], c=None
    )
    yield h.make_tensor_value_info("x", FLOAT, ["N", 3, None], "doc", ["a", "b", "c"])
    yield h.make_tensor_value_info("x", FLOAT, None)
    yield h.make_tensor_value_info("x", FLOAT, ())
    yield h.make_empty_tensor_value_info("x")
    yield h.make_sparse_tensor_value_info("x", FLOAT, [2])
    yield h.make_tensor_sequence_value_info("x", FLOAT, [2], "doc", ["a"])
    yield h.make_value_info(
        "x", h.make_optional_type_proto(h.make_map_type_proto(INT64, h.make_tensor_type_proto(1, None)))
    )
    value = h.make_tensor_value_info("x", FLOAT, [1])
    weight = h.make_tensor("w", FLOAT, [2], [1, 2])
    graph = h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", [value], [value], [weight], "doc", [value])
    yield graph
    yield h.make_model(graph, producer_name="p", model_version=3, opset_imports=[h.make_opsetid("", 17)])
    yield h.make_model(graph)
    yield h.make_model_gen_version(graph, opset_imports=[h.make_opsetid("", 17)])
    yield h.make_function(
        "d", "f", ["x"], ["y"], [], [h.make_opsetid("", 3)], ["a"], [h.make_attribute("b", 1)], "doc", "o"
    )
    yield h.make_training_info(graph, [("a", "b")], graph, [("c", "d")])
    yield h.make_sequence("s", 1, [weight])
    yield h.make_map("m", INT64, [1], h.make_sequence("s", 1, [weight]))
    yield h.make_map("m", 8, [b"k"], h.make_sequence("s", 1, [weight]))
    yield h.make_optional("o", 1, weight)
    model = h.make_model(graph)
    h.set_model_props(model, {"k": "v"})
    yield model
    yield n.from_list([np.array([1.0]), np.array([2.0])], "l")
    yield n.from_list([[np.array(1)], [np.array(2)]])
    yield n.from_dict({3: np.array(1), 4: np.array(2)}, "d")
    yield n.from_optional(None)
    yield n.from_optional(np.array([1.0]), "o")


def test_helpers_make_the_messages_of_onnx():
    ours, expected = list(messages(helper, numpy_helper)), list(messages(theirs, their_arrays))
    assert [type(m).__name__ for m in ours] == [type(m).__name__ for m in expected]
    for mine, other in zip(ours, expected, strict=True):
        assert mine.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True), mine


@each_of("number", sorted(helper.get_all_tensor_dtypes()))
def test_tensors_of_every_element_type(number):
    assert helper.tensor_dtype_to_np_dtype(number) == theirs.tensor_dtype_to_np_dtype(number)
    assert helper.tensor_dtype_to_string(number) == theirs.tensor_dtype_to_string(number)
    assert helper.tensor_dtype_to_field(number) == theirs.tensor_dtype_to_field(number)
    values = ["a", "é", b"c"] if number == compat.TensorProto.STRING else [1, 0, 2, 3, 1]
    count = len(values)
    mine, other = (h.make_tensor("t", number, [count], values) for h in (helper, theirs))
    assert mine.SerializeToString() == other.SerializeToString()
    array = numpy_helper.to_array(mine)
    np.testing.assert_array_equal(array, their_arrays.to_array(other))
    assert array.flags.writeable
    assert (
        numpy_helper.from_array(array, "t").SerializeToString()
        == their_arrays.from_array(array, "t").SerializeToString()
    )


def test_numbers_saturate_as_in_onnx():
    values = np.array([1e30, -1e30, 3.4, np.nan, 0.3], np.float32)
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.dtype(np.int8), ml_dtypes.int4):
        given = values[:3] if np.dtype(kind).kind in "iV" and "int" in str(np.dtype(kind)) else values
        mine = numpy_helper.saturate_cast(given, np.dtype(kind))
        assert mine.tobytes() == their_arrays.saturate_cast(given, np.dtype(kind)).tobytes()
    for mode in ("up", "down", "nearest"):
        mine = numpy_helper.to_float8e8m0(np.float32([1, 3, 0.3]), round_mode=mode)
        assert (
            mine.tobytes() == their_arrays.to_float8e8m0(np.float32([1, 3, 0.3]), round_mode=mode).tobytes()
        )
    assert (
        numpy_helper.create_random_int((3,), np.dtype("int8"))
        == their_arrays.create_random_int((3,), np.dtype("int8"))
    ).all()


def test_values_come_back():
    for make, read, value in (
        (numpy_helper.from_list, numpy_helper.to_list, [np.array([1.5]), np.array([2.5])]),
        (numpy_helper.from_dict, numpy_helper.to_dict, {"a": np.array([1.5])}),
        (numpy_helper.from_optional, numpy_helper.to_optional, np.array([1.5])),
    ):
        assert str(read(make(value))) == str(value)
    assert numpy_helper.to_optional(numpy_helper.from_optional(None)) is None


REFUSED = [
    (lambda: helper.make_tensor("t", FLOAT, [2], [1, 2, 3]), ValueError, r"'t' of shape \[2\] takes 2 numbers, and `vals` has 3"),
    (lambda: helper.make_tensor("t", FLOAT, [2], b"x", raw=True), ValueError, "takes 8 bytes, and `vals` has 1"),
    (lambda: helper.make_tensor("t", 8, [1], b"x", raw=True), TypeError, "pass raw=False"),
    (lambda: helper.make_tensor("t", 0, [1], [1]), TypeError, "UNDEFINED"),
    (lambda: helper.make_tensor("t", 99, [1], [1]), KeyError, "99"),
    (lambda: helper.make_tensor("t", FLOAT, [1], b"x"), TypeError, "pass raw=True"),
    (lambda: helper.make_attribute("a", None), TypeError, "'a' cannot be None; give a number"),
    (lambda: helper.make_attribute("a", []), ValueError, "'a' is an empty list, which has no type"),
    (lambda: helper.make_attribute("a", [1, "x"]), ValueError, "elements of the attribute 'a' have no type in common"),
    (lambda: helper.make_attribute("a", 1, attr_type=7), TypeError, "'a' has the type INT, and attr_type is INTS"),
    (lambda: helper.make_attribute("a", [], attr_type=1), TypeError, "an empty list, and attr_type is FLOAT"),
    (lambda: helper.make_attribute_ref("", 1), ValueError, "this name is empty"),
    (lambda: helper.get_attribute_value(helper.make_attribute_ref("a", 1)), ValueError, "'a' refers to 'a' of the function"),
    (lambda: helper.get_node_attr_value(helper.make_node("A", [], []), "q"), ValueError, "the A node '' has 0 attributes 'q'"),
    (lambda: helper.make_tensor_value_info("x", 1, [1.5]), ValueError, "dimension 0 is 1.5; give a number"),
    (lambda: helper.make_tensor_value_info("x", 1, [1], "", ["a", "b"]), ValueError, "2 denotations for 1 dimensions"),
    (lambda: helper.find_min_ir_version_for([helper.make_opsetid("x", 1)]), ValueError, "has version 1 of the domain 'x'"),
    (lambda: helper.np_dtype_to_tensor_dtype(np.dtype("M8[s]")), ValueError, "no element type for the dtype"),
    (lambda: helper.make_sequence("s", 9, []), TypeError, "no elements of type 9"),
    (lambda: helper.make_optional("o", 1, None), TypeError, "take UNDEFINED"),
    (lambda: helper.strip_doc_string(1), TypeError, "doc strings are those of a message"),
    (lambda: numpy_helper.to_array(compat.TensorProto()), TypeError, "the element type UNDEFINED"),
    (lambda: numpy_helper.to_array(compat.TensorProto(data_type=1, dims=[2], raw_data=b"x")), ValueError, "take 8 bytes"),
    (lambda: numpy_helper.from_array([1]), TypeError, "must be a numpy array"),
    (lambda: numpy_helper.from_array(np.array([object()])), NotImplementedError, "has a value of type object; convert it"),
    (lambda: numpy_helper.from_list([1, "x"]), TypeError, "elements of a list have one type, and these have several"),
    (lambda: numpy_helper.from_dict({}), ValueError, "an empty dictionary has no key type"),
    (lambda: numpy_helper.from_dict({1.5: 1}), TypeError, "integers or text, and these are of type float"),
    (lambda: numpy_helper.create_random_int((1,), np.dtype("f4")), TypeError, "float32 has no integers"),
    (lambda: numpy_helper.to_float8e8m0(np.float32([1]), round_mode="x"), ValueError, "no round_mode 'x'; take up"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_cannot_be_a_message_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_messages_are_copied_and_printed():
    model = helper.make_model(helper.make_graph([], "g", [], []), opset_imports=[helper.make_opsetid("", 17)])
    kind = helper.make_tensor_type_proto(1, [2])
    assert copy.deepcopy(model) == pickle.loads(pickle.dumps(model)) == model  # ruff: ignore[suspicious-pickle-usage]  our own
    assert pickle.loads(pickle.dumps(kind.tensor_type)) == kind.tensor_type  # ruff: ignore[suspicious-pickle-usage]  our own
    assert text_format.Parse(text_format.MessageToString(model), compat.ModelProto()) == model
    assert repr(model) == repr(onnx.ModelProto.FromString(model.SerializeToString()))
    function = helper.make_function("d", "f", ["x"], ["y"], [], [], ["a"])
    assert (
        repr(function)
        == "FunctionProto('f', domain='d', input=<1 inputs>, output=<1 outputs>, attribute=['a'])"
    )


def test_short_texts_are_those_of_onnx():
    source = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x, float[3] w) => (float[N] y) <float[3] w = {1,2,3}, float[2] q = {1,2}> {
      t = Relu (x) y = If (t) <then_branch = a () => (z) { z = Abs (x) }, else_branch = b () => (z) { z = Neg (x) }> }"""
    model = compat.parser.parse_model(source)
    with pytest.warns(DeprecationWarning, match="deprecated since onnx 1.19"):
        mine = helper.printable_graph(model.graph)
    with pytest.warns(DeprecationWarning, match="1.19"):
        assert mine == theirs.printable_graph(onnx.ModelProto.FromString(model.SerializeToString()).graph)
    for mine, other in zip(make_attribute_cases(helper), make_attribute_cases(theirs), strict=True):
        assert helper.printable_attribute(mine) == theirs.printable_attribute(other)


@pytest.mark.parametrize("suffix", [".onnx", ".textproto", ".json", ".onnxtxt"])
def test_files_in_every_format(tmp_path, suffix):
    source = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
    model, path = compat.parser.parse_model(source), tmp_path / f"m{suffix}"
    compat.save(model, path)
    assert compat.load(path) == model
    if suffix == ".onnxtxt":
        with pytest.warns(UserWarning, match="experimental"):
            assert [n.op_type for n in onnx.load(path).graph.node] == ["Relu"]
    else:
        assert onnx.load(path).SerializeToString() == model.SerializeToString()
    buffer = io.BytesIO()
    compat.save(model, buffer)
    assert compat.load_from_string(buffer.getvalue()) == model
    tensor = helper.make_tensor("t", FLOAT, [1], [1])
    compat.save_tensor(tensor, tmp_path / "t.pb")
    assert compat.load_tensor(tmp_path / "t.pb") == tensor
    with pytest.raises(ValueError, match="no format 'protobuff'; is it 'protobuf'"):
        compat.load(path, format="protobuff")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    model, path = large_model(), tmp_path / "m.onnx"
    compat.save(model, path)
    old = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(OSError, match="No space left"):
        compat.save(large_model(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    assert path.read_bytes() == old
    with pytest.raises(FileNotFoundError):
        compat.save(model, tmp_path / "absent" / "m.onnx")


def test_doc_strings_are_removed_at_every_depth():
    inner = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], doc_string="d")], "g", [], [], doc_string="d"
    )
    node = helper.make_node("If", ["c"], ["y"], doc_string="d", then_branch=inner)
    helper.strip_doc_string(node)
    assert "doc_string" not in str(node)
    assert node.attribute[0].g.node[0].op_type == "Relu"


def large_model():
    source = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Identity (x) }'
    model = compat.parser.parse_model(source)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(500, np.float32), "w"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "small"))
    return model


@pytest.mark.parametrize("one_file", [True, False])
def test_external_data_is_written_and_read(tmp_path, one_file):
    model, path = large_model(), tmp_path / "m.onnx"
    compat.save(
        model,
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=one_file,
        location="w.bin" if one_file else None,
    )
    assert (tmp_path / ("w.bin" if one_file else "w")).stat().st_size == 2000
    bare = compat.load(path, load_external_data=False)
    np.testing.assert_array_equal(numpy_helper.to_array(bare.graph.initializer[0], str(tmp_path)), 1)
    for package in (compat, onnx):
        loaded = package.load(path)
        assert len(loaded.graph.initializer[0].raw_data) == 2000
    compat.checker.check_model(path)


def test_external_data_stays_in_its_folder(tmp_path):
    helpers = compat.external_data_helper
    tensor = numpy_helper.from_array(np.ones(4, np.float32), "w")
    helpers.set_external_data(tensor, "../w.bin")
    with pytest.raises(compat.checker.ValidationError, match=r"\.\."):
        helpers.save_external_data(tensor, str(tmp_path))
    helpers.set_external_data(tensor, "w.bin", offset=100_000)
    with pytest.raises(
        compat.checker.ValidationError, match="the offset 100000 in 'w.bin'; it must be between 0"
    ):
        helpers.save_external_data(tensor, str(tmp_path))
    (tmp_path / "target").write_bytes(bytes(16))
    (tmp_path / "link").symlink_to(tmp_path / "target")
    helpers.set_external_data(tensor, "link")
    for act in (helpers.save_external_data, helpers.load_external_data_for_tensor):
        with pytest.raises(compat.checker.ValidationError, match="link"):
            act(tensor, str(tmp_path))
    helpers.set_external_data(tensor, "target", length=17)
    with pytest.raises(ValueError, match="the length 17, and its file 'target' has only 16 bytes"):
        helpers.load_external_data_for_tensor(tensor, str(tmp_path))
    tensor.external_data[1].value = "1e3"
    with pytest.raises(ValueError, match="the length '1e3' in its file; it must be a non-negative number"):
        helpers.ExternalDataInfo(tensor)
    del tensor.external_data[1]
    tensor.external_data.add(key="colour", value="red")
    with pytest.warns(UserWarning, match="unknown external data key.*colour"):
        helpers.ExternalDataInfo(tensor)


def test_a_container_keeps_large_tensors_as_arrays(tmp_path):
    container = compat.model_container
    value = helper.make_tensor_value_info("x", FLOAT, [None, 2])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    large = container.make_large_tensor_proto("#w", "w", FLOAT, (2, 2))
    graph = helper.make_graph(
        [node], "g", [value], [helper.make_tensor_value_info("y", FLOAT, [None, 2])], [large]
    )
    made = container.make_large_model(graph, {"#w": np.float32([[1, 2], [3, 4]])})
    made.check_model()
    for one_file in (True, False):
        path = tmp_path / f"{one_file}.onnx"
        made.save(str(path), one_file)
        loaded = container.ModelContainer()
        loaded.load(str(path))
        np.testing.assert_array_equal(next(iter(loaded.large_initializers.values())), [[1, 2], [3, 4]])
        assert onnx.load(path).graph.initializer[0].raw_data == made["#w"].tobytes()
    with pytest.raises(ValueError, match="the container has no array 'q'"):
        _ = made["q"]
    with pytest.raises(RuntimeError, match="the container has no model"):
        _ = container.ModelContainer().model_proto
