import os

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.cli._feeds import FeedOptions, gather
from sabir.cli._random import random_array
from sabir.cli._results import save_each, summary
from sabir.debugging import type_text
from sabir.elements import ELEMENTS, element
from sabir.evaluation import ModelPort
from sabir.ir import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, parse_dim, tensor_type
from sabir.proto import MapProto, SequenceProto, SparseTensorProto, TensorProto


def fed(ports, files=None, dims=None):
    return gather(ports, FeedOptions(files=files or {}, dims=dims or {})).values


@pytest.fixture
def save(tmp_path):
    def run(name, array):
        np.save(tmp_path / name, array)
        return tmp_path / name

    return run


def test_given_inputs_and_saved_outputs(cli, relu, save, tmp_path):
    x = np.array([[-1, 0, 2], [3, -4, np.nan]], np.float32)
    code, out, err = cli(
        "run", relu, "--input", f"x={save('x.npy', x)}", "--output", tmp_path / "new" / "out"
    )
    assert (code, err) == (0, "")
    assert "relu.onnx on the engine " in out
    assert "   x   float[2,3]   x.npy   min -4  mean 0  max 3  1 not finite  [-1, 0, 2, 3, …]\n" in out
    assert "   y   y.npy   NumPy array\n" in out
    np.testing.assert_array_equal(np.load(tmp_path / "new" / "out" / "y.npy"), np.maximum(x, 0))


def test_a_tensor_file_as_input(cli, relu, tmp_path):
    message = TensorProto(data_type=1, dims=[1, 3], raw_data=np.array([-1, 0, 2], np.float32).tobytes())
    (tmp_path / "input_0.pb").write_bytes(message.SerializeToString())
    out = cli("run", relu, "-i", f"x={tmp_path / 'input_0.pb'}").out
    assert "   y   float[1,3]   min 0  mean 0.6667  max 2  [0, 0, 2]\n" in out


def test_random_inputs_follow_the_seed(cli, relu):
    def shown(*options):
        code, out, _ = cli("run", relu, *options)
        assert code == 0
        return out.split("Time")[0]

    assert "   x   float[4,3]" in shown("--dim", "N=4")
    assert "   x   float[1,3]   random   min " in shown()
    assert shown() == shown("--seed", "0") != shown("--seed", "1")


def test_repeated_runs(cli, relu):
    out = cli("run", relu, "--repeat", "3", "--threads", "1").out
    assert "Time  min " in out
    assert out.endswith(" of 3 runs\n")


@pytest.mark.parametrize("kind", ELEMENTS, ids=str)
def test_random_arrays_are_of_their_type(kind):
    array = random_array(kind, (50,), np.random.default_rng(0))
    assert array.dtype == kind.dtype
    assert array.shape == (50,)
    assert random_array(kind, (), np.random.default_rng(0)).shape == ()
    if kind.is_integer:
        plain = array.astype(np.int64)
        assert plain.min() >= 0
        assert plain.max() == min(9, 2 ** (kind.bits - kind.is_signed) - 1)
    elif kind.is_float:
        assert np.isfinite(array.astype(np.float64)).all()
    elif kind.name == "string":
        assert all(isinstance(text, str) for text in array.tolist())


def shapes(ports, files=None, dims=None):
    return {name: np.shape(feed.value) for name, feed in fed(ports, files, dims).items()}


def test_dimensions_are_given_bound_or_one(save):
    ports = [
        ModelPort("a", tensor_type("float", ["N", 2, None])),
        ModelPort("b", tensor_type("int64", [parse_dim("2*N + M"), "M"])),
        ModelPort("c", tensor_type("bool", []), optional=True),
    ]
    assert shapes(ports) == {"a": (1, 2, 1), "b": (3, 1)}
    assert shapes(ports, dims={"N": 3, "M": 0}) == {"a": (3, 2, 1), "b": (6, 0)}
    a = save("a.npy", np.zeros((4, 2, 5), np.float32))
    assert shapes(ports, {"a": a}) == {"a": (4, 2, 5), "b": (9, 1)}


def test_a_sequence_is_random_too():
    feeds = fed([ModelPort("s", SequenceType(tensor_type("float", ["N"])))], {}, {"N": 3})
    assert [item.shape for item in feeds["s"].value] == [(3,), (3,)]


@pytest.mark.parametrize(
    ("kind", "dims", "expected"),
    [
        (tensor_type("float"), {}, "input 'x' declares no rank; choose a shape with --shape"),
        (None, {}, "input 'x' declares no type"),
        (tensor_type("float", [parse_dim("N - 3")]), {"N": 2}, "the dimension N-3 is -1 if N = 2"),
        (tensor_type("float", ["N", "N"]), {"N": 10**9}, "would be too large"),
    ],
)
def test_what_cannot_be_random(kind, dims, expected):
    with pytest.raises(sabir.FeedError, match="x") as error:
        fed([ModelPort("x", kind)], {}, dims)
    assert expected in str(error.value)


