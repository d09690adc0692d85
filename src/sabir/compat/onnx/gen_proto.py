"""The names of onnx's generator of message classes that other packages import.

Sabir builds its message classes from its own descriptor set, so there is nothing to generate.
"""

from __future__ import annotations

DEFAULT_PACKAGE_NAME = "onnx"
"""The package of the messages."""

__all__ = ["DEFAULT_PACKAGE_NAME"]
