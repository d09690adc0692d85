# ruff: file-ignore[banned-api, suspicious-pickle-import]  the official cases are onnx's; what is read is our own
"""The official node cases, which onnx computes as it loads them: one worker of the tests does so for all."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
