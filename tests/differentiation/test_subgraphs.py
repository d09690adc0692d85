"""Gradients through If and Scan: captures, states, scan inputs, orders, nesting, and second derivatives."""

import numpy as np
import pytest

import sabir
from support.gradients import ROOMS, SEED, check, differentiable_operators, gradient_model

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
BRANCHES = """then_branch = a () => (double[2,3] p) { s = Mul(t, w)  r = Exp(s)  p = Mul(r, x) },
    else_branch = b () => (double[2,3] q) { n = Tanh(w)  q = Sub(n, t) }"""
RUNNING = """body (double[2] h, double[2] v) => (double[2] n, double[2] o) {
    m = MatMul(h, w)  i = Add(m, v)  n = Tanh(i)  o = Mul(n, v) }"""
MODELS = {
    "If": f"g (bool k, double[2,3] x, double[3] w) => (double[2,3] y) {{ t = Tanh(x)  y = If(k) <{BRANCHES}> }}",
    "If with a known condition": f"g (double[2,3] x, double[3] w) => (double[2,3] y) {{ t = Tanh(x)"
    f"  k = Constant<value = bool {{0}}>()  y = If(k) <{BRANCHES}> }}",
    "If with a branch that no gradient enters": """g (bool k, double[2] x) => (double[2] y) { y = If(k) <
        then_branch = a () => (double[2] p) { p = Mul(x, x) },
        else_branch = b () => (double[2] q) { q = Constant<value = double[2] {1.0, 2.0}>() }> }""",
    "If with several outputs, one of them unused": """g (bool k, double[2] x) => (double[2] y) {
        a, b, c = If(k) <
          then_branch = t () => (double[2] p, double[2] q, double[2] r) { p = Exp(x) q = Mul(p, p) r = Identity(x) },
          else_branch = e () => (double[2] u, double[2] v, double[2] w) { u = Neg(x) v = Tanh(u) w = Exp(v) }>
        y = Mul(a, b) }""",
    "If in If": """g (bool k, bool j, double[2] x) => (double[2] y) { y = If(k) <
        then_branch = a () => (double[2] p) { e = Exp(x)  i = If(j) <
            then_branch = c () => (double[2] r) { t = Tanh(e)  r = Mul(t, x) },
            else_branch = d () => (double[2] s) { s = Neg(e) }>
          p = Mul(i, e) },
        else_branch = b () => (double[2] q) { q = Tanh(x) }> }""",
    "Scan": f"g (double[2] s, double[4,2] x, double[2,2] w) => (double[4,2] y) {{"
    f" z, y = Scan<num_scan_inputs = 1, body = {RUNNING}>(s, x) }}",
    "Scan, the final state": f"g (double[2] s, double[4,2] x, double[2,2] w) => (double[2] y) {{"
    f" y = Scan<num_scan_inputs = 1, body = {RUNNING}>(s, x) }}",
    "Scan, all outputs": f"g (double[2] s, double[4,2] x, double[2,2] w) => (double[4,2] y) {{ u = Exp(w)"
    f" z, o = Scan<num_scan_inputs = 1, body = {RUNNING.replace('(h, w)', '(h, u)')}>(s, x)  y = Mul(o, z) }}",
    "Scan backward": f"g (double[2] s, double[4,2] x, double[2,2] w) => (double[4,2] y) {{ z, y = Scan<"
    f"num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1], body = {RUNNING}>(s, x) }}",
    "Scan over other axes": f"g (double[2] s, double[2,4] x, double[2,2] w) => (double[2,4] y) {{ z, y = Scan<"
    f"num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], scan_input_directions = [1],"
    f" body = {RUNNING}>(s, x) }}",
    "Scan of symbolic length": f"g (double[B] s, double[N,B] x, double[B,B] w) => (double[N,B] y) {{"
    f" z, y = Scan<num_scan_inputs = 1, body = {RUNNING.replace('[2]', '[B]')}>(s, x) }}",
    "Scan without residuals": """g (double[2] s, double[3,2] x) => (double[2] y) {
        y = Scan<num_scan_inputs = 1, body = b (double[2] h, double[2] v) => (double[2] n) { n = Add(h, v) }>(s, x) }""",
    "Scan whose steps need no gradient to read": """g (double[2] s, float[3] x) => (double[2] y) {
        y = Scan<num_scan_inputs = 1, body = b (double[2] h, float v) => (double[2] n) { n = Add(h, h) }>(s, x) }""",
    "Scan with states that change places, and a counter": """g (double[2] s, double[3,2] x) => (double[2] y) {
        i = Constant<value = int64 {0}>()  one = Constant<value = double[2] {1.0, 2.0}>()
        j, p, y = Scan<num_scan_inputs = 1, body = b (int64 i, double[2] p, double[2] q, double[2] v) =>
          (int64 n, double[2] q1, double[2] p1) {
            l = Constant<value = int64 {1}>()  n = Add(i, l)  d = Cast<to = 11>(n)
            c = Mul(v, d)  p1 = Add(p, c)  q1 = Tanh(q) }>(i, one, s, x) }""",
    "Scan with constants in its body": """g (double[2] s, double[3,2] x) => (double[2] y) {
        y = Scan<num_scan_inputs = 1, body = b (double[2] h, double[2] v) => (double[2] n)
          <double[2] w = {0.5, -0.5}> { c = Constant<value = double[2] {2.0, 3.0}>()
            m = Mul(h, c)  l = Mul(m, w)  n = Add(l, v) }>(s, x) }""",
    "Scan in If": f"""g (bool k, double[2] s, double[3,2] x, double[2,2] w) => (double[2] y) {{ y = If(k) <
        then_branch = a () => (double[2] p) {{ e = Exp(s)
          z, o = Scan<num_scan_inputs = 1, body = {RUNNING}>(e, x)  p = Mul(z, e) }},
        else_branch = b () => (double[2] q) {{ q = Neg(s) }}> }}""",
    "If in Scan": """g (double[2] s, double[4,2] x, double[2] w) => (double[2] y) {
        y, z = Scan<num_scan_inputs = 1, body = b (double[2] h, double[2] v) => (double[2] n, double[2] o) {
            t = Tanh(v)  a = ReduceSum<keepdims = 0>(v)  zero = Constant<value = double {0.0}>()
            k = Greater(a, zero)
            n, o = If(k) <
              then_branch = c () => (double[2] p, double[2] p2) { e = Mul(h, w)  p = Mul(e, t)  p2 = Exp(e) },
              else_branch = d () => (double[2] q, double[2] q2) { q = Sub(h, t)  q2 = Tanh(q) }> }>(s, x) }""",
    "If in Scan, of symbolic shapes": """g (double[B] s, double[N,B] x, double[B] w) => (double[B] y) {
        y = Scan<num_scan_inputs = 1, body = b (double[B] h, double[B] v) => (double[B] n) {
            a = ReduceSum<keepdims = 0>(v)  zero = Constant<value = double {0.0}>()  k = Greater(a, zero)
            n = If(k) <
              then_branch = c () => (double[B] p) { e = Mul(h, w)  f = Exp(e)  p = Tanh(f) },
              else_branch = d () => (double[B] q) { q = Sub(h, v) }> }>(s, x) }""",
    "Scan in Scan": """g (double[2] s, double[2,3,2] x, double[2] w) => (double[2,3,2] y) {
        z, y = Scan<num_scan_inputs = 1, body = b (double[2] h, double[3,2] r) => (double[2] n, double[3,2] o) {
            e = Exp(h)
            i, o = Scan<num_scan_inputs = 1, body = c (double[2] p, double[2] v) => (double[2] q, double[2] u) {
                m = Mul(p, w)  a = Add(m, v)  q = Tanh(a)  u = Mul(q, e) }>(h, r)
            n = Mul(i, w) }>(s, x) }""",
}  # fmt: skip
REFUSED = {"Scan, the final state"}  # onnxruntime wants every output of a Scan to be named
TWICE = (
    "If",
    "If in If",
    "Scan",
    "Scan backward",
    "Scan over other axes",
    "Scan in If",
    "If in Scan",
    "Scan in Scan",
)


