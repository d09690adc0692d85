# ruff: file-ignore[too-many-public-methods]  one method a message
"""Random ONNX messages for hypothesis: whole models, and each message that stands in one.

`models()` draws `ModelProto`s of `sabir.proto` that use every field of IR 14. They are plausible rather than
valid: every name is defined once, and most inputs name something defined, but types are drawn freely and
operators are not called as they ask. `odd` adds what a valid model has not: entries that come twice, fields that
are there but empty, malformed tensors, reads of names that nothing defines. `unknown` adds fields that the schema
does not know.
`wire_of` tells whether two of them are the same message.
"""

import functools
import math
import re

import numpy as np
from hypothesis import strategies as st

from sabir import proto
from sabir.elements import ELEMENTS, STRING, pack, packed_size, to_field, unpack
from sabir.proto import AttributeProto, TensorProto

PLAIN_NAMES = (
    "x",
    "y",
    "z",
    "w",
    "b",
    "cond",
    "seq",
    "float",
    "N",
    "x_1",
    "layer.0.weight",
    "/block/Conv_output_0",
)
ODD_NAMES = (
    "a name", 'quo"te', "apo'strophe", "back\\slash", "ünïcode", "日本", "new\nline", "tab\t", "\x00", "\x1b[31mred",
    "\u202egnp", "0digit", "-1", "1.5", "@{", "//", "# no comment", "{}", "<>", "=>", "a,b", " ", "\ufeff", "\U0001f600",
    "\x85", "\u2028", "%s", "[0]", "true", "null", "nan", "graph", "\x7f", "&amp;",
)  # fmt: skip
WORDS = (
    "",
    "why",
    "line one\nline two",
    'it says "so"',
    "tab\tnul\x00",
    "ünï \U0001f600",
    "\\n",
    "'",
    "\r\n",
    '"""',
)
DIMENSIONS = ("N", "batch size", "N+1", "2*N", "(H - 1)//2+1", "ünï", '"', "unk__1", "-", "?", "a\nb")
OPERATORS = ("Relu", "Add", "If", "Loop", "Constant", "Custom", "com.x.Op", "an operator", "ünï", "")
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.example", "a domain", "ünï", '"')
INTEGERS = (0, 1, -1, 2, 7, 127, 128, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63))
SMALL_INTEGERS = (0, 1, -1, 2, 2**31 - 1, -(2**31))
FLOATS = (
    0.0,
    -0.0,
    1.5,
    -2.25,
    math.inf,
    -math.inf,
    math.nan,
    *np.array([1e-45, 0.1, 3.4028235e38, 1e10, -1e-7], np.float32).tolist(),
)
BYTES = (b"", b"text", "ünï".encode(), b"\xff\x00\x80", b'"\\', b"new\nline", b"'")
UNKNOWN = (b"\xf8\xff\x3f\x07", b"\xc2\xff\x3f\x02hi", b"\xfd\xff\x3f\x01\x02\x03\x04")
KINDS = {
    "FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "FLOATS": "floats", "INTS": "ints",
    "STRINGS": "strings", "TENSORS": "tensors", "GRAPHS": "graphs", "SPARSE_TENSOR": "sparse_tensor",
    "SPARSE_TENSORS": "sparse_tensors", "TYPE_PROTO": "tp", "TYPE_PROTOS": "type_protos",
}  # fmt: skip
GROUPS = (
    ELEMENTS,
    *([e for e in ELEMENTS if e.field == field] for field in {e.field: 0 for e in ELEMENTS}),
    ELEMENTS,
)
DEEPEST_GRAPH, DEEPEST_TYPE = 2, 3


def models(*, odd=True, unknown=False):
    """Return a strategy of whole `ModelProto`s; each has a graph or functions, as without there is no model."""
    return messages(proto.ModelProto, odd=odd, unknown=unknown).filter(
        lambda message: message.HasField("graph") or message.functions
    )


@st.composite
def messages(draw, cls, *, odd=True, unknown=False):
    """Draw a message of any class that stands in a model."""
    message = cls()
    Maker(draw, odd=odd, unknown=unknown).fill(message)
    return message


