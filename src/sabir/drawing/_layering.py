"""The layer of each box of an acyclic graph: below all boxes that it reads, near those that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.drawing._nets import Net


def layers_of(count: int, nets: Sequence[Net]) -> list[int]:
    """Return the layer of each of `count` boxes, which are in topological order; the topmost one is 0.

    A box is as high as its sources allow. One with more values to its readers than from its sources is moved
    down to its readers, which makes its lines shorter.
    """
    read, written = _by_box(count, nets)
    layers = [0] * count
    for box in range(count):
        layers[box] = max((layers[net.source] + 1 for net in read[box]), default=0)
    for box in reversed(range(count)):
        below = [layers[reader] for net in written[box] for reader in net.readers]
        if below and len(written[box]) > len(read[box]):
            layers[box] = min(below) - 1
    return layers


def _by_box(count: int, nets: Sequence[Net]) -> tuple[list[list[Net]], list[list[Net]]]:
    """Return the nets that each box reads, and those that it is the source of."""
    read: list[list[Net]] = [[] for _ in range(count)]
    written: list[list[Net]] = [[] for _ in range(count)]
    for net in nets:
        written[net.source].append(net)
        for reader in net.readers:
            read[reader].append(net)
    return read, written
