"""Low-rank adapters as values: taken from a session or a model, and stored alone in a file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from sabir.base import ExternalDataError, FeedError, UnsupportedError, quote
from sabir.files import replace_file
from sabir.ir import ArrayTensor, Model, Tensor
from sabir.serial import load_safetensors, save_safetensors
from sabir.training._tables import read_arrays

if TYPE_CHECKING:
    import os

    from sabir.ir import Array
    from sabir.training._session import TrainingSession

DOWN, UP, ALPHA = ".lora_a", ".lora_b", ".lora_scale"  # after the name of a weight
_FORMATS = (".npz", ".safetensors")
_MATRIX = 2  # the rank


class Adapter(NamedTuple):
    """The adapter of one weight: its change is `scale * a @ b`, with a [in,rank] and b [rank,out].

    >>> Adapter(np.ones((4, 2)), np.zeros((2, 3)), 1.0).b.shape
    (2, 3)
    """

    a: Array
    b: Array
    scale: float


class Adapters(Mapping[str, Adapter]):
    """Adapters by the names of the weights.

    >>> list(Adapters({'w': Adapter(np.ones((4, 2)), np.zeros((2, 3)), 1.0)}))
    ['w']
    """

    def __init__(self, found: Mapping[str, Adapter]) -> None:
        self._found = dict(found)

    def __getitem__(self, name: str) -> Adapter:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        listed = ", ".join(f"{n}: rank {x.a.shape[1]}" for n, x in self._found.items())
        return f"<Adapters {listed or 'of no weight'}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them to a .npz or .safetensors file, which is replaced in one step.

        It has the arrays NAME.lora_a, NAME.lora_b and NAME.lora_scale. Raises UnsupportedError for another
        ending, and FileError.
        """
        file, arrays = _known(path), dict[str, "Array"]()
        for name, (a, b, scale) in self._found.items():
            arrays |= {f"{name}{DOWN}": a, f"{name}{UP}": b, f"{name}{ALPHA}": np.float64(scale).reshape(())}
        if file.suffix.lower() == ".safetensors":
            save_safetensors(file, {name: ArrayTensor(array) for name, array in arrays.items()})
            return
        data = io.BytesIO()
        np.savez(data, allow_pickle=False, **arrays)
        replace_file(file, [data.getvalue()])


def adapters(source: TrainingSession | Model) -> Adapters:
    """Return the adapters of a session with its present state, or of a model.

    Raises UnsupportedError where there are none.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> adapters(prepare(model, 'mse', lora=LoRA(1, alpha=2)))
    <Adapters w: rank 1>
    """
    model = source if isinstance(source, Model) else source.checkpoint()
    arrays = {v.name: x.array() for v, x in model.graph.initializers.items() if isinstance(x, Tensor)}
    found = _grouped(arrays)
    if not found:
        raise UnsupportedError(f"{model!r} has no adapters; sabir.training.prepare(lora=8) adds them")
    return Adapters(found)


def load_adapters(path: str | os.PathLike[str]) -> Adapters:
    """Return the adapters in a file that `Adapters.save` wrote.

    Raises FileError, FeedError for a file without adapters, and UnsupportedError for another ending.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'changes.npz'
    >>> Adapters({'w': Adapter(np.ones((4, 2)), np.zeros((2, 3)), 0.5)}).save(path)
    >>> load_adapters(path)['w'].scale
    0.5
    """
    file = _known(path)
    if file.suffix.lower() == ".npz":
        arrays = read_arrays(file)
    else:
        try:
            arrays = {name: tensor.array() for name, tensor in load_safetensors(file).items()}
        except ExternalDataError as error:
            raise FeedError(f"{file}: {error}") from error
    found = _grouped(arrays)
    if not found:
        raise FeedError(f"{file}: it has no adapters, arrays with names such as 'weight{ALPHA}'")
    return Adapters(found)


def _known(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    if file.suffix.lower() not in _FORMATS:
        raise UnsupportedError(f"{file}: adapters are stored in {' and '.join(_FORMATS)} files")
    return file


def _grouped(arrays: Mapping[str, Array]) -> dict[str, Adapter]:
    """Return the adapters among arrays; raises FeedError for parts that are missing or do not fit."""
    found: dict[str, Adapter] = {}
    for name in [n.removesuffix(ALPHA) for n in arrays if n.endswith(ALPHA)]:
        a, b, scale = (arrays.get(f"{name}{end}") for end in (DOWN, UP, ALPHA))
        if a is None or b is None or scale is None or scale.ndim or not _are_factors(a, b):
            raise FeedError(
                f"the adapter of {quote(name)} needs {DOWN} [in,rank], {UP} [rank,out] and {ALPHA}, a number"
            )
        found[name] = Adapter(a, b, float(cast("float", scale)))
    return found


def _are_factors(a: Array, b: Array) -> bool:
    return a.ndim == b.ndim == _MATRIX and a.shape[1] == b.shape[0]


__all__ = ["ALPHA", "DOWN", "UP", "Adapter", "Adapters", "adapters", "load_adapters"]
