"""Wrong usage of the program: the messages name what the user probably meant."""

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("shw", "x"), "no such command 'shw'; is it 'show'?; see sabir --help"),
        (("cache", "clean"), "no such command 'clean'; is it 'clear'?; see sabir cache --help"),
        (("submodel", "x"), "no such command 'submodel'; `sabir extract` writes the part of a model"),
        (("optimize", "x"), "`sabir simplify` writes a model with fewer nodes"),
        (("verify", "x"), "`sabir check` finds what is wrong"),
        (("run", "m.onnx", "--batch", "3"), "no such option: --batch; to set the size of a dimension write `--dim batch=3`"),
        (("run", "m.onnx", "--batch=3"), "write `--dim batch=3`; see sabir run --help"),
        (("run", "m.onnx", "--image", "cat.png"), "to feed an input write `--input image=cat.png`"),
        (("run", "m.onnx", "--repat", "3"), "no such option: --repat; is it '--repeat'?; see sabir run --help"),
        (("run", "m.onnx", "--quux"), "no such option: --quux; see sabir run --help"),
        (("run", "m.onnx", "x.npy"), "(x.npy); to feed an input write `--input NAME=x.npy`"),
        (("run", "m.onnx", "-i", "x=x.npy", "y.npy"), "(y.npy); to feed an input write `--input NAME=y.npy`"),
        (("run", "m.onnx", "x=x.npy"), "to feed an input write `--input x=x.npy`"),
        (("run", "m.onnx", "N=3"), "to set the size of a dimension write `--dim N=3`"),
        (("run", "a.onnx", "b.onnx"), "to compare what two models compute use `sabir compare`"),
        (("rule", "FOO"), "there is no rule 'FOO'; an id begins with ATTR, "),
        (("rule", "GRPAH004"), "there is no rule 'GRPAH004'; is it 'GRAPH004'?"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_the_likely_intention(fails, arguments, expected):
    message = fails(*arguments)
    assert expected in message
    assert "\n" not in message


def test_names_of_inputs_and_dimensions_are_corrected(fails, relu, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    np.savez(tmp_path / "feeds.npz", X=np.zeros((2, 3), np.float32))
    x = tmp_path / "x.npy"
    assert "no dimension variable has this name; is it 'N'?" in fails("run", relu, "--dim", "n=3")
    assert "the model has no input 'X'; is it 'x'?" in fails("run", relu, "-i", tmp_path / "feeds.npz")
    assert "write it as NAME=FILE; the inputs are 'x'" in fails("run", relu, "-i", x)
    message = fails("run", relu, "-i", f"x={x}", "-i", f"x={tmp_path / 'feeds.npz'}")
    assert message.startswith(f"--input: 'x' has two values, '{x}' and ")
    assert "--dim: 'N' has two values, '1' and '2'" in fails("run", relu, "--dim", "N=1", "--dim", "N=2")


def test_a_misnamed_array_for_training_is_named(fails, relu, tmp_path):
    data = tmp_path / "data.npz"
    np.savez(data, X=np.zeros((4, 3), np.float32), label=np.zeros(4, np.int64))
    message = fails("train", relu, "--data", data, "-o", tmp_path / "t.onnx")
    assert message == "the data has no array 'x', which is an input of the model; is it 'X'?"
    np.savez(data, image=np.zeros((4, 3), np.float32), label=np.zeros(4, np.int64))
    message = fails("train", relu, "--data", data, "-o", tmp_path / "t.onnx")
    assert message.endswith("which is an input of the model; its arrays are 'image', 'label'")
