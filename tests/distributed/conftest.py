"""Ray, started once for all tests that need it."""

import pytest


@pytest.fixture(scope="session")
def ray():
    """Ray with two processors; a test that takes it is skipped where Ray is not installed."""
    found = pytest.importorskip("ray", reason="Ray is not installed; `make distributed` tests with it")
    found.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    yield found
    found.shutdown()
