"""How a step is computed: the kernels of an optimizer, and the memory of the state."""

import numpy as np
import pytest

import sabir
from sabir.base import SpareArrays
from sabir.training import SGD, Adagrad, Adam, AdamW, prepare

RNG = np.random.default_rng(2)
FEEDS = {"x": RNG.standard_normal((16, 24)).astype(np.float32), "label": RNG.integers(0, 8, 16)}


def perceptron(optimizer, **options):
    b = sabir.Builder(21)
    rng = np.random.default_rng(1)
    x = b.input("x", "float", ["N", 24])
    w1, w2 = (
        b.initializer(name, (rng.standard_normal(shape) / 5).astype(np.float32))
        for name, shape in (("w1", (24, 32)), ("w2", (32, 8)))
    )
    b1, b2 = (b.initializer(name, np.zeros(size, np.float32)) for name, size in (("b1", 32), ("b2", 8)))
    b.output(b.Gemm(b.Relu(b.Gemm(x, w1, b1)), w2, b2), "scores")
    return sabir.TrainingSession(prepare(b.model(), optimizer=optimizer), **options)


def compiled_step(session):
    """The names of the results of each kernel of a step."""
    session.step(FEEDS, 0, outputs="loss")
    ((inner, _),) = session._algorithms[0]._sessions.values()
    kernels = str(inner.explain()).split("\nkernels\n")[1].split("\nwithout work")[0]
    return [line.split("'")[1::2] for line in kernels.splitlines()]


@pytest.mark.parametrize("optimizer", [SGD(0.1, momentum=0.9), Adagrad(0.1), Adam(0.1), AdamW(0.1)], ids=str)
def test_one_kernel_updates_a_parameter_and_its_state(optimizer):
    kernels = compiled_step(perceptron(optimizer, engine="compiled"))
    for name in ("w1", "b1", "w2", "b2"):
        (found,) = [k for k in kernels if f"next_{name}" in k]
        assert {f"next_{slot}_{name}" for slot in optimizer.slots()} <= set(found)
        assert not any("gemm_out" in result for result in found)


def test_both_engines_take_the_same_steps():
    for optimizer in (SGD(0.1), SGD(0.1, momentum=0.9, nesterov=True), Adagrad(0.1), AdamW(0.01)):
        ours, other = (perceptron(optimizer, engine=engine) for engine in ("compiled", "reference"))
        for _ in range(5):
            for session in (ours, other):
                session.step(FEEDS, 0, outputs="loss")
        for name, value in other.state.items():
            np.testing.assert_allclose(
                ours.state[name], value, rtol=2e-4, atol=1e-6, err_msg=f"{optimizer} {name}"
            )


def test_steps_write_over_the_state_and_over_nothing_that_is_referred_to():
    session = perceptron(Adam(0.1), engine="compiled")
    addresses, seen = set(), []
    for _ in range(6):
        session.step(FEEDS, 0, outputs="loss")
        addresses.add(session._store.values["w1"].ctypes.data)
        seen.append(session.state["w1"])
    assert len(addresses) == 1
    assert len({value.tobytes() for value in seen}) == 6
    mark, kept = session.state.mark(), session._store.values["w1"]
    part = session._store.values["w2"][1:]
    expected = kept.copy(), part.copy()
    for _ in range(4):
        found = session.step(FEEDS, 0, outputs=["loss", "next_w1"])["next_w1"]
        assert np.array_equal(found, session.state["w1"])
        session.step(FEEDS, 0, outputs="loss")
    assert not np.array_equal(found, session.state["w1"])
    assert np.array_equal(kept, expected[0])
    assert np.array_equal(part, expected[1])
    session.state.return_to(mark)
    assert np.array_equal(session.state["w1"], expected[0])


def test_spare_arrays_are_those_that_nothing_refers_to():
    spares = SpareArrays()
    first, second = np.zeros(3), np.ones(3)
    spares.keep({"w": first, "v": second[1:], "n": 3}, {})
    assert spares.free() == {}
    spares.keep({"w": second}, {})
    view = first[1:]
    del first
    assert spares.free() == {}
    del view
    free = spares.free()
    assert list(free) == ["w"]
    assert free["w"].tolist() == [0, 0, 0]
    spares.keep({"w": np.full(3, 2.0)}, free)  # written elsewhere: this session uses no arrays
    del free
    assert spares.free() == {}
    spares.keep({"w": np.zeros(3)}, {})
    assert spares.free() == {}


def test_a_session_writes_into_spare_arrays_that_fit():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x) => (float[N] y, float[N] z) { y = Relu (x)  z = Neg (x) }""")
    session = sabir.Session(model, engine="compiled")
    x = np.array([-1, 2], np.float32)
    session.run({"x": x})
    y, z = np.empty(2, np.float32), np.empty(3, np.float32)
    found = session.run_reusing({"x": x}, {"y": y, "z": z})
    assert found["y"] is y
    assert found["z"] is not z
    assert (y.tolist(), found["z"].tolist()) == ([0, 2], [1, -2])
    for spare in (x, x[:], y[:1].repeat(2).view()):
        found = session.run_reusing({"x": x}, {"y": spare, "z": y})
        assert (found["y"].tolist(), found["z"].tolist()) == ([0, 2], [1, -2])
        assert not np.shares_memory(found["y"], x)
        assert x.tolist() == [-1, 2]
