"""Operators that onnxruntime adds to the standard, as requirements of a model."""

import json
from pathlib import Path

import pytest

import sabir
from sabir.consumers import CONSUMERS
from sabir.consumers._added import FIRST_MINOR

MODEL = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[N] x) => (float[N] y) { y = com.microsoft.QuickGelu (x) }"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [("onnxruntime-1.14", None), ("onnxruntime-1.13", "operator"), ("onnx-1.17.0", "domain")],
)
def test_a_release_has_the_operators_that_came_before_it(name, kind):
    found = sabir.requirements(sabir.parse(MODEL)).obstacles(name)
    assert [o.kind for o in found if o.kind in {"operator", "domain"}] == ([kind] if kind else [])
    if kind == "operator":
        assert "lacks it; it is known from onnxruntime-1.14 on" in found[-1].sentence


def test_every_recorded_operator_has_its_first_release():
    record = Path(__file__).parents[1] / "rooms" / "onnxruntime.json"
    keys = {k.rsplit("/", 2)[0].replace("ai.onnx", "") + "/" + k.rsplit("/", 2)[1]
            for k in json.loads(record.read_text("utf-8"))["versions"]}  # fmt: skip
    assert keys == {f"{domain}/{name}" for domain, name in FIRST_MINOR}
    newest = max(FIRST_MINOR.values())
    assert f"onnxruntime-1.{newest}" in CONSUMERS
