"""The size of the blocks in which onnxruntime stores channels: one for all calls of a model."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sabir.inference import Inference
from sabir.opsets.families.windows.blocked_channels import admitted_sizes, assumed, calls_blocks

if TYPE_CHECKING:
    from collections.abc import Generator

    from sabir.ir import Model
    from sabir.schema import Registry


@contextmanager
def one_size_of_blocks(model: Model, registry: Registry) -> Generator[None]:
    """Let all calls of a model have blocks of the one size with which its types agree.

    A number of channels that is no multiple of 16, for example, excludes blocks of 16 everywhere. Where
    several sizes remain, or none does, each call decides for itself. Raises UnsupportedError for a wrong
    setting.

    >>> from sabir.opsets import STANDARD
    >>> from sabir.opsets.families.windows.blocked_channels import admitted_sizes
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21, "com.microsoft.nchwc" : 1]>
    ... g (float[1,24,8,8] x) => (float[1,24,1,1] y) { y = com.microsoft.nchwc.GlobalMaxPool (x) }''')
    >>> with one_size_of_blocks(model, STANDARD):
    ...     admitted_sizes()
    (8,)
    """
    sizes: tuple[int, ...] = ()
    if calls_blocks(model):
        sizes = tuple(size for size in admitted_sizes() if _agrees(model, registry, size))
    if len(sizes) == 1:
        with assumed(sizes):
            yield
    else:
        yield


def _agrees(model: Model, registry: Registry, size: int) -> bool:
    with assumed((size,)):
        inference = Inference(model, registry=registry)
        inference.run()
    return not inference.diagnostics
