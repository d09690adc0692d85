"""Steps of several workers equal those of one session; with threads here, with Ray where it is installed."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

import sabir
from sabir import FeedError, UnsupportedError
from sabir.opsets import STANDARD
from sabir.training import LAMB, SGD, Adam, NAdam, distribute, prepare
from support.crews import replicas_of

RNG = np.random.default_rng(5)


def network():
    """Two layers, the first with a Dropout that draws nothing in inference."""
    rng, b = np.random.default_rng(4), sabir.Builder(21)
    h = b.input("x", "float", ["N", 4])
    for name, size in (("1", (4, 6)), ("2", (6, 3))):
        w = b.initializer(f"w{name}", rng.standard_normal(size).astype(np.float32))
        h = b.Gemm(b.Tanh(h), w, b.initializer(f"b{name}", np.zeros(size[1], np.float32)))
    b.output(h, "y")
    return b.model()


DATA = {"x": RNG.standard_normal((50, 4)).astype(np.float32), "label": RNG.integers(0, 3, 50)}


def session(engine="reference", **options):
    given = {"optimizer": Adam(0.05), "metrics": ["accuracy", "f1_macro"], "split": True, **options}
    return sabir.TrainingSession(prepare(network(), **given), engine=engine)


def trained(workers, options, **how):
    """Return a session after two epochs by workers in threads, and its epochs."""
    found = session(**options)
    pool, _ = replicas_of(found, workers, **how)
    with found.sharded(pool):
        epochs = found.fit(DATA, epochs=2, batch=16)
    return found, epochs


def assert_same_training(one, other, one_epochs, other_epochs):
    for a, b in zip(one_epochs, other_epochs, strict=True):
        np.testing.assert_allclose(list(a.results.values()), list(b.results.values()), rtol=1e-5)
    for name, value in one.state.items():
        np.testing.assert_allclose(other.state[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def assert_same_bits(one, other):
    for name, value in one.state.items():
        assert np.array_equal(other.state[name], value, equal_nan=value.dtype.kind == "f"), name
    assert (one.steps, one.position) == (other.steps, other.position)


def test_parts_of_a_batch_are_as_good_as_the_batch():
    one, other = session(), session()
    expected = one.fit(DATA, epochs=2, batch=16, validate=DATA)
    pool, crew = replicas_of(other, 3)
    with other.sharded(pool):
        found = other.fit(DATA, epochs=2, batch=16, validate=DATA)
    parts = [[len(r.part.get("x", ())) for (r,) in given] for name, given in crew.calls if name == "step"]
    assert parts == ([[6, 5, 5]] * 3 + [[1, 1, 0]]) * 2
    assert_same_training(one, other, expected, found)
    assert expected[-1].validation.keys() == found[-1].validation.keys()
    other.fit(DATA, epochs=3)
    assert len(parts) == pool.steps == 8  # not asked any more
    assert [t.steps for t in other.traffic] == [8] * 3


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": Adam(0.05), "clip": 0.5, "average": 0.9},
        {"optimizer": LAMB(0.05, weight_decay=0.1), "clip": 0.01},
        {"optimizer": NAdam(0.05), "precision": "float16", "clip": 1.0},
    ],
    ids=["averages and a norm over all gradients", "norms of parameters", "a scaled loss"],
)
def test_buckets_and_a_divided_optimizer_give_the_same_bits(options):
    one, expected = trained(2, options)
    if "average" in options:
        several, epochs = trained(2, options, bucket=64)
        assert [e.results for e in epochs] == [e.results for e in expected]
        assert_same_bits(one, several)
    divided, epochs = trained(2, options, bucket=64, shard_optimizer=True)
    assert [e.results for e in epochs] == [e.results for e in expected]
    assert_same_bits(one, divided)
    whole, parts = one.traffic, divided.traffic
    moments = whole[0].optimizer
    assert all(0.3 * moments < t.optimizer < 0.7 * moments for t in parts)
    # every gradient once to its owner and every parameter, or mean, once back, and few bytes of scalars
    assert sum(t.sent for t in parts) < 1.5 * sum(t.sent for t in whole)


def test_compiled_steps_are_those_of_the_interpreter():
    options = {"optimizer": SGD(0.05, momentum=0.9)}
    one, expected = trained(2, options)
    other, found = trained(2, {**options, "engine": "compiled"}, bucket=64, shard_optimizer=True)
    assert_same_training(one, other, expected, found)


def test_sums_of_several_batches_are_applied_at_once():
    parts = [{n: a[i : i + 10] for n, a in DATA.items()} for i in (0, 10, 20)]
    for shard_optimizer in (False, True):
        one, other = session(), session()
        pool, _ = replicas_of(other, shard_optimizer=shard_optimizer)
        with other.sharded(pool):
            for it in (one, other):
                for feeds in parts[:2]:
                    it.step(feeds, 0)
                it.step({}, 1)
                it.step(parts[2])
            np.testing.assert_allclose(other.state["grad_w1"], one.state["grad_w1"], rtol=1e-4, atol=1e-6)
        assert_same_training(one, other, [], [])


def test_the_session_is_used_as_ever_inside_the_context():
    one, other = session(), session()
    feeds = {n: a[:16] for n, a in DATA.items()}
    asked = ["loss", "y", "f1_macro_sums", "rate"]
    pool, crew = replicas_of(other, shard_optimizer=True)
    with other.sharded(pool):
        for _ in range(2):
            expected, found = one.step(feeds, outputs=asked), other.step(feeds, outputs=asked)
        for name in asked:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, err_msg=name)
        for it in (one, other):
            it.state["learning_rate"] = 0.01
            it.step(feeds)
        assert "w1" in other.state
        rows = {"x": DATA["x"]}
        np.testing.assert_allclose(other.run(rows)["y"], one.run(rows)["y"], rtol=1e-4, atol=1e-5)
        found = other.step(feeds, other.evaluating)
        np.testing.assert_allclose(found["loss"], one.step(feeds, one.evaluating)["loss"], rtol=1e-4)
        again = sabir.TrainingSession(other.checkpoint(), engine="reference")
        assert_same_bits(other, again)
        before = len(crew.calls)
        assert other.state["training_step"] == 3
        assert len(crew.calls) == before  # it was fetched for the checkpoint
        other.initialize()
        assert other.steps == 0
        other.step(feeds)
    fresh = session()
    fresh.step(feeds)
    assert_same_training(fresh, other, [], [])


def test_what_is_refused():
    whole = session(split=False)
    with pytest.raises(UnsupportedError, match="split=True"), distribute(whole):
        pass
    for numbers in ({"workers": 0}, {"bucket": 0}, {"snapshot_steps": 0}):
        wrong = pytest.raises(UnsupportedError, match=f"{next(iter(numbers))} is 1 or more; got 0")
        with wrong, distribute(session(), **numbers):
            pass
    own = sabir.TrainingSession(session().model, registry=STANDARD.with_operators())
    with pytest.raises(UnsupportedError, match="standard's operators alone"), distribute(own):
        pass
    once = session()
    pool, _ = replicas_of(once)
    feeds = {"x": DATA["x"], "label": DATA["label"]}
    with once.sharded(pool):
        with pytest.raises(FeedError, match="samples"):
            once.step({**feeds, "label": feeds["label"][:3]}, [0, 1], outputs="loss")
        with pytest.raises(UnsupportedError, match="a step of its own"):
            once.step(feeds, [0, 1, 2])
        values = once._store.values
        once.step(feeds)
        stale = once._store.values
        once.step(feeds)
        with pytest.raises(UnsupportedError, match="an earlier step"):
            stale["w1"]
        with pytest.raises(KeyError):
            once._store.values["none"]
    assert once.steps == 2
    assert values["w1"].shape == (4, 6)


COUPLED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x) => (float[N,2] y) <float[2] a = {1, 2}, float[2] b = {0, 0}, float[2] grad_a = {0, 0}, float[2] grad_b = {0, 0}, int64[1] axis = {0}> {
    y0 = Mul (x, a)  y = Add (y0, b) }
@training { algorithm: sum (float[N,2] t) => (float loss, float[2] ga, float[2] gb) {
    e = Sub (y, t)  ex = Mul (e, x)  ga = ReduceMean <keepdims = 0> (ex, axis)  gb = ReduceMean <keepdims = 0> (e, axis)
    ee = Mul (e, e)  loss = ReduceMean <keepdims = 0> (ee) } , update_binding: ["grad_a": "ga", "grad_b": "gb"] }
@training { algorithm: apply () => (float[2] na, float[2] nb) {
    both = Concat <axis = 0> (grad_a, grad_b)  m = ReduceMax (both)  da = Div (grad_a, m)  db = Div (grad_b, m)
    na = Sub (a, da)  nb = Sub (b, db) } , update_binding: ["a": "na", "b": "nb"] }
"""


