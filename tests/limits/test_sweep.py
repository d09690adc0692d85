"""A share of the sweep: one-node models with hostile inputs and attributes; `tools/sweep.py` runs all of them."""

import importlib.util
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from support.costly_plans import MODELS, costly_plans
from support.rooms import VERSIONS
from support.sweep import cases

TOOL = Path(__file__).parents[2] / "tools" / "sweep.py"
SPEC = importlib.util.spec_from_file_location("sweep", TOOL)
sweep = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sweep)
SHARES = {"reference": 293, "compiled": 601}


def swept(*options):
    """Run the sweep with options; return what it prints, without failures."""
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    done = subprocess.run([sys.executable, str(TOOL), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="it reads its memory from /proc")
def test_a_share_of_the_sweep_has_no_findings(engine):
    assert swept("--share", str(SHARES[engine]), "--engine", engine, "--no-plans")


@pytest.mark.skipif(sys.platform != "linux", reason="it reads its memory from /proc")
@pytest.mark.parametrize(
    "name", ["a join of 3500 operands", "400 chains", "functions that double 18 times", "400 loops"]
)
def test_models_whose_plans_would_take_long_end_in_time(name):
    """All of them take a minute: `tools/sweep.py --engine compiled --only plan:`."""
    assert swept("--engine", "compiled", "--only", f"plan: {name}").startswith("1 models, 0 failures")


def test_models_whose_plans_would_take_long_are_small():
    found = [case for _, case in costly_plans(lambda _, name: "30 000" not in name)]
    assert len(found) == len(MODELS) - 1
    assert all(len(case.data) < 400 << 10 for case in found)


def test_the_figures_of_a_run_replace_those_of_the_one_before(monkeypatch, tmp_path):
    page = tmp_path / "sweep.md"
    page.write_text(f"text\n{sweep.BEGIN}\n\n| a |\n|---|\n\n{sweep.END}\nmore\n", "utf-8")
    monkeypatch.setattr(sweep, "PAGE", page)
    case = {"seconds": 1.25, "bytes": 3 << 20, "name": "Det-22 a|b"}
    for engine, count in (("reference", 1), ("compiled", 2000), ("reference", 3)):
        options = Namespace(engine=engine, only="", share=7, no_plans=True, awkward=0)
        sweep._write(options, count, 0, case, case)
    head, first, second, end = page.read_text("utf-8").partition("|---|\n")[2].split("\n", 3)[0:4]
    rows = [head, first]
    assert [row.split("|")[4].strip() for row in rows] == ["2,000 (one in 7)", "3 (one in 7)"]
    assert r"1.2 s: Det-22 a\|b" in rows[0]
    assert not second
    assert end == f"{sweep.END}\nmore\n"


def test_every_version_is_swept_and_every_case_has_a_name_of_its_own():
    found = set()

    def wanted(_, name):
        assert name not in found
        found.add(name)
        return False

    assert not list(cases(wanted))
    assert len({name.split()[0] for name in found}) == len(VERSIONS)
    assert len(found) > 50_000
