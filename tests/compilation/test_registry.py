"""The registry of kernel families: what each declares exists, and what belongs to one is in no other place."""

import importlib
import re
from pathlib import Path

import pytest

import sabir.compilation
from sabir.compilation.backends.cpu.families import families
from sabir.compilation.fusion.families import Later
from sabir.loops import Descend, MatrixSteps, PoolRegions

COMPILATION = Path(sabir.compilation.__file__).parent
FOLDERS = sorted(path.parent.name for path in COMPILATION.glob("backends/cpu/*/family.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_with_a_declaration_is_registered(folder):
    declared = importlib.import_module(f"sabir.compilation.backends.cpu.{folder}.family").FAMILIES
    assert all(families().by_name[family.name] is family for family in declared)


@pytest.mark.parametrize("specification", families().writers)
def test_each_writer_of_code_is_a_function(specification):
    module, function = families().writers[specification].split(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("family", families().by_name.values(), ids=lambda family: family.name)
def test_each_function_of_a_declaration_exists(family):
    functions = [f for f in (family.plan, family.group, family.claim, family.schedule) if f is not None]
    assert functions
    assert all(isinstance(f, Later) and callable(f.function) for f in functions)


@pytest.mark.parametrize(
    ("kind", "folder"), [(Descend, "trees"), (MatrixSteps, "matrix_steps"), (PoolRegions, "regions")]
)
def test_a_kind_of_expression_is_known_to_its_family_alone(kind, folder):
    """A new kind is a module of `loops`, its export, and a family: nothing else lists it."""
    named = {
        path.parent.name
        for path in COMPILATION.rglob("*.py")
        if re.search(rf"\b{kind.__name__}\b", path.read_text(encoding="utf-8"))
    }
    assert named == {folder}
