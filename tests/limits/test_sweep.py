"""A share of the sweep: one-node models with hostile inputs and attributes; `tools/sweep.py` runs all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.sweep import cases

TOOL = Path(__file__).parents[2] / "tools" / "sweep.py"
SHARES = {"reference": 293, "compiled": 601}


@pytest.mark.skipif(sys.platform != "linux", reason="it reads its memory from /proc")
def test_a_share_of_the_sweep_has_no_findings(engine):
    command = [sys.executable, str(TOOL), "--share", str(SHARES[engine]), "--engine", engine]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout


def test_every_version_is_swept_and_every_case_has_a_name_of_its_own():
    found = set()

    def wanted(_, name):
        assert name not in found
        found.add(name)
        return False

    assert not list(cases(wanted))
    assert len({name.split()[0] for name in found}) == 659
    assert len(found) > 50_000
