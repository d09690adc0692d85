"""Quantization to uint8 by the range of the data, extended to 0, which 0 to 255 represent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT, UINT8
from sabir.opsets.families.quantization.quantization import quantized

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

MOST = 255


def quantized_by_range(x: Array) -> tuple[Array, Array, Array]:
    """Return float32 numbers as uint8, their scale and their zero point.

    Without a range, or with NaN in it, the zero point is 0.
    """
    low = np.minimum.reduce(x, axis=None, initial=np.float32(0))
    high = np.maximum.reduce(x, axis=None, initial=np.float32(0))
    scale = np.asarray((high - low) / np.float32(MOST))
    with np.errstate(divide="ignore", invalid="ignore"):
        rounded = np.nan_to_num(np.rint(np.clip(-low / scale, 0, MOST)), nan=0)
        zero = np.asarray(rounded, np.uint8)
        return quantized(x, scale, zero, UINT8, FLOAT), scale, zero
