"""Models as subjects of sessions: valid before any run, identified for the cache; feeds where only shapes matter."""

import re

import numpy as np
import pytest

import sabir
from sabir.base import FeedError, SabirError
from sabir.compilation.frontend.binding import bound_subject
from sabir.compilation.frontend.body_types import prepare_body
from sabir.compilation.frontend.placeholders import placeholder_feeds
from sabir.compilation.frontend.subject import Subject
from sabir.evaluation import ModelPort
from sabir.files import opened_file
from sabir.ir import SequenceType, TensorType, symbol, tensor_type
from sabir.opsets import STANDARD
from sabir.scheduling import make_plan, schedule

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
MODEL = HEADER + "g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }"


def subject(text):
    return bound_subject(sabir.parse(text), STANDARD, None, None, newer_opsets=False)


# ---------------------------------------------------------------- stand-ins


def port(name, *shape, optional=False, kind=np.float32):
    return ModelPort(name, tensor_type(kind, shape), optional)


def test_placeholder_feeds_have_shapes_and_take_no_memory():
    found = placeholder_feeds(
        [port("x", 4, 1 << 30), port("y", "N", 2), port("z", "N", optional=True)], {"y": [3, 2]}
    )
    assert {name: x.shape for name, x in found.items()} == {"x": (4, 1 << 30), "y": (3, 2)}
    assert found["x"].strides == (0, 0)
    assert found["x"].dtype == np.float32


def test_an_optional_input_has_a_stand_in_if_its_shape_is_passed():
    assert placeholder_feeds([port("z", "N", optional=True)], {"z": [2]})["z"].shape == (2,)


@pytest.mark.parametrize(
    ("ports", "shapes", "message"),
    [
        (
            [port("x", "N")],
            {},
            "input 'x' is declared float[N], and its size is not known: run the session first",
        ),
        ([port("x", 2)], {"w": [2]}, "the model has no input 'w'; its inputs are 'x'"),
        ([], {"w": [2]}, "the model has no input 'w'; its inputs are none"),
        ([port("x", 2)], {"x": [-1]}, "the shape [-1] of input 'x' is not valid"),
        (
            [ModelPort("s", SequenceType(tensor_type(np.float32, [2])))],
            {},
            "input 's' is seq(float[2]): run the session first",
        ),
    ],
)
def test_feeds_that_nothing_stands_in_for(ports, shapes, message):
    with pytest.raises(FeedError, match=re.escape(message)):
        placeholder_feeds(ports, shapes)


# ---------------------------------------------------------------- subjects


def test_a_subject_is_a_snapshot():
    model = sabir.parse(MODEL)
    found = bound_subject(model, STANDARD, None, None, newer_opsets=False)
    model.graph[0].name = "renamed"
    assert not found.model.graph[0].name
    assert found.model is not model
    assert [p.name for p in found.front.inputs] == ["x"]
    assert found.defaults == [None]
    assert not found.has_turns


def test_an_invalid_call_is_found_before_any_run():
    with pytest.raises(SabirError):
        subject(HEADER + "g (float[2] x) => (float[2] y) { y = Nonsense (x) }")


def test_defaults_of_inputs():
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x = {3, 4}) => (float[2] y) { y = Neg (x) }'
    (default,) = subject(text).defaults
    assert default.tolist() == [3, 4]


def test_equal_models_have_one_structure():
    assert subject(MODEL).structure == subject(MODEL).structure
    assert subject(MODEL).structure != subject(MODEL.replace("{1, 2}", "{1, 3}")).structure
    assert subject(MODEL).structure != subject(MODEL.replace("Mul", "Add")).structure


def test_constants_by_name():
    found = subject(MODEL)
    assert found.constant("w").tolist() == [1, 2]
    assert list(found.names_of_initializers().values()) == ["w"]
    assert found.places == {}  # no file


def test_a_file_that_nothing_describes(tmp_path):
    path = tmp_path / "model.onnx"
    sabir.save(sabir.parse(MODEL), path)
    assert Subject.known(opened_file(path), newer_opsets=False) is None


# ---------------------------------------------------------------- bodies


def body(text, kinds, captured=None):
    model = sabir.parse(text)
    program = schedule(model, STANDARD).program
    names = {v.name: v.slot for v in program.values}
    plan = make_plan(program, [v.slot for v in program.outputs])
    found = prepare_body(
        program,
        plan,
        {names[n]: k for n, k in kinds.items()},
        {names[n]: a for n, a in (captured or {}).items()},
    )
    return found, names


def test_types_of_a_body_follow_from_its_operands():
    found, names = body(
        HEADER + "g (float[a,b] x) => (float[c,d] y) { t = Transpose (x) y = Relu (t) }",
        {"x": tensor_type(np.float32, [2, "K"])},
    )
    assert found.types[names["y"]] == TensorType(found.types[names["x"]].element, (symbol("K"), 2))


def test_unknown_sizes_of_a_body_have_names():
    found, names = body(
        HEADER + "g (float[a] x) => (int64[c,d] y) { y = NonZero (x) }", {"x": tensor_type(np.float32, [4])}
    )
    assert found.types[names["y"]].shape == (1, symbol("b0.0.1"))


def test_few_integers_that_a_body_captures_are_known():
    shape = np.array([3, 2])
    found, names = body(
        HEADER + "g (float[a] x, int64[2] s) => (float[c,d] y) { y = Reshape (x, s) }",
        {"x": tensor_type(np.float32, [6])}, {"s": shape},
    )  # fmt: skip
    assert found.types[names["s"]].known == (3, 2)
    assert found.types[names["y"]].shape == (3, 2)
    assert found.constants[names["s"]] is shape