def test_what_does_not_fit(fails, relu, save, tmp_path):
    wide = save("wide.npy", np.zeros((2, 4), np.float32))
    double = save("double.npy", np.zeros((2, 3)))
    (tmp_path / "junk.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.save(tmp_path / "pickle.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "junk.pb").write_bytes(b"\xff\xff\xff")
    messages = {
        f"x={wide}": "input 'x' is declared float[N,3], and has the shape [2, 4]",
        f"x={double}": "input 'x' is declared float[N,3], and got double[2, 3]",
        f"z={wide}": "--input 'z': no input has this name; the inputs are 'x'",
        "x": "--input 'x': write it as NAME=FILE",
        "=x.npy": "--input '=x.npy': write it as NAME=FILE",
        f"x={tmp_path}/none.npy": f"{tmp_path}/none.npy: No such file or directory",
        f"x={tmp_path}/junk.npy": f"{tmp_path}/junk.npy: this is not a .npy file",
        f"x={tmp_path}/pickle.npy": f"{tmp_path}/pickle.npy: this is not a .npy file",
        f"x={tmp_path}/junk.pb": f"{tmp_path}/junk.pb",
        f"x={relu}": f"{relu}: inputs are read from .npy, .npz and .pb files and from pictures",
    }
    for option, message in messages.items():
        assert message in fails("run", relu, "--input", option)


@pytest.mark.parametrize("option", ["N", "N=", "N=x", "N=-1", "N=1.5", "N=٣", "M=2", f"N={'9' * 30}"])
def test_bad_dimensions(fails, relu, option):
    assert fails("run", relu, "--dim", option).startswith("--dim ")


def test_names_with_equals_signs(cli, tmp_path, save):
    b = sabir.Builder(17)
    b.output(b.Relu(b.input("a=b", "float", ["M=N"])), "y")
    sabir.save(b.model(), tmp_path / "m.onnx")
    x = save("x=1.npy", np.ones(2, np.float32))
    assert "   a=b   float[2]" in cli("run", tmp_path / "m.onnx", "--input", f"a=b={x}").out
    assert "   a=b   float[3]" in cli("run", tmp_path / "m.onnx", "--dim", "M=N=3").out


def test_file_names_stay_in_the_folder(tmp_path):
    one = np.ones(1)
    names = [
        "../x",
        "gpu_0/softmax_1",
        "Y",
        "y",
        "",
        "..",
        "con",
        "a\x00b\n",
        "é",
        "x" * 300,
        "/etc/passwd",
        "Con.a",
    ]
    files = {saved.name: saved.file for saved in save_each(dict.fromkeys(names, one), tmp_path / "out")}
    assert [files[n] for n in names[:5]] == [
        "_x.npy",
        "gpu_0_softmax_1.npy",
        "Y.npy",
        "y_2.npy",
        "output.npy",
    ]
    assert [files[n] for n in names[5:9]] == ["output_2.npy", "_con.npy", "a_x00b_n.npy", "é.npy"]
    assert files["/etc/passwd"] == "_etc_passwd.npy"
    assert files["Con.a"] == "_Con.a.npy"
    assert sorted(os.listdir(tmp_path / "out")) == sorted(files.values())  # ruff: ignore[os-listdir]  names alone
    assert len(set(map(str.casefold, files.values()))) == len(names)


FLOATS = tensor_type("float", ["N"])
RESULTS = [
    (np.float32([1, 2]), None, "y.npy"),
    (np.array(["ab", "é"], object), None, "y.npy"),
    (np.array(["ab\0", ""], object), None, "y.pb"),  # .npy files trim texts
    (np.array([1.5, -2], ml_dtypes.bfloat16), None, "y.pb"),
    (np.array([[3, 15]], ml_dtypes.uint4), None, "y.pb"),
    (np.array(1, ml_dtypes.float8_e4m3fn), None, "y.pb"),
    ([np.float32([1]), np.float32([2, 3])], SequenceType(FLOATS), "y.pb"),
    ([np.array([1.5], ml_dtypes.bfloat16)], SequenceType(tensor_type("bfloat16", [None])), "y.pb"),
    ([], SequenceType(FLOATS), "y.pb"),
    (
        {"a": np.float32(0.5), "é": np.float32(2)},
        MapType(element("string"), tensor_type("float", [])),
        "y.pb",
    ),
    ({-3: np.float32(0.5)}, MapType(element("int64"), tensor_type("float", [])), "y.pb"),
    ([{1: np.float32(1)}], SequenceType(MapType(element("int64"), tensor_type("float", []))), "y.pb"),
    (None, OptionalType(FLOATS), "y.pb"),
    (np.float32([1]), OptionalType(FLOATS), "y.pb"),
    ([np.float32([1])], OptionalType(SequenceType(FLOATS)), "y.pb"),
]


