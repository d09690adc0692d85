# ruff: file-ignore[banned-api]  the models that get each fault are the official ones
"""What a model computes is the same before and after each repair, on official models that got the fault."""

import copy
import random
from functools import cache

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import sabir
from sabir.checking import findings
from sabir.evaluation import Runner
from sabir.proto import ModelProto
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS, fix_in_place
from support.values import repeatable_cases, same

# what the models lack is reported by a warning as they run
pytestmark = pytest.mark.filterwarnings("ignore::sabir.SabirWarning")

ENOUGH = 6  # models with the fault that have to be repaired and compared
INT, FLOAT = 2, 1
INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


@cache
def cases():
    """The official node cases that can be repeated, those with inner graphs and of several nodes first."""
    sound = repeatable_cases()
    rich = [
        c
        for c in sound
        if any(w in c.name for w in ("_if", "loop", "scan_", "_expanded", "FLOAT8", "softmax"))
    ]
    return [*rich[::3], *sound[::25]]


def inputs_of(case):
    return [numpy_helper.to_array(x) if isinstance(x, TensorProto) else x for x in case.data_sets[0][0]]


def nodes_of(graph):
    for node in graph.node:
        yield node
        for inner in graphs_in(node):
            yield from nodes_of(inner)


def graphs_in(node):
    return [a.g for a in node.attribute if a.HasField("g")]


def with_inner_graphs(proto):
    return [g for node in proto.graph.node for g in graphs_in(node)]


def attributes_of(proto, kind):
    return [a for node in nodes_of(proto.graph) for a in node.attribute if a.type == kind]


def in_function(proto, **fields):
    """Put the main graph's nodes into a function that the main graph calls."""
    graph = proto.graph
    function = proto.functions.add(name="f", domain="d", **fields)
    function.input.extend(v.name for v in graph.input)
    function.output.extend(v.name for v in graph.output)
    function.node.extend(graph.node)
    function.opset_import.extend(proto.opset_import)
    del graph.node[:]
    graph.node.add(
        op_type="f", domain="d", input=[v.name for v in graph.input], output=[v.name for v in graph.output]
    )
    proto.opset_import.add(domain="d", version=1)
    proto.ir_version = max(proto.ir_version, 10)
    return function


def renamed(graph, old, new):
    """Give a name of a graph, and of those inside it, another one."""
    for info in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        info.name = new if info.name == old else info.name
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
        for inner in graphs_in(node):
            renamed(inner, old, new)


def names_in(graph):
    found = {v.name for v in (*graph.input, *graph.output, *graph.initializer)}
    for node in graph.node:
        found.update((*node.input, *node.output))
        for inner in graphs_in(node):
            found |= names_in(inner)
    return found


# each puts one fault into a model, and returns whether it could


def untyped_attribute(proto, _):
    attributes = [a for a in (*attributes_of(proto, INT), *attributes_of(proto, FLOAT)) if a.i or a.f]
    for attribute in attributes:
        attribute.ClearField("type")
    return attributes


def two_values(proto, _):
    attributes = attributes_of(proto, INT)
    for attribute in attributes:
        attribute.f = 1.5
    return attributes


def same_function(proto, _):
    proto.functions.add().CopyFrom(in_function(proto))
    return True


def parameter_twice(proto, _):
    in_function(proto, attribute=["k", "k"])
    return True


def parameter_with_and_without_default(proto, _):
    in_function(proto, attribute=["k"]).attribute_proto.add(name="k", type=INT, i=1)
    return True


def nameless_graph(proto, _):
    proto.graph.ClearField("name")
    return True


def one_name_twice(proto, _):
    """Give a value, once it is read no more, the name of one that is computed later."""
    nodes, outputs = proto.graph.node, {v.name for v in proto.graph.output}
    if any(graphs_in(n) for n in nodes):
        return False
    for index, node in enumerate(nodes):
        for name in node.output:
            reads = [i for i, n in enumerate(nodes) if name in n.input]
            later = [n for n in nodes[max(reads, default=index) :] if name not in n.output] if name else []
            if name and name not in outputs and reads and later and later[-1].output[0]:
                renamed(proto.graph, name, later[-1].output[0])
                return True
    return False


def shuffled(proto, draw):
    nodes = list(proto.graph.node)
    draw.shuffle(nodes)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return True


def shadowed(pick):
    def spoil(proto, _):
        done = False
        for inner in with_inner_graphs(proto):
            free = [v.name for v in proto.graph.input if v.name and v.name not in names_in(inner)]
            own = [name for name in pick(inner) if name]
            if free and own:
                renamed(inner, own[0], free[0])
                done = True
        return done

    return spoil


def described(proto, elements):
    """Describe a value once for each element type; 0 leaves the type out."""
    names = [name for node in proto.graph.node for name in node.output if name]
    inner = [name for name in names if name not in {v.name for v in proto.graph.output}]
    if inner and not any(info.name == inner[0] for info in proto.graph.value_info):
        for element in elements:
            info = proto.graph.value_info.add(name=inner[0])
            if element:
                info.type.tensor_type.elem_type = element
    return inner


