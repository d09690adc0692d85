"""Texts inside a model: no UTF-8, NUL and control characters, endless names, expressions in dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostile.case import MANY, STRING, case, info, model, node, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "@@@@"


def _with(change: Callable[[Any], object]) -> Any:
    made = model()
    change(made)
    return made


def _attribute(made: Any) -> Any:
    return made.graph.node[0].attribute.add(name="alpha", type=1)


def _function(made: Any) -> Any:
    held = made.functions.add(name="f", domain="d", input=["a"], output=["b"])
    node(held, "Relu", ["a"], ["b"])
    return held


PLACES: dict[str, Callable[[Any, str], object]] = {
    "producer_name": lambda m, t: setattr(m, "producer_name", t),
    "model domain": lambda m, t: setattr(m, "domain", t),
    "model doc": lambda m, t: setattr(m, "doc_string", t),
    "opset domain": lambda m, t: m.opset_import.add(domain=t, version=1),
    "metadata key": lambda m, t: m.metadata_props.add(key=t, value="v"),
    "metadata value": lambda m, t: m.metadata_props.add(key="k", value=t),
    "graph name": lambda m, t: setattr(m.graph, "name", t),
    "graph doc": lambda m, t: setattr(m.graph, "doc_string", t),
    "input name": lambda m, t: info(m.graph.input, t, ["N"]),
    "input doc": lambda m, t: setattr(m.graph.input[0], "doc_string", t),
    "output name": lambda m, t: (info(m.graph.output, t, ["N"]), node(m.graph, "Neg", ["x"], [t])),
    "value_info name": lambda m, t: info(m.graph.value_info, t, ["N"]),
    "dim_param": lambda m, t: info(m.graph.input, "q", [t]),
    "dimension denotation": lambda m, t: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], "denotation", t),
    "opaque domain": lambda m, t: setattr(m.graph.input.add(name="o").type.opaque_type, "domain", t),
    "sharding": lambda m, t: m.graph.node[0].device_configurations.add(configuration_id="c").sharding_spec.add(tensor_name=t),
    "sharded dimension": lambda m, t: m.graph.node[0].device_configurations.add(configuration_id="c").sharding_spec.add(tensor_name="x").sharded_dim.add(axis=0).simple_sharding.add(dim_param=t),
    "type denotation": lambda m, t: setattr(m.graph.input[0].type, "denotation", t),
    "node name": lambda m, t: setattr(m.graph.node[0], "name", t),
    "node doc": lambda m, t: setattr(m.graph.node[0], "doc_string", t),
    "op_type": lambda m, t: setattr(m.graph.node[0], "op_type", t),
    "node domain": lambda m, t: setattr(m.graph.node[0], "domain", t),
    "overload": lambda m, t: setattr(m.graph.node[0], "overload", t),
    "node input": lambda m, t: m.graph.node[0].input.append(t),
    "attribute name": lambda m, t: setattr(_attribute(m), "name", t),
    "attribute doc": lambda m, t: setattr(_attribute(m), "doc_string", t),
    "ref_attr_name": lambda m, t: setattr(_attribute(m), "ref_attr_name", t),
    "initializer name": lambda m, t: m.graph.initializer.append(tensor(t, dims=[], float_data=[1])),
    "initializer doc": lambda m, t: m.graph.initializer.append(tensor("w", dims=[], float_data=[1], doc_string=t)),
    "sparse initializer name": lambda m, t: m.graph.sparse_initializer.add(dims=[1]).values.CopyFrom(tensor(t, dims=[0])),
    "annotation": lambda m, t: m.graph.quantization_annotation.add(tensor_name=t).quant_parameter_tensor_names.add(key=t, value=t),
    "function name": lambda m, t: setattr(_function(m), "name", t),
    "function domain": lambda m, t: setattr(_function(m), "domain", t),
    "function input": lambda m, t: _function(m).input.append(t),
    "function attribute": lambda m, t: _function(m).attribute.append(t),
    "function default": lambda m, t: _function(m).attribute_proto.add(name=t, type=2, i=1),
    "binding": lambda m, t: m.training_info.add().update_binding.add(key=t, value=t),
    "configuration": lambda m, t: m.configuration.add(name=t, num_devices=1, device=[t]),
    "node device": lambda m, t: m.graph.node[0].device_configurations.add(configuration_id=t),
    "location": lambda m, t: m.graph.initializer.add(name="w", data_type=1, dims=[1], data_location=1).external_data.add(key="location", value=t),
}  # fmt: skip

UNTEXT = {
    "no UTF-8": b"\xff\xfe\xfd\xfc",
    "a surrogate": b"\xed\xa0\x80x",
    "beyond Unicode": b"\xf4\x90\x80\x80",
}
for place, put in PLACES.items():
    case(
        f"no UTF-8: {place}",
        lambda p=put: (
            _with(lambda m: p(m, MARK)).SerializeToString().replace(MARK.encode(), b"\xff\xfe\xfd\xfc")
        ),
        "refused",
    )
    case(
        f"NUL and escapes: {place}",
        lambda p=put: _with(lambda m: p(m, "a\0b\x1b[31m\r\n\u202e\x9b")).SerializeToString(),
    )
    case(f"2 MB: {place}", lambda p=put: _with(lambda m: p(m, "N" * 2_000_000)).SerializeToString())

for name, bad in {
    "a surrogate": b"\xed\xa0\x80x",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "overlong": b"\xc0\x80xx",
}.items():
    for place in ("node name", "input name", "dim_param", "metadata value"):
        case(
            f"{name} in UTF-8: {place}",
            lambda p=PLACES[place], b=bad: (
                _with(lambda m: p(m, MARK)).SerializeToString().replace(MARK.encode(), b)
            ),
            "refused",
        )

DIMS = {
    "a long sum": "+".join(["N"] * MANY),
    "a long product": "*".join(["N"] * MANY),
    "a product of many names": "*".join(f"n{i}" for i in range(4_000)),
    "a power of a sum": "*".join(["(N+M+1)"] * 60),
    "many parentheses": "(" * MANY + "N" + ")" * MANY,
    "half the parentheses": "(" * MANY + "N",
    "many minus signs": "-" * MANY + "N",
    "a division by zero": "N/0",
    "a remainder by zero": "N%0",
    "a long number": "9" * MANY,
    "a number times a name": "9" * 4000 + "*N",
    "other digits": "\u0661\u0662\u0663",
    "only spaces": " " * 1000,
    "nested floors": "floor(" * 2000 + "N" + ")" * 2000,
    "nested maxima": "max(N," * 2000 + "1" + ")" * 2000,
    "towers of powers": "**".join(["9"] * 20),
    "shifts": "1<<1000000000000",
    "a call": "__import__('os').system('true')",
    "a number like a float": "1e308*1e308",
    "a minus at the end": "N-",
}
for name, text in DIMS.items():
    case(
        f"dimension: {name}",
        lambda t=text: _with(lambda m: info(m.graph.input, "q", [t, "N"])).SerializeToString(),
    )


def _strings(values: list[bytes], count: int | None = None, **more: Any) -> bytes:
    made = model()
    made.graph.initializer.append(
        tensor("w", STRING, [len(values) if count is None else count], string_data=values, **more)
    )
    info(made.graph.output, "s", [count or len(values)], STRING)
    node(made.graph, "Identity", ["w"], ["s"])
    return made.SerializeToString()


case("strings: two more than the shape says", lambda: _strings([b"a"] * 4, 2), "refused")
case("strings: two fewer than the shape says", lambda: _strings([b"a"] * 2, 4), "refused")
case("strings: none", lambda: _strings([], 0), "sound")
case("strings: no UTF-8", lambda: _strings([b"\xff"]), "refused")
case("strings: NUL", lambda: _strings([b"\0"]), "sound")
case("strings: raw", lambda: _strings([], 2, raw_data=b"ab"), "refused")
case("strings: one of 20 MB", lambda: _strings([b"a" * 20_000_000]), "sound")
case("strings: 10000 empty ones", lambda: _strings([b""] * MANY), "sound")