def test_an_optimizer_that_computes_with_all_gradients_together_is_not_divided():
    coupled, alone = (sabir.TrainingSession(sabir.parse(COUPLED), engine="reference") for _ in range(2))
    with pytest.raises(UnsupportedError, match=r"the node 'Concat' .* \('grad_a', 'grad_b'\)"):
        replicas_of(coupled, shard_optimizer=True)
    pool, _ = replicas_of(coupled)  # every worker computes it
    feeds = {"x": DATA["x"][:8, :2], "t": DATA["x"][:8, 2:]}
    with coupled.sharded(pool):
        np.testing.assert_allclose(coupled.step(feeds)["loss"], alone.step(feeds)["loss"], rtol=1e-5)
    assert_same_training(alone, coupled, [], [])


def test_an_algorithm_may_read_the_sums_of_other_gradients():
    text = COUPLED.replace(
        "gb = ReduceMean <keepdims = 0> (e, axis)",
        "me = ReduceMean <keepdims = 0> (e, axis)  gb = Add (me, grad_a)",
    )
    one, other = (sabir.TrainingSession(sabir.parse(text), engine="reference") for _ in range(2))
    pool, _ = replicas_of(other, bucket=1)
    feeds = {"x": DATA["x"][:8, :2], "t": DATA["x"][:8, 2:]}
    with other.sharded(pool):
        for _ in range(3):
            np.testing.assert_allclose(other.step(feeds)["loss"], one.step(feeds)["loss"], rtol=1e-4)
    assert_same_training(one, other, [], [])