def described_twice(proto, _):
    return described(proto, [1, 0])


def described_with_contradiction(proto, _):
    return described(proto, [1, 7])


def negative_dimensions(proto, _):
    dims = [d for v in proto.graph.input for d in v.type.tensor_type.shape.dim]
    for dim in dims:
        dim.dim_value = -1
    return dims


def described_for_nothing(proto, _):
    proto.graph.value_info.add(name="ghost").type.tensor_type.elem_type = 1
    return True


def constant_before_there_were_any(proto, _):
    proto.ir_version = 3
    proto.graph.initializer.add(name="w_new", data_type=FLOAT, float_data=[7.0], dims=[1])
    proto.graph.node.add(op_type="Identity", input=["w_new"], output=["w_out"])
    info = proto.graph.output.add(name="w_out")
    info.type.tensor_type.elem_type = 1
    info.type.tensor_type.shape.dim.add(dim_value=1)
    return True


def untyped_inner_outputs(proto, _):
    found = [v for inner in with_inner_graphs(proto) for v in inner.output]
    for info in found:
        info.ClearField("type")
    return found


def twice_in(field):
    def spoil(proto, _):
        metadata = field(proto).metadata_props
        metadata.add(key="k", value="1")
        metadata.add(key="k", value="2")
        proto.ir_version = max(proto.ir_version, 10)
        return True

    return spoil


def no_ir_version(proto, _):
    proto.ClearField("ir_version")
    return True


def no_imports(proto, _):
    del proto.opset_import[:]
    return True


def other_imports_too(proto, draw):
    (entry,) = proto.opset_import
    kept = (entry.domain, entry.version)
    if entry.domain:
        return False
    others = [("", draw.randint(1, entry.version)), ("ai.onnx", draw.randint(1, entry.version)), kept]
    draw.shuffle(others)
    del proto.opset_import[:]
    for domain, version in others:
        proto.opset_import.add(domain=domain, version=version)
    return True


def only_other_imports(proto, _):
    del proto.opset_import[:]
    proto.opset_import.add(domain="ai.onnx.ml", version=1)
    return True


def of_ir(version):
    def spoil(proto, _):
        proto.ir_version = version
        return True

    return spoil


def function_before_there_were_any(proto, _):
    in_function(proto)
    proto.ir_version = 7
    return True


def function_without_imports(proto, _):
    in_function(proto)
    for function in proto.functions:
        del function.opset_import[:]
    return any(not entry.domain for entry in proto.opset_import)


def odd_values(proto, _):
    names = sorted(names_in(proto.graph) - {""})
    for number, name in enumerate(names):
        renamed(proto.graph, name, f"a b.{number}")
    return True


def odd_nodes(proto, _):
    for number, node in enumerate(nodes_of(proto.graph)):
        node.name = f"n/{number}"
    return True


def same_nodes(proto, _):
    for node in nodes_of(proto.graph):
        node.name = "n"
    return len(proto.graph.node) > 1


def odd_dimensions(proto, _):
    found = False
    for info in proto.graph.input:
        shape = info.type.tensor_type.shape if info.type.HasField("tensor_type") else None
        for place, dim in enumerate(shape.dim if shape is not None else ()):
            dim.dim_param = f"batch size {place} of {info.name}"
            found = True
    return found


def same_graphs(proto, _):
    for inner in with_inner_graphs(proto):
        inner.name = proto.graph.name
    return with_inner_graphs(proto)


def attribute_again(proto, _):
    done = False
    for node in nodes_of(proto.graph):
        for attribute in list(node.attribute):
            if attribute.type == INT:
                node.attribute.add(name=attribute.name, type=INT, i=attribute.i + 1)
                done = True
    return done


def annotated_again(proto, _):
    (entry, *_) = [*proto.graph.input, None]
    for _ in range(2 if entry is not None else 0):
        note = proto.graph.quantization_annotation.add(tensor_name=entry.name)
        note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=entry.name)
    return entry is not None


def nameless_constant(proto, _):
    proto.graph.initializer.add(data_type=FLOAT, float_data=[1.0], dims=[1])
    return True


def constants_among_inner_inputs(proto, _):
    """Give supplied inputs of subgraphs initializers, and list initializers of subgraphs as inputs."""
    graphs = [g for g in with_inner_graphs(proto) if g.input or g.initializer]
    for graph in graphs:
        listed = {v.name for v in graph.input}
        constants = [t for t in graph.initializer if t.name not in listed]
        for value in graph.input:
            kind = value.type.tensor_type
            if kind.elem_type in {INT64, BOOL} and not kind.shape.dim:
                graph.initializer.add(
                    name=value.name,
                    data_type=kind.elem_type,
                    raw_data=bytes(8 if kind.elem_type == INT64 else 1),
                )
        for constant in constants:
            info = graph.input.add(name=constant.name).type.tensor_type
            info.elem_type = constant.data_type
            for size in constant.dims:
                info.shape.dim.add(dim_value=size)
    return graphs


