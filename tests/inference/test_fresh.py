"""Models that were edited after their types were inferred: what is stale is reported, and can be replaced."""

import pytest
from typer.testing import CliRunner

import sabir
from sabir.cli import app
from sabir.inference import Cause, Inference
from sabir.ir import TensorType, symbol

HEAD = '<ir_version: 10, opset_import: ["" : 17]>\n'
CHAIN = HEAD + "g (float[{n},3] x) => (float[2,3] y) <float[2,3] t> {{ t = Relu(x)  y = Neg(t) }}"


def claims(model):
    inference = Inference(model)
    inference.run()
    return [d for d in inference.diagnostics if d.cause is Cause.DECLARED_SIZE]


def made_dynamic(text, name="N"):
    """A model whose input's first dimension was made dynamic once its types were all inferred."""
    model = sabir.infer(sabir.parse(text))
    value = model.graph.inputs[0]
    value.type = TensorType(value.type.element, (symbol(name), *value.type.shape[1:]))
    return model


def types(model):
    return {v.name: str(v.type) for v in model.graph.defined() if v.name}


def test_a_stale_declaration_is_kept_and_reported_once():
    model = made_dynamic(CHAIN.format(n=2))
    (found,) = claims(model)
    assert found.severity == "warning"
    assert str(found.location) == "graph/node[0] 'Relu'/output[0] 't'"
    assert found.message == (
        "'t' is declared as float[2,3], but dimension 0 is N, which depends on the shape of the input 'x'; the declaration"
        " is true only if N = 2"
    )
    assert types(sabir.infer(model)) == {"x": "float[N,3]", "t": "float[2,3]", "y": "float[2,3]"}
    assert [f.rule for f in sabir.findings(model)] == ["TYPE009"]
    sabir.check(model)


def test_strict_inference_does_not_fail_for_a_claim():
    sabir.infer(made_dynamic(CHAIN.format(n=2)), strict=True)


def test_fresh_inference_replaces_what_is_declared_of_computed_values():
    model = sabir.infer(made_dynamic(CHAIN.format(n=2)), fresh=True)
    assert types(model) == {"x": "float[N,3]", "t": "float[N,3]", "y": "float[N,3]"}
    assert not list(sabir.findings(model))


def test_fresh_inference_forgets_names_of_open_dimensions_too():
    text = HEAD + "g (float[N] x) => (int64[1,K] y) {{ y = NonZero(x) }}".replace("{{", "{").replace(
        "}}", "}"
    )
    kept, fresh = sabir.infer(sabir.parse(text)), sabir.infer(sabir.parse(text), fresh=True)
    assert types(kept)["y"] == "int64[1,K]"
    assert types(fresh)["y"] == "int64[1,?]"


def test_an_expression_of_two_dimensions():
    text = HEAD + "g (float[N,M] x) => (float[12] y) <int64[1] s = {-1}> { y = Reshape(x, s) }"
    (found,) = claims(sabir.parse(text))
    assert "dimension 0 is M*N" in found.message or "dimension 0 is N*M" in found.message
    assert types(sabir.infer(sabir.parse(text), fresh=True))["y"] in {"float[M*N]", "float[N*M]"}


@pytest.mark.parametrize(
    "text",
    [
        "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
        "g (float[N,3] x) => (float[M,3] y) { y = Relu(x) }",
        "g (float[N,3] x, float[2,3] z) => (float[2,3] y) { y = Add(x, z) }",
        "g (float[N] x) => (int64[1,7] y) { y = NonZero(x) }",
        "g (float[N] x) => (int64[1,7] y) <int64[1,K] t> { t = NonZero(x)  y = Neg(t) }",
    ],
)
def test_no_claim_where_more_than_the_inputs_decides(text):
    assert not claims(sabir.parse(HEAD + text))


def test_a_contradiction_is_an_error_still():
    text = HEAD + "g (float[3] x) => (float[2] y) { y = Relu(x) }"
    assert [f.rule for f in sabir.findings(sabir.parse(text))] == ["TYPE001"]
    assert types(sabir.infer(sabir.parse(text)))["y"] == "float[2]"
    assert types(sabir.infer(sabir.parse(text), fresh=True))["y"] == "float[3]"


def test_what_is_inside_of_subgraphs():
    text = (
        HEAD + "g (bool c, float[N] x) => (float[2] y) { y = If (c) <then_branch = a () => (float[2] u)"
        " { u = Relu(x) }, else_branch = b () => (float[2] v) { v = Abs(x) }> }"
    )
    model = sabir.parse(text)
    assert [f.location.steps[-1].name for f in claims(model)] == ["u", "v"]
    model = sabir.infer(model, fresh=True)
    assert {v.name: str(v.type) for g in model.graph.scopes() for v in g.defined() if v.name in "uvy"} == {
        "u": "float[N]", "v": "float[N]", "y": "float[N]",
    }  # fmt: skip
    assert not list(sabir.findings(model))


