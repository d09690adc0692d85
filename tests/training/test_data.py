"""What `fit` takes for data: arrays, files, data sets, folders of pictures, iterables; batches of a fixed size."""

import csv
import sys
from itertools import starmap

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import feather, parquet

import sabir
from sabir import FeedError, FileError, SabirWarning, SchemaError, UnsupportedError
from sabir.training import IGNORED, SGD, CrossEntropy, Huber, ImageFolder, SmoothL1, prepare
from sabir.training._columns import columns_of
from sabir.training._data import Batches, Cutting
from sabir.training._sources import source_of
from sabir.training._step_inputs import StepInputs

LINEAR = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[{n},2] x) => (float[{n},3] y) <float[2,3] w = {{1, 0, 2, 0, 1, 0}}> {{ y = MatMul (x, w) }}"
)
IMAGES = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,3,4,4] x) => (float[N,2] y) <float[48,2] w> { f = Flatten (x)  y = MatMul (f, w) }"
)
RNG = np.random.default_rng(5)
X, LABELS = RNG.standard_normal((10, 2)).astype(np.float32), RNG.integers(0, 3, 10)
DATA = {"x": X, "label": LABELS}


def session(n="N", loss="cross_entropy", **options):
    options.setdefault("optimizer", SGD(0.5))
    return sabir.TrainingSession(
        prepare(sabir.parse(LINEAR.format(n=n)), loss, **options), engine="reference"
    )


def trained(data, *, n="N", **options):
    """The weights after two epochs in the order of the data."""
    one = session(n)
    one.fit(data, epochs=2, batch=None if n != "N" else 4, shuffle=False, **options)
    return one.state["w"]


class Loader:
    """Batches as a DataLoader of PyTorch yields them."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        return iter(self.batches)


class Tensor:
    """A tensor of another library."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def __array__(self, dtype=None, copy=None):  # ruff: ignore[bad-dunder-method-name]  numpy calls it
        return self.array


class Rows:
    """A data set as that of Hugging Face."""

    column_names = ("text", "label", "x")

    def with_format(self, _):
        return self

    def __len__(self):
        return 10

    def __getitem__(self, places):
        return {
            "text": ["a"] * len(places), "x": [X[i].tolist() for i in places], "label": [int(LABELS[i]) for i in places],
        }  # fmt: skip


class Misnamed(Rows):
    column_names = ("x", "lable")


class Frame:
    """A data frame as that of pandas."""

    iloc = None

    def __init__(self, columns):
        self.found, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return Column(self.found[name])


class Column(Tensor):
    def to_numpy(self):
        return self.array


class Streamed:
    """A streamed data set as that of Hugging Face."""

    def iter(self, batch_size):
        for i in range(0, 10, batch_size):
            part = slice(i, i + batch_size)
            yield {"x": X[part].tolist(), "label": LABELS[part].tolist(), "text": ["a"] * len(LABELS[part])}


def cut(size=4):
    return [(X[i : i + size], LABELS[i : i + size]) for i in range(0, 10, size)]


@pytest.mark.parametrize(
    "data",
    [
        (X, LABELS), {"x": X.tolist(), "label": LABELS.tolist()}, cut(), [list(pair) for pair in cut()],
        Loader([[Tensor(x), Tensor(y)] for x, y in cut()]), lambda: iter(cut()), Rows(), Streamed(),
        pa.table({"label": LABELS, "x": X.tolist(), "note": ["a"] * 10}),
        Frame({"x_1": X[:, 1], "x_0": X[:, 0], "label": LABELS}),
    ],
    ids=["tuple", "lists", "tuples", "list of lists", "loader", "function", "data set", "stream", "arrow", "pandas"],
)  # fmt: skip
def test_every_kind_of_data_trains_as_arrays_do(data):
    np.testing.assert_array_equal(trained(data), trained(DATA))


def test_files_train_as_arrays_do(tmp_path):
    table = pa.table({"x": X.tolist(), "label": LABELS})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.arrow")
    np.savez(tmp_path / "a.npz", **DATA)
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([
            ["width", "height", "label"],
            *([*x, y] for x, y in zip(X.tolist(), LABELS, strict=True)),
        ])
    for name in ("a.parquet", "a.arrow", "a.npz", "a.csv"):
        np.testing.assert_array_equal(trained(tmp_path / name), trained(DATA), err_msg=name)
    np.testing.assert_array_equal(trained(str(tmp_path / "a.npz")), trained(DATA))