def parsed(name):
    return sabir.parse(HEAD + MODELS[name])


def feeds_of(model, *, seed=0, length=3):
    random, feeds = np.random.default_rng(seed), {}
    for value in model.graph.inputs:
        shape = [d if isinstance(d, int) else {"N": length, "B": 2}[str(d)] for d in value.shape]
        kind = value.element.dtype
        feeds[value.name] = np.array(random.standard_normal(shape) if kind.kind == "f" else True, kind)
    return feeds


def variants(model):
    """The feeds, with both values of each condition."""
    feeds = feeds_of(model)
    flags = [n for n, x in feeds.items() if x.dtype == np.bool_]
    for chosen in np.ndindex(*(2,) * len(flags)):
        yield {**feeds, **{n: np.array(c, np.bool_) for n, c in zip(flags, chosen, strict=True)}}


def doubles(feeds):
    return [n for n, x in feeds.items() if x.dtype == np.float64]


@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_central_differences(name):
    model = parsed(name)
    for feeds in variants(model):
        _, _, runs = check(model, feeds, "y", doubles(feeds))
        assert runs == (name not in REFUSED)


@pytest.mark.parametrize("name", MODELS)
def test_every_operator_in_a_gradient_has_a_gradient(name):
    model = parsed(name)
    found = gradient_model(model, "y", doubles(feeds_of(model)))
    assert differentiable_operators(found) - {"Cast"} <= set(ROOMS)  # Cast of an integer passes nothing on


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_equal_central_differences(name):
    model = parsed(name)
    for feeds in variants(model):
        for of in doubles(feeds):
            found = gradient_model(model, "y", [of])
            seed = np.random.default_rng(1).standard_normal(sabir.evaluate(model, feeds)["y"].shape)
            twice = {**feeds, "first": seed}
            for value in found.graph.inputs:
                value.name = "first" if value.name == SEED else value.name
            check(found, twice, f"d_y_d_{of}", doubles(twice))


