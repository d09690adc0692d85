"""Functions of two models that become those of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.editing._merged_names import Renaming
from sabir.ir import FreshNames, Node, canonical_domain, places
from sabir.serial import text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.ir import Function, FunctionKey, Model


def key_of_call(node: Node) -> FunctionKey:
    """Return the key of the function that a node calls, if the model has it.

    >>> key_of_call(Node('Twice', domain='local'))
    ('local', 'Twice', '')
    """
    return canonical_domain(node.domain), node.op, node.overload


def rename_functions(model: Model, names: Mapping[FunctionKey, str]) -> None:
    """Give functions other names, in their calls too; all at once.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    ... g (float[N] x) => (float[N] y) { y = local.Twice (x) }
    ... <domain: "local", opset_import: ["" : 21]> Twice (a) => (b) { b = Add (a, a) }''')
    >>> rename_functions(model, {('local', 'Twice', ''): 'Double'})
    >>> model.functions[0].key, model.graph[0].op
    (('local', 'Double', ''), 'Double')
    """
    for place in places(model, Node):
        node: Node = place.object
        node.op = names.get(key_of_call(node), node.op)
    for function in model.functions:
        old, new = function.name, names.get(function.key)
        if new is None:
            continue
        function.name = new
        if function.graph.name == old:
            function.graph.name = new


def called_keys(model: Model) -> set[FunctionKey]:
    """Return the keys of all calls of a model: of functions, and of operators.

    >>> called_keys(sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }'''))
    {('', 'Relu', '')}
    """
    return {key_of_call(place.object) for place in places(model, Node)}


def join_functions(first: Model, second: Model, named: Callable[[str], str]) -> list[Renaming]:
    """Give the functions of two models different keys, and move those of the second to the first.

    A function that both have with the same body stays one. Another one that clashes, also with an operator
    that the other model calls, is called `named(name)`, numbered where that clashes too.
    """
    own, other = first.functions_by_key(), second.functions_by_key()
    called, called_by_other = called_keys(first), called_keys(second)
    taken = FreshNames(name for _, name, _ in {*own, *other, *called, *called_by_other})
    renamed: list[Renaming] = []

    def rename(index: int, function: Function) -> None:
        old = function.name
        rename_functions((first, second)[index], {function.key: taken.fresh(named(old))})
        renamed.append(Renaming(index, "function", old, function.name))

    for key, function in own.items():
        if key in called_by_other and key not in other:
            rename(0, function)
    for key, function in other.items():
        twin = own.get(key)
        if twin is not None and text(twin) == text(function):
            second.functions.remove(function)
        elif twin is not None or key in called:
            rename(1, function)
    first.functions += second.functions
    second.functions.clear()
    return renamed
