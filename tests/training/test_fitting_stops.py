"""`fit` stops where a loss or the state is not finite, and keeps the last good state."""

import numpy as np
import pytest

import sabir
from sabir import EvaluationError, UnsupportedError
from sabir.training import SGD, prepare

TEXT = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}, float r = {0.25}> { d = Dropout (x, r)  p = MatMul (d, w)  [root] y = {OP} (p) }"
)
RNG = np.random.default_rng(3)
SIZE, BATCH = 60, 5


def data(bad, value):
    """Samples in the order of the batches, of which one is bad."""
    x = RNG.standard_normal((SIZE, 2)).astype(np.float32)
    x[bad] = value
    return {"x": x, "label": np.zeros((SIZE, 1), np.float32)}


def session(operator="Identity", engine="reference", **options):
    options.setdefault("optimizer", SGD(0.01, momentum=0.9))
    model = prepare(sabir.parse(TEXT.replace("{OP}", operator)), "mse", **options)
    return sabir.TrainingSession(model, engine=engine, seed=4)


def bits(trained):
    return {name: value.tobytes() for name, value in trained.state.items()}


def after(steps, samples, engine="reference", **options):
    """A session after some steps over the samples in order."""
    trained = session(engine=engine, **options)

    def stop(_):
        if trained.steps == steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained.fit(samples, epochs=9, batch=BATCH, shuffle=False, progress=stop)
    return trained


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("keep", [1, 3, 100])
def test_a_nan_in_the_data_is_named_and_the_state_is_that_before(keep, engine, tmp_path):
    samples = data(37, np.nan)  # in batch 8
    trained, path = session(engine=engine), tmp_path / "good.onnx"
    with pytest.raises(
        EvaluationError, match=r"epoch 1, batch 8 \(step 8\): the loss is nan; the first NaN is in 'x'"
    ):
        trained.fit(samples, batch=BATCH, shuffle=False, keep_steps=keep, checkpoint=path)
    assert (trained.steps, trained.position) == (7, (0, 7))
    good = after(7, samples, engine)
    assert bits(trained) == bits(good) == bits(sabir.TrainingSession(path, engine=engine))


def without_dropout(operator, start, optimizer):
    text = TEXT.replace("{OP}", operator).replace("Dropout (x, r)", "Identity (x)").replace("1, -1", start)
    return sabir.TrainingSession(prepare(sabir.parse(text), "mse", optimizer=optimizer), engine="reference")


def test_a_node_is_named():
    trained = without_dropout("Sqrt", "1, -1", SGD(0.0))
    samples = data(0, 0.0)
    samples["x"][:] = [2, 1]
    samples["x"][22] = [1, 20]
    with pytest.raises(EvaluationError, match=r"epoch 1, batch 5 .*the first NaN is a result of Sqrt 'root'"):
        trained.fit(samples, batch=BATCH, shuffle=False)


def test_state_that_becomes_infinite_is_found_though_losses_are_finite():
    trained = without_dropout("Tanh", "0, 0", SGD(1e3))
    samples = data(0, 0.0)
    samples["x"][:] = 0.5
    samples["x"][34], samples["label"][34] = 3e38, 1
    with pytest.raises(EvaluationError, match=r"epoch 1, batch 7 \(step 7\): the state variable 'w' is not"):
        trained.fit(samples, batch=BATCH, shuffle=False)
    assert trained.steps == 6
    assert np.isfinite(trained.state["w"]).all()


def test_a_later_epoch_goes_back_within_that_epoch():
    samples = data(0, 1.0)
    trained = session()

    def poison(epoch):
        samples["x"][12] = np.inf
        return epoch.number == 9

    with pytest.raises(EvaluationError, match=r"epoch 2, batch 3 \(step 15\): the loss is (inf|nan)"):
        trained.fit(samples, epochs=3, batch=BATCH, shuffle=False, callbacks=[poison])
    assert trained.position == (1, 2)
    # without the bad sample it goes on
    samples["x"][12] = 0
    trained.fit(samples, epochs=3, batch=BATCH, shuffle=False)
    assert trained.position == (3, 0)


def test_batches_of_an_iterator_cannot_be_repeated():
    samples = data(37, np.nan)
    parts = [{n: a[i : i + BATCH] for n, a in samples.items()} for i in range(0, SIZE, BATCH)]
    trained = session()
    with pytest.raises(EvaluationError, match=r"step 8\): the loss is nan; .* after step 6"):
        trained.fit(iter(parts), keep_steps=3)
    assert bits(trained) == bits(after(6, samples))
    # a list can
    trained = session()
    with pytest.raises(EvaluationError, match="before this step"):
        trained.fit(parts, keep_steps=3)
    assert bits(trained) == bits(after(7, samples))


def test_without_copies_the_loss_alone_is_looked_at():
    trained = session()
    with pytest.raises(EvaluationError, match=r"step 8\): the loss is nan; no good state"):
        trained.fit(data(37, np.nan), batch=BATCH, shuffle=False, keep_steps=None)
    assert trained.steps == 8
    with pytest.raises(UnsupportedError, match="keep_steps"):
        trained.fit(data(37, np.nan), keep_steps=0)


def test_a_split_model_stops_too():
    samples = data(37, np.nan)
    trained = session(split=True)
    with pytest.raises(
        EvaluationError, match=r"step 8\): the loss is nan; the first NaN is in 'x', an input"
    ):
        trained.fit(samples, batch=BATCH, shuffle=False)
    assert bits(trained) == bits(after(7, samples, split=True))


def test_infinite_state_from_the_start_is_left_alone():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, -1}, float[1,2] m = {0, 0}> {
        p = Mul (x, w)  q = Add (p, m)  y = Softmax (q)
    }"""
    model = prepare(sabir.parse(text), "mse", optimizer=SGD(0.1), trainable=["w", "m"])
    trained = sabir.TrainingSession(model, engine="reference")
    trained.state["m"] = np.float32([[0, -np.inf]])
    feeds = {"x": np.ones((8, 2), np.float32), "label": np.ones((8, 2), np.float32)}
    trained.fit(feeds, epochs=2, batch=4)
    assert trained.position == (2, 0)
