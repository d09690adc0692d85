"""`sabir train`: what it writes, how it goes on, and what it refuses."""

import csv
import sys

import numpy as np
import pytest
from PIL import Image

import sabir
import sabir.training
from sabir.cli._screen import Screen
from sabir.ir import OperatorEntry
from sabir.syntax import parse_function
from support.markup import cells

LINE = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {0, 0}, float[1] b = {0}> { p = MatMul (x, w)  y = Add (p, b) }"
)


@pytest.fixture
def line(write, tmp_path):
    """A linear model, and data that `3 x0 - x1 + 1` made."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((96, 2)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, t=(x @ np.float32([[3], [-1]]) + 1).astype(np.float32))
    return write(LINE), tmp_path / "data.npz"


WORDS = ("--loss", "mse", "--optimizer", "sgd", "--rate", "0.1", "--engine", "reference")


def test_a_model_is_trained(cli, line, tmp_path):
    model, data = line
    out, log = tmp_path / "trained.onnx", tmp_path / "log.csv"
    found = cli(
        "train",
        model,
        "--data",
        data,
        "-o",
        out,
        *WORDS,
        "--epochs",
        30,
        "--metrics",
        "mae",
        "--validate",
        data,
        "--log",
        log,
    )
    assert (found.code, found.err) == (0, "")
    assert "training 3 numbers in 2 initializers" in found.out
    assert "epoch 30: loss" in found.out
    trained = sabir.load(out)
    assert trained.training == []
    np.testing.assert_allclose(trained.graph.initializers["w"].array(), [[3], [-1]], atol=1e-3)
    np.testing.assert_allclose(trained.graph.initializers["b"].array(), [1], atol=1e-3)
    with log.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == list(range(1, 31))
    assert list(rows[0]) == [
        "epoch",
        "steps",
        "seconds",
        "loss",
        "mae",
        "rate",
        "validation_loss",
        "validation_mae",
    ]
    assert float(rows[-1]["validation_loss"]) < 1e-5 < float(rows[0]["loss"])


@pytest.mark.parametrize(
    "words",
    [
        ("--optimizer", "rmsprop", "--momentum", "0.5", "--schedule", "one-cycle", "--warmup", "2"),
        ("--optimizer", "lamb", "--schedule", "polynomial", "--warmup", "2"),
        ("--optimizer", "lion", "--warmup", "2"),
        ("--optimizer", "radam"),
        ("--optimizer", "nadam"),
        ("--optimizer", "adabelief"),
        ("--optimizer", "adafactor"),
    ],
    ids=str,
)
def test_optimizers_and_schedules_lower_the_loss(cli, line, tmp_path, words):
    model, data = line
    log = tmp_path / "log.csv"
    rest = ("--loss", "mse", "--engine", "reference", "--epochs", 10, "--log", log)
    assert cli("train", model, "--data", data, "-o", tmp_path / "trained.onnx", *words, *rest).code == 0
    with log.open() as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert losses[-1] < losses[0]


def test_a_checkpoint_goes_on_as_if_nothing_had_stopped(cli, line, tmp_path):
    model, data = line
    whole, half, rest = (tmp_path / f"{name}.onnx" for name in ("whole", "half", "rest"))
    words = (*WORDS, "--seed", "4", "--keep-training", "--batch", "20")
    assert cli("train", model, "--data", data, "-o", whole, *words, "--epochs", 4).code == 0
    assert (
        cli("train", model, "--data", data, "-o", rest, *words, "--epochs", 2, "--checkpoint", half).code == 0
    )
    assert (
        cli(
            "train",
            half,
            "--data",
            data,
            "-o",
            rest,
            "--keep-training",
            "--batch",
            "20",
            "--epochs",
            4,
            "--engine",
            "reference",
        ).code
        == 0
    )
    assert sabir.dumps(sabir.load(rest)) == sabir.dumps(sabir.load(whole))
    done = cli("train", half, "--data", data, "-o", rest, "--epochs", 2)
    assert (done.code, "nothing to train: the model has made 2 epochs" in done.out) == (0, True)


def test_the_log_has_a_row_of_each_epoch_that_ended(cli, fails, line, tmp_path, monkeypatch):
    model, data = line
    out, log, half = tmp_path / "out.onnx", tmp_path / "log.csv", tmp_path / "half.onnx"
    epoch = sabir.training._fitting._Run.epoch

    def interrupted(run):
        if run._session.position[0] == 2:
            assert [row[0] for row in rows()] == ["epoch", "1", "2"]
            raise KeyboardInterrupt
        return epoch(run)

    def rows():
        with log.open() as file:
            return list(csv.reader(file))

    train = ("--data", data, "-o", out, "--log", log)
    with monkeypatch.context() as patched:
        patched.setattr(sabir.training._fitting._Run, "epoch", interrupted)
        assert cli("train", model, *train, *WORDS, "--checkpoint", half, "--epochs", 5).code != 0
    before = rows()
    assert not out.exists()
    # the training goes on in the log too, and another one begins it anew
    assert cli("train", half, *train, "--epochs", 4).code == 0
    assert rows()[:3] == before
    assert [row[0] for row in rows()] == ["epoch", "1", "2", "3", "4"]
    message = fails("train", half, *train, "--epochs", 5, "--validate", data)
    assert "other columns" in message
    assert len(rows()) == 5
    log.write_bytes(b"\xff")
    assert "log.csv" in fails("train", half, *train, "--epochs", 5)
    assert cli("train", model, *train, *WORDS).code == 0
    assert [row[0] for row in rows()] == ["epoch", "1"]


def test_early_stopping_writes_the_best_epoch(cli, line, tmp_path):
    model, data = line
    x = np.load(data)["x"]
    np.savez(tmp_path / "held.npz", x=x, t=(x @ np.float32([[1], [0]])).astype(np.float32))
    best, other = tmp_path / "best.onnx", tmp_path / "other.onnx"
    words = ("train", model, "--data", data, *WORDS, "--rate", "0.02", "--batch", "96")
    found = cli(*words, "-o", best, "--epochs", 90, "--patience", 2, "--validate", tmp_path / "held.npz")
    assert found.code == 0, found.err
    number = int(found.out.split("kept the best epoch, ")[1].split()[0])
    assert f"epoch {number + 2}: " in found.out
    assert f"epoch {number + 3}: " not in found.out
    assert cli(*words, "-o", other, "--epochs", number).code == 0
    assert sabir.dumps(sabir.load(best)) == sabir.dumps(sabir.load(other))


def test_options_of_a_loss(cli, fails, write, tmp_path):
    """The words of a sentence are classes of axis 2, which sizes do not tell."""
    model = write(
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[2,3,3] x) => (float[2,3,3] y) <float[3] w = {0, 0, 0}> { y = Add (x, w) }"
    )
    data, out = tmp_path / "data.npz", tmp_path / "out.onnx"
    np.savez(data, x=np.zeros((2, 3, 3), np.float32), label=np.array([[0, 1, -100], [1, -100, 1]]))
    words = ("train", model, "--data", data, "-o", out, *WORDS[2:], "--loss", "cross_entropy")
    options = [f"--loss-option={pair}" for pair in ("axis=-1", "ignore_index=-100", "weights=2,0.5,1")]
    assert cli(*words, *options).code == 0
    # by hand: factors 2 and 3 * 0.5 of the labels, chances of a third
    gradient = 1 / 3 - np.array([2, 1.5, 0]) / 3.5
    np.testing.assert_allclose(sabir.load(out).graph.initializers["w"].array(), -0.1 * gradient, rtol=1e-5)
    assert "axis=" in fails(*words)
    assert "has 'axis'" in fails(*words, "--loss-option", "gama=2")
    assert "axis=NUMBER" in fails(*words, "--loss-option", "axis=last")
    assert "from 0 to 1" in fails(*words, "--loss-option", "axis=-1", "--loss-option", "label_smoothing=2")
    assert "has no options" in fails(*words, "--loss", "bce", "--loss-option", "axis=1")
    assert "'cost' is a value" in fails(*words, "--loss", "cost", "--loss-option", "axis=1")


def test_a_table_and_folders_of_pictures_are_data(cli, fails, line, write, tmp_path):
    model, data = line
    arrays = np.load(data)
    table, out = tmp_path / "points.csv", tmp_path / "out.onnx"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["width", "height", "cost"])
        writer.writerows([*x, t] for x, (t,) in zip(arrays["x"].tolist(), arrays["t"].tolist(), strict=True))
    words = ("train", model, *WORDS, "--batch", "48", "-o", out)
    assert cli(*words, "--data", table, "--target", "cost", "--validate", "0.25", "--drop-last").code == 0
    assert "validation loss" in cli(*words, "--data", table, "--target", "cost", "--validate", table).out
    assert "--target names the column that is the target" in fails(*words, "--data", table)
    for path, color in (("dark", 0), ("light", 255)):
        (tmp_path / "pictures" / path).mkdir(parents=True)
        for i in range(2):
            Image.new("L", (4, 4), color).save(tmp_path / "pictures" / path / f"{i}.png")
    image = write(
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[N,1,2,2] x) => (float[N,2] y) <float[4,2] w = {0, 0, 0, 0, 0, 0, 0, 0}, float[2] b = {0, 0}> { f = Flatten (x)  p = MatMul (f, w)  y = Add (p, b) }"
    )
    words = ("train", image, *WORDS[2:], "--metrics", "accuracy", "-o", out)
    options = ("--mean", "0.5", "--std", "0.5", "--flip", "--crop", "0.2", "--epochs", "3")
    found = cli(*words, "--data", tmp_path / "pictures", *options)
    assert found.code == 0, found.err
    assert "accuracy 1" in found.out
    w = sabir.load(out).graph.initializers["w"].array()
    assert (w[:, 0] < 0).all()
    assert (w[:, 1] > 0).all()
    assert "--image-size is for a folder of pictures" in fails(*words, "--data", table, "--image-size", 4)
    assert "above 0 and below 1" in fails(*words, "--data", tmp_path / "pictures", "--validate", "1.5")
    assert "numbers separated by commas" in fails(*words, "--data", tmp_path / "pictures", "--mean", "grey")


def test_options_about_stopping_gradients_and_averages(cli, fails, line, tmp_path):
    model, data = line
    out, log = tmp_path / "out.onnx", tmp_path / "log.csv"
    words = ("train", model, "--data", data, "-o", out, *WORDS, "--metrics", "mae", "--log", log)
    found = cli(
        *words, "--epochs", 40, "--patience", 2, "--monitor", "mae", "--min-delta", 0.5, "--batch", 96
    )
    assert found.code == 0, found.err
    with log.open() as file:
        errors = [float(row["mae"]) for row in csv.DictReader(file)]
    best = int(found.out.split("kept the best epoch, ")[1].split()[0])
    assert len(errors) == best + 2
    assert min(errors[best:]) > errors[best - 1] - 0.5
    # a rate that never rises is best in the first epoch
    assert cli(*words, "--epochs", 9, "--patience", 2, "--monitor", "rate", "--monitor-mode", "max").code == 0
    with log.open() as file:
        assert len(list(csv.DictReader(file))) == 3
    assert "--monitor is for --patience" in fails(*words, "--monitor", "mae")
    assert "--monitor-mode is for --patience" in fails(*words, "--monitor-mode", "max")
    assert "no result 'mea' to monitor; is it 'mae'" in fails(*words, "--patience", 2, "--monitor", "mea")
    # a plateau: with a rate of nearly nothing each loss is the same
    assert cli(*words, "--rate", "1e-12", "--epochs", 4, "--plateau", 1).code == 0
    with log.open() as file:
        assert [float(row["rate"]) for row in csv.DictReader(file)][-1] == pytest.approx(1e-13)
    # one step, in which no gradient is above 0.01, and half of which the average keeps
    one = ("--epochs", 2, "--batch", 96, "--clip-value", 0.01)
    assert cli(*words, *one).code == 0
    plain = sabir.load(out).graph.initializers["w"].array()
    np.testing.assert_allclose(np.abs(plain), 0.002, rtol=1e-5)
    assert cli(*words, *one, "--average", 0.5).code == 0
    np.testing.assert_allclose(sabir.load(out).graph.initializers["w"].array(), 0.75 * plain, rtol=1e-5)


def test_one_option_goes_on_where_a_training_stopped(cli, fails, line, tmp_path):
    model, data = line
    whole, out, run, log = (tmp_path / name for name in ("whole.onnx", "out.onnx", "run.onnx", "log.csv"))
    words = ("train", model, "--data", data, *WORDS)
    assert cli(*words, "-o", whole, "--epochs", 3).code == 0
    for epochs in (1, 3):
        assert cli(*words, "-o", out, "--epochs", epochs, "--resume", run, "--log", log).code == 0
    assert sabir.dumps(sabir.load(out)) == sabir.dumps(sabir.load(whole))
    with log.open() as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "3"]
    assert "leave --checkpoint out" in fails(*words, "-o", out, "--resume", run, "--checkpoint", run)


def test_adapters_are_trained_and_written_alone(cli, line, tmp_path):
    model, data = line
    out, changes = tmp_path / "out.onnx", tmp_path / "changes.npz"
    found = cli(
        "train", model, "--data", data, "-o", out, *WORDS, "--epochs", 20, "--lora", 1, "--adapters", changes
    )
    assert found.code == 0, found.err
    assert "training 3 numbers in 2 initializers" in found.out
    merged = sabir.training.merge_adapters(sabir.load(model), sabir.training.load_adapters(changes))
    feeds = {"x": np.load(data)["x"]}
    expected = sabir.evaluate(out, feeds)["y"]
    np.testing.assert_allclose(sabir.evaluate(merged, feeds)["y"], expected, rtol=1e-4, atol=1e-6)


def test_what_is_refused(fails, line, tmp_path, monkeypatch):
    model, data = line
    out = tmp_path / "out.onnx"
    cases = [
        ("--loss", "hinge"), ("--metrics", "accuracy", "--loss", "mse"), ("--frozen", "q*", "--loss", "mse"), ("--momentum", "0.9"),
        ("--warmup", "-1", "--loss", "mse"), ("--schedule", "one-cycle", "--warmup", "2", "--loss", "mse"), ("--clip", "-1", "--loss", "mse"), ("--checkpoint", "x.xyz"), ("--rate", "-1", "--loss", "mse"),
        ("--rate", "nan", "--loss", "mse"), ("--schedule", "cosine", "--warmup", "3", "--loss", "mse"), ("--frozen", "*", "--loss", "mse"),
    ]  # fmt: skip
    for words in cases:
        assert fails("train", model, "--data", data, "-o", out, *words)
    half = tmp_path / "half.onnx"
    sabir.save(sabir.training.prepare(sabir.load(model), "mse", target="t"), half)
    assert "--rate" in fails("train", half, "--data", data, "-o", out, "--rate", "0.1")
    np.savez(tmp_path / "many.npz", x=np.zeros((2, 2), np.float32), t=np.zeros(2), q=np.zeros(2))
    assert "target" in fails("train", model, "--data", tmp_path / "many.npz", "-o", out, "--loss", "mse")
    np.savez(tmp_path / "uneven.npz", x=np.zeros((2, 2), np.float32), t=np.zeros((3, 1), np.float32))
    assert "3" in fails("train", model, "--data", tmp_path / "uneven.npz", "-o", out, "--loss", "mse")
    np.savez(tmp_path / "scalar.npz", x=np.float32(1), t=np.float32(1))
    assert "sample" in fails("train", model, "--data", tmp_path / "scalar.npz", "-o", out, "--loss", "mse")
    (tmp_path / "no.npz").write_bytes(b"no archive")
    assert "no.npz" in fails("train", model, "--data", tmp_path / "no.npz", "-o", out)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'sabir[plot]'" in fails(
        "train", model, "--data", data, "-o", out, "--loss", "mse", "--plot", tmp_path / "p.png"
    )
    assert not out.exists()


ACME = """<ir_version: 10, opset_import: ["" : 21, "org.acme" : 1]>
    g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {0, 0}, float[1] b = {0}> {
        d = org.acme.Double (x)  p = MatMul (d, w)  y = Add (p, b) }"""
ROOM = """
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

