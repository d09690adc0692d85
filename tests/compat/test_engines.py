"""The modules over Sabir's engines: results, classes of errors, and their messages."""

import onnx  # ruff: ignore[banned-api]  the oracle
import onnx.defs  # ruff: ignore[banned-api]  the oracle
import pytest

from sabir.compat import onnx as compat
from sabir.compat.onnx import (
    checker,
    compose,
    defs,
    helper,
    inliner,
    parser,
    printer,
    shape_inference,
    utils,
    version_converter,
)
from sabir.compat.onnx.tools import replace_constants, update_model_dims
from support.cases import each_of

RELU = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
ADD = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] a) => (float[N] b) { t = Neg (a) b = Abs (t) }'


# text


def test_text_is_parsed_and_printed():
    model = parser.parse_model(RELU)
    assert onnx.parser.parse_model(RELU).SerializeToString() == with_domains(model).SerializeToString()
    assert parser.parse_model(printer.to_text(model)) == model
    assert parser.parse_node("y = Relu (x)").op_type == "Relu"
    assert parser.parse_graph("g (float[N] x) => (float[N] y) { y = Relu (x) }") == model.graph
    function = parser.parse_function('<opset_import: ["" : 21], domain: "d"> f (x) => (y) { y = Relu (x) }')
    assert printer.to_text(function).startswith("<")
    with pytest.raises(parser.ParseError, match="line 1, column 4: unknown type 'flaot'; is it 'float'"):
        parser.parse_graph("g (flaot x) => (y) { y = Relu (x) }")
    with pytest.raises(TypeError, match="and this is a TensorProto"):
        printer.to_text(compat.TensorProto())


def with_domains(model):
    """The message with the default domain of nodes written out, as onnx's parser leaves it."""
    copy = compat.ModelProto.FromString(model.SerializeToString())
    for node in copy.graph.node:
        node.domain = ""
    return copy


# the checker


def test_a_valid_model_and_its_parts_pass():
    model = parser.parse_model(RELU)
    checker.check_model(model, full_check=True)
    checker.check_model(model.SerializeToString())
    checker.check_graph(model.graph)
    checker.check_node(model.graph.node[0])
    checker.check_value_info(model.graph.input[0])
    checker.check_tensor(helper.make_tensor("t", 1, [2], [1, 2]))
    checker.check_attribute(helper.make_attribute("a", 1))
    checker.check_function(helper.make_function("d", "f", ["x"], ["y"], model.graph.node, model.opset_import))


def broken(change):
    model = parser.parse_model(RELU)
    change(model)
    return model


