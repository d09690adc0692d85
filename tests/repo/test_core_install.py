"""What `pip install sabir` installs is enough for models; the program says which extra it needs."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
LIBRARIES = {"typer", "rich", "pydantic", "click", "PIL", "matplotlib", "onnx", "onnxruntime"}


def normal(requirement):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def run_with_core_dependencies(code, *arguments):
    """Run code where only the dependencies without extras can be imported."""
    core = {"sabir", *map(normal, PROJECT["dependencies"])}
    found = packages_distributions().items()
    absent = LIBRARIES | {top for top, names in found if not core & set(map(normal, names))}
    begin = WITHOUT.replace("ABSENT", repr(sorted(absent)))
    return subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", begin + code, *arguments], capture_output=True, text=True, check=False
    )


def test_a_compiled_session_needs_no_extra(tmp_path):
    code = """
import json, sys, numpy as np, sabir
model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
main (float[N,4] x) => (float[N,4] y) { y = Softmax <axis = 1> (x) }''')
sabir.check(model)
sabir.save(sabir.infer(model), sys.argv[1])
session = sabir.Session(sys.argv[1])
y = session.run({"x": np.zeros((2, 4), np.float32)})["y"]
print(json.dumps({"engine": session.engine, "y": y.tolist()}))
"""
    done = run_with_core_dependencies(code, str(tmp_path / "model.onnx"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"engine": "compiled", "y": [[0.25] * 4] * 2}


def test_the_program_names_its_extra():
    done = run_with_core_dependencies("from sabir.cli import main\nraise SystemExit(main([]))")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "error: the program `sabir` needs typer; install it with `pip install 'sabir[cli]'`\n"
    )


def test_another_missing_module_is_not_taken_for_the_extra():
    code = "import sys; sys.modules['sabir.cli._app'] = None\nfrom sabir.cli import main\nmain([])"
    done = run_with_core_dependencies(code)
    assert "ModuleNotFoundError" in done.stderr
    assert "sabir[cli]" not in done.stderr
