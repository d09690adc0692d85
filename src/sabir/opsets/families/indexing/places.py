"""The places of true elements, found by a kernel whose result has room for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import COMPLEX64, COMPLEX128, STRING
from sabir.opsets.families.numbers.scalars import element_of
from sabir.schema import INTERNAL, Unconvertible

if TYPE_CHECKING:
    from sabir.ir import Builder, Value

_WITHOUT_KERNELS = frozenset({STRING, COMPLEX64, COMPLEX128})


def true_places(b: Builder, marks: Value) -> Value:
    """Add the nodes that find the true elements of a vector; return their indices, in ascending order."""
    return b.op("Counted", b.op("TruePlaces", marks, domain=INTERNAL), domain=INTERNAL)


def check_has_kernels(x: Value) -> None:
    """Raise Unconvertible for a tensor whose elements no kernel reads, or of an unknown type."""
    if element_of(x) in _WITHOUT_KERNELS:
        raise Unconvertible(f"no kernel reads {x.type}")
