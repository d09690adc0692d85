"""Tensors of other libraries as feeds and buffers, runs that are awaited, memory that is given back."""

import asyncio
import threading

import numpy as np
import pytest

import sabir
from sabir.base import CancelledError, FeedError
from sabir.compilation import Compiled

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) { y = Neg (x) }"""
ENDLESS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x, int64 n) => (float[N] y) {
    true = Constant <value = bool {1}> ()
    y = Loop (n, true, x) <body = b (int64 i, bool go, float[N] s) => (bool on, float[N] t) {
        on = Identity (go)
        t = Neg (s)
    }>
}"""
X = np.linspace(-2, 2, 50, dtype=np.float32)


class Foreign:
    """A tensor of another library that shares its memory by DLPack, and is no array otherwise."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):  # ruff: ignore[bad-dunder-method-name]  the array API's
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):  # ruff: ignore[bad-dunder-method-name]  the array API's
        return self._array.__dlpack_device__()


class Elsewhere(Foreign):
    """A tensor on a GPU."""

    def __dlpack_device__(self):  # ruff: ignore[bad-dunder-method-name]  the array API's
        return (2, 0)

    def __dlpack__(self, **options):  # ruff: ignore[bad-dunder-method-name]  the array API's
        raise BufferError("it is on device 2")


@pytest.fixture(params=["compiled", "reference"])
def session(request):
    return sabir.Session(sabir.parse(MODEL), engine=request.param)


def test_feeds_and_buffers_share_memory_by_dlpack(session):
    y = np.empty(50, np.float32)
    buffer = Foreign(y)
    for _ in range(3):
        y[:] = np.nan
        assert session.run({"x": Foreign(X)}, out={"y": buffer})["y"] is buffer
        np.testing.assert_array_equal(y, -X)


def test_results_are_given_by_dlpack(session):
    found = session.run({"x": X})["y"]
    shared = np.from_dlpack(Foreign(found))
    assert np.shares_memory(shared, found)


def test_memory_on_another_device_is_refused(session):
    with pytest.raises(
        FeedError, match="whose memory numpy cannot share: it is on device 2; copy it to the CPU"
    ):
        session.run({"x": Elsewhere(X)})


def test_awaited_runs_go_on_beside_each_other(session):
    async def both():
        return await asyncio.gather(session.run_async({"x": X}), session.run_async({"x": 2 * X}, ["y"]))

    one, other = asyncio.run(both())
    np.testing.assert_array_equal(one["y"], -X)
    np.testing.assert_array_equal(other["y"], -2 * X)


def test_an_awaited_run_is_cancelled_by_the_session():
    session = sabir.Session(
        sabir.parse(ENDLESS), engine="compiled", limits=sabir.Limits(iterations=None, work=None)
    )

    async def cancelled():
        run = asyncio.ensure_future(session.run_async({"x": X, "n": np.int64(2**60)}))
        threading.Timer(0.3, session.cancel).start()
        await run

    with pytest.raises(CancelledError):
        asyncio.run(cancelled())


def test_a_session_that_keeps_no_memory():
    session = sabir.Session(sabir.parse(MODEL), engine="compiled", keep_memory=False)
    for _ in range(3):
        np.testing.assert_array_equal(session.run({"x": X})["y"], -X)
        assert isinstance(session._engine, Compiled)
        assert not any(plan.arenas._free for plan in session._engine._plans)
        assert not session._engine._fast_runs
