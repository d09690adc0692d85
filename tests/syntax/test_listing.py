"""What `print` shows, and texts in which large tensors are elided."""

import io

import numpy as np
import pytest

import sabir
from sabir.syntax import LISTED_ELEMENTS, parse_node, text_chunks, write_text


def classifier(size: int = 17) -> sabir.Model:
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", size])
    few = b.initializer("few", np.float32([1, 2]))
    many = b.initializer("many", np.arange(size, dtype=np.int64))
    b.output(b.op("Custom", x, few, many, domain="d", weights=[0.5] * size, axes=[1, 2]), "y")
    b.opsets["d"] = 1
    return b.model()


LISTING = """\
main (float[N,17] x) => (y)
   <float[2] few = {1.0,2.0},
    int64[17] many = {... 17 elements}>
{
   y = d.Custom <weights: floats = [... 17 floats], axes: ints = [1, 2]> (x, few, many)
}"""


def test_printing_a_model_elides_what_is_large():
    shown = str(classifier())
    assert shown.endswith(LISTING)
    assert f"{classifier()}" == shown
    assert repr(classifier()).startswith("<Model ")


def test_graphs_functions_and_nodes_are_printed_alike():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[N] x) => (y) { y = f.half (x) }
        <domain: "f", opset_import: ["" : 21]> half (x) => (y) { h = Constant <value = float {0.5}> () y = Mul (x, h) }
    """)
    (call,), (function,) = model.graph, model.functions
    assert str(call) == "y = f.half (x)"
    assert str(model.graph) == "g (float[N] x) => (y) {\n   y = f.half (x)\n}"
    assert str(function).splitlines()[-1] == "}"
    assert "h = Constant <value: tensor = float {0.5}> ()" in str(function)
    assert [repr(call), repr(function)] == ["<Node f.half>", "<Function f.half>"]


def test_a_tensor_is_elided_above_the_number_asked_for():
    model = classifier(4)
    assert "{... 4 elements}" in sabir.text(model, elide=3)
    assert "..." not in sabir.text(model, elide=4)
    assert sabir.text(model, elide=4) == sabir.text(model)
    assert f"{LISTED_ELEMENTS}" == "16"


def test_sparse_tensors_and_attributes_are_elided():
    node = parse_node(
        'y = Op <a = sparse_tensor(float[9]) float[3] {1,2,3} int64[3] {0,1,2}, b = [float[2] {1, 2}],'
        ' s = ["a", "b", "c"]> ()'
    )  # fmt: skip
    assert sabir.text(node, elide=1) == (
        "y = Op <a: sparse_tensor = sparse_tensor(float[9]) float[3] {... 3 elements} int64[3] {... 3 elements}, "
        "b: tensors = [float[2] {... 2 elements}], s: strings = [... 3 strings]> ()\n"
    )


def test_a_tensor_that_only_its_message_represents_is_elided():
    proto = '<ir_version: 10, opset_import: ["" : 21]> g () => (w) <w = base64 "{}"> {{ }}'
    model = sabir.parse(proto.format("EGM6AXdKZA" + "A" * 132 + "A="))
    assert "w = {... 107 bytes}" in sabir.text(model, elide=16).replace("\n", " ")


@pytest.mark.parametrize(
    "text",
    [
        "<ir_version: 10> g () => (w) <float[20] w = {... 20 elements}> { }",
        "<ir_version: 10> g () => (w) <string[20] w = {... 20 elements}> { }",
        "<ir_version: 10> g () => (w) <w = {... 109 bytes}> { }",
        "<ir_version: 10> g () => (w) { w = Constant <value = int4[20] {... 20 elements}> () }",
        "<ir_version: 10> g () => (w) { w = Constant <value: tensor = {... 20 bytes}> () }",
        "<ir_version: 10> g () => (w) { w = Constant <value_floats: floats = [... 20 floats]> () }",
    ],
)
def test_an_elided_text_is_refused(text):
    with pytest.raises(sabir.ParseError, match=r"elided here.*`sabir\.text\(model\)` or `sabir text --all`"):
        sabir.parse(text)


def test_an_object_without_a_text_is_shown_with_the_reason():
    b = sabir.Builder(21)
    b.output(b.Identity(b.initializer("s", np.array(["\ud800"], object))), "y")
    shown = str(b.graph)
    assert shown.startswith("<Graph ")
    assert "it has no text: " in shown


def test_another_object_has_no_text():
    with pytest.raises(TypeError, match="this is a ndarray"):
        sabir.syntax.text(np.zeros(3))


@pytest.mark.parametrize(
    "element", ["float", "double", "int4", "uint2", "float16", "complex64", "string", "bool"]
)
def test_large_tensors_are_written_in_chunks(element):
    size = (1 << 17) + 3
    b = sabir.Builder(25)
    if element == "string":
        data = np.array([f'{i},"' for i in range(size)], object)
    else:
        numbers = np.arange(size) % 2 if element in {"bool", "uint2", "int4"} else np.arange(size) / 7
        data = numbers.astype(sabir.elements.element(element).dtype)
    if element == "float":
        data[[5, 1 << 16, -1]] = np.nan, -np.nan, np.inf
    b.output(b.Identity(b.initializer("w", data)), "y")
    model = b.model()
    chunks = list(text_chunks(model))
    assert len(chunks) > 1
    stream = io.StringIO()
    write_text(model, stream)
    assert "".join(chunks) == stream.getvalue() == sabir.text(model)
    (again,) = sabir.parse(stream.getvalue()).graph.initializers.values()
    if element == "string":
        assert again.array().tolist() == data.tolist()
    else:
        assert again.array().tobytes() == data.tobytes()


def test_large_bytes_are_written_in_chunks():
    words = np.full((1 << 18) + 1, 0x7FC00001, np.uint32)  # a NaN that no number represents
    b = sabir.Builder(21)
    b.output(b.Identity(b.initializer("w", words.view(np.float32))), "y")
    model = b.model()
    assert len(list(text_chunks(model))) > 1
    (again,) = sabir.parse(sabir.text(model)).graph.initializers.values()
    assert again.array().tobytes() == words.tobytes()


EXPORTED = """<
   ir_version: 10,
   opset_import: ["" : 21],
   metadata_props: ["license": "MIT", "signature": "{long}"]
