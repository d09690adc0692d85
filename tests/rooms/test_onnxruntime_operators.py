"""The page of onnxruntime's operators is current, and has a reason for each that Sabir lacks."""

from pathlib import Path

from support.onnxruntime_operators import REASONS, page, rows

PAGE = Path(__file__).parents[2] / "docs" / "onnxruntime-operators.md"


def test_the_page_is_current():
    assert PAGE.read_text("utf-8") == page(), "run tools/write_onnxruntime.py"


def test_each_operator_of_the_cpu_provider_has_a_room_or_a_reason():
    assert not [r.name for r in rows() if r.operator is None and not r.reason]
    assert not [n for n in REASONS if n not in {r.name for r in rows() if r.cpu and r.operator is None}]
