# ruff: file-ignore[banned-api]  onnx is the oracle
"""Rules about data: tensors wherever they stand, sparse ones, external ones, training, devices, annotations."""

import hashlib
import os

import numpy as np
import onnx
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

import sabir
from sabir.base import SabirError
from sabir.checking._examples import RELU, X, Y, in_graph, in_model
from sabir.checking.rules import external as external_rules
from sabir.elements import ELEMENTS, packed_size
from sabir.ir import SparseTensor, WireTensor
from sabir.proto import ModelProto, SparseTensorProto, TensorProto

BROKEN = "dims: 2 data_type: 1 float_data: 1"
SCALAR = "type { tensor_type { elem_type: 1 shape { } } }"


def read(example, **options):
    return sabir.loads(str(example).encode(), format="textproto", **options)


def found(model, *rules, **options):
    return [(f.rule, str(f.location)) for f in sabir.findings(model, select=rules, **options)]


def graph_of(more, **options):
    return read(in_graph(f'name: "g" {RELU} {X} {Y} {more}', **options))


def constant(tensor, name="c"):
    return f'node {{ op_type: "Constant" output: "{name}" attribute {{ name: "value" type: TENSOR t {{ {tensor} }} }} }}'


# where tensors stand


@pytest.mark.parametrize(
    ("more", "place"),
    [
        (f'initializer {{ name: "w" {BROKEN} }}', "graph/initializer 'w'"),
        (constant(BROKEN), "graph/node[1] 'Constant'/attribute 'value'"),
        (
            (
                f'sparse_initializer {{ dims: 3 values {{ name: "w" {BROKEN} }} indices {{ dims: 2 data_type: 7'
                " int64_data: [0, 1] } }"
            ),
            "graph/initializer 'w'/values",
        ),
        (
            (
                'node { op_type: "Constant" output: "c" attribute { name: "sparse_value" type: SPARSE_TENSOR sparse_tensor'
                " { dims: 3 values { dims: 2 data_type: 1 float_data: [1, 2] } indices { dims: 2 data_type: 7 int64_data:"
                " 0 } } } }"
            ),
            "graph/node[1] 'Constant'/attribute 'sparse_value'/indices",
        ),
        (
            (
                f'node {{ op_type: "If" input: "x" output: "i" attribute {{ name: "then_branch" type: GRAPH g {{ name: "t"'
                f' {constant(BROKEN)} output {{ name: "c" {SCALAR} }} }} }} }}'
            ),
            "graph/node[1] 'If'/attribute 'then_branch'/node[0] 'Constant'/attribute 'value'",
        ),
        (
            (
                f'node {{ op_type: "f" domain: "d" output: "c" attribute {{ name: "a" type: TENSORS tensors {{ data_type: 1'
                f" float_data: 1 }} tensors {{ {BROKEN} }} }} }}"
            ),
            "graph/node[1] 'f'/attribute 'a'/tensor[1]",
        ),
    ],
)
def test_a_broken_tensor_is_found_in_a_graph(more, place):
    assert found(graph_of(more), "TENSOR") == [("TENSOR005", place)]


def test_a_broken_tensor_is_found_in_functions_and_training():
    function = (
        f'functions {{ name: "f" domain: "d" output: "c" {constant(BROKEN)} attribute_proto {{ name: "a" type: TENSOR'
        f" t {{ {BROKEN} }} }} }}"
    )
    training = f'training_info {{ algorithm {{ name: "t" initializer {{ name: "w" {BROKEN} }} }} }}'
    model = read(in_model(f'graph {{ name: "g" {RELU} {X} {Y} }} {function} {training}', ir_version=10))
    assert found(model, "TENSOR") == [
        ("TENSOR005", "training_info[0]/algorithm/initializer 'w'"),
        ("TENSOR005", "function[0] 'f'/node[0] 'Constant'/attribute 'value'"),
        ("TENSOR005", "function[0] 'f'/attribute 'a'"),
    ]