def same(got, wanted):
    """Whether two values are of one kind and type, and equal."""
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(same, got, wanted))
    if isinstance(wanted, dict):
        return list(got) == list(wanted) and all(map(same, got.values(), wanted.values()))
    if wanted is None:
        return got is None
    got, wanted = np.asarray(got), np.asarray(wanted)
    return got.dtype == wanted.dtype and got.shape == wanted.shape and got.tolist() == wanted.tolist()


@pytest.mark.parametrize(("value", "kind", "file"), RESULTS)
def test_a_result_in_a_file_is_the_same_as_an_input(value, kind, file, tmp_path):
    if kind is None:
        kind = TensorType(element(value.dtype), value.shape)
    (saved,) = save_each({"y": value}, tmp_path, {"y": kind})
    assert saved.file == file
    feed = fed([ModelPort("x", kind)], {"x": tmp_path / file}, {})["x"]
    assert same(feed.value, value)
    if not isinstance(kind, OptionalType):  # the file of a value is one of an optional value, too
        feed = fed([ModelPort("x", OptionalType(kind))], {"x": tmp_path / file}, {})["x"]
        assert same(feed.value, value)


@pytest.mark.parametrize(("value", "kind", "file"), RESULTS)
def test_a_result_without_a_declared_type_is_saved_by_what_it_is(value, kind, file, tmp_path):
    (saved,) = save_each({"y": value}, tmp_path)
    message = {list: "SequenceProto", dict: "MapProto", type(None): "OptionalProto"}.get(type(value))
    if message is not None:
        assert saved.form == message
    elif not isinstance(kind, OptionalType):
        assert saved == ("y", file, "NumPy array" if file == "y.npy" else "TensorProto")


def test_every_element_type_comes_back_from_its_file(tmp_path):
    for kind in ELEMENTS:
        array = random_array(kind, (3, 2), np.random.default_rng(0))
        (saved,) = save_each({kind.name: array}, tmp_path)
        ports = [ModelPort("x", TensorType(kind, (3, 2)))]
        assert same(fed(ports, {"x": tmp_path / saved.file}, {})["x"].value, array), kind


def test_narrow_numbers_in_a_wider_npy_file(save):
    wide, high = save("wide.npy", np.int8([3, -8])), save("high.npy", np.int8([99, 0]))
    half = save("half.npy", np.float32([1.5]))

    def read(path, kind):
        return fed([ModelPort("x", tensor_type(kind, [None]))], {"x": path})["x"].value

    assert same(read(wide, "int4"), np.array([3, -8], ml_dtypes.int4))
    assert same(read(half, "bfloat16"), np.array([1.5], ml_dtypes.bfloat16))
    with pytest.raises(sabir.FeedError, match=r"high\.npy: some of its numbers are not int4"):
        read(high, "int4")
    with pytest.raises(sabir.FeedError, match=r"wide\.npy: some of its numbers are not uint4"):
        read(wide, "uint4")


def test_an_array_saved_without_its_type_is_taken_as_declared(save):
    raw = np.array([1.5, -2], ml_dtypes.bfloat16)
    path = save("raw.npy", raw)  # numpy writes such an array as plain bytes
    ports = [ModelPort("x", OptionalType(tensor_type("bfloat16", [2])))]
    assert same(fed(ports, {"x": path}, {})["x"].value, raw)


MAKES = """<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
g (float[N,2] x) => (bfloat16[N,2] b, seq(float[N,2]) s, seq(map(int64, float)) m, optional(float[N,2]) o) {
   b = Cast <to = 16> (x)
   s = SequenceConstruct (x, x)
   m = ai.onnx.ml.ZipMap <classlabels_int64s = [7, 9]> (x)
   o = Optional (x)
}"""
TAKES = """<ir_version: 10, opset_import: ["" : 18]>
g (bfloat16[N,2] b, seq(float[N,2]) s, seq(map(int64, float)) m, optional(float[N,2]) o)
  => (float[N,2] c, int64 n, seq(map(int64, float)) m, bool h) {
   c = Cast <to = 1> (b)
   n = SequenceLength (s)
   h = OptionalHasElement (o)
}"""