def test_what_no_inference_follows_keeps_its_type():
    text = (
        '<ir_version: 10, opset_import: ["" : 17, "own" : 1]>\n'
        "g (float[N] x) => (float[M] y) <float[8] t> { t = own.F(x)  y = Relu(t) }"
    )
    assert types(sabir.infer(sabir.parse(text), fresh=True)) == {
        "x": "float[N]", "t": "float[8]", "y": "float[8]",
    }  # fmt: skip


def test_a_second_description_is_replaced_with_the_first():
    info = '{{ name: "y" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ {dim} }} }} }} }} }}'
    two, n = info.format(dim="dim_value: 2"), info.format(dim='dim_param: "N"').replace('"y"', '"x"')
    text = (
        'ir_version: 8 opset_import { version: 17 } graph { name: "g" node { op_type: "Relu" input: "x"'
        f' output: "y" }} input {n} output {two} value_info {two} }}'
    )
    model = sabir.infer(sabir.loads(text.encode(), format="textproto"), fresh=True)
    assert "dim_value" not in sabir.dumps(model, format="textproto").decode()


def test_the_command(tmp_path):
    path, fresh = tmp_path / "m.onnx", tmp_path / "fresh.onnx"
    sabir.save(made_dynamic(CHAIN.format(n=2)), path)
    run = CliRunner().invoke
    told = run(app, ["infer", str(path)]).output
    assert "warning TYPE009" in told
    assert "float[2,3]" in told
    told = run(app, ["infer", str(path), "--fresh", "-o", str(fresh)]).output
    assert "TYPE009" not in told
    assert str(sabir.load(fresh).graph.outputs[0].type) == "float[N,3]"


VARIABLES = {
    "Concat": ("g (float[N] x) => (float[N] y) { y = Concat <axis = 0> (x, x) }", "2*N = N"),
    "Transpose": ("g (float[N,M] x) => (float[N,M] y) { y = Transpose (x) }", "M = N"),
    "MaxPool": (
        "g (float[1,3,H,8] x) => (float[1,3,H,4] y) { y = MaxPool <kernel_shape=[2,2], strides=[2,2]> (x) }",
        "H//2 = H",
    ),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_declared_variable_that_the_operator_contradicts(name):
    text, equation = VARIABLES[name]
    (found,) = claims(sabir.parse(HEAD + text))
    assert found.message.endswith(f"the declaration is true only if {equation}")


@pytest.mark.parametrize(
    "text",
    [
        "g (float[N,M] x) => (float[M,N] y) { y = Transpose (x) }",
        "g (float[N,M] x) => (float[K,N] y) { y = Transpose (x) }",  # K is a name for M
        # a size that is rounded up to a multiple of 32 is the declared one for most inputs
        """g (float[1,1,H,8] x) => (float[1,1,H,8] y) {
            a = MaxPool <kernel_shape=[32,1], strides=[32,1], ceil_mode=1> (x)
            s = Constant <value = float[4] {1, 1, 32, 1}> ()  y = Resize <mode = "nearest"> (a, "", s) }""",
        # the first row of an input that has any, as exporters write it
        "g (float[N,3] x) => (float[1,3] y) <int64[1] s = {0}, int64[1] e = {1}> { y = Slice (x, s, e) }",
    ],
)
def test_declared_variables_that_may_be_true(text):
    assert not claims(sabir.parse(HEAD + text))


def test_a_declared_number_of_first_rows_that_a_short_input_does_not_have():
    text = "g (float[N,3] x) => (float[2,3] y) <int64[1] s = {0}, int64[1] e = {2}> { y = Slice (x, s, e) }"
    (found,) = claims(sabir.parse(HEAD + text))
    assert found.message.endswith("the declaration is true only if min(N,2) = 2")


def test_a_shape_with_a_batch_that_was_fixed():
    text = "g (float[N,1000] x) => (y) <int64[2] s = {2, 1000}> { y = Reshape (x, s) }"
    (found,) = claims(sabir.parse(HEAD + text))
    assert str(found.location) == "graph/node[0] 'Reshape'"
    assert found.message == (
        "the elements of the constant shape [2, 1000], which 's' has, are 2000, but the operand has 1000*N, which depends on"
        " the shape of the input 'x'; a run fails unless N = 2"
    )
    assert "put -1" in found.hint
    assert "TYPE009" in [f.rule for f in sabir.findings(sabir.parse(HEAD + text))]
    assert not claims(sabir.parse(HEAD + text.replace("{2, 1000}", "{-1, 1000}")))


def test_a_fixed_shape_in_a_function_that_is_called_twice():
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
        g (float[N,4] x, float[2,4] z) => (y, w) { y = d.F (x)  w = d.F (z) }
        <domain: "d", opset_import: ["" : 21]> F (a) => (b) {
            s = Constant <value = int64[1] {8}> ()  b = Reshape (a, s) }"""
    (found,) = claims(sabir.parse(text))
    assert found.message.endswith("a run fails unless N = 2")
