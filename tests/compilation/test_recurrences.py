"""Recurrent layers in kernels: every option, every way to divide the work, and special values."""

import itertools

import numpy as np
import pytest

import sabir
from sabir import Builder
from sabir.base import EvaluationError
from sabir.compilation import Compiled
from sabir.compilation.plan import rows as _rows
from sabir.compilation.plan.entries import Entry
from sabir.compilation.settings import Settings
from support.lowered import NAMES, kernels_only, same_bits
from support.thresholds import backend_by, texts_on

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
ACTIVATIONS = (
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus",
)  # fmt: skip
WEIGHTS = ("w", "r", "b", "p")
SIZES = (  # time, batch, input, hidden
    (1, 1, 1, 1),
    (2, 3, 5, 7),
    (5, 1, 4, 17),
    (4, 9, 6, 33),
    (3, 4, 2, 150),
    (3, 1, 2, 130),
)
ERROR = {np.float32: 3e-5, np.float64: 1e-12}  # of numbers about 1 after sums of 150 products and some steps


def operands_of(name, sizes, given, *, dtype=np.float32, seed=3, **attributes):
    """Return random operands by name; those in `given` are optional."""
    rng = np.random.default_rng(seed)
    time, batch, width, hidden = sizes
    count, layout = 1 + (attributes.get("direction") == "bidirectional"), attributes.get("layout")
    state = (batch, count, hidden) if layout else (count, batch, hidden)
    shapes = {
        "x": (batch, time, width) if layout else (time, batch, width),
        "w": (count, GATES[name] * hidden, width),
        "r": (count, GATES[name] * hidden, hidden),
        "b": (count, 2 * GATES[name] * hidden),
        "lens": (batch,),
        "h": state,
    }
    if name == "LSTM":
        shapes |= {"c": state, "p": (count, 3 * hidden)}
    found = {}
    for operand, shape in shapes.items():
        if operand == "lens":
            found[operand] = rng.integers(0, time + 1, shape).astype(np.int32)
        else:
            scale = min(1, 2 / max(1, hidden) ** 0.5) if operand in WEIGHTS else 1
            found[operand] = (rng.standard_normal(shape) * scale).astype(dtype)
    return {n: x if n in {"x", "w", "r", *given} else None for n, x in found.items()}


def layer(name, operands, *, fixed=WEIGHTS, symbols=True, wanted=None, **attributes):
    """Return the model of a layer, and its feeds: all operands but the constants in `fixed`."""
    b = Builder(opsets={"": 14})
    values, feeds = [], {}
    for n, x in operands.items():
        if x is None:
            values.append(None)
        elif n in fixed:
            values.append(b.initializer(n, x))
        else:
            feeds[n] = x
            values.append(b.input(n, NAMES[x.dtype], [f"n{d}" if symbols else d for d in x.shape]))
    results = b.op(
        name, *values, outputs=3 if name == "LSTM" else 2, hidden_size=operands["r"].shape[-1], **attributes
    )
    for number, result in enumerate(results):
        if wanted is None or number in wanted:
            b.output(result, f"y{number}")
    return b.model(), feeds


def run(name, operands, backend=None, **options):
    model, feeds = layer(name, operands, **options)
    return kernels_only(model, feeds, backend)


def backend_that(way, threads=None):
    """A backend in which a thread walks all steps of rows, or all threads share each step."""
    most = 1 << 40 if way == "walk" else 0
    return backend_by(threads=threads, walked_operations=most, walked_cached_operations=most)


def close(got, expected, error, where):
    for name, y in expected.items():
        assert got[name].dtype == y.dtype, where
        assert got[name].shape == y.shape, where
        np.testing.assert_allclose(got[name], y, rtol=error, atol=error, err_msg=str(where))


