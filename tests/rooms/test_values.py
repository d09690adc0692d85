# ruff: file-ignore[banned-api]  onnx.defs is the oracle of the published facts
"""The values that attributes may have: every room declares them, and everything that reads a call holds to them."""

import numpy as np
import pytest
from onnx import defs

import sabir
from sabir.elements import ELEMENTS
from sabir.evaluation import Runner
from sabir.inference import Inference
from sabir.ir import Attribute
from sabir.opsets import STANDARD
from sabir.reference import page
from sabir.schema import ElementTypes, OneOf, Range
from sabir.syntax import parse
from support.cases import each_of
from support.rooms import VERSIONS, examples_of, model_of

FREE = {  # string attributes whose values the standard leaves open
    "a text that the operator gives or looks for": {
        ("CategoryMapper", "default_string"), ("Constant", "value_string"), ("Constant", "value_strings"),
        ("LabelEncoder", "default_string"), ("StringNormalizer", "stopwords"), ("StringSplit", "delimiter"),
    },
    "a list of keys, classes or words that a model was trained on": {
        ("CategoryMapper", "cats_strings"), ("DictVectorizer", "string_vocabulary"),
        ("LabelEncoder", "classes_strings"), ("LabelEncoder", "keys_strings"),
        ("LabelEncoder", "values_strings"), ("LinearClassifier", "classlabels_strings"),
        ("OneHotEncoder", "cats_strings"), ("SVMClassifier", "classlabels_strings"),
        ("TfIdfVectorizer", "pool_strings"), ("TreeEnsembleClassifier", "classlabels_strings"),
        ("ZipMap", "classlabels_strings"),
    },
    "names of values in the model": {("Gradient", "xs"), ("Gradient", "y"), ("Gradient", "zs")},
    "an expression of a syntax of its own, which the room parses": {
        ("Einsum", "equation"), ("RegexFullMatch", "pattern"),
    },
    "the name of a locale, of which each platform has others": {("StringNormalizer", "locale")},
}  # fmt: skip
NAMES_OF_ELEMENT_TYPES = {
    "dtype", "to", "output_dtype", "output_datatype", "stash_type", "softmax_precision", "precision",
}  # fmt: skip
DOCS = {(s.domain, s.name, s.since_version): s for s in defs.get_all_schemas_with_history()}


def key_of(version):
    return version.operator.domain, version.operator.name, version.since


def declared(kind=object):
    """Every attribute that declares its values, in every version that an example calls."""
    return [
        pytest.param(version, name, values, id=f"{version}-{name}")
        for version in (p.values[0] for p in VERSIONS)
        for name, values in version.formal.values.items()
        if isinstance(values, kind) and (not version.removed or example_of(version) is not None)
    ]


def example_of(version):
    """The first example of a version, or of a later one that has the same signature as far as it goes."""
    operator = version.operator
    return next((e for e in examples_of(operator) if operator.find(e.opset) is version), None)


def replaced(version, name, value):
    """The first example of a version as a model, with another value of an attribute."""
    kind = version.formal.attributes[name].type
    model, _ = model_of(version.operator, example_of(version))
    (node,) = model.graph
    node.attributes[name] = Attribute(name, kind, (value,) if kind.endswith("s") else value)
    return model


def errors_in(model):
    found = [f for f in sabir.findings(model) if f.severity == "error"]
    return [f for f in found if f.rule != "NODE005"]  # of operators that came to an end


def test_every_string_attribute_declares_its_values_or_is_free():
    free = {entry for entries in FREE.values() for entry in entries}
    texts = {
        (o.name, a.name): v.formal.values.get(a.name)
        for o in STANDARD
        for v in o.versions
        for a in v.attributes
        if a.type in {"string", "strings"} and (o.domain, o.name, v.since) in DOCS
    }
    assert {entry for entry, values in texts.items() if values is None} == free


def test_every_attribute_that_names_an_element_type_declares_which():
    for version in (p.values[0] for p in VERSIONS):
        for attribute in version.attributes:
            if attribute.name in NAMES_OF_ELEMENT_TYPES:
                assert isinstance(version.formal.values.get(attribute.name), ElementTypes), version


@each_of("version", VERSIONS)
def test_defaults_are_admitted(version):
    given = {
        a.name: Attribute(a.name, a.type, a.default) for a in version.attributes if a.default is not None
    }
    assert [*version.formal.faults(given)] == []


