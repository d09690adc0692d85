"""Arrays for writing: the element's dtype, flat, in C order and native bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import WireError, quote

if TYPE_CHECKING:
    import numpy.typing as npt

    from sabir.elements._types import ElementType


def flat(element: ElementType, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `array` as one row of native elements; a copy only where its layout needs one.

    Raises WireError when its dtype is not the element's, byte order aside.
    """
    if array.dtype != element.dtype and array.dtype.newbyteorder("=") != element.dtype:
        raise WireError(f"{element} elements are numpy's {element.dtype}, found {quote(array.dtype)}")
    return np.ascontiguousarray(array).reshape(-1).astype(element.dtype, copy=False)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that refuses writes; the caller's own array keeps its flags."""
    view = array.view()
    view.flags.writeable = False
    return view
