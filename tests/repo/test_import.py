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


def test_no_engine_is_loaded_before_it_is_asked_for(modules):
    assert "sabir.ir" in modules
    engines = (
        "opsets",
        "schema",
        "checking",
        "consumers",
        "inference",
        "evaluation",
        "inlining",
        "runtime",
        "serial",
    )
    assert not {m for m in modules if m.startswith(tuple(f"sabir.{name}" for name in engines))}


def test_every_public_name_is_there_and_listed():
    import sabir  # ruff: ignore[import-outside-top-level]  as a user has it

    assert set(sabir.__all__) <= set(dir(sabir))
    assert all(getattr(sabir, name) is not None for name in sabir.__all__)
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        _ = sabir.chek


def test_no_operator_is_loaded():
    found = loaded("import sabir\nsabir.Session, sabir.check, sabir.infer, sabir.load, sabir.inline")
    assert "sabir.opsets" in found
    assert not {m for m in found if m.startswith("sabir.opsets.onnx.")}


@pytest.mark.parametrize("library", LATER)
def test_no_library_is_loaded_before_it_is_needed(modules, library):
    assert library not in modules


def test_one_operator_loads_its_own_room_alone():
    found = loaded('from sabir.opsets import STANDARD\nSTANDARD.find("", "Relu")')
    assert {m for m in found if m.startswith("sabir.opsets.onnx.")} == {"sabir.opsets.onnx.relu"}


def test_packages_are_attributes_and_nothing_else_looks_public():
    code = "import sabir; print(sabir.training.__name__, sabir.syntax.__name__); print(*dir(sabir))"
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    first, names = done.stdout.splitlines()
    assert first == "sabir.training sabir.syntax"
    public = [name for name in names.split() if not name.startswith("_")]
    assert not {"np", "functools", "Any", "Listed", "importing_later"} & set(public)
    assert {"Session", "check", "training"} <= set(public)


def test_packages_list_their_public_names_alone():
    code = """
import importlib, sabir
for package in sabir._PACKAGES:
    module = importlib.import_module(f"sabir.{package}")
    for name in dir(module):
        if not name.startswith("_") and name not in module.__all__:
            print(f"{package}.{name}", type(getattr(module, name)).__name__)
"""
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not [line for line in done.stdout.splitlines() if not line.endswith(" module")]
