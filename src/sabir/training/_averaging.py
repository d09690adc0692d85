"""Moving averages of the weights: state that `prepare` adds, and the model with the averages in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.training._saving import strip_training

if TYPE_CHECKING:
    from sabir.ir import Model


def average_name(parameter: str) -> str:
    """Return the name of the state variable with the average of a parameter."""
    return f"average_{parameter}"


def averaged(model: Model) -> Model:
    """Return the model for inference of a training model, with the moving averages as weights.

    The training model is prepared with `average=`; of a session it is `session.checkpoint()`. Running
    statistics and what is not trained have their present values. Before the first step the averages are the
    first weights of the model. Raises UnsupportedError for a model without averages.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse', optimizer=SGD(0.1), average=0.5))
    >>> for _ in range(2):
    ...     found = session.step({'x': [[1.0, 0.0]], 'label': [[3.0]]})
    >>> feeds, mean = {'x': np.eye(2, dtype=np.float32)}, averaged(session.checkpoint())
    >>> print(session.state['w'].ravel(), sabir.evaluate(mean, feeds)['y'].ravel())
    [ 1.72 -1.  ] [ 1.56 -1.  ]
    """
    state = model.state()
    inner = {key.name: key.constant for key in state if key.home is not model.graph}
    found = {
        key.name: inner[average_name(key.name)]
        for key in state
        if key.home is model.graph and average_name(key.name) in inner
    }
    if not found:
        raise UnsupportedError("the model has no averages of its weights; prepare it with average=0.999")
    copy = model.clone()
    for name, average in found.items():
        copy.graph.set_initializer(copy.graph.value(name), average)
    return strip_training(copy)


__all__ = ["average_name", "averaged"]
