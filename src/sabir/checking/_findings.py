"""The findings of a check: an iterator that a notebook shows as a table."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sabir.base import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable


class Findings(Iterator[Finding]):
    """Findings one by one; the check runs when the first is asked for.

    A notebook shows those that are left, which stay there.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Reluu (x) }''')
    >>> found = sabir.findings(model)
    >>> '<td>NODE001</td>' in found._repr_html_(), next(found).rule
    (True, 'NODE001')
    """

    def __init__(self, found: Iterable[Finding]) -> None:
        self._found = iter(found)
        self._kept: deque[Finding] = deque()

    def __next__(self) -> Finding:
        return self._kept.popleft() if self._kept else next(self._found)

    def _repr_html_(self) -> str:
        from sabir.drawing import findings_html  # ruff: ignore[import-outside-top-level]  for notebooks alone

        self._kept.extend(self._found)
        return findings_html(self._kept)


__all__ = ["Findings"]
