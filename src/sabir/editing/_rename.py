"""Other names for values, nodes, dimensions, functions and domains of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from sabir.base import NotFoundError, SchemaError, UnsupportedError, quote, suggest
from sabir.editing._functions import called_keys, rename_functions
from sabir.editing._naming import NamingAttributes, named_graphs, named_values, put_names
from sabir.ir import Expr, Node, change_dims, check_is_model, places, symbol
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Dim, Model, Value
    from sabir.schema import Registry

Kind: TypeAlias = Literal["value", "node", "dimension", "function", "domain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class NewName(NamedTuple):
    """A kind of object of a model, and what was called `old` and is called `new`."""

    kind: Kind
    old: str
    new: str


@dataclass(frozen=True)
class Renamed:
    """A model with other names, and which those are."""

    model: Model
    names: tuple[NewName, ...]


def rename(model: Model, names: Mapping[str, str], *, registry: Registry = STANDARD) -> Model:
    """Return a copy of a model in which values, nodes, dimensions, functions or domains have other names.

    A key is an old name. If objects of several kinds have it, write the kind before it: `value:x`, `node:x`,
    `dimension:x`, `function:x`, `domain:x`. All changes are made at once, so two names can be exchanged.

    A value is renamed in the main graph, the graphs inside it and those of training; attributes,
    annotations and device layouts follow. A dimension variable changes in every type, a function in all of
    its calls and overloads, a domain in its functions, calls and imports.

    Raises NotFoundError, a KeyError, for a name that the model does not have, SchemaError for a name of
    several kinds, and for a new name that is in use already.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> renamed = sabir.rename(model, {'x': 'image', 'N': 'batch'})
    >>> print(renamed.graph[0], renamed.graph.inputs[0].type)
    y = Relu (image) float[batch]
    """
    return rename_and_report(model, names, registry=registry).model


def rename_and_report(model: Model, names: Mapping[str, str], *, registry: Registry = STANDARD) -> Renamed:
    """Rename as `rename` does, and report what kind of object each name meant.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> rename_and_report(model, {'N': 'batch'}).names
    (NewName(kind='dimension', old='N', new='batch'),)
    """
    check_is_model(model)
    copy = model.clone()
    known = _known_names(copy)
    found = [_find(key, new, known) for key, new in names.items()]
    by_kind: dict[Kind, dict[str, str]] = {
        kind: {n.old: n.new for n in found if n.kind == kind} for kind in KINDS
    }
    for kind, wanted in by_kind.items():
        _require_free(kind, wanted, known[kind])
    _rename_values(copy, by_kind["value"], registry)
    _rename_nodes(copy, by_kind["node"])
    _rename_dims(copy, by_kind["dimension"])
    _rename_functions(copy, by_kind["function"])
    _rename_domains(copy, by_kind["domain"])
    return Renamed(copy, tuple(found))


# what the names mean


def _variables(model: Model) -> set[str]:
    found: set[str] = set()

    def collect(dim: Dim) -> Dim:
        found.update(dim.symbols if isinstance(dim, Expr) else ())
        return dim

    change_dims(model, collect)
    return found


def _known_names(model: Model) -> dict[Kind, set[str]]:
    """Return the names in a model, by the kind of what has them."""
    called = {place.object.domain for place in places(model, Node)}
    return {
        "value": {value.name for value in named_values(model)} - {""},
        "node": {node.name for graph in named_graphs(model) for node in graph} - {""},
        "dimension": _variables(model),
        "function": {function.name for function in model.functions},
        "domain": {*model.opsets, *(f.domain for f in model.functions), *called} - {"", "ai.onnx"},
    }


def _find(key: str, new: str, known: Mapping[Kind, set[str]]) -> NewName:
    """Return what a key means; raises NotFoundError or SchemaError."""
    if not new:
        raise UnsupportedError(f"the new name of {quote(key)} is empty")
    kinds: list[Kind] = [kind for kind in known if key in known[kind]]
    if len(kinds) == 1:
        return NewName(kinds[0], key, new)
    if kinds:
        raise SchemaError(
            f"{quote(key)} is the name of a {' and a '.join(kinds)}; write which one: "
            f"{' or '.join(f'{kind}:{key}' for kind in kinds)}"
        )
    prefix, _, old = key.partition(":")
    kind: Kind | None = next((kind for kind in known if kind == prefix), None)
    if kind is not None:
        if old in known[kind]:
            return NewName(kind, old, new)
        raise NotFoundError(f"the model has no {kind} {quote(old)}{suggest(old, known[kind])}")
    every = set[str]().union(*known.values())
    raise NotFoundError(
        f"the model has no value, node, dimension, function or domain {quote(key)}{suggest(key, every)}"
    )


def _require_free(kind: Kind, wanted: Mapping[str, str], known: set[str]) -> None:
    """Raise SchemaError where two objects would have one name."""
    taken = known - wanted.keys()
    for old, new in wanted.items():
        if new in taken:
            advice = "; `set_dims` makes two dimensions equal" if kind == "dimension" else ""
            raise SchemaError(
                f"{kind} {quote(old)} cannot be called {quote(new)}: the model has a {kind} of that name"
                + advice
            )
        taken = {*taken, new}


# the changes


def _rename_values(model: Model, names: Mapping[str, str], registry: Registry) -> None:
    if names:
        found: dict[Value, str] = {v: names[v.name] for v in named_values(model) if v.name in names}
        naming = NamingAttributes(model, registry)
        put_names(model, found)
        naming.write()


def _rename_nodes(model: Model, names: Mapping[str, str]) -> None:
    for node in (node for graph in named_graphs(model) for node in graph):
        node.name = names.get(node.name, node.name)


def _rename_dims(model: Model, names: Mapping[str, str]) -> None:
    if names:
        sizes = {old: symbol(new) for old, new in names.items()}
        change_dims(model, lambda dim: dim.substitute(sizes) if isinstance(dim, Expr) else dim)


def _rename_functions(model: Model, names: Mapping[str, str]) -> None:
    wanted = {f.key: names[f.name] for f in model.functions if f.name in names}
    if not wanted:
        return
    called = called_keys(model) - wanted.keys()
    for (domain, old, overload), new in wanted.items():
        if (domain, new, overload) in called:
            raise SchemaError(
                f"function {quote(old)} cannot be called {quote(new)}: the model calls an operator that is"
            )
    rename_functions(model, wanted)


def _rename_domains(model: Model, names: Mapping[str, str]) -> None:
    if not names:
        return
    for place in places(model, Node):
        node: Node = place.object
        node.domain = names.get(node.domain, node.domain)
    for function in model.functions:
        function.domain = names.get(function.domain, function.domain)
        function.opsets = _imports(function.opsets, names)
    model.opsets = _imports(model.opsets, names)


def _imports(opsets: Mapping[str, int], names: Mapping[str, str]) -> dict[str, int]:
    return {names.get(domain, domain): version for domain, version in opsets.items()}
