"""The table of releases is that of onnx, and what follows from it."""

import pickle  # ruff: ignore[suspicious-pickle-import]  our own objects
from copy import deepcopy

import pytest
from onnx import helper  # ruff: ignore[banned-api]  its table is what ours is compared with

import sabir
from sabir.base import UnsupportedError
from sabir.ir import (
    first_ir_of,
    first_release,
    first_release_with,
    least_ir_of_imports,
    newest_opset,
    newest_opset_of_ir,
    opsets_of_ir,
    release,
)


def test_the_table_is_that_of_onnx():
    """A row of onnx has the name, the IR version, ai.onnx, ai.onnx.ml and, since 1.7, ai.onnx.training."""
    domains = ("", "ai.onnx.ml", "ai.onnx.training")
    ours = [
        (r.name, r.ir_version, *(r.opsets[d] for d in domains if d in r.opsets)) for r in sabir.releases()
    ]
    assert ours == [tuple(row) for row in helper.VERSION_TABLE]


@pytest.mark.parametrize(
    ("domain", "first"),
    [("ai.onnx.training", "1.7.0"), ("ai.onnx.preview.training", "1.7.0"), ("ai.onnx.preview", "1.22.0")],
)
def test_domains_that_came_later(domain, first):
    assert next(r.name for r in sabir.releases() if domain in r.opsets) == first
    assert all(r.opsets[domain] == 1 for r in sabir.releases() if domain in r.opsets)


def test_a_release_cannot_be_changed():
    found = release("1.16.0")
    with pytest.raises(AttributeError):
        found.ir_version = 3
    with pytest.raises(TypeError):
        found.opsets[""] = 3  # pyright: ignore[reportIndexIssue] - that this fails is tested
    assert pickle.loads(pickle.dumps(found)) == deepcopy(found) == found  # ruff: ignore[suspicious-pickle-usage]  ours
    assert {found: 1}[release("1.16.0")] == 1
    assert found != release("1.16.1")


@pytest.mark.parametrize(
    ("domain", "version", "ir"),
    [
        ("", 1, 3), ("", 2, 3), ("", 8, 3), ("ai.onnx", 9, 4), ("", 14, 7), ("", 15, 8), ("", 27, 13), ("", 28, 14),
        ("", 29, None), ("ai.onnx.ml", 1, 3), ("ai.onnx.ml", 2, 6), ("ai.onnx.ml", 4, 9), ("ai.onnx.ml", 6, None),
        ("ai.onnx.training", 1, 7), ("ai.onnx.preview.training", 1, 7), ("ai.onnx.preview", 1, 13),
        ("org.acme", 1, None),
    ],
)  # fmt: skip
def test_the_first_ir_of_an_opset(domain, version, ir):
    assert first_ir_of(domain, version) == ir


@pytest.mark.parametrize(
    ("ir", "opset"),
    [(0, None), (1, 1), (2, 1), (3, 8), (4, 9), (7, 14), (8, 18), (13, 27), (14, 28), (15, None)],
)
def test_the_newest_opset_of_an_ir(ir, opset):
    assert newest_opset_of_ir(ir) == opset


def test_the_newest_opsets():
    assert (newest_opset(""), newest_opset("ai.onnx"), newest_opset("ai.onnx.ml")) == (28, 28, 5)
    assert newest_opset("org.acme") is None
    assert dict(opsets_of_ir(3)) == {"": 8, "ai.onnx.ml": 1}
    assert dict(opsets_of_ir(9)) == {
        "": 20, "ai.onnx.ml": 4, "ai.onnx.training": 1, "ai.onnx.preview.training": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("opsets", "ir", "name"),
    [
        ({}, 3, "1.0"),
        ({"": 7}, 3, "1.2"),
        ({"": 4}, 3, "1.1"),
        ({"ai.onnx": 13}, 7, "1.8.0"),
        ({"": 9, "ai.onnx.ml": 3}, 8, "1.11.0"),
        ({"ai.onnx.preview": 1}, 13, "1.22.0"),
        ({"": 28}, 14, "1.23.0"),
        ({"org.acme": 99}, 3, "1.0"),
    ],
)
def test_imports_need_an_ir_and_a_release(opsets, ir, name):
    assert least_ir_of_imports(opsets) == ir
    assert first_release_with(opsets).name == name


def test_a_release_that_also_has_an_ir():
    assert first_release_with({"": 15}, ir_version=9).name == "1.14.0"
    assert first_release_with({"": 21}, ir_version=3).name == "1.16.0"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: release("1.24.0"), "no release '1.24.0' of ONNX is known; the newest known one is 1.23.0"),
        (lambda: release("1.17.9"), "is it '1.17.0'"),
        (
            lambda: opsets_of_ir(15),
            "no release of ONNX with IR version 15 is known; the known ones have 3 to 14",
        ),
        (lambda: opsets_of_ir(2), "no release of ONNX with IR version 2 is known"),
        (
            lambda: least_ir_of_imports({"": 29}),
            "opset 29 of 'ai.onnx' is not known; the newest known one is 28",
        ),
        (lambda: least_ir_of_imports({"": 0}), "opset 0 of 'ai.onnx' is not known"),
        (
            lambda: first_release_with({"ai.onnx.ml": 6}),
            "opset 6 of 'ai.onnx.ml' is not known; the newest known",
        ),
        (lambda: first_release_with({}, 15), "IR version 15 is not known; the newest known one is 14"),
    ],
)
def test_what_is_not_known_is_refused(ask, message):
    with pytest.raises(UnsupportedError) as caught:
        ask()
    assert message in str(caught.value)


def parsed(ir, opset, types="float[N]", extra=""):
    return sabir.parse(
        f"<ir_version: {ir}, opset_import: [{opset}]> g ({types} x) => ({types} y) {{ y = Identity (x) }} {extra}"
    )


FUNCTION = '<domain: "d", opset_import: ["" : 18]> f (a) => (b) { b = Relu (a) }'


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (parsed(8, '"" : 17'), "1.12.0"),
        (parsed(8, '"" : 15'), "1.10.0"),
        (parsed(3, '"" : 17'), "1.12.0"),  # the import decides
        (parsed(9, '"" : 15'), "1.14.0"),  # the declared IR version decides
        (parsed(8, '"" : 17', "int4[N]"), "1.16.0"),  # the element type decides: int4 came with IR 10
        (parsed(8, '"" : 15, "d" : 1', extra=FUNCTION), "1.13.0"),  # the import of the function decides
        (parsed(8, '"" : 15, "org.acme" : 77'), "1.10.0"),
        (parsed(8, '"" : 15, "ai.onnx" : 16'), "1.11.0"),  # of several imports the highest applies
    ],
)
def test_the_first_release_of_a_model(model, name):
    assert first_release(model).name == name


@pytest.mark.parametrize(
    ("ir", "opset", "message"),
    [
        (8, 29, "opset 29 of 'ai.onnx' is not known; the newest"),
        (15, 21, "IR version 15 is not known; the newest"),
    ],
)
def test_no_known_release_has_a_model_of_the_future(ir, opset, message):
    with pytest.raises(UnsupportedError, match=message):
        first_release(parsed(ir, f'"" : {opset}'))
