"""Every hostile case ends, in each stage, in an answer or a SabirError, within bounds of time and memory."""

import sys

import pytest

from hostile.corpus import CASES
from hostile.driver import Server, unexpected

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the driver forks, and bounds its children")


@pytest.fixture(scope="session")
def server():
    with Server() as running:
        yield running


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=ascii(c.name)[1:-1]) for c in CASES.values() if not c.slow]
)
def test_a_hostile_file_does_no_harm(case, server):
    result = server.run(case.make(), case.form)
    assert [*result.problems(), *unexpected(case, result)] == []


def test_the_driver_tells_what_goes_wrong(server):
    sound = server.run(CASES["a sound model"].make())
    assert sound.sound
    assert not sound.refused
    late = [
        *sound.stages,
        sound.stages[0]._replace(outcome="KeyError", message="x", typed=False, seconds=99.0),
    ]
    harmed = sound._replace(stages=late, memory=1 << 40, died="killed", printed="hello")
    assert [p.split()[0] for p in harmed.problems()] == ["killed,", "took", "printed", "load:", "load:"]


def test_the_corpus_is_large():
    assert len(CASES) > 250
