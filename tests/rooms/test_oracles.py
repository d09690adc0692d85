"""Every version of every operator is computed by something that is not Sabir."""

from pathlib import Path

import pytest

from support.oracles import NO_ORACLE, cells, report, told

DOCUMENT = Path(__file__).parents[2] / "docs" / "oracles.md"
STALE = "run tools/write_oracles.py"


@pytest.fixture(scope="module")
def rows():
    return {row.key: row for row in report()}


@pytest.fixture(scope="module")
def written():
    return cells(DOCUMENT.read_text("utf-8"))


def test_the_document_is_current(rows, written):
    """What onnxruntime vouches for is held against it where it is asked, in test_against_onnxruntime."""
    cheap = {key: told(row)[::2] for key, row in rows.items()}
    assert cheap == {key: vouchers[::2] for key, vouchers in written.items()}, STALE


def test_every_version_is_vouched_for_by_an_example(rows, written):
    without = {key for key, (expected, agreed, _) in written.items() if not expected and not agreed}
    assert not {key for key in without if not rows[key].deprecated and key[1] not in NO_ORACLE}


def test_only_what_has_none_is_declared_absent(written):
    assert {name for _, name, _ in written} >= NO_ORACLE.keys()
