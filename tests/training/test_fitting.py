"""`fit`: order of the data, resumption at any step, early stopping, validation, and what is refused."""

import numpy as np
import pytest

import sabir
from sabir import FeedError, SabirError, UnsupportedError
from sabir.training import SGD, Adam, prepare

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1, 0, 2, 0, 1, 0, 1, 1, 0, 0, 2, 1}, float[3] b = {0, 0, 0}, float r = {0.25}> {"
    " d = Dropout (x, r)  y = Gemm (d, w, b) }"
)
RNG = np.random.default_rng(5)
DATA = {"x": RNG.standard_normal((50, 4)).astype(np.float32), "label": RNG.integers(0, 3, 50)}


def session(source=None, **options):
    options.setdefault("optimizer", Adam(0.05))
    model = prepare(sabir.parse(TEXT), metrics=["accuracy"], **options) if source is None else source
    return sabir.TrainingSession(model, engine="reference")


def bits(trained):
    return {name: value.tobytes() for name, value in trained.state.items()}


def test_a_training_that_stops_at_any_step_goes_on_with_the_same_bits(tmp_path):
    whole = session()
    whole.fit(DATA, epochs=3, batch=8)
    assert (whole.position, whole.steps) == ((3, 0), 21)
    path = tmp_path / "half.onnx"
    for stop in (1, 6, 7, 8, 20):
        part = session()

        def interrupt(_, part=part, stop=stop):
            if part.steps == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            part.fit(DATA, epochs=3, batch=8, progress=interrupt, checkpoint=path)
        resumed = session(path)
        assert resumed.steps == stop
        resumed.fit(DATA, epochs=3, batch=8)
        assert bits(resumed) == bits(whole)
        assert resumed.position == (3, 0)
    # a checkpoint within an epoch, with no interrupt at all
    part = session()
    part.fit(DATA, epochs=1, batch=8, checkpoint=path, checkpoint_steps=5)
    resumed = session(path)
    assert resumed.position == (1, 0)
    resumed.fit(DATA, epochs=3, batch=8)
    assert bits(resumed) == bits(whole)
    assert resumed.fit(DATA, epochs=3, batch=8) == []
    resumed.initialize()
    assert resumed.position == (0, 0)


def test_every_sample_is_used_once_in_an_order_of_the_seed_and_the_epoch():
    trained, orders = session(), []
    step = trained.step_in_epoch
    trained.step_in_epoch = lambda feeds, *rest: (orders.append(feeds["x"][:, 0]), step(feeds, *rest))[1]
    numbers = {"x": np.arange(200, dtype=np.float32).reshape(50, 4), "label": np.arange(50) % 3}
    trained.fit(numbers, epochs=2, batch=16)
    epochs = [np.concatenate(orders[:4]), np.concatenate(orders[4:])]
    assert [len(o) for o in orders] == [16, 16, 16, 2] * 2
    for epoch in epochs:
        assert sorted(epoch) == list(range(0, 200, 4))
    assert not np.array_equal(*epochs)
    orders.clear()
    trained.fit(numbers, epochs=3, batch=50, shuffle=False)
    assert orders[0].tolist() == list(range(0, 200, 4))


def test_steps_beside_fit_are_no_batches_of_an_epoch():
    trained = session()
    for _ in range(3):
        trained.step(DATA, 0)
    assert (trained.steps, trained.position) == (3, (0, 0))
    trained.fit(DATA, batch=25)
    assert (trained.steps, trained.position) == (5, (1, 0))


def test_batches_from_an_iterable():
    trained, other = session(), session()
    batches = [{name: array[i : i + 10] for name, array in DATA.items()} for i in range(0, 50, 10)]
    trained.fit(batches, epochs=2)
    other.fit(DATA, epochs=2, batch=10, shuffle=False)
    assert bits(trained) == bits(other)
    other = session()
    other.fit(iter(batches), epochs=1)
    assert other.steps == 5


