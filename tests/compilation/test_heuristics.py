"""The thresholds of CPUs: each has a reason, is read, and is a part of the key of stored plans."""

import ast
import inspect
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from sabir.compilation.backends import cpu
from sabir.compilation.backends.cpu import heuristics
from sabir.compilation.backends.cpu.heuristics import HEURISTICS, Heuristics, heuristics_of
from sabir.compilation.fusion import grouping
from support.thresholds import backend_by


def test_every_threshold_has_a_reason():
    (body,) = [n.body for n in ast.parse(inspect.getsource(heuristics)).body if isinstance(n, ast.ClassDef)]
    declared = [node for node in body if isinstance(node, ast.AnnAssign)]
    assert len(declared) == len(fields(Heuristics))
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            text = after.value if isinstance(after, ast.Expr) else None
            assert isinstance(text, ast.Constant), ast.unparse(node.target)
            assert isinstance(text.value, str), ast.unparse(node.target)


def test_every_threshold_is_read():
    folders = Path(cpu.__file__).parent, Path(grouping.__file__).parent
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in folders
        for path in folder.rglob("*.py")
        if path.name != "heuristics.py"
    )
    assert [f.name for f in fields(Heuristics) if f"heuristics.{f.name}" not in sources] == []


def test_they_are_one_value_that_does_not_change():
    with pytest.raises(FrozenInstanceError):
        HEURISTICS.few_rows = 5  # pyright: ignore[reportAttributeAccessIssue]  what is tested
    assert backend_by(few_rows=5).key != backend_by(few_rows=6).key


def test_a_grouping_of_another_target_has_other_thresholds():
    class Other:
        heuristics = object()

    with pytest.raises(TypeError, match="a grouping for CPUs has the heuristics of CPUs"):
        heuristics_of(Other())  # pyright: ignore[reportArgumentType]  what is tested
