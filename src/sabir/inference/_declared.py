"""The types that a model declares, and their merge with those that inference finds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from sabir.inference._claims import Claim, claim_in
from sabir.inference._contents import without_contents
from sabir.inference._merge import merge, with_names, without_item_names, without_names, without_negatives
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Model, Type, Value


class Merged(NamedTuple):
    """Two types of one value, what both say together, and the claim that the declared one makes."""

    declared: Type
    inferred: Type
    whole: Type
    claim: Claim | None


class Declarations:
    """The declared types, remembered by identity; `interned` has one object for all equal types.

    With `fresh` the declared type of a computed value counts only where nothing follows from its operands.
    """

    def __init__(self, interned: dict[Type, Type], *, fresh: bool) -> None:
        self._interned, self.fresh = interned, fresh
        self._usable: dict[tuple[int, bool], tuple[Type, Type]] = {}
        self._merged: dict[tuple[int, int, bool], Merged] = {}

    def of(self, value: Value, *, always: bool = False) -> Type | None:
        """Return the declared type of a value, without the names that a subgraph gives to dimensions.

        A fresh inference ignores that of a computed value, unless `always` is set.
        """
        if value.type is None or (self.fresh and value.node is not None and not always):
            return None
        graph = value.home
        inside = graph is not None and graph.parent is not None
        key = (id(value.type), inside)
        known = self._usable.get(key)
        if known is None:
            open_ = without_names if inside else without_item_names
            kind = without_negatives(open_(value.type))
            known = self._usable[key] = (value.type, self._interned.setdefault(kind, kind))
        return known[1]

    def merged(self, declared: Type, kind: Type, *, of_output: bool) -> Merged:
        """Return the merge of two interned types; raises InferenceError where they contradict each other."""
        key = (id(declared), id(kind), of_output)
        found = self._merged.get(key)
        if found is None:
            whole = merge(declared, kind, prefer_declared=of_output) or kind
            whole = self._interned.setdefault(whole, whole)
            found = self._merged[key] = Merged(declared, kind, whole, claim_in(declared, kind))
        return found

    def write(self, types: Mapping[Value, Type]) -> None:
        """Write interned types into their values; one whose elements are unknown is left out.

        Dimensions of unknown size get the file's names; in a fresh inference only where the inferred type
        says no more than the declared one.
        """
        stripped: dict[int, Type] = {}
        for value, kind in types.items():
            plain = stripped.get(id(kind))
            if plain is None:
                plain = stripped[id(kind)] = without_contents(kind)
            if isinstance(plain, TensorType) and not plain.element.number:
                continue
            renames = not (self.fresh and value.node is not None and kind is not self.of(value, always=True))
            found = with_names(plain, value.type) if renames else plain
            # a type is shared by all values that have it; the note in a value's file entry is not
            if found != value.type:
                note = value.type.note if value.type is not None else None
                value.type = found if note is None else dataclasses.replace(found, note=note)


def retype_leftovers(model: Model) -> None:
    """Set further descriptions of computed values in the file to the types that the values have now."""
    for graph in (inner for root in model.graphs() for inner in root.scopes()):
        descriptions = [(info, info.name) for info in graph.orphan_value_info]
        descriptions += [(info, value.name) for value, info in graph.output_infos.values()]
        if not descriptions:
            continue
        computed = {v.name: v.type for v in graph.defined() if v.node is not None and v.type is not None}
        for info, name in descriptions:
            if info.type is not None and name in computed:
                info.type = computed[name]