def test_a_step_may_depend_on_another_parameter_of_the_same_worker():
    """The norm of `a` before the step is the rate of `b`, and each bucket has one of them."""
    text = COUPLED.replace(
        "db = Div (grad_b, m)", "n = ReduceL2 <keepdims = 0> (a)  db = Mul (grad_b, n)"
    ).replace("da = Div (grad_a, m)", "da = Identity (grad_a)")
    one, other = (sabir.TrainingSession(sabir.parse(text), engine="reference") for _ in range(2))
    pool, crew = replicas_of(other, 1, shard_optimizer=True, bucket=1)
    feeds = {"x": DATA["x"][:8, :2], "t": DATA["x"][:8, 2:]}
    with other.sharded(pool):
        for _ in range(3):
            np.testing.assert_allclose(other.step(feeds)["loss"], one.step(feeds)["loss"], rtol=1e-5)
    assert len(crew.replicas[0]._parameters) == 2
    assert_same_training(one, other, [], [])


def test_there_may_be_more_workers_than_parameters():
    text = COUPLED.replace("(a, da)", "(a, grad_a)").replace("(b, db)", "(b, grad_b)")
    one, other = (sabir.TrainingSession(sabir.parse(text), engine="reference") for _ in range(2))
    pool, crew = replicas_of(other, 3, shard_optimizer=True)
    feeds = {"x": DATA["x"][:2, :2], "t": DATA["x"][:2, 2:]}
    with other.sharded(pool):
        for _ in range(2):
            np.testing.assert_allclose(other.step(feeds)["loss"], one.step(feeds)["loss"], rtol=1e-5)
        assert sum(crew.replicas[2]._values["a"]) == pytest.approx(sum(other.state["a"]))
    assert_same_training(one, other, [], [])