def test_columns_of_nested_lists_have_the_shape_of_the_input():
    ports = [("x", ["N", 2, 3]), ("label", ["N"])]
    inputs = StepInputs([sabir.evaluation.ModelPort(n, sabir.ir.tensor_type("float", s)) for n, s in ports])
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    for rows in (x.tolist(), x.reshape(4, 6).tolist()):
        table = pa.table({"x": rows, "label": [1, 2, 3, 4]})
        found = source_of(table, inputs).take(np.array([3, 1]), None)
        np.testing.assert_array_equal(found["x"], x[[3, 1]])
        assert found["label"].dtype == np.float32
    with pytest.raises(
        FeedError, match=r"'x' has 5 numbers a row, which do not fit the input 'x', float\[N,2,3\]"
    ):
        columns_of({"x": np.zeros((2, 5)), "label": np.zeros(2)}, inputs, "a.csv")


def test_files_that_are_refused(tmp_path):
    def refused(name, text, error, message, **options):
        path = tmp_path / name
        if text is not None:
            path.write_bytes(text.encode())
        with pytest.raises(error, match=message):
            session().fit(path, **options)

    refused("a.wav", "", FeedError, r"training data are read from \.npz, \.csv")
    refused("none.npz", None, FileError, "none.npz: No such file")
    refused("junk.npz", "junk", FeedError, r"junk.npz: this is not a readable \.npz file")
    refused("junk.parquet", "junk", FeedError, r"junk.parquet: this is not a readable \.parquet file")
    refused("empty.csv", "x,label\n", FeedError, "the first row has the names of the columns")
    refused("short.csv", "x_0,x_1,label\n1,2\n", FeedError, "row 2 has 2 fields, and the first 3")
    refused("text.csv", "x_0,x_1,label\n1,2,1\n1,b,0\n", FeedError, "row 3 has 'b' in the column 'x_1'")
    refused("two.csv", "width,height\n1,2\n", FeedError, "two.csv has no column 'x'")
    refused(
        "half.csv",
        "x_0,x_1,label\n1,2,0.5\n",
        FeedError,
        r"'label' is float64, and the input 'label' is int64\[N\]",
    )
    parquet.write_table(pa.table({"x": [[1.0, 2.0], None], "label": [1, 2]}), tmp_path / "null.parquet")
    refused("null.parquet", None, FeedError, "1 rows have nothing in the column 'x'")
    parquet.write_table(pa.table({"x": [[1.0, 2.0], [1.0]], "label": [1, 2]}), tmp_path / "odd.parquet")
    refused("odd.parquet", None, FeedError, "the rows of the column 'x' have different numbers of values")
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    refused("one.npz", None, FeedError, "one array, not an archive")


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'sabir\[data\]'"):
        session().fit(tmp_path / "a.parquet")


def test_what_does_not_fit_is_found_before_the_first_step():
    cases = [
        ({**DATA, "x": X.astype(np.float64)}, r"float64\[10, 2\] for the input 'x', which is float\[N,2\]; convert it with \.astype\('float32'\)"),
        ({**DATA, "x": X[:, :1]}, r"axis 1 is 1, and must be 2"),
        ({**DATA, "x": X.ravel()[:10]}, r"must have 2 axes, the first one for the samples"),
        ({"x": X, "lable": LABELS}, "no input 'lable'; is it 'label'"),
        ({"x": X}, "the data has no array 'label', which the steps read; it has 'x'"),
        ([(X,)], "a tuple of 'x', 'label'; got tuple of 1"),
        ([{"x": X}], "the data has no array 'label'"),
        (["text"], "got str"),
        (7, "got int"),
        (Misnamed(), "no column 'label', which the steps read; is it 'lable'"),
    ]  # fmt: skip
    for data, message in cases:
        one = session()
        with pytest.raises(FeedError, match=message):
            one.fit(data)
        assert one.steps == 0


