"""A learning rate that falls when the loss does: a callback of `fit`, as the loss is known after an epoch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import UnsupportedError
from sabir.training._optimizers import check_number

if TYPE_CHECKING:
    from sabir.training._fitting import Epoch
    from sabir.training._session import TrainingSession

_RATE = "learning_rate"  # the state variable of a prepared model


class ReduceOnPlateau:
    """Multiplies the rate by `factor` after more than `patience` epochs without a lower loss, as in PyTorch.

    It is a callback of `session.fit`, and looks at the loss of the validation where there is one. A loss
    counts as lower if it is below the lowest one times `1 - threshold`. After a reduction `cooldown` epochs
    are not counted. The rate does not fall below `least`. It changes the state variable `learning_rate`, so
    a schedule applies on top, and a checkpoint has the present rate; the epochs that were counted are not
    part of the state, and a training that is resumed counts anew.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse', optimizer=SGD(0.0)))
    >>> session.state['learning_rate'] = 1e-12
    >>> data = {'x': np.ones((4, 2), np.float32), 'label': np.ones((4, 1), np.float32)}
    >>> found = session.fit(data, epochs=3, callbacks=[ReduceOnPlateau(session, patience=1)])
    >>> print(session.state['learning_rate'])
    1e-13
    """

    def __init__(
        self,
        session: TrainingSession,
        factor: float = 0.1,
        patience: int = 10,
        *,
        threshold: float = 1e-4,
        cooldown: int = 0,
        least: float = 0.0,
    ) -> None:
        """Raise UnsupportedError for a model without `learning_rate` and numbers out of their range."""
        check_number("factor", factor, below=1)
        check_number("threshold", threshold, below=1)
        for name, number in (("patience", patience), ("cooldown", cooldown), ("least", least)):
            check_number(name, number)
        rate = session.state.get(_RATE)
        if rate is None or rate.shape or rate.dtype != np.float64:
            raise UnsupportedError(
                f"the model has no scalar {_RATE!r} in its state, as sabir.training.prepare adds it"
            )
        self._session, self._factor, self._patience = session, factor, patience
        self._threshold, self._cooldown, self._least = threshold, cooldown, least
        self._lowest, self._waited, self._resting = math.inf, 0, 0

    def __call__(self, epoch: Epoch) -> None:
        """Take note of an epoch, and reduce the rate if it is time to."""
        if epoch.monitored < self._lowest * (1 - self._threshold):
            self._lowest, self._waited = epoch.monitored, 0
        else:
            self._waited += 1
        if self._resting:
            self._resting, self._waited = self._resting - 1, 0
        if self._waited > self._patience:
            self._resting, self._waited = self._cooldown, 0
            state = self._session.state
            state[_RATE] = min(float(state[_RATE]), max(self._least, float(state[_RATE]) * self._factor))


__all__ = ["ReduceOnPlateau"]
