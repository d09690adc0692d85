"""Outputs that a run writes into arrays of the caller's."""

import numpy as np
import pytest

import sabir
from sabir.base import FeedError

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y, float[N] z) { y = Neg (x)  z = Exp (x) }"""
X = np.linspace(-2, 2, 50, dtype=np.float32)


@pytest.fixture(params=["compiled", "reference"])
def session(request):
    return sabir.Session(sabir.parse(MODEL), engine=request.param)


def test_each_run_writes_into_them(session):
    y = np.full(50, np.nan, np.float32)
    for scale in (1, 2, 3):  # the first run is another way than the later ones
        found = session.run({"x": X * np.float32(scale)}, out={"y": y})
        assert found["y"] is y
        assert list(found) == ["y", "z"]
        np.testing.assert_array_equal(y, -X * np.float32(scale))
        np.testing.assert_allclose(found["z"], np.exp(X * np.float32(scale)), rtol=1e-5)


def test_the_order_of_onnxruntime(session):
    z = np.empty(50, np.float32)
    (found,) = session.run(["z"], {"x": X}, out={"z": z})
    assert found is z
    np.testing.assert_allclose(z, np.exp(X), rtol=1e-6)


def test_a_buffer_may_be_a_feed(session):
    for _ in range(3):
        x = X.copy()
        found = session.run({"x": x}, out={"y": x})
        assert found["y"] is x
        np.testing.assert_array_equal(x, -X)
        np.testing.assert_allclose(found["z"], np.exp(X), rtol=1e-6)


def test_a_buffer_may_overlap_a_feed(session):
    for _ in range(3):
        memory = np.concatenate([X, X])
        found = session.run({"x": memory[:50]}, out={"z": memory[25:75]})
        np.testing.assert_allclose(memory[25:75], np.exp(X), rtol=1e-6)
        np.testing.assert_array_equal(found["y"], -X)


READ_ONLY = np.empty(50, np.float32)
READ_ONLY.flags.writeable = False
BOTH = np.empty(50, np.float32)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ({"w": np.empty(50, np.float32)}, "'w', which is no output of this run; it has 'y', 'z'"),
        ({"y": [0.0] * 50}, "must be a numpy array, or have `__dlpack__`; got list"),
        ({"y": np.empty(100, np.float32)[::2]}, "must be C-contiguous"),
        ({"y": READ_ONLY}, "must be writeable"),
        ({"y": np.empty(49, np.float32)}, "is float32[49], and the output is float32[50]"),
        ({"y": np.empty(50)}, "is float64[50], and the output is float32[50]"),
        ({"y": BOTH, "z": BOTH[::1]}, "`out['y']` and `out['z']` share memory"),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(session, out, message):
    for _ in range(2):
        with pytest.raises(FeedError) as error:
            session.run({"x": X}, out=out)
        assert message in str(error.value)


def test_an_output_that_is_no_tensor_has_no_buffer():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (seq(float[N]) s) { s = SequenceConstruct (x) }'
    )
    with pytest.raises(FeedError, match="'s' is no tensor"):
        sabir.Session(model).run({"x": X}, out={"s": np.empty(50, np.float32)})