REFUSED = [
    (lambda: checker.check_model(broken(lambda m: setattr(m.graph.node[0], "op_type", "Reluu"))), "is it 'Relu'"),
    (lambda: checker.check_model(broken(lambda m: m.ClearField("ir_version"))), "MODEL001"),
    (lambda: checker.check_node(helper.make_node("Relu", [], ["y"])), "requires the input 'X'"),
    (lambda: checker.check_graph(broken(lambda m: m.graph.ClearField("name")).graph), "GRAPH001"),
    (lambda: checker.check_tensor(compat.TensorProto(name="t", data_type=1, dims=[2], float_data=[1])), "TENSOR005"),
    (lambda: checker.check_attribute(compat.AttributeProto(type=2, i=1)), "ATTR001"),
    (lambda: checker.check_value_info(compat.ValueInfoProto()), "the ValueInfoProto has no name"),
    (lambda: checker.check_function(helper.make_function("d", "f", [], ["y"], [], [])), "'y' is read, but nothing defines it"),
    (lambda: checker.check_model("missing.onnx"), "there is no such file"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_breaks_the_rules_is_refused(call, message):
    with pytest.raises(checker.ValidationError, match=message):
        call()


def test_other_refusals_of_the_checker():
    wrong = parser.parse_model(RELU.replace("float[N] y", "int64[N] y"))
    with pytest.raises(shape_inference.InferenceError, match="declared as int64"):
        checker.check_model(wrong, full_check=True)
    checker.check_model(wrong)
    with pytest.raises(TypeError, match="checks a NodeProto, and not a ModelProto"):
        checker.check_node(wrong)
    with pytest.raises(ValueError, match="these bytes are no model"):
        checker.check_model(b"no model")
    custom = parser.parse_model(RELU.replace('"" : 21', '"" : 21, "acme" : 1').replace("Relu", "acme.Relu"))
    checker.check_model(custom)
    with pytest.raises(checker.ValidationError, match="NODE007"):
        checker.check_model(custom, check_custom_domain=True)


# inference


def test_types_are_inferred():
    model = parser.parse_model(ADD)
    for given in (model, model.SerializeToString()):
        inferred = shape_inference.infer_shapes(given, strict_mode=True)
        assert helper.printable_value_info(inferred.graph.value_info[0]) == "%t[FLOAT, N]"
    defaults = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[6] x, int64[2] s) => (y) <int64[2] s = {2, 3}> { y = Reshape (x, s) }""")
    inferred = shape_inference.infer_shapes(defaults)
    assert helper.printable_value_info(inferred.graph.output[0]) == "%y[FLOAT, 2x3]"
    assert [value.name for value in inferred.graph.input] == ["x", "s"]


def test_files_are_inferred(tmp_path):
    path = tmp_path / "m.onnx"
    compat.save(parser.parse_model(ADD), path)
    shape_inference.infer_shapes_path(path)
    assert [value.name for value in compat.load(path).graph.value_info] == ["t"]
    with pytest.raises(compat.checker.ValidationError, match="no such file"):
        shape_inference.infer_shapes_path(tmp_path / "missing.onnx")
    with pytest.raises(TypeError, match="call infer_shapes_path for a file"):
        shape_inference.infer_shapes(path)
    with pytest.raises(TypeError, match="takes the path of a file"):
        shape_inference.infer_shapes_path(b"")


def test_calls_are_inferred():
    float_type = helper.make_tensor_type_proto(1, [2, 3])
    node = helper.make_node("Add", ["a", "b"], ["c"])
    schema = defs.get_schema("Add")
    assert shape_inference.infer_node_outputs(schema, node, {"a": float_type, "b": float_type}) == {
        "c": float_type
    }
    with pytest.raises(KeyError, match="b"):
        shape_inference.infer_node_outputs(schema, node, {"a": float_type})
    other = helper.make_tensor_type_proto(1, [4, 5])
    with pytest.raises(shape_inference.InferenceError, match="3 and 5 do not broadcast"):
        shape_inference.infer_node_outputs(schema, node, {"a": float_type, "b": other})
    function = parser.parse_function(
        '<opset_import: ["" : 21], domain: "d"> f <to> (x) => (y) { y = Cast <to : int = @to> (x) }'
    )
    found = shape_inference.infer_function_output_types(
        function, [float_type], [helper.make_attribute("to", 7)]
    )
    assert helper.printable_type(found[0]) == "INT64, 2x3"
    with pytest.raises(TypeError, match="takes a FunctionProto"):
        shape_inference.infer_function_output_types(node, [], [])


# conversion, inlining, parts


def test_models_are_converted_both_ways():
    model = parser.parse_model(RELU)
    assert version_converter.convert_version(model, 13).opset_import[0].version == 13
    assert version_converter.convert_version(model, 23).opset_import[0].version == 23
    new = parser.parse_model(RELU.replace("Relu", "Gelu"))
    for error in (version_converter.ConvertError, RuntimeError):
        with pytest.raises(error, match="opset 999"):
            version_converter.convert_version(new, 999)
    with pytest.raises(TypeError, match="takes a ModelProto, and this is of type"):
        version_converter.convert_version(model.graph, 13)
    with pytest.raises(TypeError, match="target_version is an int, and this is"):
        version_converter.convert_version(model, "13")


FUNCTIONS = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[N] x) => (float[N] y) { t = local.square (x) y = local.both (t) }
<opset_import: ["" : 17, "local" : 1], domain: "local"> both (x) => (y) { d = Add (x, x) y = local.square (d) }
<opset_import: ["" : 17], domain: "local"> square (x) => (y) { y = Mul (x, x) }"""


def test_functions_are_inlined():
    model = parser.parse_model(FUNCTIONS)
    assert [n.op_type for n in inliner.inline_local_functions(model).graph.node] == ["Mul", "Add", "Mul"]
    for part in (
        inliner.inline_selected_functions(model, [("local", "square")]),
        inliner.inline_selected_functions(model, [("local", "both")], exclude=True),
    ):
        assert [n.op_type for n in part.graph.node] == ["Mul", "both"]
        assert [n.op_type for n in part.functions[0].node] == ["Add", "Mul"]
        checker.check_model(part)
    softplus = parser.parse_model(RELU.replace("Relu", "Softsign"))
    written = inliner.inline_selected_functions(softplus, [], exclude=True, inline_schema_functions=True)
    assert "Abs" in [n.op_type for n in written.graph.node]
    cyclic = FUNCTIONS.replace("y = Mul (x, x)", "y = local.square (x)").replace(
        '17], domain: "local"> square', '17, "local" : 1], domain: "local"> square'
    )
    with pytest.raises(checker.ValidationError, match="calls itself"):
        inliner.inline_local_functions(parser.parse_model(cyclic))


def test_parts_of_models(tmp_path):
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    compat.save(parser.parse_model(ADD), source)
    utils.extract_model(source, target, ["t"], ["b"])
    part = compat.load(target)
    assert [n.op_type for n in part.graph.node] == ["Abs"]
    assert part.producer_name == "onnx.utils.extract_model"
    with pytest.raises(ValueError, match="no value 'q'"):
        utils.extract_model(source, target, ["q"], ["b"])
    with pytest.raises(ValueError, match="pass the path of a model as input_path"):
        utils.extract_model(tmp_path / "c.onnx", target, ["t"], ["b"])
    with pytest.raises(ValueError, match="output_names is empty"):
        utils.extract_model(source, target, ["t"], [])


def test_models_are_joined():
    first, second = parser.parse_model(RELU), parser.parse_model(ADD)
    both = compose.merge_models(first, second, [("y", "a")], prefix2="two/")
    assert [(n.op_type, *n.input, *n.output) for n in both.graph.node] == [
        ("Relu", "x", "y"), ("Neg", "y", "two/t"), ("Abs", "two/t", "two/b"),
    ]  # fmt: skip
    checker.check_model(both, full_check=True)
    other = parser.parse_model(ADD.replace(": 21", ": 20"))
    with pytest.raises(ValueError, match="imported in versions 21 and 20"):
        compose.merge_models(first, other, [("y", "a")])
    with pytest.raises(ValueError, match="g1 has no output 'q'; its outputs are"):
        compose.merge_models(first, second, [("q", "a")])
    with pytest.raises(ValueError, match="both graphs have the edge names x, y; pass prefix1"):
        compose.merge_models(first, first, [])
    with pytest.raises(ValueError, match="m1 has the IR version"):
        compose.merge_models(first, broken(lambda m: setattr(m, "ir_version", 9)), [("y", "x")])
    for model, value in ((first, "1"), (second, "2")):
        helper.set_model_props(model, {"key": value})
    with pytest.raises(ValueError, match="both models have the metadata key 'key'"):
        compose.merge_models(first, second, [("y", "a")])
    with pytest.raises(ValueError, match="must be a GraphProto, and is a ModelProto"):
        compose.add_prefix_graph(first, "p/")


def test_a_dimension_is_added_where_the_model_adds_it():
    wide = compose.expand_out_dim(parser.parse_model(RELU), -1)
    assert helper.printable_value_info(wide.graph.output[0]) == "%y[FLOAT, Nx1]"
    checker.check_model(wide, full_check=True)


def test_dimensions_are_replaced():
    model = parser.parse_model(RELU)
    changed = update_model_dims.update_inputs_outputs_dims(model, {"x": [-1]}, {"y": [4]})
    assert helper.printable_value_info(changed.graph.input[0]) == "%x[FLOAT, x_0]"
    with pytest.raises(ValueError, match="is 4 in the model, and cannot become"):
        update_model_dims.update_inputs_outputs_dims(changed, {}, {"y": [5]})
    with pytest.raises(ValueError, match="no inputs or outputs \\['q'\\]"):
        update_model_dims.update_inputs_outputs_dims(model, {"q": [1]}, {})
    with pytest.raises(ValueError, match="the new shape has 2"):
        update_model_dims.update_inputs_outputs_dims(model, {"x": [1, 2]}, {})
    with pytest.raises(TypeError, match="a number or a name"):
        update_model_dims.update_inputs_outputs_dims(model, {"x": [1.5]}, {})
    with pytest.raises(ValueError, match="in use already"):
        update_model_dims.update_inputs_outputs_dims(changed, {"x": [-1]}, {})


@pytest.mark.parametrize(("ranged", "expected"), [(False, "ConstantOfShape"), (True, "Range")])
def test_large_constants_are_replaced(ranged, expected):
    values = ", ".join(["1"] * 129)
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
    g (float[129] x) => (float[129] y) <float[129] w = {{{values}}}> {{ y = Add (x, w) }}""")
    small = replace_constants.replace_initializer_by_constant_of_shape(model, use_range=ranged)
    assert expected in [n.op_type for n in small.graph.node]
    assert not small.graph.initializer
    checker.check_model(small, full_check=True)
    with pytest.raises(TypeError, match="and this is a NodeProto"):
        replace_constants.replace_initializer_by_constant_of_shape(model.graph.node[0])


# schemas


def facts(schema):
    """What a schema of either package says, but for texts."""
    return (
        schema.name, schema.domain, schema.since_version, schema.deprecated, int(schema.support_level),
        [port_facts(p) for p in schema.inputs], [port_facts(p) for p in schema.outputs],
        {n: (int(a.type), a.required) for n, a in schema.attributes.items()},
        schema.min_input, schema.max_input, schema.min_output, schema.max_output,
    )  # fmt: skip


def port_facts(port):
    """What it says of a port; maps are spelled in several ways."""
    return (
        port.name,
        port.type_str,
        int(port.option),
        port.is_homogeneous,
        port.min_arity,
        {t for t in port.types if "map(" not in t},
    )


KNOWN = {(s.domain, s.name, s.since_version): s for s in onnx.defs.get_all_schemas_with_history()}


@each_of("key", sorted(KNOWN))
def test_schemas_are_those_of_onnx(key):
    domain, name, since = key
    ours = defs.get_schema(name, since, domain)
    assert facts(ours) == facts(KNOWN[key])
    for attribute, mine in ours.attributes.items():
        theirs = KNOWN[key].attributes[attribute].default_value
        assert mine.default_value.SerializeToString() == theirs.SerializeToString()


def test_the_lists_of_schemas():
    def keys(schemas):
        return {(s.domain, s.name, s.since_version) for s in schemas}

    assert keys(defs.get_all_schemas_with_history()) == set(KNOWN)
    assert keys(defs.get_all_schemas()) == keys(onnx.defs.get_all_schemas())
    assert defs.onnx_opset_version() == onnx.defs.onnx_opset_version()
    assert defs.onnx_ml_opset_version() == onnx.defs.onnx_ml_opset_version()
    assert defs.C.schema_version_map() == onnx.defs.C.schema_version_map()
    assert defs.has("Relu")
    assert defs.has("Relu", 5)
    assert not defs.has("Relu", "acme")
    with pytest.raises(defs.SchemaError, match="the domain '' has no operator 'Reluu'; is it 'Relu'"):
        defs.get_schema("Reluu")
    with pytest.raises(
        defs.SchemaError, match="version 0 of the domain '' has no operator 'Relu'; its first version is 1"
    ):
        defs.get_schema("Relu", 0)


def test_bodies_of_operators():
    body = defs.get_schema("GreaterOrEqual").function_body
    assert list(body.input) == ["A", "B"]
    assert [n.op_type for n in body.node] == ["Greater", "Equal", "Or"]
    gelu = defs.get_schema("Gelu")
    assert not gelu.has_function
    assert gelu.has_context_dependent_function
    assert gelu.function_body == compat.FunctionProto()
    node = helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")
    kind = helper.make_tensor_type_proto(1, ["N"])
    written = gelu.get_context_dependent_function(node.SerializeToString(), [kind.SerializeToString()])
    assert "Tanh" in [n.op_type for n in compat.FunctionProto.FromString(written).node]
    call = helper.make_node("Abs", ["x"], ["y"]).SerializeToString()
    with pytest.raises(defs.SchemaError, match="Abs:13 has no function for this call"):
        defs.get_schema("Abs").get_context_dependent_function(call, [])


def twice(context):
    """Infer an output of twice the length, and the attribute as the second dimension."""
    kind = context.get_input_type(0)
    size = kind.tensor_type.shape.dim[0].dim_value
    result = helper.make_tensor_type_proto(
        kind.tensor_type.elem_type, [2 * size, context.get_attribute("n").i]
    )
    assert context.set_output_type(0, result)
    assert not context.set_output_type(1, result)
    assert context.get_input_data(0) is None
    with pytest.raises(RuntimeError, match="none at 5"):
        context.get_input_type(5)


def test_a_registered_operator_is_checked_and_inferred():
    schema = defs.OpSchema(
        "Twice", "acme", 1, "Doubles.",
        inputs=[defs.OpSchema.FormalParameter("x", "T")],
        outputs=[defs.OpSchema.FormalParameter("y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
        attributes=[defs.OpSchema.Attribute("n", helper.make_attribute("n", 3))],
    ).set_type_and_shape_inference_function(twice)  # fmt: skip
    model = parser.parse_model(
        RELU
        .replace('"" : 21', '"" : 21, "acme" : 1')
        .replace("Relu", "acme.Twice")
        .replace("[N] x", "[4] x")
        .replace("float[N] y", "y")
    )
    defs.register_schema(schema)
    try:
        assert defs.get_schema("Twice", 1, "acme") is schema
        inferred = shape_inference.infer_shapes(model, strict_mode=True)
        assert helper.printable_value_info(inferred.graph.output[0]) == "%y[FLOAT, 8x3]"
        with pytest.raises(defs.SchemaError, match="has a schema already; call deregister_schema"):
            defs.register_schema(schema)
        with pytest.raises(checker.ValidationError, match="has no attribute 'm'"):
            checker.check_model(broken_call(model))
    finally:
        defs.deregister_schema("Twice", 1, "acme")
    assert not defs.has("Twice", "acme")


def broken_call(model):
    copy = compat.ModelProto.FromString(model.SerializeToString())
    copy.graph.node[0].attribute.append(helper.make_attribute("m", 1))
    return copy


def test_schemas_that_are_refused():
    with pytest.raises(defs.SchemaError, match="choose another domain"):
        defs.register_schema(defs.OpSchema("Relu", "", 99))
    with pytest.raises(defs.SchemaError, match="always know the operators of the standard"):
        defs.deregister_schema("Relu", 14, "")
    with pytest.raises(ValueError, match="the type 'T' of 'x' is neither a type"):
        defs.OpSchema("A", "acme", 1, inputs=[defs.OpSchema.FormalParameter("x", "T")])
    with pytest.raises(defs.SchemaError, match="versions begin with 1"):
        defs.OpSchema("A", "acme", 0)
