"""The log of a training: a row of each epoch in both formats, also of one that goes on."""

import csv
import json

import numpy as np
import pytest

import sabir
from sabir import FeedError, FileError
from sabir.training import SGD, Epoch, TrainingLog, prepare

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (double[N,2] x) => (double[N,1] y) <double[2,1] w = {1, -1}> { y = MatMul (x, w) }"
)
RNG = np.random.default_rng(2)
DATA = {"x": RNG.standard_normal((20, 2)), "label": RNG.standard_normal((20, 1))}
COLUMNS = ["epoch", "steps", "seconds", "loss", "mae", "rate", "validation_loss", "validation_mae"]


def session(source=None):
    model = prepare(sabir.parse(TEXT), "mse", optimizer=SGD(0.1), metrics="mae") if source is None else source
    return sabir.TrainingSession(model, engine="reference")


def rows(path):
    text = path.read_text()
    if path.suffix == ".csv":
        return [{n: float(v) for n, v in row.items()} for row in csv.DictReader(text.splitlines())]
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["course.csv", "course.jsonl"])
def test_a_log_has_the_numbers_of_each_epoch(name, tmp_path):
    trained, path = session(), tmp_path / name
    log = TrainingLog(path, trained, validates=True)
    assert rows(path) == []
    found = trained.fit(DATA, epochs=3, batch=5, validate=DATA, callbacks=[log])
    for row, epoch in zip(rows(path), found, strict=True):
        assert list(row) == COLUMNS
        assert (row["epoch"], row["steps"]) == (epoch.number, epoch.steps)
        assert row["seconds"] == pytest.approx(epoch.seconds, abs=1e-3)
        assert {n: row[n] for n in ("loss", "mae", "rate")} == epoch.results
        assert [row["validation_loss"], row["validation_mae"]] == [*epoch.validation.values()]


@pytest.mark.parametrize("name", ["course.csv", "course.jsonl"])
def test_a_training_that_goes_on_goes_on_in_its_log(name, tmp_path):
    whole, path, half = session(), tmp_path / name, tmp_path / "half.onnx"
    whole.fit(DATA, epochs=2, callbacks=[TrainingLog(path, whole)], checkpoint=half)
    whole.fit(DATA, epochs=3, callbacks=[TrainingLog(path, whole)])
    before = path.read_text()
    assert [row["epoch"] for row in rows(path)] == [1, 2, 3]
    # from the checkpoint the third epoch is made again
    resumed = session(half)
    log = TrainingLog(path, resumed)
    assert before.startswith(path.read_text())
    assert [row["epoch"] for row in rows(path)] == [1, 2]
    resumed.fit(DATA, epochs=4, callbacks=[log])
    assert [row["epoch"] for row in rows(path)] == [1, 2, 3, 4]
    with pytest.raises(FeedError, match="other columns"):
        TrainingLog(path, resumed, validates=True)
    # another training begins the file anew
    TrainingLog(path, session())
    assert rows(path) == []


def test_numbers_that_are_not_finite_are_null_in_json(tmp_path):
    trained, path = session(), tmp_path / "course.jsonl"
    log = TrainingLog(path, trained)
    log(Epoch(1, 4, 0.5, {"loss": float("inf"), "mae": float("nan"), "rate": 0.1}, {}))
    (row,) = rows(path)
    assert row == {"epoch": 1, "steps": 4, "seconds": 0.5, "loss": None, "mae": None, "rate": 0.1}
    trained.fit(DATA, epochs=1)
    TrainingLog(path, trained)
    assert rows(path) == [row]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("course.jsonl", "{"), ("course.jsonl", "[1]\n"), ("course.jsonl", '{"epoch": true}'), ("course.jsonl", '{"epoch": [1]}'),
        ("course.jsonl", "[" * 100000), ("course.csv", b"\xff\xfe"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_log_is_refused_and_kept(name, text, tmp_path):
    trained, path = session(), tmp_path / name
    trained.fit(DATA)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match="cannot be read as a log"):
        TrainingLog(path, trained)
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())
