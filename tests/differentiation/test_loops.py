"""Gradients through Loop, SequenceMap, sequences and optionals: trip counts, shapes that change, captures, nesting."""

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from support.gradients import ROOMS, SEED, check, differentiable_operators, gradient_model

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
BODY = """body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k, double[2] o) {
    d = Identity(c)  m = Mul(h, w)  k = Tanh(m)  o = Mul(k, w) }"""
DOUBLED = """zero = Constant<value = int64[1] {0}>()  size = Constant<value = int64[2] {2, 1}>()
    flat = Constant<value = int64[1] {-1}>()  u = Unsqueeze(t, zero)  e = Expand(u, size)"""
MODELS = {
    "the final state": f"g (int64 n, double[2] s, double[2] w) => (double[2] y) {{ y, z = Loop<{BODY}>(n, , s) }}",
    "stacked": f"g (int64 n, double[2] s, double[2] w) => (double[N,2] y) {{ z, y = Loop<{BODY}>(n, , s) }}",
    "no residual": """g (int64 n, double[2] s, double[2] w) => (double[2] y) { y = Loop<
        body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k) { d = Identity(c)  k = Add(h, w) }>(n, , s) }""",
    "a state that nothing wants": """g (int64 n, double[2] s, double[2] w) => (double[2] y) {
        one = Constant<value = int64 {1}>()  j, y = Loop<
        body = b (int64 i, bool c, int64 j, double[2] h) => (bool d, int64 l, double[2] k) {
            d = Identity(c)  l = Add(j, one)  f = Cast<to = 11>(l)  m = Mul(h, f)  k = Mul(m, w) }>(n, , one, s) }""",
    "a condition": """g (double[2] s, double[2] w) => (double[2] y) { yes = Constant<value = bool {1}>()  y = Loop<
        body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k) {
            three = Constant<value = int64 {3}>()  d = Less(i, three)  m = Mul(h, w)  k = Tanh(m) }>(, yes, s) }""",
    "a state that grows": f"""g (int64 n, double[2] s, double[2] w) => (double[M] y) {{ y = Loop<
        body = b (int64 i, bool c, double[p] h) => (bool d, double[q] k) {{
            d = Identity(c)  t = Tanh(h)  {DOUBLED}  r = Reshape(e, flat)  k = Mul(r, r) }}>(n, , s) }}""",
    "branches of several shapes": f"""g (int64 n, double[2] s, double[2] w) => (double[M] y) {{ y = Loop<
        body = b (int64 i, bool c, double[p] h) => (bool d, double[q] k) {{
            d = Identity(c)  one = Constant<value = int64 {{1}}>()  t = Tanh(h)  f = Less(i, one)
            k = If(f) <
              then_branch = a () => (double[v] x) {{ {DOUBLED}  x = Reshape(e, flat) }},
              else_branch = o () => (double[p] z) {{ z = Mul(t, t) }}> }}>(n, , s) }}""",
    "Loop in Loop": """g (int64 n, double[2] s, double[2] w) => (double[2] y) { y = Loop<
        body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k) {
            d = Identity(c)  e = Mul(h, w)  k = Loop<
                body = b2 (int64 i2, bool c2, double[2] h2) => (bool d2, double[2] k2) {
                    d2 = Identity(c2)  m = Mul(h2, h)  k2 = Tanh(m) }>(i, , e) }>(n, , s) }""",
    "Loop that grows in Loop": f"""g (int64 n, double[2] s, double[2] w) => (double[2] y) {{ y = Loop<
        body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k) {{
            d = Identity(c)  m = Mul(h, w)  g1 = Loop<
                body = b2 (int64 i2, bool c2, double[p] h2) => (bool d2, double[q] k2) {{
                    d2 = Identity(c2)  m2 = Mul(h2, h2)  t = Tanh(m2)  {DOUBLED}  k2 = Reshape(e, flat) }}>(i, , m)
            z = ReduceSum<keepdims = 0>(g1)  k = Mul(z, m) }}>(n, , s) }}""",
    "Loop in Scan": """g (double[2] s, double[3,2] x, double[2] w) => (double[2] y) {
        y = Scan<num_scan_inputs = 1, body = b (double[2] h, double[2] v) => (double[2] k) {
            n = Constant<value = int64 {2}>()  e = Mul(h, v)  k = Loop<
                body = b2 (int64 i2, bool c2, double[2] h2) => (bool d2, double[2] k2) {
                    d2 = Identity(c2)  m2 = Mul(h2, w)  k2 = Tanh(m2) }>(n, , e) }>(s, x) }""",
    "a sequence as state": """g (int64 n, double[2] s, double[2] w) => (double[M] y) {
        q = SequenceConstruct(s)  found, last = Loop<
        body = b (int64 i, bool c, seq(double[2]) a, double[2] h) => (bool d, seq(double[2]) a2, double[2] k) {
            d = Identity(c)  m = Mul(h, w)  k = Tanh(m)  a2 = SequenceInsert(a, k) }>(n, , q, s)
        y = ConcatFromSequence<axis = 0>(found) }""",
    "a sequence that a step reads": """g (int64 n, double[2] s) => (double[2] y) {
        q = SequenceConstruct(s, s)  found, y = Loop<
        body = b (int64 i, bool c, seq(double[2]) a, double[2] h) => (bool d, seq(double[2]) a2, double[2] k) {
            d = Identity(c)  m = SequenceAt(a, i)  k = Mul(h, m)  a2 = SequenceInsert(a, k) }>(n, , q, s) }""",
    "a queue": """g (int64 n, double[2] s, double[2] w) => (double[2] y) {
        t = Tanh(s)  q = SequenceConstruct(s, t, w)  found, y = Loop<
        body = b (int64 i, bool c, seq(double[2]) a, double[2] h) => (bool d, seq(double[2]) a3, double[2] k) {
            d = Identity(c)  z = Constant<value = int64 {0}>()  m = SequenceAt(a, z)  k = Mul(h, m)
            a2 = SequenceErase(a, z)  a3 = SequenceInsert(a2, k) }>(n, , q, s) }""",
    "a sequence of items that grow": """g (int64 n, double[2] s, double[2] w) => (double[M] y) {
        q = SequenceConstruct(s, w)  found = Loop<
        body = b (int64 i, bool c, seq(double[]) a) => (bool d, seq(double[]) a2) {
            d = Identity(c)  l = Constant<value = int64 {-1}>()  m = SequenceAt(a, l)  k = SequenceAt(a, i)
            e = Concat<axis = 0>(m, k)  f = Mul(e, e)  a2 = SequenceInsert(a, f) }>(n, , q)
        y = ConcatFromSequence<axis = 0>(found) }""",
    "a captured sequence": """g (int64 n, double[3,2] s, double[2] w) => (double[2] y) {
        q = SplitToSequence<keepdims = 0>(s)  y = Loop<
        body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k) {
            d = Identity(c)  m = SequenceAt(q, i)  e = Mul(m, h)  k = Tanh(e) }>(n, , w) }""",
    "positions": """g (double[2] s, double[2] w) => (double[2] y) {
        a = Tanh(s)  last = Constant<value = int64 {-1}>()  first = Constant<value = int32[1] {0}>()
        q = SequenceConstruct(s, w, a)  q2 = SequenceInsert(q, w, last)  q3 = SequenceErase(q2, first)
        q4 = SequenceInsert(q3, a)  q5 = SequenceErase(q4)  b = SequenceAt(q5, last)  c = SequenceAt(q3, first)
        d = ConcatFromSequence<axis = 0, new_axis = 1>(q3)  e = ReduceSum<keepdims = 0>(d)  f = Mul(b, c)  y = Mul(f, e) }""",
    "SequenceMap": """g (double[5,2] s, double[2] w, double[2] v) => (double[5,2] y) {
        two = Constant<value = int64 {2}>()  q = SplitToSequence(s, two)  r = SequenceMap<
        body = b (double[a,b] x, double[a,b] x2, double[2] u) => (double[a,b] z) {
            t = Tanh(x)  m = Mul(t, u)  o = Mul(m, v)  z = Mul(o, x2) }>(q, q, w)
        y = ConcatFromSequence<axis = 0>(r) }""",
    "a sequence in a branch": """g (bool f, double[2] s) => (double[2] y) { i = Constant<value = int64 {0}>()
        y = If(f) <
          then_branch = t () => (double[2] p) { q = SequenceConstruct(s, s)  a = SequenceAt(q, i)  b = Tanh(a)  p = Mul(a, b) },
          else_branch = e () => (double[2] r) { r = Exp(s) }> }""",
    "optionals": """g (bool f, double[2] s) => (double[2] y) { a = Tanh(s)
        o = If(f) <
          then_branch = t () => (optional(double[2]) p) { p = Optional(a) },
          else_branch = e () => (optional(double[2]) r) { r = Optional(s) }>
        m = OptionalGetElement(o)  m2 = OptionalGetElement(o)  y = Mul(m, m2) }""",
}  # fmt: skip
REFUSED = {
    "optionals"
}  # onnxruntime infers no type of an element that a branch takes from an optional around it


