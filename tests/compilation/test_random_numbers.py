"""Random numbers of both engines: one generator, equal bits, new keys in each run, and their distributions."""

import operator
import threading

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.plan.entries import EvaluatedEntry
from sabir.evaluation import Runner
from sabir.loops import WordArithmetic, threefry
from sabir.opsets import STANDARD, is_standard, with_internal
from sabir.opsets.families.random import randomness
from support.engines import ENGINES

HEAD = '<ir_version: 11, opset_import: ["" : 22]>'
MASK = (1 << 32) - 1
INTEGERS = WordArithmetic(
    lambda a, b: (a + b) & MASK, operator.xor, lambda a, n: (a << n | a >> (32 - n)) & MASK
)
MAKERS = {"reference": Runner, "compiled": Compiled}


def words(number, key):
    """The words of a number of 64 bits, computed with Python's integers."""
    halves = number & MASK, number >> 32
    start = tuple((n + k) & MASK for n, k in zip(halves, key, strict=True))
    return threefry(INTEGERS, start, key)


def model_of(call, inputs="float[A,B] x", outputs="y", more=""):
    return sabir.parse(f"{HEAD} g ({inputs}) => ({outputs}) {more} {{ {call} }}")


def compiled(model, feeds, **options):
    """A session that has run, and that computes all in kernels; and its results."""
    session = Compiled(model, **options)
    found = session.run(feeds)
    steps = [e for plan in session._plans for e in plan.plan.entries if isinstance(e, EvaluatedEntry)]
    assert [e.reason for e in steps] == []
    return session, found


def test_the_words_are_those_of_the_authors():
    """Known answers for Threefry-2x32 with 13 rounds, which come with Random123."""
    assert words(0, (0, 0)) == (0x9D1C5EC6, 0x8BD50731)
    assert words((1 << 64) - 1, (MASK, MASK)) == (0xFD36D048, 0x2D17272C)
    assert words(0x85A308D3_243F6A88, (0x13198A2E, 0x03707344)) == (0xBA3E4725, 0xF27D669E)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_words_of_a_tensor_are_those_of_its_elements_row_by_row(engine):
    text = """<ir_version: 11, opset_import: ["" : 22, "sabir.internal" : 1]>
    g (uint32[2] key, float[A,B,C] x) => (first, second) {
        s = Shape (x)  first, second = sabir.internal.RandomWords (key, s) }"""
    session = MAKERS[engine](sabir.parse(text), with_internal(STANDARD))
    key = 0x89ABCDEF, 0x01234567
    for shape in ((3, 2, 7), (1, 4, 1), (2, 0, 3)):
        feeds = {"key": np.array(key, np.uint32), "x": np.zeros(shape, np.float32)}
        found = session.run(feeds)
        expected = np.array([words(i, key) for i in range(np.prod(shape))], np.uint32).reshape(-1, 2)
        for part, name in enumerate(("first", "second")):
            np.testing.assert_array_equal(found[name], expected[:, part].reshape(shape), strict=True)


def test_the_internal_domain_is_not_that_of_files():
    text = '<ir_version: 11, opset_import: ["sabir.internal" : 1]> g (uint32[2] k, int64[1] s) => (y)'
    with pytest.raises(sabir.SabirError):
        sabir.Session(sabir.parse(text + "{ y, z = sabir.internal.RandomWords (k, s) }"))
    own = STANDARD.with_operators()
    assert [is_standard(r) for r in (STANDARD, with_internal(STANDARD), own, with_internal(own))] == [
        True, True, False, False,
    ]  # fmt: skip
    assert with_internal(own).find("sabir.internal", "RandomWords") is not None


# calls with a seed, and how far numbers may be apart: those of a normal distribution have logarithms
EXACT = [
    "y = RandomUniformLike <seed = 2.0, low = -1.5, high = 2.5, dtype = {0}> (x)",
    "y = RandomUniform <seed = -0.5, shape = [3, 40], dtype = {0}> ()  z = Neg (x)",
    "y = RandomUniform <seed = 3.0, shape: ints = [], low = 2.0, high = 2.0, dtype = {0}> ()  z = Neg (x)",
    "p = Cast <to = {0}> (x)  y = Bernoulli <seed = 1.0> (p)",
    "p = Cast <to = {0}> (x)  y = Bernoulli <seed = 1.0, dtype = 9> (p)",
    "p = Cast <to = {0}> (x)  y, z = Dropout <seed = 1> (p, quarter, on)",
    "p = Cast <to = {0}> (x)  y, z = Dropout <seed = -1> (p, , on)",
    "p = Cast <to = {0}> (x)  q = ReduceMean <keepdims = 0> (x)  y, z = Dropout <seed = 123456789012> (p, q, on)",
    "p = Cast <to = {0}> (x)  m = ReduceMax <keepdims = 0> (x)  t = Cast <to = 9> (m)  y, z = Dropout <seed = 5> (p, , t)",
    "p = Cast <to = {0}> (x)  y = Multinomial <seed = 4.0, sample_size = 9> (p)",
]
NORMAL = [
    "y = RandomNormalLike <seed = 2.0, mean = 1.0, scale = 2.0, dtype = {0}> (x)",
    "y = RandomNormal <seed = 2.0, shape = [3, 40], dtype = {0}> ()  z = Neg (x)",
]
NEAR = {1: 2e-6, 10: 2e-3, 11: 4e-15, 16: 2e-2}


