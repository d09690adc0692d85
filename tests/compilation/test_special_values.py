"""NaN, infinities, -0, subnormal and very large numbers: what the interpreter makes of them; and composites in float64."""

import math

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.evaluation import Runner

HEAD = '<ir_version: 11, opset_import: ["" : 24]> g'
UNARY = """
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN
    LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish
    Tan Tanh ThresholdedRelu Identity
""".split()  # ruff: ignore[split-static-string]  a list of words
BINARY = "Add Sub Mul Div Max Min Pow PRelu Equal Less LessOrEqual Greater GreaterOrEqual Mean Sum".split()  # ruff: ignore[split-static-string]  as above
EITHER_ZERO = {"Elu", "Relu", "Selu", "Celu", "Max", "Min"}  # the greater of 0 and -0 may be either
FOLDS = """
    ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp ReduceLogSum
""".split()  # ruff: ignore[split-static-string]  as above
PLACES = ("ArgMax", "ArgMin")
ROWS = ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")
TYPES = {"float": np.float32, "double": np.float64}


def specials(dtype):
    """Numbers at the ends of what a function may distinguish, of both signs."""
    info = np.finfo(dtype)
    ends = [0, info.smallest_subnormal, info.tiny, info.tiny * 3, info.max, np.inf]
    usual = [1e-30, 1e-5, 0.25, 0.5, 1, 1.5, 2.5, 3, 20, 88, 104, 700, 1e5, 2.0**24 + 1, 1e30]
    both = np.array([*ends, *usual], dtype)
    return np.concatenate([[np.nan], both, -both]).astype(dtype)


def run_both(kind, inputs, nodes, outputs, feeds, constants=""):
    """The outputs of nodes on the compiled engine and on the interpreter, by name; all become kernels."""
    declared = ", ".join(f"{k}[] {name}" for name, k in outputs.items())
    model = sabir.parse(f"{HEAD} ({inputs}) => ({declared}) {constants} {{ {nodes} }}".replace("KIND", kind))
    compiled = Compiled(model)
    ours, theirs = compiled.run(feeds), Runner(model).run(feeds)
    assert all(p.is_native for p in compiled._plans)
    return {name: (ours[name], theirs[name]) for name in outputs}


def same(name, ours, theirs, ulps, operands=()):
    """Assert that numbers differ by some units of the last place, and not in their kind or the sign of 0."""
    assert ours.dtype == theirs.dtype
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        return
    with np.errstate(all="ignore"):
        near = np.abs(ours - theirs) <= ulps * np.spacing(np.abs(theirs))
    agree = np.where(np.isfinite(theirs), near, ours == theirs)
    agree &= (np.signbit(ours) == np.signbit(theirs)) | (name in EITHER_ZERO)
    agree |= np.isnan(ours) & np.isnan(theirs)
    wrong = np.flatnonzero(~agree)[:5]
    shown = [[x.flat[i] for x in (*operands, ours, theirs)] for i in wrong if i < ours.size]
    assert agree.all(), (name, shown)


@pytest.mark.parametrize("kind", TYPES)
def test_functions_of_special_values(kind):
    x = specials(TYPES[kind])
    names = [*UNARY, *(["Celu"] if kind == "float" else [])]
    nodes = " ".join(f"y{i} = {name}(x)" for i, name in enumerate(names))
    outputs = {f"y{i}": "bool" if name.startswith("Is") else kind for i, name in enumerate(names)}
    found = run_both(kind, "KIND[N] x", nodes, outputs, {"x": x})
    for i, name in enumerate(names):
        same(name, *found[f"y{i}"], 8, [x])


@pytest.mark.parametrize("kind", TYPES)
def test_pairs_of_special_values(kind):
    some = specials(TYPES[kind])
    a, b = np.repeat(some, some.size), np.tile(some, some.size)
    nodes = " ".join(f"y{i} = {name}(a, b)" for i, name in enumerate(BINARY))
    nodes += " m = Mod <fmod=1> (a, b) w = Where(y8, a, b)"
    outputs = {f"y{i}": "bool" if name in BINARY[8:13] else kind for i, name in enumerate(BINARY)}
    found = run_both(kind, "KIND[N] a, KIND[N] b", nodes, outputs | {"m": kind, "w": kind}, {"a": a, "b": b})
    for i, name in enumerate([*BINARY, "Mod", "Where"]):
        same(name, *found[f"y{i}" if i < len(BINARY) else "mw"[i - len(BINARY)]], 8, [a, b])