def feeds_of(model, count):
    random = np.random.default_rng(3)
    feeds = {v.name: random.standard_normal(v.shape) for v in model.graph.inputs if v.element.is_float}
    given = {"n": np.array(count), "f": np.array(count > 0)}
    return {v.name: given.get(v.name, feeds.get(v.name)) for v in model.graph.inputs}


def doubles(feeds):
    return [n for n, x in feeds.items() if x.dtype == np.float64]


@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_central_differences(name):
    model = sabir.parse(HEAD + MODELS[name])
    counts = (0, 1, 3) if "int64 n" in MODELS[name] else (0, 1) if "bool f" in MODELS[name] else (1,)
    for count in counts:
        feeds = feeds_of(model, count)
        *_, runs = check(model, feeds, "y", doubles(feeds), compare=name not in REFUSED)
        assert runs == (name not in REFUSED)


@pytest.mark.parametrize("name", MODELS)
def test_every_operator_in_a_gradient_has_a_gradient(name):
    model = sabir.parse(HEAD + MODELS[name])
    found = gradient_model(model, "y", doubles(feeds_of(model, 1)))
    integers = {"Cast", "Gather", "SequenceEmpty"}  # of integers, or of nothing
    assert differentiable_operators(found) - integers <= set(ROOMS)


@pytest.mark.parametrize(
    "name",
    ["a condition", "positions", "SequenceMap", "a sequence in a branch", "a sequence that a step reads"],
)
def test_second_derivatives_equal_central_differences(name):
    model = sabir.parse(HEAD + MODELS[name])
    feeds = feeds_of(model, 1)
    for of in doubles(feeds):
        found = gradient_model(model, "y", [of], seed="weights")
        weights = np.random.default_rng(1).standard_normal(sabir.evaluate(model, feeds)["y"].shape)
        check(
            found, {**feeds, "weights": weights}, f"d_y_d_{of}", [*doubles(feeds), "weights"], compare=False
        )