def test_a_tensor_made_from_an_array_is_right():
    b = sabir.Builder(21)
    b.output(b.Add(b.input("x", "float", [2]), b.initializer("w", np.float32([1, 2]))), "y")
    assert not found(b.model(), "TENSOR", "DATA", "SPARSE")


# large data stays in the file, and is looked at there


def large(kind, count, raw):
    """A model whose one initializer is too large to be read with the rest of the file."""
    proto = ModelProto.FromString(sabir.dumps(graph_of("")))
    proto.graph.initializer.add(name="w", data_type=kind, dims=[count], raw_data=raw)
    model = sabir.loads(proto.SerializeToString())
    (tensor,) = model.graph.initializers.values()
    assert tensor.view is not None
    return model


def test_large_data_is_measured_without_a_copy():
    assert not found(large(1, 1 << 16, bytes(1 << 18)))
    assert found(large(1, (1 << 16) + 1, bytes(1 << 18))) == [("TENSOR005", "graph/initializer 'w'")]
    assert found(large(1, (1 << 16) - 1, bytes(1 << 18))) == [("TENSOR006", "graph/initializer 'w'")]


def test_a_wrong_bool_is_found_far_into_large_data():
    size = (1 << 24) + 100
    raw = bytearray(size)
    assert not found(large(9, size, bytes(raw)))
    raw[-3] = 7
    (finding,) = sabir.findings(large(9, size, bytes(raw)))
    assert finding.rule == "TENSOR007"
    assert f"element {size - 3}" in finding.message
    assert "as 7" in finding.message


def test_the_first_entry_out_of_range_is_named():
    entries = ", ".join(["1"] * 70000)
    tensor = f'initializer {{ name: "w" dims: 70001 data_type: 3 int32_data: [{entries}, 128] }}'
    (finding,) = sabir.findings(graph_of(tensor))
    assert (finding.rule, finding.message[:42]) == ("TENSOR008", "entry 70000 of int32_data is 128, outside ")


def test_a_shape_of_a_million_dimensions_takes_no_time():
    proto = ModelProto.FromString(sabir.dumps(graph_of("")))
    proto.graph.initializer.add(name="w", data_type=1, dims=[2**62] * 1_000_000, float_data=[1])
    assert found(sabir.loads(proto.SerializeToString()), "TENSOR") == [("TENSOR004", "graph/initializer 'w'")]


@pytest.mark.parametrize(("field", "number"), [("name", 8), ("doc_string", 12)])
def test_the_texts_of_a_tensor_are_utf8(field, number):
    tensor = TensorProto(data_type=1, float_data=[1]).SerializeToString() + bytes([
        number << 3 | 2,
        2,
        0xFF,
        0xFE,
    ])
    model = graph_of(constant("data_type: 1 float_data: 1"))
    proto = ModelProto.FromString(sabir.dumps(model))
    held = proto.graph.node[1].attribute[0]
    held.ClearField("t")
    wire = held.SerializeToString() + bytes([5 << 3 | 2, len(tensor)]) + tensor
    held.Clear()
    held.MergeFromString(wire)
    model = sabir.loads(proto.SerializeToString())
    assert found(model) == [("TENSOR010", "graph/node[1] 'Constant'/attribute 'value'")], field


NUMBERS = st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 300)


@st.composite
def tensors(draw):
    """Tensor messages of every type, right and wrong in all that can be wrong."""
    proto = TensorProto(name="w")
    if draw(st.integers(0, 9)):
        proto.data_type = draw(st.integers(0, 29))
    proto.dims.extend(draw(st.lists(st.integers(0, 4) | st.sampled_from([-1, 2**40]), max_size=2)))
    count = draw(st.integers(0, 9))
    element = next((e for e in ELEMENTS if e.number == proto.data_type), None)
    fields = [
        "raw_data",
        "float_data",
        "int32_data",
        "int64_data",
        "uint64_data",
        "double_data",
        "string_data",
    ]
    likely = [element.field, "raw_data"] if element is not None else []
    for field in draw(st.lists(st.sampled_from(likely * 6 + fields), max_size=2)):
        if field == "raw_data":
            size = packed_size(element, count) if element is not None and element.bits else count
            proto.raw_data = draw(st.binary(min_size=size, max_size=size + draw(st.integers(0, 1))))
        elif field == "string_data":
            proto.string_data.extend(draw(st.lists(st.binary(max_size=3), max_size=4)))
        else:
            unsigned = field == "uint64_data"
            entries = draw(
                st.lists(NUMBERS.map(abs) if unsigned else NUMBERS, min_size=count, max_size=count)
            )
            getattr(proto, field).extend(entries)
    return proto


