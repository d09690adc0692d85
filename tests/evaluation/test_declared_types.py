"""Declared types hold in a run: one size for each dimension variable, in feeds, defaults, outputs and subgraphs."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, FeedError, SabirWarning
from sabir.ir import ArrayTensor

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
F = np.float32


def model_of(text, **defaults):
    model = sabir.parse(HEAD + text)
    for name, data in defaults.items():
        value = next(v for v in model.graph.inputs if v.name == name)
        model.graph.set_initializer(value, ArrayTensor(np.asarray(data)))
    return model


def strictly(model, feeds):
    return sabir.Session(model, strict=True).run(feeds)


def test_a_default_that_disagrees_with_a_feed_is_an_error():
    model = model_of("g (float[N] a, float[N] b) => (float[N] y) { y = Add (a, b) }", b=F([1, 2]))
    assert sabir.evaluate(model, {"a": F([1, 1])})["y"].tolist() == [2, 3]
    assert sabir.evaluate(model, {"a": F([1]), "b": F([5])})["y"].tolist() == [6]
    with pytest.raises(
        FeedError, match=r"default of input 'b' is declared float\[N\].*N is 1 in input 'a', and 2"
    ):
        sabir.evaluate(model, {"a": F([1])})


def test_a_default_that_contradicts_its_input_is_an_error_where_it_serves():
    model = model_of("g (float[N] a, float[3] b) => (y) { y = Identity (b) }", b=F([1, 2]))
    with pytest.raises(
        FeedError, match=r"default of input 'b' is declared float\[3\].*axis 0 is 2, and must be 3"
    ):
        sabir.evaluate(model, {"a": F([1])})
    assert sabir.evaluate(model, {"a": F([1]), "b": F([1, 2, 3])})["y"].size == 3
    model = model_of("g (float[2] b) => (y) { y = Identity (b) }", b=[1, 2])
    with pytest.raises(FeedError, match="default of input 'b' is declared .* has elements of int64"):
        sabir.evaluate(model, {})


DISAGREE = {
    "an output of 2N": ("g (float[N] x) => (float[N] y) { y = Concat <axis = 0> (x, x) }", "N is 3 in input 'x', and 6"),
    "an output of another size": ("g (float[N] x) => (float[4] y) { y = Relu (x) }", "axis 0 is 3, and must be 4"),
    "an output of another rank": ("g (float[N] x) => (float[N,N] y) { y = Relu (x) }", "of rank 1 and not 2"),
    "an output of another type": ("g (float[N] x) => (float[N] y) { y = Cast <to = 11> (x) }", "elements of float64"),
    "a branch": (
        """g (float[N] x) => (y) { c = Constant <value = bool {1}> ()  y = If (c) <
            then_branch = t () => (float[N] a) { a = Concat <axis = 0> (x, x) },
            else_branch = e () => (float[M] b) { b = Identity (x) }> }""",
        "output 'a' of the subgraph 't' .* N is 3 in input 'x', and 6",
    ),
    "a loop's body": (
        """g (float[N] x) => (y) { m = Constant <value = int64 {2}> ()  y = Loop (m, "", x) <
            body = b (int64 i, bool c, float[N] s) => (bool d, float[K] t) {
                d = Identity (c)  t = Concat <axis = 0> (s, x) }> }""",
        "input 's' of the subgraph 'b' .* N is 3 in input 'x', and 6",
    ),
    "a body in a body": (
        """g (float[N] x) => (y) { c = Constant <value = bool {1}> ()  y = If (c) <
            then_branch = t () => (float[A] a) { a = If (c) <
                then_branch = u () => (float[N] v) { v = Concat <axis = 0> (x, x) },
                else_branch = w () => (float[B] v) { v = Identity (x) }> },
            else_branch = e () => (float[M] b) { b = Identity (x) }> }""",
        "output 'v' of the subgraph 'u'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DISAGREE)
def test_what_disagrees_warns_once_and_ends_a_strict_run(what):
    text, message = DISAGREE[what]
    model, feeds = model_of(text), {"x": F([1, 2, 3])}
    session = sabir.Session(model)
    with pytest.warns(SabirWarning, match=message):
        first = session.run(feeds)
    second = session.run(feeds)  # a second warning would be an error here
    np.testing.assert_array_equal(first["y"], second["y"])
    with pytest.raises(EvaluationError, match=message):
        strictly(model, feeds)
    with pytest.raises(EvaluationError, match=message):
        sabir.evaluate(model, feeds, strict=True)


def test_a_variable_that_a_body_introduces_may_change_from_turn_to_turn():
    text = """g (float[N] x) => (y) { m = Constant <value = int64 {3}> ()  y = Loop (m, "", x) <
        body = b (int64 i, bool c, float[S] s) => (bool d, float[T] t) {
            d = Identity (c)  t = Concat <axis = 0> (s, s) }> }"""
    assert strictly(model_of(text), {"x": F([1])})["y"].size == 8


def test_a_function_has_variables_of_its_own():
    text = """g (float[N] x, float[M] z) => (y, w) { y = d.f (x)  w = d.f (z) }
    <domain: "d", opset_import: ["" : 21]> f (a) => (b) {
        c = Constant <value = bool {1}> ()
        b = If (c) <then_branch = t () => (float[N] v) { v = Identity (a) },
                    else_branch = e () => (float[N] v) { v = Identity (a) }> }"""
    model = sabir.parse(HEAD.replace("]", ', "d" : 1]') + text)
    assert strictly(model, {"x": F([1]), "z": F([1, 2])})["w"].size == 2


def test_a_strict_run_compares_the_values_between_too():
    model = model_of(
        "g (float[N] x) => (float[N] y) { a = Concat <axis = 0> (x, x)  y, z = Split <num_outputs = 2> (a) }"
    )
    value = next(iter(model.graph)).output
    value.type = model.graph.inputs[0].type
    sabir.evaluate(model, {"x": F([1, 2])})
    with pytest.raises(
        EvaluationError, match=r"value 'a' is declared float\[N\].*N is 2 in input 'x', and 4 here"
    ):
        strictly(model, {"x": F([1, 2])})


def test_what_inference_finds_holds_in_strict_runs():
    model = sabir.infer(
        model_of("g (float[N,3] x) => (y) { a = Concat <axis = 0> (x, x)  y = Transpose (a) }")
    )
    assert strictly(model, {"x": np.ones((2, 3), F)})["y"].shape == (3, 4)


def test_a_dimension_below_0_is_open():
    model = model_of("g (float[N] x) => (y) { y = Identity (x) }")
    model.graph.inputs[0].type = model.graph.outputs[0].type = sabir.ir.tensor_type("float", [-1, 3])
    assert strictly(model, {"x": np.ones((2, 3), F)})["y"].shape == (2, 3)
    with pytest.raises(FeedError, match=r"float\[-1,3\].*axis 1 is 4, and must be 3"):
        strictly(model, {"x": np.ones((2, 4), F)})


def test_a_variable_of_items_has_one_size_in_all_of_them():
    """Spec/ir.txt, Static tensor shapes: `seq(float[N])` "represents a sequence of tensors of the same shape"."""
    model = model_of("g (seq(float[N]) s) => (int64 y) { y = SequenceLength (s) }")
    feeds = {"s": [F([1]), F([1, 2])]}
    with pytest.warns(SabirWarning, match="item 1.*N is 1 in input 's', item 0, and 2 here"):
        assert sabir.evaluate(model, feeds)["y"] == 2
    with pytest.raises(FeedError, match="item 1.*N is 1 in input 's', item 0, and 2 here"):
        strictly(model, feeds)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_variable_of_items_of_an_output_has_one_size(engine):
    model = model_of("g (float[6] x, int64[K] p) => (seq(float[M]) y) { y = SplitToSequence (x, p) }")
    session, x = sabir.Session(model, engine=engine), np.arange(6, dtype=F)
    session.run({"x": x, "p": np.array([3, 3])})
    message = r"output 'y', item 1 is declared float\[M\].*M is 2 in output 'y', item 0, and 4 here"
    with pytest.warns(SabirWarning, match=f"{message}; a strict run makes this an error"):
        assert len(session.run({"x": x, "p": np.array([2, 4])})["y"]) == 2
    with pytest.raises(EvaluationError, match=message):
        strictly(model, {"x": x, "p": np.array([2, 4])})


def test_a_map_with_keys_that_no_map_has():
    for key in ("float", "bool", "complex64", "bfloat16"):
        model = model_of(f"g (map({key}, float) s) => (int64 y) {{ y = Constant <value_int = 1> () }}")
        with pytest.raises(sabir.FeedError, match=f"a map cannot have keys of type {key}"):
            sabir.evaluate(model, {"s": {1: 2.0}})
    model.graph.inputs[0].type = sabir.ir.MapType(sabir.ir.unknown_element(0), sabir.ir.tensor_type("float"))
    assert sabir.evaluate(model, {"s": {1: 2.0}})["y"] == 1


def test_an_open_dimension_of_items_may_differ():
    """Spec/ir.txt: the variable "must be omitted from the above type if that dimension" differs between items."""
    model = model_of("g (seq(float[?]) s) => (int64 y) { y = SequenceLength (s) }")
    assert strictly(model, {"s": [F([1]), F([1, 2])]})["y"] == 2
    model = model_of(
        "g (float[N] x) => (seq(float[?]) s) { y = Concat <axis = 0> (x, x)  s = SequenceConstruct (x, y) }"
    )
    assert len(strictly(model, {"x": F([1])})["s"]) == 2


IN_COMPOUNDS = {
    "seq(float[M,M]) s": ([np.ones((2, 2), F)], "item 0.*M is 3 in input 'x', and 2 here"),
    "optional(seq(float[M])) s": ([F([1])], "item 0.*M is 3 in input 'x', and 1 here"),
    "optional(float[M]) s": (F([1]), "M is 3 in input 'x', and 1 here"),
    "sparse_tensor(float[M,2]) s": (
        np.ones((4, 2), F),
        "M is 3 in input 'x', and 4 here|M is 4 in input 's', and 3 here",
    ),
    "map(int64, float[M]) s": ({7: F([1])}, "key 7.*M is 3 in input 'x', and 1 here"),
}


@pytest.mark.parametrize("declared", IN_COMPOUNDS)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("strict", [True, False])
def test_a_variable_that_a_tensor_fixes_holds_in_every_compound(declared, first, strict, engine):
    """Also where the compound comes first among the inputs."""
    value, message = IN_COMPOUNDS[declared]
    inputs = f"{declared}, float[M] x" if first else f"float[M] x, {declared}"
    session = sabir.Session(model_of(f"g ({inputs}) => (y) {{ y = Neg (x) }}"), strict=strict, engine=engine)
    with pytest.raises(FeedError, match=message):
        session.run({"x": F([1, 2, 3]), "s": value})


def test_an_item_that_contradicts_itself():
    model = model_of("g (seq(float[M,M]) s) => (int64 y) { y = SequenceLength (s) }")
    with pytest.raises(FeedError, match="item 0.*M is 2 in input 's', item 0, and 3 here"):
        sabir.evaluate(model, {"s": [np.ones((2, 3), F)]})


MAPS = {
    "a key out of range": ("map(int8, float)", {300: F(1)}, "the key 300 is not in -128 to 127"),
    "a text for a key": ("map(int64, float)", {"a": F(1)}, "has the key 'a': pass int64 keys"),
    "a number for a text": ("map(string, float)", {1: F(1)}, "has the key 1: pass string keys"),
    "a value of another shape": ("map(int64, float[2])", {1: F([1, 2, 3])}, r"key 1 is declared float\[2\]"),
    "a scalar for a vector": ("map(int64, float[2])", {1: F(1)}, r"key 1 is declared float\[2\]"),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_have_the_declared_keys_and_values(name, engine):
    kind, value, message = MAPS[name]
    session = sabir.Session(model_of(f"g ({kind} m) => (y) {{ y = Identity (m) }}"), engine=engine)
    with pytest.raises(FeedError, match=message):
        session.run({"m": value})


RESULTS = {
    "map(string, float)": "declared map.string,float., and is a ndarray",
    "seq(map(int64, float))": "has the key 'a': pass int64 keys",
}


@pytest.mark.parametrize("kind", RESULTS)
def test_results_that_are_no_such_maps(kind, engine):
    node = (
        "y = Neg (x)"
        if kind.startswith("map")
        else 'y = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b"]> (x)'
    )
    head = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>'
    model = sabir.parse(f"{head} g (float[1,2] x) => ({kind} y) {{ {node} }}")
    feeds = {"x": np.ones((1, 2), F)}
    with pytest.warns(SabirWarning, match=RESULTS[kind]):
        sabir.Session(model, engine=engine).run(feeds)
    with pytest.raises(EvaluationError, match=RESULTS[kind]):
        sabir.Session(model, strict=True, engine=engine).run(feeds)
