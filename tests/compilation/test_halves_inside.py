"""Halves that are computed with as floats: statistics of normalizations, states of recurrences."""

import numpy as np

import sabir
from sabir.compilation import Compiled
from sabir.elements import element


def models(kind, stash):
    """Yield the three operators, with inputs of a type and statistics of another."""
    options = {"stash_type": element(stash).number, "epsilon": 0.01}
    for opset, op in ((23, "RMSNormalization"), (21, "GroupNormalization"), (21, "LayerNormalization")):
        if op.startswith("L") and stash == "float16":
            continue  # the operator does not admit it
        b = sabir.Builder(opset)
        x = b.input("x", kind, ["n", 6, 40])
        scale, bias = (
            np.linspace(-1, 2, 6 if op.startswith("G") else 40).astype(element(kind).dtype) for _ in "sb"
        )
        match op:
            case "RMSNormalization":
                results = [b.RMSNormalization(x, scale, axis=-1, **options)]
            case "GroupNormalization":
                results = [b.GroupNormalization(x, scale, bias, num_groups=3, **options)]
            case _:
                results = b.LayerNormalization(x, scale, bias, axis=-1, outputs=3, **options)
        for number, y in enumerate(results):
            b.output(y, f"y{number}")
        yield op, b.model()


def test_statistics_are_rounded_where_the_meaning_rounds():
    """The steps between are float in both engines, so results differ by one unit of 16 bits at most."""
    x = np.random.default_rng(2).normal(3, 2, (5, 6, 40))
    for kind, stash in (
        ("float", "float16"),
        ("float", "bfloat16"),
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
    ):
        feeds = {"x": x.astype(element(kind).dtype)}
        unit = 2.0 ** (-7 if "bfloat16" in {kind, stash} else -10)
        for op, model in models(kind, stash):
            compiled = Compiled(model)
            found = compiled.run(feeds)
            assert compiled.explain().evaluated == (), op
            exact = sabir.Session(model, engine="reference").run(feeds)
            for name, y in found.items():
                assert y.dtype == exact[name].dtype
                near, right = (v.astype(np.float64) for v in (y, exact[name]))
                np.testing.assert_allclose(
                    near, right, rtol=2 * unit, atol=4 * unit, err_msg=f"{op} {kind} {stash}"
                )
                assert (near == right).mean() > 0.9, (op, kind, stash)


def recurrent(op, gates, dtype):
    """Return a layer of two directions for sequences of different lengths."""
    random = np.random.default_rng(5)
    w, r, bias = (
        random.normal(0, 0.4, shape).astype(dtype)
        for shape in ((2, gates * 5, 6), (2, gates * 5, 5), (2, 2 * gates * 5))
    )
    b = sabir.Builder(22)
    x, lengths = b.input("x", element(dtype).name, ["steps", 3, 6]), np.array([4, 2, 4], np.int32)
    layer = getattr(b, op)
    y, *_ = layer(x, w, r, bias, lengths, outputs=2, hidden_size=5, direction="bidirectional")
    b.output(y, "y")
    return b.model()


def test_recurrences_carry_halves_on_as_floats():
    """Only what leaves the steps is rounded."""
    for kind, unit in (("float16", 2.0**-10), ("bfloat16", 2.0**-7)):
        dtype = element(kind).dtype
        for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
            model = recurrent(op, gates, dtype)
            feeds = {"x": np.random.default_rng(6).normal(size=(4, 3, 6)).astype(dtype)}
            compiled = Compiled(model)
            (found,) = compiled.run(feeds).values()
            plan = compiled.explain()
            assert plan.evaluated == (), op
            assert not any(kernel.kind == "pack" for kernel in plan.kernels), op
            exact = sabir.Session(model, engine="reference").run(feeds)["y"]
            assert found.dtype == exact.dtype == dtype
            np.testing.assert_allclose(found.astype(float), exact.astype(float), rtol=2 * unit, atol=unit / 8)
