"""Sentences of the specification that bind without a word in capitals, and what stands beside their rules."""

import pytest

import sabir
from sabir.checking._identifiers import IDENTIFIER, KEYWORDS
from sabir.checking.rules.documentation import html_in
from sabir.opsets import STANDARD
from sabir.repairing import fix_in_place

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
PLAIN = HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x) }"


def rules(model, *select):
    return [f.rule for f in sabir.findings(model, select=select)]


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_a_keyword_is_no_identifier(word):
    assert not IDENTIFIER.fullmatch(word)
    assert IDENTIFIER.fullmatch(f"{word}_")
    assert IDENTIFIER.fullmatch(f"_{word}")


def test_there_are_32_keywords_in_c90():
    assert len(KEYWORDS) == 32
    assert KEYWORDS.isdisjoint(a.name for o in STANDARD for v in o.versions for a in v.attributes)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (HEAD + 'g (float[N] x) => (float[N] "int") { "int" = Relu(x) }', "NAME001"),
        (HEAD + "g (float[N] x) => (float[N] y) { [if] y = Relu(x) }", "NAME002"),
        (HEAD + "default (float[N] x) => (float[N] y) { y = Relu(x) }", "NAME002"),
        (HEAD + "g (float[long] x) => (float[long] y) { y = Relu(x) }", "NAME004"),
    ],
)
def test_a_keyword_for_a_name_is_found_and_repaired(text, rule):
    model = sabir.parse(text)
    assert set(rules(model, rule)) == {rule}
    fix_in_place(model, unsafe=[rule])
    assert not rules(model, rule)


@pytest.mark.parametrize(
    "domain",
    [
        "org.example",
        "ai.onnx.ml",
        "com.microsoft",
        "org.pytorch._caffe2",
        "uk.co.ac-me.x1",
        "Com.Example",
        "org.x_y",
    ],
)
def test_a_reverse_domain_name(domain):
    model = sabir.parse(PLAIN)
    model.domain = domain
    assert not rules(model, "MODEL009")


@pytest.mark.parametrize(
    "domain",
    ["", "org", "v1.0", "1.2", "o.example", "org..example", "org.example.", ".org", "org.-x", "org.x-", "org.a-.b",
     "org.ex ample", "org.m\u00fcller", "http://example.org", "org.example/x"],
)  # fmt: skip
def test_no_reverse_domain_name(domain):
    model = sabir.parse(PLAIN)
    model.domain = domain
    assert rules(model, "MODEL009") == ["MODEL009"]


@pytest.mark.parametrize(
    "text",
    [
        "a<br>b",
        "a<BR/>b",
        "<b>x</b>",
        "<p class='c'>x",
        '<img src="x.png">',
        "<!-- hidden -->",
        "<a href=x>y</a>",
    ],
)
def test_html(text):
    assert html_in(text)
    assert html_in(f"first line\n\n{text}\nlast")


@pytest.mark.parametrize(
    "text",
    ["", "a < b and b > a", "x<y>z", "<https://example.org>", "`<b>x</b>`", "``<br> ` ``", "```\n<table></table>\n```",
     'File "<input>", line 1, in <module>', "<object object at 0x7f>", '<code object f at 0x7f, file "<stdin>">',
     "of shape <b>, <n>", "tensor<float>", "<lambda>", "a <-- b"],
)  # fmt: skip
def test_no_html(text):
    assert not html_in(text)


def test_every_kind_of_documentation_is_checked():
    doc = 'doc_string: "a<br>b"'
    ports = 'input {{ name: "x" {0} {1} }} output {{ name: "y" {0} }}'
    kind = 'type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } } }'
    text = (
        f'ir_version: 10 opset_import {{ version: 17 }} {doc} graph {{ name: "g" {doc} {ports.format(kind, doc)}'
        f' node {{ op_type: "Softmax" input: "x" output: "t" {doc} attribute {{ name: "axis" type: INT i: 0 {doc} }} }}'
        f' node {{ op_type: "f" domain: "d" input: "t" output: "y" }} value_info {{ name: "t" {kind} {doc} }}'
        f' value_info {{ name: "y" {kind} {doc} }}'
        f' initializer {{ name: "w" data_type: 1 float_data: 1 {doc} }} }} opset_import {{ domain: "d" version: 1 }}'
        f' functions {{ name: "f" domain: "d" input: "a" output: "b" {doc} opset_import {{ version: 17 }}'
        f' node {{ op_type: "Relu" input: "a" output: "b" {doc} }} }}'
    )
    model = sabir.loads(text.encode(), format="textproto")
    found = [str(f.location) for f in sabir.findings(model, select=["META003"])]
    assert sorted(found) == sorted([
        "model", "graph", "graph/input[0] 'x'", "graph/node[0] 'Softmax'", "graph/node[0] 'Softmax'/attribute 'axis'",
        "graph/node[0] 'Softmax'/output[0] 't'", "graph/value_info[1] 'y'", "graph/initializer 'w'",
        "function[0] 'f'", "function[0] 'f'/node[0] 'Relu'",
    ])  # fmt: skip


def test_an_empty_dimension_name_inside_a_container():
    kind = 'tensor_type { elem_type: 1 shape { dim { dim_param: "" } } }'
    for wrapped in (
        f"sequence_type {{ elem_type {{ {kind} }} }}",
        f"optional_type {{ elem_type {{ sequence_type {{ elem_type {{ {kind} }} }} }} }}",
        f"map_type {{ key_type: 7 value_type {{ {kind} }} }}",
        kind.replace("tensor_type", "sparse_tensor_type"),
    ):
        port = f'name: "x" type {{ {wrapped} }}'
        text = f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" input {{ {port} }} output {{ {port} }} }}'
        model = sabir.loads(text.encode(), format="textproto")
        assert set(rules(model, "TYPE011")) == {"TYPE011"}
        assert not rules(
            sabir.loads(text.replace('dim_param: ""', "").encode(), format="textproto"), "TYPE011"
        )


def test_new_and_rare_rules_apply_only_with_strict():
    model = sabir.parse(HEAD + "g (float[N] axis) => (float[N] y) { y = Softmax<axis = 0>(axis) }")
    assert not list(sabir.findings(model))
    assert "NODE012" in {f.rule for f in sabir.findings(model, strict=True)}


def test_shadows_of_inputs_and_repeated_outputs_of_a_subgraph_are_warnings():
    loop = (
        HEAD
        + "g (int64 n, bool c, float[N] x) => (float[N] y, float[N] z) { y, z = Loop (n, c, x, x) <body = b"
        " (int64 i, bool k, float[N] x, float[N] s) => (bool k2, float[N] s2, float[N] s2)"
        " { k2 = Identity(k)  s2 = Add(x, s) }> }"
    )
    found = list(sabir.findings(sabir.parse(loop)))
    assert {(f.rule, f.severity) for f in found} == {("GRAPH008", "warning"), ("GRAPH022", "warning")}
    sabir.check(sabir.parse(loop))


def test_a_repeated_output_of_the_model_stays_an_error():
    text = HEAD + "g (float[N] x) => (float[N] y, float[N] y) { y = Relu(x) }"
    assert [(f.rule, f.severity) for f in sabir.findings(sabir.parse(text))] == [("GRAPH009", "error")]
