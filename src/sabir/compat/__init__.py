"""The API of the Python package `onnx` 1.23, over Sabir's engines.

`install()` makes `import onnx` mean `sabir.compat.onnx` in this process; `python -m sabir.compat script.py`
runs a program in such a process. docs/compat.md lists what each public name of `onnx` does here.
"""

from sabir.compat._install import VERSION, CompatError, install, is_installed, take_over, uninstall
from sabir.compat._wheel import write_wheel

__all__ = ["VERSION", "CompatError", "install", "is_installed", "take_over", "uninstall", "write_wheel"]
