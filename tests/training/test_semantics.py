"""What the texts say of a training model, each sentence by a model written by hand: docs/training.md has the table."""

import numpy as np
import pytest

import sabir
from sabir import FeedError, SchemaError, UnsupportedError
from sabir.base import NotFoundError
from support.engines import ENGINES

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>\n'
MAIN = "g (float x) => (float y) <float a = {2}, float b = {3}, float c = {10}> { p = Mul (x, a)  y = Add (p, b) }\n"
SWAP = '@training {algorithm: s () => (float a2, float b2) { a2 = Identity (b)  b2 = Identity (a) }, update_binding: ["a": "a2", "b": "b2"]}'
# two training informations: the first steps `a` and counts in a state of its own, the second doubles b by a
TWO = (
    "@training {"
    " initialization: i () => (float a0, float n0) { a0 = Constant <value_float = 5.0> ()  n0 = Constant <value_float = 0.0> () },"
    " algorithm: first (float t) => (float e, float a2, float n2) <float n = {7}, float one = {1}>"
    " { e = Sub (y, t)  a2 = Sub (a, e)  n2 = Add (n, one) },"
    ' initialization_binding: ["a": "a0", "n": "n0"], update_binding: ["a": "a2", "n": "n2"]}\n'
    "@training {"
    " initialization: j () => (float b0) { b0 = Add (a, a) },"
    " algorithm: second () => (float b2) { b2 = Mul (a, b) },"
    ' initialization_binding: ["b": "b0"], update_binding: ["b": "b2"]}'
)
FEEDS = {"x": np.float32(1), "t": np.float32(4)}


def session(text, engine="reference", **options):
    return sabir.TrainingSession(sabir.parse(HEAD + text), engine=engine, **options)


