"""Operators that opset 10 removed: experiments of the first opsets that were never released."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.schema import Attribute, Version

_REMOVAL = 10


def removed(version: Version, instead: str, attributes: Sequence[Attribute] | None = None) -> Version:
    """Declare the version in which an operator is removed; `instead` says what computes the same.

    `attributes` are those of the removed version, where they differ.
    """
    newer = replace(
        version,
        since=_REMOVAL,
        changes=f"Removed: {instead}",
        attributes=version.attributes if attributes is None else tuple(attributes),
        deprecated=True,
        behaviours={},
        absences={"downgrade": "the operator was removed, so no call of it is valid in opset 10"},
        _bindings={},
        _formal=[],
    )
    return version.operator.record(newer)
