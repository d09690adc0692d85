"""`map_batches`: inference over a data set of Ray Data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sabir.base import FeedError, UnsupportedError
from sabir.distributed._starting import connected
from sabir.evaluation import make_engine
from sabir.runtime import Session
from sabir.serial import dumps

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from sabir.ir import Model


def map_batches(
    model: Model | str | os.PathLike[str] | bytes,
    data: Any,
    *,
    batch: int = 256,
    workers: int = 2,
    outputs: str | list[str] | None = None,
    engine: Literal["auto", "compiled", "reference"] = "auto",
    threads: int | None = 1,
) -> Any:
    """Return a `ray.data.Dataset` with the outputs of a model for every row of one.

    Columns of `data` with the names of inputs are fed, `batch` rows at a time; the others, such as labels,
    stay beside the outputs. Every output has a row for each row of its inputs. `workers` processes of the
    cluster hold a session each, with `engine` and `threads`. The model is sent to them whole.

    Nothing runs before the result is read. A worker that is lost is replaced by Ray; what fails in one is
    raised by Ray, where the result is read, with the error of Sabir as its cause.

    Raises UnsupportedError where Ray is not installed, for fewer than one worker or row, and what reading the
    model raises.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,1] x) => (float[N,1] y) { y = Neg (x) }''')
    >>> map_batches(model, None, workers=0)
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: batch and workers are 1 or more; got 256 and 0
    """
    if batch < 1 or workers < 1:
        raise UnsupportedError(f"batch and workers are 1 or more; got {batch} and {workers}")
    content = make_engine(model, dumps)
    ray_data, _ = connected("ray.data")
    return data.map_batches(
        _Mapped,
        fn_constructor_args=(content, outputs, engine, threads),
        batch_size=batch,
        batch_format="numpy",
        compute=ray_data.ActorPoolStrategy(size=workers),
        # workers that reserve the processors of a small machine would leave none to read the data
        num_cpus=0,
        scheduling_strategy="SPREAD",
    )


class _Mapped:
    """What a worker holds: a session, which is called with the columns of some rows."""

    def __init__(
        self, model: bytes, outputs: str | list[str] | None, engine: Any, threads: int | None
    ) -> None:
        self._session = Session(model, engine=engine, threads=threads)
        self._outputs = outputs
        self._inputs = {port.name for port in self._session.inputs}

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        feeds = {name: column for name, column in columns.items() if name in self._inputs}
        found = self._session.run(feeds, self._outputs)
        rows = max(map(len, columns.values()), default=0)
        for name, value in found.items():
            if name in columns:
                raise FeedError(f"the data has a column {name!r} already, which is the name of an output")
            if getattr(value, "shape", ())[:1] != (rows,):
                raise FeedError(f"the output {name!r} has no row for each of the {rows} rows of its inputs")
        return {**{name: c for name, c in columns.items() if name not in feeds}, **found}


__all__ = ["map_batches"]
