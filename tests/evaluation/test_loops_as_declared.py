"""Loops whose bodies declare a shape of the number and the condition, or declare nothing at all."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.base import CheckError, EvaluationError
from sabir.inference import Inference


def shaped(number="", cond="", go=""):
    """A loop that adds its number and stacks both: they have the shapes that the body declares of them."""
    stacks = [f"[P,{shape[1:]}" if shape else "[P]" for shape in (number, cond)]
    return f"""g (int64 m, bool{go} go, int64[1] s) => (t, int64{stacks[0]} numbers, bool{stacks[1]} going) {{
        t, numbers, going = Loop <body = b (int64{number} i, bool{cond} c, u)
            => (again, v, int64{number} number, bool{cond} condition) {{
            again = Identity (c)  v = Add (u, i)  number = Identity (i)  condition = Identity (c)
        }}> (m, go, s)
    }}"""


def model(text):
    return sabir.parse(f'<ir_version: 8, opset_import: ["": 17]>\n{text}')


def run(text, **feeds):
    return sabir.evaluate(model(text), feeds)


def types(text):
    engine = Inference(model(text), strict=True)
    engine.run()
    return [str(engine.types[v]) for v in engine.model.graph.outputs]


def agree(text, **feeds):
    """Return Sabir's answers, when onnxruntime gives the same."""
    found = list(run(text, **feeds).values())
    session = onnxruntime.InferenceSession(sabir.dumps(model(text)), providers=["CPUExecutionProvider"])
    for ours, theirs in zip(found, session.run(None, feeds), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    return found


@pytest.mark.parametrize("turns", [0, 3])
@pytest.mark.parametrize("cond", ["", "[1]"])
@pytest.mark.parametrize("number", ["", "[1]"])
def test_the_number_and_the_condition_have_the_declared_shape(number, cond, turns):
    text = shaped(number, cond, go=cond)
    sabir.check(model(text), select=["TYPE"])
    assert types(text)[1:] == ["int64[P,1]" if number else "int64[P]", "bool[P,1]" if cond else "bool[P]"]
    undeclared = (
        text.replace("int64[P,1]", "").replace("int64[P]", "").replace("bool[P,1]", "").replace("bool[P]", "")
    )
    assert types(undeclared)[1:] == [
        "int64[?,1]" if number else "int64[?]",
        "bool[?,1]" if cond else "bool[?]",
    ]
    total, numbers, going = agree(
        text, m=np.array(turns), go=np.ones([1] * bool(cond), bool), s=np.array([10])
    )
    assert total.tolist() == [13 if turns else 10]
    assert (numbers.shape, going.shape) == (
        (turns, 1) if number else (turns,),
        (turns, 1) if cond else (turns,),
    )


@pytest.mark.parametrize("go", ["", "[1]"])
@pytest.mark.parametrize("cond", ["", "[1]"])
def test_the_condition_has_the_shape_of_the_body_whatever_the_loop_gets(cond, go):
    text = shaped("", cond, go)
    sabir.check(model(text), select=["TYPE"])
    going = run(text, m=np.array(2), go=np.ones([1] * bool(go), bool), s=np.array([10]))["going"]
    assert going.shape == ((2, 1) if cond else (2,))


@pytest.mark.parametrize(
    ("number", "shape"), [("[N]", (1,)), ("[1,1]", (1, 1)), ("[1,N]", (1, 1)), ("[?]", (1,))]
)
def test_one_element_fits_an_open_shape(number, shape):
    numbers = run(shaped(number), m=np.array(2), go=np.ones((), bool), s=np.array([10]))["numbers"]
    assert numbers.shape == (2, *shape)


def test_one_element_fits_a_dimension_below_0():
    made = model(shaped("[N]"))
    made.graph.outputs[1].type = None
    body = next(iter(made.graph)).graphs[0]
    for value in (body.inputs[0], body.outputs[2]):
        value.type = sabir.ir.tensor_type("int64", [-1])
    feeds = {"m": np.array(2), "go": np.ones((), bool), "s": np.array([10])}
    assert sabir.evaluate(made, feeds)["numbers"].shape == (2, 1)
    assert sabir.evaluate(made, feeds | {"m": np.array(0)})["numbers"].shape == (0, 1)


def test_a_number_cannot_have_two_elements():
    text = shaped("[2]")
    with pytest.raises(CheckError, match="declared as int64\\[2\\]"):
        sabir.check(model(text), select=["TYPE"])


def test_a_condition_may_change_between_a_scalar_and_one_element():
    text = """g (int64 m, int64 s) => (int64 t, bool[P, Q] going) {
        t, going = Loop <body = b (int64 i, bool[1] c, int64 u) => (bool again, int64 v, bool[L] condition) {
            limit = Constant <value_int = 4> ()  v = Add (u, i)  condition = Identity (c)
            again = Less (v, limit)
        }> (m, "", s)
    }"""
    sabir.check(model(text), select=["TYPE"])
    total, going = run(text, m=np.array(5), s=np.array(0)).values()
    assert total == 10  # without cond what the body gives does not end the loop
    assert going.tolist() == [[True], [True], [True], [True], [False]]


def test_a_condition_of_another_size():
    text = """g (int64 m, bool[N] c) => (y) {
        y = Loop <body = b (int64 i, bool going) => (again, int64 number) {
            number = Identity (i)  again = Identity (c)
        }> (m, "")
    }"""
    with pytest.raises(
        EvaluationError, match=r"the body's condition must have one element, and has the shape \[2\]"
    ):
        run(text, m=np.array(2), c=np.array([True, True]))
    with pytest.raises(CheckError, match="the body's condition must have one element, and is bool\\[2\\]"):
        sabir.check(model(text.replace("bool[N]", "bool[2]")), select=["TYPE"])


@pytest.mark.parametrize("name", ["m", "c"])
def test_m_and_cond_have_one_element(name):
    text = """g (int64[N] m, bool[K] c) => (y) {
        y = Loop <body = b (int64 i, bool going) => (bool again, int64 number) {
            number = Identity (i)  again = Identity (going)
        }> (m, c)
    }"""
    feeds = {"m": np.array([2]), "c": np.array([True])}
    assert run(text, **feeds)["y"].tolist() == [0, 1]
    wrong = {**feeds, name: feeds[name].repeat(2)}
    told = "`M`" if name == "m" else "`cond`"
    with pytest.raises(EvaluationError, match=rf"{told} must have one element, and has the shape \[2\]"):
        run(text, **wrong)
    with pytest.raises(CheckError, match=f"{told} must have one element"):
        sabir.check(model(text.replace("[N]" if name == "m" else "[K]", "[2]")), select=["TYPE"])


def test_a_branch_needs_one_condition():
    text = """g (bool[N] c) => (y) {
        y = If <then_branch = a () => (float p) { p = Constant <value_float = 1.0> () },
                else_branch = b () => (float q) { q = Constant <value_float = 2.0> () }> (c)
    }"""
    assert run(text, c=np.array([True]))["y"] == 1
    with pytest.raises(
        EvaluationError, match=r"If with output 'y': `cond` must have one element, and has the shape \[2\]"
    ):
        run(text, c=np.array([True, False]))
    with pytest.raises(CheckError, match="`cond` must have one element"):
        sabir.check(model(text.replace("bool[N]", "bool[0]")), select=["TYPE"])


# ---------------------------------------------------------------- no iterations

UNRUN = {"no shape": None, "sizes that are open": [None, "K"], "sizes below 0": [-1, -1], "all": [4, 3]}


@pytest.mark.parametrize("shape", [*UNRUN.values(), "no type"], ids=[*UNRUN, "no type"])
def test_a_loop_without_iterations_infers_what_it_stacks(shape):
    made = model("""g (int64 m, float[N, 4, 3] x) => (y) {
        y = Loop <body = b (int64 i, bool c) => (bool again, row) {
            again = Identity (c)  two = Constant <value_int = 2> ()
            at = Mod (i, two)  some = Gather <axis = 0> (x, at)  row = Mul (some, some)
        }> (m, "")
    }""")
    if shape != "no type":
        next(iter(made.graph)).graphs[0].outputs[1].type = sabir.ir.tensor_type("float", shape)
    for turns in (0, 2):
        found = sabir.evaluate(made, {"m": np.array(turns), "x": np.zeros((2, 4, 3), np.float32)})["y"]
        assert (found.dtype, found.shape) == (np.float32, (turns, 4, 3))


def test_a_scan_without_steps_infers_what_it_stacks():
    text = """g (float[2] s, float[T, 3] x) => (last, y) {
        last, y = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = b (state, row) => (next, item) {
            total = ReduceSum <keepdims = 0> (row)
            next = Add (state, total)
            item = Concat <axis = 0> (row, next)
        }> (s, x)
    }"""
    for steps in (0, 4):
        last, y = run(text, s=np.float32([1, 2]), x=np.ones((steps, 3), np.float32)).values()
        assert last.tolist() == [1 + 3 * steps, 2 + 3 * steps]
        assert (y.dtype, y.shape) == (np.float32, (5, steps))


@pytest.mark.parametrize("lengths", [None, [0, 0], [0, 3]])
def test_a_batched_scan_without_steps(lengths):
    text = """<ir_version: 8, opset_import: ["": 8]>
    g (int64[B] n, float[B, 2] s, float[B, T, 3] x) => (last, y) {
        last, y = Scan <num_scan_inputs = 1, body = b (state, row) => (next, item) {
            next = Identity (state)
            item = Concat <axis = 0> (row, next)
        }> (LENS, s, x)
    }""".replace("LENS", '""' if lengths is None else "n")
    time = 0 if lengths is None else 3
    feeds = {"s": np.zeros((2, 2), np.float32), "x": np.ones((2, time, 3), np.float32)}
    found = sabir.evaluate(sabir.parse(text), {"n": np.array(lengths or [0, 0]), **feeds})["y"]
    assert (found.dtype, found.shape) == (np.float32, (2, time, 5))


def test_lengths_of_a_batched_scan():
    text = """<ir_version: 8, opset_import: ["": 8]>
    g (int64[K] n, float[2, 3, 1] x) => (y) {
        y = Scan <num_scan_inputs = 1, body = b (row) => (item) { item = Identity (row) }> (n, x)
    }"""
    x = np.ones((2, 3, 1), np.float32)
    for lengths, told in (
        ([0, 4], r"`sequence_lens`\[1\] is 4, and must be 0 to 3"),
        ([-1, 0], r"`sequence_lens`\[0\] is -1"),
        ([1], r"`sequence_lens` must have the shape \[2\], not \[1\]"),
    ):
        with pytest.raises(EvaluationError, match=told):
            sabir.evaluate(sabir.parse(text), {"n": np.array(lengths), "x": x})
    known = text.replace("int64[K] n, ", "").replace(
        "{\n", "{ n = Constant <value = int64[2] {0, 4}> ()\n", 1
    )
    with pytest.raises(CheckError, match=r"`sequence_lens`\[1\] is 4, and must be 0 to 3"):
        sabir.check(sabir.parse(known), select=["TYPE"])


# an inner loop that runs as often as the outer one has before: not at all at first
TRIANGLE = """g (int64 m, float[2] x) => (y) {
    none = Constant <value = float {0}> ()
    y = Loop <body = outer (int64 i, bool c) => (again, total) {
        again = Identity (c)
        rows = Loop <body = inner (int64 j, bool d) => (more, row) {
            more = Identity (d)
            k = Add (i, j)
            n = Cast <to = 1> (k)
            row = Mul (x, n)
        }> (i, "")
        total = ReduceSum <keepdims = 0> (rows)
    }> (m, "")
}"""


def test_an_inner_loop_that_does_not_run():
    x = np.float32([1, 2])
    assert run(TRIANGLE, m=np.array(4), x=x)["y"].tolist() == [0, 3, 15, 36]
    assert run(TRIANGLE, m=np.array(0), x=x)["y"].shape == (0,)


def test_inner_loops_that_never_run_are_inferred_once(monkeypatch):
    text = TRIANGLE.replace('> (i, "")', '> (zero, "")').replace(
        "again = Identity (c)",
        """again = Identity (c)
        zero = Sub (i, i)""",
    )
    calls = []
    apply = Inference.apply

    def counted(self, *arguments):
        calls.append(arguments[0].name)
        return apply(self, *arguments)

    monkeypatch.setattr(Inference, "apply", counted)
    assert run(text, m=np.array(50), x=np.float32([1, 2]))["y"].tolist() == [0] * 50
    assert calls == ["inner"]


def test_deep_loops_without_iterations():
    inner = "v = Identity (x)"
    for depth in range(6):
        inner = f"""v = Loop <body = at_{depth} (int64 i{depth}, bool c{depth}) => (k{depth}, v{depth}) {{
            k{depth} = Identity (c{depth})  {inner.replace("v = ", f"v{depth} = ", 1)}
        }}> (m, "")"""
    text = f"g (int64 m, float[3] x) => (v) {{ {inner} }}"
    for turns in (0, 1):
        found = run(text, m=np.array(turns), x=np.float32([1, 2, 3]))["v"]
        assert found.shape == (turns,) * 6 + (3,) if turns else found.shape == (0,) * 6 + (3,)


def test_what_a_reshape_in_the_body_gives_follows_from_contents():
    text = """g (int64 m, float[6] x, int64[K] shape) => (y) {
        y = Loop <body = b (int64 i, bool c) => (again, row) { again = Identity (c)  row = Reshape (x, shape) }> (m, "")
    }"""
    feeds = {"x": np.zeros(6, np.float32), "shape": np.array([2, 3])}
    assert run(text, m=np.array(0), **feeds)["y"].shape == (0, 2, 3)


def test_a_type_that_does_not_follow():
    text = """g (int64 m, SEQUENCE s) => (y) {
        y = Loop <body = b (int64 i, bool c) => (again, row) {
            again = Identity (c)  row = SequenceAt (s, i)
        }> (m, "")
    }"""
    typed, untyped = (text.replace("SEQUENCE", kind) for kind in ("seq(int32[2])", "seq(int32[N])"))
    assert run(typed, m=np.array(0), s=[])["y"].shape == (0, 2)
    assert run(untyped, m=np.array(0), s=[])["y"].shape == (0, 0)
    assert run(untyped, m=np.array(0), s=[np.int32([1, 2, 3])])["y"].shape == (0, 3)
    made = model(text.replace("SEQUENCE ", ""))
    with pytest.raises(
        EvaluationError, match="no iteration runs, and the type of a stacked output is neither declared"
    ):
        sabir.evaluate(made, {"m": np.array(0), "s": []})


# ---------------------------------------------------------------- what is stacked, and what never ends

TWO_TYPES = """If <
    then_branch = a () => (p) { p = Constant <value_float = 1.0> () },
    else_branch = b () => (q) { q = Constant <value_int = 1> () }>"""


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("row = Range (zero, i, one)", r"is int64\[0\] in iteration 0, int64\[1\] in iteration 1"),
        (
            "row = SequenceConstruct (i)",
            "only tensors can be stacked, and (iteration 0 returns a list|the body returns seq)",
        ),
        (
            f"first = Equal (i, zero)  row = {TWO_TYPES} (first)",
            r"is float in iteration 0, int64 in iter",
        ),
    ],
)
def test_what_is_stacked_keeps_its_type_and_shape(row, told):
    text = f"""g (int64 m) => (y) {{
        zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
        y = Loop <body = b (int64 i, bool c) => (again, row) {{ again = Identity (c)  {row} }}> (m, "")
    }}"""
    with pytest.raises(EvaluationError, match=f"Loop with output 'y': .*{told}"):
        run(text, m=np.array(2))


