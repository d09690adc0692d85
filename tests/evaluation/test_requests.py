"""The arguments of a run in the forms and the orders in which callers write them."""

import re
from itertools import starmap

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.base import FeedError, UnsupportedError

MODEL = sabir.parse("""<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x, float[N] b, float[2] c = {1, 1}) => (float[N] y, float[N] z) {
    s = Sum (x, b, c) y = Identity (s) z = Neg (s)
}""")
X, B = np.float32([1, 2]), np.float32([3, 4])
FEEDS = {"x": X, "b": B}
Y, Z = [5, 7], [-5, -7]


@pytest.fixture(scope="module")
def session():
    return sabir.Session(MODEL)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((FEEDS,), {"y": Y, "z": Z}),
        ((FEEDS, "z"), {"z": Z}),
        ((FEEDS, ["z", "y"]), {"z": Z, "y": Y}),
        ((FEEDS, ("s",)), {"s": Y}),
        ((FEEDS, {"y": 1}.keys()), {"y": Y}),
        ((FEEDS, []), {}),
        (([X, B],), {"y": Y, "z": Z}),
        (((X, B, np.float32([0, 0])), "y"), {"y": [4, 6]}),
        (([[1, 2], [3, 4]], ["y"]), {"y": Y}),
        ((None, FEEDS), [Y, Z]),
        (([], FEEDS), [Y, Z]),
        ((["z"], FEEDS), [Z]),
        ((["z", "y", "z"], FEEDS), [Z, Y, Z]),
        (("z", FEEDS), [Z]),
        ((None, [X, B]), [Y, Z]),
    ],
)
def test_arguments_of_a_run(session, arguments, expected):
    got = session.run(*arguments)
    if isinstance(expected, list):
        assert [value.tolist() for value in got] == expected
    else:
        assert {name: value.tolist() for name, value in got.items()} == expected


def test_one_array_is_the_feed_of_the_only_input_that_needs_one():
    model = sabir.parse('<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (y) { y = Neg (x) }')
    assert sabir.Session(model).run(X)["y"].tolist() == [-1, -2]
    assert sabir.evaluate(model, [X], "y")["y"].tolist() == [-1, -2]
    with pytest.raises(FeedError, match="got 2 for 1; the inputs are 'x'"):
        sabir.evaluate(model, [1.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FEEDS, FEEDS), "both arguments of the run are dicts; pass one dict of feeds, and names of outputs"),
        (
            (None,),
            "pass the feeds as a dict from input names to arrays; got None; the inputs are 'x', 'b', 'c'",
        ),
        (("y",), "pass the feeds as a dict from input names to arrays; got a str; the inputs are"),
        (({1, 2},), "as a dict from input names to arrays; got a set"),
        ((X,), "feeds without names are a list with one value for each input; got 1 for 3; the inputs are"),
        ((FEEDS, 3), "outputs are requested by name; got an int"),
        ((FEEDS, [0]), "outputs are requested by name; got an int"),
        ((3, FEEDS), "outputs are requested by name; got an int"),
        ((FEEDS, "w"), "the model has no value 'w'; the outputs are 'y', 'z'"),
        (({0: X, "b": B},), "feeds are keyed by input names, and 0 is an int"),
        (({"X": X, "b": B},), "the model has no input 'X'; is it 'x'?"),
        (({"x": X},), "input 'b' (float[N]) is missing from the feeds"),
        (({"x": X, "b": None},), "input 'b' is declared float[N], and got None"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_in_a_sentence(session, arguments, message):
    with pytest.raises(FeedError, match=re.escape(message)):
        session.run(*arguments)


def test_inputs_and_outputs_as_onnxruntime_describes_them():
    model = sabir.parse(
        """<ir_version: 8, opset_import: ["" : 17]>
    g (float["N", ?, 3] x, float[] s, int64[2] d = {1, 1}, seq(float[N]) q, optional(float["N", 2]) o)
        => (float["N", ?, 3] y, int64[2] e, seq(float[N]) r, optional(float["N", 2]) p, float t)
    { y = Identity (x) e = Identity (d) r = Identity (q) p = Identity (o) t = Identity (s) }""".replace(
            '"N"', "N"
        )
    )
    session = sabir.Session(model)
    theirs = onnxruntime.InferenceSession(sabir.dumps(model))

    def described(ports):
        return [(p.name, p.type, p.shape) for p in ports]

    assert described(session.get_inputs()) == described(theirs.get_inputs())
    assert described(session.get_outputs()) == described(theirs.get_outputs())
    assert [p.name for p in session.get_inputs()] == ["x", "s", "q", "o"]


def test_evaluate_takes_paths_and_bytes_and_names_the_file(tmp_path):
    path = tmp_path / "m.onnx"
    sabir.save(MODEL, path)
    for source in (path, str(path), sabir.dumps(MODEL)):
        assert [v.tolist() for v in sabir.evaluate(source, FEEDS).values()] == [Y, Z]
    with path.open("rb") as file:
        assert sabir.evaluate(file, FEEDS, "y")["y"].tolist() == Y
    wrong = sabir.load(path)
    next(iter(wrong.graph)).op = "Summ"
    sabir.save(wrong, tmp_path / "wrong.onnx")
    with pytest.raises(sabir.SchemaError, match=r"wrong\.onnx: Summ"):
        sabir.evaluate(tmp_path / "wrong.onnx", FEEDS)


class Message:
    """A message of another library."""

    def SerializeToString(self):  # ruff: ignore[invalid-function-name]  as protobuf has it
        return b""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "a model is a sabir.Model, the path of a file or its bytes; got None"),
        (MODEL.graph, "or its bytes; got a Graph"),
        (Message(), "or its bytes; got a Message; pass its `SerializeToString()`"),
    ],
)
def test_what_is_no_model_is_refused(source, message):
    for run in (sabir.Session, lambda model: sabir.evaluate(model, {})):
        with pytest.raises(UnsupportedError, match=re.escape(message)):
            run(source)


def test_results_of_a_session_do_not_depend_on_the_order_of_arguments(session):
    by_name, in_order = session.run(FEEDS), session.run(None, FEEDS)
    assert all(starmap(np.array_equal, zip(by_name.values(), in_order, strict=True)))
