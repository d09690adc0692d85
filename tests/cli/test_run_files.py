"""Inputs from archives and pictures, chosen shapes, archives of outputs, and comparison with test data."""

import json

import numpy as np
import pytest
from PIL import Image

import sabir
from sabir.proto import TensorProto


@pytest.fixture
def two(tmp_path):
    """A model of two inputs with unnamed dimensions: their sum."""
    b = sabir.Builder(17)
    a, c = b.input("a", "float", [None, 2]), b.input("c", "float", ["N", 2])
    b.output(b.Add(a, c), "sum")
    path = tmp_path / "two.onnx"
    sabir.save(b.model(), path)
    return path


def picture(tmp_path, shape, element="float"):
    b = sabir.Builder(17)
    b.output(b.Identity(b.input("image", element, shape)), "y")
    sabir.save(b.model(), tmp_path / "model.onnx")
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 0] = 255
    pixels[0, 0] = (0, 51, 255)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    return tmp_path / "model.onnx", tmp_path / "p.png"


def test_shapes_are_chosen_for_unnamed_dimensions(cli, fails, two):
    out = cli("run", two, "--shape", "a=3,2").out
    assert "   a     float[3,2]   random" in out.replace("   a   float", "   a     float")
    assert "note: the dimension 'N' is taken as 1; choose its size with --dim" in out
    assert "axis 0 of 'a'" not in out
    assert "note: axis 0 of 'a' is taken as 1; choose its size with --shape" in cli("run", two).out
    both = json.loads(cli("run", two, "--shape", "c=5,2", "--shape", "a=1,2", "--json").out)
    assert (both["assumed"], both["outputs"][0]["shape"]) == ([], [5, 2])
    assert "[3, 7] does not fit float[?,2], the declared type" in fails("run", two, "--shape", "a=3,7")
    assert "no input has this name" in fails("run", two, "--shape", "z=1")
    assert "the size must be a number" in fails("run", two, "--shape", "a=3,x")


def test_an_input_without_a_rank_takes_a_shape(cli, fails, tmp_path):
    b = sabir.Builder(17)
    b.output(b.Relu(b.input("x", "float", None)), "y")
    sabir.save(b.model(), tmp_path / "m.onnx")
    assert "choose a shape with --shape" in fails("run", tmp_path / "m.onnx")
    assert "x   float[2,5]" in cli("run", tmp_path / "m.onnx", "--shape", "x=2,5").out


def test_archives_in_and_out(cli, fails, two, tmp_path):
    a, c = np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]])
    np.savez(tmp_path / "feeds.npz", a=a, c=c)
    code, out, err = cli("run", two, "-i", tmp_path / "feeds.npz", "-o", tmp_path / "out.npz")
    assert (code, err) == (0, "")
    assert "sum   out.npz   NumPy array" in out
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["sum"], a + c)
    assert cli("run", two, "-i", f"a={tmp_path}/feeds.npz", "-i", f"c={tmp_path}/feeds.npz").code == 0
    np.savez(tmp_path / "odd.npz", q=a)
    assert "the model has no input 'q'; its inputs are 'a', 'c'" in fails(
        "run", two, "-i", tmp_path / "odd.npz"
    )
    assert "float[1,2]   odd.npz" in cli("run", two, "-i", f"a={tmp_path}/odd.npz").out
    np.savez(tmp_path / "many.npz", q=a, r=a)
    assert "its arrays are 'q', 'r'" in fails("run", two, "-i", f"a={tmp_path}/many.npz")
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04 no archive")
    assert "junk.npz: this is not a .npz file" in fails("run", two, "-i", tmp_path / "junk.npz")


def test_a_result_that_an_archive_cannot_represent(fails, write, tmp_path):
    path = write(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (seq(float[1]) y) { y = SequenceConstruct(x) }'
    )
    message = fails("run", path, "-o", tmp_path / "out.npz")
    assert "'y', sequence of 1, does not fit .npz; name a folder with --output" in message
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    ("shape", "place"),
    [((1, 3, 4, 6), (0, slice(None), 0, 0)), (("N", 4, 6, 3), (0, 0, 0)), ((3, 4, 6), (slice(None), 0, 0)),
     ((4, 6, 3), (0, 0)), ((None, 3, None, None), (0, slice(None), 0, 0))],
    ids=str,
)  # fmt: skip
def test_pictures_in_every_layout(cli, tmp_path, shape, place):
    model, png = picture(tmp_path, shape)
    assert cli("run", model, "-i", f"image={png}", "-o", tmp_path / "out").code == 0
    got = np.load(tmp_path / "out" / "y.npy")
    np.testing.assert_allclose(got[place], [0, 0.2, 1], atol=1e-6)


