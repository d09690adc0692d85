"""The models and data sets of cases that are in folders."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.compat import onnx
from sabir.compat.onnx.numpy_helper import to_array
from sabir.compat.onnx.onnx_ml_pb2 import TensorProto
from sabir.compat.onnx.reference import ReferenceEvaluator
from sabir.serial import from_proto, load_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.compat.onnx.backend.test.case.test_case import TestCase

    DataSet = tuple[list[Any], list[Any]]


def load_case(case: TestCase) -> tuple[Any, list[DataSet]]:
    """Return the model of a case and its data sets.

    Raises FileNotFoundError where the model is not on this machine.
    """
    if case.model is not None:
        return case.model, [
            (_as_arrays(inputs), _as_arrays(outputs)) for inputs, outputs in case.data_sets or ()
        ]
    if case.url is not None and "://" not in case.url:
        model = onnx.load(case.url)
        return model, [_computed(model, Path(case.url))]
    folder = Path(case.model_dir or model_folder(case))
    model = onnx.load(folder / "model.onnx")
    return model, list(_data_sets(folder, model))


def model_folder(case: TestCase) -> str:
    """Return the folder of a model that a case names by its address.

    It is `$ONNX_MODELS/NAME`, by default `$ONNX_HOME/models/NAME` or `~/.onnx/models/NAME`. Sabir fetches
    nothing: raises FileNotFoundError if there is none.
    """
    home = Path(os.environ.get("ONNX_HOME") or "~/.onnx").expanduser()
    folder = Path(os.environ.get("ONNX_MODELS") or home / "models") / case.model_name
    if not (folder / "model.onnx").exists():
        raise FileNotFoundError(
            f"{case.name}: there is no {folder / 'model.onnx'}; Sabir fetches nothing, so get {case.url} "
            f"and unpack it there, or set ONNX_MODELS"
        )
    return str(folder)


def dummy_input(declared: Any, seed: int, name: str, *, random: bool) -> np.ndarray[Any, Any]:
    """Return an array of float32 for a declared input: numbers in order, from 0 to below 1, or random ones.

    Unknown dimensions are 1. Raises NotImplementedError for other types.
    """
    kind = declared.type.tensor_type
    if declared.type.WhichOneof("value") != "tensor_type" or kind.elem_type != TensorProto.FLOAT:
        raise NotImplementedError(
            f"{name}: dummy data are tensors of float, and the input {declared.name!r} is not"
        )
    shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in kind.shape.dim]
    if random:
        return np.random.default_rng(seed).random(shape, np.float32)
    count = int(np.prod(shape))
    return (np.arange(count) / count).reshape(shape).astype(np.float32)


def _inputs(model: Any) -> list[Any]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def _data_sets(folder: Path, model: Any) -> Iterator[DataSet]:
    found = sorted(folder.glob("test_data_set_*"))
    if not found:
        raise FileNotFoundError(f"{folder} has no test_data_set_0, so that nothing could be compared")
    for data in found:
        yield _values(data, "input", _inputs(model)), _values(data, "output", model.graph.output)


def _values(folder: Path, word: str, declared: Sequence[Any]) -> list[Any]:
    """Return the values in `word_0.pb`, `word_1.pb`, …, by their declared types."""
    paths = (folder / f"{word}_{place}.pb" for place in itertools.count())
    present = list(itertools.takewhile(Path.exists, paths))
    if len(present) > len(declared):
        raise ValueError(
            f"{folder} has {len(present)} files {word}_N.pb, and the model {len(declared)} {word}s"
        )
    return [load_value(path, from_proto(value.type)) for path, value in zip(present, declared, strict=False)]


def _computed(model: Any, path: Path) -> DataSet:
    """Return dummy inputs, and the outputs in the files beside a model, else those of the evaluator."""
    declared = _inputs(model)
    inputs = [dummy_input(value, 0, path.stem, random=False) for value in declared]
    files = [path.with_name(f"{path.stem}_output_{n}.pb") for n in range(len(model.graph.output))]
    if all(file.exists() for file in files):
        return inputs, [load_value(file) for file in files]
    feeds = {value.name: array for value, array in zip(declared, inputs, strict=True)}
    return inputs, list(ReferenceEvaluator(model).run(None, feeds))


def _as_arrays(values: Sequence[Any]) -> list[Any]:
    return [to_array(value) if isinstance(value, TensorProto) else value for value in values]
