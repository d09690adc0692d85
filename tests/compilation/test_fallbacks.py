"""The page of fallbacks is current: a call that leaves native code, or enters it, shows in a review."""

from pathlib import Path

from support.fallbacks import page, rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "fallbacks.md"


def test_the_page_is_current():
    assert page() == DOCUMENT.read_text("utf-8"), "run tools/write_fallbacks.py"


def test_no_reason_is_an_accident():
    """A reason is a sentence of the standard's terms or of a lowering, not an error of Python."""
    told = {reason.partition(":")[0] for row in rows() for reason in row.reasons}
    assert not {
        name for name in told if name.endswith(("Error", "Exception")) and not name.startswith("Inference")
    }
