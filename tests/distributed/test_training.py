"""Steps on several replicas equal those of one session; with Ray, where it is installed, also when a worker dies."""

import os
import signal

import numpy as np
import pytest

import sabir
from sabir import FeedError, UnsupportedError
from sabir.training import Adam, distribute, prepare

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1, 0, 2, 0, 1, 0, 1, 1, 0, 0, 2, 1}, float[3] b = {0, 0, 0}> { y = Gemm (x, w, b) }"
)
RNG = np.random.default_rng(5)
DATA = {"x": RNG.standard_normal((50, 4)).astype(np.float32), "label": RNG.integers(0, 3, 50)}


def session(**options):
    model = prepare(
        sabir.parse(TEXT),
        optimizer=Adam(0.05),
        metrics=["accuracy", "f1_macro"],
        **{"split": True, **options},
    )
    return sabir.TrainingSession(model, engine="reference")


class Replicas:
    """Sessions in this process."""

    def __init__(self, workers):
        self.workers, self.sessions, self.counts = workers, [session() for _ in range(workers)], []
        self.sent = set()

    def run(self, values, work):
        self.counts.append([len(w.feeds["x"]) for w in work])
        self.sent |= set(values)
        return [s.computed(w, values) for s, w in zip(self.sessions, work, strict=False)]


def assert_same_training(one, other, one_epochs, other_epochs):
    for a, b in zip(one_epochs, other_epochs, strict=True):
        np.testing.assert_allclose(list(a.results.values()), list(b.results.values()), rtol=1e-5)
    for name, value in one.state.items():
        np.testing.assert_allclose(other.state[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_parts_of_a_batch_are_as_good_as_the_batch():
    one, other, pool = session(), session(), Replicas(3)
    expected = one.fit(DATA, epochs=2, batch=16)
    with other.sharded(pool):
        found = other.fit(DATA, epochs=2, batch=16)
    assert pool.counts == ([[6, 5, 5]] * 3 + [[1, 1]]) * 2
    assert_same_training(one, other, expected, found)
    # replicas need no moments, which only the second algorithm reads
    assert pool.sent == {"w", "b", "grad_w", "grad_b", "grad_step", "grad_count", "training_step"}
    other.fit(DATA, epochs=3)
    assert len(pool.counts) == 8  # not asked any more


def test_what_is_refused():
    whole = session(split=False)
    with pytest.raises(UnsupportedError, match="split=True"), distribute(whole):
        pass
    with pytest.raises(UnsupportedError, match="1 worker or more"), distribute(session(), 0):
        pass
    trained = session()
    with trained.sharded(Replicas(2)), pytest.raises(FeedError, match="samples"):
        trained.step({"x": DATA["x"], "label": DATA["label"][:3]}, [0, 1], outputs="loss")
    assert trained.steps == 0


def test_workers_of_ray_and_one_that_is_killed(ray):
    one, other = session(), session()
    expected = one.fit(DATA, epochs=2, batch=16)
    killed = []

    def kill(at):
        if at.batch == 2 and not killed:
            replica = other._pool._replicas[0]
            killed.append(ray.get(replica.process.remote()))
            os.kill(killed[0], signal.SIGKILL)

    with distribute(other, workers=2):
        found = other.fit(DATA, epochs=2, batch=16, progress=kill)
    assert killed
    assert_same_training(one, other, expected, found)