def test_a_loop_without_end_is_a_warning():
    text = """g (bool go, int64 m, int64 x) => (y) {
        y = Loop <body = b (int64 i, bool c, int64 s) => (bool c, int64 s) {}> (M, COND, x)
    }"""
    for most, cond, count in (('""', '""', 1), ("m", '""', 0), ('""', "go", 0), ("m", "go", 0)):
        found = sabir.findings(model(text.replace("M,", f"{most},").replace("COND", cond)))
        doubts = [f.message for f in found if f.rule == "NODE017"]
        assert doubts == ["Loop:16: without M and without cond the loop never ends"] * count


SCAN = """g (float[2] s, float[T, 2] x) => (t, y) {
    t, y = Scan <num_scan_inputs = 1, ATTRIBUTES, body = b (a, r) => (n, o) {
        n = Add (a, r)  o = Identity (n)
    }> (s, x)
}"""


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ("scan_input_directions = [1, 0]", "`scan_input_directions` has 2 entries for 1"),
        ("scan_output_directions = [1, 0]", "`scan_output_directions` has 2 entries for 1"),
        ("scan_input_directions = [2]", "'scan_input_directions' is 2, and must be 0 or 1"),
        ("scan_output_directions = [-1]", "'scan_output_directions' is -1, and must be 0 or 1"),
        ("scan_input_axes = [0, 1]", "`scan_input_axes` has 2 entries for 1"),
        ("scan_output_axes = [0, 1]", "`scan_output_axes` has 2 entries for 1"),
    ],
)
def test_lists_of_a_scan(attributes, told):
    text = SCAN.replace("ATTRIBUTES", attributes)
    with pytest.raises(CheckError, match=told):
        sabir.check(model(text), select=["TYPE", "ATTR"])
    with pytest.raises(sabir.SabirError, match=told):
        run(text, s=np.zeros(2, np.float32), x=np.zeros((3, 2), np.float32))


def test_an_empty_axis_that_is_not_the_first():
    text = SCAN.replace("ATTRIBUTES", "scan_input_axes = [-1], scan_output_axes = [1]").replace(
        "T, 2", "2, T"
    )
    s = np.float32([1, 2])
    last, y = run(text, s=s, x=np.zeros((2, 0), np.float32)).values()
    assert (last.tolist(), y.shape) == ([1, 2], (2, 0))
