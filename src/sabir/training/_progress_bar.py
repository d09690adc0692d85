"""A progress bar for each epoch of a training."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from sabir.drawing import progress_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Self

    from sabir.drawing import Shown
    from sabir.training._fitting import Progress


class ProgressBar:
    """Shows each epoch of `fit` as a bar of tqdm, with the means of the results so far.

    `fit(progress=True)` makes one. `options` are those of tqdm, such as `file`, `leave` or `colour`. Raises
    UnsupportedError where tqdm is not installed: it is the extra `sabir[progress]`.

    >>> import io
    >>> out = io.StringIO()
    >>> with ProgressBar(file=out) as bar:
    ...     bar(Progress(1, 20, 1, 2, {'loss': 2.0}))
    ...     bar(Progress(1, 20, 2, 2, {'loss': 1.5}))
    >>> 'epoch 1/20: 100%' in out.getvalue(), 'loss=1.5' in out.getvalue()
    (True, True)
    """

    def __init__(self, **options: Any) -> None:
        self._make, self._options = progress_bars(shown=True), options
        self._bar: Any = None
        self._epoch = 0

    def __call__(self, at: Progress) -> None:
        """Show where the training is."""
        if self._bar is None or at.epoch != self._epoch:
            self.close()
            self._epoch = at.epoch
            self._bar = self._make(
                desc=f"epoch {at.epoch}/{at.epochs}",
                total=at.batches or None,
                initial=at.batch - 1,
                unit="batch",
                **self._options,
            )
        self._bar.set_postfix({name: f"{value:.4g}" for name, value in at.results.items()}, refresh=False)
        self._bar.update(at.batch - self._bar.n)
        if at.batch == at.batches:
            self.close()

    def close(self) -> None:
        """End the bar of the epoch as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def shown_progress(
    progress: Callable[[Progress], Any] | Shown,
) -> Generator[Callable[[Progress], Any] | None]:
    """Yield what a training calls after each step, None for nothing; raises what ProgressBar raises."""
    if callable(progress):
        yield progress
    elif progress_bars(progress) is None:
        yield None
    else:
        with ProgressBar() as bar:
            yield bar


__all__ = ["ProgressBar", "shown_progress"]