>
#: @{{metadata_props: ["pkg.graph": "of the graph"]}}
main (
   #: @{{metadata_props: ["pkg.value": "of a value"]}}
   float[N] x) => (float[N] y)
{{
   #: @{{doc_string: "{long}", metadata_props: ["pkg.stack_trace": "File one.py"
   #:    "line two", "pkg.scope": "root"]}}
   [first] h = Relu (x)
   y = Abs (h)
}}
""".format(long="word " * 50)


def test_metadata_and_long_texts_are_left_out_of_listings():
    model = sabir.parse(EXPORTED)
    assert sabir.text(model, elide=16) == str(model) + "\n"
    words = " ".join(["word"] * 12)
    assert str(model).splitlines() == [
        "#: @{... 4 entries of metadata}",
        "<",
        "   ir_version: 10,",
        '   opset_import: ["" : 21],',
        f'   metadata_props: ["license": "MIT", "signature": "{words}" ... 250 characters]',
        ">",
        "main (float[N] x) => (float[N] y) {",
        f'   #: @{{doc_string: "{words}" ... 250 characters}}',
        "   [first] h = Relu (x)",
        "   y = Abs (h)",
        "}",
    ]
    assert sabir.parse(sabir.text(model)).graph[0].metadata == model.graph[0].metadata
    assert str(model.graph).startswith("#: @{... 4 entries of metadata}\nmain ")
    model.graph[0].doc = ""
    assert str(model.graph[0]) == "@{... 2 entries of metadata} [first] h = Relu (x)"
    assert str(model.graph[1]) == "y = Abs (h)"


def test_metadata_is_chosen_apart_from_elements():
    model = sabir.parse(EXPORTED)
    with_all = sabir.text(model, elide=16, metadata=True)
    assert with_all == sabir.text(model)
    without = sabir.text(model, metadata=False)
    assert "pkg." not in without
    assert "word word " * 20 in without
    again = sabir.parse(without)
    assert (again.graph[0].metadata, again.metadata) == (None, model.metadata)


def test_what_a_listing_leaves_out_is_refused_by_the_reader():
    model = sabir.parse(EXPORTED)
    marked, rest = str(model).split("\n", 1)
    for shown in (f"{marked}\n{rest}", rest, str(model.graph[0])):
        with pytest.raises(sabir.ParseError, match="elided here"):
            (parse_node if shown[0] in "@[" else sabir.parse)(shown)


def test_long_strings_of_attributes_are_cut():
    node = parse_node(f'y = Op <s: string = "{"a" * 300}", t: strings = ["{"b" * 201}", "c"]> ()')
    assert str(node) == (
        f'y = Op <s: string = "{"a" * 60}" ... 300 characters, '
        f't: strings = ["{"b" * 60}" ... 201 characters, "c"]> ()'
    )
    with pytest.raises(sabir.ParseError, match="elided here"):
        parse_node(str(node))


def test_functions_are_counted_once():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[N] x) => (y) { y = f.same (x) }
        <domain: "f", opset_import: ["" : 21]> same (x) => (y) { y = Relu (x) }
    """)
    model.functions[0].graph.metadata = {"a": "b"}
    model.functions[0].graph[0].metadata = {"c": "d"}
    assert str(model).count("entries of metadata") == 1
    assert str(model).startswith("#: @{... 2 entries of metadata}\n")
    assert str(model.functions[0]).startswith("#: @{... 2 entries of metadata}\n")
