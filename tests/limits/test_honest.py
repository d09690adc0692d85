"""What honest models ask for passes with the default limits, whatever its size.

What is too large for a test is asked of the checks alone: an array that repeats one number has the shape and
takes no memory.
"""

import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import LimitError, budget, run_with_limits
from sabir.cli._app import main
from support.bounds import bounded
from support.costs import of, step

pytestmark = pytest.mark.usefixtures("untrusted_files")

F = np.float32
TENTH = Limits.untrusted()._replace(
    iterations=Limits.untrusted().iterations // 10
)  # for a tenth of the turns that the default is for
HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


def gpt_2():
    """GPT-2 on 3 texts of 1024 tokens: 124 million weights; the logits alone are 154 million numbers."""
    budget().raise_for(124_000_000 + 3 * 1024)
    for _ in range(12):
        attention(3, 12, 1024, 64)
    hidden, head = (3, 1024, 768), (768, 50257)
    step("MatMul", of(hidden), of(head), results=[(3, 1024, 50257)])
    step("Softmax", of((3, 1024, 50257)), results=[(3, 1024, 50257)])


def attention(batch, heads, length, width):
    """The scores of attention, step by step; the last of them are dropped."""
    held, scores = budget().live_bytes, (batch, heads, length, length)
    step("MatMul", of((batch, heads, length, width)), of((batch, heads, width, length)), results=[scores])
    step("Mul", of(scores), of(()), results=[scores])
    budget().live_bytes -= of(scores).nbytes
    step("Add", of(scores), of((1, 1, length, length)), results=[scores])
    budget().live_bytes -= of(scores).nbytes
    step("Softmax", of(scores), results=[scores])
    budget().live_bytes = held


def vgg_16():
    """VGG-16 on 48 pictures: 138 million weights."""
    budget().raise_for(138_000_000 + 48 * 3 * 224 * 224)
    size, channels = 224, 3
    for wide, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(layers):
            held, shape = budget().live_bytes, (48, wide, size, size)
            step("Conv", of((48, channels, size, size)), of((wide, channels, 3, 3)), pads=[1] * 4,
                 results=[shape])  # fmt: skip
            budget().work -= 48 * wide * size * size * channels * 9 * 4 // 128  # as the convolution counts
            step("Relu", of(shape), results=[shape])
            budget().live_bytes, channels = held, wide
        size //= 2
    assert budget().work > 0


def attention_of_a_layer():
    """A layer of attention with its weights, on 8 texts of 1200 tokens."""
    budget().raise_for(8 * 1200 * 768 + 4 * 768 * 768)
    budget().allocate(3 * of((8, 1200, 768)).nbytes)
    attention(8, 12, 1200, 64)


def enlarged(kind):
    """A picture of 2160 by 3840, four times as wide and high."""
    picture, large = (1, 3, 2160, 3840), (1, 3, 8640, 15360)
    budget().raise_for(of(picture).size)
    step("Resize", of(picture, kind), None, np.array([1, 1, 4, 4], F), results=[large], mode="linear")


def many_turns_of_a_product():
    """1,000 turns of a product of 512 by 512, with another node in the turn."""
    budget().raise_for(2 * 512 * 512)
    for _ in range(1000):
        held = budget().live_bytes
        step("MatMul", of((512, 512)), of((512, 512)), results=[(512, 512)])
        budget().work -= 512**3 * 4 // 128  # as the product counts
        step("Tanh", of((512, 512)), results=[(512, 512)])
        budget().live_bytes = held
    assert budget().work > 0


ASKED = {
    "GPT-2 on 3 x 1024 tokens": gpt_2,
    "VGG-16 on 48 pictures": vgg_16,
    "attention of 8 x 12 x 1200 x 1200": attention_of_a_layer,
    "a 4K picture of bytes, four times as large": lambda: enlarged(np.uint8),
    "a 4K picture of floats, four times as large": lambda: enlarged(F),
    "1,000 turns of a 512 x 512 product": many_turns_of_a_product,
}


@pytest.mark.parametrize("name", ASKED)
def test_the_checks_let_it_through(name):
    run_with_limits(Limits(), ASKED[name])


def test_a_large_picture_is_enlarged():
    b = Builder(21)
    x = b.input("x", "uint8", [1, 3, "H", "W"])
    b.output(b.Resize(x, None, b.initializer("scales", np.array([1, 1, 4, 4], F)), mode="nearest"), "y")
    picture = np.random.default_rng(1).integers(0, 256, (1, 3, 1080, 1920), np.uint8)
    with bounded(memory=1 << 28):
        y = sabir.evaluate(b.model(), {"x": picture})["y"]
    assert y.shape == (1, 3, 4320, 7680)
    assert np.array_equal(y[..., ::4, ::4], picture)


def test_the_places_of_many_numbers_are_found():
    model = sabir.parse(f"{HEAD} g (bool[n] x) => (int64[1, k] y) {{ y = NonZero (x) }}")
    x = np.ones(10**8, bool)
    x[7] = False
    with bounded(memory=1 << 30):
        assert sabir.evaluate(model, {"x": x})["y"].shape == (1, 10**8 - 1)


def test_a_scan_over_many_samples_ends():
    model = sabir.parse(f"""{HEAD} g (float s, float[n] x) => (float t, float[n] y) {{
        t, y = Scan <num_scan_inputs = 1, body = b (float s0, float a) => (float s1, float z) {{
            d = Sub (a, s0)  half = Constant <value = float {{0.5}}> ()  e = Mul (d, half)  s1 = Add (s0, e)
            z = Identity (s1)
        }}> (s, x)
    }}""")
    x = np.ones(11_000, F)
    with bounded(seconds=20):
        found = sabir.evaluate(model, {"s": np.zeros((), F), "x": x}, limits=TENTH)
    assert found["y"].shape == (11_000,)
    assert found["t"] == 1