SPOIL = {
    "ATTR002": untyped_attribute,
    "ATTR003": two_values,
    "FUNC001": same_function,
    "FUNC004": parameter_twice,
    "FUNC005": parameter_with_and_without_default,
    "GRAPH001": nameless_graph,
    "FUNC013": function_without_imports,
    "GRAPH004": one_name_twice,
    "GRAPH006": shuffled,
    "GRAPH007": shadowed(lambda g: [name for node in g.node for name in node.output]),
    "GRAPH008": shadowed(lambda g: [v.name for v in g.input]),
    "GRAPH010": described_with_contradiction,
    "GRAPH011": described_for_nothing,
    "GRAPH012": constant_before_there_were_any,
    "GRAPH013": constants_among_inner_inputs,
    "GRAPH015": untyped_inner_outputs,
    "GRAPH019": described_twice,
    "META001": twice_in(lambda proto: proto),
    "META002": twice_in(lambda proto: proto.graph),
    "MODEL001": no_ir_version,
    "MODEL002": no_imports,
    "MODEL004": other_imports_too,
    "MODEL007": of_ir(4),
    "MODEL008": of_ir(2),
    "MODEL011": function_before_there_were_any,
    "MODEL012": only_other_imports,
    "NAME001": odd_values,
    "NAME002": odd_nodes,
    "NAME003": same_nodes,
    "NAME004": odd_dimensions,
    "NAME005": same_graphs,
    "NODE004": attribute_again,
    "QUANT003": annotated_again,
    "TENSOR011": nameless_constant,
    "TYPE003": negative_dimensions,
    "TYPE007": of_ir(8),
}
NOT_ALWAYS = {"GRAPH015"}  # the outputs of a branch that never runs have no type to be found
UNSORTED = {"GRAPH006"}  # what they compute is what the sorted model does


def computed(model, places, values):
    feeds = {model.graph.inputs[p].name: x for p, x in zip(places, values, strict=True)}
    return list(Runner(model).run(feeds).values())


def spoilt(rule):
    """The official models with a fault that can run, each with its inputs and what it computes."""
    for number, case in enumerate(cases()):
        sound = ModelProto.FromString(case.model.SerializeToString())
        proto = copy.deepcopy(sound)
        draw = random.Random(number)  # ruff: ignore[suspicious-non-cryptographic-random-usage]  a test draws
        if len(proto.opset_import) != 1 or not SPOIL[rule](proto, draw):
            continue
        model = sabir.loads(proto.SerializeToString())
        if rule not in {f.rule for f in findings(model, select=[rule], strict=True)}:
            continue
        values, judge = inputs_of(case), sound if rule in {*UNSORTED, "GRAPH004"} else proto
        places = range(len(values))
        if len(values) != len(model.graph.inputs):
            continue
        try:
            yield (
                case.name,
                model,
                places,
                values,
                computed(sabir.loads(judge.SerializeToString()), places, values),
            )
        except (sabir.SchemaError, sabir.EvaluationError):
            continue  # the fault makes another operator of it, which takes something else


@pytest.mark.parametrize("rule", sorted(REPAIRS.keys() | UNSAFE_REPAIRS.keys()))
def test_a_repair_changes_no_value(rule):
    assert rule in SPOIL, "add to SPOIL a function that puts this fault into a model"
    compared = 0
    for name, model, places, values, before in spoilt(rule):
        repairs = fix_in_place(model, select=[rule], unsafe=UNSAFE_REPAIRS.keys() & {rule})
        assert rule in {r.rule for r in repairs}, name
        assert rule in NOT_ALWAYS or not list(findings(model, select=[rule], strict=True)), name
        for repaired in (model, sabir.loads(sabir.dumps(model))):
            assert same(computed(repaired, places, values), before), name
        compared += 1
        if compared == ENOUGH:
            break
    assert compared >= ENOUGH // 2, f"only {compared} models could be spoilt"


def test_the_faults_of_imports_change_what_would_be_computed():
    """The repairs above are proved on models where a wrong version would be seen."""
    text = "<ir_version: 8, opset_import: [{}]> g (float[1,2,2] x) => (float[1,2,2] y) {{ y = Softmax<axis = 1>(x) }}"
    x = [np.float32([[[1, 2], [3, 5]]])]
    of = {version: computed(sabir.parse(text.format(f'"" : {version}')), [0], x) for version in (12, 13)}
    assert not same(of[12], of[13])
    for imports, version in (('"" : 12, "" : 13', 13), ('"" : 13, "" : 12', 13), ('"ai.onnx.ml" : 1', 13)):
        model = sabir.parse(text.format(imports))
        fix_in_place(model)
        assert same(computed(model, [0], x), of[version])
