"""What calibration observes, and where it finds its data."""

import numpy as np
import pytest

import sabir
from sabir.quantization._ranges import Observed, RangeChoice

RNG = np.random.default_rng(0)


def observed(*arrays):
    found = Observed(with_counts=True)
    for array in arrays:
        found.add(np.asarray(array, np.float32))
    return found


def range_of(method, found, percentile=99.0, *, is_symmetric=False):
    return RangeChoice(method, percentile, is_symmetric).range(found)


def test_a_histogram_grows_without_the_old_elements():
    data = [RNG.standard_normal(1000) * scale for scale in (0.01, 1, 50)]
    grown = observed(*data)
    once = observed(np.concatenate(data[::-1]))
    assert grown.counts.sum() == once.counts.sum() == 3000
    assert (grown.low, grown.high) == (once.low, once.high)
    assert len(grown.counts) == len(once.counts)
    inside = np.abs(grown.centres) < 0.2
    assert abs(grown.counts[inside].sum() - np.sum(np.abs(np.concatenate(data)) < 0.2)) < 100


def test_outliers_shrink_every_range_but_that_of_all():
    found = observed(RNG.standard_normal(100_000), [1000.0])
    assert range_of("minmax", found)[1] == 1000
    assert 2 < range_of("percentile", found)[1] < 4
    plain = observed(RNG.standard_normal(100_000))
    for method in ("mse", "entropy"):
        low, high = range_of(method, plain)
        assert plain.low <= low < -2
        assert 2 < high <= plain.high


def test_the_range_of_least_squared_error_is_the_best_one():
    data = RNG.laplace(size=50_000).astype(np.float32)
    found = observed(data)

    def loss(low, high):
        step = (high - low) / 255
        return np.square(np.clip(np.rint((data - low) / step), 0, 255) * step + low - data).mean()

    assert loss(*range_of("mse", found)) < loss(found.low, found.high)


def test_zero_is_always_represented():
    for method in ("minmax", "percentile", "mse", "entropy"):
        for data in (np.linspace(3, 5, 1000), -np.linspace(3, 5, 1000), np.zeros(10)):
            parameters = RangeChoice(method, 99.0, is_symmetric=False).parameters(observed(data))
            assert parameters.scale > 0
            assert 0 <= parameters.zero <= 255
            symmetric = RangeChoice(method, 99.0, is_symmetric=True).parameters(observed(data))
            assert symmetric.zero == 0


def test_data_comes_from_files_and_folders(tmp_path):
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 16])
    b.output(b.MatMul(x, b.initializer("w", RNG.standard_normal((16, 4)).astype(np.float32))), "y")
    model = b.model()
    feeds = [{"x": RNG.standard_normal((3, 16)).astype(np.float32)} for _ in range(3)]
    for number, feed in enumerate(feeds):
        np.savez(tmp_path / f"{number}.npz", **feed)
    done = []

    wanted = sabir.dumps(sabir.quantize(model, calibration=iter(feeds), correct_bias=False))
    found = sabir.quantize(
        model, calibration=tmp_path, correct_bias=False, progress=lambda *at: done.append(at)
    )

    assert sabir.dumps(found) == wanted
    assert done == [(1, 3), (2, 3), (3, 3)]
    one = sabir.dumps(sabir.quantize(model, calibration=str(tmp_path / "0.npz")))
    assert one == sabir.dumps(sabir.quantize(model, calibration=feeds[:1]))

    (tmp_path / "empty").mkdir()
    with pytest.raises(sabir.FileError, match=r"there is no \.npz file"):
        sabir.quantize(model, calibration=tmp_path / "empty")
    with pytest.raises(sabir.FileError, match="there is no such file"):
        sabir.quantize(model, calibration=tmp_path / "missing.npz")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    with pytest.raises(sabir.FeedError, match="no archive of arrays"):
        sabir.quantize(model, calibration=tmp_path / "broken.npz")
    with pytest.raises(sabir.FeedError, match="has no feeds"):
        sabir.quantize(model, calibration=[])
    with pytest.raises(sabir.EvaluationError, match="the value 'x' of run 1: .* infinite"):
        sabir.quantize(model, calibration=[{"x": np.full((1, 16), np.inf, np.float32)}])