def cases():
    """Yield name, sizes, optional operands and attributes: each option with each size at some time."""
    rng = np.random.default_rng(1)
    directions = itertools.cycle(["forward", "reverse", "bidirectional"])
    names = itertools.cycle(ACTIVATIONS)
    for turn, (name, sizes, layout) in enumerate(itertools.product(GATES, SIZES, (0, 1))):
        attributes = {"direction": next(directions), "layout": layout}
        given = [n for n in ("b", "lens", "h", "c", "p") if rng.integers(2)]
        if name == "LSTM":
            attributes["input_forget"] = int(rng.integers(2))
        if name == "GRU":
            attributes["linear_before_reset"] = int(rng.integers(2))
        if rng.integers(2):
            attributes["clip"] = 0.75
        if turn % 4 in {1, 2}:
            count = FUNCTIONS[name] * (1 + (attributes["direction"] == "bidirectional"))
            attributes["activations"] = [next(names) for _ in range(count)]
            attributes["activation_alpha"] = [0.3, 0.7, 0.2][:count]
            attributes["activation_beta"] = [0.4, 0.1]
        yield name, sizes, given, attributes


def test_every_option():
    for number, (name, sizes, given, attributes) in enumerate(cases()):
        where = name, sizes, given, attributes
        dtype = np.float64 if number % 7 == 0 else np.float32
        operands = operands_of(name, sizes, given, dtype=dtype, **attributes)
        model, feeds = layer(
            name, operands, fixed=WEIGHTS if number % 2 else (), symbols=number % 3 != 0, **attributes
        )
        expected = sabir.Session(model, engine="reference").run(feeds)
        close(kernels_only(model, feeds), expected, ERROR[dtype], where)


@pytest.mark.parametrize("way", ["walk", "step"])
def test_the_division_of_the_work_changes_no_bit(way):
    """A row has the bits that it has alone, on any number of threads, whether a thread walks the steps or shares them."""
    for name, hidden in (("LSTM", 70), ("GRU", 70), ("GRU", 33), ("RNN", 200)):
        operands = operands_of(name, (4, 13, 5, hidden), ["b", "h", "c"], direction="bidirectional")
        model, feeds = layer(name, operands, direction="bidirectional")
        expected = Compiled(model, backend=backend_that(way, 1)).run(feeds)
        for threads in (2, 3):
            got = Compiled(model, backend=backend_that(way, threads)).run(feeds)
            for output, y in expected.items():
                same_bits(got[output], y, (name, threads))
        for rows in (slice(4, 5), slice(2, 4), slice(0, 9)):
            part = {
                n: x if x is None or n in WEIGHTS else np.ascontiguousarray(x[:, rows])
                for n, x in operands.items()
            }
            got = run(name, part, backend_that(way), direction="bidirectional")
            for output, y in expected.items():
                same_bits(got[output], y[..., rows, :], (name, rows))


def test_both_divisions_have_the_same_bits():
    for name, given, late in (
        ("LSTM", ["b", "p", "lens"], None),
        ("GRU", ["b"], 0),
        ("GRU", ["b", "lens"], 1),
        ("RNN", [], None),
    ):
        attributes = {} if late is None else {"linear_before_reset": late}
        operands = operands_of(name, (5, 3, 4, 37), given)
        found = [run(name, operands, backend_that(way), **attributes) for way in ("step", "walk")]
        for output, y in found[0].items():
            same_bits(found[1][output], y, (name, late))


def test_nan_and_infinity_stay_in_their_row():
    for name in GATES:
        operands = operands_of(name, (4, 5, 3, 20), ["b", "h"])
        usual = run(name, operands)
        for bad in (np.nan, np.inf, -np.inf):
            operands["x"][1, 2, 0] = bad
            model, feeds = layer(name, operands)
            with np.errstate(all="ignore"):
                expected = sabir.Session(model, engine="reference").run(feeds)
            got = kernels_only(model, feeds)
            close(got, expected, ERROR[np.float32], (name, bad))
            others = [0, 1, 3, 4]
            for output, y in usual.items():
                same_bits(got[output][..., others, :], y[..., others, :], (name, bad))