def test_results_are_means_and_the_validation_is_that_of_inference():
    trained = session(optimizer=SGD(0.0))
    (epoch,) = trained.fit(DATA, batch=16, validate=DATA)
    logits = trained.run({"x": DATA["x"]})["y"].astype(np.float64)
    chosen = logits[np.arange(50), DATA["label"]]
    expected = np.mean(np.log(np.exp(logits).sum(1)) - chosen)
    np.testing.assert_allclose(epoch.validation["loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(
        epoch.validation["accuracy"], (logits.argmax(1) == DATA["label"]).mean(), rtol=1e-6
    )
    assert set(epoch.results) == {"loss", "accuracy", "rate"}
    assert (epoch.number, epoch.steps, epoch.monitored) == (1, 4, epoch.validation["loss"])


def test_training_stops_early():
    trained = session(optimizer=SGD(0.0))
    assert len(trained.fit(DATA, epochs=50, patience=2, validate=DATA)) == 3
    seen = []
    trained = session()
    trained.fit(DATA, epochs=50, callbacks=[seen.append, lambda epoch: epoch.number == 4])
    assert [epoch.number for epoch in seen] == [1, 2, 3, 4]


def test_early_stopping_ends_with_the_best_epoch(tmp_path):
    labels = np.random.default_rng(6).integers(0, 3, 50)
    held, path = {"x": DATA["x"], "label": labels}, tmp_path / "best.onnx"
    for epochs, options in ((40, {"patience": 3}), (12, {"patience": 30})):
        trained = session(optimizer=Adam(0.3))
        found = trained.fit(DATA, epochs=epochs, validate=held, checkpoint=path, **options)
        losses = [epoch.validation["loss"] for epoch in found]
        best = int(np.argmin(losses)) + 1
        assert 0 < best < len(losses) == min(epochs, best + options["patience"])
        other = session(optimizer=Adam(0.3))
        other.fit(DATA, epochs=best)
        assert trained.position == (best, 0)
        assert bits(trained) == bits(other) == bits(session(path))
        # and it goes on from there
        trained.fit(DATA, epochs=best + 1)
        other.fit(DATA, epochs=best + 1)
        assert bits(trained) == bits(other)
    last = session()
    last.fit(DATA, epochs=6, validate=held)
    assert last.position == (6, 0)


def test_a_split_model_is_trained_by_both_algorithms():
    one, other = session(), session(split=True)
    one.fit(DATA, batch=25)
    other.fit(DATA, batch=25)
    assert other.steps == one.steps == 2
    assert np.array_equal(one.state["w"], other.state["w"])


def test_what_is_refused():
    only = sabir.TrainingSession(sabir.parse(TEXT))
    cases = [
        (UnsupportedError, only, DATA, {}),
        (UnsupportedError, session(), DATA, {"batch": 0}),
        (UnsupportedError, session(), iter([]), {"epochs": 2}),
        (FeedError, session(), {}, {}),
        (FeedError, session(), [], {}),
        (FeedError, session(), [1, 2], {}),
        (FeedError, session(), {"x": DATA["x"], "label": DATA["label"][:7]}, {}),
        (FeedError, session(), {"x": DATA["x"]}, {}),
        (FeedError, session(), {**DATA, "q": DATA["x"]}, {}),
        (SabirError, session(), {"x": DATA["x"], "label": DATA["label"] + 7}, {}),
        (UnsupportedError, session(), DATA, {"patience": 0}),
        (UnsupportedError, session(), DATA, {"checkpoint_steps": -1}),
        (UnsupportedError, session(), DATA, {"checkpoint": "half.wav"}),
        (FeedError, session(), DATA, {"validate": {"x": DATA["x"]}}),
        (FeedError, session(), DATA, {"validate": {**DATA, "q": DATA["x"]}}),
        (FeedError, session(), DATA, {"validate": {"x": DATA["x"], "label": DATA["label"][:7]}}),
    ]
    for error, trained, data, options in cases:
        before = bits(trained)
        with pytest.raises(error):
            trained.fit(data, **options)
        assert bits(trained) == before
        assert trained.steps == 0
    plain = prepare(sabir.parse(TEXT))
    plain.training.pop()
    with pytest.raises(UnsupportedError, match="evaluates"):
        sabir.TrainingSession(plain).fit(DATA, validate=DATA)
