"""Inference over a data set of Ray Data; what a worker does is tested without Ray."""

import sys

import numpy as np
import pytest

import sabir
from sabir import FeedError, UnsupportedError
from sabir.distributed import map_batches
from sabir.distributed._mapping import _Mapped

MODEL = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x) => (float[N,1] y, float s) <float[2,1] w = {3, -1}> { y = MatMul (x, w)  s = ReduceSum <keepdims = 0> (y) }""")
X = np.random.default_rng(3).standard_normal((50, 2)).astype(np.float32)


def test_a_worker_feeds_inputs_and_keeps_other_columns():
    worker = _Mapped(sabir.dumps(MODEL), "y", "reference", 1)
    found = worker({"x": X[:7], "label": np.arange(7)})
    assert list(found) == ["label", "y"]
    np.testing.assert_allclose(found["y"], X[:7] @ np.float32([[3], [-1]]), rtol=1e-5)
    assert found["label"].tolist() == list(range(7))
    with pytest.raises(FeedError, match="'x'"):
        worker({"z": X})
    with pytest.raises(FeedError, match="a column 'y' already"):
        worker({"x": X, "y": X})
    with pytest.raises(FeedError, match="'s' has no row for each of the 50 rows"):
        _Mapped(sabir.dumps(MODEL), None, "reference", 1)({"x": X})


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'sabir\[ray\]'"):
        map_batches(MODEL, None)
    with pytest.raises(UnsupportedError, match="1 or more"):
        map_batches(MODEL, None, batch=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.usefixtures("ray")
def test_every_row_is_computed_by_workers_of_ray():
    data = pytest.importorskip(
        "ray.data", reason="Ray Data is not installed; `make distributed` tests with it"
    )
    data.DataContext.get_current().enable_progress_bars = False
    rows = data.from_items([{"x": x, "number": i} for i, x in enumerate(X)], override_num_blocks=3)
    found = map_batches(MODEL, rows, batch=16, workers=2, outputs="y", engine="reference").take_all()
    assert sorted(row["number"] for row in found) == list(range(50))
    for row in found:
        np.testing.assert_allclose(row["y"], X[row["number"]] @ np.float32([[3], [-1]]), rtol=1e-5)
        assert set(row) == {"number", "y"}
