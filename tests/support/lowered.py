"""Runs of a model in kernels alone, beside those of the interpreter."""

import numpy as np

import sabir
from sabir.compilation import Compiled

NAMES = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    **{np.dtype(f"{sign}int{bits}"): f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def model_of(line, inputs, outputs, opset=21, fixed=()):
    """Return the model of one call; inputs and outputs are arrays by name; their sizes stay open, equal ones are one symbol.

    The sizes in `fixed` are numbers.
    """
    ports = ", ".join(f"{typed(x, fixed)} {name}" for name, x in inputs.items())
    results = ", ".join(f"{typed(x, fixed)} {name}" for name, x in outputs.items())
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : {opset}]>\ng ({ports}) => ({results}) {{ {line} }}'
    )


def typed(x, fixed):
    sizes = ",".join(str(n) if n in fixed else f"d{n}" for n in x.shape)
    return f"{NAMES[x.dtype]}[{sizes}]" if x.ndim else NAMES[x.dtype]


def kernels_only(model, feeds, backend=None):
    """Return the results of a model after asserting that only kernels compute them."""
    engine = Compiled(model, backend=backend)
    results = engine.run(feeds)
    program = next(iter(engine._plans))
    fallen = [f"{s.label}: {s.reason}" for s in program.plan.entries if hasattr(s, "reason")]
    assert not fallen, fallen
    if all(x.size for x in feeds.values()):
        engine.profile(feeds, runs=1)  # raises where only the interpreter can run these feeds
    return results


def same_bits(got, expected, where):
    """Assert that two tensors are equal: types, shapes, all bits but those of NaN."""
    assert got.dtype == expected.dtype, where
    assert got.shape == expected.shape, where
    same = got == expected
    if expected.dtype.kind == "f":
        same = (same & (np.signbit(got) == np.signbit(expected))) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), (where, got, expected)
