"""What all tests start from."""

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support import bounds, cases, official
from support.engines import ENGINES

# What the processes of one run share: workers inherit the variable, and the process that sets it removes the folder.
_OURS = None if "SABIR_TESTS" in os.environ else Path(tempfile.mkdtemp(prefix="sabir-tests-"))
if _OURS:
    os.environ["SABIR_TESTS"] = str(_OURS)
SHARED = Path(os.environ["SABIR_TESTS"])

# Kernels are compiled once for all processes, and not into the user's cache, where old ones might lie.
os.environ.setdefault("SABIR_CACHE", str(SHARED))

# A fault of the compiler fails the test that meets it, and every pass is verified.
os.environ.setdefault("SABIR_STRICT_COMPILER", "1")

# A busy machine makes no example wrong.
settings.register_profile("sabir", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sabir")

# A shell's background job ignores interrupts, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=ENGINES)
def engine(request):
    """The name of each engine in turn."""
    return request.param


@pytest.fixture
def untrusted_files():
    """Run a test of hostile files under the limits for untrusted files."""
    with bounds.untrusted():
        yield


def pytest_addoption(parser):
    parser.addoption(
        "--case", default="", help="of the tests that run many cases, those whose name has this text"
    )
    parser.addoption(
        "--within",
        type=float,
        default=0,
        help="start no test after so many seconds, and count those left out",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()  # almost nothing of what collection makes is garbage
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items):
    """Put the tests of an operator beside each other, so that one worker computes what they share."""
    first: dict[tuple[Path, str], int] = {}
    places = {item: first.setdefault((item.path.parent, subject_of(item)), i) for i, item in enumerate(items)}
    items.sort(key=places.__getitem__)


def subject_of(item):
    """The operator that a test of a room or a gradient is about; else the test itself."""
    found = getattr(item, "callspec", None)
    if found is None or item.path.parent.name not in {"rooms", "differentiation"}:
        return item.nodeid
    subject = found.params.get("group", found.params.get("name"))
    return subject if isinstance(subject, str) else item.nodeid


def pytest_collection_finish():
    gc.freeze()  # no test frees what collection made: the collector need not look through it again and again


def pytest_configure(config):
    cases.wanted = config.getoption("--case")
    if seconds := config.getoption("--within"):
        config.pluginmanager.register(Within(seconds), "within")
    if "PYTEST_XDIST_WORKER" in os.environ and sys.platform != "win32":
        official.share_cases(SHARED)


class Within:
    """Starts tests as long as there is time; the summary says how many were not run."""

    def __init__(self, seconds):
        self.seconds, self.end, self.left_out = seconds, time.monotonic() + seconds, 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self):
        if time.monotonic() < self.end:
            return None
        self.left_out += 1
        return True

    def pytest_terminal_summary(self, terminalreporter):
        if self.left_out:
            terminalreporter.write_line(f"{self.left_out} tests were not run within {self.seconds:g} seconds")


def pytest_unconfigure():
    if _OURS:
        shutil.rmtree(_OURS, ignore_errors=True)
