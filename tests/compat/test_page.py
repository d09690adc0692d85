"""The page of names is current, and functions take what those of onnx take."""

import importlib
import inspect
import re
from pathlib import Path

from support import compat

DOCUMENT = Path(__file__).parents[2] / "docs" / "compat.md"


def test_the_page_is_current():
    assert compat.page() == DOCUMENT.read_text("utf-8"), "run tools/write_compat.py"


def test_every_absent_name_has_a_reason():
    assert not [row for row in compat.rows() if row.status == "not" and not row.note]


def parameters(function):
    """The parameters of a function; defaults that are objects of a class, or folders, count as any other."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, re.sub(r"^<.* at 0x.*|^'/.*", "object", repr(p.default))) for p in found]


def test_functions_have_the_parameters_of_onnx():
    differing = []
    for name in compat.modules():
        if name in compat.NOT:
            continue
        theirs, ours = importlib.import_module(name), importlib.import_module(compat.HOME + name[4:])
        for item, function in compat.names(theirs):
            mine = getattr(ours, item, None)
            if inspect.isfunction(function) and mine is not None and parameters(mine) != parameters(function):
                differing.append(f"{name}.{item}")
    assert not differing
