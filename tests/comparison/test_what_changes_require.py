"""The sentences of the standard about model versions, and what was decided where it says nothing."""

import re
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.comparison import POLICY
from sabir.comparison._types import is_wider
from sabir.elements import ELEMENTS
from sabir.ir import (
    ArrayTensor,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TypeNote,
    tensor_type,
)

PAGE = Path(__file__).parents[2] / "docs" / "versions.md"
RELU = "{ y = Relu (x) }"


def ported(old_type, new_type, port="inputs"):
    """Compare two models that differ in the type of an input or output."""
    models = []
    for type_ in (old_type, new_type):
        model = sabir.parse(
            '<ir_version: 10, opset_import: ["d" : 1]> g (float x) => (float y) { y = d.Thing (x) }'
        )
        getattr(model.graph, port)[0].type = type_
        models.append(model)
    return [(c.kind, c.bump) for c in sabir.compare(*models).changes]


# the standard: breaking changes


def test_other_required_contents_of_an_input_are_breaking():
    image = tensor_type("float", [1, 3, 8, 8])
    grey, colour = (
        sabir.ir.TensorType(image.element, image.shape, note=TypeNote(d)) for d in ("GREY", "RGB")
    )
    assert ported(colour, grey) == [("meaning-changed", "major")]
    assert ported(image, grey) == [("meaning-declared", None)]
    axes = [
        sabir.ir.TensorType(image.element, image.shape, note=TypeNote("", d))
        for d in (("N", "C"), ("N", "H"))
    ]
    assert ported(*axes) == [("meaning-changed", "major")]
    assert ported(*axes, port="outputs") == [("meaning-changed", "major")]


def test_another_pixel_format_is_breaking():
    b = sabir.Builder(21)
    b.output(b.Relu(b.input("x", "float", [1, 3, 8, 8])), "y")
    old = b.model()
    new = old.clone()
    old.metadata, new.metadata = {"Image.BitmapPixelFormat": "Rgb8"}, {"Image.BitmapPixelFormat": "Gray8"}
    comparison = sabir.compare(old, new)
    assert comparison.required == "major"
    assert (
        str(comparison.reasons[0])
        == "metadata 'Image.BitmapPixelFormat': the value was 'Rgb8' and is 'Gray8'"
    )
    assert not sabir.accepts(old, new)
    new.metadata = {"model_license": "MIT"}
    assert [c.kind for c in sabir.compare(old, new).changes] == ["meaning-declared", "metadata-changed"]


@pytest.mark.parametrize("port", ["inputs", "outputs"])
def test_an_incompatible_type_is_breaking(port):
    kind = f"{port[:-1]}-type-changed"
    assert ported(tensor_type("int32", [2]), tensor_type("string", [2]), port) == [(kind, "major")]


def test_a_new_input_without_a_default_is_breaking(changed):
    assert changed(inputs=("float[2] x", "float[2] x, float[2] z")) == [("input-added", "major")]


def test_removing_an_output_is_breaking(changed):
    assert changed(
        outputs=("float[2] y, float[2] z", "float[2] y"), body="{ y = Relu (x) z = Relu (x) }"
    ) == [("output-removed", "major")]


# the standard: changes that are not breaking


@pytest.mark.parametrize("port", ["inputs", "outputs"])
@pytest.mark.parametrize(("narrow", "wide"), [("int32", "int64"), ("float16", "float")])
def test_a_widening_type_is_not_breaking(port, narrow, wide):
    kind = f"{port[:-1]}-type"
    assert ported(tensor_type(narrow, [2]), tensor_type(wide, [2]), port) == [(f"{kind}-widened", "minor")]
    assert ported(tensor_type(wide, [2]), tensor_type(narrow, [2]), port) == [(f"{kind}-changed", "major")]


def test_a_new_input_with_a_default_is_not_breaking(changed):
    inputs = "float[2] x", "float[2] x, float[2] z = {1, 2}"
    body = "{ y = Relu (x) }"
    assert changed(inputs=inputs, body=body) == [("optional-input-added", "minor")]


def test_values_that_were_not_possible_before_are_not_breaking(changed):
    assert changed(inputs=("float[2] x", "float[?] x")) == [("input-shape-widened", "minor")]


def test_other_weights_are_a_patch(changed):
    assert changed(
        body=("<float[2] w = {1, 2}> { y = Add (x, w) }", "<float[2] w = {1, 3}> { y = Add (x, w) }")
    ) == [("weights-changed", "patch")]


