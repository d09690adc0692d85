"""The releases of the standard: the IR version and the operator sets of each (versioning.txt, and later)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, quote, suggest
from sabir.ir._imports import bound_opsets, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

OLDEST_IR_OF_IMPORTS = 3  # the oldest IR version that imports operator sets
_FIRST_WITH_TRAINING, _FIRST_WITH_PREVIEW = "1.7.0", "1.22.0"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the ONNX standard: its name, its IR version, the version of each domain's operator set.

    >>> ten = release('1.10.0')
    >>> ten.ir_version, ten.opsets['ai.onnx.ml']
    (8, 2)
    """

    name: str
    ir_version: int
    opsets: Mapping[str, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "opsets", MappingProxyType(dict(self.opsets)))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:  # a read-only mapping cannot be pickled
        return Release, (self.name, self.ir_version, dict(self.opsets))


# name, IR version, ai.onnx, ai.onnx.ml; the training domains came with 1.7.0, ai.onnx.preview with 1.22.0
_TABLE = (
    ("1.0", 3, 1, 1), ("1.1", 3, 5, 1), ("1.1.2", 3, 6, 1), ("1.2", 3, 7, 1), ("1.3", 3, 8, 1),
    ("1.4.1", 4, 9, 1), ("1.5.0", 5, 10, 1), ("1.6.0", 6, 11, 2), ("1.7.0", 7, 12, 2), ("1.8.0", 7, 13, 2),
    ("1.8.1", 7, 13, 2), ("1.9.0", 7, 14, 2), ("1.10.0", 8, 15, 2), ("1.10.1", 8, 15, 2),
    ("1.10.2", 8, 15, 2), ("1.11.0", 8, 16, 3), ("1.12.0", 8, 17, 3), ("1.13.0", 8, 18, 3),
    ("1.13.1", 8, 18, 3), ("1.14.0", 9, 19, 3), ("1.14.1", 9, 19, 3), ("1.15.0", 9, 20, 4),
    ("1.16.0", 10, 21, 5), ("1.16.1", 10, 21, 5), ("1.16.2", 10, 21, 5), ("1.17.0", 10, 22, 5),
    ("1.18.0", 11, 23, 5), ("1.19.0", 12, 24, 5), ("1.19.1", 12, 24, 5), ("1.20.0", 13, 25, 5),
    ("1.20.1", 13, 25, 5), ("1.21.0", 13, 26, 5), ("1.22.0", 13, 27, 5), ("1.23.0", 14, 28, 5),
)  # fmt: skip


def _read_table() -> tuple[Release, ...]:
    found: list[Release] = []
    later: dict[str, int] = {}  # the domains that came after the first release
    for name, ir_version, onnx, ml in _TABLE:
        if name == _FIRST_WITH_TRAINING:
            later |= {"ai.onnx.training": 1, "ai.onnx.preview.training": 1}
        if name == _FIRST_WITH_PREVIEW:
            later |= {"ai.onnx.preview": 1}
        found.append(Release(name, ir_version, {"": onnx, "ai.onnx.ml": ml, **later}))
    return tuple(found)


_RELEASES = _read_table()
_NEWEST = _RELEASES[-1]
NEWEST_IR = _NEWEST.ir_version


def releases() -> tuple[Release, ...]:
    """Return every known release of the standard, the oldest first.

    A domain is missing in `opsets` of the releases before its first operator set.

    >>> newest = sabir.releases()[-1]
    >>> newest.name, newest.ir_version, newest.opsets['']
    ('1.23.0', 14, 28)
    """
    return _RELEASES


def release(name: str) -> Release:
    """Return the release of a name; raises UnsupportedError where there is none, or none known yet.

    >>> release('1.4.1').opsets['']
    9
    """
    found = next((known for known in _RELEASES if known.name == name), None)
    if found is None:
        near = suggest(name, (known.name for known in _RELEASES))
        raise UnsupportedError(
            f"no release {quote(name)} of ONNX is known; the newest known one is {_NEWEST.name}{near}"
        )
    return found