def test_pictures_are_resized_and_normalized(cli, fails, tmp_path):
    model, png = picture(tmp_path, [1, 3, 2, 2])
    options = ("--mean", "1,0,0.5", "--std", "0.5")
    assert cli("run", model, "-i", f"image={png}", "-o", tmp_path / "out", *options).code == 0
    got = np.load(tmp_path / "out" / "y.npy")
    assert got.shape == (1, 3, 2, 2)
    np.testing.assert_allclose(got[0, :, 1, 1], [0, 0, -1], atol=1e-6)
    assert "take 1 number or 3" in fails("run", model, "-i", f"image={png}", "--mean", "1,2")
    assert "write numbers separated by commas" in fails("run", model, "-i", f"image={png}", "--mean", "red")


def test_pictures_as_bytes_and_in_grey(cli, fails, tmp_path):
    model, png = picture(tmp_path, [4, 6], "uint8")
    assert cli("run", model, "-i", f"image={png}", "-o", tmp_path / "out").code == 0
    grey = np.load(tmp_path / "out" / "y.npy")
    assert (grey.dtype, grey.shape, grey[1, 1]) == (np.uint8, (4, 6), 76)  # 0.299 of red
    assert "mean and std are for float inputs" in fails("run", model, "-i", f"image={png}", "--mean", "1")
    (tmp_path / "junk.png").write_bytes(b"junk")
    assert "this is not a picture that Pillow can read" in fails(
        "run", model, "-i", f"image={tmp_path}/junk.png"
    )
    odd, png = picture(tmp_path, [7, 5, 9, 6])
    assert "a picture does not fit an input of type" in fails("run", odd, "-i", f"image={png}")


@pytest.fixture
def dataset(tmp_path):
    """A folder with two data sets for `two`."""

    def put(path, array):
        path.parent.mkdir(exist_ok=True)
        message = TensorProto(data_type=1, dims=array.shape, raw_data=array.tobytes())
        path.write_bytes(message.SerializeToString())

    a, c = np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]])
    for number in (0, 10):
        folder = tmp_path / f"test_data_set_{number}"
        put(folder / "input_0.pb", a)
        put(folder / "input_1.pb", c)
        put(folder / "output_0.pb", a + c + np.float32(number))
    return tmp_path


def test_results_are_compared_with_test_data(cli, fails, two, dataset):
    code, out, _ = cli("run", two, "--compare", dataset / "test_data_set_0")
    assert code == 0
    assert "sum" in out
    assert "equal" in out
    code, out, _ = cli("run", two, "--compare", dataset)
    assert code == 1
    assert out.index("test_data_set_0") < out.index("test_data_set_10")
    assert "4 of 4 elements differ by more than the tolerance" in out
    assert cli("run", two, "--compare", dataset, "--atol", "11").code == 0
    compared = json.loads(cli("run", two, "--compare", dataset, "--json").out)
    assert [c["outputs"][0]["largest"] for c in compared] == [0, 10]
    assert "there is no test data here" in fails("run", two, "--compare", two.parent / "nowhere")
    assert "omit --input" in fails("run", two, "--compare", dataset, "--dim", "N=2")


def test_weights_are_listed(cli, tmp_path):
    b = sabir.Builder(17)
    w = b.initializer("w", np.float32([[0, -2], [np.nan, np.inf]]))
    b.output(b.Add(b.input("x", "float", [2, 2]), w), "y")
    b.initializer("names", np.array(["a", "b"], object))
    sabir.save(b.model(), tmp_path / "m.onnx")
    lines = [line.split() for line in cli("show", tmp_path / "m.onnx", "--weights").out.splitlines()]
    assert ["name", "type", "bytes", "min", "max", "mean", "zeros", "NaN"] in lines
    assert ["w", "float[2,2]", "16", "bytes", "-2", "0", "-1", "1", "1"] in lines
    assert ["names", "string[2]", "2", "bytes"] in lines


def test_a_name_of_a_file_is_a_file(cli, fails, relu, tmp_path):
    assert cli("run", relu, "-o", tmp_path / "y.npy").code == 0
    assert np.load(tmp_path / "y.npy").shape == (1, 3)
    saved = cli("run", relu, "-o", tmp_path / "y.pb")
    assert f"Saved  in {tmp_path}" in saved.out
    assert sabir.serial.load_value(tmp_path / "y.pb").shape == (1, 3)
    assert "results are saved as .npz, .npy, .pb, and not as .csv" in fails(
        "run", relu, "-o", tmp_path / "y.csv"
    )
    (tmp_path / "folder.v2").mkdir()
    assert cli("run", relu, "-o", tmp_path / "folder.v2").code == 0
    assert (tmp_path / "folder.v2" / "y.npy").is_file()


def test_a_file_of_one_value_takes_the_only_output(fails, write, tmp_path):
    model = write(
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[N] x) => (float[N] y, float[N] z) { y = Relu (x)  z = Abs (x) }"
    )
    message = fails("run", model, "-o", tmp_path / "y.npy")
    assert "this file has one value, and the model has 2 outputs; name a folder" in message
    assert not (tmp_path / "y.npy").exists()


def test_the_engine_of_a_run_is_an_option(cli, relu):
    assert "on the engine 'reference'" in cli("run", relu, "--engine", "reference").out