def test_a_faster_graph_is_a_patch(changed):
    assert changed(body=("{ t = Relu (x) y = Relu (t) }", RELU)) == [("node-removed", "patch")]


# what the standard leaves open


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("float[2] x, float[2] z", "float[2] x", "input-removed"),
        ("float[2] x, float[2] z", "float[2] z, float[2] x", "inputs-reordered"),
        ("float[2] x, float[2] z = {1, 2}", "float[2] x, float[2] z", "default-removed"),
        ("float[2] x, float[2] z", "float[2] x, float[2] z = {1, 2}", "default-added"),
        ("float[2] x, float[2] z = {1, 2}", "float[2] x, float[2] z = {1, 3}", "default-changed"),
    ],
)
def test_inputs(changed, old, new, kind):
    assert changed(inputs=(old, new)) == [(kind, POLICY[kind].bump)]


def test_a_renamed_input_is_removed_and_added_and_its_readers_are_the_same(changed):
    assert changed(inputs=("float[2] x", "float[2] x2"), body=(RELU, "{ y = Relu (x2) }")) == [
        ("input-removed", "major"), ("input-added", "major"),
    ]  # fmt: skip


def test_an_input_before_the_old_ones_moves_them(changed):
    found = changed(inputs=("float[2] x", "float[2] z = {1, 2}, float[2] x"))
    assert found == [("inputs-reordered", "major"), ("optional-input-added", "minor")]


def test_outputs(changed):
    two = "{ y = Relu (x) z = Neg (x) }"
    assert changed(outputs=("float[2] y", "float[2] y, float[2] z"), body=two) == [("output-added", "minor")]
    assert changed(outputs=("float[2] y, float[2] z", "float[2] z, float[2] y"), body=two) == [
        ("outputs-reordered", "major")
    ]


def test_an_input_of_an_optional_type_is_optional():
    old = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    new = old.clone()
    new.graph.add_input("z", OptionalType(tensor_type("float", [2])))
    assert [c.kind for c in sabir.compare(old, new).changes] == ["optional-input-added"]
    assert sabir.accepts(old, new)


FLOAT, INT = tensor_type("float", [2]), tensor_type("int64", [2])


@pytest.mark.parametrize(
    ("old", "new", "of_input", "of_output"),
    [
        (FLOAT, OptionalType(FLOAT), "shape-widened", "shape-changed"),
        (OptionalType(FLOAT), FLOAT, "shape-changed", "shape-narrowed"),
        (FLOAT, SequenceType(FLOAT), "type-changed", "type-changed"),
        (SequenceType(FLOAT), SequenceType(INT), "type-changed", "type-changed"),
        (FLOAT, SparseTensorType(FLOAT.element, FLOAT.shape), "type-changed", "type-changed"),
        (OpaqueType("d", "A"), OpaqueType("d", "B"), "type-changed", "type-changed"),
        (MapType(INT.element, FLOAT), MapType(FLOAT.element, FLOAT), "type-changed", "type-changed"),
        (
            MapType(INT.element, INT),
            MapType(INT.element, tensor_type("float", [2])),
            "type-changed",
            "type-changed",
        ),
        (tensor_type("float"), FLOAT, "shape-changed", "shape-narrowed"),
        (FLOAT, tensor_type("float"), "shape-widened", "shape-changed"),
        (None, FLOAT, "shape-changed", "shape-narrowed"),
        (FLOAT, None, "shape-widened", "shape-changed"),
        (FLOAT, tensor_type("float", [2, 1]), "shape-changed", "shape-changed"),
        (FLOAT, tensor_type("float", [3]), "shape-changed", "shape-changed"),
        (FLOAT, tensor_type("float", ["N"]), "shape-widened", "shape-changed"),
        (tensor_type("float", ["N"]), FLOAT, "shape-changed", "shape-narrowed"),
    ],
)
def test_types(old, new, of_input, of_output):
    assert [kind for kind, _ in ported(old, new)] == [f"input-{of_input}"]
    assert [kind for kind, _ in ported(old, new, "outputs")] == [f"output-{of_output}"]