def wire_of(message, *, nans=True):
    """The bytes that equal messages share; without `nans` each NaN in a field of floats counts as the same."""
    copy = type(message)()
    copy.CopyFrom(message)
    pending = [] if nans else [copy]
    while pending:
        one = pending.pop()
        for field, value in one.ListFields():
            if field.message_type is not None:
                pending.extend(value if hasattr(value, "add") else [value])
            elif field.cpp_type in {field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE}:
                if hasattr(value, "extend"):
                    getattr(one, field.name)[:] = [math.nan if math.isnan(v) else v for v in value]
                elif math.isnan(value):
                    setattr(one, field.name, math.nan)
    return copy.SerializeToString(deterministic=True)


@functools.cache
def up_to(most):
    return st.integers(0, most)


class Maker:
    """Fills messages with what it draws; knows the names that are defined so far."""

    def __init__(self, draw, *, odd, unknown):
        self.draw, self.is_odd, self.has_unknown = draw, odd, unknown
        self.taken = set()
        self.visible = []
        self.parameters = []
        self.depth = 0

    # drawing

    def below(self, count):
        return self.draw(up_to(count - 1))

    def count(self, most):
        return self.draw(up_to(most))

    def one(self, choices):
        return choices[self.below(len(choices))]

    def chance(self, one_in=2):
        return self.below(one_in) == one_in - 1

    def oddity(self, one_in=12):
        return self.is_odd and self.chance(one_in)

    def several(self, choices, most=3):
        return [self.one(choices) for _ in range(self.count(most))]

    def bytes(self, size):
        return self.draw(st.binary(min_size=size, max_size=size))

    # names and texts

    def word(self):
        """Any name, defined or not."""
        if self.chance(20):
            return self.draw(
                st.text(st.characters(codec="utf-8"), min_size=0 if self.is_odd else 1, max_size=5)
            )
        return self.one(ODD_NAMES if self.chance(3) else PLAIN_NAMES)

    def new_name(self):
        """A name that nothing in the model has yet; it can be read from now on."""
        stem = name = self.word() or "v"
        number = 0
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        self.visible.append(name)
        return name

    def read_name(self):
        """Most often the name of something defined."""
        if self.chance(8):
            return ""
        return self.word() if not self.visible or self.oddity(6) else self.one(self.visible)

    def unused(self, names, draw_name):
        """A name that is not among `names`, where it may not come twice."""
        name = draw_name()
        while name in names and not self.oddity(3):
            name += "_"
        names.append(name)
        return name

    def texts(self, message, *fields):
        for field in fields:
            if self.chance(4):
                text = self.one(WORDS)
                if text or self.is_odd:
                    setattr(message, field, text)

    def entries(self, field, most=2):
        keys = []
        for _ in range(self.count(most) if self.chance(4) else 0):
            entry = field.add()
            entry.key, entry.value = self.unused(keys, self.word), self.one(WORDS)
            if self.oddity():
                entry.ClearField(self.one(("key", "value")))
            self.mark(entry)

    def mark(self, message):
        """Add unknown fields to some messages."""
        if self.has_unknown and self.chance(5):
            message.MergeFromString(self.one(UNKNOWN))

    def fill(self, message):
        """Fill a message of any class, by the method that is called as it is."""
        getattr(self, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message.DESCRIPTOR.name).lower())(message)
        self.mark(message)

    # the model

    def model_proto(self, model):
        if not self.oddity():
            model.ir_version = self.one((14, 10, 4, 3))
        self.texts(model, "producer_name", "producer_version", "domain", "doc_string")
        if self.chance(4):
            model.model_version = self.one(INTEGERS)
        self.imports(model.opset_import)
        self.fill(model.graph)
        self.entries(model.metadata_props)
        main = list(self.visible)
        if self.chance(4):
            self.fill(model.training_info.add())
        for _ in range(self.count(2) if self.chance() else 0):
            self.taken, self.visible = set(), []
            self.fill(model.functions.add())
        self.visible = main
        if self.chance(4):
            self.fill(model.configuration.add())

    def imports(self, field):
        domains = []
        for _ in range(1 + self.count(2)):
            entry = field.add(version=self.one((21, 1, 0, -1, 2**40)))
            domain = self.unused(domains, lambda: self.one(DOMAINS))
            if domain or self.is_odd:
                entry.domain = domain
            if self.oddity():
                entry.ClearField("version")
            self.mark(entry)

    def operator_set_id_proto(self, entry):
        entry.domain, entry.version = self.one(DOMAINS), self.one(INTEGERS)

    def string_string_entry_proto(self, entry):
        entry.key, entry.value = self.word(), self.one(WORDS)

    def function_proto(self, function):
        function.name = self.word()
        function.domain = self.one(DOMAINS)
        if self.chance(3):
            function.overload = self.word()
        function.input.extend(self.new_name() for _ in range(self.count(2)))
        names = []
        function.attribute.extend(self.unused(names, self.word) for _ in range(self.count(2)))
        for _ in range(self.count(2)):
            default = function.attribute_proto.add()
            self.fill(default)
            if not self.oddity():
                default.ClearField("ref_attr_name")
            default.name = self.unused(names, self.word)
        self.parameters = names
        for _ in range(self.count(2)):
            self.fill(function.node.add())
        self.parameters = []
        function.output.extend(self.read_name() or "out" for _ in range(self.count(2)))
        self.imports(function.opset_import)
        self.texts(function, "doc_string")
        self.value_info(function.value_info)
        self.entries(function.metadata_props)

    def training_info_proto(self, training):
        main = list(self.visible)
        made = {"initialization": [], "algorithm": []}
        for field in made:
            if self.chance(3):
                continue
            self.visible = list(main)
            self.fill(getattr(training, field))
            made[field] = [o.name for o in getattr(training, field).output if o.name]
        for field, source in (("initialization_binding", "initialization"), ("update_binding", "algorithm")):
            for _ in range(self.count(2)):
                entry = getattr(training, field).add()
                entry.key = self.one(main) if main else self.word()
                entry.value = self.one(made[source]) if made[source] else self.word()
                self.mark(entry)
        self.visible = main

    # graphs

    def graph_proto(self, graph):
        outer, inner, taken = list(self.visible), len(self.visible), set(self.taken)
        if not self.chance(6):
            graph.name = self.word()
        self.texts(graph, "doc_string")
        for _ in range(self.count(2)):
            self.info(graph.input.add(), self.new_name())
        self.initializers(graph)
        for _ in range(self.count(2 if self.depth else 3)):
            self.fill(graph.node.add())
        here = self.visible[inner:]
        for _ in range(self.count(2)):
            self.info(graph.output.add(), self.output_name(here))
        self.value_info(graph.value_info)
        if self.chance(4):
            self.fill(graph.quantization_annotation.add())
        self.entries(graph.metadata_props)
        if self.depth:
            self.visible, self.taken = outer, taken  # what comes after may have the names inside again

    def output_name(self, here):
        if here and not self.oddity(6):
            return self.one(here)
        return self.read_name() if self.oddity() else self.word()

    def initializers(self, graph):
        inputs = [info.name for info in graph.input]
        for _ in range(3 - self.count(3)):
            tensor = graph.initializer.add()
            self.fill(tensor)
            tensor.name = inputs.pop() if inputs and self.chance(3) else self.new_name()
        if self.chance(4):
            sparse = graph.sparse_initializer.add()
            self.fill(sparse)
            sparse.values.name = self.new_name()

    def value_info(self, field):
        names = []
        for _ in range(self.count(2)):
            name = self.read_name() or self.word()
            if name not in names or self.oddity():
                names.append(name)
                self.info(field.add(), name)

    def info(self, info, name):
        self.fill(info)
        info.name = name

    def value_info_proto(self, info):
        info.name = self.word()
        if not self.chance(6):
            info.type.SetInParent()
            if not self.oddity(20):
                self.fill(info.type)
        self.texts(info, "doc_string")
        self.entries(info.metadata_props)

    def tensor_annotation(self, note):
        note.tensor_name = self.read_name() or self.word()
        for _ in range(self.count(2)):
            entry = note.quant_parameter_tensor_names.add()
            entry.key = self.one(("SCALE_TENSOR", "ZERO_POINT_TENSOR", "odd key"))
            entry.value = self.read_name() or self.word()
            self.mark(entry)

    # nodes

    def node_proto(self, node):
        node.op_type = self.one(OPERATORS)
        node.input.extend(self.read_name() for _ in range(self.count(3)))
        if self.chance():
            node.domain = self.one(DOMAINS)
        if self.chance():
            node.name = self.word()
        if self.chance(6):
            node.overload = self.word()
        self.texts(node, "doc_string")
        names = []
        for _ in range(self.count(2)):
            attribute = node.attribute.add()
            self.fill(attribute)
            attribute.name = self.unused(names, self.word)
        self.entries(node.metadata_props)
        node.output.extend("" if self.chance(8) else self.new_name() for _ in range(self.count(2)))
        if self.chance(6):
            self.device_layout(node.device_configurations.add(), [*node.input, *node.output])

    def attribute_proto(self, attribute):
        attribute.name = self.word()
        kind = self.one(tuple(KINDS))
        if "GRAPH" in kind and self.depth >= DEEPEST_GRAPH:
            kind = "INT"
        if not self.oddity(10):
            attribute.type = AttributeProto.AttributeType.Value(kind)
        self.texts(attribute, "doc_string")
        if self.parameters and self.chance(3):
            attribute.ref_attr_name = self.one(self.parameters)
        elif not self.oddity():
            self.value(attribute, KINDS[kind])
        if self.oddity():
            self.value(attribute, self.one(("i", "floats", "s", "tp")))

    def value(self, attribute, field):
        scalars = {
            "f": FLOATS,
            "i": INTEGERS,
            "s": BYTES,
            "floats": FLOATS,
            "ints": INTEGERS,
            "strings": BYTES,
        }
        self.depth += 1
        if field in {"f", "i", "s"}:
            setattr(attribute, field, self.one(scalars[field]))
        elif field in scalars:
            getattr(attribute, field).extend(self.several(scalars[field]))
        elif AttributeProto.DESCRIPTOR.fields_by_name[field].is_repeated:
            for _ in range(self.count(2)):
                self.fill(getattr(attribute, field).add())
        else:
            getattr(attribute, field).SetInParent()
            self.fill(getattr(attribute, field))
        self.depth -= 1

    # tensors

    def tensor_proto(self, tensor):
        element = self.one(self.one(GROUPS))
        tensor.dims.extend(self.one((2, 1, 3, 4, 0)) for _ in range(self.count(3)))
        tensor.data_type = element.number
        if self.chance(4):
            tensor.name = self.word()
        self.texts(tensor, "doc_string")
        self.entries(tensor.metadata_props)
        if self.oddity(8):
            tensor.segment.begin, tensor.segment.end = self.one(INTEGERS), self.one(INTEGERS)
        if self.chance(8):
            self.external(tensor)
        else:
            self.data(tensor, element)
        if self.oddity():
            self.spoil(tensor)

    def external(self, tensor):
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=self.one(("weights.bin", "a b/ünï.bin", "..")))
        for key in ("offset", "length", "checksum"):
            if self.chance():
                tensor.external_data.add(key=key, value=self.one(("0", "4096", "12", "odd")))

    def data(self, tensor, element):
        size = math.prod(tensor.dims)
        if element is STRING:
            tensor.string_data.extend(self.one(BYTES) for _ in range(size))
            return
        array = unpack(element, self.bytes(packed_size(element, size)), size)
        if self.chance():
            getattr(tensor, element.field).extend(to_field(element, array))
        else:
            tensor.raw_data = bytes(pack(element, array))
        if self.oddity():
            tensor.data_location = TensorProto.DEFAULT

    def spoil(self, tensor):
        """Give a tensor one fault."""
        fault = self.below(6)
        if fault == 0:
            tensor.dims.append(self.one((-1, 5, 2**40, 2**63 - 1)))
        elif fault == 1:
            tensor.data_type = self.one((0, 99, -1))
        elif fault == 2:
            tensor.raw_data = self.one(BYTES)
        elif fault == 3:
            tensor.int32_data.extend(self.several(SMALL_INTEGERS))
        elif fault == 4:
            tensor.ClearField("data_type")
        else:
            tensor.ClearField("raw_data")

    def sparse_tensor_proto(self, sparse):
        element = self.one([e for e in ELEMENTS if e is not STRING])
        count, rank = self.count(3), 1 + self.count(1)
        sparse.dims.extend([4] * rank)
        places = sorted(self.draw(st.sets(st.integers(0, 4**rank - 1), min_size=count, max_size=count)))
        sparse.values.dims.append(count)
        sparse.values.data_type = element.number
        self.data(sparse.values, element)
        sparse.indices.data_type = TensorProto.INT64
        if rank == 1 or self.chance():
            sparse.indices.dims.append(count)
            sparse.indices.int64_data.extend(places)
        else:
            sparse.indices.dims.extend([count, rank])
            sparse.indices.raw_data = (
                np.array([divmod(p, 4) for p in places], "<i8").reshape(-1, rank).tobytes()
            )
        if self.oddity():
            self.spoil(self.one((sparse.values, sparse.indices)))
        if self.oddity(20):
            sparse.ClearField(self.one(("values", "indices")))
        self.mark(sparse.values)

    # types

    def type_proto(self, kind, depth=0):
        deep = depth >= DEEPEST_TYPE
        which = self.one(
            ("tensor",) * 6 + ("sparse_tensor", "opaque", *(() if deep else ("sequence", "map", "optional")))
        )
        held = getattr(kind, f"{which}_type")
        held.SetInParent()
        self.texts(kind, "denotation")
        if which in {"tensor", "sparse_tensor"}:
            held.elem_type = self.one(ELEMENTS).number if not self.oddity(20) else self.one((0, 99, -1))
            if not self.chance(6):
                held.shape.SetInParent()
                self.fill(held.shape)
        elif which == "opaque":
            self.texts(held, "domain", "name")
        elif self.oddity(20):
            return
        elif which == "map":
            held.key_type = self.one(ELEMENTS).number
            self.type_proto(held.value_type, depth + 1)
        else:
            self.type_proto(held.elem_type, depth + 1)
        self.mark(held)

    def tensor_shape_proto(self, shape):
        for _ in range(self.count(3)):
            self.fill(shape.dim.add())

    def dimension(self, dim):
        which = self.below(3)
        if which == 0:
            dim.dim_value = self.one((1, 3, 0, 2**40, -1)) if self.is_odd else self.one((1, 3, 0, 2**40))
        elif which == 1:
            dim.dim_param = "" if self.oddity() else self.one(DIMENSIONS)
        if self.chance(6):
            dim.denotation = self.one(("DATA_BATCH", "DATA_CHANNEL", "odd one"))

    # devices

    def device_configuration_proto(self, configuration):
        configuration.name = self.word()
        configuration.num_devices = self.one(SMALL_INTEGERS)
        configuration.device.extend(self.word() for _ in range(self.count(2)))

    def node_device_configuration_proto(self, layout):
        self.device_layout(layout, [])
        layout.ClearField("sharding_spec")

    def device_layout(self, layout, names):
        layout.configuration_id = self.word()
        if self.chance():
            layout.pipeline_stage = self.one(SMALL_INTEGERS)
        for _ in range(self.count(2)):
            spec = layout.sharding_spec.add()
            self.fill(spec)
            if names and not self.oddity():
                spec.tensor_name = self.one(names)
        self.mark(layout)

    def sharding_spec_proto(self, spec):
        spec.tensor_name = self.word()
        spec.device.extend(self.several(INTEGERS))
        for _ in range(self.count(1)):
            self.fill(spec.index_to_device_group_map.add())
        for _ in range(self.count(2)):
            self.fill(spec.sharded_dim.add())

    def int_int_list_entry_proto(self, entry):
        entry.key = self.one(INTEGERS)
        entry.value.extend(self.several(INTEGERS))

    def sharded_dim_proto(self, axis):
        axis.axis = self.one(INTEGERS)
        for _ in range(self.count(2)):
            self.fill(axis.simple_sharding.add())

    def simple_sharded_dim_proto(self, piece):
        which = self.below(3)
        if which == 0:
            piece.dim_value = self.one(INTEGERS)
        elif which == 1:
            piece.dim_param = self.one(DIMENSIONS)
        piece.num_shards = self.one(INTEGERS)
