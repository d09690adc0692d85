"""Every version of every operator is computed by something that is not Sabir."""

from pathlib import Path

import pytest

from support.oracles import NO_ORACLE, cells, report

DOCUMENT = Path(__file__).parents[2] / "docs" / "oracles.md"


@pytest.fixture(scope="module")
def rows():
    return {(r.domain, r.name, r.since): r for r in report()}


@pytest.fixture(scope="module")
def told():
    return cells(DOCUMENT.read_text("utf-8"))


def test_the_document_is_current(rows, told):
    cheap = {key: (r.expected, r.official) for key, r in rows.items()}
    assert cheap == {key: (expected, cases) for key, (expected, _, cases) in told.items()}, (
        "run tools/write_oracles.py"
    )


def test_every_version_has_an_oracle(rows, told):
    without = {key for key, counts in told.items() if not any(counts)}
    assert not {key for key in without if not rows[key].deprecated and key[1] not in NO_ORACLE}


def test_only_what_has_none_is_declared_absent(told):
    assert {name for _, name, _ in told} >= NO_ORACLE.keys()
