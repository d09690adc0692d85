"""The releases of the standard: the IR version of each operator set (versioning.txt, later releases)."""

from __future__ import annotations

from bisect import bisect_left

from sabir.ir._imports import canonical_domain

NEWEST_IR = 14
_FIRST_IR_OF_IMPORTS = 3
# (newest opset of the release, its IR version), for every release that raised the IR version
_RELEASES: dict[str, tuple[tuple[int, int], ...]] = {
    "": (
        (8, 3), (9, 4), (10, 5), (11, 6), (14, 7), (18, 8), (20, 9), (22, 10), (23, 11), (24, 12), (27, 13),
        (28, 14),
    ),
    "ai.onnx.ml": ((1, 3), (2, 6), (3, 8), (4, 9), (5, 10)),
    "ai.onnx.training": ((1, 7),),
    "ai.onnx.preview.training": ((1, 7),),
    "ai.onnx.preview": ((1, 13),),
}  # fmt: skip


def first_ir_of(domain: str, version: int) -> int | None:
    """Return the IR version of the release of a domain's version, or None where no release has it.

    >>> first_ir_of('', 21)
    10
    """
    releases = _RELEASES.get(canonical_domain(domain), ())
    place = bisect_left(releases, (version, 0))
    return releases[place][1] if place < len(releases) else None


def newest_opset(domain: str) -> int | None:
    """Return the newest version of a standard domain, or None for any other domain.

    >>> newest_opset('ai.onnx.ml')
    5
    """
    releases = _RELEASES.get(canonical_domain(domain))
    return None if releases is None else releases[-1][0]


def newest_opset_of_ir(ir_version: int) -> int | None:
    """Return the newest version of the default domain that came with an IR version, None where none did.

    Before IR 3 there was only the first.

    >>> newest_opset_of_ir(8)
    18
    """
    if 0 < ir_version < _FIRST_IR_OF_IMPORTS:
        return 1
    return next((opset for opset, ir in _RELEASES[""] if ir == ir_version), None)


def minimum_ir(opset: int) -> int:
    """Return the oldest IR version whose release has this version of the default domain.

    >>> minimum_ir(21)
    10
    """
    return first_ir_of("", opset) or NEWEST_IR
