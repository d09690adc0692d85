"""A text is written in little more memory than the model takes."""

import subprocess
import sys

import numpy as np
import pytest

import sabir

ELEMENTS = 2_000_000  # 8 MB, and 24 MB of text

CHILD = """
import resource, sys
import sabir
from sabir.syntax import write_text
model = sabir.load(sys.argv[1])
sabir.save(sabir.parse("<ir_version: 10> g () => () { }"), sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.argv[3] == "save":
    sabir.save(model, sys.argv[2])
else:
    with open(sys.argv[2], "w") as stream:
        write_text(model, stream)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("way", ["save", "write_text"])
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere `ru_maxrss` is not in KiB")
def test_a_text_is_never_in_memory_as_a_whole(tmp_path, way):
    b = sabir.Builder(21)
    numbers = np.random.default_rng(0).standard_normal(ELEMENTS, np.float32)
    b.output(b.Add(b.input("x", "float", [ELEMENTS]), b.initializer("w", numbers)), "y")
    sabir.save(b.model(), tmp_path / "m.onnx")
    target = tmp_path / "m.onnxtxt"
    child = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [sys.executable, "-c", CHILD, tmp_path / "m.onnx", target, way],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert target.stat().st_size > 20e6
    assert int(child.stdout) * 1024 < 4 * ELEMENTS + 16e6