T = Constraint("T", FLOATS)
double = Operator("Double", "org.acme", summary="Twice x.")
v1 = double.first(1, inputs=[Input("x", T)], outputs=[Output("y", T)])

@v1.infer
def infer(x, /):
    return x.with_known(None)

@v1.evaluate
def evaluate(x, /):
    return x + x
"""


def test_models_with_operators_of_a_module_and_of_a_document(cli, line, write, tmp_path, monkeypatch):
    (_, data), out, model = line, tmp_path / "trained.onnx", write(ACME, "acme.onnxtxt")
    words = ("train", model, "--data", data, "-o", out, *WORDS, "--epochs", 20)
    assert cli(*words).code != 0
    (tmp_path / "acme_training_room.py").write_text(ROOM)
    monkeypatch.chdir(tmp_path)
    twice = parse_function(
        '<domain: "org.acme", opset_import: ["" : 21]> Double (x) => (y) { y = Add (x, x) }'
    )
    document = sabir.OperatorSet("org.acme", 1, [OperatorEntry("Double", 1)], [twice], ir_version=10)
    document.save(tmp_path / "acme.textproto")
    for option in (
        ("--operators", "acme_training_room:double"),
        ("--opset-document", tmp_path / "acme.textproto"),
    ):
        found = cli(*words, *option)
        assert (found.code, found.err) == (0, "")
        weights = sabir.load(out).graph.initializers["w"].array()
        np.testing.assert_allclose(weights, [[1.5], [-0.5]], atol=1e-2)
    sys.modules.pop("acme_training_room", None)


def test_running_statistics_are_not_counted_as_trained(cli, line, write, tmp_path):
    text = LINE.replace(
        "float[1] b = {0}>", "float[1] b = {0}, float[1] s = {1}, float[1] m = {0}, float[1] v = {1}>"
    )
    text = text.replace("y = Add (p, b)", "y = BatchNormalization (p, s, b, m, v)")
    model, data = write(text, "normalized.onnxtxt"), line[1]
    for more in ((), ("--optimizer", "adamw")):
        found = cli("train", model, "--data", data, "-o", tmp_path / "t.onnx", "--loss", "mse", *more)
        assert (found.code, found.err) == (0, "")
        assert "training 4 numbers in 3 initializers" in found.out


def test_a_strict_training_stops_at_a_contradiction(cli, line, write, tmp_path):
    text = LINE.replace("float[1] b = {0}>", "float[1] b = {0}, float[1,1] p>")
    words = ("train", write(text, "wrong.onnxtxt"), "--data", line[1], "-o", tmp_path / "t.onnx", *WORDS)
    found = cli(*words, "--strict")
    assert found.code == 1
    assert "'p' is declared float[1,1]" in found.err
    assert "declared" not in cli(*words).err


def test_a_report_is_one_page_with_curves_epochs_and_settings(cli, line, tmp_path):
    model, data = line
    out, page = tmp_path / "trained.onnx", tmp_path / "course.html"
    words = ("--metrics", "mae", "--epochs", "3", "--validate", data, "--report", page)
    assert cli("train", model, "--data", data, "-o", out, *WORDS, *words).code == 0
    text = page.read_text(encoding="utf-8")
    shown = cells(text[text.index("<body") : text.index("</body>") + len("</body>")])
    assert shown[0] == ["epoch", "steps", "time", "loss", "mae", "rate", "validation loss", "validation mae"]
    assert [row[:2] for row in shown[1:4]] == [["1", "3"], ["2", "6"], ["3", "9"]]
    assert ["loss", "mse"] in shown
    assert ["rate", "0.1"] in shown
    assert ["epochs", "3"] in shown
    assert text.count("<svg") == 3
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_a_report_has_the_epochs_before_a_failure(cli, line, tmp_path):
    model, data = line
    page, words = (
        tmp_path / "course.html",
        ("train", model, "--data", data, "-o", tmp_path / "t.onnx", "--loss", "mse"),
    )
    options = ("--optimizer", "sgd", "--engine", "reference", "--epochs", "40", "--report", page)
    assert cli(*words, *options, "--rate", "1e30").code == 1
    assert not page.exists(), "there was no epoch"
    assert cli(*words, *options, "--rate", "3").code == 1
    text = page.read_text(encoding="utf-8")
    rows = cells(text[text.index("<body") : text.index("</body>") + len("</body>")])
    assert [row[0] for row in rows[1:4]] == ["1", "2", "3"]


def test_a_terminal_shows_the_curve_of_the_loss(cli, line, tmp_path, monkeypatch):
    model, data = line
    words = ("train", model, "--data", data, "-o", tmp_path / "t.onnx", *WORDS)
    assert "●" not in cli(*words, "--epochs", "3").out
    monkeypatch.setattr(Screen, "is_terminal", True)
    monkeypatch.setattr(Screen, "width", 40)
    shown = cli(*words, "--epochs", "3").out.splitlines()
    assert sum("●" in row for row in shown) >= 12
    assert any(row.endswith("● loss") for row in shown)
    assert "●" not in cli(*words).out, "one epoch is no curve"
    monkeypatch.setattr(Screen, "can_show", lambda *_: False)
    assert "●" not in cli(*words, "--epochs", "3").out
