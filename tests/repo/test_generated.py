"""`make generated` runs every tool that writes pages, and a test fails where a page is not current."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = {p.stem.removeprefix("write_") for p in (ROOT / "tools").glob("write_*.py")}
TOOLS -= {"api"}  # it writes nothing into the tree


def test_make_generated_runs_every_tool():
    command = ["make", "--dry-run", "generated"]
    # ruff: ignore[subprocess-without-shell-equals-true]  make, wherever it is
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    line = next(line for line in shown.stdout.splitlines() if "tools/write_$name.py" in line)
    assert re.search(r"for name in (.*?);", line)[1].split() == sorted(TOOLS)


def test_a_page_that_is_not_current_fails_a_test():
    texts = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").glob("**/*.py"))
    assert {name for name in TOOLS if re.search(rf"run tools/write_{name}\.py", texts)} == TOOLS