def test_a_loop_that_may_not_run_has_a_loop_as_gradient_and_others_a_scan():
    for name, expected in (("the final state", ["Loop", "Loop"]), ("a condition", ["Loop", "Scan"])):
        model = sabir.parse(HEAD + MODELS[name])
        found = gradient_model(model, "y", ["s"])
        assert [n.op for n in found.graph if n.graphs] == expected


def test_residuals_that_change_their_shape_are_kept_in_a_sequence():
    model = sabir.parse(HEAD + MODELS["a state that grows"])
    forward, _ = [n for n in gradient_model(model, "y", ["s"]).graph if n.graphs]
    assert {str(v.type) for v in forward.outputs} >= {"seq(double[])"}


def test_a_shape_that_differs_from_step_to_step_of_a_scan_is_computed_again():
    text = """g (double[2] s, double[4,2] x) => (double[2] y) {
      y = Scan<num_scan_inputs = 1, body = b (double[2] h, double[2] v) => (double[2] n) {
        k = ReduceSum<keepdims = 0>(v)  zero = Constant<value = double {0.0}>()  c = Greater(k, zero)
        n = If(c) <
          then_branch = t () => (double[2] p) { f = Greater(v, zero)  i = NonZero(f)  j = Shape<start = 1>(i)
            e = Expand(k, j)  q = Mul(e, e)  r = ReduceSum<keepdims = 0>(q)  p = Add(h, r) },
          else_branch = e () => (double[2] q2) { q2 = Tanh(h) }> }>(s, x) }"""
    model = sabir.parse(HEAD + text)
    _, _, runs = check(model, feeds_of(model, 1), "y", ["s", "x"])
    assert runs


