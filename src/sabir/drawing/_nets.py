"""What a layout is made of: frames, which are boxes without a place, and nets, the values between them."""

from __future__ import annotations

from typing import NamedTuple


class Frame(NamedTuple):
    """The size of a box, and the widths of the labels of the values that leave it: 0 without a label."""

    width: int
    height: int
    labels: tuple[int, ...] = ()


class Net(NamedTuple):
    """A value: the frame that it leaves, by number, which of its values it is, and the frames that read it.

    The readers are different and come after the source.
    """

    source: int
    exit: int
    readers: tuple[int, ...]


class Spacing(NamedTuple):
    """The least distances in a picture, in the unit of its frames.

    `boxes` is between two boxes of a layer, `lines` between a line and its neighbour, `pins` between two
    lines that touch one box, and `label` between a line and its label.
    """

    boxes: int
    lines: int
    pins: int
    label: int


__all__ = ["Frame", "Net", "Spacing"]
