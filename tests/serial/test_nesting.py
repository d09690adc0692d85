"""What is nested too deep for protobuf's readers is not written: no file that nobody can load."""

import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import SabirError, WireError
from sabir.ir import Attribute, Function, SequenceType, tensor_type

DEEP = Limits(depth=200)
FORMATS = ("protobuf", "textproto", "json")


def branches(depth):
    """Branches in branches."""
    inner = Builder(21)
    inner.output(inner.Constant(value=np.ones(2, np.float32)))
    for _ in range(depth):
        outer, other = Builder(21), Builder(21)
        other.output(other.Constant(value=np.ones(2, np.float32)))
        condition = outer.Constant(value=np.array([True]))
        outer.output(outer.If(condition, then_branch=inner.graph, else_branch=other.graph))
        inner = outer
    return sabir.Model(inner.graph, inner.opsets, 10)


def lists(depth):
    kind = tensor_type("float", (1,))
    for _ in range(depth):
        kind = SequenceType(kind)
    return kind


def of_types(depth):
    """An input of lists in lists."""
    b = Builder(21, check=False)
    b.output(b.Identity(b.graph.add_input("x", lists(depth))))
    return sabir.Model(b.graph, b.opsets, 10)


def of_type_attribute(depth):
    b = Builder(21, check=False)
    b.output(b.Optional(type=Attribute("type", "type", lists(depth)).value))
    return sabir.Model(b.graph, b.opsets, 10)


def in_function(depth):
    """Branches in the default of a function's attribute."""
    model = branches(0)
    body = Builder(21)
    body.output(body.Constant(value=np.ones(2, np.float32)))
    default = Attribute("body", "graph", branches(depth).graph)
    model.functions.append(
        Function("F", "d", graph=body.graph, opsets={"": 21}, attributes={"body": default})
    )
    return model


MODELS = {
    "branches": branches,
    "types": of_types,
    "a type attribute": of_type_attribute,
    "a function": in_function,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_every_depth_is_read_back_or_refused(name, form):
    refused = 0
    for depth in range(20, 60):
        model = MODELS[name](depth)
        try:
            data = sabir.dumps(model, format=form, limits=DEEP)
        except WireError as error:
            refused += 1
            assert "nested too deep to be saved" in str(error)
            assert f"readers of {form} accept" in str(error)
        else:
            assert not refused, "a deeper one is refused too"
            sabir.loads(data, format=form, limits=DEEP)
    assert 5 <= refused <= 35


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_written_of_a_model_that_is_refused(tmp_path, form):
    path = tmp_path / f"m.{form}"
    path.write_bytes(b"old")
    for given in ({}, {"external": False}, {"external": "w.bin", "threshold": 1}):
        with pytest.raises(WireError, match="nested too deep to be saved"):
            sabir.save(branches(60), path, format=form, limits=DEEP, **given)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", [*FORMATS, "onnxtxt"])
def test_what_is_too_deep_for_the_stack_is_an_error_of_ours(form):
    with pytest.raises(SabirError, match="nested too deep"):
        sabir.dumps(branches(900), format=form, limits=Limits(depth=None))


def test_the_text_syntax_has_no_such_bound():
    again = sabir.parse(sabir.dumps(branches(60), format="onnxtxt", limits=DEEP).decode(), limits=DEEP)
    with pytest.raises(WireError):
        sabir.dumps(again, limits=DEEP)
