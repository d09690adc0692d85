"""Every hostile case ends, in each stage, in an answer or a SabirError, within bounds of time and memory."""

import sys

import pytest

from hostile.corpus import CASES
from hostile.driver import Server, unexpected
from support import cases

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the driver forks, and bounds its children")


TOGETHER, SMALL = 16, 100_000  # cases of a test, and the bytes of a file that is run in a child with others


def batches(every):
    """The quick cases, some for each test."""
    quick = [c for c in every if not c.slow]
    return [quick[i : i + TOGETHER] for i in range(0, len(quick), TOGETHER)]


def problems(case, result):
    return [*result.problems(), *unexpected(case, result)]


@pytest.fixture(scope="session")
def server():
    with Server() as running:
        yield running


@pytest.mark.parametrize("batch", batches(CASES.values()), ids=lambda batch: ascii(batch[0].name)[1:-1])
def test_hostile_files_do_no_harm(batch, server):
    wanted = [c for c in batch if cases.wanted in c.name]
    files = {c.name: (c.make(), c.form) for c in wanted}
    together = [name for name, (data, _) in files.items() if len(data) < SMALL]
    results = dict(zip(together, server.run_together([files[name] for name in together]), strict=True))
    found = {}
    for case in wanted:
        result = results.get(case.name)
        if result is None or problems(case, result):  # one of the others may have harmed this one
            result = server.run(*files[case.name])
        if told := problems(case, result):
            found[case.name] = told
    assert not found


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
