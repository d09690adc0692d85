"""Loops end: those that turn for ever, that grow by a little, that double, and that do much in each turn."""

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.base import LimitError
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
START = "m = Constant <value = int64 {4611686018427387904}> ()  c = Constant <value = bool {1}> ()"


def loop(kind, first, body):
    """A model with a loop that carries one value, and would turn 2^62 times."""
    grown = kind.replace("[n", "[grown")
    return f"""{HEAD} g () => ({kind} y) {{
        {START}  s0 = {first}
        y = Loop (m, c, s0) <body = b (int64 i, bool c0, {kind} s) => (bool c1, {grown} t) {{
            c1 = Identity (c0)  {body}
        }}>
    }}"""


def nested(depth):
    """Loops in loops, each of which would turn 2^62 times."""
    body = "t = Add (s, i)"
    for level in range(depth):
        body = f"""m{level} = Constant <value = int64 {{4611686018427387904}}> ()
            t = Loop (m{level}, c0, s) <body = b{level} (int64 i, bool c0, int64 s) => (bool c1, int64 t) {{
                c1 = Identity (c0)  {body} }}>"""
    return loop("int64", "Constant <value = int64 {0}> ()", body)


ZERO, VECTOR = "Constant <value = int64 {0}> ()", "Constant <value = int64[1] {0}> ()"
ENDLESS = {
    "no node": f"""{HEAD} g () => (int64 y) {{
        {START}  s0 = {ZERO}  y = Loop (m, c, s0) <body = b (int64 i, bool c1, int64 t) => (bool c1, int64 t) {{}}>
    }}""",
    "one node": loop("int64", ZERO, "t = Add (s, i)"),
    "five nodes": loop("int64", ZERO, "a = Add (s, i)  d = Mul (a, i)  e = Sub (d, s)  t = Identity (e)"),
    "forty nodes": loop("int64", ZERO, "a0 = Add (s, i)  " + "".join(
        f"a{k + 1} = Add (a{k}, i)  " for k in range(40)) + "t = Identity (a40)"),
    "a loop in a loop": nested(1),
    "nine loops in one another": nested(9),
    "a growing vector": loop("int64[n]", VECTOR, f"o = {VECTOR}  t = Concat <axis = 0> (s, o)"),
    "a doubling vector": loop("int64[n]", VECTOR, "t = Concat <axis = 0> (s, s)"),
    "a growing sequence": loop("seq(int64)", "SequenceEmpty <dtype = 7> ()", "t = SequenceInsert (s, i)"),
    "a doubling text": loop("string[1]", 'Constant <value = string[1] {"ab"}> ()', "t = StringConcat (s, s)"),
    "a vector that is made anew": loop(
        "int64[n]", VECTOR, "z = Shape (s)  w = Add (z, z)  t = ConstantOfShape <value = int64[1] {1}> (w)"),
    "a vector that is padded": loop("int64[n]", VECTOR, "z = Shape (s)  w = Concat <axis = 0> (z, z)  t = Pad (s, w)"),
    "matrix products": loop("float[n,k]", "ConstantOfShape (shape)", "t = MatMul (s, s)").replace(
        "s0 =", "shape = Constant <value = int64[2] {1000, 1000}> ()  s0 ="),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_loop_ends(name):
    model, fewer = sabir.parse(ENDLESS[name]), Limits(iterations=10_000, memory=1 << 26, work=1 << 29)
    with bounded(seconds=3), pytest.raises(LimitError) as caught:
        sabir.evaluate(model, {}, limits=fewer)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", ["no node", "a doubling vector"])
def test_an_endless_loop_ends_soon_by_default(name):
    model = sabir.parse(ENDLESS[name])
    with bounded(), pytest.raises(LimitError):
        sabir.evaluate(model, {})


def test_two_values_that_grow_by_each_other_end():
    model = sabir.parse(f"""{HEAD} g () => (int64[n] y, int64[k] z) {{
        {START}  s0 = {VECTOR}  r0 = {VECTOR}
        y, z = Loop (m, c, s0, r0) <body = b (int64 i, bool c0, int64[n] s, int64[k] r)
                => (bool c1, int64[p] t, int64[q] u) {{
            c1 = Identity (c0)  t = Concat <axis = 0> (s, r)  u = Concat <axis = 0> (r, t)
        }}>
    }}""")
    with bounded(), pytest.raises(LimitError, match="memory"):
        sabir.evaluate(model, {}, limits=Limits(memory=1 << 26))


def test_what_is_stacked_is_counted_while_the_loop_runs():
    model = sabir.parse(f"""{HEAD} g () => (float[n,k] y) {{
        {START}  shape = Constant <value = int64[1] {{250000}}> ()
        y = Loop (m, c) <body = b (int64 i, bool c0) => (bool c1, float[k] t) {{
            c1 = Identity (c0)  t = ConstantOfShape (shape)
        }}>
    }}""")
    with bounded(memory=5 << 25), pytest.raises(LimitError, match="memory"):
        sabir.evaluate(model, {}, limits=Limits(memory=1 << 27))


def test_a_scan_and_a_sequence_map_are_counted_too():
    eight = "".join(f"a{k + 1} = Neg (a{k})  " for k in range(7)) + "t = Neg (a7)"  # count as three turns
    model = sabir.parse(f"""{HEAD} g (float[n] x, seq(float[1]) xs) => (float[n] y, seq(float[1]) z) {{
        y = Scan <num_scan_inputs = 1, body = b (float a0) => (float t) {{ {eight} }}> (x)
        z = SequenceMap <body = b2 (float[1] a0) => (float[1] t) {{ {eight} }}> (xs)
    }}""")
    feeds = {"x": np.ones(60, np.float32), "xs": [np.ones(1, np.float32)] * 60}
    sabir.evaluate(model, feeds, limits=Limits(iterations=250))
    with pytest.raises(LimitError, match=r"SequenceMap.*iterations=\d+"):
        sabir.evaluate(model, feeds, limits=Limits(iterations=200))


def test_iterations_are_those_of_all_loops_together():
    short = sabir.parse(nested(1).replace("4611686018427387904", "20"))
    assert sabir.evaluate(short, {}, limits=Limits(iterations=500))["y"] == 20 * 190
    with pytest.raises(LimitError, match=r"the limit is 406: .*iterations=\d+"):
        sabir.evaluate(short, {}, limits=Limits(iterations=400))


def test_time_is_looked_at_in_every_turn():
    model = sabir.parse(ENDLESS["five nodes"])
    with bounded(seconds=2), pytest.raises(LimitError, match=r"the time is up.*seconds=\.\.\."):
        sabir.evaluate(model, {}, limits=Limits(seconds=0.2, iterations=None))


def test_time_is_looked_at_between_nodes():
    nodes = "".join(f"a{k + 1} = Exp (a{k})  " for k in range(400))
    model = sabir.parse(
        f"{HEAD} g (float[n] x) => (float[n] y) {{ a0 = Identity (x)  {nodes} y = Neg (a400) }}"
    )
    with bounded(seconds=3), pytest.raises(LimitError, match="Exp.*the time is up"):
        sabir.evaluate(model, {"x": np.ones(1_000_000, np.float32)}, limits=Limits(seconds=0.1))


def test_a_loop_over_large_feeds_is_no_bomb():
    """What a run may spend grows with what it is fed."""
    model = sabir.parse(f"""{HEAD} g (float[n] x) => (float[n] y) {{
        m = Constant <value = int64 {{600}}> ()  c = Constant <value = bool {{1}}> ()
        y = Loop (m, c, x) <body = b (int64 i, bool c0, float[n] s) => (bool c1, float[n] t) {{
            c1 = Identity (c0)  a = Neg (s)  t = Neg (a)
        }}>
    }}""")
    x = np.ones(10_000, np.float32)  # 600 times two results of 40 kB are 48 MB
    assert np.array_equal(sabir.evaluate(model, {"x": x}, limits=Limits(work=1000, memory=1000))["y"], x)
