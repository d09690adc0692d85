"""Sizes that a kernel assumes something of: each run is asked again, and others get a plan of their own."""

import numpy as np
import pytest

import sabir
from sabir.base import SabirError
from sabir.compilation import Compiled
from sabir.compilation.engine.subplans import SubPlans
from sabir.ir import TensorType, parse_dim
from sabir.loops import (
    Assumptions,
    NotLowered,
    assuming,
    at_least,
    divided,
    equal,
    fixed,
    larger,
    smaller,
    tentative,
)
from sabir.opsets import STANDARD
from support.rooms import examples_of, model_of

PARTS = "a, b, c = Split <axis = 1, num_outputs = 3> (x)"
ASSUMING = """
    CenterCropPad ConvTranspose DepthToSpace Einsum GatherND GroupNormalization Pad QuantizeLinear Reshape
    RotaryEmbedding ScatterND Slice SpaceToDepth Split
"""
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
N, M = parse_dim("n"), parse_dim("m")


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def group_normalized(x):
    parts = x.reshape(x.shape[0], 2, -1)
    mean, variance = parts.mean(-1, keepdims=True), parts.var(-1, keepdims=True)
    return ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)


def split(x):
    part = -(-x.shape[1] // 3)
    return np.concatenate([-x[:, :part], 2 * x[:, part : 2 * part], x[:, 2 * part :]], 1)


def padded(x):
    kept = x[:, max(0, 4) :] if x.shape[1] > 4 else x[:, :0]
    return np.pad(kept, ((0, 0), (0, 5 if x.shape[1] > 4 else 1 + x.shape[1])), constant_values=2)


def turned(x):
    return x[:, x.shape[1] - 6 :: -1] if x.shape[1] >= 6 else x[:, :1]


def transposed(x):
    """A window of 3 in steps of 2; the larger half of what is more than 10 is cut off at the begin."""
    y = np.zeros(2 * x.shape[2] + 1)
    for i, value in enumerate(x[0, 0]):
        y[2 * i : 2 * i + 3] += value * np.array([1, 2, 3])
    cut = max(0, len(y) - 10)
    y = np.pad(y, (0, max(0, 10 - len(y))))
    return y[cut - cut // 2 :][:10].reshape(1, 1, 10)


CASES = {
    "GroupNormalization": (
        "float[n,c,h] x", "y = GroupNormalization <num_groups = 2> (x, s, b)", group_normalized,
        [(2, 4, 3), (3, 4, 2), (2, 6, 5), (2, 2, 3)], {"s": [1], "b": [0]},
    ),
    "Split": (
        "float[n,c] x", f"{PARTS} d = Neg (a)  e = Add (b, b)  y = Concat <axis = 1> (d, e, c)", split, [(2, 6), (2, 7), (3, 5), (2, 9)], {},
    ),
    "Slice": ("float[n,c] x", "y = Slice (x, k, l, o, m)", turned, [(2, 6), (2, 9), (3, 7), (2, 4), (2, 5)],
              {"k": [-6], "l": [-(2**62)], "o": [1], "m": [-1]}),
    "Pad": ("float[n,c] x", "y = Pad (x, p, two)", padded, [(2, 5), (3, 9), (2, 4), (2, 3)],
            {"p": [0, -4, 0, 5], "two": 2.0}),
    "ConvTranspose": ("float[n,c,h] x", "y = ConvTranspose <strides = [2], output_shape = [10]> (x, w)",
                      transposed, [(1, 1, 4), (1, 1, 5), (1, 1, 6)], {"w": [[[1.0, 2.0, 3.0]]]}),
    "Einsum": ("float[n,c] x", 'y = Einsum <equation = "ij,kj,il->kl"> (x, x, x)',
               lambda x: np.einsum("ij,kj,il->kl", x, x, x), [(2, 3), (4, 2), (3, 3)], {}),
    "diagonal": ("float[n,n] x", 'y = Einsum <equation = "ii->i"> (x)', np.diagonal, [(2, 2), (5, 5)], {}),
    "diagonal of known size": ("float[3,b,3] x", 'y = Einsum <equation = "iji->ji"> (x)',
                               lambda x: np.einsum("iji->ji", x), [(3, 2, 3), (3, 4, 3)], {}),
    "Reshape": ("float[n,c] x", "t = Reshape (x, k)  y = Transpose (t)", lambda x: x.reshape(4, -1).T,
                [(2, 6), (4, 3), (3, 8)], {"k": [4, -1]}),
    "CenterCropPad": ("float[n,c] x", "y = CenterCropPad <axes = [1]> (x, k)",
                      lambda x: x[:, (x.shape[1] - 4) // 2 :][:, :4] if x.shape[1] > 3
                      else np.pad(x, ((0, 0), ((4 - x.shape[1]) // 2, 4 - x.shape[1] - (4 - x.shape[1]) // 2))),
                      [(2, 4), (2, 7), (2, 8), (2, 2), (2, 3)], {"k": [4]}),
    "Det": ("float[b,n,n] x", "y = Det (x)", np.linalg.det, [(2, 2, 2), (3, 3, 3), (5, 2, 2)], {}),
    "reflected": ("float[n,c] x", 'y = Pad <mode = "reflect"> (x, p)',
                  lambda x: np.pad(x, ((0, 0), (3, 1)), "reflect"), [(2, 4), (2, 9), (2, 3)], {"p": [0, 3, 0, 1]}),
}  # fmt: skip


def constants(given, x):
    """The initializers of a case: one number stands for one of each channel."""
    found = []
    for name, value in given.items():
        array = np.array([value[0]] * x.shape[1] if name in {"s", "b"} else value)
        floats = array.dtype.kind == "f" or name in {"s", "b"}
        kind, shape = "float" if floats else "int64", ",".join(map(str, array.shape))
        listed = ", ".join(f"{v:.1f}" if floats else str(v) for v in array.ravel().tolist())
        found.append(f"{kind}{f'[{shape}]' if shape else ''} {name} = {{{listed}}}")
    return f"<{', '.join(found)}>" if found else ""


@pytest.mark.parametrize("name", CASES)
def test_plans_serve_the_sizes_that_they_were_made_for(name):
    port, lines, expected, shapes, given = CASES[name]
    engines = {}
    for shape in [*shapes, *reversed(shapes)]:
        x = numbers(*shape)
        text = f"{HEAD}g ({port}) => (float y) {constants(given, x)} {{ {lines} }}".replace("float y", "y")
        engine = engines.setdefault(text, Compiled(sabir.parse(text)))
        got = engine.run({"x": x.astype(np.float32)})["y"]
        wanted = np.asarray(expected(x))
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5, err_msg=f"{name} {shape}")
    for engine in engines.values():
        reasons = [s.reason for p in engine._plans for s in p.plan.entries if hasattr(s, "reason")]
        assert not reasons, reasons


def others(x):
    """The tensor with an axis that is longer or shorter."""
    for axis, n in enumerate(x.shape):
        if n > 1:
            yield np.concatenate([x, x.take([n - 1], axis)], axis)
            yield x.take(range((n + 1) // 2), axis)


def result(session, feeds):
    """What a run returns, or the message of its error."""
    try:
        return [np.asarray(y) for y in session.run(feeds).values()]
    except SabirError as error:
        return str(error)


@pytest.mark.parametrize("name", ASSUMING.split())
def test_runs_with_other_sizes_are_those_of_the_interpreter(name):
    """The first input of each example is fed, in its shape and in others; all of its sizes are symbols."""
    operator, runs = STANDARD.find("", name), 0
    for example in examples_of(operator):
        x = example.inputs[0]
        if operator.at(example.opset) is not operator.versions[-1] or np.asarray(x).dtype == object:
            continue
        model, feeds = model_of(operator, example)
        port, *rest = model.graph.inputs
        for value in rest:
            model.graph.set_initializer(value, feeds[value.name])
            model.graph.inputs.remove(value)
        x, axes = feeds[port.name], enumerate(port.type.shape)
        dims = [parse_dim(f"n{i}") if isinstance(d, int) and d > 1 else d for i, d in axes]
        port.type = TensorType(port.type.element, tuple(dims))
        for value in model.graph.outputs:
            value.type = None
        compiled, reference = (sabir.Session(model, engine=e) for e in ("compiled", "reference"))
        for fed in (x, *others(x), x):
            found, expected = (result(session, {port.name: fed}) for session in (compiled, reference))
            where = f"{example} of {fed.shape}"
            assert isinstance(found, str) == isinstance(expected, str), where
            if isinstance(expected, str):
                assert found == expected, where
                continue
            runs += 1
            for y, wanted in zip(found, expected, strict=True):
                assert (y.dtype, y.shape) == (wanted.dtype, wanted.shape), where
                near = 2e-2 if y.itemsize < 4 else 1e-4
                np.testing.assert_allclose(y.astype(float), wanted.astype(float), near, near, err_msg=where)
    assert runs


def test_sizes_that_do_not_fit_end_as_in_the_interpreter():
    text = f"""{HEAD}g (float[n,c] x) => (y) <int64[2] k = {{4, -1}}> {{ y = Reshape (x, k) }}"""
    engine = Compiled(sabir.parse(text))
    assert engine.run({"x": np.ones((2, 6), np.float32)})["y"].shape == (4, 3)
    with pytest.raises(SabirError, match="Reshape"):
        engine.run({"x": np.ones((3, 3), np.float32)})


def test_an_axis_of_a_size_above_one_stays():
    text = f"{HEAD}g (float[1,n,1,m] x) => (y) {{ a = Relu (x)  b = Squeeze (a)  y = Neg (b) }}"
    engine = Compiled(sabir.parse(text))
    for shape in ((1, 3, 1, 4), (1, 1, 1, 4), (1, 1, 1, 1), (1, 0, 1, 3)):
        y = engine.run({"x": np.ones(shape, np.float32)})["y"]
        assert y.shape == tuple(n for n in shape if n != 1)
        assert (y == -1).all()
        assert not engine.explain({"x": list(shape)}).evaluated


def test_reasons_name_what_no_kernel_reads():
    text = f"{HEAD}g (float[n] x, string[k] s) => (y, z) {{ y = Gather (s, i)  z = Neg (x) }}".replace(
        "=> (y, z)", "=> (y, z) <int64[1] i = {0}>"
    )
    (call,) = Compiled(sabir.parse(text)).explain({"x": [3], "s": [2]}).evaluated
    assert call.reason.startswith("no kernel reads string[")


def test_what_is_assumed_of_sizes():
    found = Assumptions({"n": 6, "m": 3})
    with assuming(found):
        assert divided(2 * N, 2) == N
        assert at_least(N + 1, 1)
        assert not found.equal
        assert not found.ordered
        assert divided(N, 4) is None
        assert not found.equal
        assert divided(N, 3) == N // 3
        assert fixed(M) == 3
        assert smaller(N, 4) == 4
        assert larger(N, 4) == N
        assert found.equal == {(N, 3 * (N // 3)): None, (M, 3): None}
        assert larger(-N, 0) == 0
        assert smaller(N + 2, 1) == 1
        assert found.ordered == {(N, 4): None}
        before = dict(found.equal)

        @tentative()
        def refused():
            assert equal(N, 2 * M)
            raise NotLowered("as a room does")

        with pytest.raises(NotLowered):
            refused()
        assert found.equal == before


def test_without_feeds_nothing_is_assumed():
    unknown = parse_dim("k")
    for context in (assuming(Assumptions({"n": 6})), tentative()):
        with context:
            assert fixed(unknown) is None
            assert not at_least(unknown, 1)
            assert smaller(unknown, 4) is None
            assert divided(unknown, 2) is None
    assert fixed(7) == 7


def test_a_body_has_a_plan_for_each_order_of_sizes(monkeypatch):
    """Rows have as many columns as a part begins from the end, or fewer: two plans."""
    planned = []

    def made(body, pattern, sizes, make=SubPlans._planned):
        planned.append(make(body, pattern, sizes))
        return planned[-1]

    monkeypatch.setattr(SubPlans, "_planned", made)
    text = f"""{HEAD}g (float[n,c] x, bool d) => (y) <int64[1] k = {{-900}}, int64[1] l = {{-90000}}, int64[1] o = {{1}}, int64[1] m = {{-1}}> {{
        y = If (d) <then_branch = t () => (a) {{ p = Slice (x, k, l, o, m)  a = Neg (p) }},
                    else_branch = e () => (b) {{ b = Neg (x) }}> }}"""
    session = sabir.Session(sabir.parse(text), engine="compiled")
    for columns in (1000, 899, 1000, 950, 700):
        x = numbers(40, columns).astype(np.float32)
        y = session.run({"x": x, "d": np.bool_(1)})["y"]
        expected = -x[:, columns - 900 :: -1] if columns >= 900 else -x[:, :1]
        np.testing.assert_array_equal(y, expected)
    assert len(planned) == 2
    assert all(program.is_native for program in planned)


def test_groups_of_unknown_channels_are_one_kernel():
    """Whatever the sizes are, the groups of a tensor that lies row by row are a view of it."""
    model = sabir.parse(f"""{HEAD}g (float[n,c,h] x, float[c] s, float[c] b) => (y) {{
        y = GroupNormalization <num_groups = 2> (x, s, b) }}""")
    plan = Compiled(model).explain({"x": [2, 6, 5], "s": [6], "b": [6]})
    assert len(plan.kernels) == 1
    assert not plan.evaluated