@settings(max_examples=150)
@given(tensors())
def test_a_tensor_that_cannot_be_read_breaks_a_rule(proto):
    """What our reader or onnx's checker refuses has a finding, and no error stops the checker."""
    model = sabir.parse(
        '<ir_version: 14, opset_import: ["" : 21]>\ng (float[N] x) => (float[N] y) { y = Relu(x) }'
    )
    model.graph.add_initializer("w", WireTensor(proto))
    errors = [f for f in sabir.findings(model, select=["TENSOR"]) if f.severity == "error"]
    try:
        WireTensor(proto).array()
    except SabirError:
        assert errors
    try:
        onnx.checker.check_tensor(onnx.TensorProto.FromString(proto.SerializeToString()))
    except onnx.checker.ValidationError as error:
        assert errors, error


# sparse tensors


def sparse(dims, count, indices, shape):
    entries = ", ".join(map(str, np.ravel(indices)))
    lengths = " ".join(f"dims: {n}" for n in shape)
    return graph_of(
        f'sparse_initializer {{ {" ".join(f"dims: {d}" for d in dims)} values {{ name: "w" dims: {count}'
        f" data_type: 1 float_data: [{', '.join(['1'] * count)}] }} indices {{ {lengths} data_type: 7"
        f" int64_data: [{entries}] }} }}"
    )


def test_each_violation_of_sparse_indices_is_a_separate_finding():
    assert not found(sparse([2, 3], 3, [[0, 0], [0, 2], [1, 0]], (3, 2)))
    both = sparse([2, 3], 3, [[0, 2], [0, 0], [2, 0]], (3, 2))
    assert [f.message for f in sabir.findings(both)] == [
        "index 2 is [2, 0], outside the shape [2, 3]",
        "index 1 is [0, 0], not greater than the one before, [0, 2]",
    ]
    assert not found(sparse([2**31, 2**31], 1, [[2**31 - 1, 2**31 - 1]], (1, 2)))
    assert not found(sparse([6], 0, [], (0,)))


@st.composite
def sparse_tensors(draw):
    """Sparse tensors whose parts are sound; how they fit together is open."""
    proto = SparseTensorProto(dims=draw(st.lists(st.integers(-1, 4), max_size=3)))
    count = draw(st.integers(0, 3))
    proto.values.CopyFrom(TensorProto(name="w", data_type=1, dims=[count], float_data=[1] * count))
    shape = draw(st.sampled_from([[count], [count, len(proto.dims)], [count, 1], [count + 1]]))
    size = int(np.prod(shape))
    entries = draw(st.lists(st.integers(-1, 12), min_size=size, max_size=size))
    if draw(st.booleans()):
        entries.sort()
    proto.indices.CopyFrom(TensorProto(data_type=7, dims=shape, int64_data=entries))
    return proto


@settings(max_examples=150)
@given(sparse_tensors())
def test_a_sparse_tensor_that_cannot_be_read_breaks_a_rule(proto):
    model = graph_of("")
    tensor = SparseTensor(WireTensor(proto.values), WireTensor(proto.indices), tuple(proto.dims))
    model.graph.add_initializer("w", tensor)
    errors = found(model, "SPARSE")
    try:
        tensor.array()
    except SabirError:
        assert errors
    try:
        onnx.checker.check_sparse_tensor(onnx.SparseTensorProto.FromString(proto.SerializeToString()))
    except onnx.checker.ValidationError as error:
        assert errors, error
    else:
        assert not errors