def test_a_loop_of_many_turns_ends():
    model = sabir.parse(f"""{HEAD} g (int64 m) => (int64 y) {{
        c = Constant <value = bool {{1}}> ()  s0 = Constant <value = int64 {{0}}> ()
        y = Loop (m, c, s0) <body = b (int64 i, bool c0, int64 s) => (bool c1, int64 t) {{
            c1 = Identity (c0)  t = Add (s, i)
        }}>
    }}""")
    with bounded(seconds=20):
        assert sabir.evaluate(model, {"m": np.array(10_001)}, limits=TENTH)["y"] == 10_000 * 10_001 // 2


def test_a_product_of_many_turns_ends():
    """The real case of 1,000 turns, with a side of 128: both the work and what it may be are a 16th or less."""
    model = sabir.parse(f"""{HEAD} g (float[n, n] x) => (float[n, n] y) {{
        m = Constant <value = int64 {{1000}}> ()  c = Constant <value = bool {{1}}> ()
        y = Loop (m, c, x) <body = b (int64 i, bool c0, float[n, n] s) => (bool c1, float[n, n] t) {{
            c1 = Identity (c0)  t = MatMul (s, x)
        }}>
    }}""")
    x = np.eye(128, dtype=F)
    share = sabir.evaluate(model, {"x": x}, limits=Limits(work=0))["y"]
    assert np.array_equal(share, x)


# errors


def exceeded(job, limits):
    with pytest.raises(LimitError) as caught:
        run_with_limits(limits, job)
    return {e.limit: e.enough for e in caught.value.exceeded}, str(caught.value)


def test_an_error_names_all_limits_to_raise_and_values_that_suffice():
    model = sabir.parse(f"{HEAD} g (int64[1] k) => (float[n] y) {{ y = ConstantOfShape (k) }}")
    feeds, tight = {"k": np.array([100_000])}, Limits(elements=1000, memory=1000, work=1000)
    found, message = exceeded(lambda: sabir.evaluate(model, feeds), tight)
    assert list(found) == ["elements", "memory", "work"]
    fields = f"elements={found['elements']}, memory={found['memory']}, work={found['work']}"
    assert f"raise them with `sabir.Limits({fields})`" in message
    assert sabir.evaluate(model, feeds, limits=Limits(**found))["y"].shape == (100_000,)


@pytest.mark.parametrize("op", ["Expand", "Tile", "OneHot", "Range", "Pad", "MatMul", "Add"])
def test_what_an_error_proposes_suffices_at_once(op):
    b = Builder(21)
    one, many = b.initializer("one", np.ones(1, F)), b.initializer("many", np.array([50_000]))
    column, row = b.initializer("column", np.ones((400, 1), F)), b.initializer("row", np.ones((1, 400), F))
    made = {
        "Expand": lambda: b.Expand(one, many),
        "Tile": lambda: b.Tile(one, many),
        "OneHot": lambda: b.OneHot(many, b.initializer("depth", np.array(50_000)), b.initializer("v", np.ones(2, F))),
        "Range": lambda: b.Range(*(b.initializer(f"r{k}", np.array(v)) for k, v in enumerate((0, 50_000, 1)))),
        "Pad": lambda: b.Pad(one, b.initializer("pads", np.array([0, 50_000]))),
        "MatMul": lambda: b.MatMul(column, row),
        "Add": lambda: b.Add(column, row),
    }  # fmt: skip
    b.output(made[op]())
    model = sabir.Model(b.graph, b.opsets, 10)
    found, _ = exceeded(lambda: sabir.evaluate(model, {}), Limits(elements=10, memory=10, work=10))
    (y,) = sabir.evaluate(model, {}, limits=Limits(**(Limits(10, 10)._asdict() | found))).values()
    assert y.size >= 50_000


@pytest.mark.parametrize("turns", [100, 1000])
def test_what_a_loop_proposes_gets_it_further(turns):
    model = sabir.parse(f"""{HEAD} g () => (int64 y) {{
        m = Constant <value = int64 {{{turns}}}> ()  c = Constant <value = bool {{1}}> ()
        s0 = Constant <value = int64 {{0}}> ()
        y = Loop (m, c, s0) <body = b (int64 i, bool c0, int64 s) => (bool c1, int64 t) {{
            c1 = Identity (c0)  t = Add (s, i)
        }}>
    }}""")
    limits, tries = Limits(iterations=10), 0
    while True:
        try:
            assert sabir.evaluate(model, {}, limits=limits)["y"] == turns * (turns - 1) // 2
        except LimitError as error:
            limits, tries = limits._replace(iterations=error.exceeded[0].enough), tries + 1
        else:
            break
    assert tries <= 7


def test_the_command_line_reads_what_an_error_proposes(tmp_path, capsys):
    path = tmp_path / "m.onnx"
    text = (
        f"{HEAD} g () => (float[n] y) {{ k = Constant <value_ints = [100000]> ()  y = ConstantOfShape (k) }}"
    )
    sabir.save(sabir.parse(text), path)
    run = ["run", str(path)]
    assert main([*run, "--limit", "elements=10", "--limit", "memory=10", "--limit", "work=10"]) == 2
    proposed = capsys.readouterr().err.rpartition("or here with `")[2].partition("`")[0].split()
    assert proposed[::2] == ["--limit"] * 3
    assert main([*run, *proposed]) == 0
    assert main([*run, "--limit", f"elements={(1 << 62) - 1}"]) == 0
    capsys.readouterr()