def test_a_lost_worker_is_replaced_and_nothing_is_lost():
    for how in ({}, {"shard_optimizer": True, "bucket": 64, "snapshot_steps": 2}):
        one, expected = trained(2, {}, **how)
        other = session()
        pool, crew = replicas_of(other, **how)

        def lose(at, crew=crew):
            if at.epoch == 1 and at.batch in {1, 3}:
                crew.lose(at.batch % 2)

        with other.sharded(pool):
            found = other.fit(DATA, epochs=2, batch=16, progress=lose)
        assert [e.results for e in found] == [e.results for e in expected]
        assert_same_bits(one, other)
        assert [t.restarts for t in other.traffic] == [0, 2]


def test_a_group_that_is_lost_again_and_again_is_an_error():
    trainee = session()
    pool, crew = replicas_of(trainee)
    feeds = {n: a[:16] for n, a in DATA.items()}
    with trainee.sharded(pool):
        trainee.step(feeds)
        crew.replace = crew.calls.append  # and no process comes
        crew.lose(1)
        with pytest.raises(UnsupportedError, match="lost 5 times in one step"):
            trainee.step(feeds)
        del crew.replace
    assert trainee.steps == 1
    assert trainee.traffic[1].restarts > 1


def test_an_error_of_a_worker_leaves_the_state():
    one, other = session(), session()
    good, bad = ({n: a[i : i + 16] for n, a in DATA.items()} for i in (0, 16))
    bad["label"] = bad["label"].copy()
    bad["label"][-1] = 7
    pool, _ = replicas_of(other, bucket=64)
    with other.sharded(pool):
        for it in (one, other):
            it.step(good)
            with pytest.raises(sabir.EvaluationError, match="label"):
                it.step(bad)
            it.step(good)
    assert_same_training(one, other, [], [])
    assert other.steps == 2


