"""No kernel reads or writes outside of its tensors: in a child process, these lie beside pages that nobody may touch."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("guarded.py")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it guards pages by the functions of Linux")


def run(*options):
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    return subprocess.run(
        [sys.executable, str(PROGRAM), *options], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("share", "side"), [("80", []), ("81", ["--before"])])
def test_kernels_keep_to_their_tensors(share, side):
    done = run("--share", share, *side)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-2:]} was the last; {done.stderr}"
    assert done.stdout.splitlines()[-1].startswith("done: ")


@pytest.mark.parametrize(("count", "side"), [("1", []), ("2000", ["--before"])])
def test_a_kernel_that_does_not_is_found(count, side):
    assert run("--broken", count, *side).returncode == -signal.SIGSEGV
