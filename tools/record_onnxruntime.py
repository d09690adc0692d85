# ruff: file-ignore[banned-api]  onnxruntime publishes the facts that this tool records
"""Record the operators that onnxruntime adds to the standard, as its installed package describes them.

    python tools/record_onnxruntime.py

It writes `tests/rooms/onnxruntime.json`: for each operator of the domains of onnxruntime, and for each
version of a standard domain that the standard never released, the signature, and the element types that the
kernels of its CPU provider take. The tests compare the rooms with it.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import onnxruntime
from onnx import AttributeProto, defs, helper

RECORD = Path(__file__).parents[1] / "tests" / "rooms" / "onnxruntime.json"
native: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
OWN = ("com.microsoft", "com.microsoft.nchwc")
_KINDS = {"type_proto": "type", "type_protos": "types"}

Facts = dict[str, Any]


def published() -> dict[str, Facts]:
    """Return the facts of every version that only onnxruntime has, by `domain/Name/since`."""
    standard = {(s.domain, s.name, s.since_version) for s in defs.get_all_schemas_with_history()}
    found: dict[str, Facts] = {}
    for schema in native.get_all_operator_schema():
        domain = "" if schema.domain == "ai.onnx" else schema.domain
        if domain in OWN or (not domain and (domain, schema.name, schema.since_version) not in standard):
            found[f"{domain or 'ai.onnx'}/{schema.name}/{schema.since_version}"] = _facts(schema)
    return dict(sorted(found.items()))


def kernels() -> dict[tuple[str, str], list[tuple[int, int, dict[str, list[str]]]]]:
    """Return versions and types by constraint of the kernels of the CPU provider, by domain and name."""
    found: dict[tuple[str, str], list[tuple[int, int, dict[str, list[str]]]]] = {}
    for kernel in native.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            first, last = kernel.version_range
            taken = {name: sorted(types) for name, types in kernel.type_constraints.items()}
            found.setdefault((kernel.domain, kernel.op_name), []).append((first, last, taken))
    return found


_KERNELS = kernels()


def _facts(schema: Any) -> Facts:
    inputs = [_port(p, schema.min_input - i) for i, p in enumerate(schema.inputs)]
    outputs = [_port(p, schema.min_output - i) for i, p in enumerate(schema.outputs)]
    domain = "" if schema.domain == "ai.onnx" else schema.domain
    taken = [
        types
        for first, last, types in _KERNELS.get((domain, schema.name), ())
        if first <= schema.since_version <= last
    ]
    return {
        "inputs": inputs,
        "outputs": outputs,
        "constraints": {c.type_param_str: sorted(c.allowed_type_strs) for c in schema.type_constraints},
        "attributes": {name: _attribute(a) for name, a in sorted(schema.attributes.items())},
        "deprecated": schema.deprecated,
        "experimental": str(schema.support_level).endswith("EXPERIMENTAL"),
        "function": False,
        "cpu": sorted(taken, key=json.dumps),
    }


def _port(port: Any, minimum: int) -> Facts:
    option = str(port.option).rpartition(".")[2]
    facts: Facts = {
        "name": port.name,
        "type": port.typeStr,
        "types": sorted(port.types),
        "differentiable": None,
    }
    if option == "Optional":
        facts["optional"] = True
    if option == "Variadic":
        facts["variadic"] = {"minimum": minimum, "heterogeneous": not port.isHomogeneous}
    return facts


def _attribute(attribute: Any) -> Facts:
    kind = str(attribute.type).rpartition(".")[2].lower()
    facts: Facts = {"type": _KINDS.get(kind, kind)}
    if attribute.required:
        facts["required"] = True
    default = attribute._default_value  # ruff: ignore[private-member-access]  it has no other name
    if default:
        facts["default"] = _plain(helper.get_attribute_value(AttributeProto.FromString(default)))
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def main() -> None:
    """Write the record: one version a line, equal sets of types once."""
    sets: dict[tuple[str, ...], int] = {}

    def number(types: list[str]) -> int:
        return sets.setdefault(tuple(types), len(sets))

    versions = published()
    for facts in versions.values():
        for port in (*facts["inputs"], *facts["outputs"]):
            port["types"] = number(port["types"])
        facts["constraints"] = {name: number(types) for name, types in facts["constraints"].items()}
        facts["cpu"] = [{name: number(types) for name, types in taken.items()} for taken in facts["cpu"]]
    lines = [
        f'{{"onnxruntime": {json.dumps(onnxruntime.__version__)},',
        '"type sets": [',
        ",\n".join(json.dumps(types) for types in sets),
        '],\n"versions": {',
        ",\n".join(f"{json.dumps(key)}: {json.dumps(facts)}" for key, facts in versions.items()),
        "}}\n",
    ]
    RECORD.write_text("\n".join(lines), encoding="utf-8")
    print(f"{RECORD.name}: {len(versions)} versions of onnxruntime {onnxruntime.__version__}")


if __name__ == "__main__":
    main()