def test_random_numbers_are_not_drawn_again():
    """A state that changes its shape is kept; a sequence of random numbers can neither be kept nor drawn again."""
    text = """g (int64 n, double[2] s) => (double[2] y) { y = Loop<
        body = b (int64 i, bool c, double[2] h) => (bool d, double[2] k) { d = Identity(c)
            r = RandomNormalLike(h)  q = SequenceConstruct(r, r)  t = SequenceMap(q) <body = m (double[2] x) => (double[2] z) { z = Mul(x, h) }>
            p = ConcatFromSequence<axis = 0, new_axis = 1>(t)  u = ReduceSum<keepdims = 0>(p)  k = Mul(h, u) }>(n, , s) }"""
    model = sabir.parse(HEAD + text)
    found = gradient_model(model, "y", ["s"])
    _, backward = [n for n in found.graph if n.op == "Loop"]
    assert "RandomNormalLike" not in {n.op for g in backward.graphs for n in g.all_nodes()}


def test_an_optional_that_a_step_passes_on_cannot_be_kept():
    text = """g (int64 n, double[2] s) => (double[2] y) { q = Optional(s)  found, y = Loop<
        body = b (int64 i, bool c, optional(double[2]) a, double[2] h) => (bool d, optional(double[2]) a2, double[2] k) {
            d = Identity(c)  m = OptionalGetElement(a)  p = OptionalHasElement(a)  r = If(p) <
              then_branch = t () => (double[2] v) { u = OptionalGetElement(a)  v = Mul(u, h) },
              else_branch = e () => (double[2] w) { w = Neg(h) }>
            k = Mul(r, m)  a2 = Optional(k) }>(n, , q, s) }"""
    with pytest.raises(UnsupportedError, match="a gradient needs 'a' of every step of 'b'"):
        sabir.differentiate(sabir.parse(HEAD + text), "y", ["s"])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("size", [0, 3])
def test_a_tensor_that_may_have_no_parts(keepdims, size):
    text = f"""g (double[N,2] s, double[1,2] z) => (double[2] y) {{
        q = SplitToSequence<keepdims = {keepdims}>(s)
        r = SequenceMap<body = b (double[] x) => (double[] y) {{ y = Mul(x, x) }}>(q)
        flat = Constant<value = int64[2] {{1, 2}}>()  t = SequenceMap<body = b (double[] x) => (double[1,2] y) {{ y = Reshape(x, flat) }}>(r)
        u = SequenceInsert(t, z)  c = ConcatFromSequence<axis = 0>(u)
        zero = Constant<value = int64[1] {{0}}>()  y = ReduceSum<keepdims = 0>(c, zero) }}"""
    found = gradient_model(sabir.parse(HEAD + text), "y", ["s"])
    s = np.arange(2.0 * size).reshape(size, 2)
    results = sabir.evaluate(found, {"s": s, "z": np.zeros((1, 2)), SEED: np.array([1.0, 10])})
    assert results["d_y_d_s"].tolist() == (2 * s * [1, 10]).tolist()


def test_an_empty_sequence_has_gradients():
    text = """g (double[0,2] s, double[2] w) => (double[2] y) { q = SplitToSequence<keepdims = 0>(s)  r = SequenceMap<
        body = b (double[2] x, double[2] u) => (double[2] z) { z = Mul(x, u) }>(q, w)
        t = SequenceInsert(r, w)  c = ConcatFromSequence<axis = 0, new_axis = 1>(t)
        zero = Constant<value = int64[1] {0}>()  y = ReduceSum<keepdims = 0>(c, zero) }"""
    found = gradient_model(sabir.parse(HEAD + text), "y", ["w"])
    results = sabir.evaluate(found, {"s": np.zeros((0, 2)), "w": np.ones(2), SEED: np.array([2.0, 3])})
    assert results["d_y_d_w"].tolist() == [2, 3]