def test_equal_types_are_no_change():
    for type_ in (FLOAT, None, OpaqueType("d", "A"), MapType(INT.element, SequenceType(FLOAT))):
        assert ported(type_, type_) == []


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        # a variable is what its uses make it
        ("x[N], z[N]", "x[N], z[M]", ["input-shape-widened"]),
        ("x[N], z[M]", "x[N], z[N]", ["input-shape-changed"]),
        ("x[N], z[N]", "x[B], z[B]", ["dimension-renamed", "dimension-renamed"]),
        ("x[N], z[2]", "x[?], z[2]", ["dimension-renamed"]),
        ("x[3], z[3]", "x[N], z[N]", ["input-shape-widened", "input-shape-widened"]),
        ("x[3], z[4]", "x[N], z[N]", ["input-shape-widened", "input-shape-changed"]),
        ("x[N], z[2*N]", "x[M], z[2*M]", ["dimension-renamed", "dimension-renamed"]),
        ("x[2], z[4]", "x[N], z[2*N]", ["input-shape-widened", "input-shape-widened"]),
        ("x[N], z[2*N]", "x[N], z[3*N]", ["input-shape-changed"]),
        # outputs, for the shapes of the old inputs
        ("x[1] => y[1]", "x[N] => y[N]", ["input-shape-widened", "output-shape-follows"]),
        ("x[1] => y[1]", "x[N] => y[2*N]", ["input-shape-widened", "output-shape-changed"]),
        ("x[1] => y[1]", "x[N] => y[M]", ["input-shape-widened", "output-shape-changed"]),
        ("x[N] => y[N]", "x[N] => y[M]", ["output-shape-changed"]),
        ("x[N] => y[M]", "x[N] => y[N]", ["output-shape-narrowed"]),
        ("x[N] => y[?]", "x[N] => y[4]", ["output-shape-narrowed"]),
        ("x[N] => y[4]", "x[N] => y[?]", ["output-shape-changed"]),
        ("x[N] => y[N]", "x[N] => y[7]", ["output-shape-changed"]),
        ("x[2] => y[K,K]", "x[2] => y[K,M]", ["output-shape-changed"]),
        ("x[2] => y[K,M]", "x[2] => y[K,K]", ["output-shape-narrowed"]),
        ("x[2] => y[K,M]", "x[2] => y[A,B]", ["dimension-renamed"]),
        ("x[2] => y[K,K]", "x[2] => y[3,4]", ["output-shape-narrowed", "output-shape-changed"]),
    ],
)
def test_dimensions(old, new, kinds):
    models = []
    for text in (old, new):
        inputs, _, output = text.partition(" => ")
        ports = [f"float[{p[2:-1]}] {p[0]}" for p in inputs.split(", ")]
        declared = f"float[{output[2:-1]}] y" if output else "float[] y"
        models.append(sabir.parse(
            f'<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g ({", ".join(ports)}) => ({declared}) '
            "{ y = d.Thing (x) }"
        ))  # fmt: skip
    assert sorted(c.kind for c in sabir.compare(*models).changes) == sorted(kinds)


def test_a_wider_element_type_has_every_value_of_the_narrower_one():
    """Compare with what each pair can represent, for all numbers of eight bits and less."""
    by_name = {t.name: t for t in ELEMENTS}
    expected = {
        "uint8": "uint16 int16 uint32 int32 uint64 int64", "int16": "int32 int64", "uint32": "uint64 int64",
        "int64": "", "uint64": "", "float": "double", "float16": "float double", "bfloat16": "float double",
        "double": "", "complex64": "complex128", "complex128": "", "bool": "", "string": "",
        "float8e4m3fn": "float16 bfloat16 float double", "float8e8m0": "bfloat16 float double",
        "int4": "int8 int16 int32 int64",
        "float4e2m1": "float6e2m3 float6e3m2 float8e4m3fn float8e5m2 float16 bfloat16 float double",
    }  # fmt: skip
    for narrow, wider in expected.items():
        found = {t.name for t in ELEMENTS if is_wider(t, by_name[narrow])}
        assert found == set(wider.split()), narrow


# the page


def test_the_page_has_the_table_of_the_code():
    rows = re.findall(r"^\| `([\w-]+)` \| (.+) \| (\w+) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    expected = [
        (kind, rule.change, "nothing" if rule.bump is None else rule.bump.upper(), rule.reason)
        for kind, rule in POLICY.items()
    ]
    assert rows == expected


def test_defaults_of_an_input_may_be_sparse_or_large():
    old = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[4000] x) => (float[4000] y) { y = Relu (x) }'
    )
    new = old.clone()
    data = np.zeros(4000, np.float32)
    for one in (old, new):
        one.graph.set_initializer(one.graph.inputs[0], ArrayTensor(data.copy()))
    assert sabir.compare(old, new).changes == ()
