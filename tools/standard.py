# ruff: file-ignore[banned-api]  onnx.defs publishes the facts that this tool records
"""Record what the standard publishes of each operator version, or compare the record with installed onnx.

    python tools/standard.py           compare tests/rooms/standard.json with the installed onnx package
    python tools/standard.py --write   record what the installed onnx package publishes

The comparison lists every version that is new, gone or different, with the facts that differ; its exit code
is 1 where there is any. `docs/new-opset.md` says what to do then.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import defs

RECORD = Path(__file__).parents[1] / "tests" / "rooms" / "standard.json"
_KINDS = {"type_proto": "type", "type_protos": "types"}
_MAP = re.compile(r"map\((\w+),tensor\((\w+)\)\)")  # type constraints spell a map without tensor()
_DIFFERENTIABLE = {"Differentiable": True, "NonDifferentiable": False}

Facts = dict[str, Any]


def published() -> dict[str, Facts]:
    """Return the facts of every version that the installed package publishes, by `domain/Name/since`."""
    schemas = defs.get_all_schemas_with_history()
    found = {f"{s.domain or 'ai.onnx'}/{s.name}/{s.since_version}": _facts(s) for s in schemas}
    return dict(sorted(found.items(), key=_order))


def recorded() -> dict[str, Facts]:
    """Return the facts of every version that the record has."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    sets = record["type sets"]
    for facts in record["versions"].values():
        for port in (*facts["inputs"], *facts["outputs"]):
            port["types"] = sets[port["types"]]
        facts["constraints"] = {name: sets[number] for name, number in facts["constraints"].items()}
    return record["versions"]


def write() -> None:
    """Record what the installed package publishes: one version a line, equal sets of types once."""
    sets: dict[tuple[str, ...], int] = {}

    def number(types: list[str]) -> int:
        return sets.setdefault(tuple(types), len(sets))

    versions = published()
    for facts in versions.values():
        for port in (*facts["inputs"], *facts["outputs"]):
            port["types"] = number(port["types"])
        facts["constraints"] = {name: number(types) for name, types in facts["constraints"].items()}
    lines = [
        f'{{"onnx": {json.dumps(onnx.__version__)},',
        '"type sets": [',
        ",\n".join(json.dumps(types) for types in sets),
        '],\n"versions": {',
        ",\n".join(f"{json.dumps(key)}: {json.dumps(facts)}" for key, facts in versions.items()),
        "}}\n",
    ]
    RECORD.write_text("\n".join(lines), encoding="utf-8")


def differences(old: dict[str, Facts], new: dict[str, Facts]) -> Iterator[str]:
    """Yield a line for each version that is new, gone or different, and for each fact that differs."""
    for key in sorted({*old, *new}, key=lambda k: _order((k, {}))):
        if key not in old:
            yield f"new: {key}"
            yield from (f"    {line}" for line in _since_previous(key, new))
        elif key not in new:
            yield f"gone: {key}"
        elif old[key] != new[key]:
            yield f"changed in place: {key}"
            yield from (f"    {line}" for line in _between(old[key], new[key]))


def _since_previous(key: str, versions: dict[str, Facts]) -> Iterator[str]:
    """Yield what a new version changes, and the declaration that its room needs."""
    name, _, since = key.rpartition("/")
    numbers = [int(k.rpartition("/")[2]) for k in versions if k.rpartition("/")[0] == name]
    earlier = [n for n in numbers if n < int(since)]
    if not earlier:
        yield f"a new operator: write its room; the facts: {json.dumps(versions[key])}"
        return
    old, new = versions[f"{name}/{max(earlier)}"], versions[key]
    yield from _between(old, new)
    yield f"write in the room: v{since} = v{max(earlier)}.{_declaration(old, new, since)}"


