"""`make quick` selects the tests of changed files, and stops when its time is over."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = [p.relative_to(ROOT).as_posix() for p in ROOT.glob("tests/**/test_*.py")]


def load():
    spec = importlib.util.spec_from_file_location("quick", ROOT / "tools" / "quick.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its named tuples resolve their annotations there
    spec.loader.exec_module(module)
    return module


QUICK = load()


def names(changed):
    return [Path(name).stem for name in QUICK.selection(changed, TESTS).files]


def test_the_deepest_mirror_of_a_package():
    assert QUICK.mirror("src/sabir/compilation/passes/_repeats.py", TESTS) == "tests/compilation/passes"
    assert QUICK.mirror("src/sabir/compilation/cache/stored.py", TESTS) == "tests/compilation"
    assert QUICK.mirror("src/sabir/opsets/onnx/det.py", TESTS) is None
    assert QUICK.mirror("tools/quick.py", TESTS) is None


def test_changed_tests_then_those_that_import_the_module_then_the_folder():
    changed = ["src/sabir/compilation/native/_target.py", "tests/compilation/native/test_driver.py"]
    found = names(changed)
    assert found[0] == "test_driver"
    importers = {Path(t).stem for t in TESTS if "sabir.compilation.native._target" in QUICK.imports_of(t)}
    assert importers
    first_of_folder = found.index("test_ahead")
    assert all(found.index(name) < first_of_folder for name in importers - {"test_ahead"})


def test_names_in_common_come_first_within_a_folder():
    found = names(["src/sabir/compilation/backends/cpu/products/winograd.py"])
    assert found.index("test_winograd") < found.index("test_aliases")
    assert found.index("test_more_products") < found.index("test_bands")


def test_tests_import_through_support():
    assert "sabir.loops" in QUICK.imports_of("tests/compilation/test_scalar_backend.py")
    assert "test_scalar_backend" in names(["tests/support/scalar.py"])


@pytest.mark.parametrize(
    ("changed", "operator"),
    [
        ("src/sabir/opsets/onnx/global_average_pool.py", "GlobalAveragePool"),
        ("src/sabir/opsets/onnx/if_.py", "If"),
        ("src/sabir/opsets/families/windows/edge_windows.py", "ConvTranspose"),
    ],
)
def test_operators_of_rooms_and_of_shared_mathematics(changed, operator):
    found = QUICK.selection([changed], TESTS)
    assert operator in found.operators
    assert found.packages == ("opsets",)
    *_, (_, arguments) = found.runs()
    assert arguments[-2] == "-k"
    assert operator in arguments[-1].split(" or ")


def test_pages_run():
    found = QUICK.selection(["docs/cache.md", "docs/rules.md", "docs/operators/Abs.md"], TESTS).files
    assert [name for name in found if "::" in name] == [
        "tests/repo/test_readme.py::test_blocks[docs/cache.md]",
        "tests/repo/test_readme.py::test_links_lead_somewhere[docs/cache.md]",
    ]


def test_the_cheap_tests_of_the_repository_exist():
    assert {f"tests/repo/{name}.py" for name in QUICK.REPOSITORY} <= set(TESTS)
    assert set(QUICK.GENERIC) <= set(TESTS)


def test_no_test_is_started_after_the_time(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_slow.py").write_text(
        "def test_a(request): request.config.pluginmanager.getplugin('within').end = 0\ndef test_b(): assert False\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--within=600",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    command += ["--override-ini", f"pythonpath={ROOT / 'tests'}", "--rootdir", str(tmp_path), str(tmp_path)]
    # ruff: ignore[subprocess-without-shell-equals-true]  this Python
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "1 tests were not run within 600 seconds" in done.stdout
    assert done.returncode == 0
