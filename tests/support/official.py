# ruff: file-ignore[banned-api, suspicious-pickle-import]  the official cases are onnx's; what is read is our own
"""The official node cases, which onnx computes as it loads them: one worker of the tests does so for all."""

from __future__ import annotations

import os
import pickle
import warnings
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sabir.ir import OptionalType, SequenceType
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sabir.ir import Model

ALL = "SABIR_ALL_OFFICIAL"
"""The environment variable that makes every test of a share of the official models run on all of them."""


def cases(wanted: Callable[[Any], bool] = lambda _: True, *, share: int = 1) -> Iterator[Any]:
    """Yield the wanted node cases as parameters of tests: one of `share`, and the first one of each operator."""
    from onnx.backend.test.loader import load_node_model_tests  # ruff: ignore[import-outside-top-level]  as above

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded: list[Any] = load_node_model_tests()
    seen: set[str] = set()
    for case in filter(wanted, loaded):
        is_new = first_operator(case) not in seen
        seen.add(first_operator(case))
        if is_new or ALL in os.environ or not zlib.crc32(case.name.encode()) % share:
            yield pytest.param(case, id=case.name)


def first_operator(case: Any) -> str:
    """Return the operator that a case is about."""
    return case.model.graph.node[-1].op_type


def feeds_of(model: Model, case: Any) -> dict[str, Any]:
    """Return the inputs of a case by name, as a run takes them."""
    ((inputs, _),) = case.data_sets
    return {v.name: _value_of(x, v.type) for v, x in zip(model.graph.inputs, inputs, strict=False)}


def _value_of(x: Any, kind: Any) -> Any:
    from onnx import numpy_helper  # ruff: ignore[import-outside-top-level]  as above

    if isinstance(kind, (SequenceType, OptionalType)):
        return x
    return numpy_helper.to_array(x) if hasattr(x, "SerializeToString") else np.asarray(x)


def is_random(model: Model) -> bool:
    """Return whether a model draws numbers, so that two runs differ."""
    versions = [STANDARD.find_version(n.domain, n.op, model.opset(n.domain)) for n in model.graph.all_nodes()]
    return any(version is not None and version.operator.random for version in versions)


def require_same(got: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Fail unless the results have the same names, types, shapes and bits."""
    assert got.keys() == expected.keys()
    for name, x in expected.items():
        if isinstance(x, np.ndarray) and not x.dtype.hasobject:  # numpy finds no NaN of small floats
            assert (got[name].dtype, got[name].shape) == (x.dtype, x.shape)
            assert got[name].tobytes() == x.tobytes()
        else:
            np.testing.assert_equal(got[name], x)


def share_cases(folder: Path) -> None:
    """Make onnx's loader read the node cases from a file in the folder, which the first worker to ask writes."""
    from onnx.backend.test import loader  # ruff: ignore[import-outside-top-level]  only workers need it

    compute = loader.import_recursive  # pyright: ignore[reportPrivateImportUsage] - where the loader finds it

    def once(package: Any) -> None:
        if not package._NodeTestCases:
            _fill(package, compute, folder / "node_cases")

    loader.import_recursive = once  # pyright: ignore[reportPrivateImportUsage] - the same


def _fill(package: Any, compute: Callable[[Any], None], path: Path) -> None:
    import fcntl  # ruff: ignore[import-outside-top-level]  Windows has none

    with path.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # others wait: reading the cases takes a hundredth of computing them
        if path.exists():
            # ruff: ignore[suspicious-pickle-usage]  a worker of this run wrote it, in a folder of our own
            package._NodeTestCases.extend(pickle.loads(path.read_bytes()))
            return
        compute(package)
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(pickle.dumps(package._NodeTestCases))
        unfinished.replace(path)