def test_lengths_out_of_range_are_errors():
    operands = operands_of("LSTM", (4, 2, 3, 5), ["lens"])
    for lengths in ((5, 1), (-1, 2), (4, -5)):
        operands["lens"] = np.int32(lengths)
        model, feeds = layer("LSTM", operands)
        with pytest.raises(EvaluationError, match="must be 0 to 4"):
            sabir.Session(model, engine="compiled").run(feeds)


def test_empty_tensors():
    for name, sizes in itertools.product(
        GATES, [(0, 2, 3, 4), (3, 0, 3, 4), (3, 2, 0, 4), (3, 2, 3, 0), (0, 0, 0, 0)]
    ):
        operands = operands_of(name, sizes, ["b", "h"], direction="bidirectional")
        model, feeds = layer(name, operands, direction="bidirectional")
        expected = sabir.Session(model, engine="reference").run(feeds)
        close(kernels_only(model, feeds), expected, ERROR[np.float32], (name, sizes))


def test_outputs_that_nobody_reads_are_left_out():
    operands = operands_of("LSTM", (4, 2, 3, 9), ["b"], direction="bidirectional")
    expected = run("LSTM", operands, direction="bidirectional")
    for wanted in ([0], [1], [2], [1, 2]):
        got = run("LSTM", operands, wanted=wanted, direction="bidirectional")
        assert sorted(got) == [f"y{n}" for n in wanted]
        for output, y in got.items():
            same_bits(y, expected[output], wanted)


def test_a_long_recurrence_has_rows_between_which_a_run_can_be_cancelled():
    for hidden, least in ((8, 2), (300, 600)):
        operands = operands_of("RNN", (600 if hidden > 100 else 60_000, 1, 1, hidden), [])
        model, feeds = layer("RNN", operands, wanted=[1])
        engine = Compiled(model)
        engine.run(feeds)
        (program,) = engine._plans
        (layout,) = program._layouts.values()
        (number,) = [n for n, e in enumerate(program.plan.entries) if isinstance(e, Entry) and e.loop]
        assert np.count_nonzero(layout.owners == number) >= least


def test_the_interpreter_runs_more_steps_than_a_plan_has_rows(monkeypatch):
    operands = operands_of("RNN", (9, 2, 1, 200), [])
    model, feeds = layer("RNN", operands)
    expected = run("RNN", operands)
    monkeypatch.setattr(_rows, "_MOST_ROWS", 8)
    close(Compiled(model).run(feeds), expected, ERROR[np.float32], "many steps")


def test_a_profile_counts_all_turns_of_a_kernel():
    operands = operands_of("GRU", (20, 1, 3, 200), [])
    model, feeds = layer("GRU", operands)
    engine = Compiled(model)
    profile = engine.profile(feeds, runs=2)
    kinds = [timing.kind for timing in profile.timings]
    assert kinds.count("recurrence") == 2, "the reset gate multiplies the state before R"
    assert all(timing.seconds > 0 for timing in profile.timings)


def test_layers_in_a_network():
    """A layer behind a convolution, layers behind each other, and one operand for two layers."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2,3,n,7] x, float[4,3,3,7] k, float[2,20,4] w, float[2,20,5] r, float[1,6,10] v, float[1,6,2] s) => (y, z, h) {
        c = Conv <pads = [1, 0, 1, 0]> (x, k)  e = Relu (c)
        last = Constant <value_ints = [3]> ()  q = Squeeze (e, last)  t = Transpose <perm = [2, 0, 1]> (q)
        a, b, d = LSTM <hidden_size = 5, direction = "bidirectional"> (t, w, r)
        f = Transpose <perm = [0, 2, 1, 3]> (a)  to = Constant <value_ints = [0, 0, -1]> ()  i = Reshape (f, to)
        y, h = GRU <hidden_size = 2> (i, v, s)  z, j = GRU <hidden_size = 2, direction = "reverse"> (i, v, s) }"""
    model = sabir.parse(text)
    rng = np.random.default_rng(5)
    feeds = {
        v.name: rng.standard_normal([6 if str(d) == "n" else int(str(d)) for d in v.type.shape]).astype(
            np.float32
        )
        for v in model.graph.inputs
    }
    expected = sabir.Session(model, engine="reference").run(feeds)
    close(kernels_only(model, feeds), expected, ERROR[np.float32], "network")
    plan = Compiled(model).compile(feeds)
    listed = [line for form in ("loops", "schedule", "plan") for line in plan.listing(form)]
    assert any("steps backwards" in line for line in listed)