def test_a_fixed_batch_is_filled_with_ignored_labels():
    one = session(4)
    assert one.model.metadata == {"sabir.training.ignored.label": str(IGNORED)}
    (epoch,) = one.fit(DATA, shuffle=False, validate=DATA)
    assert one.steps == 3
    other = session(loss=CrossEntropy(ignore_index=IGNORED))
    (expected,) = other.fit(DATA, batch=4, shuffle=False, validate=DATA)
    np.testing.assert_allclose(one.state["w"], other.state["w"], rtol=1e-6)
    assert epoch.results == pytest.approx(expected.results)
    assert epoch.validation == pytest.approx(expected.validation)
    np.testing.assert_array_equal(trained(cut(), n=4), trained(DATA, n=4))
    assert one.export().metadata is None


NUMBERS = {"x": X, "label": np.random.default_rng(7).standard_normal((10, 3)).astype(np.float32)}


@pytest.mark.parametrize("loss", ["mse", "mae", "huber", "smooth_l1", SmoothL1(0)], ids=str)
def test_a_fixed_batch_of_numbers_is_filled_too(loss):
    metrics = ["mse", "mae", "r2"]
    one, other = (session(n, loss, optimizer=SGD(0.1), metrics=metrics) for n in (4, "N"))
    (epoch,) = one.fit(NUMBERS, batch=4, shuffle=False, validate=NUMBERS)
    (expected,) = other.fit(NUMBERS, batch=4, shuffle=False, validate=NUMBERS)
    assert one.steps == 3
    np.testing.assert_allclose(one.state["w"], other.state["w"], rtol=1e-5)
    assert epoch.results == pytest.approx(expected.results, rel=1e-5)
    assert epoch.validation == pytest.approx(expected.validation, rel=1e-5)


def test_missing_numbers_may_be_nan():
    target = NUMBERS["label"].copy()
    target[::2, 0] = np.nan
    one = session(loss=Huber(0.5, ignore_value=float("nan")))
    (epoch,) = one.fit({"x": X, "label": target}, batch=10, shuffle=False)
    distance = np.abs(X @ np.float32([[1, 0, 2], [0, 1, 0]]) - target)
    near = np.minimum(distance, 0.5)
    assert epoch.results["loss"] == pytest.approx(np.nanmean(near * (distance - near / 2)), rel=1e-5)
    assert np.isfinite(one.state["w"]).all()
    # the number of a filling is one of the type that is fed
    half = prepare(sabir.parse(LINEAR.format(n=4).replace("float[", "float16[")), "mse")
    assert half.metadata == {"sabir.training.ignored.label": "-65504.0"}
    (epoch,) = sabir.TrainingSession(half, engine="reference").fit({
        name: array.astype(np.float16) for name, array in NUMBERS.items()
    })
    assert 0 < epoch.results["loss"] < 10


def test_a_fixed_batch_that_cannot_be_filled_is_left_out_with_a_warning():
    target = {"x": X, "label": np.zeros((10, 3), np.float32)}
    one = session(4, "bce_logits")
    message = "fix the batch at 4 samples, so 2 of 10 samples are left out of each epoch: the loss ignores"
    with pytest.warns(SabirWarning, match=message) as found:
        one.fit(target)
    assert one.steps == 2
    assert found[0].filename == __file__
    one.fit(target, epochs=2, drop_last=True)
    one.fit({name: array[:8] for name, array in target.items()}, epochs=3)
    assert one.steps == 6
    with pytest.raises(UnsupportedError, match="cannot be filled: the loss ignores no target"):
        one.fit(target, drop_last=False)
    with pytest.raises(FeedError, match="has 3 samples, fewer than a batch, which has 4"):
        one.fit({name: array[:3] for name, array in target.items()}, drop_last=True)
    with pytest.raises(UnsupportedError, match="fix the batch at 4 samples, and batch is 8"):
        one.fit(target, batch=8)
    with pytest.warns(SabirWarning, match="so batches with fewer are left out: the loss ignores no target"):
        one.fit([{name: array[i : i + 4] for name, array in target.items()} for i in (0, 7)], epochs=4)
    assert one.steps == 7
    with pytest.raises(FeedError, match="a batch has 5 samples, and the inputs of the model have 4"):
        one.fit([{name: array[:5] for name, array in target.items()}], epochs=5)
    assert one.steps == 7