def state(trained):
    return {name: float(value) for name, value in trained.state.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_with_two_training_informations(engine):
    """One story: state in the graph and in an algorithm, sequence, single algorithms, their order, a reset."""
    trained = session(MAIN + TWO, engine)
    # pre-initialised from the initializers: a step without initialize works
    assert state(trained) == {"a": 2, "n": 7, "b": 3}
    assert trained.run({"x": 1})["y"] == 5
    # all algorithms in sequence are one iteration, the second sees the first's update
    results = trained.step(FEEDS)
    assert state(trained) == {"a": 1, "n": 8, "b": 3}
    assert results["e"] == 1
    assert trained.steps == 1
    # an update is seen by inference; a run leaves the state bit-equal
    before = {name: value.tobytes() for name, value in trained.state.items()}
    assert trained.run({"x": 2})["y"] == 5
    assert {name: value.tobytes() for name, value in trained.state.items()} == before
    # any algorithm may be invoked
    trained.step({"x": 1}, algorithm=1)
    assert state(trained) == {"a": 1, "n": 8, "b": 3}
    trained.step({"x": 1, "t": 0}, algorithm=0)
    assert state(trained) == {"a": -3, "n": 9, "b": 3}
    # initialisations in order: the second reads what the first assigned
    trained.initialize()
    assert state(trained) == {"a": 5, "n": 0, "b": 10}
    assert trained.steps == 0


def test_the_order_of_algorithms_is_the_callers():
    one, other = session(MAIN + TWO), session(MAIN + TWO)
    for trained, order in ((one, (0, 1)), (other, (1, 0))):
        for algorithm in order:
            trained.step(FEEDS if algorithm == 0 else {"x": 1}, algorithm)
    assert state(one) == {"a": 1, "n": 8, "b": 3}
    assert state(other) == {"a": -2, "n": 8, "b": 6}  # y is 8 by then
    with pytest.raises(UnsupportedError, match="one algorithm or more"):
        one.step(FEEDS, [])


@pytest.mark.parametrize("engine", ENGINES)
def test_updates_are_assigned_after_the_execution(engine):
    trained = session(MAIN + SWAP, engine)
    for expected in ({"a": 3, "b": 2}, {"a": 2, "b": 3}):
        trained.step({"x": 1})
        assert state(trained) == expected
    # the same without operators: an output that is a state variable itself, and a value that is assigned twice
    direct = MAIN + '@training {algorithm: s () => (a, b) {}, update_binding: ["a": "b", "b": "a"]}'
    trained = session(direct, engine)
    trained.step({}, outputs=())
    assert state(trained) == {"a": 3, "b": 2}
    twice = (
        MAIN
        + '@training {algorithm: s () => (float n) { n = Neg (c) }, update_binding: ["a": "n", "b": "n"]}'
    )
    trained = session(twice, engine)
    trained.step({}, outputs=())
    assert state(trained) == {"a": -10, "b": -10}


def test_a_model_without_training_information_only_runs():
    trained = session(MAIN)
    assert trained.run({"x": 1})["y"] == 5
    for method in (lambda: trained.step({"x": 1}), trained.initialize):
        with pytest.raises(UnsupportedError, match="no training information"):
            method()


def test_initialize_restores_state_without_an_initialization():
    trained = session(MAIN + SWAP)
    trained.step({}, outputs=())
    trained.state["a"] = 99
    trained.initialize()
    assert state(trained) == {"a": 2, "b": 3}


def test_state_is_no_constant():
    """The contents of a state variable are used for nothing but its value: here it decides a shape."""
    text = (
        "g (float[6] x) => (float[M,K] y) <int64[2] s = {2, 3}> { y = Reshape (x, s) }\n"
        '@training {algorithm: a () => (int64[2] s2) <int64[2] k = {3, 2}> { s2 = Identity (k) }, update_binding: ["s": "s2"]}'
    )
    for engine in ENGINES:
        trained = session(text, engine)
        shapes = [trained.run({"x": np.zeros(6, np.float32)})["y"].shape]
        trained.step({"x": np.zeros(6, np.float32)})
        shapes.append(trained.run({"x": np.zeros(6, np.float32)})["y"].shape)
        assert shapes == [(2, 3), (3, 2)]


def test_feeds_and_outputs_of_a_step_are_those_of_both_graphs():
    trained = session(MAIN + TWO)
    assert [port.name for port in trained.inputs] == ["x"]
    assert [port.name for port in trained.inputs_of(0)] == ["x", "t"]
    assert trained.outputs_of(0) == ["y", "e"]
    assert trained.step(FEEDS, 0, trained.outputs_of(0)) == {"y": 5, "e": 1}
    assert trained.step(FEEDS, 0, outputs=["p", "a2"]) == {"p": 1, "a2": 1}
    assert trained.step([1.0, 4.0], 0, outputs="y") == {"y": 4}
    # an update that is returned is no view of the state
    found = trained.step(FEEDS, 0, outputs=["a2"])["a2"]
    found[...] = 77
    assert state(trained)["a"] == 1
    with pytest.raises(FeedError, match="no input 'xx'"):
        trained.step({**FEEDS, "xx": 1})
    with pytest.raises(FeedError, match="no value 'e3'"):
        trained.step(FEEDS, outputs=["e3"])
    with pytest.raises(UnsupportedError, match="no algorithm 2"):
        trained.step(FEEDS, 2)
    with pytest.raises(FeedError, match="no value 'e'"):
        trained.run({"x": 1}, ["e"])


def test_a_step_returns_what_it_differentiates():
    """By default only that and the updates are computed, and an algorithm that updates nothing is not run."""
    main = "g (double x) => (double y, double z) <double a = {2}> { y = Mul (x, a)  z = Neg (x) }\n"
    descend = (
        "@training {algorithm: l (double t) => (double off, double a2) { off = Sub (y, t)  cost = Mul (off, off)"
        f'  da = {GRADIENT} <xs = ["a"], zs = ["x", "t"], y = "cost"> (a, x, t)'
        f'  dda = {GRADIENT} <xs = ["a"], zs = ["x", "t"], y = "da"> (a, x, t)'
        '  move = Div (da, dda)  a2 = Sub (a, move) }, update_binding: ["a": "a2"]}\n'
    )
    evaluate = "@training {algorithm: e (double u) => (double far) { far = Sub (y, u) }}"
    trained = session(main + descend + evaluate)
    assert trained.step({"x": 1.0, "t": 5.0, "u": 7.0}) == {"cost": 9}
    assert state(trained) == {"a": 5}, "Newton's method"
    assert trained.step({"x": 1.0, "t": 5.0}, 0, "off") == {"off": 0}
    assert trained.step({"x": 1.0, "t": 5.0, "u": 7.0}, [0, 1]) == {"cost": 0, "y": 5, "z": -1, "far": -2}
    with pytest.raises(FeedError, match="no value 'far'"):
        trained.step({"x": 1.0, "t": 5.0}, outputs="far")


def test_the_default_algorithm_changes_nothing():
    trained = session(MAIN + "@training {}")
    assert trained.step({"x": 1}) == {"y": 5}
    assert (trained.steps, len(trained.state)) == (0, 0)


def test_a_value_of_an_update_may_be_an_output_of_the_main_graph():
    trained = session(MAIN + '@training {algorithm: a () => () {}, update_binding: ["a": "y"]}')
    trained.step({"x": 1})
    assert state(trained) == {"a": 5}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_feed_overrides_state_that_is_an_input_for_one_call(engine):
    text = (
        "g (float x, float w = {2}) => (float y) { y = Mul (x, w) }\n"
        '@training {algorithm: a () => (float w2) { w2 = Add (y, w) }, update_binding: ["w": "w2"]}'
    )
    trained = session(text, engine)
    assert trained.run({"x": 1, "w": 10})["y"] == 10
    assert trained.run({"x": 1})["y"] == 2
    assert trained.step({"x": 1, "w": 10}, outputs="y")["y"] == 10
    assert state(trained) == {"w": 20}
    assert trained.step({"x": 1}, outputs="y")["y"] == 20
    assert [(p.name, p.optional) for p in trained.inputs] == [("x", False), ("w", True)]


GRADIENT = "ai.onnx.preview.training.Gradient"


@pytest.mark.parametrize("engine", ENGINES)
def test_gradient_in_an_algorithm(engine):
    """Inputs that are the named values differentiate in place, others elsewhere; an output may be left out."""
    text = (
        "g (double x) => (double y) <double a = {2}, double b = {3}> { p = Mul (x, a)  y = Mul (p, b) }\n"
        "@training {algorithm: l (double t) => (double loss, double a2, double other, double second)"
        " { e = Sub (y, t)  loss = Mul (e, e)"
        f'  da = {GRADIENT} <xs = ["a", "b"], zs = ["x", "t"], y = "loss"> (a, b, x, t)'
        f'  , other = {GRADIENT} <xs = ["a", "b"], zs = ["x", "t"], y = "loss"> (b, a, t, x)'
        f'  second = {GRADIENT} <xs = ["a"], zs = ["b", "x", "t"], y = "da"> (a, b, x, t)'
        '  a2 = Sub (a, da) }, update_binding: ["a": "a2"]}'
    )
    trained = session(text, engine)
    found = trained.step({"x": 5.0, "t": 7.0}, outputs=["loss", "other", "second"])
    # loss = (abx - t)^2 = 23^2; d/da = 2*23*b*x = 690; at a=3, b=2, x=7, t=5: d/db = 2*37*a*x = 1554; d2/da2 = 2(bx)^2
    assert found == {"loss": 529, "other": 1554, "second": 450}
    assert state(trained) == {"a": 2 - 690}


BROKEN = {
    "a key that is no initializer": ('algorithm: s () => (float v) { v = Neg (a) }, update_binding: ["ghost": "v"]', "MUST be the name of an initializer"),
    "a key that is an input": ('algorithm: s () => (float v) { v = Neg (a) }, update_binding: ["x": "v"]', "MUST be the name of an initializer"),
    "a value that is no output": ('algorithm: s () => () { v = Neg (a) }, update_binding: ["a": "v"]', "MUST be the name of an output"),
    "a value of a main node for an initialization": ('initialization: i () => () {}, initialization_binding: ["a": "y"]', "MUST be the name of an output"),
    "a key twice": ('algorithm: s () => (float v) { v = Neg (a) }, update_binding: ["a": "v", "a": "v"]', "twice in update_binding, .* MUST be unique"),
    "bindings without a graph": ('initialization_binding: ["a": "v"]', "MAY be omitted"),
    "updates without a graph": ('update_binding: ["a": "v"]', "MAY be omitted"),
    "an initialization with an input": ('initialization: i (float q) => (float v) { v = Neg (q) }, initialization_binding: ["a": "v"]', "runs without feeds"),
    "a name of the main graph": ('algorithm: s () => (float p) { p = Neg (a) }, update_binding: ["a": "p"]', "run as one graph"),
    "another shape": ('algorithm: s () => (float[1] v) <float[1] o = {1}> { v = Add (a, o) }, update_binding: ["a": "v"]', "assigning the outputs"),
    "another type": ('algorithm: s () => (double v) { v = Cast <to = 11> (a) }, update_binding: ["a": "v"]', "assigning the outputs"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_an_error_with_the_sentence(name):
    text, sentence = BROKEN[name]
    with pytest.raises(SchemaError, match=sentence):
        session(f"{MAIN}@training {{{text}}}")


@pytest.mark.parametrize("engine", ENGINES)
def test_two_algorithms_that_update_one_variable_are_interleaved(engine):
    """Keys are unique within one field; `onnx.proto` asks for more, so the checker warns."""
    add = '@training {algorithm: s (float t) => (float v) { v = Add (a, t) }, update_binding: ["a": "v"]}\n'
    double = (
        "@training {algorithm: d () => (float u, float n) <float k = {0}, float one = {1}>"
        ' { u = Add (a, a)  n = Add (k, one) }, update_binding: ["a": "u", "k": "n"]}'
    )
    trained = session(MAIN + add + double, engine)
    assert [f.rule for f in sabir.findings(trained.model) if f.rule.startswith("TRAIN")] == ["TRAIN009"]
    for algorithm, expected in ((0, 3), (1, 6), (1, 12), (0, 13), ([1, 0], 27), (None, 56)):
        trained.step({"x": 1} if algorithm == 1 else {"x": 1, "t": 1}, algorithm, outputs=())
        assert state(trained)["a"] == expected, algorithm
    assert state(trained)["k"] == 4
    assert trained.run({"x": 1})["y"] == 59


def test_a_strict_session_refuses_what_another_warns_of():
    text = """g (float[N] x) => (float[N] y) <float[1] w = {2}> { s = Shape (x)  e = Expand (w, s)  y = ReduceSum (e) }
        @training {algorithm: a () => (float[1] v) { v = Neg (w) }, update_binding: ["w": "v"]}"""
    with pytest.warns(sabir.SabirWarning, match="a strict run makes this an error"):
        session(text).step({"x": [1.0, 2.0]}, outputs="y")
    strict = session(text, "auto", strict=True)
    for call in (strict.run, strict.step):
        with pytest.raises(sabir.EvaluationError, match="'y' is declared float"):
            call({"x": [1.0, 2.0]}, outputs="y")
    assert strict.state["w"] == 2


def test_no_message_names_the_domain_of_internal_operators():
    """Also where a step draws random numbers, with an operator of that domain."""
    text = MAIN + (
        "@training {algorithm: a () => (float q) { r = RandomUniform <shape = [1]> ()  q = org.acme.Twice (r) }}"
    )
    model = sabir.parse(HEAD.replace('"" : 21', '"" : 21, "org.acme" : 1') + text)
    with pytest.raises(SchemaError, match=r"Known are those of ai\.onnx, ") as caught:
        sabir.TrainingSession(model).step({"x": 1})
    assert "sabir.internal" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "call", "kind"),
    [("string[N] t", "RandomUniformLike (t)", "string"), ("int64[N] t", "Bernoulli (t)", "int64")],
)
def test_random_numbers_of_a_type_without_them(inputs, call, kind):
    trained = session(MAIN + f"@training {{algorithm: a ({inputs}) => (q) {{ q = {call} }}}}")
    with pytest.raises(sabir.EvaluationError, match=f"cannot draw in a training step: .* not {kind}"):
        trained.step({"x": 1, "t": [1] if kind == "int64" else ["a"]})


def test_a_sparse_initializer_is_no_state_variable():
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[3] x) => (float[3] y) <sparse_tensor(float[3]) w = float[1] {5} int64[1] {1}> { y = Identity (x) }
        @training {algorithm: a () => (float[3] v) { v = Neg (w) }, update_binding: ["w": "v"]}"""
    with pytest.raises(SchemaError, match="'w' is a sparse initializer"):
        sabir.TrainingSession(sabir.parse(text))


def test_other_models_that_are_refused():
    # the main graph reads a value of the algorithm
    reads = session(
        MAIN.replace("Mul (x, a)", "Mul (x, q)") + "@training {algorithm: s () => (float q) { q = Neg (a) }}"
    )
    for call in (lambda: reads.run({"x": 1}), lambda: reads.step({"x": 1})):
        with pytest.raises(SchemaError, match="'q'"):
            call()
    # an initialization reads a value of the main graph that is no state
    with pytest.raises(SchemaError, match="reads 'c'"):
        session(
            MAIN
            + '@training {initialization: i () => (float v) { v = Neg (c) }, initialization_binding: ["a": "v"]}'
        )
    # two state variables of one name
    own = '@training {initialization: i () => (float v0) { v0 = Neg (a) }, algorithm: s () => (float v2) <float v = {1}> { v2 = Neg (v) }, initialization_binding: ["v": "v0"]}'
    with pytest.raises(SchemaError, match="'v' is the name of two state variables"):
        session(MAIN + own + own)
    # a file that is too old for training information
    model = sabir.parse(HEAD + MAIN + SWAP)
    model.ir_version = 6
    with pytest.raises(SchemaError, match="IR version 6"):
        sabir.TrainingSession(model)


def test_an_initialization_reads_the_state_of_its_own_algorithm():
    text = '@training {initialization: i () => (float v0) { v0 = Add (v, a) }, algorithm: s () => (float v2) <float v = {1}> { v2 = Neg (v) }, initialization_binding: ["v": "v0"], update_binding: ["v": "v2"]}\n'
    more = (
        '@training {initialization: j () => (float a0) { a0 = Neg (v) }, initialization_binding: ["a": "a0"]}'
    )
    trained = session(MAIN + text + more)
    trained.step({"x": 1})
    trained.initialize()
    assert state(trained) == {"v": 3, "a": -3}


def test_state_is_set_in_its_type_and_shape():
    trained = session(MAIN + SWAP)
    trained.state["a"] = 4
    trained.state["b"] = np.float32(5)
    assert state(trained) == {"a": 4, "b": 5}
    copy = trained.state["a"]
    copy[...] = 0
    assert state(trained)["a"] == 4
    for value in ([1.0], np.float64(1), "one", None, 1j):
        with pytest.raises(FeedError, match="state variable 'a' is float32"):
            trained.state["a"] = value
    with pytest.raises(FeedError):
        trained.state.update({"a": 1, "b": [1, 2]})
    with pytest.raises(NotFoundError, match="no state variable 'aa'; is it 'a'"):
        trained.state["aa"] = 1
    assert state(trained) == {"a": 4, "b": 5}
    assert repr(trained.state) == "<State a: float32[], b: float32[]>"