@pytest.mark.parametrize(("name", "direction"), [("LSTM", "forward"), ("GRU", "reverse")])
def test_a_gradient_reads_the_products_of_the_steps(name, direction):
    """The gates are outputs of the steps, with the first state as given or 0; other states are multiplied again."""
    sizes = time, _, _, hidden = 4, 3, 5, 17
    for given in ((), ("h", "b")):
        operands = operands_of(name, sizes, given, direction=direction)
        b = Builder(21)
        free = {"x": (time, "N", 5), "h": (1, "N", hidden)}
        ports = {n: b.input(n, "float", free.get(n, x.shape)) for n, x in operands.items() if x is not None}
        read = (ports.get(n) for n in ("x", "w", "r", "b", "lens", "h"))
        y = b.op(name, *read, hidden_size=hidden, direction=direction)
        b.output(b.ReduceSum(b.Mul(y, y), keepdims=0), "loss")
        gradient = sabir.differentiate(b.model(), "loss", list(ports))
        feeds = {n: x for n, x in operands.items() if x is not None}
        found = Compiled(gradient)
        close(found.run(feeds), sabir.evaluate(gradient, feeds), 1e-4, f"{name} {direction} {given}")
        plain = Compiled(gradient, settings=Settings(without=frozenset({"recurrent-products"})))
        plain.run(feeds)
        counts = [[k.kind for k in each.explain().kernels].count("product") for each in (found, plain)]
        assert counts[1] - counts[0] == {"LSTM": 1, "GRU": 2}[name]


def test_decisions_on_threads():
    def found(name, hidden, batch, **thresholds):
        model, _ = layer(name, operands_of(name, (4, batch, 2, hidden), []), symbols=False)
        return texts_on(model, "threads", **thresholds)[0]

    alone, shared = "one thread for all steps of a row", "all threads for each step"
    assert found("RNN", 20, 3) == alone
    assert found("GRU", 300, 3).startswith(f"{shared}, not {alone}: ")
    assert found("GRU", 300, 3).endswith(" operations of a step of a row >= 196608")
    assert found("RNN", 20, 3, walked_cached_operations=100) == (
        f"{shared}, not {alone}: 820 operations of a step of a row >= 100"
    )
    assert found("RNN", 20, 1, walked_operations=100) == (
        f"{shared}, not {alone}: 820 operations of a step of a row >= 100"
    )
    assert found("GRU", 300, 3, walked_cached_operations=1 << 40) == alone


def test_steps_that_quantize_their_state_are_loops_of_kernels():
    """Both directions: the product of each step quantizes the state by its range."""
    rng = np.random.default_rng(2)
    kinds = {"float32": "float", "uint8": "uint8"}
    feeds = {
        "x": rng.standard_normal((3, 2, 5)).astype(np.float32),
        "w": rng.integers(0, 256, (2, 5, 12)).astype(np.uint8),
        "r": rng.integers(0, 256, (2, 3, 12)).astype(np.uint8),
        "b": rng.standard_normal((2, 24)).astype(np.float32),
        "s": np.float32([0.01, 0.02]),
        "z": np.uint8([120, 130]),
    }
    ports = ", ".join(f"{kinds[v.dtype.name]}[{','.join(map(str, v.shape))}] {n}" for n, v in feeds.items())
    model = sabir.parse(f"""<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        g ({ports}) => (y, h, c) {{
            y, h, c = com.microsoft.DynamicQuantizeLSTM <direction = "bidirectional", hidden_size = 3>
                (x, w, r, b, , , , , s, z, s, z)
        }}""")
    got = kernels_only(model, feeds)
    for name, expected in sabir.evaluate(model, feeds).items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-5, atol=1e-6)
