"""The directions of a recurrent layer, each as a layer that runs forward in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs
    from sabir.opsets.typing import Array


def of_direction(inputs: RecurrentInputs[Array], number: int) -> RecurrentInputs[Array]:
    """Return the inputs of one direction."""
    own = slice(number, number + 1)
    b, h, c, p = (part if part is None else part[own] for part in (inputs.b, *inputs[-3:]))
    return inputs._replace(w=inputs.w[own], r=inputs.r[own], b=b, h=h, c=c, p=p)


def time_reversed(x: Array, lens: Array | None) -> Array:
    """Return (time, batch, ...) with the steps of each sequence in reverse; what follows its end stays.

    So all sequences start in the same step.
    """
    if lens is None:
        return x[::-1]
    times = np.arange(len(x))[:, None]
    places = np.where(times < lens, lens - 1 - times, times)
    return np.take_along_axis(x, places.reshape(*places.shape, *(1,) * (x.ndim - 2)), 0)
