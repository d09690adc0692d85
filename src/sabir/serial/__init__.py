"""Models from files and to files."""

from sabir.serial._files import dumps, load, load_tensor, loads, save

__all__ = ["dumps", "load", "load_tensor", "loads", "save"]