def test_the_second_derivative_of_softmax():
    model = sabir.parse(HEAD + "g (double[2,3] x) => (double[2,3] y) { y = Softmax<axis = -1>(x) }")
    found = gradient_model(model, "y", ["x"], seed="first")
    feeds = {"x": np.linspace(-1, 1, 6).reshape(2, 3), "first": np.array([[1.0, -2, 3], [0.5, 0, -1]])}
    check(found, feeds, "d_y_d_x", ["x", "first"])


@pytest.mark.parametrize("name", ["Scan", "Scan of symbolic length"])
def test_no_steps(name):
    model = sabir.parse(HEAD + MODELS[name].replace("[4,2]", "[0,2]"))
    feeds = feeds_of(model, length=0)
    found = gradient_model(model, "y", doubles(feeds))
    results = sabir.evaluate(found, {**feeds, SEED: np.zeros((0, 2))})
    for n in doubles(feeds):
        np.testing.assert_array_equal(results[f"d_y_d_{n}"], np.zeros(feeds[n].shape))


def test_a_slice_is_read_again_and_other_residuals_are_stacked():
    found = gradient_model(parsed("Scan"), "y", ["s", "x", "w"])
    forward, backward = [n for n in found.graph if n.op == "Scan"]
    x = found.graph.value("x")
    assert x in forward.inputs
    assert x in backward.inputs
    # the states before and after a step; both are copied, as neither may be an output twice
    assert len(forward.outputs) == 4
    body = forward.attributes["body"].value
    assert [v.node.op for v in list(body.outputs)[2:]] == ["Identity", "Identity"]


def test_the_gradient_of_a_scan_input_that_nothing_wants_is_not_computed():
    model = parsed("Scan")
    found = gradient_model(model, "y", ["w"])
    _, backward = [n for n in found.graph if n.op == "Scan"]
    assert [str(v.type) for v in backward.outputs] == ["double[2]", "double[2,2]"]  # no slices


def test_constants_of_a_body_are_copied_instead_of_stacked():
    found = gradient_model(parsed("Scan with constants in its body"), "y", ["s"])
    forward, backward = [n for n in found.graph if n.op == "Scan"]
    assert len(forward.outputs) == 1
    body = backward.attributes["body"].value
    assert [v.name for v in body.initializers] == ["w_1"]


def test_of_a_value_whose_shape_alone_is_read_the_shape_is_stacked():
    text = """g (double[B] s, double[N,B] x) => (double[B] y) { y = Scan<num_scan_inputs = 1, body =
        b (double[B] h, double[B] v) => (double[B] n) { t = Add(h, v)  u = ReduceSum<keepdims = 0>(t)  n = Mul(u, v) }>(s, x) }"""
    model = sabir.parse(HEAD + text)
    _, _, runs = check(model, feeds_of(model), "y", ["s", "x"])
    assert runs
    forward, _ = [n for n in gradient_model(model, "y", ["s", "x"]).graph if n.op == "Scan"]
    assert sorted(str(v.type.element) for v in forward.outputs) == ["double", "double", "int64"]


def test_a_branch_outputs_an_empty_tensor_for_a_residual_of_the_other():
    found = gradient_model(parsed("If"), "y", ["x"])
    forward = next(n for n in found.graph if n.op == "If")
    then, other = (forward.attributes[n].value for n in ("then_branch", "else_branch"))
    ops = [(a.node.op, b.node.op) for a, b in zip(then.outputs, other.outputs, strict=True)]
    assert ops == [("Mul", "Sub"), ("Identity", "Constant")]
    assert other.outputs[1].node.attributes["value"].value.shape == (0, 0)


def test_the_model_is_unchanged():
    model = parsed("Scan in If")
    before = sabir.text(model)
    gradient_model(model, "y", ["s"])
    assert sabir.text(model) == before


def test_the_declared_types_of_the_forward_model_are_unchanged():
    found = gradient_model(parsed("If"), "y", ["x"])
    assert found.graph.value("t").type is None