def test_batch_normalization_does_not_see_a_filling():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[4,2] x) => (float[4,2] y) <float[2] s = {1, 1}, float[2] c = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}>"
        " { y = BatchNormalization (x, s, c, m, v) }"
    )
    one = sabir.TrainingSession(prepare(sabir.parse(text)), engine="reference")
    data = {"x": X, "label": LABELS % 2}
    with pytest.warns(SabirWarning, match="BatchNormalization would see the filling"):
        (epoch,) = one.fit(data, validate=data)
    assert one.steps == 2
    assert epoch.validation["loss"] > 0


def test_drop_last_and_a_note_that_is_no_label():
    one = session()
    one.fit(DATA, batch=4, drop_last=True)
    assert one.steps == 2
    one.fit(cut(3), epochs=2, drop_last=True)  # these are the batches of the caller
    assert one.steps == 6
    one.model.metadata = {"sabir.training.ignored.label": "x"}
    with pytest.raises(SchemaError, match="'x', which is no label"):
        one.fit(DATA, epochs=3)


def test_a_stream_is_shuffled_in_a_window():
    inputs = StepInputs([sabir.evaluation.ModelPort("x", sabir.ir.tensor_type("float", ["N"]))])
    batches = [{"x": np.arange(i, i + 10, dtype=np.float32)} for i in range(0, 100, 10)]

    def order(epoch, first=0, window=20):
        cutting = Cutting(8, shuffle=window)
        found = Batches(source_of(batches, inputs), inputs, cutting, seed=3).epoch(epoch, first)
        return [batch.feeds["x"].tolist() for batch in found]

    found = order(0)
    assert [len(batch) for batch in found] == [8] * 12 + [4]
    flat = np.concatenate(found)
    assert sorted(flat) == list(range(100))
    assert flat.tolist() != list(range(100))
    assert all(value <= place + 20 for place, value in enumerate(flat))
    assert order(0) == found != order(1)
    assert order(0, first=5) == found[5:]
    assert order(0, window=True)[0] == list(range(10))
    batches = [{"x": np.float32(1)}]
    with pytest.raises(FeedError, match="one number has no samples to shuffle"):
        order(0)


