"""Consumers of models: what a runtime or another program reads, and the releases of onnxruntime."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, quote, suggest
from sabir.consumers._added import FIRST_MINOR
from sabir.ir import NEWEST_IR, bound_opsets, release, releases, require_released, unknown_ir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# From which minor version of onnxruntime 1 on it reads the operator sets and the IR version of which release
# of the standard. Source: the table in its docs/Versioning.md, and which models each one from 1.2 on loads.
_ONNXRUNTIME = (
    (0, "1.6.0"), (3, "1.7.0"), (6, "1.8.0"), (8, "1.9.0"), (9, "1.10.0"), (11, "1.11.0"), (12, "1.12.0"),
    (14, "1.13.0"), (15, "1.14.0"), (17, "1.15.0"), (18, "1.16.0"), (21, "1.17.0"), (23, "1.18.0"),
    (24, "1.20.0"), (25, "1.21.0"), (32, "1.23.0"),
)  # fmt: skip
_NEWEST_MINOR = 32
_PREVIEW_SINCE = 28  # it reads ai.onnx.preview before the rest of the release that brought this domain
_OWN_DOMAINS = ("com.microsoft", "com.microsoft.nchwc")
_PATCH = re.compile(r"(onnxruntime-[0-9]+\.[0-9]+)\.[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A program that reads models: the newest version of each domain that it reads, and of the IR.

    The consumer has no operators of a domain that `opsets` lacks. `added` are the operators, by domain and
    name, that it has beyond the standard; None: all in the domains that it has. Raises UnsupportedError for
    an IR version, or a version of a standard domain, that is not known.

    >>> edge = Consumer('edge', {'': 13}, ir_version=8)
    >>> edge.opsets['']
    13
    """

    name: str
    opsets: Mapping[str, int]
    ir_version: int
    added: frozenset[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        require_released(self.opsets)
        if not 0 < self.ir_version <= NEWEST_IR:
            raise UnsupportedError(unknown_ir(self.ir_version))
        object.__setattr__(self, "opsets", MappingProxyType(bound_opsets(self.opsets)))

    def __hash__(self) -> int:
        return hash((self.name, self.ir_version))

    def __reduce__(self) -> tuple[Any, ...]:  # a read-only mapping cannot be pickled
        return Consumer, (self.name, dict(self.opsets), self.ir_version, self.added)


def _known() -> Iterator[Consumer]:
    name = ""
    firsts = dict(_ONNXRUNTIME)
    for minor in range(_NEWEST_MINOR + 1):
        name = firsts.get(minor, name)
        standard = release(name)
        opsets = {**standard.opsets, **dict.fromkeys(_OWN_DOMAINS, 1)}
        if minor >= _PREVIEW_SINCE:
            opsets["ai.onnx.preview"] = 1
        added = frozenset(key for key, first in FIRST_MINOR.items() if first <= minor)
        yield Consumer(f"onnxruntime-1.{minor}", opsets, standard.ir_version, added)
    for standard in releases():
        yield Consumer(f"onnx-{standard.name}", standard.opsets, standard.ir_version, frozenset())


CONSUMERS: Mapping[str, Consumer] = MappingProxyType({known.name: known for known in _known()})
"""The known consumers by name: the minor releases of onnxruntime, and the releases of the standard."""


def find_consumer(name: str) -> Consumer:
    """Return the known consumer of a name: `onnxruntime-1.20` (or `onnxruntime-1.20.1`), `onnx-1.17.0`.

    Raises UnsupportedError for another name.

    >>> find_consumer('onnxruntime-1.20').ir_version
    10
    """
    patch = _PATCH.fullmatch(name)
    found = CONSUMERS.get(name) or CONSUMERS.get(patch[1] if patch else "")
    if found is None:
        near = suggest(name, CONSUMERS)
        raise UnsupportedError(
            f"no consumer {quote(name)} is known; known are onnxruntime-1.0 to onnxruntime-1.{_NEWEST_MINOR},"
            f" and onnx-{releases()[0].name} to onnx-{releases()[-1].name}{near}"
        )
    return found