def test_an_interrupt_comes_after_the_step():
    other = session()
    pool, crew = replicas_of(other)
    finish, interrupts = crew.finish, []

    def interrupted(calls):
        if crew.calls[-1][0] == "step" and interrupts:
            raise interrupts.pop()
        return finish(calls)

    crew.finish = interrupted
    feeds = {n: a[:16] for n, a in DATA.items()}
    with other.sharded(pool):
        interrupts += [KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            other.step(feeds)
        assert other.steps == 1
        interrupts += [KeyboardInterrupt(), KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            other.step(feeds)
        assert other.steps == 1
        other.step(feeds)
    one = session()
    for _ in range(2):
        one.step(feeds)
    assert_same_training(one, other, [], [])


def test_logged_samples_are_bounded(monkeypatch):
    monkeypatch.setattr("sabir.training._replicas._LOGGED", 1000)
    other = session(optimizer=SGD(0.1))
    pool, crew = replicas_of(other)
    with other.sharded(pool):
        for _ in range(6):
            other.step({n: a[:32] for n, a in DATA.items()})
        assert 2 <= sum(name == "fetch" for name, _ in crew.calls) < 6


@pytest.mark.parametrize("shard_optimizer", [False, True], ids=["whole", "divided"])
def test_workers_of_ray_and_one_that_is_killed(ray, shard_optimizer):
    one, expected = trained(2, {}, shard_optimizer=shard_optimizer)
    other, killed = session(), []

    def kill(at):
        if at.epoch == 2 and at.batch == 2:
            replica = other._pool._crew._replicas[1]
            killed.append(ray.get(replica.process.remote()))
            os.kill(killed[0], signal.SIGKILL)

    with distribute(other, workers=2, shard_optimizer=shard_optimizer):
        found = other.fit(DATA, epochs=2, batch=16, progress=kill)
    assert killed
    assert [e.results for e in found] == [e.results for e in expected]
    assert_same_bits(one, other)
    assert [t.restarts for t in other.traffic] == [0, 1]


DRIVER = """
import os, signal, sys
import numpy as np, sabir
from sabir.training import distribute

assert "ray" not in sys.modules
import ray

address, model, data, checkpoint = sys.argv[1:]
ray.init(address=address, logging_level="error", log_to_driver=False)
session = sabir.TrainingSession(model, engine="reference")

def die(at):
    if at.epoch == 2 and at.batch == 3:
        os.kill(os.getpid(), signal.SIGKILL)

with distribute(session, workers=2):
    session.fit(dict(np.load(data)), epochs=3, batch=16, resume=checkpoint, checkpoint_steps=1, progress=die)
"""


def test_a_program_that_is_killed_goes_on_from_its_checkpoint(ray, tmp_path):
    model, data, checkpoint = (str(tmp_path / n) for n in ("model.onnx", "data.npz", "run.onnx"))
    sabir.save(session().model, model)
    np.savez(data, **DATA)
    script = tmp_path / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own script
        [sys.executable, script, address, model, data, checkpoint], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    other, one = session(), session()
    for it, resume in ((other, checkpoint), (one, None)):
        with distribute(it, workers=2):
            epochs = it.fit(DATA, epochs=3, batch=16, resume=resume)
    assert len(epochs) == 3
    assert_same_bits(one, other)


def in_blocks(data, ray_data):
    blocks = [{n: a[i : i + 10] for n, a in data.items()} for i in range(0, 50, 10)]
    return ray_data.from_items([
        dict(zip(b, row, strict=True)) for b in blocks for row in zip(*b.values(), strict=True)
    ])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.usefixtures("ray")
def test_a_data_set_of_ray_is_trained_batch_by_batch():
    ray_data = pytest.importorskip(
        "ray.data", reason="Ray Data is not installed; `make distributed` tests with it"
    )
    context = ray_data.DataContext.get_current()
    context.enable_progress_bars, context.execution_options.preserve_order = False, True
    one, other = session(), session()
    expected = one.fit(DATA, epochs=2, batch=16, shuffle=False, drop_last=True)
    rows = in_blocks(DATA | {"name": np.array(["a"] * 50)}, ray_data)
    with distribute(other, workers=2):
        found = other.fit(rows, epochs=2, batch=16, drop_last=True, validate=rows)
    assert_same_training(one, other, expected, found)
    assert found[-1].validation["loss"] > 0

    # 128 MiB of samples pass through, and few of them are in the memory of the program
    def wide(columns):
        size = len(columns["id"])
        return {"x": np.ones((size, 1 << 18, 4), np.float32), "label": np.zeros((size, 1 << 18), np.int64)}

    line = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,M,4] x) => (float[N,M,2] y) <float[4,2] w = {0, 1, 0, 1, 0, 1, 0, 1}> { y = MatMul (x, w) }""")
    trainee = sabir.TrainingSession(prepare(line, optimizer=SGD(0.1)))
    large = ray_data.range(21, override_num_blocks=21).map_batches(wide, batch_size=1)
    before, most = anonymous(), []
    trainee.fit(large, batch=1, keep_steps=None, progress=lambda _: most.append(anonymous()))
    assert len(most) == 21
    assert max(most) - before < 60


def anonymous():
    """Return the memory of this process that no file has, in MiB."""
    with pathlib.Path("/proc/self/status").open(encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