def rows_with(dtype, length, rng):
    """Rows of numbers among which, at each place in turn, a special one is, or two."""
    some = [np.nan, np.inf, -np.inf, -0.0, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max]
    places = sorted({0, 1, length // 2, length - 2, length - 1} & {*range(length)})
    rows = [rng.standard_normal(length), *(np.full(length, v) for v in some)]
    for value in some:
        for place in places:
            row = rng.standard_normal(length)
            row[place] = value
            rows.append(row)
            row = row.copy()
            row[length - 1 - place] = rng.choice([np.nan, np.inf, -np.inf, 0.0])
            rows.append(row)
    return np.array(rows).astype(dtype)


def alike(name, ours, theirs, unit=None):
    """Assert that sums are near, and that NaN and infinities are where they should be."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    tolerance = 0 if ours.dtype.kind != "f" else 2e3 * (unit or np.finfo(ours.dtype).eps)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_folds_and_rows_of_special_values(kind, axis):
    nodes = " ".join(f"{name} = {name} <keepdims=0> (x, a)" for name in FOLDS)
    constants = f"<int64[1] a = {{{axis}}}>"
    for name in PLACES:
        nodes += f" {name} = {name} <axis={axis}> (x)"
        nodes += f" {name}Last = {name} <axis={axis}, select_last_index=1> (x)"
    nodes += "".join(f" {name} = {name} <axis={axis}> (x)" for name in ROWS)
    outputs = dict.fromkeys([*FOLDS, *ROWS], kind) | {
        f"{p}{e}": "int64" for p in PLACES for e in ("", "Last")
    }
    for length in (1, 2, 3, 7, 16, 33, 100):
        x = rows_with(TYPES[kind], length, np.random.default_rng(length))
        x = x if axis else np.ascontiguousarray(x.T)
        found = run_both(kind, "KIND[M,N] x", nodes, outputs, {"x": x}, constants)
        usual = ~np.isfinite(x) | (x == 0) | ((np.abs(x) > 1e-30) & (np.abs(x) < 1e30))
        few = usual.all(axis)  # products of others overflow in one order, and not in another
        for name, (ours, theirs) in found.items():
            kept = few if name == "ReduceProd" else ...
            alike(f"{name} over {length}", ours[kept], theirs[kept])


@pytest.mark.parametrize("kind", TYPES)
def test_normalisations_of_special_values(kind):
    nodes = "l = LayerNormalization(x, s, b) r = RMSNormalization(x, s)"
    for length in (1, 3, 16, 33):
        x = rows_with(TYPES[kind], length, np.random.default_rng(length))
        x = x[np.abs(x).max(1, where=np.isfinite(x), initial=0) < 1e30]  # whose squares are no infinities
        feeds = {"x": x, "s": np.linspace(-1, 2, length).astype(x.dtype), "b": np.ones(length, x.dtype)}
        found = run_both(kind, "KIND[M,N] x, KIND[N] s, KIND[N] b", nodes, {"l": kind, "r": kind}, feeds)
        for name, pair in found.items():
            alike(
                f"{name} of {length}", *pair, unit=np.finfo(np.float32).eps
            )  # in which the interpreter computes


@pytest.mark.parametrize("kind", TYPES)
def test_attention_to_special_values(kind):
    rng = np.random.default_rng(0)
    nodes = "p = MatMul(q, k) m = Add(p, mask) s = Softmax(m) y = MatMul(s, v)"
    for keys in (1, 5, 16, 37):
        q, k, v = (rng.standard_normal(s).astype(TYPES[kind]) for s in ((9, 4), (4, keys), (keys, 6)))
        mask = np.zeros((9, keys), TYPES[kind])
        mask[1, 0], mask[2, -1], mask[3], mask[4, :-1], mask[5, 0] = -np.inf, np.nan, -np.inf, -np.inf, np.inf
        q[6, 1], q[7, 0], v[-1, 2], v[0, 3] = np.inf, np.nan, np.nan, np.inf
        feeds = {"q": q, "k": k, "v": v, "mask": mask}
        inputs = "KIND[M,D] q, KIND[D,N] k, KIND[N,E] v, KIND[M,N] mask"
        alike(f"{keys} keys", *run_both(kind, inputs, nodes, {"y": kind}, feeds)["y"])


# ---------------------------------------------------------------- composites in double


def erf(x):
    return np.array([math.erf(v) for v in x.flat]).reshape(x.shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def most(x):
    return np.abs(x).max(-1, keepdims=True)


COMPOSITES = {  # a node of x, the same in double, and a bound of the error in units of float
    "Gelu(x)": (lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, lambda x, y: 4 * abs(y) + abs(x)),
    'Gelu <approximate="tanh"> (x)': (
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        lambda x, y: 4 * abs(y) + 2 * abs(x),
    ),
    "Swish(x)": (lambda x: x / (1 + np.exp(-x)), lambda x, y: 4 * abs(y) + 1e-36 * abs(x)),
    "Mish(x)": (lambda x: x * np.tanh(np.logaddexp(0, x)), lambda x, y: 8 * abs(y) + 1e-36 * abs(x)),
    "Softplus(x)": (lambda x: np.logaddexp(0, x), lambda _, y: 4 * y),
    "Selu(x)": (
        lambda x: 1.05070102214813232421875 * np.where(x > 0, x, 1.67326319217681884765625 * np.expm1(x)),
        lambda _, y: 4 * abs(y),
    ),
    "Softmax(x)": (softmax, lambda x, y: (8 + 2 * most(x)) * y + 1e-37),
    "LogSoftmax(x)": (lambda x: np.log(softmax(x)), lambda x, y: 4 * abs(y) + 4 * most(x) + 4),
    "LayerNormalization(x, one)": (normalised, lambda _, y: 8 * abs(y) + 8 * most(y)),
    "ReduceLogSumExp(x, last)": (
        lambda x: np.log(np.exp(x).sum(-1, keepdims=True)),
        lambda x, y: 4 * abs(y) + 4 * most(x),
    ),
    "ReduceL2(x, last)": (lambda x: np.sqrt((x**2).sum(-1, keepdims=True)), lambda _, y: 8 * y),
    "ReduceMean(x, last)": (lambda x: x.mean(-1, keepdims=True), lambda x, y: 4 * abs(y) + 4 * most(x)),
}


@pytest.mark.parametrize("scale", [1e-4, 0.1, 1, 8, 40])
def test_composites_are_near_those_in_double(scale):
    x = (np.random.default_rng(0).standard_normal((301, 77)) * scale).astype(np.float32)
    nodes = " ".join(f"y{i} = {node}" for i, node in enumerate(COMPOSITES))
    constants = f"<int64[1] last = {{-1}}, float[77] one = {{{','.join(['1.0'] * 77)}}}>"
    outputs = {f"y{i}": "float" for i in range(len(COMPOSITES))}
    found = run_both("float", "float[M,77] x", nodes, outputs, {"x": x}, constants)
    unit, wide = np.finfo(np.float32).eps, x.astype(np.float64)
    for (node, (function, bound)), (ours, _) in zip(COMPOSITES.items(), found.values(), strict=True):
        exact = function(wide)
        worst = (np.abs(ours - exact) / unit / (bound(wide, exact) + 1e-37)).max()
        assert worst <= 1, (node, worst)


@pytest.mark.parametrize(("kind", "far"), [("float", 100), ("double", 730)])
def test_weights_of_attention_that_are_subnormal_are_zero(kind, far):
    """Masks of -100 give rows of them, which processors multiply slowly; Softmax alone keeps them."""
    model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({kind}[2,3,5,4] q, {kind}[2,3,4,5] k, {kind}[2,3,5,4] v, {kind}[5,5] mask)
            => ({kind}[2,3,5,4] y, {kind}[5,5] alone)
        {{ p = MatMul (q, k) m = Add (p, mask) w = Softmax (m) y = MatMul (w, v) alone = Softmax (mask) }}""")
    dtype = {"float": np.float32, "double": np.float64}[kind]
    q = np.zeros((2, 3, 5, 4), dtype)  # all scores are those of the mask
    v = np.full((2, 3, 5, 4), np.finfo(dtype).max / 8, dtype)
    v[:, :, 0] = 0
    mask = np.full((5, 5), -far, dtype)
    mask[:, 0] = 0
    compiled = Compiled(model)
    found = compiled.run({"q": q, "k": q.swapaxes(-1, -2), "v": v, "mask": mask})
    assert "attention" in str(compiled.explain())
    assert (found["y"] == 0).all()  # else the largest number times a subnormal one
    assert (found["alone"][:, 1:] > 0).all()
    assert (found["alone"][:, 1:] < np.finfo(dtype).tiny).all()
