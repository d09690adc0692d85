"""The consumers that Sabir knows, and those that a caller describes."""

import pickle  # ruff: ignore[suspicious-pickle-import]  our own objects

import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.consumers import CONSUMERS, Consumer, find_consumer


@pytest.mark.parametrize(
    ("minor", "onnx", "ml", "ir"),
    [
        (0, 11, 2, 6), (2, 11, 2, 6), (3, 12, 2, 7), (5, 12, 2, 7), (6, 13, 2, 7), (7, 13, 2, 7), (8, 14, 2, 7),
        (9, 15, 2, 8), (10, 15, 2, 8), (11, 16, 3, 8), (12, 17, 3, 8), (13, 17, 3, 8), (14, 18, 3, 8), (15, 19, 3, 9),
        (16, 19, 3, 9), (17, 20, 4, 9), (18, 21, 5, 10), (20, 21, 5, 10), (21, 22, 5, 10), (22, 22, 5, 10),
        (23, 23, 5, 11), (24, 25, 5, 13), (25, 26, 5, 13), (31, 26, 5, 13), (32, 28, 5, 14),
    ],
)  # fmt: skip
def test_releases_of_onnxruntime(minor, onnx, ml, ir):
    """Measured: the newest import and IR version of a model that each release loads (before 1.2, documented)."""
    found = find_consumer(f"onnxruntime-1.{minor}")
    assert (found.opsets[""], found.opsets["ai.onnx.ml"], found.ir_version) == (onnx, ml, ir)
    assert found.opsets["com.microsoft"] == 1


def test_domains_of_onnxruntime():
    domains = {n: find_consumer(f"onnxruntime-1.{n}").opsets for n in (2, 3, 27, 28)}
    assert [n for n, opsets in domains.items() if "ai.onnx.preview.training" in opsets] == [3, 27, 28]
    assert [n for n, opsets in domains.items() if "ai.onnx.preview" in opsets] == [28]


def test_names():
    assert find_consumer("onnxruntime-1.20.1") is find_consumer("onnxruntime-1.20")
    assert find_consumer("onnx-1.17.0").opsets == sabir.ir.release("1.17.0").opsets
    assert [name for name in CONSUMERS if name.startswith("onnxruntime")] == [
        f"onnxruntime-1.{n}" for n in range(33)
    ]
    assert all(consumer.name == name for name, consumer in CONSUMERS.items())


@pytest.mark.parametrize(
    "name", ["onnxruntime-1.33", "onnxruntime-1.33.0", "onnxruntime", "", "\x1b[2J", "1.20"]
)
def test_an_unknown_name_lists_the_known_ones(name):
    known = "known are onnxruntime-1.0 to onnxruntime-1.32, and onnx-1.0 to onnx-1.23.0"
    with pytest.raises(UnsupportedError, match=known):
        find_consumer(name)
    with pytest.raises(UnsupportedError, match=known):
        sabir.requirements(sabir.Model()).obstacles(name)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnsupportedError, match=r"is it 'onnxruntime-1\.20'"):
        find_consumer("onnxrutime-1.20")


def test_a_described_consumer_cannot_be_changed():
    found = Consumer("edge", {"ai.onnx": 13, "": 11}, 8)
    assert dict(found.opsets) == {"": 13}
    with pytest.raises(TypeError):
        found.opsets[""] = 3  # pyright: ignore[reportIndexIssue] - that this fails is tested
    copy = pickle.loads(pickle.dumps(found))  # ruff: ignore[suspicious-pickle-usage]  ours
    assert copy == found
    assert hash(copy) == hash(found)


@pytest.mark.parametrize(
    ("opsets", "ir", "message"),
    [
        ({"": 29}, 8, "opset 29 of 'ai.onnx' is not known; the newest known one is 28"),
        ({"ai.onnx.ml": 0}, 8, "opset 0 of 'ai.onnx.ml' is not known"),
        ({"": 17}, 15, "IR version 15 is not known; the newest known one is 14"),
        ({"": 17}, 0, "IR version 0 is not known"),
    ],
)
def test_a_consumer_of_unknown_versions_is_refused(opsets, ir, message):
    with pytest.raises(UnsupportedError, match=message):
        Consumer("edge", opsets, ir)