def first_ir_of(domain: str, version: int) -> int | None:
    """Return the IR version of the release of a domain's version, or None where no release has it.

    >>> first_ir_of('', 21)
    10
    """
    domain = canonical_domain(domain)
    carriers = (r for r in _RELEASES if domain in r.opsets and r.opsets[domain] >= version)
    return next((r.ir_version for r in carriers), None)


def newest_opset(domain: str) -> int | None:
    """Return the newest version of a standard domain, or None for any other domain.

    >>> newest_opset('ai.onnx.ml')
    5
    """
    return _NEWEST.opsets.get(canonical_domain(domain))


def newest_opset_of_ir(ir_version: int) -> int | None:
    """Return the newest version of the default domain that came with an IR version, None where none did.

    Before IR 3 there was only the first.

    >>> newest_opset_of_ir(8)
    18
    """
    if 0 < ir_version < OLDEST_IR_OF_IMPORTS:
        return 1
    return next((known.opsets[""] for known in _RELEASES[::-1] if known.ir_version == ir_version), None)


def minimum_ir(opset: int) -> int:
    """Return the oldest IR version whose release has this version of the default domain.

    >>> minimum_ir(21)
    10
    """
    return first_ir_of("", opset) or NEWEST_IR


def unknown_ir(version: int) -> str:
    """Return the message about an IR version that no known release has.

    >>> unknown_ir(99).partition(';')[0]
    'IR version 99 is not known'
    """
    return f"IR version {version} is not known; the newest known one is {NEWEST_IR}"


def opsets_of_ir(ir_version: int) -> Mapping[str, int]:
    """Return the newest version of each standard domain that came with an IR version.

    Raises UnsupportedError for an IR version that no known release has.

    >>> dict(opsets_of_ir(4))
    {'': 9, 'ai.onnx.ml': 1}
    """
    found = next((known for known in _RELEASES[::-1] if known.ir_version == ir_version), None)
    if found is None:
        raise UnsupportedError(
            f"no release of ONNX with IR version {ir_version} is known; the known ones have"
            f" {OLDEST_IR_OF_IMPORTS} to {NEWEST_IR}"
        )
    return found.opsets


def least_ir_of_imports(opsets: Mapping[str, int]) -> int:
    """Return the oldest IR version that a model with these imports may have, at least 3.

    Domains outside the standard need none. Raises UnsupportedError for a version of a standard domain that no
    known release has.

    >>> least_ir_of_imports({'': 17, 'ai.onnx.ml': 4, 'org.acme': 2})
    9
    """
    require_released(opsets)
    return max([
        OLDEST_IR_OF_IMPORTS,
        *(first_ir_of(d, v) or OLDEST_IR_OF_IMPORTS for d, v in opsets.items()),
    ])


def first_release_with(opsets: Mapping[str, int], ir_version: int = OLDEST_IR_OF_IMPORTS) -> Release:
    """Return the first release that has these operator sets and this IR version.

    Domains outside the standard are left out. Raises UnsupportedError for a version that no release is known
    to have.

    >>> first_release_with({'': 17}).name, first_release_with({'': 17}, ir_version=9).name
    ('1.12.0', '1.14.0')
    """
    require_released(opsets)
    if ir_version > NEWEST_IR:
        raise UnsupportedError(unknown_ir(ir_version))
    wanted = {d: v for d, v in bound_opsets(opsets).items() if d in _NEWEST.opsets}
    return next(
        known
        for known in _RELEASES
        if known.ir_version >= ir_version and all(known.opsets.get(d, 0) >= v for d, v in wanted.items())
    )


def require_released(opsets: Mapping[str, int]) -> None:
    """Raise UnsupportedError for a version of a standard domain that no known release has.

    >>> require_released({'': 17})
    """
    for domain, version in opsets.items():
        newest = newest_opset(domain)
        if newest is not None and not 0 < version <= newest:
            shown = f"opset {version} of {quote(domain or 'ai.onnx')}"
            raise UnsupportedError(f"{shown} is not known; the newest known one is {newest}")
