"""The installed onnxruntime loads what its entry in the table accepts, and refuses the rest."""

import onnxruntime
import pytest

import sabir
from sabir.consumers import CONSUMERS, find_consumer
from sabir.ir import NEWEST_IR, newest_opset, releases

NAME = f"onnxruntime-{'.'.join(onnxruntime.__version__.split('.')[:2])}"


def loads(model):
    onnxruntime.set_default_logger_severity(4)
    try:
        onnxruntime.InferenceSession(sabir.dumps(model), providers=["CPUExecutionProvider"])
    except Exception:  # ruff: ignore[blind-except]  its exceptions have no common class
        return False
    return True


def model_of(ir=8, opset=13, more="", body="y = Identity (x)", types="float[1]"):
    return sabir.parse(
        f'<ir_version: {ir}, opset_import: ["" : {opset}{more}]> g ({types} x) => ({types} y) {{ {body} }}'
    )


def test_the_table_has_the_installed_release():
    assert NAME in CONSUMERS, "add the release to sabir/consumers/_consumer.py"


@pytest.mark.parametrize("ir", range(3, NEWEST_IR + 1))
def test_ir_versions(ir):
    model = model_of(ir=ir)
    assert loads(model) == (not sabir.requirements(model).obstacles(NAME))


@pytest.mark.parametrize("opset", range(7, newest_opset("") + 1))
def test_imports(opset):
    model = model_of(opset=opset)
    assert loads(model) == (not sabir.requirements(model).obstacles(NAME))


@pytest.mark.parametrize(
    ("domain", "version"),
    [
        *(("ai.onnx.ml", version) for version in range(1, 7)),
        *((domain, version) for domain in releases()[-1].opsets if domain not in {"", "ai.onnx.ml"} for version in (1, 2)),
        ("com.microsoft", 1),
        ("com.microsoft", 2),
        ("org.acme", 9),
    ],
)  # fmt: skip
def test_unused_imports(domain, version):
    model = model_of(more=f', "{domain}" : {version}')
    assert loads(model) == (not sabir.requirements(model).obstacles(NAME))


@pytest.mark.parametrize(
    "body",
    [
        "y = Gelu (x)",
        "y = Reluu (x)",
        "y = org.acme.F (x)",
        "y = com.microsoft.Gelu (x)",
        "y = Upsample (x, x)",
    ],
)
@pytest.mark.parametrize("opset", [13, 20, find_consumer(NAME).opsets[""]])
def test_calls(body, opset):
    model = model_of(ir=10, opset=opset, more=', "org.acme" : 1, "com.microsoft" : 1', body=body)
    assert loads(model) == (not sabir.requirements(model).obstacles(NAME))