@pytest.mark.parametrize("dims", [(-1,), (0, 2**40, 2**40), (2**40, 2**40), (1,) * 65])
def test_a_dense_shape_that_no_array_has(dims):
    part = WireTensor(TensorProto(data_type=1, dims=[0]))
    indices = WireTensor(TensorProto(data_type=7, dims=[0]))
    with pytest.raises(SabirError):
        SparseTensor(part, indices, dims).array()


@pytest.mark.parametrize("element", [e for e in ELEMENTS if e.bits], ids=str)
def test_zeros_are_counted_in_every_type(element):
    model = graph_of("", ir_version=14)
    values = WireTensor(
        TensorProto(data_type=element.number, dims=[3], raw_data=bytes(packed_size(element, 3)))
    )
    tensor = SparseTensor(values, WireTensor(TensorProto(data_type=7, dims=[3], int64_data=[0, 1, 2])), (3,))
    model.graph.add_initializer("w", tensor)
    (finding,) = sabir.findings(model, select=["SPARSE006"])
    assert finding.message.startswith("the values contain 3 zeros")
    assert not found(sparse([6], 0, [], (0,)), "SPARSE006")


def test_extreme_indices_are_compared_without_overflow():
    least, most = -(2**63), 2**63 - 1
    assert found(sparse([6], 2, [least, most], (2,))) == [("SPARSE004", "graph/initializer 'w'/indices")]


def test_unreadable_indices_violate_rules_of_tensors():
    model = graph_of(
        'sparse_initializer { dims: 6 values { name: "w" dims: 2 data_type: 1 float_data: [1, 2] } indices { dims: 2'
        " data_type: 7 int64_data: 0 } }"
    )
    assert found(model) == [("TENSOR005", "graph/initializer 'w'/indices")]


# external data


def outside(*tensors):
    """A model with float tensors of four elements in other files; each with its own entries."""
    more = ""
    for i, entries in enumerate(tensors):
        lines = " ".join(f'external_data {{ key: "{k}" value: "{v}" }}' for k, v in entries.items())
        more += f' initializer {{ name: "w{i}" dims: 4 data_type: 1 data_location: EXTERNAL {lines} }}'
    return in_graph(f'name: "g" {RELU} {X} {Y} {more}')


def checked(folder, *tensors, **options):
    """Findings about a model whose data lies in a folder."""
    return found(read(outside(*tensors), folder=folder), **options)


W = {"location": "w.data"}
FIRST = ("graph/initializer 'w0'",)


def test_an_existing_file_is_valid(tmp_path):
    (tmp_path / "w.data").write_bytes(bytes(32))
    assert not checked(tmp_path, W, {**W, "offset": "16", "length": "16"}, {**W, "offset": "0"})


def test_a_missing_file_is_reported_once(tmp_path):
    assert checked(tmp_path, W, {**W, "offset": "16"}) == [("DATA004", "graph/initializer 'w0'")]


def test_only_a_regular_file_in_the_folder_is_accepted(tmp_path):
    folder, elsewhere = tmp_path / "model", tmp_path / "secret"
    folder.mkdir()
    elsewhere.write_bytes(bytes(16))
    (folder / "dir").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "symbolic").symlink_to(elsewhere)
    (folder / "hard").hardlink_to(elsewhere)
    for name in ("dir", "fifo", "symbolic", "hard"):
        assert checked(folder, {"location": name}) == [("DATA004", *FIRST)], name


@pytest.mark.parametrize(
    "location",
    ["../w.data", "/w.data", "a/../../w.data", "C:/w.data", r"\\\\host\\w.data", "a\\001b", "x" * 5000],
)
def test_a_location_outside_the_folder_is_reported_without_a_folder(location):
    model = read(outside({"location": location}))
    assert found(model) == [("DATA003", *FIRST)]