@each_of("version, name, values", [p for p in declared(OneOf) if key_of(p.values[0]) in DOCS])
def test_the_standard_names_every_string(version, name, values):
    schema = DOCS[key_of(version)]
    text = schema.attributes[name].description + str(schema.doc if name == "activations" else "")
    assert all(n in text for n in values.names if isinstance(n, str))


@each_of("version, name, values", declared())
def test_another_value_is_refused_once_everywhere(version, name, values):
    bad = {OneOf: 99, Range: -(2**40), ElementTypes: 77}[type(values)]
    kind = version.formal.attributes[name].type
    bad = "no such value" if kind.startswith("string") else float(bad) if kind.startswith("float") else bad
    model = replaced(version, name, bad)

    (finding,) = errors_in(model)
    assert finding.rule == "ATTR009"
    assert f"{version}: " in finding.message
    assert f"attribute {name!r} is " in finding.message
    with pytest.raises(sabir.InferenceError, match=f"attribute {name!r}"):
        Inference(model, strict=True).run()
    # an operator that was removed is refused as such
    with pytest.raises(sabir.SchemaError, match=f"attribute {name!r}|was removed"):
        Runner(model)


@each_of("version, name, values", declared(ElementTypes))
def test_an_element_type_that_the_version_does_not_admit(version, name, values):
    is_text = version.formal.attributes[name].type == "string"
    numbers = [e for e in ELEMENTS if not values.admits(e.name.upper() if is_text else e.number)]
    assert numbers, "no version of any operator admits all of them"
    model = replaced(version, name, numbers[-1].name.upper() if is_text else numbers[-1].number)
    (finding,) = errors_in(model)
    assert finding.rule == "ATTR009"
    assert numbers[-1].name in finding.message.lower()


@each_of("version, name, values", declared())
def test_the_page_lists_the_values(version, name, values):
    (row,) = [r for r in page(version.operator, version.since).splitlines() if r.startswith(f"| `{name}` |")]
    assert values.listed() in row


VERSIONED = [
    ("GridSample", "mode", 16, "bilinear", True), ("GridSample", "mode", 20, "bilinear", False),
    ("GridSample", "mode", 16, "linear", False), ("GridSample", "mode", 20, "linear", True),
    ("Pad", "mode", 18, "wrap", False), ("Pad", "mode", 19, "wrap", True),
    ("ScatterND", "reduction", 16, "max", False), ("ScatterND", "reduction", 18, "max", True),
    ("ScatterElements", "reduction", 16, "min", False), ("ScatterElements", "reduction", 18, "min", True),
    ("Resize", "mode", 10, "cubic", False), ("Resize", "mode", 11, "cubic", True),
    ("Resize", "coordinate_transformation_mode", 13, "tf_half_pixel_for_nn", True),
    ("Resize", "coordinate_transformation_mode", 18, "tf_half_pixel_for_nn", False),
    ("Resize", "coordinate_transformation_mode", 18, "half_pixel_symmetric", False),
    ("Resize", "coordinate_transformation_mode", 19, "half_pixel_symmetric", True),
    ("GRU", "direction", 1, "foward", True), ("GRU", "direction", 3, "foward", False),
    ("Cast", "to", 8, 8, False), ("Cast", "to", 9, 8, True), ("Cast", "to", 9, 16, False),
    ("Cast", "to", 13, 16, True), ("Cast", "to", 24, 28, False), ("Cast", "to", 28, 28, True),
    ("Cast", "to", 1, "FLOAT", True), ("Cast", "to", 1, "STRING", False), ("Cast", "to", 1, "float", True),
    ("QuantizeLinear", "output_dtype", 21, 0, True), ("QuantizeLinear", "output_dtype", 21, 23, False),
    ("QuantizeLinear", "output_dtype", 23, 23, True), ("DequantizeLinear", "output_dtype", 23, 11, False),
    ("SequenceEmpty", "dtype", 11, 16, False), ("LayerNormalization", "stash_type", 17, 11, False),
    ("Attention", "q_num_heads", 23, 0, True),  # PyTorch writes 0 beside inputs of rank 4
]  # fmt: skip


@pytest.mark.parametrize(("op", "name", "opset", "value", "admitted"), VERSIONED)
def test_values_come_and_go_with_versions(op, name, opset, value, admitted):
    formal = STANDARD.find_version("", op, opset).formal
    kind = formal.attributes[name].type
    assert ([*formal.faults({name: Attribute(name, kind, value)})] == []) == admitted


