"""What all tests start from."""

import gc
import getpass
import os
import signal
import tempfile
from pathlib import Path

import pytest

from support import cases
from support.engines import ENGINES

# Kernels are compiled once for all processes and runs of the tests, and not into the user's cache.
if "SABIR_CACHE" not in os.environ:
    _folder = Path(tempfile.gettempdir()) / f"sabir-tests-{getpass.getuser()}"
    _folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["SABIR_CACHE"] = str(_folder)

# A shell's background job ignores interrupts, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=ENGINES)
def engine(request):
    """The name of each engine in turn."""
    return request.param


def pytest_addoption(parser):
    parser.addoption(
        "--case", default="", help="of the tests that run many cases, those whose name has this text"
    )


def pytest_collection_finish():
    gc.freeze()  # no test frees what collection made: the collector need not look through it again and again


def pytest_configure(config):
    cases.wanted = config.getoption("--case")