@pytest.mark.parametrize("location", ["w..v1.bin", "a/b/./w.data", "w 1.data", "w\u00e9.data"])
def test_a_location_in_the_folder_is_accepted(location):
    assert not found(read(outside({"location": location})))


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "17"},
        {"offset": "-1"},
        {"offset": "1e3"},
        {"offset": " 1"},
        {"length": "15"},
        {"length": "9" * 30},
    ],
)
def test_a_range_that_does_not_fit(tmp_path, entries):
    (tmp_path / "w.data").write_bytes(bytes(32))
    assert checked(tmp_path, {**W, **entries}) == [("DATA005", *FIRST)]


def test_without_a_folder_files_are_not_looked_for():
    assert not found(read(outside(W)))
    assert found(read(outside({**W, "length": "15"}))) == [("DATA005", *FIRST)]


def test_a_model_loaded_by_path_is_checked_with_its_data(tmp_path):
    (tmp_path / "model.onnx").write_bytes(_wire(outside(W)))
    assert found(tmp_path / "model.onnx") == [("DATA004", *FIRST)]
    (tmp_path / "w.data").write_bytes(bytes(16))
    assert not found(tmp_path / "model.onnx")


def _wire(example):
    return text_format.Parse(str(example), ModelProto()).SerializeToString()


def test_a_checksum_is_that_of_the_whole_file(tmp_path):
    (tmp_path / "w.data").write_bytes(bytes(32))
    right = hashlib.sha1(bytes(32), usedforsecurity=False).hexdigest()
    assert not checked(tmp_path, {**W, "checksum": right}, {**W, "checksum": right.upper()})
    assert checked(tmp_path, {**W, "checksum": "0" * 40}) == [("DATA006", *FIRST)]
    assert found(read(outside({**W, "checksum": "sha1"}))) == [("DATA006", *FIRST)]


def test_large_files_are_read_only_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(external_rules, "_ALWAYS_READ", 31)
    (tmp_path / "w.data").write_bytes(bytes(32))
    wrong = {**W, "checksum": "0" * 40}
    assert not checked(tmp_path, wrong)
    assert checked(tmp_path, wrong, verify=True) == [("DATA006", *FIRST)]
    with pytest.raises(sabir.CheckError, match="DATA006"):
        sabir.check(read(outside(wrong), folder=tmp_path), verify=True)


def test_tensors_share_all_their_bytes_or_none(tmp_path):
    (tmp_path / "w.data").write_bytes(bytes(64))
    assert not checked(tmp_path, W, W, {**W, "offset": "16"})
    assert checked(tmp_path, W, {**W, "offset": "8"}) == [("DATA009", "graph/initializer 'w1'")]
    assert not checked(tmp_path, W, {"location": "./w.data", "offset": "16"})


def test_no_external_data_is_read_for_its_values(tmp_path):
    (tmp_path / "w.data").write_bytes(b"\x02" * 16)
    model = read(
        outside(W).replace("data_type: 1", "data_type: 9").replace("dims: 4", "dims: 16"), folder=tmp_path
    )
    (tensor,) = model.graph.initializers.values()
    assert not found(model, "TENSOR", "DATA", types=False)
    assert tensor.view is None


def test_large_data_beside_external_data_is_reported_and_kept():
    proto = ModelProto.FromString(sabir.dumps(read(outside(W))))
    proto.graph.initializer[0].raw_data = bytes(range(256)) * 512
    wire = proto.SerializeToString()
    model = sabir.loads(wire)
    assert found(model) == [("DATA002", *FIRST)]
    assert sabir.dumps(model) == wire


# metadata


def test_a_key_that_occurs_three_times_is_reported_twice():
    model = graph_of('metadata_props { key: "k" value: "v" } ' * 3, ir_version=10)
    assert found(model) == [("META002", "graph/metadata 'k'")] * 2


def test_keys_of_different_objects_are_independent():
    entry = 'metadata_props { key: "k" value: "v" }'
    tensor = f'initializer {{ name: "w" data_type: 1 float_data: 1 {entry} }}'
    assert not found(graph_of(f"{entry} {tensor}", ir_version=10))


# training