def test_results_of_one_model_are_inputs_of_another(cli, write, tmp_path):
    makes, takes, out = write(MAKES, "makes.onnxtxt"), write(TAKES, "takes.onnxtxt"), tmp_path / "out"
    shown = cli("run", makes, "--dim", "N=3", "-o", out).out
    for line in ("b   b.pb   TensorProto", "s   s.pb   SequenceProto", "o   o.pb   OptionalProto"):
        assert f"   {line}\n" in shown
    options = [f"{name}={out / name}.pb" for name in "bsmo"]
    code, _, err = cli(
        "run", takes, *(part for option in options for part in ("-i", option)), "-o", tmp_path / "end"
    )
    assert (code, err) == (0, "")
    assert np.load(tmp_path / "end" / "n.npy") == 2
    assert np.load(tmp_path / "end" / "h.npy").all()
    assert (tmp_path / "end" / "m.pb").read_bytes() == (out / "m.pb").read_bytes()


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (
            SequenceType(FLOATS),
            b"",
            "no value of type seq(float[N]) can be read from this file: the file is empty",
        ),
        (SequenceType(FLOATS), b"\xff\xff", "truncated or no SequenceProto"),
        (SequenceType(FLOATS), TensorProto(data_type=1, raw_data=b"1234"), "no SequenceProto: it has fields"),
        (SequenceType(FLOATS), SequenceProto(elem_type=99), "its elem_type is 99"),
        (
            SequenceType(FLOATS),
            SequenceProto(elem_type=1, map_values=[MapProto()]),
            "elem_type is tensor, and",
        ),
        (
            SequenceType(FLOATS),
            SequenceProto(elem_type=2, sparse_tensor_values=[SparseTensorProto()]),
            "sparse",
        ),
        (MapType(element("int64"), FLOATS), MapProto(key_type=7, keys=[1, 2]), "2 keys and 0 values"),
        (MapType(element("int64"), FLOATS), MapProto(keys=[1]), "its key type is unknown"),
        (
            MapType(element("int64"), FLOATS),
            MapProto(
                key_type=7,
                keys=[1, 1],
                values=SequenceProto(
                    elem_type=1, tensor_values=[TensorProto(data_type=1, float_data=[1])] * 2
                ),
            ),
            "it has a key twice",
        ),
        (
            MapType(element("string"), FLOATS),
            MapProto(key_type=8, string_keys=[b"\xff"]),
            "a key is not UTF-8",
        ),
        (OptionalType(FLOATS), b"\xff\xff", "truncated or no TensorProto"),
        (SparseTensorType(element("float")), TensorProto(data_type=1), "a sparse tensor cannot be read"),
        (None, SequenceProto(elem_type=1), "no tensor can be read from this file"),
    ],
)
def test_files_without_such_a_value(kind, data, expected, tmp_path):
    path = tmp_path / "x.pb"
    path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
    with pytest.raises(sabir.FeedError, match=r"x\.pb: no .* can be read from this file") as error:
        fed([ModelPort("x", kind)], {"x": path}, {})
    assert expected in str(error.value)


def test_a_result_that_no_message_holds_is_an_error(tmp_path):
    with pytest.raises(sabir.UnsupportedError, match="items of one type, and these are sequence, tensor"):
        list(save_each({"y": [np.ones(1), [np.ones(1)]]}, tmp_path))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (np.float32(2), "float", "min 2  mean 2  max 2  [2]"),
        (np.zeros((0, 3), np.int64), "int64[0,3]", "[]"),
        (np.arange(8), "int64[8]", "min 0  mean 3.5  max 7  [0, 1, 2, 3, …]"),
        (np.array([np.nan, np.inf]), "double[2]", "no finite value  [nan, inf]"),
        (np.array([1.7e308] * 2), "double[2]", "min 1.7e+308  mean inf  max 1.7e+308  [1.7e+308, 1.7e+308]"),
        (np.array([True, False]), "bool[2]", "[True, False]"),
        (np.array(["a\x1b", "b"], object), "string[2]", "[a\\x1b, b]"),
        (np.array([1 + 2j], np.complex64), "complex64[1]", "[1+2j]"),
        (np.array([1, 3], ml_dtypes.int4), "int4[2]", "min 1  mean 2  max 3  [1, 3]"),
        ([np.zeros(2), np.ones(3)], "sequence of 2", "double[2]; double[3]"),
        ({"a": 1.5}, "map of 1", "'a': 1.5"),
        (None, "nothing", ""),
    ],
)
def test_summaries(value, kind, expected):
    assert type_text(value) == kind
    assert summary(value) == expected


def test_a_folder_that_cannot_be(fails, relu):
    assert fails("run", relu, "--output", relu / "out").endswith("out: Not a directory")
    taken = relu.with_name("taken")
    taken.write_bytes(b"")
    assert "File exists" in fails("run", relu, "--output", taken)


def test_a_model_that_cannot_run(fails, write):
    path = write('<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Nope(x) }')
    assert "Nope" in fails("run", path, code=1)