def test_both_engines_draw_the_same_bits():
    x = np.linspace(0, 1, 3 * 41, dtype=np.float32).reshape(3, 41)
    for kind, apart in NEAR.items():
        for text in (*EXACT, *NORMAL):
            outputs = "y, z" if " z = " in text or ", z = " in text else "y"
            model = model_of(
                text.format(kind), outputs=outputs, more="<float quarter = {0.25}, bool on = {1}>"
            )
            session, found = compiled(model, {"x": x})
            expected = sabir.evaluate(model, {"x": x})
            again = session.run_fast({"x": x})
            assert again is not None
            for name, array in expected.items():
                assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
                np.testing.assert_array_equal(again[name], found[name])
                limit = apart if text in NORMAL else 0
                np.testing.assert_allclose(
                    found[name].astype(np.float64), array.astype(np.float64), rtol=limit, atol=limit
                )


def test_the_numbers_do_not_depend_on_the_shape():
    x = np.zeros((2, 3, 4), np.float32)
    call = "y = RandomUniform <seed = 7.0, shape = {0}> ()  z = Neg (x)"
    flat, cube = (
        compiled(model_of(call.format(s), "float[A,B,C] x", "y, z"), {"x": x})[1]["y"]
        for s in ("[100]", "[2, 3, 4]")
    )
    np.testing.assert_array_equal(flat[:24], cube.ravel())


FREE = [
    "y = RandomUniformLike (x)", "y = RandomNormalLike (x)", "y = Bernoulli (x)", "y, z = Dropout (x, , on)",
    "y = Multinomial <sample_size = 200> (x)",
]  # fmt: skip


def test_each_run_without_a_seed_draws_other_numbers():
    x = np.full((3, 200), 0.5, np.float32)
    for call in FREE:
        session, first = compiled(model_of(call, more="<bool on = {1}>"), {"x": x})
        runs = [first["y"], *(session.run({"x": x})["y"] for _ in range(2))]
        for _ in range(3):
            fast = session.run_fast({"x": x})
            assert fast is not None
            runs.append(fast["y"])
        assert len({run.tobytes() for run in runs}) == len(runs)
    twice = compiled(
        model_of("y = RandomUniformLike (x)  z = RandomUniformLike (x)", outputs="y, z"), {"x": x}
    )
    assert (twice[1]["y"] != twice[1]["z"]).any()


def test_threads_that_run_one_session_draw_other_numbers():
    x = np.zeros((3, 200), np.float32)
    session, _ = compiled(model_of("y = RandomUniformLike (x)"), {"x": x})
    found = []

    def run():
        found.extend(session.run_fast({"x": x})["y"].tobytes() for _ in range(50))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 200


def test_a_stored_plan_has_the_seed_and_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    x = np.zeros((3, 200), np.float32)
    model = model_of("y = RandomUniformLike (x)  z = RandomUniformLike <seed = 1.0> (x)", outputs="y, z")
    (first, one), (second, two) = (compiled(model, {"x": x}) for _ in range(2))
    assert [plan.prepared is None for s in (first, second) for plan in s._plans] == [False, True]
    np.testing.assert_array_equal(one["z"], two["z"])
    assert (one["y"] != two["y"]).any()
    third = second.run_fast({"x": x})
    assert third is not None
    assert (third["y"] != two["y"]).any()


def test_a_seeded_node_is_no_constant():
    session, _ = compiled(model_of("y = RandomNormal <seed = 1.0, shape = [50000]> ()", ""), {})
    (program,) = session._plans
    assert sum(array.nbytes for array in program.executable.constants.values()) < 100


