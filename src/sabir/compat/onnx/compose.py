"""Two models joined, and names with prefixes."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.compat.onnx import helper
from sabir.compat.onnx.onnx_ml_pb2 import (
    AttributeProto,
    GraphProto,
    ModelProto,
    TensorProto,
    TensorShapeProto,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_overlapping_names(
    g1: Any, g2: Any, io_map: list[tuple[str, str]] | None = None
) -> list[tuple[str, list[str]]]:
    """Return the names that both graphs define, with their kind, such as `edge` or `initializer`.

    The names that `io_map` connects are none of them.
    """
    connected = {name for _, name in io_map or ()}
    found: list[tuple[str, list[str]]] = []
    kinds = {
        "node": ([n.name for n in g1.node], [n.name for n in g2.node]),
        "edge": (_edges(g1), _edges(g2)),
        "value_info": ([v.name for v in g1.value_info], [v.name for v in g2.value_info]),
        "initializer": ([t.name for t in g1.initializer], [t.name for t in g2.initializer]),
        "sparse_initializer": (_sparse_names(g1), _sparse_names(g2)),
    }
    for kind, (ours, theirs) in kinds.items():
        shared = set(theirs) - (connected if kind in {"edge", "value_info", "initializer"} else set())
        names = [name for name in dict.fromkeys(ours) if name and name in shared]
        if names:
            found.append((kind, names))
    return found


def merge_graphs(
    g1: Any,
    g2: Any,
    io_map: list[tuple[str, str]],
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
    prefix1: str | None = None,
    prefix2: str | None = None,
    name: str | None = None,
    doc_string: str | None = None,
) -> Any:
    """Return the GraphProto that computes `g1`, then `g2` on outputs of the first.

    `io_map` has pairs of an output of `g1` and an input of `g2`. `inputs` and `outputs` keep only these of
    the result, and the nodes that they need. Raises ValueError for unknown names, and for names that both
    graphs define; a prefix makes them differ.
    """
    first, second = _copied(g1, GraphProto), _copied(g2, GraphProto)
    if prefix1:
        add_prefix_graph(first, prefix1, inplace=True)
    if prefix2:
        add_prefix_graph(second, prefix2, inplace=True)
    pairs = [(f"{prefix1 or ''}{a}", f"{prefix2 or ''}{b}") for a, b in io_map]
    wanted_in = _prefixed_if_needed(inputs, (first.input, second.input), prefix1, prefix2)
    wanted_out = _prefixed_if_needed(outputs, (first.output, second.output), prefix1, prefix2)
    _require_pairs(first, second, pairs)
    if inputs is not None or outputs is not None:
        first, second = _reduced(first, second, pairs, wanted_in, wanted_out)
    overlaps = check_overlapping_names(first, second, pairs)
    if overlaps:
        kind, names = overlaps[0]
        raise ValueError(
            f"both graphs have the {kind} names {', '.join(names)}; pass prefix1 or prefix2, or call "
            "add_prefix"
        )
    return _joined(first, second, pairs, wanted_in, wanted_out, name, doc_string)


def merge_models(
    m1: Any,
    m2: Any,
    io_map: list[tuple[str, str]],
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
    prefix1: str | None = None,
    prefix2: str | None = None,
    name: str | None = None,
    doc_string: str | None = None,
    producer_name: str | None = "onnx.compose.merge_models",
    producer_version: str | None = "1.0",
    domain: str | None = "",
    model_version: int | None = 1,
) -> Any:
    """Return the ModelProto that computes `m1` and then `m2`; see `merge_graphs`.

    Raises ValueError for models of different IR versions or opset imports, for different values of one key of
    the metadata, and for functions that both define.
    """
    if m1.ir_version != m2.ir_version:
        raise ValueError(
            f"m1 has the IR version {m1.ir_version}, and m2 has {m2.ir_version}; set one `ir_version` to "
            "the other"
        )
    imports = _joined_imports(m1, m2)
    first, second = _copied(m1, ModelProto), _copied(m2, ModelProto)
    if prefix1:
        add_prefix(first, prefix1, inplace=True)
    if prefix2:
        add_prefix(second, prefix2, inplace=True)
    shared = {f.name for f in first.functions} & {f.name for f in second.functions}
    if shared:
        raise ValueError(
            f"both models have the functions {', '.join(sorted(shared))}; pass prefix1 or prefix2"
        )
    graph = merge_graphs(
        first.graph,
        second.graph,
        [(f"{prefix1 or ''}{a}", f"{prefix2 or ''}{b}") for a, b in io_map],
        _prefixed_if_needed(inputs, (first.graph.input, second.graph.input), prefix1, prefix2),
        _prefixed_if_needed(outputs, (first.graph.output, second.graph.output), prefix1, prefix2),
        doc_string=doc_string,
        name=name or f"{m1.graph.name}_{m2.graph.name}",
    )
    merged = helper.make_model(
        graph,
        ir_version=m1.ir_version,
        opset_imports=list(starmap(helper.make_opsetid, imports.items())),
        functions=[*first.functions, *second.functions],
        producer_name=producer_name or "",
        producer_version=producer_version or "",
        domain=domain or "",
        model_version=model_version or 0,
    )
    helper.set_model_props(merged, _joined_metadata(m1, m2))
    return merged


def add_prefix_graph(
    graph: Any,
    prefix: str,
    rename_nodes: bool | None = True,
    rename_edges: bool | None = True,
    rename_inputs: bool | None = True,
    rename_outputs: bool | None = True,
    rename_initializers: bool | None = True,
    rename_value_infos: bool | None = True,
    inplace: bool | None = False,
    name_map: dict[str, str] | None = None,
) -> Any:
    """Return a graph with a prefix before its names, also where its subgraphs read them.

    `name_map` has further names, old and new, which the graph captures.
    """
    result = graph if inplace else _copied(graph, GraphProto)
    chosen = _Prefixing(
        prefix,
        nodes=rename_nodes,
        edges=rename_edges,
        inputs=rename_inputs,
        outputs=rename_outputs,
        initializers=rename_initializers,
        value_infos=rename_value_infos,
    )
    chosen.rename(result, {} if name_map is None else name_map)
    return result


def add_prefix(
    model: Any,
    prefix: str,
    rename_nodes: bool | None = True,
    rename_edges: bool | None = True,
    rename_inputs: bool | None = True,
    rename_outputs: bool | None = True,
    rename_initializers: bool | None = True,
    rename_value_infos: bool | None = True,
    rename_functions: bool | None = True,
    inplace: bool | None = False,
) -> Any:
    """Return a model with a prefix before the names of its graph and of its functions."""
    result = model if inplace else _copied(model, ModelProto)
    add_prefix_graph(
        result.graph,
        prefix,
        rename_nodes,
        rename_edges,
        rename_inputs,
        rename_outputs,
        rename_initializers,
        rename_value_infos,
        inplace=True,
    )
    if rename_functions:
        functions = {(f.domain, f.name): f"{prefix}{f.name}" for f in result.functions}
        for function in result.functions:
            function.name = functions[function.domain, function.name]
        for body in [result.graph, *result.functions]:
            _rename_calls(body, functions)
    return result


def expand_out_dim_graph(graph: Any, dim_idx: int, inplace: bool | None = False) -> Any:
    """Return a graph with one more dimension, of size 1, at a place of each output."""
    result = graph if inplace else _copied(graph, GraphProto)
    names = {output.name: f"{output.name}_collapsed_dim_{dim_idx}" for output in result.output}
    for node in result.node:
        for place, output in enumerate(node.output):
            node.output[place] = names.get(output, output)
        for place, operand in enumerate(node.input):
            node.input[place] = names.get(operand, operand)
    axes = f"{result.name}_expand_out_dim_idx"
    result.node.append(
        helper.make_node(
            "Constant",
            [],
            [axes],
            name=f"{result.name}_expand_out_dim_constant",
            value=helper.make_tensor(
                f"{result.name}_expand_out_dim_value", TensorProto.INT64, [1], [dim_idx]
            ),
        )
    )
    for output in result.output:
        result.node.append(
            helper.make_node(
                "Unsqueeze", [names[output.name], axes], [output.name], name=f"unsqueeze-{output.name}"
            )
        )
        _insert_dimension(output, dim_idx)
    return result


def expand_out_dim(model: Any, dim_idx: int, inplace: bool | None = False) -> Any:
    """Return a model with one more dimension, of size 1, at a place of each output."""
    result = model if inplace else _copied(model, ModelProto)
    expand_out_dim_graph(result.graph, dim_idx, inplace=True)
    return result


# joining


def _joined(
    first: Any,
    second: Any,
    pairs: list[tuple[str, str]],
    inputs: list[str] | None,
    outputs: list[str] | None,
    name: str | None,
    doc_string: str | None,
) -> Any:
    source = {b: a for a, b in pairs}
    _rename(second, source, "")
    for inner in _subgraphs(second):
        _rename_deep(inner, source)
    used, given = {a for a, _ in pairs}, set(source)
    graph = GraphProto(name=name or f"{first.name}_{second.name}")
    graph.node.extend([*first.node, *second.node])
    kept = [*first.input, *(v for v in second.input if v.name not in set(source.values()))]
    graph.input.extend(v for v in kept if inputs is None or v.name in inputs)
    results = [v for v in first.output if v.name not in used or (outputs is not None and v.name in outputs)]
    results += list(second.output)
    graph.output.extend(v for v in results if outputs is None or v.name in outputs)
    removed = set(source.values()) | given
    graph.initializer.extend(first.initializer)
    graph.initializer.extend(t for t in second.initializer if t.name not in removed)
    graph.sparse_initializer.extend(first.sparse_initializer)
    graph.sparse_initializer.extend(t for t in second.sparse_initializer if t.values.name not in removed)
    graph.value_info.extend(first.value_info)
    graph.value_info.extend(v for v in second.value_info if v.name not in removed)
    stated = {v.name for v in [*graph.value_info, *graph.output]}
    graph.value_info.extend(v for v in first.output if v.name in used and v.name not in stated)
    described = [f"{part.name}: {part.doc_string}" for part in (first, second) if part.doc_string]
    if doc_string or described:
        graph.doc_string = doc_string or "\n\n".join(described)
    return graph


def _require_pairs(first: Any, second: Any, pairs: Iterable[tuple[str, str]]) -> None:
    outputs, inputs = {v.name for v in first.output}, {v.name for v in second.input}
    for output, operand in pairs:
        if output not in outputs:
            raise ValueError(f"g1 has no output {output!r}; its outputs are {sorted(outputs)}")
        if operand not in inputs:
            raise ValueError(f"g2 has no input {operand!r}; its inputs are {sorted(inputs)}")


def _reduced(
    first: Any, second: Any, pairs: list[tuple[str, str]], inputs: list[str] | None, outputs: list[str] | None
) -> tuple[Any, Any]:
    """Return both graphs with the nodes alone that the wanted outputs need."""
    ends2 = [v.name for v in second.output if outputs is None or v.name in outputs]
    starts2 = [
        v.name for v in second.input if inputs is None or v.name in inputs or v.name in {b for _, b in pairs}
    ]
    connected = [a for a, _ in pairs]
    ends1 = [v.name for v in first.output if v.name in connected or outputs is None or v.name in outputs]
    starts1 = [v.name for v in first.input if inputs is None or v.name in inputs]
    return _part(first, starts1, ends1), _part(second, starts2, ends2)


def _part(graph: Any, inputs: list[str], outputs: list[str]) -> Any:
    if len(inputs) == len(graph.input) and len(outputs) == len(graph.output):
        return graph
    return _needed(graph, inputs, outputs)


def _needed(graph: Any, inputs: list[str], outputs: list[str]) -> Any:
    result = _copied(graph, GraphProto)
    wanted, nodes = set(outputs), list[Any]()
    for node in reversed(graph.node):
        if wanted & set(node.output):
            nodes.append(node)
            wanted.update(node.input)
            wanted.update(name for inner in _subgraphs_of(node) for name in _reads(inner))
    del result.node[:], result.input[:], result.output[:], result.initializer[:]
    result.node.extend(reversed(nodes))
    result.input.extend(v for v in graph.input if v.name in inputs)
    result.output.extend(v for v in graph.output if v.name in outputs)
    result.initializer.extend(t for t in graph.initializer if t.name in wanted)
    return result


def _reads(graph: Any) -> Iterable[str]:
    for node in graph.node:
        yield from node.input
        for inner in _subgraphs_of(node):
            yield from _reads(inner)
    yield from (output.name for output in graph.output)


def _prefixed_if_needed(
    names: list[str] | None, ports: tuple[Any, Any], prefix1: str | None, prefix2: str | None
) -> list[str] | None:
    """Return names of ports, those that a prefix renamed under their new names."""
    if names is None:
        return None
    first, second = ({port.name for port in side} for side in ports)
    found: list[str] = []
    for name in names:
        one, two = f"{prefix1 or ''}{name}", f"{prefix2 or ''}{name}"
        matches = [n for n, side in ((one, first), (two, second), (name, first | second)) if n in side]
        if not matches:
            raise ValueError(f"no graph has an input or output {name!r}; they have {sorted(first | second)}")
        found.extend(dict.fromkeys(matches[:2] if prefix1 or prefix2 else matches[:1]))
    return found


def _joined_imports(m1: Any, m2: Any) -> dict[str, int]:
    imports: dict[str, int] = {}
    for imported in [*m1.opset_import, *m2.opset_import]:
        known = imports.setdefault(imported.domain, imported.version)
        if known != imported.version:
            raise ValueError(
                f"the domain {imported.domain!r} is imported in versions {known} and {imported.version}; "
                "call version_converter.convert_version for one of the models first"
            )
    return imports


def _joined_metadata(m1: Any, m2: Any) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for entry in [*m1.metadata_props, *m2.metadata_props]:
        if metadata.setdefault(entry.key, entry.value) != entry.value:
            raise ValueError(
                f"both models have the metadata key {entry.key!r}, with different values; remove it from one"
            )
    return metadata


# names


class _Prefixing(NamedTuple):
    """A prefix, and which names of a graph and of its subgraphs get it."""

    prefix: str
    nodes: bool | None
    edges: bool | None
    inputs: bool | None
    outputs: bool | None
    initializers: bool | None
    value_infos: bool | None

    def rename(self, graph: Any, names: dict[str, str]) -> None:
        """Rename what is in a graph, and add the new names of its values to `names`."""
        names.update({name: f"{self.prefix}{name}" for name in self._chosen(graph, names) if name})
        _rename(graph, names, self.prefix if self.nodes else "")
        for inner in _subgraphs(graph):
            self.rename(inner, dict(names))

    def _chosen(self, graph: Any, names: dict[str, str]) -> list[str]:
        """Return the values of a graph that get a new name; those of `names` have one."""
        known = {v.name for v in [*graph.input, *graph.output]} | set(names)
        used = [n for node in graph.node for n in [*node.output, *node.input]] if self.edges else []
        chosen = [name for name in used if name not in known]
        for wanted, values in (
            (self.inputs, graph.input),
            (self.outputs, graph.output),
            (self.initializers, graph.initializer),
            (self.value_infos, graph.value_info),
        ):
            if wanted:
                chosen += [v.name for v in values]
        if self.initializers:
            chosen += [n for t in graph.sparse_initializer for n in (t.values.name, t.indices.name)]
        return chosen


def _rename(graph: Any, names: dict[str, str], node_prefix: str) -> None:
    for node in graph.node:
        for field in (node.input, node.output):
            for place, name in enumerate(field):
                if name in names:
                    field[place] = names[name]
        if node_prefix and node.name:
            node.name = f"{node_prefix}{node.name}"
    tensors = [t for s in graph.sparse_initializer for t in (s.values, s.indices)]
    for named in [*graph.input, *graph.output, *graph.value_info, *graph.initializer, *tensors]:
        if named.name in names:
            named.name = names[named.name]


def _rename_deep(graph: Any, names: dict[str, str]) -> None:
    """Rename what a subgraph captures; names that it defines itself are others."""
    own = {v.name for v in [*graph.input, *graph.initializer]} | {
        n for node in graph.node for n in node.output
    }
    outer = {old: new for old, new in names.items() if old not in own}
    _rename(graph, outer, "")
    for inner in _subgraphs(graph):
        _rename_deep(inner, outer)


def _rename_calls(body: Any, functions: dict[tuple[str, str], str]) -> None:
    for node in body.node:
        node.op_type = functions.get((node.domain, node.op_type), node.op_type)
        for inner in _subgraphs_of(node):
            _rename_calls(inner, functions)


def _subgraphs(graph: Any) -> Iterable[Any]:
    return (inner for node in graph.node for inner in _subgraphs_of(node))


def _subgraphs_of(node: Any) -> Iterable[Any]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _edges(graph: Any) -> list[str]:
    return [v.name for v in [*graph.input, *graph.output]] + [n for node in graph.node for n in node.output]


def _sparse_names(graph: Any) -> list[str]:
    return [n for t in graph.sparse_initializer for n in (t.values.name, t.indices.name)]


def _insert_dimension(output: Any, index: int) -> None:
    dims = output.type.tensor_type.shape.dim
    place = index if index >= 0 else len(dims) + 1 + index
    moved = [TensorShapeProto.Dimension.FromString(dim.SerializeToString()) for dim in dims]
    moved.insert(place, TensorShapeProto.Dimension(dim_value=1))
    del dims[:]
    dims.extend(moved)


def _copied(message: Any, kind: Any) -> Any:
    if not isinstance(message, kind):
        raise ValueError(f"the argument must be a {kind.DESCRIPTOR.name}, and is a {type(message).__name__}")
    copy = kind()
    copy.CopyFrom(message)
    return copy


__all__ = [
    "add_prefix",
    "add_prefix_graph",
    "check_overlapping_names",
    "expand_out_dim",
    "expand_out_dim_graph",
    "merge_graphs",
    "merge_models",
]
