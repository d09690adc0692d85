"""Known contents of outputs: an operator whose inputs are all known is evaluated on them."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import ACCIDENTS, SabirError
from sabir.inference._facts import with_contents
from sabir.ir import TensorType
from sabir.opsets.families import contents
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Node, Type
    from sabir.schema import Call, Scope, Version


def folded(
    version: Version, node: Node, inputs: Sequence[Any], results: tuple[Type | None, ...],
    scope: Scope, call: Call,
) -> tuple[Type | None, ...]:  # fmt: skip
    """Add the contents of outputs whose inputs are all known, where they are small."""
    small = [
        isinstance(t, TensorType) and isinstance(t.size, int) and t.size <= contents.MOST for t in results
    ]
    arrays = [contents.array_of(t) if isinstance(t, TensorType) else None for t in inputs]
    constant = inputs and all(a is not None or t is None for a, t in zip(arrays, inputs, strict=True))
    if (
        not constant
        or not all(small)
        or node.graphs
        or version.operator.random
        or version.find("evaluate") is None
    ):
        return results
    binding = version.binding("evaluate")
    try:
        with np.errstate(all="ignore"):
            found = binding(arrays, binding.arguments(scope.arguments(node.attributes)), call)
    except (SabirError, *ACCIDENTS):
        return results  # the run will say what is wrong with these values; the types stand
    return tuple(starmap(with_contents, zip(results, as_results(found), strict=False)))
