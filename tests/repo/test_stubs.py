"""The stub of the builder's methods is what the rooms declare."""

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "write_stubs.py"


def test_the_stub_is_current():
    module = runpy.run_path(str(TOOL))
    assert module["PATH"].read_text(encoding="utf-8") == module["stub"](), "run tools/write_stubs.py"
