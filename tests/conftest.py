"""What all tests start from."""

import signal

import pytest

from support.engines import ENGINES

# A shell's background job ignores interrupts, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=ENGINES)
def engine(request):
    """The name of each engine in turn."""
    return request.param
