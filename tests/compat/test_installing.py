"""`import onnx` means Sabir: in a process of its own, as the finder belongs to the process."""

import subprocess
import sys

import onnx  # ruff: ignore[banned-api]  the oracle
import pytest

import sabir.compat


def run(*arguments):
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


SCRIPT = """
import importlib.metadata, pickle, sys
import onnx, onnx.helper
from onnx import TensorProto, numpy_helper
from onnx.onnx_ml_pb2 import ModelProto
import sabir.compat

assert (onnx.__name__, onnx.helper.__name__) == ("onnx", "onnx.helper")
assert onnx is sys.modules["sabir.compat.onnx"] and onnx.helper is sys.modules["sabir.compat.onnx.helper"]
assert onnx.ModelProto is ModelProto and TensorProto.FLOAT == 1
assert importlib.metadata.version("onnx") == onnx.__version__ == sabir.compat.VERSION
model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
assert pickle.loads(pickle.dumps(model)) == model
for name in ("onnx.hub", "onnx.mapping", "onnx.nothing"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)
try:
    onnx.nothing
except AttributeError as error:
    print(error)
sabir.compat.uninstall()
assert "onnx" not in sys.modules
assert (onnx.__name__, onnx.helper.__name__) == ("sabir.compat.onnx", "sabir.compat.onnx.helper")
print(sys.argv[1:])
"""


def test_a_script_imports_sabir_as_onnx(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run("-m", "sabir.compat", str(script), "--flag", "value")
    assert done.returncode == 0, done.stderr
    hub, mapping, unknown, attribute, arguments = done.stdout.splitlines()
    assert hub.startswith("Sabir has no module onnx.hub: it downloads models")
    assert "onnx removed it" in mapping
    assert unknown == "Sabir has no module onnx.nothing; docs/compat.md lists those that it has"
    assert attribute == "Sabir's module onnx has no attribute 'nothing'; docs/compat.md lists what it has"
    assert arguments == "['--flag', 'value']"


def test_a_module_runs():
    done = run("-m", "sabir.compat", "-m", "timeit", "-n1", "-r1", "import onnx; print(onnx.__spec__.name)")
    assert done.stdout.startswith("sabir.compat.onnx\n")


def test_another_command_line_shows_the_usage():
    done = run("-m", "sabir.compat", "--what")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m sabir.compat SCRIPT.py")


def test_the_real_package_is_not_replaced_once_it_is_imported():
    assert onnx.__name__ == "onnx"
    with pytest.raises(sabir.compat.CompatError, match=r"the package onnx is already imported from .*; call"):
        sabir.compat.install()
    assert not sabir.compat.is_installed()
    sabir.compat.uninstall()


def test_a_wheel_satisfies_requirements_and_imports_sabir(tmp_path):
    wheel = sabir.compat.write_wheel(tmp_path)
    assert wheel.read_bytes() == sabir.compat.write_wheel(tmp_path).read_bytes()
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import importlib.metadata as m; print(m.version('onnx'))\n"
        "import onnx.helper, onnx; print(onnx.__spec__.name, onnx.helper.__spec__.name, m.requires('onnx'))"
    )
    assert run("-c", code).stdout.split() == [
        "1.23.2+sabir", "sabir.compat.onnx", "sabir.compat.onnx.helper", "None",
    ]  # fmt: skip
    done = run("-m", "sabir.compat", "wheel", str(tmp_path / "missing"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
