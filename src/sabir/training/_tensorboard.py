"""The course of a training for TensorBoard, written by its library."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError

if TYPE_CHECKING:
    import os

    from sabir.training._fitting import Epoch

_WRITERS = {"tensorboardX": "SummaryWriter", "tensorboard.summary": "Writer"}  # whichever is installed


class TensorBoardLog:
    """A callback of `fit` that writes the results of each epoch to a folder that TensorBoard reads.

    The tags are the name of a result, a slash, and "training" or "validation", and the steps are those of
    the session, so that a training that is resumed goes on in the same curves. The library `tensorboard`
    writes them (the extra `tensorboard`), or `tensorboardX`. Raises UnsupportedError where neither is
    installed. It is passed as `session.fit(data, callbacks=[TensorBoardLog('runs/first')])`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = _writer_class()(str(folder))

    def __call__(self, epoch: Epoch) -> None:
        """Write the results of an epoch."""
        for part, results in (("training", epoch.results), ("validation", epoch.validation)):
            for name, value in results.items():
                self._writer.add_scalar(f"{name}/{part}", value, epoch.steps)
        self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        self._writer.close()


def _writer_class() -> Any:
    """Return the class that writes for TensorBoard; raises UnsupportedError where no library has one."""
    for module, name in _WRITERS.items():
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError:
            continue
    raise UnsupportedError(
        "TensorBoardLog writes with the library of TensorBoard; install it with "
        "`pip install 'sabir[tensorboard]'`"
    )


__all__ = ["TensorBoardLog"]
