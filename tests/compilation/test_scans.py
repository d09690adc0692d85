"""Scan in kernels: a body of maps and products is the step of a recurrence, and all else is computed for all steps."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from support.lowered import kernels_only

ERROR = 2e-6
CELL = """g (float[b,{h}] h0, float[b,{h}] c0, float[t,b,3] x, float[3,{g}] w, float[{h},{g}] r, float[{g}] bias) => (hn, cn, ys, zs) {{
    hn, cn, ys, zs = Scan <num_scan_inputs = 1, body = step (float[b,{h}] h, float[b,{h}] c, float[b,3] xt)
      => (float[b,{h}] h1, float[b,{h}] c1, float[b,{h}] y, float[b,3] z) {{
        a = MatMul (xt, w)  q = MatMul (h, r)  s = Add (a, q)  sums = Add (s, bias)
        i, o, f, g = Split <axis = -1, num_outputs = 4> (sums)
        si = Sigmoid (i)  so = Sigmoid (o)  sf = Sigmoid (f)  tg = Tanh (g)  fc = Mul (sf, c)  ig = Mul (si, tg)
        c1 = Add (fc, ig)  tc = Tanh (c1)  h1 = Mul (so, tc)  y = Identity (h1)  z = Exp (xt) }}> (h0, c0, x) }}"""
STEPS = {
    "axes and directions": """g (float[4,5] s, float[4,t,5] x, float[t,4,5] z) => (float[4,5] e, float[4,5,t] y) {
        e, y = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
          scan_output_axes = [-1], scan_output_directions = [1],
          body = step (float[4,5] a, float[4,5] b, float[4,5] d) => (float[4,5] n, float[4,5] m) {
            p = Mul (a, b)  n = Add (p, d)  m = Tanh (n) }> (s, x, z) }""",
    "vectors, numbers and several states": """g (float[7] s, float[7] u, float[t] x) => (e, f, y) {
        e, f, y = Scan <num_scan_inputs = 1, body = step (float[7] a, float[7] b, float c) => (float[7] n, float[7] m, float[7] k) {
            two = Constant <value = float {2}> ()  v = Constant <value = float[1] {0.5}> ()
            p = Mul (a, c)  n = Add (p, v)  m = Div (a, two)  k = Sub (n, b) }> (s, u, x) }""",
    "a product with what the step computes": """g (float[b,6] s, float[t,b,6] x, float[6,6] w, float[6,6] r) => (e, y) {
        e, y = Scan <num_scan_inputs = 1, body = step (float[b,6] h, float[b,6] c) => (float[b,6] n, float[b,6] m) {
            p = MatMul (h, w)  z = Sigmoid (p)  q = Mul (z, h)  o = MatMul (q, r)  v = Add (o, c)
            n = Tanh (v)  m = Identity (h) }> (s, x) }""",
    "columns side by side, against the direction": """g (float[b,4] s, float[t,b,4] x, float[t,b,12] f, float[12,4] r, float[8,4] q) => (e, y, z) {
        e, y, z = Scan <num_scan_inputs = 2, scan_input_directions = [1, 1], scan_output_directions = [1, 0],
          body = step (float[b,4] h, float[b,4] c, float[b,12] k) => (float[b,4] n, float[b,12] m, float[b,4] d) {
            a = Add (h, c)  j = Concat <axis = -1> (a, h, a)  m = Mul (j, k)  o = MatMul (m, r)
            u = Concat <axis = -1> (a, a)  p = MatMul (u, q)  v = Add (o, p)  n = Tanh (v)  d = Sub (a, h) }> (s, x, f) }""",
    "no states": """g (float[t,b,6] x, float[6,2] w) => (y) {
        y = Scan <num_scan_inputs = 1, body = step (float[b,6] c) => (float[b,2] m) { p = MatMul (c, w)  m = Relu (p) }> (x) }""",
    "a state that forgets": """g (float[b,6] s, float[t,b,6] x) => (e, y) {
        e, y = Scan <num_scan_inputs = 1, body = step (float[b,6] h, float[b,6] c) => (float[b,6] n, float[b,6] m) {
            n = Exp (c)  m = Sub (h, c) }> (s, x) }""",
}
REFUSED = {
    "a constant of the body": """g (float[2,2] s, float[t,2,2] x) => (e, y) {
        e, y = Scan <num_scan_inputs = 1, body = step (float[2,2] h, float[2,2] c) => (float[2,2] n, float[2] m) {
            n = Add (h, c)  m = Constant <value = float[2] {3, 4}> () }> (s, x) }""",
    "the take": """g (float[2,2] s, float[t,2,2] x, float[9,2] table) => (e, y) {
        e, y = Scan <num_scan_inputs = 1, body = step (float[2,2] h, float[2,2] c) => (float[2,2] n, float[2,2,2] m) {
            n = Add (h, c)  a = Abs (n)  i = Cast <to = 7> (a)  m = Gather (table, i) }> (s, x) }""",
    "columns of several parts of a join": """g (float[2,2] s, float[t,2,2] x) => (e, y) {
        e, y = Scan <num_scan_inputs = 1, body = step (float[2,2] h, float[2,2] c) => (float[2,2] n, float[2,3] m) {
            n = Add (h, c)  j = Concat <axis = -1> (n, h, n)  k = Exp (j)
            m, unread = Split <axis = -1, num_outputs = 2> (k) }> (s, x) }""",
    "another rank": """g (float[2,2,2] s, float[t,2,2,2] x) => (e) {
        e = Scan <num_scan_inputs = 1, body = step (float[2,2,2] h, float[2,2,2] c) => (float[2,2,2] n) { n = Add (h, c) }> (s, x) }""",
    "carry int64": """g (int64[2,2] s, int64[t,2,2] x) => (e) {
        e = Scan <num_scan_inputs = 1, body = step (int64[2,2] h, int64[2,2] c) => (int64[2,2] n) { n = Add (h, c) }> (s, x) }""",
}  # fmt: skip


def parsed(text):
    return sabir.parse(f'<ir_version: 10, opset_import: ["" : 21]> {text}')


def feeds_of(model, **sizes):
    rng = np.random.default_rng(9)
    return {
        v.name: (rng.standard_normal([sizes.get(str(d)) or int(str(d)) for d in v.type.shape]) / 2).astype(
            v.type.element.dtype
        )
        for v in model.graph.inputs
    }


def same(got, expected, where):
    for name, y in expected.items():
        assert got[name].shape == y.shape, where
        np.testing.assert_allclose(got[name], y, rtol=ERROR, atol=ERROR, err_msg=str(where))


def test_a_cell_is_one_kernel_and_its_input_product_another():
    for hidden, time, batch in ((5, 4, 3), (20, 1, 2), (40, 5, 1), (150, 3, 2)):
        model = parsed(CELL.format(h=hidden, g=4 * hidden))
        feeds = feeds_of(model, t=time, b=batch)
        expected = sabir.Session(model, engine="reference").run(feeds)
        same(kernels_only(model, feeds), expected, (hidden, time, batch))
    kinds = [kernel.kind for kernel in Compiled(model).compile(feeds).explain().kernels]
    assert kinds.count("recurrence") == kinds.count("product") == 1


def test_what_a_step_may_be():
    for name, text in STEPS.items():
        model = parsed(text)
        for time, batch in ((3, 2), (1, 1), (6, 5)):
            feeds = feeds_of(model, t=time, b=batch)
            expected = sabir.Session(model, engine="reference").run(feeds)
            same(kernels_only(model, feeds), expected, (name, time, batch))


def test_no_steps_leave_the_states():
    model = parsed(STEPS["a state that forgets"])
    feeds = feeds_of(model, t=2, b=3)
    feeds["x"] = feeds["x"][:0]
    got = kernels_only(model, feeds)
    np.testing.assert_array_equal(got["e"], feeds["s"])
    assert got["y"].shape == (0, 3, 6)


@pytest.mark.parametrize("reason", REFUSED)
def test_other_bodies_are_repeated_for_each_slice(reason):
    model = parsed(REFUSED[reason])
    engine, interpreter = Compiled(model), sabir.Session(model, engine="reference")
    for time in (4, 1, 7):
        feeds = feeds_of(model, t=time)
        same(engine.run(feeds), interpreter.run(feeds), reason)
    explanation = engine.explain()
    kinds = {kernel.kind for kernel in explanation.kernels}
    assert "looptest" in kinds
    assert "recurrence" not in kinds
    assert not explanation.evaluated


@pytest.mark.parametrize("operands", ["x, w", "x, w, p", "x, w, p, q"])
def test_products_of_bytes_in_a_body_are_repeated_for_each_slice(operands):
    """No recurrence has them; an earlier version multiplied them without their zero points, in 8 bits."""
    text = f"""g (float[4] h, uint8[t,4] xs, uint8[4,4] w, uint8 p, uint8 q) => (float[4] e, float[t,4] ys) {{
        e, ys = Scan <num_scan_inputs = 1, body = step (float[4] a, uint8[4] x) => (float[4] n, float[4] y) {{
            m = MatMulInteger ({operands})  f = Cast <to = 1> (m)  n = Add (f, a)  y = Identity (n) }}> (h, xs) }}"""
    model = sabir.parse('<ir_version: 10, opset_import: ["" : 21]> ' + text)
    rng = np.random.default_rng(0)
    feeds = {
        "h": np.zeros(4, np.float32), "xs": rng.integers(0, 256, (3, 4)).astype(np.uint8),
        "w": rng.integers(0, 256, (4, 4)).astype(np.uint8), "p": np.uint8(7), "q": np.uint8(200),
    }  # fmt: skip
    compiled = Compiled(model)
    found, expected = compiled.run(feeds), sabir.evaluate(model, feeds)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    explanation = compiled.explain()
    assert not explanation.evaluated
    assert "looptest" in {kernel.kind for kernel in explanation.kernels}