def training(*infos):
    state = 'initializer { name: "w" data_type: 1 float_data: 1 }'
    return read(
        in_model(
            f'graph {{ name: "g" {RELU} {X} {Y} {state} }}'
            + "".join(f" training_info {{ {i} }}" for i in infos)
        )
    )


def algorithm(name, body, output):
    return f'{name} {{ name: "a" {body} output {{ name: "{output}" {SCALAR} }} }}'


def test_an_algorithm_reads_the_main_graph_and_an_initialization_only_its_state():
    node = 'node {{ op_type: "Identity" input: "{}" output: "z" }}'
    for name, read_there, rules in (
        ("algorithm", "w", []),
        ("algorithm", "y", []),
        ("initialization", "w", []),
        ("initialization", "y", ["GRAPH006"]),
        ("algorithm", "ghost", ["GRAPH005"]),
    ):
        model = training(algorithm(name, node.format(read_there), "z"))
        assert [rule for rule, _ in found(model, "GRAPH")] == rules, (name, read_there)


def test_updates_of_one_name_in_two_trainings():
    step = algorithm("algorithm", constant("data_type: 1 float_data: 1", "z"), "z")
    update = 'update_binding { key: "w" value: "z" }'
    assert not found(training(f"{step} {update}"))
    assert found(training(f"{step} {update} {update}")) == [
        ("TRAIN003", "training_info[0]/update_binding[1] 'w'")
    ]
    # the specification requires unique keys of one field, the comments of onnx.proto of all fields
    assert found(training(f"{step} {update}", f"{step} {update}")) == [
        ("TRAIN009", "training_info[1]/update_binding[0] 'w'")
    ]


def test_operators_of_an_algorithm_are_known():
    model = training(algorithm("algorithm", 'node { op_type: "Nothing" output: "z" }', "z"))
    assert found(model) == [("NODE001", "training_info[0]/algorithm/node[0] 'Nothing'")]


# devices and annotations


def test_the_rank_of_a_constant_bounds_the_axes():
    device = (
        'device_configurations { configuration_id: "c" sharding_spec { tensor_name: "w" device: 0 sharded_dim { axis: 1'
        " simple_sharding { num_shards: 1 } } } }"
    )
    more = f'node {{ op_type: "Abs" input: "w" output: "a" {device} }} initializer {{ name: "w" dims: 1 data_type: 1'
    graph = f'graph {{ name: "g" {RELU} {X} {Y} {more} float_data: 1 }} }}'
    model = read(in_model(f'{graph} configuration {{ name: "c" num_devices: 1 }}', ir_version=11))
    assert found(model) == [("DEV004", "graph/node[1] 'Abs'/device[0] 'c'/sharding[0] 'w'")]


def test_device_rules_hold_since_ir_11():
    device = 'device_configurations { configuration_id: "c" }'
    node = f'node {{ op_type: "Relu" input: "x" output: "y" {device} }}'
    fields = f'name: "g" {node} {X} {Y}'
    assert found(read(in_graph(fields, ir_version=11))) == [("DEV001", "graph/node[0] 'Relu'/device[0] 'c'")]
    assert [rule for rule, _ in found(read(in_graph(fields, ir_version=10)))] == ["MODEL011"]


def test_an_annotation_in_a_subgraph_may_name_a_value_of_an_enclosing_graph():
    branch = (
        'attribute {{ name: "{0}_branch" type: GRAPH g {{ name: "{0}_graph" {1} output {{ name: "{2}" {3} }}'
        ' quantization_annotation {{ tensor_name: "{4}" }} }} }}'
    )
    then = branch.format("then", constant("data_type: 1 float_data: 1", "t"), "t", SCALAR, "x")
    other = branch.format("else", constant("data_type: 1 float_data: 1", "e"), "e", SCALAR, "ghost")
    flag = 'input { name: "c" type { tensor_type { elem_type: 9 shape { } } } }'
    model = graph_of(f'{flag} node {{ op_type: "If" input: "c" output: "i" {then} {other} }}')
    place = "graph/node[1] 'If'/attribute 'else_branch'/quantization_annotation[0] 'ghost'"
    assert found(model) == [("QUANT001", place)]
