"""`python -m sabir.compat script.py …`, `-m module …`, or `wheel DIRECTORY`: see docs/compat.md."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from sabir.base import SabirError
from sabir.compat._install import install
from sabir.compat._wheel import write_wheel

_USAGE = """\
usage: python -m sabir.compat SCRIPT.py [ARGUMENTS]   run a script; `import onnx` in it means Sabir
       python -m sabir.compat -m MODULE [ARGUMENTS]   run a module
       python -m sabir.compat wheel DIRECTORY         write a wheel `onnx` that means Sabir
"""


def main() -> int:
    """Run what the command line names; return its exit status."""
    arguments = sys.argv[1:]
    match arguments:
        case ["-m", module, *rest]:
            install()
            sys.argv = [module, *rest]
            sys.path[0] = str(Path.cwd())
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["wheel", directory]:
            sys.stdout.write(f"{write_wheel(directory)}\n")
        case [script, *_] if not script.startswith("-") and script != "wheel":
            install()
            sys.argv = arguments
            sys.path[0] = str(Path(script).resolve().parent)
            runpy.run_path(script, run_name="__main__")
        case _:
            sys.stderr.write(_USAGE)
            return 2
    return 0


if __name__ == "__main__":
    try:
        status = main()
    except SabirError as error:
        sys.exit(f"error: {error}")
    sys.exit(status)
