"""docs/conversions.md says how calls cross each boundary between versions."""

from pathlib import Path

import pytest

from sabir.conversion._boundaries import boundary_of
from support.boundaries import boundaries_in, page
from support.rooms import OPERATORS, VERSIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "conversions.md"


@pytest.fixture(scope="module")
def written():
    return DOCUMENT.read_text("utf-8")


def test_the_page_is_current(written):
    assert written == page(), "run tools/write_conversions.py"


def test_every_boundary_is_listed_once(written):
    first = [v for o in OPERATORS for v in o.versions if v.since == 1]
    above = [(o.domain, o.name, v.since) for o in OPERATORS for v in o.versions if v.since > 1]

    assert sorted(boundaries_in(written)) == sorted(above)
    assert len(first) + len(above) == len(VERSIONS)


def test_every_boundary_is_crossed_or_refused_with_a_reason():
    upward = [
        boundary_of(o, v.since, downward=False)
        for o in OPERATORS
        for v in o.versions
        if v.previous is not None
    ]
    downward = [boundary_of(o, v.since, downward=True) for o in OPERATORS for v in o.versions if v.since > 1]
    assert not [b for b in (*upward, *downward) if "no adapter" in b.refusal]


@pytest.mark.parametrize(
    "row",
    [
        "| Gelu | → 20 | - | function body |",
        "| Softmax | 11 → 13 | adapter | adapter",
        "| Squeeze | 11 → 13 | adapter | adapter; refused: `axes` is computed at run time",
        "| Tile | 1 → 6 | adapter; refused: `tiles`, `axis` and the rank of `input` must be known",
        "| MaxPool | 1 → 8 | as it is | as it is; refused: MaxPool:1 has 1 output |",
        "| CastLike | 23 → 24 | as it is | as it is; refused: CastLike:23 does not admit float8e8m0; CastLike:23 has no",
    ],
)
def test_what_rows_say(written, row):
    assert f"\n{row}" in written
