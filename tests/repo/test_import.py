"""What `import sabir` costs: only what every user needs."""

import subprocess
import sys

import pytest

LATER = ["PIL", "llvmlite", "onnx", "onnxruntime", "re2", "rich", "threadpoolctl", "typer"]


def loaded(code):
    listing = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def modules():
    return loaded("import sabir")


def test_no_operator_is_loaded(modules):
    assert "sabir.opsets" in modules
    assert not {m for m in modules if m.startswith("sabir.opsets.onnx.")}


@pytest.mark.parametrize("library", LATER)
def test_no_library_is_loaded_before_it_is_needed(modules, library):
    assert library not in modules


def test_one_operator_loads_its_own_room_alone():
    found = loaded('from sabir.opsets import STANDARD\nSTANDARD.find("", "Relu")')
    assert {m for m in found if m.startswith("sabir.opsets.onnx.")} == {"sabir.opsets.onnx.relu"}
