"""What a model declares of its values, and all that this and inference say together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.inference._claims import Claim, claim_in
from sabir.inference._merge import merge, with_names, without_item_names, without_names, without_negatives

if TYPE_CHECKING:
    from sabir.ir import Model, Type, Value


class Merged(NamedTuple):
    """Two types of one value, what they say together, and the claim that the declared one makes."""

    declared: Type
    inferred: Type
    whole: Type
    claim: Claim | None


class Declarations:
    """The declared types, remembered by identity; `interned` has the one object that stands for each type.

    With `fresh` what is declared of a computed value counts only where nothing follows of it.
    """

    def __init__(self, interned: dict[Type, Type], *, fresh: bool) -> None:
        self._interned, self.fresh = interned, fresh
        self._said: dict[tuple[int, bool], tuple[Type, Type]] = {}
        self._merged: dict[tuple[int, int, bool], Merged] = {}

    def of(self, value: Value, *, anyway: bool = False) -> Type | None:
        """Return what the file says of a value, a subgraph's own names of dimensions aside.

        A fresh inference drops it for a computed value, unless it is wanted `anyway`.
        """
        if value.type is None or (self.fresh and value.node is not None and not anyway):
            return None
        graph = value.home
        inside = graph is not None and graph.parent is not None
        key = (id(value.type), inside)
        known = self._said.get(key)
        if known is None:
            open_ = without_names if inside else without_item_names
            kind = without_negatives(open_(value.type))
            known = self._said[key] = (value.type, self._interned.setdefault(kind, kind))
        return known[1]

    def merged(self, declared: Type, kind: Type, *, of_output: bool) -> Merged:
        """Return all that the two say together; raises InferenceError where they contradict each other."""
        key = (id(declared), id(kind), of_output)
        found = self._merged.get(key)
        if found is None:
            whole = merge(declared, kind, prefer_declared=of_output) or kind
            whole = self._interned.setdefault(whole, whole)
            found = self._merged[key] = Merged(declared, kind, whole, claim_in(declared, kind))
        return found

    def written(self, value: Value, kind: Type, plain: Type) -> Type:
        """Return what to write for a value that is of a `kind`, `plain` without its contents.

        It gets the file's names of the dimensions that are open; in a fresh inference only where nothing else
        is known of the value.
        """
        if self.fresh and value.node is not None and kind is not self.of(value, anyway=True):
            return plain
        return with_names(plain, value.type)


def retype_leftovers(model: Model) -> None:
    """Give what a file declares once more of a computed value the type that the value has now."""
    for graph in (inner for root in model.graphs() for inner in root.scopes()):
        again = [(told, told.name) for told in graph.orphan_value_info]
        again += [(told, value.name) for value, told in graph.output_infos.values()]
        if not again:
            continue
        computed = {v.name: v.type for v in graph.defined() if v.node is not None and v.type is not None}
        for told, name in again:
            if told.type is not None and name in computed:
                told.type = computed[name]
