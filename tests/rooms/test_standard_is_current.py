"""The record of the standard's facts against the onnx package that is installed here."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "standard.py"


def loaded():
    spec = importlib.util.spec_from_file_location("standard", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_record_has_all_that_the_locked_onnx_publishes():
    tool = loaded()
    assert list(tool.differences(tool.recorded(), tool.published())) == []


def test_differences_name_the_change_and_the_declaration_to_write():
    tool = loaded()
    old = tool.recorded()
    relu = old["ai.onnx/Relu/14"]
    more = sorted({*relu["constraints"]["T"], "tensor(uint8)"})
    wider = {**relu, "constraints": {"T": more}}
    added = {**relu, "attributes": {"alpha": {"type": "float", "default": 0.0}}}
    new = {**old, "ai.onnx/Relu/30": wider, "ai.onnx/Relu/31": added, "ai.onnx/Fresh/30": relu}
    del new["ai.onnx/Abs/1"]

    lines = [line.strip() for line in tool.differences(old, new)]

    assert "gone: ai.onnx/Abs/1" in lines
    assert any(line.startswith("a new operator: write its room") for line in lines)
    assert "T: more ['tensor(uint8)'], fewer []" in lines
    assert "write in the room: v30 = v14.widen(30, T=frozenset(['tensor(uint8)']))" in lines
    assert any(line.startswith("write in the room: v31 = v30.evolve(31") for line in lines)