def test_a_share_is_set_apart_for_validation():
    found = []
    for _ in range(2):
        one = session(optimizer=SGD(0.0), metrics=["accuracy"])
        found.append(one.fit(DATA, validate=0.3)[0])
    assert found[0].validation == found[1].validation
    assert {*found[0].validation} == {"loss", "accuracy"}
    shares = [round(found[0].results["accuracy"] * 7), round(found[0].validation["accuracy"] * 3)]
    logits = X @ one.state["w"]
    assert sum(shares) == (logits.argmax(1) == LABELS).sum()
    for data, share, message in ((cut(), 0.3, "a share of an iterable"), (DATA, 0.01, "0 of 10 samples")):
        with pytest.raises(UnsupportedError, match=message):
            session().fit(data, validate=share)
    with pytest.raises(FeedError, match="the data for validation has no array 'label'"):
        session().fit(DATA, validate={"x": X})


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Folders of a red and a blue class, 3 pictures each, whose left half is dark."""
    root = tmp_path_factory.mktemp("pictures")
    for name, channel in (("blue", 2), ("red", 0)):
        (root / name).mkdir()
        for i in range(3):
            pixels = np.zeros((8, 8, 3), np.uint8)
            pixels[:, 4:, channel] = 250 - i
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    (root / "readme.txt").write_text("no picture")
    return root


def image_inputs(shape=("N", 3, 4, 4), element="float"):
    kinds = {"x": sabir.ir.tensor_type(element, list(shape)), "label": sabir.ir.tensor_type("int64", ["N"])}
    return StepInputs(list(starmap(sabir.evaluation.ModelPort, kinds.items())))


def test_pictures_in_folders_are_samples(pictures):
    everything = np.arange(6)
    for shape, channel in ((("N", 3, 4, 4), 1), (("N", 4, 4, 3), 3)):
        found = source_of(pictures, image_inputs(shape)).take(everything, None)
        assert found["label"].tolist() == [0, 0, 0, 1, 1, 1]
        assert found["x"].dtype == np.float32
        assert found["x"].shape == (6, *shape[1:])
        colors = np.moveaxis(found["x"], channel, 1).max(axis=(2, 3))
        expected = [[0, 0, 250 / 255], [248 / 255, 0, 0]]
        np.testing.assert_allclose(colors[[0, 5]], expected, atol=1e-6)
    folder = ImageFolder(pictures, mean=(0.5,), std=(0.5,))
    assert folder.classes == ("blue", "red")
    found = folder.source(image_inputs()).take(np.array([4]), None)["x"][0]
    np.testing.assert_allclose(found[:, 0, 3], [249 / 255 * 2 - 1, -1, -1], atol=1e-6)
    whole = (
        ImageFolder(pictures, size=8)
        .source(image_inputs(("N", 3, None, None), "uint8"))
        .take(everything, None)
    )
    assert whole["x"].shape == (6, 3, 8, 8)
    assert whole["x"][0, 2, 0].tolist() == [0] * 4 + [250] * 4


def test_pictures_change_at_random_by_seed_epoch_and_place(pictures):
    source = ImageFolder(pictures, flip=True, crop=0.5).source(image_inputs())
    places = np.arange(6)
    plain, one, again, other = (
        source.take(places, key)["x"] for key in (None, (0, 2, 0), (0, 2, 0), (0, 2, 1))
    )
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(source.take(places[::-1], (0, 2, 0))["x"], one[::-1])
    # 8 pixels wide, of which a validation takes the middle ones
    np.testing.assert_array_equal(plain[0, 2, 0] > 0, [False, False, True, True])
    assert len({tuple(picture.max(axis=(0, 1)) > 0) for picture in one}) > 1


def test_pictures_change_in_a_training_whether_its_order_is_random_or_not(pictures):
    source, inputs = ImageFolder(pictures, flip=True).source(image_inputs()), image_inputs()
    plain = source.take(np.arange(6), None)["x"]
    for training in (True, False):
        batches = Batches(source, inputs, Cutting(6, training=training), seed=1)
        found = [next(batches.epoch(number)).feeds["x"] for number in range(3)]
        assert all(np.array_equal(x, plain) for x in found) != training


def test_pictures_train_a_network_that_resumes(pictures, tmp_path):
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 3, 4, 4])
    b.output(b.MatMul(b.Flatten(x), b.initializer("w", np.zeros((48, 2), np.float32))), "y")
    model, data = (
        prepare(b.model(), optimizer=SGD(0.5), metrics=["accuracy"]),
        ImageFolder(pictures, flip=True, crop=0.2),
    )
    whole, part = (sabir.TrainingSession(model, engine="reference") for _ in range(2))
    epochs = whole.fit(data, epochs=4, batch=2, validate=pictures)
    assert epochs[-1].validation["accuracy"] == 1
    part.fit(data, epochs=2, batch=2)
    part.save(tmp_path / "half.onnx")
    rest = sabir.TrainingSession(tmp_path / "half.onnx", engine="reference")
    rest.fit(data, epochs=4, batch=2)
    np.testing.assert_array_equal(rest.state["w"], whole.state["w"])


def test_folders_of_pictures_that_are_refused(pictures, tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "empty" / "red").mkdir(parents=True)
    cases = [
        (lambda: ImageFolder(tmp_path / "none").classes, FileError, "No such file"),
        (lambda: ImageFolder(tmp_path / "bare").classes, FeedError, "it has no folders"),
        (lambda: ImageFolder(tmp_path / "empty").source(image_inputs()), FeedError, "red: it has no pictures"),
        (lambda: ImageFolder(pictures, crop=1.0), UnsupportedError, "crop is a share"),
        (lambda: ImageFolder(pictures).source(image_inputs(("N", 3, None, None))), FeedError, "leaves the size of pictures open"),
        (lambda: ImageFolder(pictures, size=5).source(image_inputs()), FeedError, "size=5 does not fit"),
        (lambda: session().fit(pictures), FeedError, r"pictures by class are for an input .* the inputs are x float\[N,2\]"),
    ]  # fmt: skip
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
