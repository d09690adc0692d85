"""Reads cases: those of the operators, which are generated, and folders in the official layout.

Such a folder has a folder for each kind, and that one for each case. A case is a file model.onnx, and folders
test_data_set_0, test_data_set_1, … with the files input_0.pb, output_0.pb, …; or it is a file data.json with
the `url` of the model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sabir.compat.onnx.backend.test.case import model, node
from sabir.compat.onnx.backend.test.case._examples import ATOL, RTOL
from sabir.compat.onnx.backend.test.case.test_case import TestCase

DATA_DIR = str(Path(__file__).parents[1] / "data")
"""The folder of onnx's own cases; Sabir has none, and generates cases instead."""

KINDS = ("node", "pytorch-converted", "pytorch-operator", "real", "simple")
_LIGHT = "onnx/backend/test/data/"


def load_node_model_tests() -> list[TestCase]:
    """Return the cases of single nodes."""
    return node.collect_testcases()


def load_model_tests(data_dir: str = DATA_DIR, kind: str | None = None) -> list[TestCase]:
    """Return the cases of a kind in a folder, or of all its kinds; of no folder, the generated ones.

    Raises ValueError for a kind that the folder does not have, FileNotFoundError without the folder.
    """
    if data_dir == DATA_DIR:
        return _generated(kind)
    folder = Path(data_dir)
    kinds = sorted(p.name for p in folder.iterdir() if p.is_dir() and _case_folders(p))
    if kind is not None and kind not in kinds:
        raise ValueError(f"{data_dir} has no cases of the kind {kind!r}; it has {kinds}")
    chosen = kinds if kind is None else [kind]
    return [_read(case, name) for name in chosen for case in _case_folders(folder / name)]


def _generated(kind: str | None) -> list[TestCase]:
    if kind is not None and kind not in KINDS:
        raise ValueError(f"there are no cases of the kind {kind!r}; take one of {list(KINDS)}")
    nodes = load_node_model_tests() if kind in {None, "node"} else []
    return nodes + (model.collect_testcases() if kind in {None, "simple"} else [])


def _case_folders(folder: Path) -> list[Path]:
    files = (path for name in ("model.onnx", "data.json") for path in folder.glob(f"*/{name}"))
    return sorted({path.parent for path in files})


def _read(folder: Path, kind: str) -> TestCase:
    facts: dict[str, Any] = {}
    if (folder / "data.json").exists():
        facts = json.loads((folder / "data.json").read_text("utf-8"))
    here = (folder / "model.onnx").exists()
    return TestCase(
        name=folder.name,
        model_name=facts.get("model_name", folder.name.removeprefix("test_")),
        url=None if here else _place(facts["url"], folder.parents[1]),
        model_dir=str(folder) if here else None,
        model=None,
        data_sets=None,
        kind=kind,
        rtol=facts.get("rtol", RTOL),
        atol=facts.get("atol", ATOL),
    )


def _place(url: str, data_dir: Path) -> str:
    """Return the place of a model: a file of the folder where the address is one of onnx's package."""
    return str(data_dir / url.removeprefix(_LIGHT)) if url.startswith(_LIGHT) else url


__all__ = ["DATA_DIR", "load_model_tests", "load_node_model_tests"]