NEAREST = [
    ("GridSample", 16, "mode", "bilinaer", "must be bilinear, nearest or bicubic; is it 'bilinear'?"),
    ("GridSample", 16, "padding_mode", "zero", "must be zeros, border or reflection; is it 'zeros'?"),
    ("BitShift", 11, "direction", "left", "must be LEFT or RIGHT; is it 'LEFT'?"),
    ("Mod", 13, "fmod", 2, "attribute 'fmod' is 2, and must be 0 or 1"),
    ("LRN", 13, "size", 0, "attribute 'size' is 0, and must be 1 or more"),
    ("LpPool", 18, "p", 0, "attribute 'p' is 0, and must be above 0"),
    ("Cast", 13, "to", 77, "attribute 'to' is 77, which is not an element type of the standard"),
    ("Cast", 13, "to", 17, "attribute 'to' is 17 (float8e4m3fn), which this version does not admit"),
    ("LayerNormalization", 17, "stash_type", 11, "is 11 (double), and must be 1 (float) or 16 (bfloat16)"),
]


@pytest.mark.parametrize(("op", "opset", "name", "value", "told"), NEAREST)
def test_a_message_names_what_is_admitted_and_the_nearest(op, opset, name, value, told):
    formal = STANDARD.find_version("", op, opset).formal
    ((_, message),) = formal.faults({name: Attribute(name, formal.attributes[name].type, value)})
    assert told in message
    assert message.startswith(f"{op}:")


def test_an_item_of_a_list_is_named():
    formal = STANDARD.find_version("ai.onnx.ml", "TreeEnsembleRegressor", 3).formal
    modes = Attribute("nodes_modes", "strings", ("BRANCH_LEQ", "LEAF", "BRANCH_LE", "LEAF"))
    ((_, message),) = formal.faults({"nodes_modes": modes})
    assert "item 2 of attribute 'nodes_modes' is 'BRANCH_LE', and must be BRANCH_LEQ, " in message


@pytest.mark.parametrize("value", [b"\xff", "", "x" * 10_000, "\x1b[31m"])
def test_odd_texts_are_quoted(value):
    formal = STANDARD.find_version("", "Gelu", 20).formal
    ((_, message),) = formal.faults({"approximate": Attribute("approximate", "string", value)})
    assert message.isprintable()
    assert len(message) < 400


def test_no_number_is_in_a_range_beyond_it():
    formal = STANDARD.find_version("", "Upsample", 7).formal
    for wrong, place in ((float("nan"), 1), (0.5, 1), (-1.0, 1)):
        ((_, message),) = formal.faults({"scales": Attribute("scales", "floats", (1.0, wrong))})
        assert f"item {place} of attribute 'scales'" in message


ALIASES = [
    ("", "Upsample", 9, "mode", "bilinear", "linear"), ("", "Upsample", 9, "mode", "cubic", "cubic"),
    ("", "Upsample", 1, "mode", "linear", "bilinear"), ("", "Conv", 11, "auto_pad", "", "NOTSET"),
    ("", "LSTM", 14, "activations", "hardsigmoid", "HardSigmoid"), ("", "Cast", 1, "to", "float", "FLOAT"),
    ("", "GRU", 1, "direction", "foward", "forward"),
    ("", "Resize", 13, "coordinate_transformation_mode", "tf_half_pixel_for_nn", "tf_half_pixel_for_nn"),
]  # fmt: skip


@pytest.mark.parametrize(("domain", "op", "opset", "name", "value", "meant"), ALIASES)
def test_an_alias_is_admitted_and_known(domain, op, opset, name, value, meant):
    formal = STANDARD.find_version(domain, op, opset).formal
    kind = formal.attributes[name].type
    given = {name: Attribute(name, kind, (value,) if kind.endswith("s") else value)}
    assert [*formal.faults(given)] == []
    assert [*formal.aliases(given)] == [(name, value, meant)]


def test_an_alias_runs_as_what_it_means():
    head = '<ir_version: 4, opset_import: ["" : 9]> g (float[1,1,2,2] x, float[4] s) => (float[N,C,H,W] y) '
    x, s = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), np.array([1, 1, 2, 2], np.float32)
    asked, named = (parse(head + f'{{ y = Upsample<mode = "{m}">(x, s) }}') for m in ("bilinear", "linear"))
    np.testing.assert_array_equal(*(sabir.evaluate(m, {"x": x, "s": s})["y"] for m in (asked, named)))
    (warning,) = [f for f in sabir.findings(asked) if f.rule == "ATTR010"]
    assert (warning.severity, warning.hint) == ("warning", "write 'linear'")
    assert not [f for f in sabir.findings(named) if f.rule == "ATTR010"]