@pytest.mark.parametrize("count", [4, 40])  # native code repeats a body without random numbers that often
@pytest.mark.parametrize("engine", ENGINES)
def test_each_iteration_of_a_loop_draws_other_numbers(engine, count):
    model = model_of(
        """y = Loop (n, , ) <body = b (int64 i, bool c) => (bool d, float[20000] q)
            { d = Identity (c)  q = RandomUniform <shape = [20000]> () }>
        z = Loop (n, , x) <body = b2 (int64 i2, bool c2, float[A,B] h) => (bool d2, float[A,B] k)
            { d2 = Identity (c2)  r = RandomUniformLike (h)  k = Add (h, r) }>""",
        "int64 n, float[A,B] x", "y, z",
    )  # fmt: skip
    feeds = {"n": np.int64(count), "x": np.zeros((200, 200), np.float32)}
    found = MAKERS[engine](model).run(feeds)
    assert len({row.tobytes() for row in found["y"]}) == count
    # the sum of n numbers of [0, 1): n equal ones had the variance n * n / 12
    assert abs(found["z"].var(dtype=np.float64) - count / 12) < 0.05 * count / 12


@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_be_drawn_is_refused_in_a_run(engine):
    x = np.zeros((2, 3), np.float32)
    cases = [
        ("y = Bernoulli (x)", {"x": x + 1.5}, "outside"),
        ("y = Bernoulli (x)", {"x": x + np.nan}, "outside"),
        ("y = Multinomial (x)", {"x": x - np.inf}, "no outcome"),
        ("y = Multinomial (x)", {"x": x + np.nan}, "no outcome"),
        ("m = ReduceMax <keepdims = 0> (x)  y = Dropout (x, m, on)", {"x": x + 1}, "below 1"),
        ("m = ReduceMax <keepdims = 0> (x)  y = Dropout (x, m, on)", {"x": x + np.nan}, "below 1"),
    ]
    for call, feeds, message in cases:
        session = MAKERS[engine](model_of(call, more="<bool on = {1}>"))
        assert session.run({"x": np.full((2, 3), 0.5, np.float32)})["y"].size
        with pytest.raises(sabir.EvaluationError, match=message):
            session.run(feeds)


# ---------------------------------------------------------------- distributions

COUNT = 1 << 18


def drawn(key):
    return randomness.words((COUNT,), key)


def test_each_byte_of_the_words_is_uniform():
    """The statistic of 256 bins has mean 255 and deviation 22.6."""
    for key in ((0, 0), (1, 0), (0, 1), (0x3F800000, 0)):
        for word in drawn(key):
            for byte in word.view(np.uint8).reshape(-1, 4).T:
                counts = np.bincount(byte, minlength=256)
                statistic = ((counts - COUNT / 256) ** 2).sum() / (COUNT / 256)
                assert 255 - 5 * 22.6 < statistic < 255 + 5 * 22.6


def test_neighbours_and_streams_of_neighbouring_keys_are_independent():
    base = drawn((6, 9))
    others = [drawn((6 ^ 1 << i, 9)) for i in (0, 1, 15, 31)] + [drawn((6, 9 ^ 1 << i)) for i in (0, 31)]
    first = base[0].astype(np.float64)
    pairs = [(first[1:], first[:-1]), (first[128:], first[:-128]), (first, base[1].astype(np.float64))]
    pairs += [(first, other.astype(np.float64)) for words in others for other in words]
    for a, b in pairs:
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(COUNT)
    for words in others:  # half of all bits differ
        different = np.unpackbits((base[0] ^ words[0]).view(np.uint8)).sum(dtype=np.int64)
        assert abs(different - 16 * COUNT) < 5 * np.sqrt(8 * COUNT)


def test_kernels_draw_the_distributions():
    x = np.zeros((512, 512), np.float32)
    for kind in (1, 11):
        call = "y = RandomNormalLike <seed = 8.0, dtype = {0}> (x)  z = RandomUniformLike <seed = 9.0, dtype = {0}> (x)"
        _, found = compiled(model_of(call.format(kind), outputs="y, z"), {"x": x})
        normal, unit = found["y"].astype(np.float64), found["z"].astype(np.float64)
        for values, moments in ((normal, (0, 1, 0, 3)), (unit - 0.5, (0, 1 / 12, 0, 1 / 80))):
            for power, moment in enumerate(moments, 1):
                samples = values**power
                assert abs(samples.mean() - moment) < 5 * samples.std() / np.sqrt(COUNT)
        tail = (np.abs(normal) > 3).mean()
        assert abs(tail - 0.0026998) < 5 * np.sqrt(0.0027 / COUNT)
        counts = np.histogram(unit, 1000, (0, 1))[0]
        assert ((counts - COUNT / 1000) ** 2).sum() / (COUNT / 1000) < 999 + 5 * np.sqrt(2 * 999)
