"""The version of the API."""

from sabir.compat._install import VERSION as version

git_version = ""
"""Empty: this is not a build of onnx's repository."""

__all__ = ["git_version", "version"]