def _declaration(old: Facts, new: Facts, since: str) -> str:
    """Return the verb of the history that fits a change, with the arguments that follow from the facts."""
    if new["deprecated"]:
        return f'retire({since}, "…")'
    wider = {
        name: sorted(set(types) - set(old["constraints"].get(name, ())))
        for name, types in new["constraints"].items()
    }
    narrower = any(set(types) - set(new["constraints"].get(n, ())) for n, types in old["constraints"].items())
    ports_stay = all(_untyped(old[k]) == _untyped(new[k])[: len(old[k])] for k in ("inputs", "outputs"))
    attributes_stay = all(new["attributes"].get(n) == a for n, a in old["attributes"].items())
    if narrower or not ports_stay or not attributes_stay:
        return f'evolve({since}, "…", …)  # and both adapters'
    grown = any(len(old[k]) != len(new[k]) for k in ("inputs", "outputs", "attributes"))
    types = ", ".join(f"{name}=frozenset({more})" for name, more in wider.items() if more)
    if grown:
        return f'extend({since}, "…", …{f", widen=dict({types})" if types else ""})'
    return f"widen({since}, {types})" if types else f'restate({since}, "…")'


def _untyped(ports: list[Facts]) -> list[Facts]:
    return [{**port, "types": None, "differentiable": None} for port in ports]


def _between(old: Facts, new: Facts) -> Iterator[str]:
    for field in new:
        if old[field] == new[field]:
            continue
        if field == "constraints":
            for name in sorted({*old[field], *new[field]}):
                before, after = set(old[field].get(name, ())), set(new[field].get(name, ()))
                if before != after:
                    yield f"{name}: more {sorted(after - before)}, fewer {sorted(before - after)}"
        elif field == "attributes":
            for name in sorted({*old[field], *new[field]}):
                if old[field].get(name) != new[field].get(name):
                    yield f"attribute {name}: {old[field].get(name)} -> {new[field].get(name)}"
        elif field in {"inputs", "outputs"}:
            before, after = _untyped(old[field]), _untyped(new[field])
            if before != after:
                yield f"{field}: {before} -> {after}"
        else:
            yield f"{field}: {old[field]} -> {new[field]}"


def _facts(schema: Any) -> Facts:  # an OpSchema; its stub lacks half of it
    return {
        "inputs": [_port(p) for p in schema.inputs],
        "outputs": [_port(p) for p in schema.outputs],
        "constraints": {c.type_param_str: sorted(c.allowed_type_strs) for c in schema.type_constraints},
        "attributes": {name: _attribute(a) for name, a in sorted(schema.attributes.items())},
        "deprecated": schema.deprecated,
        "experimental": schema.support_level.name == "EXPERIMENTAL",
        "function": schema.has_function or schema.has_context_dependent_function,
    }


def _port(port: Any) -> Facts:
    option = port.option.name
    facts: Facts = {
        "name": port.name, "type": port.type_str,
        "types": sorted(_MAP.sub(r"map(\1, \2)", t) for t in port.types),
        "differentiable": _DIFFERENTIABLE.get(port.differentiation_category.name),
    }  # fmt: skip
    if option == "Optional":
        facts["optional"] = True
    if option == "Variadic":
        facts["variadic"] = {"minimum": port.min_arity, "heterogeneous": not port.is_homogeneous}
    return facts


def _attribute(attribute: defs.OpSchema.Attribute) -> Facts:
    kind = str(attribute.type).rsplit(".", maxsplit=1)[-1].lower()
    facts: Facts = {"type": _KINDS.get(kind, kind)}
    if attribute.required:
        facts["required"] = True
    if attribute.default_value.type:
        facts["default"] = _plain(onnx.helper.get_attribute_value(attribute.default_value))
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return float(np.float32(value))
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _order(item: tuple[str, Facts]) -> tuple[str, int]:
    name, _, since = item[0].rpartition("/")
    return name, int(since)


def main() -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="record what the installed package publishes")
    if parser.parse_args().write:
        write()
        print(f"{RECORD.name}: {len(recorded())} versions of onnx {onnx.__version__}")
        return 0
    lines = list(differences(recorded(), published()))
    print("\n".join(lines) or f"the record has all that onnx {onnx.__version__} publishes")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
